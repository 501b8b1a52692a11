// Package overload protects the process from too much work: it is asked before work is taken in, on every worker.
//
// State is process-wide and made of atomics. What is asked for now is the number of downstream connections over all listeners;
// the marks that overload actions will set are there for their readers, and nothing sets them yet. The package closes nothing
// itself and holds no connection.
package overload

import (
	"math"
	"sync/atomic"

	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Hooks are the places at which work is refused. All are called on the worker that would do it.
type Hooks interface {
	// Admit is asked before a downstream connection is taken in. If it answers false, the refusal counts as refused
	// (of stats.Listener); otherwise Release must follow with the connection's end.
	Admit(w *event.Worker) (refused apistats.CounterIndex, ok bool)
	Release(w *event.Worker)
	// Stream is asked before a request is worked on; false: answer it with 503 at once.
	Stream(w *event.Worker) bool
	// Grow is asked before a stream keeps further bytes of a body; false: reset the stream.
	Grow(w *event.Worker, bytes int) bool
}

// Mark is a state of overload that an action sets.
type Mark uint32

// Marks, and who looks at them.
const (
	// StopRequests: Stream answers false.
	StopRequests Mark = 1 << iota
	// StopConnections: Admit answers false.
	StopConnections
	// StopGrowth: Grow answers false.
	StopGrowth
)

// State is the process's Hooks. All methods are safe from any thread.
type State struct {
	_     [64]byte
	conns atomic.Int64
	_     [56]byte
	limit atomic.Int64
	marks atomic.Uint32
	// monitored tells whether the limit is that of a resource monitor: then denied counts what it refused.
	monitored bool
	denied    apistats.CounterID
}

var _ Hooks = (*State)(nil)

// New returns a State without limits.
func New() *State {
	s := &State{}
	s.limit.Store(math.MaxInt64)
	return s
}

// SetMaxConnections limits the downstream connections over all listeners; 0 means no limit. A resource monitor's limit stands
// above the runtime's and is not changed.
func (s *State) SetMaxConnections(n uint64) {
	if s.monitored {
		return
	}
	if n == 0 || n > math.MaxInt64 {
		n = math.MaxInt64
	}
	s.limit.Store(int64(n))
}

// MaxConnections returns the limit; limited is false if there is none.
func (s *State) MaxConnections() (n uint64, limited bool) {
	l := s.limit.Load()
	return uint64(l), l != math.MaxInt64
}

// Monitored tells whether a resource monitor sets the limit.
func (s *State) Monitored() bool { return s.monitored }

// Connections returns how many connections are admitted now.
func (s *State) Connections() int64 { return s.conns.Load() }

// Set sets or clears a mark.
func (s *State) Set(m Mark, on bool) {
	if on {
		s.marks.Or(uint32(m))
	} else {
		s.marks.And(^uint32(m))
	}
}

// Is tells whether a mark is set.
func (s *State) Is(m Mark) bool { return s.marks.Load()&uint32(m) != 0 }

// Admit implements Hooks. The limit is exact over all workers.
func (s *State) Admit(w *event.Worker) (apistats.CounterIndex, bool) {
	if s.Is(StopConnections) {
		return stats.ListenerDownstreamCxOverloadReject, false
	}
	for {
		n := s.conns.Load()
		if n >= s.limit.Load() {
			if s.monitored {
				w.Stats.Inc(s.denied)
			}
			return stats.ListenerDownstreamGlobalCxOverflow, false
		}
		if s.conns.CompareAndSwap(n, n+1) {
			return 0, true
		}
	}
}

// Release implements Hooks.
func (s *State) Release(*event.Worker) { s.conns.Add(-1) }

// Stream implements Hooks.
func (s *State) Stream(*event.Worker) bool { return !s.Is(StopRequests) }

// Grow implements Hooks.
func (s *State) Grow(*event.Worker, int) bool { return !s.Is(StopGrowth) }
