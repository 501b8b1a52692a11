// Package listener owns listening sockets and what happens to a connection before it has a protocol: accepting, limits, listener
// filters, the choice of a filter chain, its transport socket and its network filters.
//
// A Listener is configuration, shared by all workers and changed by the main loop only; an acceptor is its part on one worker.
package listener

import (
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/socket"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Listener is one configured listener. Its chains may be replaced while it serves; everything else is fixed.
type Listener struct {
	Name    string
	Address network.Address
	Spec    event.ListenSpec
	Stats   astats.GroupBase // stats.Listener
	// WorkerStats are stats.ListenerWorker by worker index.
	WorkerStats []astats.GroupBase

	// Filters are the listener filters; each connection gets its own.
	Filters           []FilterFactory
	FiltersTimeout    time.Duration // 15 s, 0: none
	ContinueOnTimeout bool
	// MaxAccept bounds connections taken per wake-up, 0: event.MaxAccepts.
	MaxAccept int
	// Admit is asked before a connection is taken in; nil: always. It answers false if a limit is reached, and is told of the
	// end by the Done that it returns.
	Admit Admission

	chains atomic.Pointer[Chains]
	// wildcard: the local address must be asked for, since the socket is bound to no single one.
	wildcard bool
	draining atomic.Bool
	active   atomic.Int64
}

// Admission decides whether a connection may come in (connection limits, overload).
type Admission interface {
	// Admit is called on the worker. stat is the counter of the listener to count a refusal in.
	Admit(w *event.Worker, l *Listener) bool
	Release(w *event.Worker, l *Listener)
}

// FilterFactory makes a listener filter for one connection.
type FilterFactory interface {
	New(d network.Dispatcher) network.ListenerFilter
}

// SetChains makes c current: connections that come from now on are matched by it.
func (l *Listener) SetChains(c *Chains) { l.chains.Store(c) }

// Chains returns the current filter chains.
func (l *Listener) Chains() *Chains { return l.chains.Load() }

// Drain says that connections should end after their current work; hcm asks by Draining.
func (l *Listener) Drain() { l.draining.Store(true) }

// Draining tells whether Drain was called.
func (l *Listener) Draining() bool { return l.draining.Load() }

// Active returns the number of connections, over all workers.
func (l *Listener) Active() int64 { return l.active.Load() }

// acceptor is a listener on one worker. owner: worker.
type acceptor struct {
	l    *Listener
	w    *event.Worker
	h    event.Handle
	more bool
	off  bool
}

// Acceptor is a listener's part on one worker, to be closed with Close.
type Acceptor = acceptor

// Open opens the listener's socket on a worker, from src. owner: w.
func Open(l *Listener, w *event.Worker, src socket.Source) (*Acceptor, error) {
	spec := l.Spec
	spec.Worker = w.Index
	h, err := src.Listen(w.Driver, &spec)
	if err != nil {
		return nil, err
	}
	a := &acceptor{l: l, w: w, h: h}
	l.wildcard = l.Address.IP.IsValid() && l.Address.IP.Addr().IsUnspecified()
	return a, nil
}

// LocalAddress returns the address that the socket is bound to (the port that the kernel gave, if none was asked for).
func (a *acceptor) LocalAddress() network.Address { return a.w.Driver.LocalAddress(a.h) }

// Start begins to accept. owner: worker.
func (a *acceptor) Start() error { return a.w.Register(a.h, a) }

// Close stops accepting and closes the socket.
func (a *acceptor) Close() {
	if !a.off {
		a.off = true
		a.w.Close(a.h, false)
	}
}

// OnReady takes connections, a bounded number a pass.
func (a *acceptor) OnReady(event.Events) {
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
				a.backOff()
			}
			return
		}
		a.take(h, peer)
	}
	a.countAccepted(n)
	a.again()
}

func (a *acceptor) countAccepted(n int) {
	if n > 0 {
		a.w.Stats.Record(a.l.Stats.Histogram(stats.ListenerConnectionsAcceptedPerSocketEvent), uint64(n))
	}
}

func (a *acceptor) again() {
	if !a.more && !a.off {
		a.more = true
		a.w.Again(a)
	}
}

// Run goes on accepting in the next pass.
func (a *acceptor) Run() {
	a.more = false
	if !a.off {
		a.OnReady(event.Readable)
	}
}

// backOff waits after an error such as EMFILE, which would come again at once: what is in the backlog stays there.
func (a *acceptor) backOff() {
	t := &event.Timer{}
	t.Fn = a.Run
	a.w.Arm(t, 100*time.Millisecond)
}

func (a *acceptor) take(h event.Handle, peer network.Address) {
	l, st := a.l, a.w.Stats
	if l.Admit != nil && !l.Admit.Admit(a.w, l) {
		a.w.Driver.CloseHandle(h, true)
		return
	}
	st.Inc(l.Stats.Counter(stats.ListenerDownstreamCxTotal))
	st.GaugeAdd(l.Stats.Gauge(stats.ListenerDownstreamCxActive), 1)
	if i := a.w.Index; i >= 0 && i < len(l.WorkerStats) {
		st.Inc(l.WorkerStats[i].Counter(stats.ListenerWorkerDownstreamCxTotal))
		st.GaugeAdd(l.WorkerStats[i].Gauge(stats.ListenerWorkerDownstreamCxActive), 1)
	}
	l.active.Add(1)
	c := conn.New(a.w, h, nil)
	c.Info.Remote = peer
	c.Info.Local = l.Address
	if l.wildcard || !l.Address.IP.IsValid() && !l.Address.IsUnix() || l.Address.IP.Port() == 0 && l.Address.IP.IsValid() {
		c.Info.Local = a.w.Driver.LocalAddress(h)
	}
	c.Info.ListenerName = l.Name
	s := &session{a: a, c: c}
	if len(l.Filters) > 0 {
		s.filter()
		return
	}
	s.choose()
}

// released is called once for each connection that was taken.
func (a *acceptor) released(c *conn.Conn) {
	l, st := a.l, a.w.Stats
	st.Inc(l.Stats.Counter(stats.ListenerDownstreamCxDestroy))
	st.GaugeSub(l.Stats.Gauge(stats.ListenerDownstreamCxActive), 1)
	if i := a.w.Index; i >= 0 && i < len(l.WorkerStats) {
		st.GaugeSub(l.WorkerStats[i].Gauge(stats.ListenerWorkerDownstreamCxActive), 1)
	}
	st.Record(l.Stats.Histogram(stats.ListenerDownstreamCxLengthMs), uint64(a.w.Now()-c.Info.Start)/1e6)
	l.active.Add(-1)
	if l.Admit != nil {
		l.Admit.Release(a.w, l)
	}
}

// Next: proxy/internal/listener/chain.go
