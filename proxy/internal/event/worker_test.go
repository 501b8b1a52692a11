package event_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// One pass runs MaxPosts closures; the one after those runs in the next pass, and none is lost or overtaken.
func TestPostBound(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		w := r.workers[0]
		for _, n := range []int{1, event.MaxPosts, event.MaxPosts + 1, 5*event.MaxPosts + 1} {
			var ran []int
			for i := range n {
				w.Post(func() { ran = append(ran, i) })
			}
			if w.Idle() {
				t.Error("idle with posts waiting")
			}
			if done := w.Step(true); done != min(n, event.MaxPosts) {
				t.Errorf("%d posts: the first pass ran %d", n, done)
			}
			w.Post(func() { ran = append(ran, n) })
			for !w.Idle() {
				w.Step(true)
			}
			if len(ran) != n+1 || !slices.IsSorted(ran) {
				t.Errorf("%d posts and one: %d ran, in order: %v", n, len(ran), slices.IsSorted(ran))
			}
		}
	})
}

// What a posted closure posts comes in the next pass.
func TestPostFromPost(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		w := r.workers[0]
		n := 0
		var again func()
		again = func() { n++; w.Post(again) }
		w.Post(again)
		for want := 1; want < 5; want++ {
			if w.Step(true); n != want {
				t.Fatalf("%d calls after %d passes", n, want)
			}
		}
	})
}

// A Post from another goroutine ends the wait, always: each round begins only when the last was seen.
func TestPostWakes(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		if r.kind == "sim" {
			r.t.Skip("it does not wait")
		}
		w := r.workers[0]
		const rounds = 2000
		seen := make(chan int)
		go func() {
			for i := range rounds {
				w.Post(func() { seen <- i })
				if <-seen != i {
					t.Error("out of order")
				}
			}
			w.Stop()
		}()
		giveUp := time.AfterFunc(limit, func() { panic("a wake-up was lost") })
		defer giveUp.Stop()
		// The receiver is on the other goroutine, which waits for it: no deadlock.
		w.Run()
		if !w.Stopped() {
			t.Error("Run returned without Stop")
		}
	})
}

func TestTimers(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		w := r.workers[0]
		start := w.Clock().Mono()
		type shot struct {
			name string
			at   int64
		}
		var shots []shot
		mk := func(name string) *event.Timer {
			return &event.Timer{Fn: func() { shots = append(shots, shot{name, w.Clock().Mono() - start}) }}
		}
		w.Step(false) // the pass's time is now
		short, long, moved, off, gone := mk("short"), mk("long"), mk("moved"), mk("off"), mk("gone")
		w.Arm(long, 40*time.Millisecond)
		w.Arm(short, 5*time.Millisecond)
		w.Arm(moved, 5*time.Millisecond)
		w.Arm(moved, 20*time.Millisecond)
		w.Arm(off, 5*time.Millisecond)
		w.Disarm(off)
		w.Arm(gone, 5*time.Millisecond)
		w.Remove(gone)
		if next := w.NextTimer(); next < 0 || next > 5*time.Millisecond+1<<20 { // a tick later at most
			t.Errorf("next timer in %v", next)
		}
		var again *event.Timer
		left := 3
		again = &event.Timer{Fn: func() {
			if left--; left > 0 {
				w.Arm(again, time.Millisecond)
			}
		}}
		w.Arm(again, time.Millisecond)
		r.run(func() bool { return len(shots) == 3 && left == 0 })
		for i, want := range []shot{{"short", 5e6}, {"moved", 20e6}, {"long", 40e6}} {
			at := slices.IndexFunc(shots, func(s shot) bool { return s.name == want.name })
			if at != i || shots[at].at < want.at {
				t.Errorf("timers %v: want %v at the earliest, as number %d", shots, want, i)
			}
		}
		if short.Armed() || off.Armed() || w.NextTimer() > 0 {
			t.Errorf("still armed: %v, %v, next %v", short.Armed(), off.Armed(), w.NextTimer())
		}
	})
}

// A timer that an earlier timer of the same pass disarms or puts off does not fire in it.
func TestTimerStopsTimer(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		w := r.workers[0]
		var a, b event.Timer
		fired := 0
		a.Fn = func() { fired++; w.Disarm(&b) }
		b.Fn = func() { fired++; w.Disarm(&a) }
		w.Arm(&a, time.Millisecond)
		w.Arm(&b, time.Millisecond)
		over := event.Timer{}
		done := false
		over.Fn = func() { done = true }
		w.Arm(&over, 10*time.Millisecond)
		r.run(func() bool { return done })
		if fired != 1 {
			t.Errorf("%d of two timers fired that disarm each other", fired)
		}
	})
}

type funcRunner func()

func (f funcRunner) Run()   { f() }
func (f funcRunner) Flush() { f() }

// The order within a pass: posts, what was left over, flushes, deletions; what a phase adds for itself is done in the same pass,
// but for Again.
func TestPassOrder(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		w := r.workers[0]
		var log []string
		say := func(s string) func() { return func() { log = append(log, s) } }
		w.AtEnd(func() { say("end")(); w.AtEnd(say("end2")) })
		w.QueueFlush(funcRunner(func() { say("flush")(); w.QueueFlush(funcRunner(say("flush2"))) }))
		w.Again(funcRunner(func() { say("again")(); w.Again(funcRunner(say("again2"))) }))
		w.Post(say("post"))
		var timer event.Timer
		timer.Fn = say("timer")
		if w.Idle() {
			t.Error("idle")
		}
		w.Step(true)
		want := []string{"post", "again", "flush", "flush2", "end", "end2"}
		if !slices.Equal(log, want) {
			t.Errorf("first pass: %q, want %q", log, want)
		}
		if w.Idle() {
			t.Error("idle with something to run again")
		}
		log = nil
		if w.Step(true); !slices.Equal(log, []string{"again2"}) {
			t.Errorf("second pass: %q", log)
		}
		if !w.Idle() {
			t.Error("not idle")
		}
	})
}

// More sockets than one pass takes are served in the passes that follow.
func TestMaxEvents(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		w := r.workers[0]
		const n = event.MaxEvents + 1
		var servers []*peer
		l := r.listen(w, &event.ListenSpec{Address: r.addr, Backlog: n}, func(h event.Handle, _ network.Address) {
			servers = append(servers, r.serve(w, h))
		})
		var clients []*peer
		for range n {
			c := r.dial(w, l.address())
			clients = append(clients, c)
			r.run(func() bool { return c.connected && len(servers) == len(clients) })
		}
		r.settle(func() int {
			calls := 0
			for _, s := range servers {
				calls += s.calls
			}
			return calls
		})
		for _, s := range servers {
			s.calls = 0
		}
		for _, c := range clients {
			c.send([]byte("x"))
		}
		w.Step(false)
		first := 0
		for _, s := range servers {
			first += s.calls
		}
		if first > event.MaxEvents {
			t.Errorf("%d events in one pass", first)
		}
		r.run(func() bool {
			for _, s := range servers {
				if len(s.got) != 1 {
					return false
				}
			}
			return true
		})
	})
}

func TestCoro(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		w := r.workers[0]
		var log []string
		c := w.Go(func(c *event.Coro) {
			log = append(log, "begun")
			if c.Resume() {
				t.Error("done within its own body")
			}
			for c.Wait() {
				log = append(log, "on")
			}
			log = append(log, "stopped")
			c.Resume() // as a stream that is reset would; nothing must happen
		})
		c.Resume()
		if done := c.Resume(); done {
			t.Error("done too early")
		}
		c.Stop()
		c.Stop()
		if !c.Resume() {
			t.Error("not done after Stop")
		}
		if want := []string{"begun", "on", "on", "stopped"}; !slices.Equal(log, want) {
			t.Errorf("got %q, want %q", log, want)
		}
		if short := w.Go(func(*event.Coro) {}); !short.Resume() {
			t.Error("a body without a wait is not done")
		}
	})
}

// A body whose own doing ends it gets false from its next Wait.
func TestCoroStopsItself(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		ended := false
		c := r.workers[0].Go(func(c *event.Coro) {
			c.Stop()
			ended = !c.Wait()
		})
		if !ended || !c.Resume() {
			t.Errorf("ended %v, done %v", ended, c.Resume())
		}
	})
}

// pingPong sends a byte back and forth for ever, and uses what a connection uses of a worker.
type pingPong struct {
	w     *event.Worker
	h     event.Handle
	iov   [1][]byte
	timer event.Timer
	n     int
	again bool
}

func (p *pingPong) OnReady(ev event.Events) {
	if ev&event.Readable == 0 {
		return
	}
	n, e := p.w.Driver.Recv(p.h, p.w.ReadBuffer)
	if e != 0 || n == 0 {
		return
	}
	p.n++
	p.w.Arm(&p.timer, time.Hour)
	p.w.Again(p)
}

func (p *pingPong) Run() { p.w.QueueFlush(p) }

func (p *pingPong) Flush() {
	p.iov[0] = p.w.ReadBuffer[:1]
	_, _ = p.w.Driver.Send(p.h, p.iov[:])
}

// A pass allocates nothing, unless something is posted.
func TestPassAllocates(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		if r.kind == "sim" {
			r.t.Skip("its network allocates")
		}
		w := r.workers[0]
		c, s := r.pair(w, w)
		var ends []*pingPong
		for _, h := range []event.Handle{c.h, s.h} {
			w.Unregister(h)
			p := &pingPong{w: w, h: h}
			p.timer.Fn = func() {}
			if err := w.Register(h, p); err != nil {
				t.Fatal(err)
			}
			ends = append(ends, p)
		}
		ends[0].Flush()
		target := 0
		until := func() bool { return ends[1].n >= target }
		round := func() { target += 50; r.run(until) }
		round()
		if got := testing.AllocsPerRun(20, round); got > 0 {
			t.Errorf("%v allocations in 50 round trips", got)
		}
	})
}

// manual is a clock that a test turns.
type manual struct{ mono, wall atomic.Int64 }

func (m *manual) Now() time.Time { return time.Unix(0, m.wall.Load()) }
func (m *manual) Mono() int64    { return m.mono.Load() }

var _ clock.Clock = (*manual)(nil)

func newManual(t *testing.T) (*event.Worker, *manual) {
	t.Helper()
	d := event.NewStd()
	t.Cleanup(d.Close)
	clk := &manual{}
	clk.mono.Store(1e9)
	clk.wall.Store(5e18)
	return event.New(event.Config{Name: "worker_0", Driver: d, Clock: clk, Rand: rand.New()}), clk
}

// How long passes take is counted, by powers of two of a microsecond.
func TestPassTimes(t *testing.T) {
	w, clk := newManual(t)
	for _, d := range []time.Duration{0, 900 * time.Nanosecond, 3 * time.Microsecond, 5 * time.Millisecond, time.Minute} {
		w.Post(func() { clk.mono.Add(int64(d)) })
		w.Step(false)
	}
	w.Step(false) // a pass in which nothing is done does not count
	p := &w.Passes
	if got := time.Duration(p.Longest); got != time.Minute {
		t.Errorf("the longest: %v", got)
	}
	for d, want := range map[time.Duration]uint64{0: 5, 2 * time.Microsecond: 3, 4 * time.Microsecond: 2, 4096 * time.Microsecond: 2, 10 * time.Millisecond: 1} {
		if got := p.Over(d); got != want {
			t.Errorf("%d passes over %v, want %d", got, d, want)
		}
	}
}

// The wall clock is looked at once a second: a jump is seen then, and timers do not care.
func TestWallClockJump(t *testing.T) {
	w, clk := newManual(t)
	if w.Wall() != 5e18 {
		t.Errorf("wall %d", w.Wall())
	}
	fired := false
	timer := event.Timer{Fn: func() { fired = true }}
	w.Arm(&timer, 10*time.Second)
	clk.wall.Store(6e18) // somebody sets it
	clk.mono.Add(1001e6)
	w.Step(false)
	if w.Wall() != 6e18 || fired {
		t.Errorf("wall %d, fired %v", w.Wall(), fired)
	}
	clk.mono.Add(10e9)
	w.Step(false)
	if !fired {
		t.Error("the timer did not fire")
	}
}

func TestLocals(t *testing.T) {
	w, _ := newManual(t)
	v, _ := newManual(t)
	made := 0
	l := event.NewLocal(func(*event.Worker) *int { made++; return new(int) })
	m := event.NewLocal(func(*event.Worker) string { return "m" })
	*l.Get(w) = 7
	if *l.Get(w) != 7 || *l.Get(v) != 0 || made != 2 || m.Get(v) != "m" {
		t.Errorf("%d, %d, made %d", *l.Get(w), *l.Get(v), made)
	}
}
