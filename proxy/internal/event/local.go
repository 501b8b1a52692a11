package event

import "sync/atomic"

var nextLocal atomic.Int32

// Local is a slot for one value per worker, made on first use on that worker.
type Local[T any] struct {
	index int
	make  func(w *Worker) T
}

// NewLocal reserves a slot. Call it while building, not per request: slots are not given back.
func NewLocal[T any](mk func(w *Worker) T) *Local[T] {
	return &Local[T]{index: int(nextLocal.Add(1)) - 1, make: mk}
}

// Get returns w's value. owner: w.
func (l *Local[T]) Get(w *Worker) T {
	if l.index < len(w.Locals) {
		if v := w.Locals[l.index]; v != nil {
			return v.(T)
		}
	}
	for len(w.Locals) <= l.index {
		w.Locals = append(w.Locals, nil)
	}
	v := l.make(w)
	w.Locals[l.index] = v
	return v
}
