package listener

import (
	"time"
	"unsafe"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// session is one connection of a listener. It is the connection's outermost handler from its beginning to its end; what it embeds
// is who serves it at the time: listener filters, then the chain. owner: worker.
type session struct {
	l *Listener
	c conn.Conn
	conn.Handler
	chain      *Chain // nil before it is chosen, and without one
	next, prev *session
	started    bool // the connection is registered
	handed     bool // it came from the listener that accepted it: one hop
}

// SessionSize is what the heap holds of a connection of a listener, in bytes, without what serves it.
const SessionSize = unsafe.Sizeof(session{})

// local is what a worker keeps of its listeners' connections.
type local struct {
	first *session
	// handshakes bound those of chains with a ConnectTimeout. A connection is long, its handshake is not.
	handshakes map[*session]*event.Timer
}

var locals = event.NewLocal(func(*event.Worker) *local { return &local{handshakes: map[*session]*event.Timer{}} })

func (s *session) w() *event.Worker { return s.c.Worker() }

func (s *session) link() {
	l := locals.Get(s.w())
	s.next = l.first
	if l.first != nil {
		l.first.prev = s
	}
	l.first = s
}

func (s *session) unlink() {
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		locals.Get(s.w()).first = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	s.next, s.prev = nil, nil
}

// choose picks the chain and starts the connection on it.
func (s *session) choose() {
	if s.redirect() {
		return
	}
	chain := s.l.chains.Load().Find(&s.c.Info)
	if chain == nil {
		s.l.count(s.w(), stats.ListenerNoFilterChainMatch)
		s.refuse()
		return
	}
	s.serve(chain)
}

// redirect hands the connection to the listener of its original destination, if that is another one.
func (s *session) redirect() bool {
	if s.l.Redirect == nil || s.handed || !s.c.Info.Said().LocalRestored {
		return false
	}
	to := s.l.Redirect.Find(s.c.Info.Local)
	if to == nil || to == s.l || !to.enter() {
		return false
	}
	if to.Admit != nil {
		if _, ok := to.Admit.Admit(s.w()); !ok {
			to.active.Add(-1)
			return false
		}
	}
	if to.Balance != nil {
		to.Balance.hold(s.w())
	}
	s.l.leave(s.w())
	s.l = to
	s.c.Info.From = to.entrance
	s.handed = true
	if len(to.Filters) > 0 {
		s.filter()
	} else {
		s.choose()
	}
	return true
}

// serve hands the connection to its chain.
func (s *session) serve(chain *Chain) {
	l, st := s.l, s.w().Stats
	s.chain = chain
	s.c.Info.From = chain.entrance
	l.count(s.w(), stats.ListenerDownstreamCxTotal)
	st.GaugeAdd(l.Stats.Gauge(stats.ListenerDownstreamCxActive), 1)
	if i := s.w().Index; i >= 0 && i < len(l.WorkerStats) {
		st.Inc(l.WorkerStats[i].Counter(stats.ListenerWorkerDownstreamCxTotal))
		st.GaugeAdd(l.WorkerStats[i].Gauge(stats.ListenerWorkerDownstreamCxActive), 1)
	}
	if len(l.Logs) > 0 {
		s.c.SetCounter(bytesOf{s.c.StreamInfo()})
	}
	var tr conn.Transport
	if chain.Transport != nil {
		tr = chain.Transport.New(s.w())
	}
	s.Handler = chain.handler(&s.c, &tr)
	if s.Handler == nil {
		s.w().Stats.Inc(l.ConfigStats.Counter(stats.ListenerConfigNetworkExtensionConfigMissing))
		s.Handler = nobody{}
		s.c.SetHandler(s)
		s.c.Close(network.NoFlush, "no_filters")
		return
	}
	if tr != nil && chain.ConnectTimeout > 0 {
		t := &event.Timer{Fn: s.onHandshakeTimeout}
		locals.Get(s.w()).handshakes[s] = t
		s.w().Arm(t, chain.ConnectTimeout)
	}
	if s.started {
		s.c.Assign(tr, s)
	} else {
		s.started = true
		s.c.SetTransport(tr)
		_ = s.c.Start(s) // an error was told by OnClose
	}
	if n, ok := s.Handler.(Beginner); ok && s.c.IsOpen() {
		n.OnNewConnection()
	}
}

// Beginner is a handler that has something to do once its connection is there, before a handshake is done.
type Beginner interface{ OnNewConnection() }

// bytesOf counts the bytes of a connection for the listener's access log, where what serves it does not.
type bytesOf struct{ i *stream.Info }

// OnRead implements conn.Counter.
func (b bytesOf) OnRead(n int) { b.i.BytesReceived += uint64(n) }

// OnWritten implements conn.Counter.
func (b bytesOf) OnWritten(n int) { b.i.BytesSent += uint64(n) }

// refuse closes a connection that nobody wants.
func (s *session) refuse() {
	s.Handler = nobody{}
	s.c.SetHandler(s)
	if len(s.l.Logs) > 0 {
		i := s.c.StreamInfo()
		i.Flags.Set(stream.NoRouteFound)
		i.Details = "filter_chain_not_found"
	}
	s.drop()
}

// drop closes a connection that has no chain. Bytes that nobody took make it a reset, as they would if they were still in the kernel.
func (s *session) drop() {
	if s.c.Unread() > 0 {
		s.c.Close(network.Abort, "")
		return
	}
	s.c.Close(network.NoFlush, "")
}

// OnConnected: the transport's handshake is done.
func (s *session) OnConnected() {
	s.stopHandshakeTimer()
	s.Handler.OnConnected()
}

func (s *session) stopHandshakeTimer() {
	if s.chain == nil || s.chain.ConnectTimeout == 0 {
		return
	}
	l := locals.Get(s.w())
	if t := l.handshakes[s]; t != nil {
		s.w().Remove(t)
		delete(l.handshakes, s)
	}
}

// onHandshakeTimeout is the end of transport_socket_connect_timeout.
func (s *session) onHandshakeTimeout() {
	s.l.count(s.w(), stats.ListenerDownstreamCxTransportSocketConnectTimeout)
	s.c.Info.SetEnd().TerminationDetails = "transport socket timeout was reached"
	s.c.Close(network.NoFlush, "transport_socket_timeout")
}

// OnClose tells the handler, then the log and the counters.
func (s *session) OnClose(why conn.Closed) {
	s.stopHandshakeTimer()
	s.Handler.OnClose(why)
	if s.chain == nil && s.c.Info.Ended().CloseType != "Normal" {
		s.c.Info.SetEnd().CloseType = "Normal"
	}
	s.log()
	l, st := s.l, s.w().Stats
	if s.chain != nil {
		l.count(s.w(), stats.ListenerDownstreamCxDestroy)
		st.GaugeSub(l.Stats.Gauge(stats.ListenerDownstreamCxActive), 1)
		if i := s.w().Index; i >= 0 && i < len(l.WorkerStats) {
			st.GaugeSub(l.WorkerStats[i].Gauge(stats.ListenerWorkerDownstreamCxActive), 1)
		}
		st.Record(l.Stats.Histogram(stats.ListenerDownstreamCxLengthMs), uint64(s.w().Now()-s.c.Info.Start)/uint64(time.Millisecond))
	}
	s.unlink()
	l.leave(s.w())
}

// log writes the line of the listener's access logs.
func (s *session) log() {
	if len(s.l.Logs) == 0 {
		return
	}
	i := s.c.StreamInfo()
	if i.End == 0 {
		i.End = s.w().Now()
	}
	i.TerminationDetails = s.c.Info.Ended().TerminationDetails
	if d := s.c.Info.Ended().Details; d != "" {
		i.Details = d
	}
	s.l.Logs.Log(s.w(), i, accesslog.NotSet)
}

// nobody is the handler of a connection that is being refused.
type nobody struct{}

func (nobody) OnConnected()        {}
func (nobody) OnData(b []byte) int { return len(b) }
func (nobody) OnEOF()              {}
func (nobody) OnHighWatermark()    {}
func (nobody) OnLowWatermark()     {}
func (nobody) OnClose(conn.Closed) {}

// Next: proxy/internal/listener/chain.go
