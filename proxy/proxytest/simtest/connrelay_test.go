package simtest_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest/simtest"
)

// connRelay carries bytes as relay does, on the engine's own connections: with watermarks, half close and read disable.
type connRelay struct {
	workers []*event.Worker
	ends    []*connWorker
}

type connWorker struct {
	w     *event.Worker
	n     simtest.Net
	h     event.Handle
	retry event.Timer
	open  int
}

func buildConnRelay(w *simtest.World, n simtest.Net) (simtest.System, error) {
	r := &connRelay{}
	for i := range 2 {
		name := fmt.Sprint("worker_", i)
		k := event.New(event.Config{Index: i, Name: name, Driver: w.Driver(name), Clock: w.Clock(), Rand: w.Rand(name)})
		k.Bufs.Poison = true
		h, err := k.Driver.Listen(&event.ListenSpec{Address: n.Listen, ReusePort: true})
		if err != nil {
			return nil, err
		}
		e := &connWorker{w: k, n: n, h: h}
		e.retry.Fn = func() { e.OnReady(event.Readable) }
		if err := k.Register(h, e); err != nil {
			return nil, err
		}
		r.workers, r.ends = append(r.workers, k), append(r.ends, e)
	}
	return r, nil
}

func (r *connRelay) Workers() []*event.Worker { return r.workers }

func (r *connRelay) Close() {
	for _, e := range r.ends {
		e.w.Post(func() {
			e.w.Remove(&e.retry)
			e.w.Close(e.h, false)
		})
	}
}

func (r *connRelay) Busy() []string { return nil }

func (r *connRelay) Leaks() (leaks []string) {
	for _, e := range r.ends {
		if live := e.w.Bufs.Live(); live != 0 || e.open != 0 {
			leaks = append(leaks, fmt.Sprintf("%s: %d slabs, %d connections", e.w.Name, live, e.open))
		}
	}
	return leaks
}

func (e *connWorker) OnReady(event.Events) {
	for {
		h, _, err := e.w.Driver.Accept(e.h)
		if err == syscall.EAGAIN {
			return
		}
		if err != 0 {
			e.w.Arm(&e.retry, 5*time.Millisecond)
			return
		}
		to := e.n.Upstreams[e.w.Rand.IntN(len(e.n.Upstreams))]
		down, up := &leg{e: e}, &leg{e: e}
		down.far, up.far = up, down
		e.open += 2
		down.c = conn.New(e.w, h, nil)
		up.c = conn.Dial(e.w, &event.ConnectSpec{Address: to}, nil, up)
		for _, l := range []*leg{down, up} {
			l.c.EnableHalfClose()
			l.c.SetLimit(16 << 10)
		}
		down.c.ReadDisable(true) // until the upstream is there
		if down.c.Start(down) != nil {
			up.c.Close(network.NoFlush, "")
		}
	}
}

type leg struct {
	e      *connWorker
	c      *conn.Conn
	far    *leg
	closed int
	eof    int
}

func (l *leg) OnConnected() {
	if l.c.Info.Remote.Valid() { // the upstream's
		l.far.c.ReadDisable(false)
	}
}

func (l *leg) OnData(b []byte) int {
	var data buffer.Buffer
	data.Init(&l.e.w.Bufs)
	data.Borrow(b)
	l.far.c.WriteData(&data)
	return len(b)
}

func (l *leg) OnEOF() {
	l.eof++
	if l.eof > 1 {
		panic("two ends of one stream")
	}
	l.far.c.CloseWrite()
}

func (l *leg) OnHighWatermark() { l.far.c.ReadDisable(true) }
func (l *leg) OnLowWatermark()  { l.far.c.ReadDisable(false) }

func (l *leg) OnClose(why conn.Closed) {
	if l.closed++; l.closed > 1 {
		panic("closed twice")
	}
	l.e.open--
	if l.far.closed > 0 {
		return
	}
	switch {
	case why.Reset || why.Failed:
		l.far.c.Close(network.Abort, "")
	default:
		l.far.c.Close(network.FlushWrite, "")
	}
}

// The engine's connections carry everything in all weathers.
func TestConnRelayPasses(t *testing.T) {
	for name, p := range protocols {
		t.Run(name, func(t *testing.T) {
			for seed := range seeds(t, 100) {
				if err := simtest.Play(seed, buildConnRelay, simtest.Options{Protocol: p, Upstream: p, Blind: true}); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
