// Package codec is the contract between HTTP codecs (codec/h1, codec/h2) and what uses them: hcm on the server side, pool and
// router on the client side.
//
// A codec is sans-IO: bytes go in by Dispatch, events come out by callbacks, encoded bytes are appended to an Output. It holds
// no socket, clock, goroutine or log, so that it can be fuzzed and simulated. All of it belongs to the connection's worker.
package codec

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
)

// Output is where a codec puts encoded bytes. conn.Conn is the real one.
type Output interface {
	// Out returns the connection's write buffer to append to, and marks the connection for the flush at the end of the pass.
	Out() *buffer.Buffer
	// WriteData writes body bytes after what is in Out, leaving data empty. Large data may be sent at once, straight from
	// borrowed memory; what the kernel does not take is copied.
	WriteData(data *buffer.Buffer)
	// Buffered returns the bytes that wait to be sent.
	Buffered() int
}

// ServerConn is the server side of an HTTP connection.
type ServerConn interface {
	// Dispatch consumes bytes from b and returns how many. The rest comes again, at the front of what arrives later; a codec
	// that wants to be called with the same rest once more (an HTTP/1 pipeline whose response is done) says so by the
	// ServerHandler's OnMessageComplete. Fields and bodies reported are views of b or of the stream's arena.
	// After an error the connection is of no further use, except for writing (an error response, GOAWAY).
	Dispatch(b []byte) (n int, err error)
	// EOF says that the peer will send no more (half close).
	EOF() error
	// GoAway begins a graceful shutdown: HTTP/2 sends GOAWAY with the highest stream id (shutdownNotice true: 2^31-1, more
	// requests are still taken); HTTP/1 does nothing, the handler adds "connection: close" to the next response.
	GoAway(shutdownNotice bool)
	// OnHighWatermark and OnLowWatermark say that the connection's write buffer went over its limit or is drained again.
	OnHighWatermark()
	OnLowWatermark()
	// Destroy resets what is left of the streams without callbacks, and gives back all memory.
	Destroy()
	// Protocol returns the protocol that %PROTOCOL% prints.
	Protocol() http.Proto
}

// ServerHandler is told of new requests. hcm's connection implements it.
type ServerHandler interface {
	// NewStream is called when a request's head has begun. s is valid until the stream's end; the returned RequestDecoder gets
	// all its events. h is the map that the codec fills.
	NewStream(s ServerStream) (d RequestDecoder, h *http.HeaderMap)
	// OnGoAway says that the client will open no more streams (HTTP/2).
	OnGoAway()
}

// RequestDecoder receives the events of one request. end means that nothing follows.
type RequestDecoder interface {
	// DecodeHeaders: h is the map that NewStream returned, pseudo headers first. The decoder may answer at once.
	DecodeHeaders(h *http.HeaderMap, end bool)
	// DecodeData: data is borrowed, see buffer.Buffer; what is left in it after the call is dropped.
	DecodeData(data *buffer.Buffer, end bool)
	// DecodeTrailers ends the request. h lives in the stream's arena (a second map, owned by the codec).
	DecodeTrailers(h *http.HeaderMap)
	// DecodeError: this request is broken (Err names status and details) but the connection can still carry the error response,
	// which the decoder must now send. After it comes no further event but OnReset.
	DecodeError(err *Err)
	// OnReset says that the stream is over before its end: the peer reset it or the connection died. It is the last event.
	OnReset(reason http.ResetReason, details string)
	// OnAboveHighWatermark and OnBelowLowWatermark: the stream's outgoing bytes pile up, or are sent again. They count: each
	// Above is followed by one Below.
	OnAboveHighWatermark()
	OnBelowLowWatermark()
	// OnEncodeComplete says that the response was encoded completely (HTTP/2: handed to the connection, windows allowing).
	OnEncodeComplete()
}

// ServerStream is the encoding side of a request's stream.
type ServerStream interface {
	// Encode1xx sends an informational response (100, 103).
	Encode1xx(h *http.HeaderMap)
	// EncodeHeaders sends the response's head. h must begin with :status. HTTP/1 chooses the framing: content-length as given,
	// chunked otherwise (or close for HTTP/1.0), and neither for 1xx, 204, 304 and answers to HEAD and CONNECT.
	EncodeHeaders(h *http.HeaderMap, end bool)
	// EncodeData sends body bytes and leaves data empty.
	EncodeData(data *buffer.Buffer, end bool)
	// EncodeTrailers ends the response. HTTP/1 sends them only if enabled, and the last chunk in any case.
	EncodeTrailers(h *http.HeaderMap)
	// Reset ends the stream at once (RST_STREAM; HTTP/1: the connection must be closed by the handler). OnReset is not called.
	Reset(reason http.ResetReason)
	// ReadDisable(true) stops the flow of request bytes (HTTP/2: no window updates for the stream; HTTP/1: the handler must
	// pause the connection); calls nest.
	ReadDisable(disable bool)
	// ID is the HTTP/2 stream id; HTTP/1 counts requests from 1.
	ID() uint32
	// CloseAfter reports whether the connection cannot be reused after this stream (HTTP/1: "connection: close", HTTP/1.0
	// without keep-alive, a body that ends with the connection). HTTP/2: false.
	CloseAfter() bool
	// WireBytes returns the bytes that the stream took on the wire: heads received and sent, and all received and sent.
	WireBytes() *Bytes
}

// ClientConn is the client side of an HTTP connection to an upstream.
type ClientConn interface {
	Dispatch(b []byte) (n int, err error)
	// EOF says that the peer will send no more. A response whose body ends with the connection is complete by it.
	EOF() error
	// NewStream starts a request; d gets the answer's events, and h is the map that the response's head is put into. The
	// caller keeps within the limits (HTTP/1: one at a time; HTTP/2: MaxStreams).
	NewStream(d ResponseDecoder, h *http.HeaderMap) ClientStream
	// MaxStreams is how many streams the connection may carry at once, as the peer's SETTINGS allow. 1 for HTTP/1.
	MaxStreams() int
	// Active is how many streams are open.
	Active() int
	GoAway(shutdownNotice bool)
	OnHighWatermark()
	OnLowWatermark()
	Destroy()
	Protocol() http.Proto
}

// ClientHandler is told of what concerns a client connection as a whole. pool's connection implements it.
type ClientHandler interface {
	// OnStreamDone: a stream ended, by whatever way; the connection has room again unless reusable is false.
	OnStreamDone(reusable bool)
	// OnGoAway: the peer takes no new streams. Those above lastID get OnReset with ResetRemoteRefused.
	OnGoAway()
	// OnMaxStreams: SETTINGS changed how many streams are allowed.
	OnMaxStreams(n int)
}

// ResponseDecoder receives the events of the answer to one request.
type ResponseDecoder interface {
	Decode1xx(h *http.HeaderMap)
	DecodeHeaders(h *http.HeaderMap, end bool)
	DecodeData(data *buffer.Buffer, end bool)
	DecodeTrailers(h *http.HeaderMap)
	// OnReset is the last event of a stream that did not end well.
	OnReset(reason http.ResetReason, details string)
	OnAboveHighWatermark()
	OnBelowLowWatermark()
}

// ClientStream is the encoding side of a request to an upstream.
type ClientStream interface {
	// EncodeHeaders sends the request's head. It returns an error, and sends nothing, if required pseudo headers are missing.
	EncodeHeaders(h *http.HeaderMap, end bool) error
	EncodeData(data *buffer.Buffer, end bool)
	EncodeTrailers(h *http.HeaderMap)
	// Reset gives the stream up. The ResponseDecoder gets no further event. HTTP/1: the connection must be closed.
	Reset(reason http.ResetReason)
	ReadDisable(disable bool)
	ID() uint32
	WireBytes() *Bytes
}

// Bytes counts a stream's bytes on the wire.
type Bytes struct {
	HeaderReceived, HeaderSent uint64
	Received, Sent             uint64
}

// Err is an error of a codec. Values are preallocated, one per cause: compare by pointer.
type Err struct {
	// Text is for people.
	Text string
	// Details is Envoy's response_code_details, such as "http1.codec_error".
	Details string
	// Status is the code of the error response, 0 if there can be none (HTTP/2 connection errors).
	Status int
	// Body is the body of the error response ("" if empty), "Bad Request" mostly.
	Body string
	// H2Code is the error code of GOAWAY or RST_STREAM (RFC 9113, section 7).
	H2Code uint32
	// Reason is what other open streams of the connection are reset with.
	Reason http.ResetReason
	// Stat names the counter of the codec that it counts in, by its name under "http1." or "http2.", "" for none.
	Stat string
	// Flood: the peer misbehaves; count downstream_cx_protocol_error and close at once.
	Flood bool
}

// Error returns the text.
func (e *Err) Error() string { return e.Text }
