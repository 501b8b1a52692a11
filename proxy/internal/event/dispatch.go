package event

import (
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
)

var _ network.Dispatcher = (*Worker)(nil)

// WorkerIndex returns Index. With NewTimer it makes a Worker what filters and loggers see of it.
func (w *Worker) WorkerIndex() int { return w.Index }

// NewTimer returns a timer of the contract's kind. The engine's own timers are embedded instead, which costs nothing.
func (w *Worker) NewTimer(f func()) network.Timer {
	t := &contractTimer{w: w}
	t.t.Fn = f
	return t
}

type contractTimer struct {
	t Timer
	w *Worker
}

func (t *contractTimer) Arm(d time.Duration) { t.w.Arm(&t.t, d) }
func (t *contractTimer) Disarm()             { t.w.Remove(&t.t) }
