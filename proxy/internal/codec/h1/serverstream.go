package h1

import (
	"strings"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

// request is one request and its response. owner: worker.
type request struct {
	message
	s   *Server
	dec codec.RequestDecoder
	enc encoder
	requestState
}

// requestState is what is plain about a request, and zero at its start.
type requestState struct {
	id        uint32
	version   http.Proto
	isHead    bool
	connect   bool
	upgrade   bool
	closes    bool // the connection ends with this request
	responded bool // the final response's head is sent
	failed    bool // the request was broken
	persists  bool // the connection goes on, whatever the response says
	above     bool
	over      bool // no further event; the state is given back as soon as no callback can be using it
}

var _ codec.ServerStream = (*request)(nil)

// Encode1xx sends an informational response.
func (r *request) Encode1xx(h *http.HeaderMap) {
	if r.over || r.responded {
		return
	}
	if status := h.StatusCode(); status >= 100 && status < 200 {
		r.head(h, status, tailNone)
	}
}

// EncodeHeaders sends the response's head.
func (r *request) EncodeHeaders(h *http.HeaderMap, end bool) {
	if r.over || r.responded {
		return
	}
	r.responded = true
	status := h.StatusCode()
	if status < 101 || status >= len(statusLines) {
		status = 500 // a filter's mistake
	}
	if status >= 300 {
		r.connect = false
	}
	tail := r.frame(h, status, end)
	if !r.persists && h.Has(http.Connection) && token(h.Get(http.Connection), "close") {
		r.closes = true
	}
	r.head(h, status, tail)
	if end {
		r.complete()
	}
}

// Persist makes a "connection: close" in the response's head a mere notice: requests that follow are read. Call it before EncodeHeaders.
func (r *request) Persist() { r.persists = true }

// frame decides how the response's body is delimited, and returns what the head ends with.
func (r *request) frame(h *http.HeaderMap, status int, end bool) (tail string) {
	r.enc.noBody = r.isHead || status == 204 || status == 304 || status < 200 && status != 101
	switch {
	case status < 200 || status == 204:
		return tailNone
	case h.Has(http.ContentLength):
		return tailNone
	case end && !r.isHead:
		if status == 304 || r.connect {
			return tailNone
		}
		return tailZero
	case r.version == http.HTTP10:
		if !r.enc.noBody {
			r.closes = true
		}
		return tailNone
	case r.connect:
		return tailNone
	}
	r.enc.chunked = !r.enc.noBody && !upgrades(h)
	if status == 304 {
		return tailNone
	}
	return tailChunked
}

func (r *request) head(h *http.HeaderMap, status int, tail string) {
	o := r.s.opts
	var start [4]string
	start[0] = statusLines[status]
	if f := h.Formatter(); f != nil && f.Reason() != "" {
		start[0] = start[0][:len("HTTP/1.1 200 ")]
		start[1], start[2] = f.Reason(), "\r\n"
	}
	if r.version == http.HTTP10 && o.AcceptHTTP10 {
		start[3], start[2], start[1] = start[2], start[1], start[0][len("HTTP/1.1"):]
		start[0] = "HTTP/1.0"
	}
	n := o.encodeHead(r.s.out.Out(), h, start, nil, tail, &unsentResponse)
	if n < 0 {
		blankOut(h)
		n = max(0, o.encodeHead(r.s.out.Out(), h, start, nil, tail, &unsentResponse))
	}
	r.bytes.HeaderSent += sentHeaderBytes(n, &start)
	r.sentBytes(n)
}

// blankOut replaces what would end a line in values that filters have set, by blanks.
func blankOut(h *http.HeaderMap) {
	for i := range h.All() {
		f := &h.All()[i]
		if strings.ContainsAny(f.Value, "\r\n") {
			h.Replace(f, strings.NewReplacer("\r", " ", "\n", " ").Replace(f.Value))
		}
	}
}

// unsentResponse: a host field of a response is a field like any other.
var unsentResponse = http.MakeSet(http.TransferEncoding)

func (r *request) sentBytes(n int) {
	r.bytes.Sent += uint64(n)
	r.s.sent += uint64(n)
}

// EncodeData sends body bytes.
func (r *request) EncodeData(data *buffer.Buffer, end bool) {
	if r.over || !r.responded {
		data.Reset()
		return
	}
	r.sentBytes(r.enc.data(r.s.out, data, end))
	if end {
		r.complete()
	}
}

// EncodeTrailers ends the response.
func (r *request) EncodeTrailers(h *http.HeaderMap) {
	if r.over || !r.responded {
		return
	}
	n := r.enc.trailers(r.s.opts, r.s.out, h)
	r.sentBytes(n)
	r.bytes.HeaderSent += sentTrailerBytes(n)
	r.complete()
}

// complete ends the stream: the response is encoded. If the request is not complete, the connection cannot be reused.
func (r *request) complete() {
	s := r.s
	if r.phase != phaseDone || r.upgrade || r.connect || r.failed {
		r.closes = true
	}
	if r.closes {
		s.closed = true
	}
	s.ended()
	r.over = true
	r.dec.OnEncodeComplete()
	if s.req == r && r.over && !s.busy {
		s.drop()
	}
}

// ended remembers where in the output a response ends.
func (s *Server) ended() {
	if int(s.nqueue) == len(s.queued) {
		copy(s.queued[:], s.queued[1:])
		s.nqueue--
	}
	s.queued[s.nqueue] = s.sent
	s.nqueue++
}

// Reset ends the stream; the user closes the connection.
func (r *request) Reset(http.ResetReason) {
	if r.over {
		return
	}
	s := r.s
	s.closed = true
	r.closes, r.over = true, true
	if !s.busy {
		s.drop()
	}
}

// ReadDisable does nothing: the user pauses the connection.
func (r *request) ReadDisable(bool) {}

// ID counts the connection's requests from 1.
func (r *request) ID() uint32 { return r.id }

// CloseAfter reports whether the connection ends with this stream.
func (r *request) CloseAfter() bool { return r.closes }

// WireBytes returns the stream's bytes on the wire.
func (r *request) WireBytes() *codec.Bytes { return &r.bytes }
