package buffer

import (
	"strconv"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
)

// settings are the filter's, or a route's. They are immutable.
type settings struct {
	limitBytes int
	disabled   bool
}

// New returns the filter of one stream.
func (s *settings) New(network.Dispatcher) filter.Filter { return &waiter{s: s} }

// Sides says that the filter sees requests.
func (s *settings) Sides() filter.Sides { return filter.Decoder }

// waiter waits for a request's end.
type waiter struct {
	filter.PassThrough
	s     *settings
	head  *http.HeaderMap // nil: nothing is waited for
	bytes int
}

// DecodeHeaders holds the head of a request that has a body.
func (w *waiter) DecodeHeaders(h *http.HeaderMap, end bool) filter.HeadersStatus {
	if end {
		return filter.HeadersContinue
	}
	if s, ok := w.CB.RouteConfig().(*settings); ok {
		w.s = s
	}
	if w.s.disabled {
		return filter.HeadersContinue
	}
	w.CB.SetBufferLimit(w.s.limitBytes)
	w.head = h
	return filter.HeadersStopIteration
}

// DecodeData keeps the body. More than the limit is answered with 413 by the engine.
func (w *waiter) DecodeData(data *buffer.Buffer, end bool) filter.DataStatus {
	if w.head == nil {
		return filter.DataContinue
	}
	w.bytes += data.Len()
	if !end {
		return filter.DataStopIterationAndBuffer
	}
	w.length()
	return filter.DataContinue
}

// DecodeTrailers lets all of it go.
func (w *waiter) DecodeTrailers(*http.HeaderMap) filter.TrailersStatus {
	if w.head != nil {
		w.length()
	}
	return filter.TrailersContinue
}

// length says how long the body is, now that it is known: the upstream need not read chunks.
func (w *waiter) length() {
	if !w.head.Has(http.ContentLength) {
		w.head.Add(http.ContentLength, strconv.Itoa(w.bytes))
	}
}
