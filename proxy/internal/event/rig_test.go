package event_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is one kind of driver under test: workers that the test's own goroutine steps.
type rig struct {
	t       *testing.T
	kind    string
	workers []*event.Worker
	// run steps the workers until the condition holds.
	run func(until func() bool)
	// addr is where to listen.
	addr network.Address
}

// overDrivers runs a test for each driver, with n workers. It fails if a driver keeps file descriptors or goroutines.
func overDrivers(t *testing.T, n int, test func(r *rig)) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) { test(kind.new(t, n)) })
	}
}

type kind struct {
	name string
	new  func(t *testing.T, n int) *rig
}

var loopback = network.AddrFrom(netip.MustParseAddrPort("127.0.0.1:0"))

// limit is how long a test waits for what must come.
const limit = 20 * time.Second

// newReal is for the drivers of the kernel's sockets.
func newReal(name string) kind {
	return kind{name, func(t *testing.T, n int) *rig {
		r := &rig{t: t, kind: name, addr: loopback}
		before := descriptors(t)
		clk := clock.System()
		guards := make([]event.Timer, n)
		for i := range n {
			d, err := event.NewDriver(name)
			if err != nil {
				t.Fatal(err)
			}
			r.workers = append(r.workers, event.New(event.Config{
				Index: i, Name: fmt.Sprint("worker_", i), Driver: d, Clock: clk, Rand: rand.New(), KeepP: true,
			}))
			guards[i].Fn = func() {}
		}
		t.Cleanup(func() {
			for _, w := range r.workers {
				w.Driver.Close()
			}
			if after := descriptors(t); after != before {
				t.Errorf("%d file descriptors before, %d after", before, after)
			}
		})
		r.run = func(until func() bool) {
			t.Helper()
			deadline := time.Now().Add(limit)
			for !until() {
				if time.Now().After(deadline) {
					t.Fatal("the condition did not come true")
				}
				done := 0
				for _, w := range r.workers {
					done += w.Step(false)
				}
				if done == 0 {
					for i, w := range r.workers {
						w.Arm(&guards[i], time.Millisecond)
						w.Step(true)
						w.Remove(&guards[i])
					}
				}
			}
		}
		return r
	}}
}

// newSim is for the network in memory.
var newSim = kind{"sim", func(t *testing.T, n int) *rig {
	w := sim.NewWorld(1)
	r := &rig{t: t, kind: "sim", addr: loopback}
	for i := range n {
		name := fmt.Sprint("worker_", i)
		r.workers = append(r.workers, event.New(event.Config{
			Index: i, Name: name, Driver: w.Driver(name), Clock: w.Clock(), Rand: w.Rand(name),
		}))
	}
	t.Cleanup(func() {
		for _, s := range w.Open() {
			t.Error("left open: " + s)
		}
	})
	r.run = func(until func() bool) {
		t.Helper()
		if err := w.Run(r.workers, until, limit); err != nil {
			t.Fatalf("the condition did not come true: %v", err)
		}
	}
	return r
}}

// descriptors counts what the process has open. The runtime opens its own poller with the first use.
func descriptors(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func (r *rig) unix() network.Address {
	return network.Address{Path: filepath.Join(r.t.TempDir(), "s")}
}

// listener accepts what comes and gives it to a function.
type listener struct {
	r      *rig
	w      *event.Worker
	h      event.Handle
	accept func(h event.Handle, peer network.Address)
	closed bool
}

func (r *rig) listen(w *event.Worker, spec *event.ListenSpec, accept func(h event.Handle, peer network.Address)) *listener {
	r.t.Helper()
	h, err := w.Driver.Listen(spec)
	if err != nil {
		r.t.Fatal(err)
	}
	l := &listener{r: r, w: w, h: h, accept: accept}
	if err := w.Register(h, l); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(l.close)
	return l
}

func (l *listener) address() network.Address { return l.w.Driver.LocalAddress(l.h) }

func (l *listener) OnReady(event.Events) {
	for !l.closed {
		h, peer, e := l.w.Driver.Accept(l.h)
		if e == syscall.EAGAIN {
			return
		}
		if e != 0 {
			l.r.t.Errorf("accept: %v", e)
			return
		}
		l.accept(h, peer)
	}
}

func (l *listener) close() {
	if !l.closed {
		l.closed = true
		l.w.Close(l.h, false)
	}
}

// peer is a plain connection: it reads all there is unless it is deaf, and sends all it has.
type peer struct {
	r    *rig
	w    *event.Worker
	h    event.Handle
	deaf bool

	connected bool
	got       []byte
	eof       bool
	err       syscall.Errno
	out       []byte
	sent      int
	fin       bool // send the FIN after out
	blocked   bool // Send said EAGAIN
	edges     int  // Writable after that
	events    event.Events
	calls     int
	closed    bool

	onData  func(p *peer)
	onReady func(p *peer, ev event.Events)
}

// serve makes a peer of an accepted handle.
func (r *rig) serve(w *event.Worker, h event.Handle) *peer {
	r.t.Helper()
	p := &peer{r: r, w: w, h: h, connected: true}
	r.add(p)
	return p
}

func (r *rig) add(p *peer) {
	r.t.Helper()
	if err := p.w.Register(p.h, p); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { p.close(false) })
}

func (r *rig) dial(w *event.Worker, a network.Address) *peer {
	r.t.Helper()
	h, e := w.Driver.Connect(&event.ConnectSpec{Address: a})
	if e != 0 && e != syscall.EINPROGRESS {
		r.t.Fatalf("connect: %v", e)
	}
	p := &peer{r: r, w: w, h: h}
	r.add(p)
	return p
}

// pair returns both ends of a connection, each on its worker.
func (r *rig) pair(client, server *event.Worker) (c, s *peer) {
	r.t.Helper()
	l := r.listen(server, &event.ListenSpec{Address: r.addr}, func(h event.Handle, _ network.Address) { s = r.serve(server, h) })
	c = r.dial(client, l.address())
	r.run(func() bool { return c.connected && s != nil })
	l.close()
	return c, s
}

func (p *peer) OnReady(ev event.Events) {
	p.calls++
	p.events |= ev
	if p.onReady != nil {
		p.onReady(p, ev)
		if p.closed {
			return
		}
	}
	if !p.connected {
		if ev&event.Writable == 0 {
			return
		}
		if p.err = p.w.Driver.SocketError(p.h); p.err != 0 {
			return
		}
		p.connected = true
	}
	if ev&event.Writable != 0 && p.blocked {
		p.blocked = false
		p.edges++
	}
	if ev&(event.Readable|event.HangUp) != 0 {
		p.read()
	}
	p.write()
}

func (p *peer) read() {
	for !p.deaf && !p.closed && !p.eof && p.err == 0 {
		n, e := p.w.Driver.Recv(p.h, p.w.ReadBuffer)
		switch {
		case e == syscall.EAGAIN:
			return
		case e != 0:
			p.err = e
		case n == 0:
			p.eof = true
		default:
			p.got = append(p.got, p.w.ReadBuffer[:n]...)
		}
		if p.onData != nil {
			p.onData(p)
		}
	}
}

func (p *peer) write() {
	for p.connected && !p.closed && !p.blocked && p.sent < len(p.out) {
		rest := p.out[p.sent:]
		cut := len(rest) / 3
		n, e := p.w.Driver.Send(p.h, [][]byte{rest[:cut], rest[cut:]})
		switch {
		case e == syscall.EAGAIN:
			p.blocked = true
		case e != 0:
			p.err = e
			return
		}
		p.sent += n
	}
	if p.fin && p.sent == len(p.out) && p.connected && !p.closed {
		p.fin = false
		if e := p.w.Driver.CloseWrite(p.h); e != 0 {
			p.r.t.Errorf("half close: %v", e)
		}
	}
}

func (p *peer) send(b []byte) {
	p.out = append(p.out, b...)
	p.write()
}

func (p *peer) close(reset bool) {
	if !p.closed {
		p.closed = true
		p.w.Close(p.h, reset)
	}
}

func pattern(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func isErrno(err error, want syscall.Errno) bool { return errors.Is(err, want) }
