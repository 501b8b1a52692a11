package hcm

import (
	"strconv"
	"time"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

func durationOf(ns int64) time.Duration { return time.Duration(ns) }

// directReply answers a request, through the filters if there are any yet.
func (s *Stream) directReply(code int, body, details string) {
	r := &filter.LocalReply{Code: code, Body: body, Details: details, GRPCStatus: -1}
	if s.filters {
		s.fm.LocalReply(r)
		return
	}
	h, text := s.PrepareLocalReply(r)
	s.SendHeaders(h, text == "")
	if text != "" && !s.dead {
		var b buffer.Buffer
		b.Init(&s.h.w.Bufs)
		b.AppendString(text)
		s.SendData(&b, true)
		b.Reset()
	}
}

// PrepareLocalReply makes the head and the body of a local reply: mappers, formats, and gRPC's form.
func (s *Stream) PrepareLocalReply(r *filter.LocalReply) (*http.HeaderMap, string) {
	s.localReply = true
	h := &s.reply
	h.Init(&s.arena)
	s.inf.Details = r.Details
	s.inf.Code = r.Code
	code, body, contentType := r.Code, r.Body, "text/plain"
	var mapper *LocalReplyMapper
	if lr := s.h.cfg.LocalReply; lr != nil {
		code, body, contentType, mapper = s.mapReply(lr, code, body)
	}
	if s.grpc {
		return s.grpcReply(r, h, code, body), ""
	}
	h.AddConst(http.Status, statusText(code, &s.arena))
	if r.Modify != nil {
		r.Modify(h)
	}
	if mapper != nil && mapper.Headers != nil {
		mapper.Headers.Apply(h, &s.inf)
	}
	if s.route != nil && s.route.ResponseHeaders != nil {
		s.route.ResponseHeaders.Apply(h, &s.inf)
	}
	if body != "" {
		h.SetConst(http.ContentLength, s.arena.String(strconv.Itoa(len(body))))
		if !h.Has(http.ContentType) {
			h.AddConst(http.ContentType, contentType)
		}
	} else {
		h.Remove(http.ContentLength)
		h.AddConst(http.ContentLength, "0")
	}
	if s.isHead {
		body = ""
	}
	return h, body
}

func (s *Stream) mapReply(lr *LocalReplyConfig, code int, body string) (int, string, string, *LocalReplyMapper) {
	contentType := "text/plain"
	prog := lr.Body
	if lr.ContentType != "" {
		contentType = lr.ContentType
	}
	var mapper *LocalReplyMapper
	s.inf.ResponseHeaders = nil
	for i := range lr.Mappers {
		m := &lr.Mappers[i]
		if !m.Filter.Log(s.h.w, &s.inf, accesslog.DownstreamEnd) {
			continue
		}
		mapper = m
		if m.Code != 0 {
			code = m.Code
			s.inf.Code = code
		}
		if m.HasBody {
			body = m.Body
		}
		if m.Format != nil {
			prog, contentType = m.Format, "text/plain"
			if m.ContentType != "" {
				contentType = m.ContentType
			}
		}
		break
	}
	if prog != nil {
		s.inf.LocalReplyBody = body
		body = string(prog.Evaluate(nil, &format.Context{Info: &s.inf, Now: s.h.w.Now(), Wall: s.h.w.Wall()}))
		s.inf.LocalReplyBody = ""
	}
	return code, body, contentType, mapper
}

// grpcReply makes a trailers-only response (gRPC over HTTP/2, "Responses").
func (s *Stream) grpcReply(r *filter.LocalReply, h *http.HeaderMap, code int, body string) *http.HeaderMap {
	h.AddConst(http.Status, "200")
	h.AddConst(http.ContentType, "application/grpc")
	status := r.GRPCStatus
	if status < 0 {
		status = grpcStatus(code)
	}
	h.AddConst(http.GRPCStatus, s.arena.String(strconv.Itoa(status)))
	if body != "" && !s.isHead {
		h.AddConst(http.GRPCMessage, s.arena.Copy(percentEncode(nil, body)))
	}
	if r.Modify != nil {
		r.Modify(h)
	}
	if s.route != nil && s.route.ResponseHeaders != nil {
		s.route.ResponseHeaders.Apply(h, &s.inf)
	}
	return h
}

// grpcStatus maps an HTTP status as gRPC says (doc/http-grpc-status-mapping.md).
func grpcStatus(code int) int {
	switch code {
	case 400:
		return 13
	case 401:
		return 16
	case 403:
		return 7
	case 404:
		return 12
	case 429, 502, 503, 504:
		return 14
	}
	return 2
}

func percentEncode(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '%' {
			dst = append(dst, '%', hex[c>>4], hex[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
}

func statusText(code int, a *http.Arena) string {
	switch code {
	case 200:
		return "200"
	case 404:
		return "404"
	case 503:
		return "503"
	case 504:
		return "504"
	}
	return a.String(strconv.Itoa(code))
}

// onIdle: nothing moved on the stream for its idle timeout.
func (s *Stream) onIdle() {
	if s.dead || s.h == nil {
		return
	}
	s.h.w.Stats.Inc(s.h.cfg.Stats.Counter(stats.HCMDownstreamRqIdleTimeout))
	s.inf.Flags.Set(stream.StreamIdleTimeout)
	if s.sentHeaders {
		s.inf.Details = "stream_idle_timeout"
		s.Reset(http.ResetLocal)
		return
	}
	s.timeoutReply("stream timeout", "stream_idle_timeout")
}

// timeoutReply answers 504 if the request was complete (the upstream is to blame), else 408.
func (s *Stream) timeoutReply(body, details string) {
	code := 504
	if !s.requestDone {
		code = 408
		s.closeAfter = s.closeAfter || !s.h.isH2
	}
	s.directReply(code, body, details)
}

func (s *Stream) onRequestTimeout() {
	if s.dead || s.h == nil || s.requestDone {
		return
	}
	st, base := s.h.w.Stats, &s.h.cfg.Stats
	if !s.decoding && s.h.cfg.RequestHeadersTimeout > 0 {
		st.Inc(base.Counter(stats.HCMDownstreamRqHeaderTimeout))
		s.closeAfter = true
		s.directReply(408, "request header timeout", "request_header_timeout")
		return
	}
	st.Inc(base.Counter(stats.HCMDownstreamRqTimeout))
	if s.sentHeaders {
		s.inf.Details = "request_overall_timeout"
		s.Reset(http.ResetLocal)
		return
	}
	s.closeAfter = s.closeAfter || !s.h.isH2
	s.directReply(408, "request timeout", "request_overall_timeout")
}

func (s *Stream) onMaxDuration() {
	if s.dead || s.h == nil {
		return
	}
	s.h.w.Stats.Inc(s.h.cfg.Stats.Counter(stats.HCMDownstreamRqMaxDurationReached))
	if s.sentHeaders {
		s.inf.Details = "max_duration_timeout"
		s.Reset(http.ResetLocal)
		return
	}
	s.timeoutReply("downstream duration timeout", "max_duration_timeout")
}
