package event

import (
	"runtime"
	"sync/atomic"
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
		d.Sleep(ready, time.Hour)
		woken := make(chan struct{})
		go func() { d.Wake(); close(woken) }()
		d.Sleep(ready, time.Hour)
		<-woken
	}
	d.Sleep(ready, time.Millisecond)
}

// A timeout that is over does not end the next sleep.
func TestSleepAfterTimeout(t *testing.T) {
	d := gated(t)
	ready := make([]Ready, 1)
	for range 3 {
		d.Sleep(ready, time.Millisecond)
	}
	for _, timeout := range []time.Duration{-1, time.Hour} {
		start := time.Now()
		time.AfterFunc(20*time.Millisecond, d.Wake)
		d.Sleep(ready, timeout)
		if got := time.Since(start); got < 15*time.Millisecond {
			t.Errorf("a sleep of %v ended after %v", timeout, got)
		}
	}
}

// What was given up comes back with the next sleep.
func TestRouse(t *testing.T) {
	d := gated(t)
	ready := make([]Ready, 1)
	for range 3 {
		d.Sleep(ready, time.Millisecond)
		if d.gate.file == nil {
			t.Fatal("slept elsewhere")
		}
		d.Rouse()
		d.Rouse()
		if d.gate.file != nil {
			t.Fatal("still in the runtime's poller")
		}
		time.AfterFunc(time.Millisecond, d.Wake)
		d.Sleep(ready, time.Hour)
	}
}

// Passes are rare below a number in a period, and are not from that number on, at once.
func TestRarity(t *testing.T) {
	var r rarity
	now := int64(time.Hour)
	passes := func(n int, gap time.Duration) (ended int) {
		for range n {
			now += int64(gap)
			if r.pass(now) {
				ended++
			}
		}
		return ended
	}
	if passes(10, rarePeriod/10); !r.is {
		t.Fatal("ten in a period are not rare")
	}
	now += int64(rarePeriod) // a new one begins with the next pass
	if n := passes(rarePasses-1, time.Microsecond); n != 0 || !r.is {
		t.Fatalf("%d passes: rare %v, told %d times", rarePasses-1, r.is, n)
	}
	if n := passes(2, time.Microsecond); n != 1 || r.is {
		t.Fatalf("%d passes: rare %v, told %d times", rarePasses+1, r.is, n)
	}
	if passes(200, time.Millisecond/2); r.is {
		t.Fatal("two in a millisecond are rare")
	}
	if passes(2, rarePeriod); !r.is {
		t.Fatal("one in a period is not rare")
	}
}

// No wake-up is lost between two workers that wake each other, whatever the one that is woken is about to do.
func TestNoLostWake(t *testing.T) {
	const rounds = 3000
	var w [2]*Worker
	done := make(chan struct{})
	for i := range w {
		d := gated(t)
		w[i] = New(Config{Index: i, Driver: d, Clock: clock.System(), KeepP: i == 0})
	}
	var passed atomic.Int64
	watch(t, &passed)
	var pass func(i int)
	pass = func(i int) {
		n := passed.Add(1)
		if n == rounds {
			close(done)
			return
		}
		for range n % 3 { // sometimes it is busy while the other one answers
			runtime.Gosched()
		}
		w[1-i].Post(func() { pass(1 - i) })
	}
	ended := make(chan struct{}, 2)
	for _, w := range w {
		go func() { w.RunPinned(); ended <- struct{}{} }()
	}
	w[0].Post(func() { pass(0) })
	<-done
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
		d.Sleep(ready, timeout)
	})
	if n > 0 {
		t.Errorf("a sleep allocates %v times", n)
	}
}

// No wake-up of a sleeper is lost, whether it is about to sleep, asleep or just up.
func TestSleepersWakeEachOther(t *testing.T) {
	const rounds = 3000
	a, b := gated(t), gated(t)
	var done atomic.Int64
	watch(t, &done)
	var toA, toB atomic.Int64 // sent; a sleep may end without
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ready := make([]Ready, 1)
		for i := range int64(rounds) {
			for toB.Load() == i {
				b.Sleep(ready, -1)
			}
			if i%5 == 0 {
				b.Rouse()
			}
			toA.Add(1)
			a.Wake()
		}
	}()
	ready := make([]Ready, 1)
	for i := range int64(rounds) {
		if i%7 == 0 {
			runtime.Gosched()
		}
		toB.Add(1)
		b.Wake()
		for toA.Load() == i {
			a.Sleep(ready, time.Hour)
		}
		done.Add(1)
	}
	<-ended
}

// watch ends the test if done does not move for a while, however slow the machine is.
func watch(t *testing.T, done *atomic.Int64) {
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	go func() {
		tick := time.NewTicker(30 * time.Second)
		defer tick.Stop()
		for last := int64(-1); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			now := done.Load()
			if now == last {
				panic("a wake-up was lost")
			}
			last = now
		}
	}()
}
