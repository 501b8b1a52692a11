package hcm

import (
	"bytes"
	"strconv"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Conn is one downstream HTTP connection. It is what its conn.Conn serves, and what its codec reports new requests to.
// owner: the connection's worker.
type Conn struct {
	cfg   *Config
	c     *conn.Conn
	w     *event.Worker
	codec codec.ServerConn
	one   h1.Server // the codec of HTTP/1
	l     *local

	first, last *Stream // streams in progress
	active      int
	requests    int
	remoteText  string     // the peer's IP as text, made on first use
	cert        *certTexts // the client's certificate for x-forwarded-client-cert, made on first use
	ping        *pinger

	idle     event.Timer // no stream for IdleTimeout
	duration *event.Timer
	// drainTimer ends the drain sequence.
	drainTimer *event.Timer

	done      uint64 // requests that are over
	premature uint64 // of them, those that were reset early and without an answer

	proto       http.Proto
	isH2        bool
	draining    bool // no further requests: close when the last stream is done
	noticed     bool // the drain sequence has begun
	soft        bool // HTTP/1: the next response is the last
	broken      bool // the codec has failed
	brokenBusy  bool // and has told streams so, which are over since
	closing     bool
	secure      bool // counted as a TLS connection
	dispatching bool // the codec is at work
}

// NewConn returns the handler of an accepted connection. Call Start of the conn.Conn with it.
func NewConn(cfg *Config, c *conn.Conn) *Conn {
	h := &Conn{cfg: cfg, c: c, w: c.Worker()}
	h.l = locals.Get(h.w)
	h.idle.Fn = h.onIdle
	c.SetLimit(cfg.BufferLimit)
	if cfg.H1.MaxHeadBytes > 0 {
		c.SetMaxUnread(cfg.H1.MaxHeadBytes + event.ReadBufferSize)
	}
	s := h.w.Stats
	s.Inc(cfg.Stats.Counter(stats.HCMDownstreamCxTotal))
	s.GaugeAdd(cfg.Stats.Gauge(stats.HCMDownstreamCxActive), 1)
	return h
}

// OnNewConnection counts a TLS connection, of which the handshake is still to come.
func (h *Conn) OnNewConnection() {
	if h.c.Transport() != nil {
		h.secure = true
		h.w.Stats.Inc(h.cfg.Stats.Counter(stats.HCMDownstreamCxSslTotal))
		h.w.Stats.GaugeAdd(h.cfg.Stats.Gauge(stats.HCMDownstreamCxSslActive), 1)
	}
}

// OnConnected starts the clocks. The codec comes with the first byte: a connection that says nothing is of no protocol yet.
func (h *Conn) OnConnected() {
	cfg := h.cfg
	h.armIdle()
	if cfg.MaxConnectionDuration > 0 {
		h.duration = &event.Timer{Fn: h.onMaxDuration}
		h.w.Arm(h.duration, cfg.MaxConnectionDuration)
	}
}

// detect starts the codec for the first bytes. false: it takes more of them to tell.
func (h *Conn) detect(b []byte) bool {
	switch {
	case h.cfg.Codec == HTTP2 || h.cfg.Codec != HTTP1 && h.c.Info.Protocol == "h2":
		h.start(true)
	case h.cfg.Codec == HTTP1 || h.c.Info.Protocol != "":
		h.start(false)
	default:
		k := min(len(b), len(preface))
		same := bytes.Equal(b[:k], preface[:k])
		if same && k < len(preface) {
			return false
		}
		h.start(same)
	}
	return true
}

func (h *Conn) start(isH2 bool) {
	st := h.w.Stats
	h.isH2, h.proto = isH2, http.HTTP11
	if isH2 {
		h.proto = http.HTTP2
	}
	if i := h.c.Watched(); i != nil {
		i.Protocol = h.proto
	}
	if isH2 {
		st.Inc(h.cfg.Stats.Counter(stats.HCMDownstreamCxHttp2Total))
		st.GaugeAdd(h.cfg.Stats.Gauge(stats.HCMDownstreamCxHttp2Active), 1)
		st.Inc(h.cfg.H2Stats.Counter(stats.HTTP2InUse))
		c := h2.NewServer(h, h.c, &h.l.h2, &h.cfg.H2)
		h.codec = c
		if h.cfg.Keepalive != nil {
			h.ping = newPinger(h, h.cfg.Keepalive, c)
		}
		return
	}
	st.Inc(h.cfg.Stats.Counter(stats.HCMDownstreamCxHttp1Total))
	st.GaugeAdd(h.cfg.Stats.Gauge(stats.HCMDownstreamCxHttp1Active), 1)
	st.Inc(h.cfg.H1Stats.Counter(stats.HTTP1InUse))
	h.one.Init(h, h.c, &h.cfg.H1, &h.l.h1)
	if h.c.Info.TLS != nil {
		h.one.SetSecure()
	}
	h.codec = &h.one
}

var preface = []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

// OnData gives bytes to the codec.
func (h *Conn) OnData(b []byte) int {
	if h.codec == nil && !h.detect(b) {
		return 0
	}
	if h.broken {
		return len(b)
	}
	h.dispatching = true
	n, err := h.codec.Dispatch(b)
	h.dispatching = false
	h.w.Stats.Add(h.cfg.Stats.Counter(stats.HCMDownstreamCxRxBytesTotal), uint64(n))
	if err != nil {
		h.onCodecError(err)
		return len(b)
	}
	return n
}

// onCodecError: the connection can carry no further request. What the codec wrote (GOAWAY), or an error response that a stream
// sent, still goes out.
func (h *Conn) onCodecError(err error) {
	h.broken = true
	e, ok := err.(*codec.Err)
	if !ok {
		e = &codec.Err{Text: err.Error(), Reason: http.ResetProtocolError}
	}
	if !e.Flood {
		h.w.Stats.Inc(h.cfg.Stats.Counter(stats.HCMDownstreamCxProtocolError))
	}
	h.countCodec(e)
	if h.closing {
		return
	}
	h.closing = true
	h.destroyedBusy(false)
	if h.active == 0 && h.brokenBusy {
		h.countBusy(false)
	}
	h.resetAll(http.ResetProtocolError, e)
	h.c.CloseDelayed("", h.cfg.DelayedCloseTimeout)
}

// destroyedBusy counts that the connection ends while requests are in progress.
func (h *Conn) destroyedBusy(remote bool) {
	if h.active > 0 {
		h.countBusy(remote)
	}
}

func (h *Conn) countBusy(remote bool) {
	st, base := h.w.Stats, &h.cfg.Stats
	st.Inc(base.Counter(stats.HCMDownstreamCxDestroyActiveRq))
	if remote {
		st.Inc(base.Counter(stats.HCMDownstreamCxDestroyRemoteActiveRq))
	} else {
		st.Inc(base.Counter(stats.HCMDownstreamCxDestroyLocalActiveRq))
	}
}

// resetAll ends all streams because the connection dies, the newest first as in Envoy. cause is nil when it was the peer's doing.
func (h *Conn) resetAll(reason http.ResetReason, cause *codec.Err) {
	for s := h.last; s != nil; {
		prev := s.prev
		s.onConnectionEnd(reason, cause)
		s = prev
	}
}

// OnEOF: the client sends no more. HTTP knows no half-closed clients: the connection closes right after.
func (h *Conn) OnEOF() {
	if h.codec != nil && !h.broken {
		if err := h.codec.EOF(); err != nil && h.active > 0 {
			h.broken = true
		}
	}
}

// OnHighWatermark and OnLowWatermark pass on that the client does not keep up.
func (h *Conn) OnHighWatermark() {
	if h.codec != nil {
		h.codec.OnHighWatermark()
	}
}

// OnLowWatermark is the opposite.
func (h *Conn) OnLowWatermark() {
	if h.codec != nil {
		h.codec.OnLowWatermark()
	}
}

// OnClose ends what is left.
func (h *Conn) OnClose(why conn.Closed) {
	st, base := h.w.Stats, &h.cfg.Stats
	h.closing = true
	h.destroyedBusy(why.Remote)
	h.resetAll(http.ResetConnectionTermination, nil)
	if h.codec != nil {
		h.codec.Destroy()
		if h.isH2 {
			st.GaugeSub(base.Gauge(stats.HCMDownstreamCxHttp2Active), 1)
		} else {
			st.GaugeSub(base.Gauge(stats.HCMDownstreamCxHttp1Active), 1)
		}
	}
	if h.c.Transport() != nil && !h.secure { // it failed at the first bytes
		st.Inc(base.Counter(stats.HCMDownstreamCxSslTotal))
	}
	if h.secure {
		st.GaugeSub(base.Gauge(stats.HCMDownstreamCxSslActive), 1)
	}
	if why.Delayed {
		st.Inc(base.Counter(stats.HCMDownstreamCxDelayedCloseTimeout))
	}
	if h.soft {
		st.GaugeSub(base.Gauge(stats.HCMDownstreamCxHttp1SoftDrain), 1)
	}
	st.Inc(base.Counter(stats.HCMDownstreamCxDestroy))
	if why.Remote {
		st.Inc(base.Counter(stats.HCMDownstreamCxDestroyRemote))
	} else {
		st.Inc(base.Counter(stats.HCMDownstreamCxDestroyLocal))
	}
	st.GaugeSub(base.Gauge(stats.HCMDownstreamCxActive), 1)
	st.Record(base.Histogram(stats.HCMDownstreamCxLengthMs), uint64(h.w.Now()-h.c.Info.Start)/1e6)
	h.w.Remove(&h.idle)
	if h.ping != nil {
		h.w.Remove(&h.ping.timer)
	}
	for _, t := range []*event.Timer{h.duration, h.drainTimer} {
		if t != nil {
			h.w.Remove(t)
		}
	}
}

// NewStream is the codec's call for a request that begins.
func (h *Conn) NewStream(enc codec.ServerStream) (codec.RequestDecoder, *http.HeaderMap) {
	s := h.l.get()
	s.begin(h, enc)
	if h.last == nil {
		h.first = s
	} else {
		h.last.next, s.prev = s, h.last
	}
	h.last = s
	h.active++
	h.requests++
	h.w.Disarm(&h.idle)
	if m := h.cfg.MaxRequests; m > 0 && h.requests >= m {
		h.w.Stats.Inc(h.cfg.Stats.Counter(stats.HCMDownstreamCxMaxRequestsReached))
		if h.isH2 {
			h.startDrain()
		} else {
			h.draining, s.closeAfter = true, true
		}
	}
	return s, &s.req
}

// OnGoAway: the client opens no more streams.
func (h *Conn) OnGoAway() {}

// remove takes a finished stream out of the list, and closes the connection if it was the last of a draining one.
func (h *Conn) remove(s *Stream) {
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		h.first = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	} else {
		h.last = s.prev
	}
	s.next, s.prev = nil, nil
	h.active--
	if h.active > 0 || h.closing {
		return
	}
	if h.draining {
		h.ended(s)
		return
	}
	h.armIdle()
	if h.c.Unread() > 0 {
		h.c.Redeliver()
	}
}

// countCodec counts an error of the HTTP/1 codec; HTTP/2 counts its own.
func (h *Conn) countCodec(e *codec.Err) {
	if e.Stat == "" || h.isH2 {
		return
	}
	for i, st := range stats.HTTP1.Stats() {
		if st.Name == e.Stat {
			h.w.Stats.Inc(h.cfg.H1Stats.Counter(astats.CounterIndex(i)))
			return
		}
	}
}

// remote returns the peer's IP as text.
func (h *Conn) remote() string {
	if h.remoteText == "" {
		h.remoteText = string(h.c.Info.Remote.AppendIP(nil))
	}
	return h.remoteText
}

// netConn is the network.Connection that filters get.
type netConn Conn

// Write is for network filters; an HTTP connection writes through its codec only.
func (n *netConn) Write(data *buffer.Buffer, end bool) { data.Reset() }

func (n *netConn) Info() *network.ConnInfo { return &n.c.Info }

func (n *netConn) Close(t network.CloseType, reason string) {
	n.closing = true
	n.c.Close(t, reason)
}
func (n *netConn) ReadDisable(disable bool) { n.c.ReadDisable(disable) }
func (n *netConn) SetBufferLimit(bytes int) { n.c.SetLimit(bytes) }
func (n *netConn) AboveHighWatermark() bool { return n.c.Above() }
func portOf(a network.Address) string       { return strconv.Itoa(int(a.IP.Port())) }

// Next: proxy/internal/codec/h2/session.go
