package hcm

import (
	"strconv"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// directReply answers a request, through the filters if there are any yet.
func (s *Stream) directReply(code int, body, details string) {
	s.reply1(&filter.LocalReply{Code: code, Body: body, Details: details, GRPCStatus: -1})
}

func (s *Stream) reply1(r *filter.LocalReply) {
	if s.filters {
		s.fm.LocalReply(r)
		return
	}
	if s.sentHeaders {
		s.inf.Details = r.Details
		s.Reset(http.ResetLocal)
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

// PrepareLocalReply makes the head and the body of a local reply: the route's headers, the filter's, mappers, formats, and gRPC's form.
// Where there is no body, the codec says so.
func (s *Stream) PrepareLocalReply(r *filter.LocalReply) (*http.HeaderMap, string) {
	s.localReply = true
	// A bad request may be the beginning of something worse: nothing after it is read as a request.
	if r.Code == 400 && !s.h.isH2 && !s.h.cfg.StreamErrorOnInvalid {
		s.closeAfter = true
	}
	h := s.replyHead()
	s.inf.Details = r.Details
	h.AddConst(http.Status, statusText(r.Code, &s.arena))
	headers := s.replyHeaders()
	if headers != nil && s.route.Kind == route.Forward {
		headers.Apply(s.h.w, h, &s.inf)
	}
	if r.Modify != nil {
		r.Modify(h)
	}
	if headers != nil && s.route.Kind != route.Forward {
		headers.Apply(s.h.w, h, &s.inf) // a redirect's own header comes first
	}
	s.inf.Code = r.Code
	code, body, contentType := r.Code, r.Body, "text/plain"
	custom := false
	if lr := s.h.cfg.LocalReply; lr != nil {
		before := h.Get(http.ContentType)
		code, body, contentType = s.mapReply(lr, h, code, body)
		custom = before != h.Get(http.ContentType)
	}
	if s.grpc {
		s.grpcReply(r, h, code, body, contentType)
		return h, ""
	}
	if body == "" {
		h.Remove(http.ContentLength)
		h.Remove(http.ContentType)
		return h, ""
	}
	h.SetConst(http.ContentLength, s.arena.Copy(strconv.AppendInt(make([]byte, 0, 20), int64(len(body)), 10)))
	if !h.Has(http.ContentType) || body != r.Body && !custom {
		h.SetConst(http.ContentType, contentType)
	}
	if s.isHead {
		return h, ""
	}
	return h, body
}

// replyHeaders are the response headers of the request's route, which local replies carry too.
func (s *Stream) replyHeaders() *route.Mutations {
	if s.route == nil {
		return nil
	}
	return s.route.ResponseHeaders
}

// mapReply applies local_reply_config. Mappers see the reply as it is so far.
func (s *Stream) mapReply(lr *LocalReplyConfig, h *http.HeaderMap, code int, body string) (int, string, string) {
	w := s.h.w
	format, contentType := lr.Body, lr.ContentType
	s.inf.ResponseHeaders = h
	for i := range lr.Mappers {
		m := &lr.Mappers[i]
		if m.Filter != nil && !m.Filter.Log(w, &s.inf, accesslog.NotSet) {
			continue
		}
		if m.HasBody {
			body = m.Body
		}
		if m.Headers != nil {
			m.Headers.Apply(w, h, &s.inf)
		}
		if m.Code != 0 && m.Code != code {
			code = m.Code
			s.inf.Code = code
			h.SetConst(http.Status, statusText(code, &s.arena))
		}
		if m.Format != nil {
			format, contentType = m.Format, m.ContentType
		}
		break
	}
	if format != nil {
		s.inf.LocalReplyBody = body
		body = s.arena.Copy(route.Evaluate(w, format, &s.inf))
		s.inf.LocalReplyBody = ""
	}
	if contentType == "" {
		contentType = "text/plain"
	}
	return code, body, contentType
}

// grpcReply makes a trailers-only response (gRPC over HTTP/2, "Responses").
func (s *Stream) grpcReply(r *filter.LocalReply, h *http.HeaderMap, code int, body, contentType string) {
	h.SetConst(http.Status, "200")
	h.SetConst(http.ContentType, "application/grpc")
	if h.Get(http.GRPCStatus) == "" {
		status := r.GRPCStatus
		if status < 0 {
			status = grpcStatus(code)
		}
		h.SetConst(http.GRPCStatus, s.arena.String(strconv.Itoa(status)))
	}
	if body != "" && !s.isHead {
		if n := len(body) - 1; contentType == "application/json" && body[n] == '\n' {
			body = body[:n]
		}
		h.SetConst(http.GRPCMessage, s.arena.Copy(percentEncode(nil, body)))
	}
	h.Remove(http.ContentLength)
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
