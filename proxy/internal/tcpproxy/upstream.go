package tcpproxy

import (
	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// pick chooses the cluster.
func (s *session) pick() *cluster.Cluster {
	c := s.cfg
	var slot *cluster.Slot
	named := s.named()
	switch {
	case named != "":
		if slot = c.lookup(named); slot == nil {
			s.info.ClusterName, s.info.ClusterNameRaw = named, named
		}
	case len(c.targets) == 1:
		slot = c.targets[0].slot
	case c.total > 0:
		n := s.w.Rand.Uint64() % c.total
		for i := range c.targets {
			if n < c.targets[i].upTo {
				slot = c.targets[i].slot
				break
			}
		}
	}
	if slot == nil {
		return nil
	}
	s.info.ClusterName, s.info.ClusterNameRaw = slot.Name(), slot.Name()
	return slot.Load()
}

// named returns the cluster that a filter before the proxy has chosen.
func (s *session) named() string {
	if !s.info.Conn.HasFilterState() {
		return ""
	}
	v, _ := s.info.Conn.FilterState().Get(network.TCPProxyCluster)
	name, _ := v.(string)
	return name
}

// connect begins an attempt to connect to an upstream host.
func (s *session) connect() {
	w := s.w
	cl := s.pick()
	if cl == nil {
		s.count(stats.TCPDownstreamCxNoRoute)
		s.fail(stream.NoClusterFound, noRoute)
		return
	}
	s.cluster = cl
	s.info.ClusterName = cl.ObservabilityName()
	if cl.Resources(0).Connections.Full() {
		w.Stats.Inc(cl.Stats().Counter(stats.ClusterUpstreamCxOverflow))
		s.fail(stream.UpstreamOverflow, resourceLimit)
		return
	}
	if s.attempts >= s.cfg.MaxAttempts {
		w.Stats.Inc(cl.Stats().Counter(stats.ClusterUpstreamCxConnectAttemptsExceeded))
		s.fail(stream.UpstreamRetryLimitExceeded, connectFailed)
		return
	}
	ctx := lb.Context{W: w, Info: s.info}
	ctx.Hash, ctx.HasHash = s.cfg.hash(s.info.Conn)
	h := cl.Pick(&ctx)
	if h == nil {
		w.Stats.Inc(cl.Stats().Counter(stats.ClusterUpstreamCxNoneHealthy))
		s.fail(stream.NoHealthyUpstream, noHealthy)
		return
	}
	s.attempts++
	s.info.Attempts = s.attempts
	t, _ := cl.DialTCP(w, h, 0, (*upstream)(s))
	if t == nil {
		s.setHost(nil)
		s.connect() // the limits will say why not
		return
	}
	s.setHost(h)
	s.tcp, s.connecting = t, true
	s.up.c, s.up.gone = t.NetConn(), false
	s.up.c.EnableHalfClose()
}

func (s *session) setHost(h *host.Host) {
	s.host = h
	if h == nil {
		s.info.Upstream.Host, s.info.Upstream.HostName = network.Address{}, ""
		return
	}
	s.info.Upstream.Host, s.info.Upstream.HostName = h.Current(), h.Name()
}

// fail ends a session that gets no upstream connection.
func (s *session) fail(f stream.Flag, why string) {
	s.info.Flags.Set(f)
	s.closeDown(network.NoFlush, why)
}

// upstream is a session as the handler of its upstream connection.
type upstream session

// OnConnected implements conn.Handler.
func (u *upstream) OnConnected() {
	s := (*session)(u)
	s.connecting, s.ready = false, true
	s.result(host.ConnectSuccess)
	i, c := s.info, s.up.c
	i.Upstream.Local = c.Worker().Driver.LocalAddress(c.Handle())
	c.Info.Local = i.Upstream.Local
	i.Upstream.Conn, i.Upstream.ConnID = &c.Info, c.Info.ID
	i.Upstream.ConnStart, i.Upstream.PoolReady = c.Info.Start, s.w.Now()
	if s.down.c == nil || !s.down.c.IsOpen() {
		c.Close(network.NoFlush, reasonDownRemote)
		return
	}
	s.mayServe()
	s.seen = s.w.Now()
	if s.cfg.IdleTimeout > 0 {
		s.w.Arm(&s.idle, s.cfg.IdleTimeout)
	}
	if s.cfg.LogConnected {
		s.log(accesslog.TCPUpstreamConnected)
	}
	if s.down.c.Above() {
		c.ReadDisable(true)
	}
	if s.held {
		s.held = false
		s.down.c.ReadDisable(false)
	}
	if s.down.c.Unread() > 0 {
		s.down.c.Redeliver()
	}
}

// mayServe finds out whether the kernel may move the bytes.
func (s *session) mayServe() {
	limit := func(n int) bool { return n == 0 || n >= minSpliceLimit }
	ok := s.l.splicer != nil && s.down.c.MaySplice() && s.up.c.MaySplice() &&
		limit(s.cfg.BufferLimit) && limit(s.cluster.PerConnectionBufferLimit())
	s.down.splice, s.up.splice = ok, ok
}

func (s *session) result(r host.Result) {
	if m := s.host.Monitor; m != nil {
		m.PutResult(r)
	}
}

// OnData implements conn.Handler.
func (u *upstream) OnData(b []byte) int {
	s := (*session)(u)
	n := s.up.data(b)
	if s.down.c != nil && s.down.c.Transport() != nil {
		s.w.Stats.Add(s.cfg.Stats.Counter(stats.TCPDownstreamCxTxBytesTotal), uint64(n))
	}
	return n
}

// OnEOF implements conn.Handler.
func (u *upstream) OnEOF() {
	u.seen = u.w.Now()
	u.up.onEOF()
}

// OnHighWatermark implements conn.Handler: the upstream does not keep up, so do not read from the client.
func (u *upstream) OnHighWatermark() {
	s := (*session)(u)
	s.show(0, s.up.c)
	if s.down.c != nil {
		s.paused()
		s.down.c.ReadDisable(true)
	}
}

// OnLowWatermark implements conn.Handler.
func (u *upstream) OnLowWatermark() {
	s := (*session)(u)
	s.show(0, s.up.c)
	if s.down.c != nil {
		s.count(stats.TCPDownstreamFlowControlResumedReadingTotal)
		s.down.c.ReadDisable(false)
	}
}

func (s *session) paused() { s.count(stats.TCPDownstreamFlowControlPausedReadingTotal) }

// OnClose implements conn.Handler.
func (u *upstream) OnClose(why conn.Closed) {
	s := (*session)(u)
	s.up.c, s.up.gone = nil, true
	s.down.drop()
	s.show(0, nil)
	if s.flushing {
		s.flushing = false
		s.w.Stats.GaugeSub(s.cfg.Stats.Gauge(stats.TCPUpstreamFlushActive), 1)
	}
	if s.down.c == nil {
		s.up.drop()
		return
	}
	if s.connecting {
		s.connecting = false
		s.connectFailed()
		return
	}
	if why.Reset && why.Remote {
		s.info.Flags.Set(stream.UpstreamRemoteReset)
		s.up.drop()
		s.closeDown(network.Abort, "")
		return
	}
	if s.up.n == 0 {
		s.passClose(&s.up)
	}
}

// connectFailed goes on after an attempt that failed.
func (s *session) connectFailed() {
	reason, text := s.tcp.Failure()
	u := &s.info.Upstream
	u.Failure = text
	if len(u.Tried) < stream.MaxTried {
		u.Tried = append(u.Tried, stream.Tried{Host: u.Host, HostName: u.HostName})
	}
	s.tcp = nil
	switch reason {
	case http.ResetConnectionTimeout:
		s.info.Flags.Set(stream.UpstreamConnectionFailure)
		s.result(host.ConnectTimeout)
	case http.ResetRemoteConnectionFailure:
		s.info.Flags.Set(stream.UpstreamConnectionFailure)
		s.result(host.ConnectFailed)
	}
	if s.down.c != nil && s.down.c.IsOpen() {
		s.connect()
	}
}
