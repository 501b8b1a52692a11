// Package fm is the HTTP filter manager: it carries one stream's headers, data and trailers through a chain of filters, in both
// directions, and keeps what filters hold back.
//
// A Stream belongs to its worker. hcm uses it for downstream streams, async for requests of the proxy's own. It knows neither
// codecs nor routes: what comes out at the ends goes to its Owner. It never calls a filter back while that filter's callback for
// the same direction is on the stack: what comes then waits.
package fm

import (
	"errors"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/route"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// Entry is one configured filter of a chain.
type Entry struct {
	Name    string
	Factory filter.Factory
	// Disabled: off unless the route turns it on.
	Disabled bool
}

// Chain is a configured list of filters, the last of which is the terminal one. It is immutable and shared by all workers.
type Chain struct{ Entries []Entry }

// LastDisabled is the error about a chain whose terminal filter is disabled.
func LastDisabled(name string) error {
	return errors.New("Error: the last (terminal) filter (" + name + ") in the chain cannot be disabled by default.") //nolint:staticcheck // Envoy's text
}

// Owner is what carries a Stream: the downstream request of hcm. All calls come on the worker.
type Owner interface {
	// Dispatch and what else filters may ask of the stream's surroundings.
	Worker() *event.Worker
	Info() *stream.Info
	Connection() network.Connection
	Arena() *http.Arena
	Route() route.Entry
	ClearRouteCache()

	// SendHeaders, SendData, SendTrailers and Send1xx take what has passed all encoding filters.
	Send1xx(h *http.HeaderMap)
	SendHeaders(h *http.HeaderMap, end bool)
	SendData(data *buffer.Buffer, end bool)
	SendTrailers(h *http.HeaderMap)
	// PrepareLocalReply turns a reply into a head and a body (mappers, formatters, gRPC). The head is the owner's.
	PrepareLocalReply(r *filter.LocalReply) (h *http.HeaderMap, body string)
	// TooLarge is told that a filter buffers more than the limit allows, of the request or of the response. The reply follows.
	TooLarge(request bool)
	// ReadDisable holds the client back; calls nest. What is still held back when the stream ends is let go by the owner.
	ReadDisable(disable bool)
	// Recreate starts the request anew in a later pass, with body instead of the one that was received. head is the answer that is
	// the reason, nil if there is none; it is borrowed. false: it cannot.
	Recreate(body *buffer.Buffer, head *http.HeaderMap) bool
	// Reset ends the stream at once. The owner calls Destroy.
	Reset(reason http.ResetReason)
	// Send starts a call of a filter.
	Send(c *filter.Call, done func(*filter.Answer, error)) filter.Canceler
}

// Replier is an Owner that makes local replies itself: its filters see nothing of them, and get nothing more (upstream filters).
type Replier interface{ LocalReply(r *filter.LocalReply) }

// Ender is an Owner whose connection can be told to end with the stream, since a reply comes in the middle of its request.
type Ender interface{ EndConnection() }

// Stream is one request on its way through a chain. It is reused: Init begins, Destroy ends. owner: worker.
type Stream struct {
	owner Owner
	acts  []active
	dec   direction
	enc   direction
	limit int

	madeTrailers *[2]http.HeaderMap // nil mostly

	watchers []func(bool)
	watcher  [1]func(bool) // where watchers begins: the terminal filter's is there mostly
	// above counts the reasons for which the client takes no more.
	above int32
	// depth counts the callbacks on the stack.
	depth int32
	// pending is a local reply that waits for them to return.
	pending *filter.LocalReply

	made            bool // trailers were
	responseStarted bool
	replying        bool // filters are being told of a local reply
	closing         bool // the owner is done with the stream
	destroyed       bool
	// gen tells callbacks whose stream went away while they were on the stack.
	gen uint32
}

// direction is the state of one side of a stream.
type direction struct {
	headers, trailers *http.HeaderMap

	decode   bool
	skip     bool // no filter takes part: go straight to the end
	received bool // the end has entered
	gotBody  bool // body bytes have entered
	ended    bool // the end has passed all filters
	stopped  bool // nothing is to be passed any more
}

// active is one filter of a stream, and the Callbacks that it got.
type active struct {
	s      *Stream
	f      filter.Filter
	entry  *Entry
	sides  filter.Sides
	halves [2]half
}

// half is what there is between a filter and the next one in one direction.
type half struct {
	flags flags
	// kept is nil until the filter keeps something; it stays with the place in the chain, for the next stream.
	*kept
}

// kept is what is kept at a filter in one direction. held is what the filter has seen and keeps, and what it has added. going is what
// was held and is being passed on. ahead is what the filter has not seen yet.
type kept struct{ held, going, ahead buffer.Buffer }

// keeps returns what is kept at h, for more to come.
func (s *Stream) keeps(h *half) *kept {
	h.flags |= used
	if h.kept == nil {
		k, pool := &kept{}, &s.owner.Worker().Bufs
		k.held.Init(pool)
		k.going.Init(pool)
		k.ahead.Init(pool)
		h.kept = k
	}
	return h.kept
}

func (h *half) heldLen() int {
	if h.kept == nil {
		return 0
	}
	return h.held.Len()
}

func (h *half) aheadLen() int {
	if h.kept == nil {
		return 0
	}
	return h.ahead.Len()
}

// flags is the state of a half.
type flags uint16

const (
	// open: the filter takes data and trailers. It is closed until its headers callback has returned, and by StopAll.
	open flags = 1 << iota
	sawHead
	sawEnd
	// headHeld, endHeld, trailersHeld: the filter has seen it and has not passed it on. Of the last two at most one is set.
	headHeld
	endHeld
	trailersHeld
	// queued: something waits in ahead (aheadEnd: and it is the end) or behind it (aheadTrailers).
	queued
	aheadEnd
	aheadTrailers
	// inCall: the filter's callback is on the stack. passing: what it held is being passed on; again: and there is more now.
	inCall
	passing
	again
	// watermark: flow control at the limit instead of an error. paused: the sender is held back.
	watermark
	paused
	// used: something has been kept.
	used
)

// Init makes s ready for a request with the filters of chain. limit is the buffer limit in bytes, 0 for none.
func (s *Stream) Init(owner Owner, chain *Chain, limit int) {
	s.gen++
	s.owner, s.limit = owner, limit
	s.dec, s.enc = direction{decode: true, skip: true}, direction{skip: true}
	s.above, s.depth, s.pending = 0, 0, nil
	s.responseStarted, s.replying, s.closing, s.destroyed = false, false, false, false
	s.acts = s.acts[:0]
	if chain != nil {
		s.build(chain)
	}
}

// Arrived tells whether the last filter has seen the request's head.
func (s *Stream) Arrived() bool {
	n := len(s.acts)
	return n > 0 && s.acts[n-1].halves[0].flags&sawHead != 0
}

// Alone tells whether the terminal filter is the only one.
func (s *Stream) Alone() bool { return len(s.acts) == 1 }

// build makes the filters of the chain. Which of them the route turns on or off is decided once, here; it cannot turn off the
// terminal filter.
func (s *Stream) build(chain *Chain) {
	n := len(chain.Entries)
	if cap(s.acts) < n {
		s.acts = make([]active, 0, n)
	}
	var rt route.Entry
	if n > 1 {
		rt = s.owner.Route()
	}
	for i := range chain.Entries {
		e := &chain.Entries[i]
		off := e.Disabled
		if rt != nil && i < n-1 {
			if o, set := rt.FilterDisabled(e.Name); set {
				off = o
			}
		}
		if off {
			continue
		}
		k := len(s.acts)
		s.acts = s.acts[:k+1]
		a := &s.acts[k]
		a.s, a.entry, a.sides = s, e, e.Factory.Sides()
		if a.f = e.Factory.New(a); a.f == nil {
			s.acts = s.acts[:k]
		}
	}
	for i := range s.acts {
		a := &s.acts[i]
		if a.sides&filter.Decoder != 0 {
			s.dec.skip = false
		}
		if a.sides&filter.Encoder != 0 {
			s.enc.skip = false
		}
		a.f.SetCallbacks(a)
	}
}

// ResponseStarted tells whether the response's head has been sent.
func (s *Stream) ResponseStarted() bool { return s.responseStarted }

// Destroyed tells whether Destroy was called.
func (s *Stream) Destroyed() bool { return s.destroyed }

// Complete tells the filters that the stream is over, before access logs are written. Nothing is passed on any more.
func (s *Stream) Complete() {
	s.closing = true
	s.dec.stopped, s.enc.stopped = true, true
	gen := s.gen
	for i := range s.acts {
		s.acts[i].f.OnStreamComplete()
		if s.gen != gen {
			return
		}
	}
}

// Destroy ends the stream: filters are told, and what they hold is released. The owner calls it once.
func (s *Stream) Destroy() {
	if s.destroyed {
		return
	}
	s.destroyed = true
	s.dec.stopped, s.enc.stopped = true, true
	s.pending = nil
	s.gen++
	for i := range s.acts {
		a := &s.acts[i]
		a.f.OnDestroy()
		for k := range a.halves {
			h := &a.halves[k]
			if h.flags&used != 0 {
				h.drop()
			}
			h.flags = 0
		}
		a.f, a.entry = nil, nil
	}
	if len(s.watchers) > 0 {
		clear(s.watchers)
		s.watchers = s.watchers[:0]
	}
	if s.made {
		s.made = false
		s.madeTrailers[0].Release()
		s.madeTrailers[1].Release()
	}
	s.dec.headers, s.dec.trailers, s.enc.headers, s.enc.trailers = nil, nil, nil, nil
}

func (h *half) drop() {
	if h.kept == nil {
		return
	}
	h.held.Reset()
	h.going.Reset()
	h.ahead.Reset()
}

// OnAboveHighWatermark and OnBelowLowWatermark tell the filters that subscribed whether the client takes bytes.
func (s *Stream) OnAboveHighWatermark() {
	s.above++
	if s.above == 1 {
		s.notify(true)
	}
}

// OnBelowLowWatermark is the opposite.
func (s *Stream) OnBelowLowWatermark() {
	if s.above == 0 {
		return
	}
	s.above--
	if s.above == 0 {
		s.notify(false)
	}
}

func (s *Stream) notify(above bool) {
	gen := s.gen
	for _, f := range s.watchers {
		f(above)
		if s.gen != gen || (s.above > 0) != above {
			return
		}
	}
}

// Next: proxy/internal/route/table.go
