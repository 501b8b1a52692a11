// Package filter is the contract for HTTP filters: what the engine asks of a filter, what a filter may answer when, and what it
// may ask of its stream. Everything in it belongs to the stream's worker.
package filter

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
)

// HeadersStatus is a filter's answer to headers.
type HeadersStatus uint8

const (
	// HeadersContinue passes the headers on to the next filter.
	HeadersContinue HeadersStatus = iota
	// HeadersStopIteration keeps the headers here. Data and trailers still come to this filter, which lets the headers go by
	// returning Continue from one of them, or by ContinueDecoding/ContinueEncoding.
	HeadersStopIteration
	// HeadersContinueAndDontEndStream passes headers that ended the stream on as if more were to come, together with what the
	// filter has added in the callback. The end stays with the filter: it lets it go by injecting data with end set
	// (InjectDecodedData), or by Continue*. Headers that end the stream need no such status to be given a body in their own
	// callback: AddDecodedData and HeadersContinue do that.
	HeadersContinueAndDontEndStream
	// HeadersStopAllIterationAndBuffer keeps the headers, and data and trailers before this filter, until Continue*; this filter sees
	// them then. Data is buffered up to the stream's limit, beyond which the request is answered with 413 (the response with 500,
	// or a reset if the client has its head).
	HeadersStopAllIterationAndBuffer
	// HeadersStopAllIterationAndWatermark is the same, but at the limit the sender is held back by flow control instead.
	HeadersStopAllIterationAndWatermark
)

// DataStatus is a filter's answer to body bytes.
type DataStatus uint8

const (
	// DataContinue passes what is left in the buffer on, and headers that this filter still holds before it.
	DataContinue DataStatus = iota
	// DataStopIterationAndBuffer keeps what is left in the buffer; this filter may look at all that it has kept so far
	// (BufferedDecodeData), and the next one gets all of it at once when this one continues. The stream's limit holds: 413, or
	// 500 for a response.
	DataStopIterationAndBuffer
	// DataStopIterationAndWatermark is the same with flow control at the limit.
	DataStopIterationAndWatermark
	// DataStopIterationNoBuffer drops what is left in the buffer: the filter has moved away what it wants to keep. The end, if it
	// came, stays with the filter until it injects data with end set, or continues.
	DataStopIterationNoBuffer
)

// TrailersStatus is a filter's answer to trailers.
type TrailersStatus uint8

const (
	// TrailersContinue passes the trailers on, and headers and data that this filter still holds before them.
	TrailersContinue TrailersStatus = iota
	// TrailersStopIteration keeps them until Continue*.
	TrailersStopIteration
)

// LocalReplyStatus is a filter's answer to OnLocalReply.
type LocalReplyStatus uint8

const (
	// LocalReplyContinue lets the reply go out.
	LocalReplyContinue LocalReplyStatus = iota
	// LocalReplyContinueAndReset resets the stream instead of replying.
	LocalReplyContinueAndReset
)

// Filter is an HTTP filter: one value per stream, all calls on the stream's worker. Embed PassThrough for what a filter
// does not look at; the engine finds out once, when the chain is built, which sides a filter takes part in (Factory.Sides).
type Filter interface {
	// SetCallbacks is called once, before anything else. cb is valid until OnDestroy.
	SetCallbacks(cb Callbacks)

	// DecodeHeaders gets the request's head. h stays valid until OnDestroy. end: there is no body and no trailers.
	DecodeHeaders(h *http.HeaderMap, end bool) HeadersStatus
	// DecodeData gets body bytes. They are borrowed: who keeps them moves them out of data (buffer.Move), and may add to it.
	DecodeData(data *buffer.Buffer, end bool) DataStatus
	DecodeTrailers(h *http.HeaderMap) TrailersStatus
	// DecodeComplete is called right after the callback in which this filter saw the end of the request, whatever it returned.
	DecodeComplete()

	// Encode1xx gets an informational response head.
	Encode1xx(h *http.HeaderMap) HeadersStatus
	EncodeHeaders(h *http.HeaderMap, end bool) HeadersStatus
	EncodeData(data *buffer.Buffer, end bool) DataStatus
	EncodeTrailers(h *http.HeaderMap) TrailersStatus
	EncodeComplete()

	// OnLocalReply is told of a local reply before it is made, whoever sends it. It is no place for replies or Continue*.
	OnLocalReply(r *LocalReply) LocalReplyStatus
	// OnStreamComplete is called before access logs are written: the place to set facts that they print.
	OnStreamComplete()
	// OnDestroy is the last call. Nothing of the stream may be used after it, Callbacks included, which may belong to the next
	// stream soon: timers and calls in flight must be stopped, and what was posted must find out for itself.
	OnDestroy()
}

// LocalReply is an answer that the proxy itself gives.
type LocalReply struct {
	Code int
	Body string
	// Details is response_code_details; spaces in it become "_" when logged.
	Details string
	// GRPCStatus is used instead of the mapping of Code for gRPC requests, if not negative.
	GRPCStatus int
	// Modify, if set, changes the reply's headers before it is sent.
	Modify func(h *http.HeaderMap)
}

// PassThrough is a Filter that does nothing, to be embedded.
type PassThrough struct{ CB Callbacks }

// SetCallbacks keeps cb in CB.
func (f *PassThrough) SetCallbacks(cb Callbacks) { f.CB = cb }

// DecodeHeaders continues.
func (*PassThrough) DecodeHeaders(*http.HeaderMap, bool) HeadersStatus { return HeadersContinue }

// DecodeData continues.
func (*PassThrough) DecodeData(*buffer.Buffer, bool) DataStatus { return DataContinue }

// DecodeTrailers continues.
func (*PassThrough) DecodeTrailers(*http.HeaderMap) TrailersStatus { return TrailersContinue }

// DecodeComplete does nothing.
func (*PassThrough) DecodeComplete() {}

// Encode1xx continues.
func (*PassThrough) Encode1xx(*http.HeaderMap) HeadersStatus { return HeadersContinue }

// EncodeHeaders continues.
func (*PassThrough) EncodeHeaders(*http.HeaderMap, bool) HeadersStatus { return HeadersContinue }

// EncodeData continues.
func (*PassThrough) EncodeData(*buffer.Buffer, bool) DataStatus { return DataContinue }

// EncodeTrailers continues.
func (*PassThrough) EncodeTrailers(*http.HeaderMap) TrailersStatus { return TrailersContinue }

// EncodeComplete does nothing.
func (*PassThrough) EncodeComplete() {}

// OnLocalReply lets it go out.
func (*PassThrough) OnLocalReply(*LocalReply) LocalReplyStatus { return LocalReplyContinue }

// OnStreamComplete does nothing.
func (*PassThrough) OnStreamComplete() {}

// OnDestroy does nothing.
func (*PassThrough) OnDestroy() {}
