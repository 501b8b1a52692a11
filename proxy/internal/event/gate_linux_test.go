package event

import (
	"runtime"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/clock"
)

func gated(t *testing.T) *epoll {
	t.Helper()
	d, err := NewEpoll()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d.(*epoll)
}

// A sleep ends by an event that came before it, by one that comes while it lasts, and by its timeout.
func TestSleepEnds(t *testing.T) {
	d := gated(t)
	ready := make([]Ready, 1)
	for range 100 {
		d.Wake()
		d.Wait(ready, time.Hour)
		woken := make(chan struct{})
		go func() { d.Wake(); close(woken) }()
		d.Wait(ready, time.Hour)
		<-woken
	}
	d.Wait(ready, time.Millisecond)
}

// A timeout that is over does not end the next sleep.
func TestSleepAfterTimeout(t *testing.T) {
	d := gated(t)
	ready := make([]Ready, 1)
	for range 3 {
		d.Wait(ready, time.Millisecond)
	}
	for _, timeout := range []time.Duration{-1, time.Hour} {
		start := time.Now()
		time.AfterFunc(20*time.Millisecond, d.Wake)
		d.Wait(ready, timeout)
		if got := time.Since(start); got < 15*time.Millisecond {
			t.Errorf("a sleep of %v ended after %v", timeout, got)
		}
	}
}

// A worker that is busy leaves the runtime's poller; it comes back when it sleeps.
func TestBusyLeavesTheGate(t *testing.T) {
	d := gated(t)
	ready := make([]Ready, 1)
	for range 3 {
		d.Wait(ready, time.Millisecond)
		for i := range busyPolls {
			if d.gate.file == nil {
				t.Fatalf("left after %d polls", i)
			}
			d.Wait(ready, 0)
		}
		if d.gate.file != nil {
			t.Fatalf("still there after %d polls", busyPolls)
		}
		time.AfterFunc(time.Millisecond, d.Wake)
		d.Wait(ready, 2*time.Second)
		if d.gate.file == nil {
			t.Fatal("slept elsewhere")
		}
	}
}

// No wake-up is lost between two workers that wake each other, whatever the one that is woken is about to do.
func TestNoLostWake(t *testing.T) {
	const rounds = 20000
	var w [2]*Worker
	done := make(chan struct{})
	for i := range w {
		d := gated(t)
		w[i] = New(Config{Index: i, Driver: d, Clock: clock.System(), KeepP: i == 0})
	}
	left := rounds
	var pass func(i int)
	pass = func(i int) {
		if left--; left == 0 {
			close(done)
			return
		}
		for range left % 3 { // sometimes it is busy while the other one answers
			runtime.Gosched()
		}
		w[1-i].Post(func() { pass(1 - i) })
	}
	ended := make(chan struct{}, 2)
	for _, w := range w {
		go func() { w.RunPinned(); ended <- struct{}{} }()
	}
	w[0].Post(func() { pass(0) })
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%d of %d rounds are left", left, rounds)
	}
	for _, w := range w {
		w.Stop()
		<-ended
	}
}

// A Coro goes on whichever thread its pinned worker has woken up on.
func TestCorosOverSleeps(t *testing.T) {
	d := gated(t)
	w := New(Config{Driver: d, Clock: clock.System()})
	ended := make(chan struct{})
	go func() { w.RunPinned(); close(ended) }()
	steps := make(chan int)
	var co *Coro
	w.Post(func() {
		co = w.Go(func(c *Coro) {
			for i := 0; c.Wait(); i++ {
				steps <- i
			}
		})
	})
	for want := range 200 {
		// Others take the thread that the worker slept on.
		for range runtime.GOMAXPROCS(0) {
			go runtime.Gosched()
		}
		w.Post(func() { co.Resume() })
		if got := <-steps; got != want {
			t.Fatalf("step %d, want %d", got, want)
		}
	}
	w.Post(func() { co.Stop() })
	w.Stop()
	<-ended
	if !co.Done() {
		t.Error("the body has not returned")
	}
}

func TestSleepsDoNotAllocate(t *testing.T) {
	d := gated(t)
	ready := make([]Ready, 1)
	timeout := time.Hour
	n := testing.AllocsPerRun(100, func() {
		timeout += 10 * time.Millisecond // a new deadline each time
		d.Wake()
		d.Wait(ready, timeout)
	})
	if n > 0 {
		t.Errorf("a sleep allocates %v times", n)
	}
}
