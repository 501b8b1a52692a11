package event

import (
	"math/bits"
	"time"
)

// PassTimes is a histogram of how long passes took: the time during which a worker did not look at its sockets. Bucket i holds
// those below 2^i microseconds. owner: worker.
type PassTimes struct {
	Buckets [24]uint64
	Longest int64 // ns
	// Slow counts the passes that took at least so many nanoseconds as Limits says (the watchdog's miss and mega miss); 0: none.
	Limits [2]int64
	Slow   [2]uint64
}

func (p *PassTimes) record(ns int64) {
	i := bits.Len64(uint64(ns) / 1000)
	p.Buckets[min(i, len(p.Buckets)-1)]++
	if ns > p.Longest {
		p.Longest = ns
	}
	if ns >= p.Limits[0] {
		p.slow(ns)
	}
}

func (p *PassTimes) slow(ns int64) {
	for k, limit := range p.Limits {
		if limit > 0 && ns >= limit {
			p.Slow[k]++
		}
	}
}

// Over returns how many passes took at least d, rounded down to a bucket's bound.
func (p *PassTimes) Over(d time.Duration) (n uint64) {
	for i := bits.Len64(uint64(d.Microseconds())); i < len(p.Buckets); i++ {
		n += p.Buckets[i]
	}
	return n
}
