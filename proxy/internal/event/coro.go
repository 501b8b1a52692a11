package event

import "iter"

// Coro is straight-line code that runs on a worker's thread and may wait without blocking it (iter.Pull: about 0.1 us a
// switch). It is created, resumed and stopped on its worker only. Its body must not lock its OS thread nor hold a mutex across
// Wait.
type Coro struct {
	next    func() (struct{}, bool)
	stop    func()
	yield   func(struct{}) bool
	done    bool
	inside  bool
	stopped bool
	w       *Worker
}

// Go starts body and runs it until its first Wait. body gets the Coro to wait on.
func (w *Worker) Go(body func(c *Coro)) *Coro {
	c := &Coro{w: w}
	w.unpin()
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		c.yield = yield
		body(c)
		c.done = true
	})
	w.pin()
	c.Resume()
	return c
}

// Wait gives the thread back until Resume. It returns false when the Coro was stopped: the body must then return at once.
// Call it from the body only.
func (c *Coro) Wait() bool { return !c.stopped && c.yield(struct{}{}) }

// Resume runs the body until its next Wait or its end; done tells which. It does nothing if called from the body itself.
func (c *Coro) Resume() (done bool) {
	if c.done || c.inside {
		return c.done
	}
	c.inside = true
	c.w.unpin()
	c.next()
	c.inside = false
	if c.done {
		c.stop()
	}
	c.w.pin()
	return c.done
}

// Done tells whether the body has returned.
func (c *Coro) Done() bool { return c.done }

// Stop ends a waiting body: its Wait returns false. Called from the body itself (what it did ended its own stream), it makes the
// next Wait return false.
func (c *Coro) Stop() {
	c.stopped = true
	if c.done || c.inside {
		return
	}
	c.inside = true // what the body does on its way out may call Resume
	c.w.unpin()
	c.stop()
	c.w.pin()
	c.inside = false
	c.done = true
}
