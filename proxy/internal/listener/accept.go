// Package listener owns listening sockets and what happens to a connection before it has a protocol: accepting, limits, listener
// filters, the choice of a filter chain, its transport socket and its network filters.
//
// A Listener is configuration, shared by all workers and changed by the main loop only; an Acceptor is its part on one worker, and
// a session is one of its connections there. The package never looks into what a chain's handler does with its bytes.
package listener

import (
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/socket"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// acceptBackoff is how long a listening socket rests after an error that would come again at once, such as EMFILE.
const acceptBackoff = 100 * time.Millisecond

// Acceptor is a listening socket of a Listener on one worker. owner: worker.
type Acceptor struct {
	l       *Listener
	w       *event.Worker
	address network.Address
	h       event.Handle
	timer   *event.Timer
	// failedAt is when accept last failed, in ns of the worker's clock.
	failedAt int64
	// wildcard: the local address must be asked for, since the socket is bound to no single one.
	wildcard bool
	more     bool
	off      bool
}

// Open opens the listener's first socket on a worker, from src. owner: w.
func Open(l *Listener, w *event.Worker, src socket.Source) (*Acceptor, error) {
	return OpenSpec(l, &l.Spec, w, src)
}

// OpenSpec opens a socket for the listener: Spec, or one of More.
func OpenSpec(l *Listener, from *event.ListenSpec, w *event.Worker, src socket.Source) (*Acceptor, error) {
	spec := *from
	spec.Worker = w.Index
	h, err := src.Listen(w.Driver, &spec)
	if err != nil {
		return nil, err
	}
	a := &Acceptor{l: l, w: w, h: h, address: w.Driver.LocalAddress(h)}
	if !a.address.Valid() || spec.Address.IsUnix() {
		a.address = spec.Address
	}
	ip := a.address.IP
	a.wildcard = ip.IsValid() && ip.Addr().IsUnspecified() || !a.address.Valid()
	return a, nil
}

// LocalAddress returns the address that the socket is bound to (the port that the kernel gave, if none was asked for).
func (a *Acceptor) LocalAddress() network.Address { return a.address }

// Worker returns the worker that the socket belongs to.
func (a *Acceptor) Worker() *event.Worker { return a.w }

// Start begins to accept. owner: worker.
func (a *Acceptor) Start() error { return a.w.Register(a.h, a) }

// Serve makes l what connections are accepted for from now on: the socket stays, and so does what waits in its queue.
func (a *Acceptor) Serve(l *Listener) { a.l = l }

// Close stops accepting and closes the socket. What waits in its queue is reset.
func (a *Acceptor) Close() {
	if a.off {
		return
	}
	a.off = true
	if a.timer != nil {
		a.w.Remove(a.timer)
	}
	a.w.Close(a.h, false)
}

// OnReady takes connections, a bounded number a pass.
func (a *Acceptor) OnReady(event.Events) {
	limit := event.MaxAccepts
	if m := a.l.MaxAccept; m > 0 && m < limit {
		limit = m
	}
	n := 0
	for ; n < limit && !a.off; n++ {
		h, peer, e := a.w.Driver.Accept(a.h)
		if e != 0 {
			a.countAccepted(n)
			if e != syscall.EAGAIN {
				a.backOff(e)
			}
			return
		}
		a.l.take(a, h, peer)
	}
	a.countAccepted(n)
	a.again()
}

func (a *Acceptor) countAccepted(n int) {
	if n > 0 {
		a.w.Stats.Record(a.l.Stats.Histogram(stats.ListenerConnectionsAcceptedPerSocketEvent), uint64(n))
	}
}

func (a *Acceptor) again() {
	if !a.more && !a.off {
		a.more = true
		a.w.Again(a)
	}
}

// Run goes on accepting in the next pass.
func (a *Acceptor) Run() {
	a.more = false
	if !a.off {
		a.OnReady(event.Readable)
	}
}

// backOff waits after an error (no file descriptor is left, mostly): what is in the backlog stays there. The first failure of an
// episode is told; an episode is over when a second has passed without one.
func (a *Acceptor) backOff(e syscall.Errno) {
	now := a.w.Now()
	if f := a.l.OnAcceptError; f != nil && now-a.failedAt > int64(time.Second) {
		f(e)
	}
	a.failedAt = now
	if a.timer == nil {
		a.timer = &event.Timer{Fn: a.Run}
	}
	a.w.Arm(a.timer, acceptBackoff)
}

// Next: proxy/internal/listener/listener.go
