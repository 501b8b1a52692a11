package pool

import (
	"time"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// TCPConn is one upstream connection that carries bytes for one user. It stands between the connection and its handler to count
// and to time out. owner: worker.
type TCPConn struct {
	conn.Handler // the user; data and watermarks go straight to it
	// Owner is told of the end; nil: nobody. It is set right after DialTCP.
	Owner interface{ OnTCPClose(t *TCPConn) }

	s         *Settings
	w         *event.Worker
	nc        conn.Conn
	host      *host.Host
	breakers  *Breakers
	timer     event.Timer
	age       *event.Timer
	timedOut  bool
	connected bool
	ended     bool
	why       conn.Closed
}

// DialTCP opens a connection to h for hd alone. nil: a breaker is open, and reason is ResetOverflow.
func DialTCP(w *event.Worker, s *Settings, h *host.Host, prio Priority, hd conn.Handler) (*TCPConn, http.ResetReason) {
	b := s.Breakers(prio)
	if !b.Connections.TryAcquire() {
		// Nobody would give a connection back soon: waiting makes no sense.
		w.Stats.Inc(s.Stats.Counter(stats.ClusterUpstreamCxOverflow))
		return nil, http.ResetOverflow
	}
	if !b.Pending.TryAcquire() {
		b.Connections.Release()
		w.Stats.Inc(s.Stats.Counter(stats.ClusterUpstreamRqPendingOverflow))
		return nil, http.ResetOverflow
	}
	t := &TCPConn{Handler: hd, s: s, w: w, host: h, breakers: b}
	w.Stats.Inc(s.Stats.Counter(stats.ClusterUpstreamRqPendingTotal))
	w.Stats.GaugeAdd(s.Stats.Gauge(stats.ClusterUpstreamRqPendingActive), 1)
	h.RqPending.Add(1)
	opened(w, s, h)
	t.timer.Fn = t.onTimeout
	w.Arm(&t.timer, s.ConnectTimeout)
	dial(&t.nc, w, s, h, transport(w, s, h, nil, Names{}), t)
	t.nc.SetCounter(t)
	t.nc.SetLimit(int(s.BufferLimit))
	return t, http.ResetNone
}

// Ended says that its user is done with the connection, which ends as it should.
func (t *TCPConn) Ended() { t.ended = true }

// NetConn returns the connection itself.
func (t *TCPConn) NetConn() *conn.Conn { return &t.nc }

// Host returns the host at the other end.
func (t *TCPConn) Host() *host.Host { return t.host }

// Info is what is known of the connection.
func (t *TCPConn) Info() *network.ConnInfo { return &t.nc.Info }

// Failure says why the connection was not established, in Envoy's words. It is for the handler's OnClose.
func (t *TCPConn) Failure() (http.ResetReason, string) {
	return Failure(&t.why, t.timedOut, t.nc.Info.Ended().TransportFailure)
}

// notPending ends the time in which the connection counts as a pending request.
func (t *TCPConn) notPending() {
	t.w.Disarm(&t.timer)
	t.breakers.Pending.Release()
	t.w.Stats.GaugeSub(t.s.Stats.Gauge(stats.ClusterUpstreamRqPendingActive), 1)
	t.host.RqPending.Add(-1)
}

// OnConnected implements conn.Handler.
func (t *TCPConn) OnConnected() {
	s, w := t.s, t.w
	t.notPending()
	t.connected = true
	t.nc.Info.Local = w.Driver.LocalAddress(t.nc.Handle())
	w.Stats.Record(s.Stats.Histogram(stats.ClusterUpstreamCxConnectMs), uint64(w.Now()-t.nc.Info.Start)/uint64(time.Millisecond))
	t.breakers.Requests.Force()
	t.host.RqTotal.Add(1)
	t.host.RqActive.Add(1)
	w.Stats.Inc(s.Stats.Counter(stats.ClusterUpstreamRqTotal))
	w.Stats.GaugeAdd(s.Stats.Gauge(stats.ClusterUpstreamRqActive), 1)
	t.Handler.OnConnected()
}

// OnClose implements conn.Handler.
func (t *TCPConn) OnClose(why conn.Closed) {
	s, w := t.s, t.w
	if t.connected {
		t.host.RqActive.Add(-1)
		w.Stats.GaugeSub(s.Stats.Gauge(stats.ClusterUpstreamRqActive), 1)
		t.breakers.Requests.Release()
	} else {
		t.notPending()
		w.Stats.Inc(s.Stats.Counter(stats.ClusterUpstreamRqPendingFailureEject))
	}
	w.Remove(&t.timer)
	t.breakers.Connections.Release()
	t.why = why
	if t.Owner != nil {
		t.Owner.OnTCPClose(t)
	}
	ended(w, s, t.host, &why, t.nc.Info.Start, !t.connected, t.connected && !t.ended)
	t.Handler.OnClose(why)
}

func (t *TCPConn) onTimeout() {
	t.timedOut = true
	t.w.Stats.Inc(t.s.Stats.Counter(stats.ClusterUpstreamCxConnectTimeout))
	t.nc.Close(network.NoFlush, "")
}

// OnRead implements conn.Counter.
func (t *TCPConn) OnRead(n int) {
	t.w.Stats.Add(t.s.Stats.Counter(stats.ClusterUpstreamCxRxBytesTotal), uint64(n))
}

// OnWritten implements conn.Counter.
func (t *TCPConn) OnWritten(n int) {
	t.w.Stats.Add(t.s.Stats.Counter(stats.ClusterUpstreamCxTxBytesTotal), uint64(n))
}
