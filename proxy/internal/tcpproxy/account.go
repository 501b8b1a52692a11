package tcpproxy

import (
	"time"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/network"
	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// counter is a session as what counts the bytes of a plain downstream connection.
type counter session

// OnRead implements conn.Counter. What is read is counted when it arrives here: listener filters may have read it before.
func (k *counter) OnRead(int) {}

// OnWritten implements conn.Counter.
func (k *counter) OnWritten(n int) {
	k.w.Stats.Add(k.cfg.Stats.Counter(stats.TCPDownstreamCxTxBytesTotal), uint64(n))
	k.seen = k.w.Now()
}

var bufferedGauges = [2]apistats.GaugeIndex{stats.TCPDownstreamCxRxBytesBuffered, stats.TCPDownstreamCxTxBytesBuffered}

// show keeps the gauge of what waits for the upstream (0) or the client (1). It follows the buffers when they pass a watermark:
// what is sent at the end of the pass was never worth showing.
func (s *session) show(i int, c *conn.Conn) {
	var now int64
	if c != nil {
		now = int64(c.Buffered())
	}
	g := s.cfg.Stats.Gauge(bufferedGauges[i])
	switch was := s.shown[i]; {
	case now > was:
		s.w.Stats.GaugeAdd(g, now-was)
	case now < was:
		s.w.Stats.GaugeSub(g, was-now)
	}
	s.shown[i] = now
}

// log writes a line to all access logs.
func (s *session) log(when accesslog.Type) {
	if len(s.cfg.Logs) > 0 {
		s.fill()
		s.cfg.Logs.Log(s.w, s.info, when)
	}
}

// fill brings what is known of the session up to date.
func (s *session) fill() {
	i := s.info
	i.TerminationDetails = i.Conn.Ended().TerminationDetails
	i.BytesReceived, i.BytesSent = s.down.in, s.up.in
	i.WireReceived, i.WireSent = s.down.in, s.up.in
	i.Upstream.WireSent, i.Upstream.WireRecv = s.down.in, s.up.in
}

// came counts bytes from one end.
func (d *side) came(n int) {
	s := d.s
	d.in += uint64(n)
	s.seen = s.w.Now()
	if d == &s.down {
		s.w.Stats.Add(s.cfg.Stats.Counter(stats.TCPDownstreamCxRxBytesTotal), uint64(n))
	}
}

func (s *session) onPeriodic() {
	s.log(accesslog.TCPPeriodic)
	s.w.Arm(s.periodic, s.cfg.LogInterval)
}

// onIdle ends a session in which nothing moved for long enough. Moving bytes does not touch the timer: it looks when it fires.
func (s *session) onIdle() {
	if left := s.cfg.IdleTimeout - time.Duration(s.w.Now()-s.seen); left > 0 {
		s.w.Arm(&s.idle, left)
		return
	}
	s.count(stats.TCPIdleTimeout)
	s.endLocally(reasonIdle)
}

func (s *session) onMaxDuration() {
	s.info.Flags.Set(stream.DurationTimeout)
	s.count(stats.TCPMaxDownstreamConnectionDuration)
	s.endLocally(reasonMaxDuration)
}

// endLocally closes both ends for a reason of ours.
func (s *session) endLocally(reason string) {
	if u := s.info.Upstream.Conn; u != nil {
		u.SetEnd().CloseReason = reason
	}
	s.closeDown(network.NoFlush, reason)
}
