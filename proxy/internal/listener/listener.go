package listener

import (
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/network"
	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Listener is one configured listener. Its chains may be replaced while it serves; everything else is fixed.
type Listener struct {
	Name    string
	Address network.Address
	Spec    event.ListenSpec
	// More are the sockets of additional_addresses.
	More  []event.ListenSpec
	Stats apistats.GroupBase // stats.Listener
	// WorkerStats are stats.ListenerWorker by worker index.
	WorkerStats []apistats.GroupBase
	ConfigStats apistats.GroupBase // stats.ListenerConfig
	Logs        accesslog.Loggers
	// OnAcceptError is told, on the worker, when accepting begins to fail; nil: nobody. Set it before the listener opens.
	OnAcceptError func(e syscall.Errno)

	// Filters are the listener filters; each connection gets its own.
	Filters           []Filter
	FiltersTimeout    time.Duration // 15 s, 0: none
	ContinueOnTimeout bool
	// MaxAccept bounds connections taken per wake-up, 0: event.MaxAccepts.
	MaxAccept int
	// Limit returns how many connections there may be over all workers; nil: any number.
	Limit func() int64
	// Admit is asked before a connection is taken in; nil: always.
	Admit Admission
	// Balance chooses the worker for a connection; nil: the one that accepted it.
	Balance *Balance
	// Redirect hands connections whose original destination another listener has to that one; nil: it does not.
	Redirect *Table

	chains   atomic.Pointer[Chains]
	draining atomic.Bool
	active   atomic.Int64
	entrance *network.Entrance // set with the chains
}

// Admission decides whether a connection may come in, over all listeners (connection limits, overload).
type Admission interface {
	// Admit is called on the worker. If it answers false, the refusal counts as refused (of stats.Listener), and Release is not
	// called.
	Admit(w *event.Worker) (refused apistats.CounterIndex, ok bool)
	// Release is told of the end of a connection that was admitted.
	Release(w *event.Worker)
}

// Filter is a configured listener filter.
type Filter struct {
	New func(d network.Dispatcher) network.ListenerFilter
	// Disabled tells for which connections the filter is left out; nil: for none.
	Disabled func(i *network.ConnInfo) bool
}

// SetChains makes c current: connections that come from now on are matched by it.
// Chains that were there before stay as they are.
func (l *Listener) SetChains(c *Chains) {
	if l.entrance == nil {
		l.entrance = &network.Entrance{ListenerName: l.Name}
	}
	c.Each(func(ch *Chain) {
		if ch.entrance == nil {
			ch.entrance = &network.Entrance{ListenerName: l.Name, ChainName: ch.Name}
		}
	})
	l.chains.Store(c)
}

// Chains returns the current filter chains.
func (l *Listener) Chains() *Chains { return l.chains.Load() }

// Drain says that the connections of all chains should end after their current work. owner: main loop.
func (l *Listener) Drain() {
	l.draining.Store(true)
	if c := l.chains.Load(); c != nil {
		c.Each((*Chain).Drain)
	}
}

// Draining tells whether Drain was called.
func (l *Listener) Draining() bool { return l.draining.Load() }

// Active returns the number of connections, over all workers.
func (l *Listener) Active() int64 { return l.active.Load() }

// take begins to serve a connection, unless there are too many.
func (l *Listener) take(a *Acceptor, h event.Handle, peer network.Address) {
	w := a.w
	if !l.enter() {
		w.Stats.Inc(l.Stats.Counter(stats.ListenerDownstreamCxOverflow))
		w.Driver.CloseHandle(h, false)
		return
	}
	if l.Admit != nil {
		if refused, ok := l.Admit.Admit(w); !ok {
			l.active.Add(-1)
			w.Stats.Inc(l.Stats.Counter(refused))
			w.Driver.CloseHandle(h, false)
			return
		}
	}
	local := a.address
	if a.wildcard {
		local = w.Driver.LocalAddress(h)
	}
	if l.Balance != nil {
		if to := l.Balance.pick(w); to != w {
			to.Post(func() { l.begin(to, h, local, peer) })
			return
		}
	}
	l.begin(w, h, local, peer)
}

// enter counts a connection if the limit allows it, exactly: all workers may ask at once.
func (l *Listener) enter() bool {
	if l.Limit == nil {
		l.active.Add(1)
		return true
	}
	limit := l.Limit()
	for {
		n := l.active.Load()
		if n >= limit {
			return false
		}
		if l.active.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// begin starts a connection on its worker.
func (l *Listener) begin(w *event.Worker, h event.Handle, local, peer network.Address) {
	s := &session{l: l}
	c := &s.c
	c.Init(w, h, nil)
	c.Info.Local, c.Info.Remote = local, peer
	c.Info.From = l.entrance
	s.link()
	if len(l.Filters) > 0 {
		s.filter()
		return
	}
	s.choose()
}

// leave is the opposite of take.
func (l *Listener) leave(w *event.Worker) {
	l.active.Add(-1)
	if l.Admit != nil {
		l.Admit.Release(w)
	}
	if l.Balance != nil {
		l.Balance.release(w)
	}
}

// count counts in the listener's group.
func (l *Listener) count(w *event.Worker, i apistats.CounterIndex) { w.Stats.Inc(l.Stats.Counter(i)) }

// Next: proxy/internal/listener/session.go
