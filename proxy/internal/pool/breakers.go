package pool

import (
	"math"
	"sync/atomic"
	"time"
)

// Priority is the routing priority, which has its own pools and breakers.
type Priority uint8

// The priorities. They are not those of hosts.
const (
	DefaultPriority Priority = iota
	HighPriority
	NumPriorities
)

// String returns "default" or "high".
func (p Priority) String() string {
	if p == HighPriority {
		return "high"
	}
	return "default"
}

// Unlimited as a limit means none.
const Unlimited = math.MaxUint32

// Limits are the thresholds of one priority. They are immutable and shared by clusters that are configured alike.
type Limits struct {
	MaxConnections, MaxPending, MaxRequests, MaxRetries, MaxPools uint32
	// HasBudget replaces MaxRetries by BudgetPercent of the active and pending requests, at least MinRetries. With a BudgetInterval it
	// is BudgetPercent of the requests, retries too, that have begun within that time; 0: there is none.
	HasBudget      bool
	BudgetPercent  float64
	MinRetries     uint32
	BudgetInterval time.Duration
	// TrackRemaining asks for the remaining_* gauges.
	TrackRemaining bool
	// PerHostConnections limits the connections to one host; Unlimited if it is not set.
	PerHostConnections uint32
}

// DefaultLimits are Envoy's.
var DefaultLimits = Limits{MaxConnections: 1024, MaxPending: 1024, MaxRequests: 1024, MaxRetries: 3, MaxPools: Unlimited,
	PerHostConnections: Unlimited}

// Resource is what a breaker limits, counted over all workers and exactly: at the limit the next one fails, however many workers
// ask at once. All methods are safe from any thread.
type Resource struct {
	n   atomic.Int64
	max int64 // uncounted: neither limited nor of interest
}

const uncounted = -1

// TryAcquire takes one, or returns false if the limit is reached.
func (r *Resource) TryAcquire() bool { return r.max == uncounted || r.acquire(r.max) }

func (r *Resource) acquire(limit int64) bool {
	for {
		n := r.n.Load()
		if n >= limit {
			return false
		}
		if r.n.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Force takes one even past the limit.
func (r *Resource) Force() {
	if r.max != uncounted {
		r.n.Add(1)
	}
}

// Release gives one back.
func (r *Resource) Release() {
	if r.max != uncounted {
		r.n.Add(-1)
	}
}

// Count returns how many are taken; 0 if nobody counts.
func (r *Resource) Count() int64 { return r.n.Load() }

// Max returns the limit.
func (r *Resource) Max() int64 {
	if r.max == uncounted {
		return Unlimited
	}
	return r.max
}

// Full tells whether the next TryAcquire would fail.
func (r *Resource) Full() bool { return r.max != uncounted && r.n.Load() >= r.max }

// RetryResource is the Resource of concurrent retries, whose limit may be a share of the requests (retry budget).
type RetryResource struct {
	Resource
	b *Breakers // nil: no budget
}

// TryAcquire takes one, or returns false if the limit is reached. now is the time of a worker's clock.
func (r *RetryResource) TryAcquire(now int64) bool {
	return r.max == uncounted || r.acquire(r.Max(now))
}

// Max returns the limit as it is now.
func (r *RetryResource) Max(now int64) int64 {
	if r.b == nil {
		return r.Resource.Max()
	}
	l := r.b.limits
	var requests int64
	if r.b.recent != nil {
		requests = r.b.recent.count(now)
	} else {
		requests = r.b.Requests.Count() + r.b.Pending.Count()
	}
	return max(int64(l.BudgetPercent/100*float64(requests)), int64(l.MinRetries))
}

// Breakers are a cluster's resources of one priority. The first four, which requests touch, are one cache line.
type Breakers struct {
	Requests, Pending, Connections, Pools Resource
	Retries                               RetryResource
	limits                                *Limits
	// Shown is what the gauges show, for whoever sets them. owner: main loop.
	Shown  uint8
	recent *recent // nil mostly
	_      [64 - 48]byte
}

// NewBreakers returns breakers with nothing taken.
func NewBreakers(l *Limits) *Breakers {
	all := l.HasBudget || l.TrackRemaining
	limit := func(n uint32) int64 {
		if n == Unlimited && !all {
			return uncounted
		}
		return int64(n)
	}
	b := &Breakers{limits: l}
	b.Requests.max, b.Pending.max = limit(l.MaxRequests), limit(l.MaxPending)
	b.Connections.max, b.Pools.max = limit(l.MaxConnections), limit(l.MaxPools)
	b.Retries.max = limit(l.MaxRetries)
	if l.HasBudget {
		b.Retries.b = b
		if l.BudgetInterval > 0 {
			b.recent = newRecent(l.BudgetInterval)
		}
	}
	return b
}

// Began counts a request that begins now for a retry budget with an interval. Safe from any thread.
func (b *Breakers) Began(now int64) {
	if b.recent != nil {
		b.recent.add(now)
	}
}

// Limits returns the thresholds.
func (b *Breakers) Limits() *Limits { return b.limits }
