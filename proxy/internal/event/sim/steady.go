package sim

import (
	"sync"
	"time"

	"github.com/dragoman-proxy/dragoman/api/clock"
)

// maxLook is how much time may pass between two looks at a Steady clock.
const maxLook = 5 * time.Millisecond

// Steady is a clock for tests that step workers over real sockets and let hours pass by a jump of their own. It goes with real time,
// but what passes between two looks counts as maxLook at most: a test that another program keeps from the processor for a second
// must not meet its own timeouts. It is safe for concurrent use.
type Steady struct {
	real clock.Clock

	mu         sync.Mutex
	seen, told int64
}

// NewSteady returns a clock that begins now.
func NewSteady() *Steady {
	c := clock.System()
	return &Steady{real: c, seen: c.Mono()}
}

// Now is the real time of day.
func (c *Steady) Now() time.Time { return c.real.Now() }

// Mono implements clock.Clock.
func (c *Steady) Mono() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.real.Mono()
	c.told += min(now-c.seen, int64(maxLook))
	c.seen = now
	return c.told
}
