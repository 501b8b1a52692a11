package filter

import (
	"errors"
	"time"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/route"
	"github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/api/stream"
)

// Callbacks is what a filter may ask of its stream. All of it belongs to the stream's worker and is dead after OnDestroy.
type Callbacks interface {
	network.Dispatcher

	// Info is what is known of the stream; filters may set flags, details and metadata in it.
	Info() *stream.Info
	// Stats counts on this worker.
	Stats() stats.Recorder
	// Connection is the downstream connection; nil for streams that the proxy makes itself.
	Connection() network.Connection
	// Arena is where bytes go that must live as long as the stream's headers.
	Arena() *http.Arena
	// Route returns the route that the request takes, looked up once; nil if there is none.
	Route() route.Entry
	// ClearRouteCache makes the next Route look it up again, with the headers as they are then.
	ClearRouteCache()
	// RouteConfig returns this filter's most specific per-route configuration, as its factory parsed it; nil if there is none.
	RouteConfig() any
	// RouteConfigs appends those of all levels to dst, the most specific one first.
	RouteConfigs(dst []any) []any
	// Random returns 64 random bits of this worker's source.
	Random() uint64

	// ContinueDecoding and ContinueEncoding let go of what this filter holds. They may be called from timers and posts, and from
	// this filter's own callbacks (then the callback's status decides alone).
	ContinueDecoding()
	ContinueEncoding()
	// SendLocalReply answers the request: no filter gets any more of it, and r runs through the encoding filters. If these have
	// begun with another response that the client has seen nothing of, r goes past them; if the client has, the stream is reset.
	// Within a callback the reply is made when the callback has returned, whose status counts no more. The first reply wins.
	SendLocalReply(r *LocalReply)

	// AddDecodedData adds bytes to what this filter holds, and empties data. They go on with it: in a callback, with the callback's
	// Continue, before what is left in its buffer; else with Continue*. In DecodeData it may take the callback's own buffer, so
	// that all of the body is in BufferedDecodeData. streaming: flow control instead of a limit. After this filter's end has been
	// passed on, bytes are dropped.
	AddDecodedData(data *buffer.Buffer, streaming bool)
	// InjectDecodedData passes bytes to the filters after this one at once, and empties data. Headers that this filter holds go
	// before them, data that it holds does not. end: the message ends with them (and with trailers that this filter holds).
	InjectDecodedData(data *buffer.Buffer, end bool)
	// AddDecodedTrailers makes trailers for a request that has none, as long as this filter holds its end: in the callback that
	// sees it, or later if it was not passed on. They take the end's place.
	AddDecodedTrailers() *http.HeaderMap
	AddEncodedData(data *buffer.Buffer, streaming bool)
	InjectEncodedData(data *buffer.Buffer, end bool)
	AddEncodedTrailers() *http.HeaderMap
	// BufferedDecodeData and BufferedEncodeData are what this filter holds (of StopAll: what waits for it), or another filter does;
	// nil if nothing. The filter that holds it may change it. Who takes bytes out of it and injects them lets a sender that
	// is held back go on.
	BufferedDecodeData() *buffer.Buffer
	BufferedEncodeData() *buffer.Buffer

	// BufferLimit is the limit of buffered data of this stream in bytes, 0 for none; SetBufferLimit changes it.
	BufferLimit() int
	SetBufferLimit(bytes int)
	// RecreateStream starts the request anew through the whole chain, with its headers as they are now (internal redirects). It must
	// be here whole, and its body buffered or empty, and the client must have seen nothing of a response. Its trailers do not come
	// again. The filters of this round get no more but OnStreamComplete and OnDestroy. false: it is not possible.
	RecreateStream() bool
	// ResetStream ends the stream at once, without a reply.
	ResetStream(reason http.ResetReason)
	// SubscribeWatermarks tells f when the client takes no more bytes (true), and when it does again (false).
	SubscribeWatermarks(f func(above bool))
	// ReadDisable holds the client's bytes back (true), and lets them come again; calls nest. It is flow control for filters that
	// move bodies away.
	ReadDisable(disable bool)

	// Send starts a request to a cluster and returns at once; done is called on this worker with the answer, never inline.
	// Cancel of the result stops it without a call.
	Send(c *Call, done func(*Answer, error)) Canceler
}

// Canceler stops something that was started.
type Canceler interface{ Cancel() }

// Call is a request that a filter sends to a cluster.
type Call struct {
	Cluster string
	// Method, Path and Authority are required.
	Method, Path, Authority string
	Headers                 []http.Header
	Body                    []byte
	// Timeout covers the whole exchange; 0 means none.
	Timeout time.Duration
	// LimitBytes bounds the answer's body; 0 means 64 KiB. A longer one is an error.
	LimitBytes int
	// ForwardedFor appends the proxy's own address to x-forwarded-for.
	ForwardedFor bool
}

// Answer is what came back. It owns its memory.
type Answer struct {
	Status  int
	Headers []http.Header
	Body    []byte
}

// Errors of calls.
var (
	// ErrStreamReset: the stream ended while the call was waiting.
	ErrStreamReset = errors.New("stream was reset")
	// ErrNoCluster, ErrTimeout, ErrReset and ErrTooLarge say why there is no answer.
	ErrNoCluster = errors.New("cluster not found")
	ErrTimeout   = errors.New("call timed out")
	ErrReset     = errors.New("call was reset by the upstream")
	ErrTooLarge  = errors.New("answer is larger than its limit")
	// ErrTooMany: the worker's limit of suspended filters is reached.
	ErrTooMany = errors.New("too many suspended filters on this worker")
)

// Sync is a filter written as straight-line code: Decode runs as a coroutine on the stream's worker and may wait in Sync's
// Call as if it blocked. The request is held until Decode returns; its body by flow control.
//
// The body must not lock its OS thread nor hold a mutex across a Call; when Call returns ErrStreamReset it must return. The filters
// that wait on one worker are bounded: beyond that Call returns ErrTooMany, and the request is answered with 503 unless Decode
// answers it otherwise.
type Sync interface {
	// Decode sees the request's head. A reply that is not nil answers the request.
	Decode(s SyncStream, h *http.HeaderMap) *LocalReply
}

// SyncStream is what straight-line code may ask of its stream.
type SyncStream interface {
	Callbacks() Callbacks
	// Call sends a request and returns its answer. It looks blocking and never blocks the worker.
	Call(c *Call) (*Answer, error)
	// Sleep waits. It returns ErrStreamReset if the stream ended meanwhile.
	Sleep(d time.Duration) error
}

// Factory makes the filters of one configured place in a chain. It is immutable and shared by all workers.
type Factory interface {
	// New returns a filter for one stream, or nil if it needs none. It runs on the stream's worker and may take the filter from
	// a worker-local pool.
	New(w network.Dispatcher) Filter
	// Sides says which callbacks the filter wants: a side that it does not want is skipped without a call.
	Sides() Sides
}

// Sides is a set of directions.
type Sides uint8

// Directions of a filter.
const (
	Decoder Sides = 1 << iota
	Encoder
	Both = Decoder | Encoder
)
