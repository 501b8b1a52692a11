package conn

import (
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// attemptDelay is how long the attempt at one address has before the next one begins beside it (RFC 8305, section 5; Envoy's value).
const attemptDelay = 300 * time.Millisecond

// race makes a connection to whichever of several addresses of one host answers first (Happy Eyeballs, RFC 8305). Until then its Conn has
// no socket of its own. owner: the Conn's worker.
type race struct {
	c      *Conn
	spec   event.ConnectSpec
	rest   []network.Address // not tried yet
	runs   []*runner
	timer  event.Timer
	opened func()
}

// runner is an attempt at one address.
type runner struct {
	r       *race
	h       event.Handle
	address network.Address
}

// DialAny is Dial for a host with several addresses, which are tried in their order: the next one as soon as one has failed, or has not
// answered for 300 ms. opened is called for each attempt but the first. The addresses are only read.
func DialAny(w *event.Worker, spec *event.ConnectSpec, addresses []network.Address, tr Transport, hd Handler, opened func()) *Conn {
	c := &Conn{}
	c.DialAny(w, spec, addresses, tr, hd, opened)
	return c
}

// DialAny is the function for a Conn that lies in its owner's own object, see Init.
func (c *Conn) DialAny(w *event.Worker, spec *event.ConnectSpec, addresses []network.Address, tr Transport, hd Handler, opened func()) {
	c.Init(w, event.NoHandle, tr)
	c.handler = hd
	c.state = connecting
	c.Info.Remote = spec.Address
	r := &race{c: c, spec: *spec, rest: addresses, opened: opened}
	r.timer.Fn = r.onTimer
	c.l.races[c] = r
	r.next(true)
}

// next begins the next attempt. Without one that is under way the race is lost.
func (r *race) next(first bool) {
	w := r.c.w
	w.Disarm(&r.timer)
	for ; len(r.rest) > 0; first = false {
		r.spec.Address, r.rest = r.rest[0], r.rest[1:]
		if !first {
			r.opened()
		}
		h, e := w.Driver.Connect(&r.spec)
		if h == event.NoHandle {
			r.c.why.Errno = e
			continue
		}
		x := &runner{r, h, r.spec.Address}
		if err := w.Register(h, x); err != nil {
			w.Close(h, false)
			r.c.why.Errno = syscall.ENOMEM
			continue
		}
		r.runs = append(r.runs, x)
		if len(r.rest) > 0 {
			w.Arm(&r.timer, attemptDelay)
		}
		return
	}
	if len(r.runs) == 0 { // callers see it in a later pass, as from Dial
		r.c.why.Failed = true
		r.c.queue()
	}
}

func (r *race) onTimer() { r.next(false) }

// OnReady is the driver's call.
func (x *runner) OnReady(ev event.Events) {
	if ev&(event.Writable|event.HangUp) == 0 {
		return
	}
	r := x.r
	c := r.c
	if e := c.w.Driver.SocketError(x.h); e != 0 {
		c.w.Close(x.h, false)
		r.leave(x)
		c.why.Remote, c.why.Errno = true, e
		if len(r.rest) > 0 || len(r.runs) == 0 {
			r.next(false)
		}
		return
	}
	if ev&event.Writable == 0 {
		return
	}
	r.leave(x)
	r.end()
	c.why = Closed{}
	c.h, c.Info.Remote = x.h, x.address
	c.w.Replace(x.h, c)
	c.OnReady(ev)
}

func (r *race) leave(x *runner) {
	for i, o := range r.runs {
		if o == x {
			r.runs = append(r.runs[:i], r.runs[i+1:]...)
			return
		}
	}
}

// end gives the attempts up that are still under way.
func (r *race) end() {
	w := r.c.w
	w.Remove(&r.timer)
	for _, x := range r.runs {
		w.Close(x.h, false)
	}
	r.runs, r.rest = nil, nil
	delete(r.c.l.races, r.c)
}

// Of returns the connection that a registered handler is of, or is an attempt of; nil if it is of none.
func Of(h event.Handler) *Conn {
	switch h := h.(type) {
	case *Conn:
		return h
	case *runner:
		return h.r.c
	}
	return nil
}

// endRace ends the race that a Conn without a socket is in, if any.
func (c *Conn) endRace() {
	if r := c.l.races[c]; r != nil {
		r.end()
	}
}
