package hcm

import (
	"strings"
	"time"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	aroute "github.com/dragoman-proxy/dragoman/api/route"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Stream is one request of a downstream connection: it takes the codec's events, applies the header rules, and owns the filter
// manager's stream. Streams are reused; one that is done is put back at the end of the pass, when nothing of it is on the stack.
// owner: the connection's worker.
type Stream struct {
	h          *Conn
	enc        codec.ServerStream
	next, prev *Stream

	fm    fm.Stream
	inf   stream.Info
	arena http.Arena
	req   http.HeaderMap
	reply *http.HeaderMap // of a local reply; nil mostly

	table *route.Table // until the route is settled
	route *route.Entry

	idleTimeout int64 // ns, of this stream
	idle        event.Timer
	// Timers that few requests need are made when they do.
	request     *event.Timer // request_timeout, request_headers_timeout
	maxDuration *event.Timer
	periodic    *event.Timer // access_log_flush_interval

	streamState
}

// streamState is what is zero at the beginning of each stream.
type streamState struct {
	// random is one number for all decisions of this request.
	random uint64
	// holds counts how often this stream holds its HTTP/1 connection's reading back.
	holds int32

	// lookups are of the route, and lookupTime how long they took; counted on request only.
	lookups    int32
	lookupTime int64

	routed       bool
	decoding     bool
	requestDone  bool // the whole request has arrived
	responseDone bool // the whole response was encoded
	sentHeaders  bool
	lingers      bool // the response has ended and waits for the client's windows
	isHead       bool
	upgrade      bool // the request asks for another protocol
	upgraded     bool // and may have it
	connect      bool
	grpc         bool
	internal     bool
	noProto      bool // x-forwarded-proto is empty: such requests have no route
	closeAfter   bool // the connection ends with this stream
	untilClose   bool // as the body does
	wired        bool // what it took on the wire has been noted
	broken       bool // the request is no valid one: its log says so, its reply not yet
	dead         bool
	filters      bool
	localReply   bool
	again        bool // the stream is to start anew
	// operation is what clients or upstreams are told that the request is called.
	operation string
	// kept is the body for that.
	kept *buffer.Buffer
}

func (s *Stream) begin(h *Conn, enc codec.ServerStream) {
	w := h.w
	s.h, s.enc = h, enc
	s.arena.Init(&w.Arenas)
	s.req.Init(&s.arena)
	s.beginInfo()
	s.streamState = streamState{}
	cfg := h.cfg
	s.idleTimeout = int64(cfg.StreamIdleTimeout)
	s.touch()
	switch {
	case cfg.RequestHeadersTimeout > 0:
		s.arm(&s.request, (*Stream).onRequestTimeout, cfg.RequestHeadersTimeout)
	case cfg.RequestTimeout > 0:
		s.arm(&s.request, (*Stream).onRequestTimeout, cfg.RequestTimeout)
	}
	if cfg.MaxStreamDuration > 0 {
		s.arm(&s.maxDuration, (*Stream).onMaxDuration, cfg.MaxStreamDuration)
	}
	if cfg.LogInterval > 0 {
		s.arm(&s.periodic, (*Stream).onPeriodic, cfg.LogInterval)
	}
	s.countBegin()
}

// beginInfo forgets what was known of an earlier stream.
func (s *Stream) beginInfo() {
	w := s.h.w
	s.inf.Reset()
	s.inf.Start, s.inf.StartWall = w.Now(), w.Wall()
	s.inf.Conn, s.inf.Protocol = &s.h.c.Info, s.h.proto
	s.inf.Static = s
}

func (s *Stream) countBegin() {
	st, cfg := s.h.w.Stats, s.h.cfg
	st.Inc(cfg.Stats.Counter(stats.HCMDownstreamRqTotal))
	st.GaugeAdd(cfg.Stats.Gauge(stats.HCMDownstreamRqActive), 1)
	if s.h.isH2 {
		st.Inc(cfg.Stats.Counter(stats.HCMDownstreamRqHttp2Total))
	} else {
		st.Inc(cfg.Stats.Counter(stats.HCMDownstreamRqHttp1Total))
	}
}

// touch puts the idle timeout off: something moved.
func (s *Stream) touch() {
	if s.idleTimeout > 0 {
		s.h.w.Arm(&s.idle, time.Duration(s.idleTimeout))
	}
}

// DecodeHeaders is the codec's call: the request's head is here.
func (s *Stream) DecodeHeaders(head *http.HeaderMap, end bool) {
	h, cfg := s.h, s.h.cfg
	s.decoding = true
	if cfg.RequestHeadersTimeout > 0 {
		h.w.Disarm(s.request)
		if cfg.RequestTimeout > 0 && !end {
			s.arm(&s.request, (*Stream).onRequestTimeout, cfg.RequestTimeout)
		}
	}
	if end {
		s.endRequest()
	}
	if !h.isH2 && h.codec.Protocol() == http.HTTP10 && !s.acceptOld(head) {
		return
	}
	s.inf.RequestHeaders = head
	s.touch()
	s.random = h.w.Rand.Uint64()
	s.isHead = head.Get(http.Method) == "HEAD"
	s.grpc = head.Has(http.ContentType) && isGRPC(head.Get(http.ContentType)) && head.Has(http.Path)
	s.closeAfter = s.closeAfter || !h.isH2 && s.enc.CloseAfter()
	s.table = cfg.table(head)
	if !s.acceptable(head) || !s.mutate(head) {
		return
	}
	s.lookup()
	if cfg.Tracing != nil {
		s.trace(head)
	}
	chain := cfg.Chain
	allowed := true
	if s.upgrade || s.connect {
		allowed, chain = s.mayUpgrade(head)
	}
	s.filters = true
	s.fm.Init(s, chain, s.bufferLimit())
	if cfg.LogStart {
		cfg.Logs.Log(h.w, &s.inf, accesslog.DownstreamStart)
	}
	if !allowed {
		// What the client sends next may be of the other protocol, so nothing more is read.
		s.closeAfter = true
		if h.isH2 {
			h.startDrain()
		}
		h.w.Stats.Inc(cfg.Stats.Counter(stats.HCMDownstreamRqWsOnNonWsRoute))
		s.directReply(403, "", "upgrade_failed")
		return
	}
	s.fm.DecodeHeaders(head, end)
	s.keepRoute()
}

// keepRoute lets go of the table when the router has the head: a long stream holds on to its route, not to the configuration that it
// began under. Should a filter ask for the route anew after that, it is looked up in what there is then.
func (s *Stream) keepRoute() {
	if s.routed && s.fm.Arrived() {
		s.table = nil
	}
}

// bufferLimit is the stream's limit in bytes, 0 for none: that of the route, or of the connection. A stream of HTTP/2 has its window
// instead.
func (s *Stream) bufferLimit() int {
	if s.route != nil && s.route.BufferLimit > 0 {
		return s.route.BufferLimit
	}
	if s.h.isH2 {
		return int(s.h.cfg.H2.InitialStreamWindow)
	}
	return s.h.cfg.BufferLimit
}

func (s *Stream) endRequest() {
	s.requestDone = true
	s.inf.RequestDone = s.h.w.Now()
	s.h.w.Disarm(s.request)
}

// DecodeData is the codec's call: body bytes.
func (s *Stream) DecodeData(data *buffer.Buffer, end bool) {
	if s.dead {
		return
	}
	s.touch()
	s.inf.BytesReceived += uint64(data.Len())
	if end {
		s.endRequest()
	}
	if !s.filters || s.localReply {
		data.Reset()
		s.maybeFinish()
		return
	}
	s.fm.DecodeData(data, end)
	s.maybeFinish()
}

// DecodeTrailers is the codec's call: the request ends with trailers.
func (s *Stream) DecodeTrailers(t *http.HeaderMap) {
	if s.dead {
		return
	}
	s.touch()
	s.endRequest()
	s.inf.RequestTrailers = t
	if s.filters && !s.localReply {
		s.fm.DecodeTrailers(t)
	}
	s.maybeFinish()
}

// DecodeError is the codec's call: the request is broken; say so.
func (s *Stream) DecodeError(err *codec.Err) {
	if s.dead {
		return
	}
	s.broken = true
	if s.sentHeaders {
		s.inf.Details = err.Details
		s.Reset(http.ResetLocal)
		return
	}
	s.directReply(err.Status, err.Body, err.Details)
}

// OnReset is the codec's call: the client gave the stream up.
func (s *Stream) OnReset(reason http.ResetReason, details string) {
	if s.dead {
		return
	}
	st := s.h.w.Stats
	st.Inc(s.h.cfg.Stats.Counter(stats.HCMDownstreamRqRxReset))
	if details != "" {
		s.inf.Details = details
	}
	switch {
	case reason == http.ResetRemote && details == "":
		// NO_ERROR: the client has enough of it.
	case reason == http.ResetRemote || reason == http.ResetRemoteRefused || reason == http.ResetConnectError:
		s.inf.Flags.Set(stream.DownstreamRemoteReset)
		if s.inf.Details == "" || s.inf.Details == unknownError && !s.sentHeaders {
			s.inf.Details = "http2.remote_reset"
			if reason == http.ResetRemoteRefused {
				s.inf.Details = "http2.remote_refuse"
			}
		}
	case reason == http.ResetProtocolError:
		s.inf.Flags.Set(stream.DownstreamProtocolError)
		s.h.brokenBusy = s.h.brokenBusy || details != "http2.remote_reset"
	case reason == http.ResetLocal && details != "":
		s.inf.Flags.Set(stream.DownstreamProtocolError)
	}
	h := s.h
	s.finish()
	h.checkPremature()
}

// unknownError are the details of what the codec's library finds by itself.
const unknownError = "http2.unknown.nghttp2.error"

// onConnectionEnd: the connection dies under the stream.
func (s *Stream) onConnectionEnd(reason http.ResetReason, cause *codec.Err) {
	if s.dead {
		return
	}
	if s.responseDone {
		// The answer is out and only the rest of the request was missing.
		s.finish()
		return
	}
	s.h.w.Stats.Inc(s.h.cfg.Stats.Counter(stats.HCMDownstreamRqRxReset))
	switch {
	case cause != nil:
		s.inf.Flags.Set(stream.DownstreamProtocolError)
		if cause.Details != "" {
			s.inf.Details = cause.Details
		}
	default:
		s.inf.Flags.Set(stream.DownstreamConnectionTermination)
		s.inf.Details = "downstream_remote_disconnect"
		if reason := s.h.c.Info.Ended().CloseReason; reason != "" {
			s.inf.Details = "downstream_local_disconnect(" + strings.ReplaceAll(reason, " ", "_") + ")"
		}
	}
	s.finish()
}

// OnAboveHighWatermark and OnBelowLowWatermark are the codec's: the client does not keep up with this stream.
func (s *Stream) OnAboveHighWatermark() {
	if s.filters && !s.dead {
		s.fm.OnAboveHighWatermark()
	}
}

// OnBelowLowWatermark is the opposite.
func (s *Stream) OnBelowLowWatermark() {
	if s.filters && !s.dead {
		s.fm.OnBelowLowWatermark()
	}
}

// OnEncodeComplete is the codec's: the response is encoded whole.
func (s *Stream) OnEncodeComplete() {
	if s.dead {
		return
	}
	s.responseDone = true
	s.inf.ResponseDone = s.h.w.Now()
	s.maybeFinish()
}

// The methods below make Stream the fm.Owner.

// Worker returns the stream's worker.
func (s *Stream) Worker() *event.Worker { return s.h.w }

// Info returns what is known of the stream.
func (s *Stream) Info() *stream.Info { return &s.inf }

// Connection returns the downstream connection.
func (s *Stream) Connection() network.Connection { return (*netConn)(s.h) }

// Arena returns the memory of the stream's headers.
func (s *Stream) Arena() *http.Arena { return &s.arena }

// Route returns the request's route, nil if there is none.
func (s *Stream) Route() aroute.Entry {
	if !s.routed {
		s.lookup()
	}
	if s.route == nil {
		return nil
	}
	return s.route
}

// ClearRouteCache makes the next Route look it up again.
func (s *Stream) ClearRouteCache() { s.routed = false }

// ReadDisable holds the client back.
func (s *Stream) ReadDisable(disable bool) {
	if s.dead {
		return
	}
	i := stats.HCMDownstreamFlowControlResumedReadingTotal
	if disable {
		i = stats.HCMDownstreamFlowControlPausedReadingTotal
	}
	s.h.w.Stats.Inc(s.h.cfg.Stats.Counter(i))
	if s.h.isH2 {
		s.enc.ReadDisable(disable)
		return
	}
	switch {
	case disable && !s.requestDone:
		s.holds++
		s.h.c.ReadDisable(true)
	case !disable && s.holds > 0:
		s.holds--
		s.h.c.ReadDisable(false)
	}
}

// letRead lifts what the stream's filters have left held back: the connection's next request must not wait for them.
func (s *Stream) letRead() {
	for ; s.holds > 0 && !s.h.closing; s.holds-- {
		s.h.c.ReadDisable(false)
	}
	s.holds = 0
}

// TooLarge counts bodies that are more than a filter may buffer.
func (s *Stream) TooLarge(request bool) {
	if request {
		s.EndConnection()
		s.h.w.Stats.Inc(s.h.cfg.Stats.Counter(stats.HCMDownstreamRqTooLarge))
		return
	}
	s.h.w.Stats.Inc(s.h.cfg.Stats.Counter(stats.HCMRsTooLarge))
}

// EndConnection ends an HTTP/1 connection with its stream. Envoy's codec tells of a body before it tells of its end, so that what a
// body causes always comes before the request's end.
func (s *Stream) EndConnection() { s.closeAfter = s.closeAfter || !s.h.isH2 }

// Send starts a call of a filter.
func (s *Stream) Send(c *filter.Call, done func(*filter.Answer, error)) filter.Canceler {
	if s.h.cfg.Calls == nil {
		s.h.w.Post(func() { done(nil, filter.ErrNoCluster) })
		return noCall{}
	}
	return s.h.cfg.Calls.Send(s.h.w, c, done)
}

// noCall is a call that was never made.
type noCall struct{}

func (noCall) Cancel() {}
