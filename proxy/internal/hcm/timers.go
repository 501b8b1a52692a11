package hcm

import (
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// onIdle: nothing moved on the stream for its idle timeout.
func (s *Stream) onIdle() {
	if s.dead || s.h == nil {
		return
	}
	if s.lingers {
		s.h.w.Stats.Inc(s.h.cfg.H2Stats.Counter(stats.HTTP2TxFlushTimeout))
		s.enc.Reset(http.ResetOverload) // at once: what waits is lost
		s.finish()
		return
	}
	s.h.w.Stats.Inc(s.h.cfg.Stats.Counter(stats.HCMDownstreamRqIdleTimeout))
	s.inf.Flags.Set(stream.StreamIdleTimeout)
	s.timeoutReply("stream timeout", "stream_idle_timeout", -1)
}

// timeoutReply answers 504 if the request was complete (the upstream is to blame), else 408.
func (s *Stream) timeoutReply(body, details string, grpc int) {
	code := 504
	if !s.requestDone {
		code = 408
	}
	s.reply1(&filter.LocalReply{Code: code, Body: body, Details: details, GRPCStatus: grpc})
}

func (s *Stream) onRequestTimeout() {
	if s.dead || s.h == nil || s.requestDone {
		return
	}
	st, base := s.h.w.Stats, &s.h.cfg.Stats
	if !s.decoding && s.h.cfg.RequestHeadersTimeout > 0 {
		st.Inc(base.Counter(stats.HCMDownstreamRqHeaderTimeout))
		s.directReply(408, "request header timeout", "request_header_timeout")
		return
	}
	st.Inc(base.Counter(stats.HCMDownstreamRqTimeout))
	s.directReply(408, "request timeout", "request_overall_timeout")
}

func (s *Stream) onMaxDuration() {
	if s.dead || s.h == nil {
		return
	}
	s.h.w.Stats.Inc(s.h.cfg.Stats.Counter(stats.HCMDownstreamRqMaxDurationReached))
	s.timeoutReply("downstream duration timeout", "max_duration_timeout", 4) // DEADLINE_EXCEEDED
}
