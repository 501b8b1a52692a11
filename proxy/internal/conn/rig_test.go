package conn_test

import (
	"net/netip"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is how long a test waits for what must come.
const limit = 20 * time.Second

// fakeClock goes with real time, and jumps where a test says so.
type fakeClock struct {
	clock.Clock
	ahead time.Duration
}

func (c *fakeClock) Mono() int64    { return c.Clock.Mono() + int64(c.ahead) }
func (c *fakeClock) Now() time.Time { return c.Clock.Now().Add(c.ahead) }

// rig is a worker that the test's own goroutine steps.
type rig struct {
	t     testing.TB
	w     *event.Worker
	clock *fakeClock
	guard event.Timer
	lend  buffer.Buffer
}

// overDrivers runs a test over the kernel's sockets with each driver. It fails if slabs are left.
func overDrivers(t *testing.T, f func(t *testing.T, r *rig)) {
	kinds := []string{event.KindStd}
	if runtime.GOOS == "linux" {
		kinds = append(kinds, event.KindEpoll)
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { f(t, newRig(t, kind)) })
	}
}

func newRig(t testing.TB, kind string) *rig {
	d, err := event.NewDriver(kind)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, clock: &fakeClock{Clock: sim.NewSteady()}}
	r.w = event.New(event.Config{Name: "worker_0", Driver: d, Clock: r.clock, Rand: rand.Seeded([32]byte{1})})
	r.w.Bufs.Poison = true
	r.guard.Fn = func() {}
	r.lend.Init(&r.w.Bufs)
	t.Cleanup(func() {
		for _, h := range r.w.Handlers() {
			if c, ok := h.(*conn.Conn); ok {
				c.Close(network.NoFlush, "")
			}
		}
		r.w.Step(false)
		d.Close()
		if n := r.w.Bufs.Live(); n != 0 {
			t.Errorf("%d slabs leaked", n)
		}
	})
	return r
}

// run steps the worker until the condition holds.
func (r *rig) run(what string, until func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(limit)
	for !until() {
		if time.Now().After(deadline) {
			r.t.Fatalf("it did not come true that %s", what)
		}
		if r.w.Step(false) == 0 {
			r.w.Arm(&r.guard, time.Millisecond)
			r.w.Step(true)
			r.w.Remove(&r.guard)
		}
	}
}

// settle steps the worker until nothing has happened for a while: what would happen wrongly has had its time.
func (r *rig) settle() {
	for idle := 0; idle < 10; {
		if r.w.Step(false) > 0 {
			idle = 0
			continue
		}
		idle++
		r.w.Arm(&r.guard, time.Millisecond)
		r.w.Step(true)
		r.w.Remove(&r.guard)
	}
}

// end is one side of a connection and its handler: it notes what it is told.
type end struct {
	c   *conn.Conn
	got []byte
	// take is how many bytes of each delivery are consumed, all if it is nil.
	take func(b []byte) int
	// onConnected, if set, is called then.
	onConnected func()

	deliveries              int
	connected, eof, closed  int
	high, low, dataAfterEOF int
	why                     conn.Closed
}

func (e *end) OnConnected() {
	e.connected++
	if e.onConnected != nil {
		e.onConnected()
	}
}

func (e *end) OnData(b []byte) int {
	e.deliveries++
	if e.eof > 0 {
		e.dataAfterEOF++
	}
	n := len(b)
	if e.take != nil {
		n = e.take(b)
	}
	e.got = append(e.got, b[:n]...)
	return n
}

func (e *end) OnEOF()           { e.eof++ }
func (e *end) OnHighWatermark() { e.high++ }
func (e *end) OnLowWatermark()  { e.low++ }
func (e *end) OnClose(why conn.Closed) {
	e.closed++
	e.why = why
}

var loopback = network.AddrFrom(netip.MustParseAddrPort("127.0.0.1:0"))

// acceptor takes the connections of a listening socket.
type acceptor struct {
	w   *event.Worker
	h   event.Handle
	got func(h event.Handle)
}

func (a *acceptor) OnReady(event.Events) {
	for {
		h, _, e := a.w.Driver.Accept(a.h)
		if e != 0 {
			return
		}
		a.got(h)
	}
}

// listen opens a listening socket and calls got for what it accepts.
func (r *rig) listen(got func(h event.Handle)) network.Address {
	r.t.Helper()
	h, err := r.w.Driver.Listen(&event.ListenSpec{Address: loopback})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.w.Register(h, &acceptor{r.w, h, got}); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { r.w.Close(h, false) })
	return r.w.Driver.LocalAddress(h)
}

// pair returns both ends of an established connection. prepare, if not nil, sees them before they start.
func (r *rig) pair(prepare func(client, server *end)) (client, server *end) {
	r.t.Helper()
	client, server = &end{}, &end{}
	at := r.listen(func(h event.Handle) {
		server.c = conn.New(r.w, h, nil)
		if prepare != nil {
			prepare(client, server)
		}
		if err := server.c.Start(server); err != nil {
			r.t.Fatal(err)
		}
	})
	client.c = conn.Dial(r.w, &event.ConnectSpec{Address: at}, nil, client)
	r.run("both ends are connected", func() bool { return client.connected > 0 && server.connected > 0 })
	return client, server
}
