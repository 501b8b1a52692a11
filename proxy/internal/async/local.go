package async

import (
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/freelist"
)

// local is what a worker keeps: streams for reuse. One that ends in a pass is reused after it, since it may still be on the stack.
type local struct {
	w    *event.Worker
	free []*Stream
	dead []*Stream
	live int
}

// maxFree bounds the streams that a worker keeps for reuse.
const maxFree = 256

var locals = event.NewLocal(func(w *event.Worker) *local { return &local{w: w} })

// Live returns how many streams exist on w. Tests check that it returns to zero.
func Live(w *event.Worker) int { return locals.Get(w).live }

func (l *local) get() *Stream {
	l.live++
	s := freelist.Take(&l.free, nil)
	s.w, s.l = l.w, l
	return s
}

func (l *local) bury(s *Stream) {
	if len(l.dead) == 0 {
		l.w.QueueFlush(l)
	}
	l.dead = append(l.dead, s)
}

// Flush is the worker's call at the end of the pass.
func (l *local) Flush() {
	for i, s := range l.dead {
		l.dead[i] = nil
		l.live--
		s.release()
		if len(l.free) < maxFree {
			l.free = append(l.free, s)
		}
	}
	l.dead = l.dead[:0]
}
