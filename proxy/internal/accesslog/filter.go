package accesslog

import (
	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

type comparisonOp uint8

const (
	equal comparisonOp = iota
	greaterOrEqual
	lessOrEqual
	notEqual
)

// comparison compares a number with a configured one, which runtime may replace.
type comparison struct {
	op      comparisonOp
	value   uint64
	key     string
	runtime Runtime
}

func (c *comparison) holds(v uint64) bool {
	want := c.value
	if c.key != "" && c.runtime != nil {
		want = c.runtime.Integer(c.key, want)
	}
	switch c.op {
	case greaterOrEqual:
		return v >= want
	case lessOrEqual:
		return v <= want
	case notEqual:
		return v != want
	}
	return v == want
}

// statusCode compares the response's status, 0 if there was none.
type statusCode struct{ comparison }

func (f statusCode) Log(_ network.Dispatcher, i *stream.Info, _ accesslog.Type) bool {
	return f.holds(uint64(i.Code))
}

// duration compares how long the stream has lasted, in ms.
type duration struct{ comparison }

func (f duration) Log(w network.Dispatcher, i *stream.Info, _ accesslog.Type) bool {
	end := i.End
	if end == 0 {
		end = w.Now()
	}
	return f.holds(uint64(max(end-i.Start, 0)) / 1e6)
}

type notHealthCheck struct{}

func (notHealthCheck) Log(_ network.Dispatcher, i *stream.Info, _ accesslog.Type) bool {
	return !i.HealthCheck
}

// fraction lets a part of the streams through. Requests with an x-request-id are chosen by it, so that all proxies on their way
// choose the same ones.
type fraction struct {
	m                      *Manager
	runtime                Runtime
	key                    string
	numerator, denominator uint64
	independent            bool
}

func (f fraction) Log(w network.Dispatcher, i *stream.Info, _ accesslog.Type) bool {
	random, ok := uint64(0), false
	if !f.independent && i.RequestHeaders != nil {
		random, ok = idNumber(i.RequestHeaders.Get(http.XRequestID))
	}
	if !ok {
		if l := f.m.local(w.WorkerIndex()); l != nil {
			random = l.w.Rand.Uint64()
		}
	}
	if f.runtime != nil {
		return f.runtime.Enabled(f.key, f.numerator, random, f.denominator)
	}
	return random%f.denominator < f.numerator
}

// idNumber is the number of the first eight hexadecimal digits of a UUID.
func idNumber(id string) (n uint64, ok bool) {
	if len(id) < 8 {
		return 0, false
	}
	for _, c := range []byte(id[:8]) {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | uint64(c)
	}
	return n, true
}

type and []accesslog.Filter

func (f and) Log(w network.Dispatcher, i *stream.Info, when accesslog.Type) bool {
	for _, g := range f {
		if !g.Log(w, i, when) {
			return false
		}
	}
	return true
}

type or []accesslog.Filter

func (f or) Log(w network.Dispatcher, i *stream.Info, when accesslog.Type) bool {
	for _, g := range f {
		if g.Log(w, i, when) {
			return true
		}
	}
	return false
}

// noHeaders stands for the headers of streams that have none.
var noHeaders http.HeaderMap

// header matches a request header.
type header struct{ match func(h *http.HeaderMap) bool }

func (f header) Log(_ network.Dispatcher, i *stream.Info, _ accesslog.Type) bool {
	if i.RequestHeaders == nil {
		return f.match(&noHeaders)
	}
	return f.match(i.RequestHeaders)
}

// flags matches streams with one of some response flags, or with any.
type flags struct {
	any  bool
	list []stream.Flag
}

func (f flags) Log(_ network.Dispatcher, i *stream.Info, _ accesslog.Type) bool {
	if f.any {
		return i.Flags.Any()
	}
	for _, flag := range f.list {
		if i.Flags.Has(flag) {
			return true
		}
	}
	return false
}

// grpcUnknown is the status of responses that have none.
const grpcUnknown = 2

// grpcStatus matches the gRPC status of the response, whatever the request was.
type grpcStatus struct {
	codes   map[int64]bool
	exclude bool
}

func (f grpcStatus) Log(_ network.Dispatcher, i *stream.Info, _ accesslog.Type) bool {
	code, ok := format.ResponseGRPCStatus(i)
	if !ok {
		code = grpcUnknown
	}
	return f.codes[code] != f.exclude
}

type logType struct {
	types   uint32 // by number
	exclude bool
}

func (f logType) Log(_ network.Dispatcher, _ *stream.Info, when accesslog.Type) bool {
	return (f.types&(1<<when) != 0) != f.exclude
}

type valueMatch func(v any) bool

// metadata matches a value of the dynamic metadata. As in Envoy, the matcher's invert changes nothing.
type metadata struct {
	space   string
	path    []string
	match   valueMatch
	missing bool // the answer when there is no value
}

func (f metadata) Log(_ network.Dispatcher, i *stream.Info, _ accesslog.Type) bool {
	if f.match == nil || !i.HasMetadata() {
		return f.missing
	}
	v, ok := i.Metadata().Get(f.space, f.path...)
	if !ok {
		return f.missing
	}
	return f.match(v)
}
