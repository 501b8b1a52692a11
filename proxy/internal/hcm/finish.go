package hcm

import (
	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/http"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// maybeFinish ends the stream once both sides are complete. A response that is complete before its request ends the stream too:
// nobody wants the rest of the body (RFC 9110, section 7.5; RFC 9113, section 8.1).
func (s *Stream) maybeFinish() {
	if s.dead || !s.responseDone {
		return
	}
	if s.requestDone {
		s.finish()
		return
	}
	h := s.h
	h.w.Stats.Inc(h.cfg.Stats.Counter(stats.HCMDownstreamRqRxReset)) // as Envoy counts its own resets, too
	if h.isH2 {
		// The rest of the request is not wanted: RST_STREAM with NO_ERROR after the complete response.
		s.noteWire()
		s.enc.Reset(s.tunnelReset(http.ResetNone))
		s.finish()
		return
	}
	s.finish()
	h.draining = true
	h.close("")
}

// Reset ends the stream at once, telling the client by a reset (HTTP/1: by the end of the connection).
func (s *Stream) Reset(reason http.ResetReason) {
	if s.dead {
		return
	}
	s.h.w.Stats.Inc(s.h.cfg.Stats.Counter(stats.HCMDownstreamRqTxReset))
	h := s.h
	h.w.Stats.Inc(h.cfg.Stats.Counter(stats.HCMDownstreamRqRxReset))
	s.noteWire()
	s.enc.Reset(s.tunnelReset(reason))
	s.finish()
	if !h.isH2 {
		h.draining = true
		h.close("")
	}
}

// tunnelReset is the reason to reset a stream by, which for a tunnel is CONNECT_ERROR if the connection at the other end failed (RFC 9113,
// section 8.5).
func (s *Stream) tunnelReset(reason http.ResetReason) http.ResetReason {
	if s.h.isH2 && (s.connect || s.upgrade) && (s.inf.Flags.Has(stream.UpstreamConnectionFailure) || s.inf.Flags.Has(stream.UpstreamConnectionTermination)) {
		return http.ResetConnectError
	}
	return reason
}

// finish is the end of a request: filters are told, the numbers counted, the log written, everything given back.
func (s *Stream) finish() {
	if s.dead {
		return
	}
	s.dead = true
	h := s.h
	w := h.w
	w.Disarm(&s.idle)
	w.Disarm(s.request)
	w.Disarm(s.maxDuration)
	w.Disarm(s.periodic)
	if s.broken {
		s.inf.Flags.Set(stream.DownstreamProtocolError)
	}
	s.account()
	if k := s.kept; k != nil {
		k.Reset()
	}
	if s.upgraded {
		w.Stats.GaugeSub(h.cfg.Stats.Gauge(stats.HCMDownstreamCxUpgradesActive), 1)
	}
	h.over(s)
	h.remove(s)
	h.l.bury(s)
}

// noteWire notes what the stream took on the wire: a codec's stream that was reset does not know it any more.
func (s *Stream) noteWire() {
	wire := s.enc.WireBytes()
	s.inf.WireReceived, s.inf.WireSent = wire.Received, wire.Sent
	s.inf.HeaderReceived, s.inf.HeaderSent = wire.HeaderReceived, wire.HeaderSent
	s.wired = true
}

// account is the end of one round through the filters: they are told, the numbers counted, the log written.
func (s *Stream) account() {
	w := s.h.w
	st, cfg := w.Stats, s.h.cfg
	s.inf.End = w.Now()
	if !s.wired {
		s.noteWire()
	}
	s.wired = false // another round may follow
	st.Add(cfg.Stats.Counter(stats.HCMDownstreamCxTxBytesTotal), s.inf.WireSent)
	if s.filters {
		s.fm.Complete()
	}
	if s.responseDone {
		st.Record(cfg.Stats.Histogram(stats.HCMDownstreamRqTime), uint64(s.inf.End-s.inf.Start)/1e6)
	}
	st.GaugeSub(cfg.Stats.Gauge(stats.HCMDownstreamRqActive), 1)
	if cfg.RecordRoutes {
		st.Record(cfg.Stats.Histogram(stats.HCMDownstreamRqRouteResolutionTimeUs), uint64(s.lookupTime)/1e3)
		st.Record(cfg.Stats.Histogram(stats.HCMDownstreamRqRouteResolutions), uint64(s.lookups))
		s.lookups, s.lookupTime = 0, 0
	}
	if len(cfg.Logs) > 0 {
		cfg.Logs.Log(w, &s.inf, accesslog.DownstreamEnd)
	}
	if s.filters {
		s.fm.Destroy()
		s.letRead()
	}
}

// count counts a response by its code, as it begins.
func (s *Stream) count(code int) {
	s.inf.Code = code
	if s.inf.HealthCheck {
		return
	}
	st, cfg := s.h.w.Stats, s.h.cfg
	if code >= 100 && code < 600 {
		class := astats.CounterIndex(code/100 - 1)
		st.Inc(cfg.Stats.Counter(stats.HCMDownstreamRq1xx + class))
		st.Inc(cfg.ListenerStats.Counter(stats.ListenerHTTPDownstreamRq1xx + class))
	}
	st.Inc(cfg.Stats.Counter(stats.HCMDownstreamRqCompleted))
	st.Inc(cfg.ListenerStats.Counter(stats.ListenerHTTPDownstreamRqCompleted))
}

// onPeriodic logs a stream that lasts.
func (s *Stream) onPeriodic() {
	if s.dead || s.h == nil {
		return
	}
	w := s.h.w
	wire := s.enc.WireBytes()
	s.inf.WireReceived, s.inf.WireSent = wire.Received, wire.Sent
	s.h.cfg.Logs.Log(w, &s.inf, accesslog.DownstreamPeriodic)
	s.arm(&s.periodic, (*Stream).onPeriodic, s.h.cfg.LogInterval)
}
