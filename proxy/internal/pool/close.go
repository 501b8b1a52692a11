package pool

import (
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/http"
	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

func (c *Conn) count(i apistats.CounterIndex) {
	c.pool.w.Stats.Inc(c.pool.s.Stats.Counter(i))
}

// opened counts a connection that is being made.
func opened(w *event.Worker, s *Settings, h *host.Host) {
	w.Stats.Inc(s.Stats.Counter(stats.ClusterUpstreamCxTotal))
	w.Stats.GaugeAdd(s.Stats.Gauge(stats.ClusterUpstreamCxActive), 1)
	h.CxTotal.Add(1)
	h.CxActive.Add(1)
}

// ended counts a connection that is over; pending tells whether it was never established, and busy whether it had work.
func ended(w *event.Worker, s *Settings, h *host.Host, why *conn.Closed, start int64, pending, busy bool) {
	count := func(i apistats.CounterIndex) { w.Stats.Inc(s.Stats.Counter(i)) }
	w.Stats.GaugeSub(s.Stats.Gauge(stats.ClusterUpstreamCxActive), 1)
	h.CxActive.Add(-1)
	count(stats.ClusterUpstreamCxDestroy)
	if why.Remote {
		count(stats.ClusterUpstreamCxDestroyRemote)
	} else {
		count(stats.ClusterUpstreamCxDestroyLocal)
	}
	if busy {
		count(stats.ClusterUpstreamCxDestroyWithActiveRq)
		if why.Remote {
			count(stats.ClusterUpstreamCxDestroyRemoteWithActiveRq)
		} else {
			count(stats.ClusterUpstreamCxDestroyLocalWithActiveRq)
		}
	}
	if pending {
		count(stats.ClusterUpstreamCxConnectFail)
		h.CxConnectFail.Add(1)
	}
	w.Stats.Record(s.Stats.Histogram(stats.ClusterUpstreamCxLengthMs), uint64(w.Now()-start)/uint64(time.Millisecond))
}

// OnClose implements conn.Handler: the end of the connection, whoever wanted it.
func (c *Conn) OnClose(why conn.Closed) {
	p := c.pool
	was := c.state
	p.w.Remove(&c.timer)
	if c.age != nil {
		p.w.Remove(c.age)
	}
	if c.alive != nil {
		p.w.Remove(&c.alive.timer)
	}
	if c.connected {
		c.endStreams(why.Remote)
	}
	busy := c.broken || c.active > 0
	c.state = closed
	c.move(nil)
	for c.active > 0 { // streams of which the codec did not report the end
		c.streamEnded()
	}
	p.breakers.Connections.Release()
	why.Remote = why.Remote || c.gone
	ended(p.w, p.s, p.host, &why, c.nc.Info.Start, was == connecting, busy)
	if c.connected {
		p.w.Stats.Record(p.s.Stats.Histogram(stats.ClusterUpstreamRqPerCx), c.streams)
		c.codec.Destroy()
		p.wake()
	} else {
		if p.protocol == HTTP2 {
			// Envoy makes the codec before the connection is up.
			p.w.Stats.Inc(stats.Cluster.Block(p.s.Stats, stats.ClusterHTTP2).Counter(stats.HTTP2Nghttp2UpstreamConnections))
		}
		p.room -= c.capacity()
		p.failAll(Failure(&why, c.timedOut, c.nc.Info.Ended().TransportFailure))
		p.connect()
	}
	p.checkEmpty()
}

// endStreams tells the streams of an established connection that it is over.
func (c *Conn) endStreams(remote bool) {
	if c.active == 0 {
		return
	}
	c.broken = c.broken || !c.gone
	c.unlist()
	if c.gone {
		return
	}
	if h, ok := c.codec.(*h1.Client); ok {
		h.Lost(remote)
		return
	}
	c.lostStreams()
	_ = c.codec.EOF()
}

// lostStreams counts the streams that a connection takes along, where Envoy counts those of HTTP/2.
func (c *Conn) lostStreams() {
	if c.protocol == http.HTTP2 && c.active > 0 {
		c.pool.w.Stats.Add(c.pool.s.Stats.Counter(stats.ClusterUpstreamRqPendingFailureEject), uint64(c.active))
	}
}

// Failure says in Envoy's words why an upstream connection could not be made: the reason, and the transport's account of it.
func Failure(why *conn.Closed, timedOut bool, transport string) (http.ResetReason, string) {
	switch {
	case timedOut:
		return http.ResetConnectionTimeout, transport
	case transport != "":
		return http.ResetRemoteConnectionFailure, transport
	case why.Errno != 0:
		return http.ResetRemoteConnectionFailure, "delayed connect error: " + strerror(why.Errno)
	case why.Remote:
		return http.ResetRemoteConnectionFailure, ""
	}
	return http.ResetLocalConnectionFailure, ""
}

// strerror is the C library's text for an error number, which Envoy prints: Go's with a capital letter.
func strerror(e syscall.Errno) string {
	b := []byte(e.Error())
	if len(b) > 0 && b[0] >= 'a' && b[0] <= 'z' {
		b[0] -= 'a' - 'A'
	}
	return string(b)
}

// onTimer is the connect timeout, or the idle timeout.
func (c *Conn) onTimer() {
	switch c.state {
	case connecting:
		c.timedOut = true
		c.count(stats.ClusterUpstreamCxConnectTimeout)
		c.close("")
	case open:
		c.count(stats.ClusterUpstreamCxIdleTimeout)
		c.close("")
	}
}

// onAge is the end of max_connection_duration.
func (c *Conn) onAge() {
	if c.state == open {
		c.count(stats.ClusterUpstreamCxMaxDurationReached)
		c.drain("")
	}
}
