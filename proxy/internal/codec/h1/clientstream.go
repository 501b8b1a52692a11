package h1

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

// exchange is one request to an upstream and its response. owner: worker.
type exchange struct {
	message
	c   *Client
	dec codec.ResponseDecoder
	enc encoder
	exchangeState
}

// exchangeState is what is plain about an exchange, and zero at its start.
type exchangeState struct {
	id      uint32
	version http.Proto
	isHead  bool
	connect bool
	upgrade bool
	sent    bool // the head is sent
	encoded bool // the request is complete
	closes  bool // the connection ends with this stream
	notify  bool // because the response says so
	infos   int  // bytes of informational heads
	above   bool
	over    bool
	orphan  bool
}

var _ codec.ClientStream = (*exchange)(nil)

// EncodeHeaders sends the request's head.
func (x *exchange) EncodeHeaders(h *http.HeaderMap, end bool) error {
	if x.over || x.sent {
		return nil
	}
	o := x.c.opts
	method, path := h.Get(http.Method), h.Get(http.Path)
	authority := h.Find(http.Authority)
	if authority == nil {
		authority = h.Find(http.Host)
	}
	connect := method == "CONNECT"
	switch {
	case method == "":
		return ErrMissingMethod
	case path == "" && !connect:
		return ErrMissingPath
	case authority == nil && (connect || o.SendFullyQualifiedURL):
		return ErrMissingAuthority
	}
	if !sendable(path) {
		return ErrInvalidField
	}
	x.isHead, x.connect, x.upgrade = method == "HEAD", connect, upgrades(h)
	start := [4]string{method, " ", path, " HTTP/1.1\r\n"}
	switch {
	case connect:
		start[2] = authority.Value
	case o.SendFullyQualifiedURL:
		scheme := h.Get(http.Scheme)
		if scheme == "" {
			return ErrMissingScheme
		}
		start[2] = h.Arena().Concat(scheme, "://", authority.Value, path)
	}
	n := o.encodeHead(x.c.out.Out(), h, start, authority, x.frame(h, method, end), &unsent)
	if n < 0 {
		return ErrInvalidField
	}
	x.sent = true
	x.bytes.HeaderSent += sentHeaderBytes(n, &start)
	x.bytes.Sent += uint64(n)
	if end {
		x.complete()
	}
	return nil
}

// frame decides how the request's body is delimited, and returns what the head ends with.
func (x *exchange) frame(h *http.HeaderMap, method string, end bool) (tail string) {
	switch {
	case h.Has(http.ContentLength), x.connect:
		return tailNone
	case end:
		switch method {
		case "GET", "HEAD", "DELETE", "TRACE":
			return tailNone
		}
		return tailZero
	case x.upgrade:
		return tailNone
	}
	x.enc.chunked = true
	return tailChunked
}

// EncodeData sends body bytes.
func (x *exchange) EncodeData(data *buffer.Buffer, end bool) {
	if x.over || !x.sent || x.encoded {
		data.Reset()
		return
	}
	x.bytes.Sent += uint64(x.enc.data(x.c.out, data, end))
	if end {
		x.complete()
	}
}

// EncodeTrailers ends the request.
func (x *exchange) EncodeTrailers(h *http.HeaderMap) {
	if x.over || !x.sent || x.encoded {
		return
	}
	n := x.enc.trailers(x.c.opts, x.c.out, h)
	x.bytes.Sent += uint64(n)
	x.bytes.HeaderSent += sentTrailerBytes(n)
	x.complete()
}

// complete: the request is encoded. If its response was complete before, the stream ends now.
func (x *exchange) complete() {
	x.encoded = true
	if !x.c.busy {
		x.c.finish(x)
	}
}

// Reset gives the stream up; the connection must be closed.
func (x *exchange) Reset(http.ResetReason) {
	if x.orphan {
		x.orphan = false
		x.c.pool.putExchange(x)
		return
	}
	if x.over {
		return
	}
	c := x.c
	c.discard(x)
	c.handler.OnStreamDone(false)
}

// ReadDisable does nothing: the user pauses the connection.
func (x *exchange) ReadDisable(bool) {}

// ID counts the connection's requests from 1.
func (x *exchange) ID() uint32 { return x.id }

// WireBytes returns the stream's bytes on the wire.
func (x *exchange) WireBytes() *codec.Bytes { return &x.bytes }
