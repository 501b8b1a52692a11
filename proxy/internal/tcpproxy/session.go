// Package tcpproxy is Envoy's TCP proxy: it connects a downstream connection to a host of a cluster and passes bytes, half closes
// and resets both ways, through the kernel where nobody wants to see the bytes.
//
// A session belongs to its worker. It never looks into the bytes.
package tcpproxy

import (
	"time"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/network"
	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Reasons for closing the downstream connection, as Envoy has them.
const (
	reasonIdle        = "tcp_session_idle_timeout"
	reasonMaxDuration = "max_connection_duration_reached"
	reasonDownRemote  = "closing_upstream_tcp_connection_due_to_downstream_remote_close"
	reasonDownLocal   = "closing_upstream_tcp_connection_due_to_downstream_local_close"
	reasonDownReset   = "closing_upstream_tcp_connection_due_to_downstream_reset_close"
)

// What follows when there is no upstream connection: the number is Envoy's UpstreamFailureReason.
const (
	connectFailed = "tcp_initializion_failure:0"
	noHealthy     = "tcp_initializion_failure:1"
	resourceLimit = "tcp_initializion_failure:2"
	noRoute       = "tcp_initializion_failure:3"
)

// session is one downstream connection and its upstream connection. It is the downstream connection's handler; see upstream for
// the other one. owner: worker.
type session struct {
	cfg *Config
	w   *event.Worker
	l   *local
	// down and up are the two ends.
	down, up side
	tcp      *pool.TCPConn
	cluster  *cluster.Cluster
	host     *host.Host

	seen     int64 // when bytes last moved
	idle     event.Timer
	duration *event.Timer
	periodic *event.Timer
	attempts int

	connecting bool // an upstream connection is being made
	ready      bool // it was made
	held       bool // reading from the client waits for the upstream connection
	waiting    bool // for early data or the handshake
	flushing   bool // the downstream is gone, the upstream takes what is left
	ended      bool
	shown      [2]int64     // what the buffered gauges have of us
	info       *stream.Info // the connection's
}

// NewHandler returns the handler of an accepted connection. Call Start of the conn.Conn with it.
func (c *Config) NewHandler(nc *conn.Conn) conn.Handler {
	s := &session{cfg: c, w: nc.Worker()}
	s.l = locals.Get(s.w)
	s.down = side{c: nc, peer: &s.up, s: s}
	s.up = side{peer: &s.down, s: s}
	s.idle.Fn = s.onIdle
	s.seen = s.w.Now()
	s.info = nc.StreamInfo()
	nc.SetLimit(c.BufferLimit)
	nc.EnableHalfClose()
	s.count(stats.TCPDownstreamCxTotal)
	return s
}

func (s *session) count(i apistats.CounterIndex) { s.w.Stats.Inc(s.cfg.Stats.Counter(i)) }

// OnNewConnection begins: it is called once the connection's first filters let it pass, before a handshake is done.
func (s *session) OnNewConnection() {
	cfg := s.cfg
	if s.down.c.Transport() == nil {
		s.down.c.SetCounter((*counter)(s))
	}
	if cfg.LogStart {
		s.log(accesslog.TCPConnectionStart)
	}
	if cfg.LogInterval > 0 && len(cfg.Logs) > 0 {
		s.periodic = &event.Timer{Fn: s.onPeriodic}
		s.w.Arm(s.periodic, cfg.LogInterval)
	}
	if cfg.MaxDuration > 0 {
		s.duration = &event.Timer{Fn: s.onMaxDuration}
		d := cfg.MaxDuration
		if j := int64(float64(d) * cfg.Jitter / 100); j > 0 {
			d += time.Duration(s.w.Rand.Uint64() % uint64(j))
		}
		s.w.Arm(s.duration, d)
	}
	switch {
	case cfg.Connect == OnData:
		s.waiting = true
		s.down.c.SetMaxUnread(cfg.MaxEarlyData)
	case cfg.Connect == OnHandshake && s.down.c.Transport() != nil && !s.down.c.Connected():
		s.waiting = true
	default:
		s.hold()
		s.connect()
	}
}

// hold stops reading from the client until there is an upstream connection.
func (s *session) hold() {
	if !s.held {
		s.held = true
		s.down.c.ReadDisable(true)
	}
}

// OnConnected implements conn.Handler: a handshake is done.
func (s *session) OnConnected() {
	if s.waiting && s.cfg.Connect == OnHandshake {
		s.waiting = false
		s.hold()
		s.connect()
	}
}

// OnData implements conn.Handler.
func (s *session) OnData(b []byte) int {
	if !s.ready {
		return s.early(b)
	}
	return s.down.data(b)
}

// early leaves what comes before there is an upstream connection where it is.
func (s *session) early(b []byte) int {
	if len(b) >= s.cfg.MaxEarlyData {
		s.hold()
	}
	if s.waiting && s.cfg.Connect == OnData {
		s.waiting = false
		s.count(stats.TCPEarlyDataReceivedCountTotal)
		s.connect()
	}
	return 0
}

// OnEOF implements conn.Handler.
func (s *session) OnEOF() {
	s.seen = s.w.Now()
	if s.waiting {
		// Nothing came, nothing will: there is nobody to connect for.
		s.down.eof = true
		s.closeDown(network.NoFlush, "")
		return
	}
	s.down.onEOF()
}

// OnHighWatermark implements conn.Handler: the client does not keep up, so do not read from the upstream.
func (s *session) OnHighWatermark() {
	s.show(1, s.down.c)
	if s.up.c != nil {
		s.w.Stats.Inc(s.cluster.Stats().Counter(stats.ClusterUpstreamFlowControlBackedUpTotal))
		s.up.c.ReadDisable(true)
	}
}

// OnLowWatermark implements conn.Handler.
func (s *session) OnLowWatermark() {
	s.show(1, s.down.c)
	if s.up.c != nil {
		s.w.Stats.Inc(s.cluster.Stats().Counter(stats.ClusterUpstreamFlowControlDrainedTotal))
		s.up.c.ReadDisable(false)
	}
}

// OnClose implements conn.Handler: the session is over but for what the upstream has not taken yet.
func (s *session) OnClose(why conn.Closed) {
	s.down.c, s.down.gone = nil, true
	s.up.drop()
	s.end()
	c := s.up.c
	if c == nil {
		s.down.drop()
		return
	}
	switch {
	case why.Reset && why.Remote:
		s.down.drop()
		c.Close(network.Abort, reasonDownReset)
	case s.connecting:
		s.down.drop()
		c.Close(network.NoFlush, reasonDownRemote)
	case !why.Remote && !s.down.eof:
		// We closed it: what is buffered is of no use to anybody.
		s.down.drop()
		c.Close(network.NoFlush, reasonDownLocal)
	case s.down.n == 0:
		s.passClose(&s.down)
	}
}

// passClose closes the other end of d, which is gone, when all of its bytes have left the pipe.
func (s *session) passClose(d *side) {
	if d == &s.up {
		s.closeDown(network.FlushWrite, "")
		return
	}
	c := s.up.c
	if c.Buffered() > 0 {
		s.flushing = true
		s.count(stats.TCPUpstreamFlushTotal)
		s.w.Stats.GaugeAdd(s.cfg.Stats.Gauge(stats.TCPUpstreamFlushActive), 1)
	}
	c.Close(network.FlushWrite, reasonDownRemote)
}

func (s *session) closeDown(t network.CloseType, reason string) {
	if s.down.c != nil {
		s.down.c.Close(t, reason)
	}
}

// end is what happens once when the downstream connection is gone.
func (s *session) end() {
	if s.ended {
		return
	}
	s.ended = true
	s.w.Remove(&s.idle)
	if s.duration != nil {
		s.w.Remove(s.duration)
	}
	if s.periodic != nil {
		s.w.Remove(s.periodic)
	}
	s.show(0, nil)
	s.show(1, nil)
	s.info.End = s.w.Now()
	s.fill() // the listener's log shows it too
	s.log(accesslog.TCPConnectionEnd)
}

// Next: proxy/internal/tcpproxy/upstream.go
