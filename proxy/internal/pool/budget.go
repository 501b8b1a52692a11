package pool

import (
	"sync/atomic"
	"time"
)

// recentSlots is how many parts a budget_interval has, unless they would be shorter than minSlot: a request is forgotten that exactly.
const (
	recentSlots = 64
	minSlot     = int64(time.Millisecond)
)

// recent counts the requests of the last budget_interval, over all workers. Its methods are safe from any thread.
type recent struct {
	slot  int64  // ns
	used  uint64 // slots of the interval
	slots [recentSlots]atomic.Uint64
}

// A slot holds which one it is in the upper bits (34 years of the shortest ones) and a count in the lower ones, which stays at its maximum
// once it is there.
const (
	recentBits = 24
	recentMax  = 1<<recentBits - 1
)

func newRecent(interval time.Duration) *recent {
	slot := max(int64(interval)/recentSlots, minSlot)
	return &recent{slot: slot, used: uint64((int64(interval) + slot - 1) / slot)}
}

// add counts a request that begins now, a time of a worker's clock.
func (r *recent) add(now int64) {
	n := uint64(now/r.slot) + 1 // 0 is a slot that was never used
	s := &r.slots[n%recentSlots]
	for {
		old := s.Load()
		next := n<<recentBits | 1
		switch is := old >> recentBits; {
		case is > n:
			return // another worker's clock is that much ahead
		case is == n:
			if old&recentMax == recentMax {
				return
			}
			next = old + 1
		}
		if s.CompareAndSwap(old, next) {
			return
		}
	}
}

// count returns how many requests have begun within the interval.
func (r *recent) count(now int64) (total int64) {
	n := uint64(now/r.slot) + 1
	for i := range r.slots {
		if v := r.slots[i].Load(); v>>recentBits+r.used > n {
			total += int64(v & recentMax)
		}
	}
	return total
}
