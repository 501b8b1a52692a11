package listener

import (
	"sync/atomic"

	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// Balance is exact_balance: a new connection goes to the worker that has the fewest of the listener. It needs a driver whose
// handles mean the same on all workers.
type Balance struct {
	workers []*event.Worker
	counts  []count
}

// count is a cache line of its own.
type count struct {
	n atomic.Int64
	_ [56]byte
}

// NewBalance returns a Balance over workers; nil if their driver cannot hand over connections.
func NewBalance(workers []*event.Worker) *Balance {
	for _, w := range workers {
		if s, ok := w.Driver.(event.Sharer); !ok || !s.SharedHandles() {
			return nil
		}
	}
	return &Balance{workers: workers, counts: make([]count, len(workers))}
}

// pick counts a connection for the worker that it returns.
func (b *Balance) pick(w *event.Worker) *event.Worker {
	best := 0
	for i := range b.counts {
		if b.counts[i].n.Load() < b.counts[best].n.Load() {
			best = i
		}
	}
	// The one that has it anyway wins a tie: a hand-over costs a wake-up.
	if k := w.Index; k >= 0 && k < len(b.counts) && b.counts[k].n.Load() <= b.counts[best].n.Load() {
		best = k
	}
	b.counts[best].n.Add(1)
	return b.workers[best]
}

// hold counts a connection that came to w in another way.
func (b *Balance) hold(w *event.Worker) { b.counts[w.Index].n.Add(1) }

func (b *Balance) release(w *event.Worker) { b.counts[w.Index].n.Add(-1) }
