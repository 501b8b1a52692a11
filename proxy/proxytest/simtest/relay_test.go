package simtest_test

import (
	"fmt"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest/simtest"
)

// bug is a mistake that people make in proxies. The relay can make each of them.
type bug string

const (
	none           bug = ""
	dropOnFull     bug = "drops what the kernel does not take"
	ignoreShort    bug = "believes that a send takes all"
	repeatOnShort  bug = "sends a run again from its start after a short send"
	forgetFIN      bug = "does not pass on the end of stream"
	hangUpFirst    bug = "passes on a hang-up before what was still to read"
	readOnce       bug = "reads once an event"
	ignoreWritable bug = "does not go on when there is room again"
	aliasBuffer    bug = "keeps a view into the worker's read buffer"
	closeTwice     bug = "closes a handle twice"
	leakOnFailure  bug = "keeps the client when there is no upstream"
	resetAsFIN     bug = "passes a reset on as an end of stream"
	acceptOnce     bug = "accepts once an event"
	dropEarly      bug = "drops what came before it was connected"
	staleTimer     bug = "leaves a timer armed that closes a handle"
	noBackPressure bug = "reads whatever comes, and drops beyond a limit"
)

var bugs = []bug{
	dropOnFull, ignoreShort, repeatOnShort, forgetFIN, hangUpFirst, readOnce, ignoreWritable, aliasBuffer, closeTwice, leakOnFailure,
	resetAsFIN, acceptOnce, dropEarly, staleTimer, noBackPressure,
}

// relay is the smallest proxy that can be right: it carries bytes between each client and an upstream, on two workers.
type relay struct {
	workers []*event.Worker
	ends    []*relayWorker
	bug     bug
}

type relayWorker struct {
	r     *relay
	w     *event.Worker
	n     simtest.Net
	h     event.Handle
	retry event.Timer
	open  map[*side]bool // of the client's
}

func buildRelay(b bug) simtest.Build {
	return func(w *simtest.World, n simtest.Net) (simtest.System, error) {
		r := &relay{bug: b}
		for i := range 2 {
			name := fmt.Sprint("worker_", i)
			k := event.New(event.Config{Index: i, Name: name, Driver: w.Driver(name), Clock: w.Clock(), Rand: w.Rand(name)})
			h, err := k.Driver.Listen(&event.ListenSpec{Address: n.Listen, ReusePort: true})
			if err != nil {
				return nil, err
			}
			e := &relayWorker{r: r, w: k, n: n, h: h, open: map[*side]bool{}}
			e.retry.Fn = func() { e.OnReady(event.Readable) }
			if err := k.Register(h, e); err != nil {
				return nil, err
			}
			r.workers, r.ends = append(r.workers, k), append(r.ends, e)
		}
		return r, nil
	}
}

func (r *relay) Workers() []*event.Worker { return r.workers }

func (r *relay) Close() {
	for _, e := range r.ends {
		e.w.Post(func() {
			e.w.Remove(&e.retry)
			e.w.Close(e.h, false)
		})
	}
}

func (r *relay) Busy() []string { return nil }

func (r *relay) Leaks() (leaks []string) {
	for _, e := range r.ends {
		if len(e.open) > 0 {
			leaks = append(leaks, fmt.Sprintf("%s: %d pairs", e.w.Name, len(e.open)))
		}
	}
	return leaks
}

func (e *relayWorker) OnReady(event.Events) {
	for {
		h, _, err := e.w.Driver.Accept(e.h)
		if err == syscall.EAGAIN {
			return
		}
		if err != 0 {
			e.w.Arm(&e.retry, 5*time.Millisecond)
			return
		}
		e.serve(h)
		if e.r.bug == acceptOnce {
			return
		}
	}
}

func (e *relayWorker) serve(h event.Handle) {
	to := e.n.Upstreams[e.w.Rand.IntN(len(e.n.Upstreams))]
	down := &side{e: e, h: h, connected: true}
	up := &side{e: e, h: e.connect(to)}
	down.far, up.far = up, down
	e.open[down] = true
	for _, s := range []*side{down, up} {
		_ = e.w.Register(s.h, s)
	}
	if e.r.bug == staleTimer {
		t := event.Timer{Fn: func() { e.w.Close(h, false) }}
		e.w.Arm(&t, 10*time.Second)
	}
}

func (e *relayWorker) connect(to network.Address) event.Handle {
	h, _ := e.w.Driver.Connect(&event.ConnectSpec{Address: to})
	return h
}

// side is one socket of a pair. held is what its far end sent and it has not taken.
type side struct {
	e         *relayWorker
	h         event.Handle
	far       *side
	connected bool
	hungUp    bool
	full      bool
	held      []byte
	eof       bool
	fin       bool
	closed    bool
}

// relayBuffer is how much a direction holds.
const relayBuffer = 8 << 10

func (s *side) OnReady(ev event.Events) {
	b := s.e.r.bug
	if !s.connected {
		if err := s.e.w.Driver.SocketError(s.h); err != 0 {
			if b == leakOnFailure {
				s.close(false)
				return
			}
			s.closeBoth(true)
			return
		}
		s.connected = ev&event.Writable != 0
		if b == dropEarly {
			s.held = nil
		}
	}
	if ev&event.Writable != 0 && b != ignoreWritable {
		s.full = false
	}
	if b == hangUpFirst && ev&event.HangUp != 0 && !s.far.closed {
		s.eof = true
		s.far.finish()
	}
	s.pump()
	if !s.closed && !s.far.closed {
		s.far.pump()
	}
}

// pump carries from s to its far end until one of them has enough.
func (s *side) pump() {
	far, d, b := s.far, s.e.w.Driver, s.e.r.bug
	for !s.closed && !far.closed && s.connected {
		if !far.flush() {
			if b != noBackPressure || far.closed {
				return
			}
		}
		if s.eof {
			if b != forgetFIN {
				far.finish()
			}
			return
		}
		buf := s.e.w.ReadBuffer[:relayBuffer]
		if b == readOnce {
			buf = buf[:1024]
		}
		n, err := d.Recv(s.h, buf)
		switch {
		case err == syscall.EAGAIN:
			return
		case err != 0:
			if b == resetAsFIN {
				s.eof = true
				continue
			}
			s.closeBoth(true)
			return
		case n == 0:
			s.eof = true
			continue
		case b == aliasBuffer && len(far.held) == 0:
			far.held = buf[:n]
		case b == noBackPressure && len(far.held) > relayBuffer:
		default:
			far.held = append(far.held, buf[:n]...)
		}
		if b == readOnce {
			far.flush()
			return
		}
	}
}

// flush sends what is held. false: there is more.
func (s *side) flush() bool {
	b := s.e.r.bug
	for len(s.held) > 0 && s.connected && !s.full && !s.closed {
		n, err := s.e.w.Driver.Send(s.h, [][]byte{s.held})
		switch {
		case err == syscall.EAGAIN:
			s.full = true
			if b == dropOnFull {
				s.held = nil
			}
		case err != 0:
			s.closeBoth(true)
		case b == ignoreShort:
			s.held = nil
		case b == repeatOnShort && n < len(s.held):
			s.full = true
		default:
			s.held = append([]byte(nil), s.held[n:]...)
			if b == aliasBuffer {
				s.held = s.held[:len(s.held):len(s.held)]
			}
		}
	}
	return len(s.held) == 0 && !s.closed
}

// finish passes the end of stream on; with both ends done the pair is.
func (s *side) finish() {
	if !s.fin {
		s.fin = true
		_ = s.e.w.Driver.CloseWrite(s.h)
	}
	if s.eof && s.far.fin {
		s.closeBoth(false)
	}
}

func (s *side) closeBoth(reset bool) {
	s.close(reset)
	s.far.close(reset)
	delete(s.e.open, s)
	delete(s.e.open, s.far)
}

func (s *side) close(reset bool) {
	if s.closed && s.e.r.bug != closeTwice {
		return
	}
	s.closed = true
	s.e.w.Close(s.h, reset)
	if s.e.r.bug == closeTwice {
		h := s.h
		t := event.Timer{Fn: func() { s.e.w.Close(h, false) }}
		s.e.w.Arm(&t, time.Millisecond)
	}
}
