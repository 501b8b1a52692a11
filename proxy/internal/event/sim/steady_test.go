package sim

import (
	"testing"
	"time"
)

type turned struct{ at int64 }

func (c *turned) Now() time.Time { return time.Unix(0, c.at) }
func (c *turned) Mono() int64    { return c.at }

func TestSteady(t *testing.T) {
	real := &turned{at: 1000}
	c := &Steady{real: real, seen: real.at}
	for _, x := range []struct{ passes, want time.Duration }{
		{0, 0},
		{time.Millisecond, time.Millisecond},
		{maxLook, maxLook + time.Millisecond},
		{maxLook + 1, 2*maxLook + time.Millisecond},
		{time.Hour, 3*maxLook + time.Millisecond},
		{0, 3*maxLook + time.Millisecond},
	} {
		real.at += int64(x.passes)
		if got := time.Duration(c.Mono()); got != x.want {
			t.Errorf("after %v more: %v, want %v", x.passes, got, x.want)
		}
	}
	if got := NewSteady().Mono(); got < 0 || got > int64(maxLook) {
		t.Errorf("a new one is at %v", time.Duration(got))
	}
}
