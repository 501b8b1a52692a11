package event

import (
	"testing"
	"time"
)

// handClock is a clock that a test moves.
type handClock struct{ mono int64 }

func (c *handClock) Now() time.Time { return time.Unix(1700000000, c.mono) }
func (c *handClock) Mono() int64    { return c.mono }

// waiter is a Driver whose waits only move the clock. Of a Driver it has no other method.
type waiter struct {
	Driver
	clk  *handClock
	gap  time.Duration // after which something is ready
	held []time.Duration
	slow int
}

func (d *waiter) Wait(_ []Ready, timeout time.Duration) int {
	if timeout != 0 {
		d.slow++
		d.clk.mono += int64(d.gap)
	}
	return 0
}

func (d *waiter) WaitHeld(_ []Ready, timeout time.Duration) int {
	d.held = append(d.held, timeout)
	d.clk.mono += int64(min(d.gap, timeout))
	return 0
}

// A worker keeps its P in waits only while events come in quick succession, and never past its next timer.
func TestWaitsKeepP(t *testing.T) {
	clk := &handClock{mono: 1}
	d := &waiter{clk: clk, gap: 100 * time.Microsecond}
	w := New(Config{Driver: d, Clock: clk, KeepP: true})
	steps := func(n int) {
		for range n {
			w.Step(true)
		}
	}
	steps(manyShortGaps)
	if len(d.held) != 0 || d.slow != manyShortGaps {
		t.Fatalf("the first %d waits: %d kept the P, %d gave it up", manyShortGaps, len(d.held), d.slow)
	}
	steps(10)
	if len(d.held) != 10 || d.held[0] != holdTime {
		t.Fatalf("after %d quick passes: %d of 10 waits kept the P, up to %v", manyShortGaps, len(d.held), d.held)
	}
	// A timer bounds the wait.
	var x Timer
	w.Arm(&x, time.Nanosecond)
	d.held = nil
	steps(1)
	if len(d.held) != 1 || d.held[0] > 1<<tickShift {
		t.Fatalf("with a timer that is due next: %v", d.held)
	}
	// Something to do at once: no wait at all.
	w.Remove(&x)
	d.held, d.slow = nil, 0
	w.Again(runFunc(func() {}))
	steps(1)
	if len(d.held) != 0 || d.slow != 0 {
		t.Fatalf("with work left over: held %v, slow %d", d.held, d.slow)
	}
	// Nothing comes: one wait keeps the P to its end, the next gives it up.
	d.gap = time.Hour
	steps(2)
	if len(d.held) != 1 || d.slow != 1 {
		t.Fatalf("when nothing came: %d waits kept the P, %d gave it up", len(d.held), d.slow)
	}
}

type runFunc func()

func (f runFunc) Run() { f() }

// Without a spare P the worker always gives its own up.
func TestWaitsGiveUpP(t *testing.T) {
	clk := &handClock{mono: 1}
	d := &waiter{clk: clk, gap: time.Microsecond}
	w := New(Config{Driver: d, Clock: clk})
	for range 4 * manyShortGaps {
		w.Step(true)
	}
	if len(d.held) != 0 || d.slow != 4*manyShortGaps {
		t.Errorf("%d waits kept the P, %d gave it up", len(d.held), d.slow)
	}
}
