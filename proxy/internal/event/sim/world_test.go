package sim_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
)

var port80 = network.AddrFrom(netip.MustParseAddrPort("10.0.0.1:80"))

func newWorker(w *sim.World, i int) *event.Worker {
	name := fmt.Sprint("worker_", i)
	return event.New(event.Config{Index: i, Name: name, Driver: w.Driver(name), Clock: w.Clock(), Rand: w.Rand(name)})
}

// acceptor is a listening handle whose connections echo.
type acceptor struct {
	w     *event.Worker
	h     event.Handle
	retry event.Timer
	all   []*echo
}

func serveEcho(t *testing.T, w *event.Worker, at network.Address) *acceptor {
	t.Helper()
	h, err := w.Driver.Listen(&event.ListenSpec{Address: at, ReusePort: true})
	if err != nil {
		t.Fatal(err)
	}
	a := &acceptor{w: w, h: h}
	a.retry.Fn = func() { a.OnReady(event.Readable) }
	if err := w.Register(h, a); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *acceptor) OnReady(event.Events) {
	for {
		h, _, e := a.w.Driver.Accept(a.h)
		if e == syscall.EAGAIN {
			return
		}
		if e != 0 {
			a.w.Arm(&a.retry, 10*time.Millisecond)
			return
		}
		c := &echo{w: a.w, h: h}
		a.all = append(a.all, c)
		_ = a.w.Register(h, c)
	}
}

func (a *acceptor) close() {
	a.w.Remove(&a.retry)
	a.w.Close(a.h, false)
	for _, c := range a.all {
		c.close()
	}
}

// echo answers with what it gets, holding back when it is not taken.
type echo struct {
	w      *event.Worker
	h      event.Handle
	held   []byte
	eof    bool
	closed bool
}

func (c *echo) OnReady(event.Events) {
	for !c.closed {
		if !c.flush() {
			return
		}
		if c.eof {
			c.close()
			return
		}
		n, e := c.w.Driver.Recv(c.h, c.w.ReadBuffer[:1000])
		switch {
		case e == syscall.EAGAIN:
			return
		case e != 0:
			c.close()
		case n == 0:
			c.eof = true
		default:
			c.held = append(c.held, c.w.ReadBuffer[:n]...)
		}
	}
}

func (c *echo) flush() bool {
	for len(c.held) > 0 {
		n, e := c.w.Driver.Send(c.h, [][]byte{c.held})
		if e == syscall.EAGAIN {
			return false
		}
		if e != 0 {
			c.close()
			return false
		}
		c.held = c.held[n:]
	}
	return true
}

func (c *echo) close() {
	if !c.closed {
		c.closed = true
		c.w.Close(c.h, false)
	}
}

// client sends all it has, then the FIN, and keeps what comes.
type client struct {
	sent, got []byte
	open      int
	end       int
	closed    int
	err       syscall.Errno
	stay      bool // send no FIN
}

func (c *client) Open(k *sim.Conn) {
	c.open++
	k.Write(c.sent)
	if !c.stay {
		k.CloseWrite()
	}
}
func (c *client) Data(_ *sim.Conn, b []byte) { c.got = append(c.got, b...) }
func (c *client) End(*sim.Conn)              { c.end++ }
func (c *client) Closed(_ *sim.Conn, e syscall.Errno) {
	c.closed++
	c.err = e
}

func payload(w *sim.World, most int) []byte {
	r := w.Rand("payload")
	b := make([]byte, r.IntN(most))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

type outcome struct {
	clients []*client
	world   *sim.World
}

// play lets clients talk to two echoing workers.
func play(t *testing.T, seed uint64, f sim.Faults, n int) outcome {
	t.Helper()
	w := sim.NewWorld(seed)
	w.SetFaults(f)
	workers := []*event.Worker{newWorker(w, 0), newWorker(w, 1)}
	var as []*acceptor
	for _, k := range workers {
		as = append(as, serveEcho(t, k, port80))
	}
	o := outcome{world: w}
	r := w.Rand("clients")
	for range n {
		c := &client{sent: payload(w, 20_000)}
		o.clients = append(o.clients, c)
		w.After(time.Duration(r.IntN(1e8)), func() { w.Dial(port80, c) })
	}
	err := w.Run(workers, func() bool {
		for _, c := range o.clients {
			if c.closed == 0 {
				return false
			}
		}
		return true
	}, 10*time.Minute)
	if err != nil {
		t.Fatalf("SEED=%d: %v", seed, err)
	}
	for _, a := range as {
		a.close()
	}
	if open := w.Open(); len(open) > 0 {
		t.Errorf("SEED=%d: left open: %q", seed, open)
	}
	return o
}

// On a network that cuts and delays but breaks nothing, every byte arrives, once and in order.
func TestRoughNetworkLosesNothing(t *testing.T) {
	for seed := range uint64(100) {
		for _, c := range play(t, seed, sim.Rough(), 10).clients {
			if c.err != 0 || c.open != 1 || c.end != 1 || c.closed != 1 || !bytes.Equal(c.got, c.sent) {
				t.Fatalf("SEED=%d: %d of %d bytes, error %v, open %d, end %d, closed %d", seed, len(c.got), len(c.sent), c.err, c.open, c.end, c.closed)
			}
		}
	}
}

// On a hostile one connections break, but what arrives is a prefix of what was sent, and each connection ends once. All the
// faults do happen.
func TestHostileNetwork(t *testing.T) {
	seen := map[syscall.Errno]int{}
	for seed := range uint64(100) {
		for _, c := range play(t, seed, sim.Hostile(), 10).clients {
			seen[c.err]++
			if c.closed != 1 || c.open > 1 || c.end > 1 || !bytes.HasPrefix(c.sent, c.got) || c.err == 0 && len(c.got) != len(c.sent) {
				t.Fatalf("SEED=%d: %d of %d bytes, error %v, open %d, end %d, closed %d", seed, len(c.got), len(c.sent), c.err, c.open, c.end, c.closed)
			}
		}
	}
	for _, e := range []syscall.Errno{0, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ETIMEDOUT} {
		if seen[e] == 0 {
			t.Errorf("never: %v (%v)", e, seen)
		}
	}
}

const childSeed = "DRAGOMAN_SIM_CHILD_SEED"

// The same seed gives the same hash, here and in other processes; other seeds give others.
func TestHashIsReproducible(t *testing.T) {
	if s := os.Getenv(childSeed); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("hash=%x\n", play(t, seed, sim.Hostile(), 20).world.Hash())
		return
	}
	hashes := map[uint64]uint64{}
	for seed := range uint64(50) {
		h := play(t, seed, sim.Hostile(), 20).world.Hash()
		if again := play(t, seed, sim.Hostile(), 20).world.Hash(); again != h {
			t.Errorf("seed %d: %x, then %x", seed, h, again)
		}
		if other, ok := hashes[h]; ok {
			t.Errorf("seeds %d and %d: both %x", seed, other, h)
		}
		hashes[h] = seed
	}
	want := fmt.Sprintf("hash=%x\n", play(t, 7, sim.Hostile(), 20).world.Hash())
	for i := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestHashIsReproducible$", "-test.count=1")
		cmd.Env = append(os.Environ(), childSeed+"=7")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("process %d: %v, want %s in\n%s", i, err, want, out)
		}
	}
}

func run(t *testing.T, w *sim.World, until func() bool) {
	t.Helper()
	if err := w.Run(nil, until, time.Hour); err != nil {
		t.Fatal(err)
	}
}

// pause lets time pass.
func pause(t *testing.T, w *sim.World, d time.Duration) {
	t.Helper()
	over := false
	w.After(d, func() { over = true })
	run(t, w, func() bool { return over })
}

func TestConnectFates(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults sim.Faults
		serve  bool
		want   syscall.Errno
		after  time.Duration
	}{
		{name: "nobody listens", want: syscall.ECONNREFUSED},
		{name: "refused", serve: true, faults: sim.Faults{Refuse: sim.Always}, want: syscall.ECONNREFUSED},
		{name: "black hole", serve: true, faults: sim.Faults{BlackHole: sim.Always}, want: syscall.ETIMEDOUT, after: 127 * time.Second},
		{name: "every SYN lost", serve: true, faults: sim.Faults{SYNLoss: sim.Always}, want: syscall.ETIMEDOUT, after: 127 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := sim.NewWorld(1)
			w.SetFaults(c.faults)
			if c.serve {
				if _, err := w.Serve(port80, func(*sim.Conn) sim.Script { return &client{} }); err != nil {
					t.Fatal(err)
				}
			}
			k := &client{}
			w.Dial(port80, k)
			run(t, w, func() bool { return k.closed > 0 })
			if k.err != c.want || k.open != 0 || w.Elapsed() < c.after || w.Elapsed() > c.after+time.Second {
				t.Errorf("%v after %v, open %d", k.err, w.Elapsed(), k.open)
			}
		})
	}
}

// A full backlog drops the SYN, which comes again after a second.
func TestBacklogIsBounded(t *testing.T) {
	for _, n := range []int{2, 3} {
		w := sim.NewWorld(1)
		k := newWorker(w, 0)
		h, err := k.Driver.Listen(&event.ListenSpec{Address: port80, Backlog: 2})
		if err != nil {
			t.Fatal(err)
		}
		var cs []*client
		for range n {
			c := &client{stay: true}
			cs = append(cs, c)
			w.Dial(port80, c)
			pause(t, w, 100*time.Millisecond)
		}
		open := 0
		for _, c := range cs {
			open += c.open
		}
		if open != 2 {
			t.Fatalf("%d of %d open with a backlog of 2", open, n)
		}
		if _, _, e := k.Driver.Accept(h); e != 0 {
			t.Fatal(e)
		}
		run(t, w, func() bool { return cs[n-1].open == 1 })
		if late := w.Elapsed() > time.Second; late != (n == 3) {
			t.Errorf("%d clients: all open after %v", n, w.Elapsed())
		}
	}
}

// Whoever closes without having read all resets the connection, and what he had not sent is lost.
func TestCloseWithUnreadBytesResets(t *testing.T) {
	w := sim.NewWorld(1)
	k := newWorker(w, 0)
	h, err := k.Driver.Listen(&event.ListenSpec{Address: port80})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{sent: []byte("nobody reads this"), stay: true}
	w.Dial(port80, c)
	run(t, w, func() bool { return c.open == 1 })
	pause(t, w, 100*time.Millisecond)
	s, _, e := k.Driver.Accept(h)
	if e != 0 {
		t.Fatal(e)
	}
	_, _ = k.Driver.Send(s, [][]byte{[]byte("answer")})
	k.Driver.CloseHandle(s, false)
	run(t, w, func() bool { return c.closed > 0 })
	if c.err != syscall.ECONNRESET || string(c.got) != "answer" {
		t.Errorf("got %q, %v", c.got, c.err)
	}
}

func TestRunEnds(t *testing.T) {
	w := sim.NewWorld(1)
	never := func() bool { return false }
	if err := w.Run(nil, never, time.Hour); err != sim.ErrStuck {
		t.Errorf("an empty world: %v", err)
	}
	k := newWorker(w, 0)
	var timer event.Timer
	n := 0
	timer.Fn = func() { n++; k.Arm(&timer, time.Minute) }
	k.Arm(&timer, time.Minute)
	if err := w.Run([]*event.Worker{k}, never, time.Hour); err != sim.ErrTimeout || n < 58 || n > 60 {
		t.Errorf("a timer each minute for an hour: %v, fired %d times", err, n)
	}
}

// A wall clock that jumps moves no timer.
func TestClockJump(t *testing.T) {
	w := sim.NewWorld(1)
	w.SetFaults(sim.Faults{ClockJump: sim.Always, ClockJumpMax: 24 * time.Hour})
	k := newWorker(w, 0)
	wall := w.Clock().Now()
	var timer event.Timer
	fired := false
	timer.Fn = func() { fired = true }
	k.Arm(&timer, 10*time.Second)
	if err := w.Run([]*event.Worker{k}, func() bool { return fired }, time.Minute); err != nil {
		t.Fatal(err)
	}
	if d := w.Elapsed(); d < 10*time.Second || d > 11*time.Second {
		t.Errorf("it fired after %v", d)
	}
	if d := w.Clock().Now().Sub(wall); d > 0 && d < time.Minute {
		t.Errorf("the wall clock moved by %v", d)
	}
}
