package router

import (
	"time"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/freelist"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
)

// local is what the router keeps per worker: its objects for reuse. What dies in a pass is reused after it, since it may still
// be on the stack.
type local struct {
	w        *event.Worker
	free     []*Router
	dead     []*Router
	tries    []*attempt
	deadTry  []*attempt
	millis   [numMillis]string
	flushing bool
	live     int
	none     aside    // empty, and stays so
	asides   []*aside // that nobody needs
	bodies   []*buffer.Buffer
	pick     lb.Context // of the pick under way
}

// maxFree bounds the routers, and the attempts, that a worker keeps.
const maxFree = 1024

var locals = event.NewLocal(func(w *event.Worker) *local { return &local{w: w} })

// Live returns how many routers and attempts are in use on w. Tests check that it returns to zero.
func Live(w *event.Worker) int { return locals.Get(w).live }

func (l *local) get() *Router {
	l.live++
	r := freelist.Take(&l.free, initRouter)
	r.l, r.w = l, l.w
	if r.aside == nil {
		r.aside = &l.none
	}
	return r
}

// more returns what few requests need, for a change.
func (r *Router) more() *aside {
	if r.aside == &r.l.none {
		r.aside = freelist.Take(&r.l.asides, nil)
	}
	return r.aside
}

// lose gives the aside back.
func (r *Router) lose() {
	m := r.aside
	clear(m.tries)
	clear(m.slow)
	m.tries, m.slow, m.cookies, m.answer = m.tries[:0], m.slow[:0], nil, filter.LocalReply{}
	if r.aside = &r.l.none; len(r.l.asides) < maxFree {
		r.l.asides = append(r.l.asides, m)
	}
}

func initRouter(r *Router) {
	r.timer.Fn = r.onTimeout
	r.watch = r.onClient
}

func (l *local) put(r *Router) {
	l.queue()
	l.dead = append(l.dead, r)
}

func (l *local) attempt() *attempt {
	l.live++
	a := freelist.Take(&l.tries, nil)
	a.l = l
	return a
}

// arm arms one of the timers of an attempt; it stays with a for the next that needs it.
func (a *attempt) arm(t **event.Timer, expired func(*attempt), d time.Duration) {
	if *t == nil {
		*t = &event.Timer{Fn: func() { expired(a) }}
	}
	a.l.w.Arm(*t, d)
}

func (l *local) putAttempt(a *attempt) {
	l.queue()
	l.deadTry = append(l.deadTry, a)
}

func (l *local) queue() {
	if !l.flushing {
		l.flushing = true
		l.w.QueueFlush(l)
	}
}

// Flush is the worker's call at the end of the pass.
func (l *local) Flush() {
	l.flushing = false
	for i, r := range l.dead {
		l.dead[i] = nil
		l.live--
		r.reset()
		if len(l.free) < maxFree {
			l.free = append(l.free, r)
		} else {
			l.w.Remove(&r.timer)
			l.w.Remove(r.backoff)
		}
	}
	l.dead = l.dead[:0]
	for i, a := range l.deadTry {
		l.deadTry[i] = nil
		l.live--
		a.release()
		if len(l.tries) < maxFree {
			l.tries = append(l.tries, a)
		} else {
			l.w.Remove(a.perTry)
			l.w.Remove(a.idle)
			l.w.Remove(a.life)
		}
	}
	l.deadTry = l.deadTry[:0]
}

// reset makes r ready for another request.
func (r *Router) reset() {
	r.CB = nil
	if r.aside != &r.l.none {
		r.lose()
	}
	r.routerState = routerState{}
}
