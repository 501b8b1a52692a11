// Package fm is the HTTP filter manager: it carries one stream's headers, data and trailers through a chain of filters, in both
// directions, and keeps what filters hold back.
//
// A Stream belongs to its worker. hcm uses it for downstream streams; router for upstream filters. It knows neither codecs nor
// routes: what comes out at the ends goes to its Owner.
package fm

import (
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

// Chain is a configured list of filters. It is immutable and shared by all workers.
type Chain struct{ Entries []Entry }

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
	// ReadDisable holds the client back.
	ReadDisable(disable bool)
	// Recreate starts the request anew; body is what was buffered.
	Recreate(body *buffer.Buffer) bool
	// Reset ends the stream at once. The owner calls Destroy.
	Reset(reason http.ResetReason)
	// Send starts a call of a filter.
	Send(c *filter.Call, done func(*filter.Answer, error)) filter.Canceler
}

// Stream is one request on its way through a chain.
type Stream struct {
	owner Owner
	acts  []active
	dec   direction
	enc   direction
	limit int

	reqHeaders, reqTrailers   *http.HeaderMap
	respHeaders, respTrailers *http.HeaderMap
	madeTrailers              [2]http.HeaderMap

	watchers []func(bool)
	// above counts the reasons for which the client takes no more.
	above int

	responseStarted bool
	localReply      bool
	destroyed       bool
	// gen tells callbacks whose stream went away while they were on the stack.
	gen uint32
}

// direction is the state of one side of a stream.
type direction struct {
	decode  bool
	skip    bool // no filter takes part: go straight to the end
	ended   bool // the end has passed all filters
	stopped bool // nothing is to be passed any more (a local reply ended decoding)
}

// active is one filter of a stream, and the Callbacks that it got.
type active struct {
	s      *Stream
	f      filter.Filter
	entry  *Entry
	sides  filter.Sides
	halves [2]half
}

// half is what a filter holds in one direction.
type half struct {
	headersHeld  bool // the filter has seen headers and keeps them
	headersSeen  bool
	stopAll      bool // the filter gets nothing until it continues
	watermark    bool // at the limit: flow control, not an error
	endHeld      bool // the end came with what is held
	trailersHeld bool
	paused       bool // we hold the sender back for this filter
	inCall       bool
	noMore       bool // the filter has taken the end away (ContinueAndDontEndStream)
	complete     bool
	// held is what the filter has seen and keeps; ahead is what it has not seen yet (stopAll); added is what it adds in a
	// callback.
	held, ahead, added buffer.Buffer
}

// Init makes s ready for a request with the filters of chain. limit is the buffer limit in bytes, 0 for none.
func (s *Stream) Init(owner Owner, chain *Chain, limit int) {
	s.gen++
	s.owner, s.limit = owner, limit
	s.dec, s.enc = direction{decode: true, skip: true}, direction{skip: true}
	s.reqHeaders, s.reqTrailers, s.respHeaders, s.respTrailers = nil, nil, nil, nil
	s.above, s.responseStarted, s.localReply, s.destroyed = 0, false, false, false
	s.acts = s.acts[:0]
	if chain != nil {
		s.build(chain)
	}
}

// build makes the filters of the chain. Which of them the route turns on or off is known to it only once, here.
func (s *Stream) build(chain *Chain) {
	if cap(s.acts) < len(chain.Entries) {
		s.acts = make([]active, 0, len(chain.Entries))
	}
	var rt route.Entry
	asked := false
	for i := range chain.Entries {
		e := &chain.Entries[i]
		if e.Disabled {
			if !asked {
				rt, asked = s.owner.Route(), true
			}
			if rt == nil {
				continue
			}
			if off, set := rt.FilterDisabled(e.Name); !set || off {
				continue
			}
		}
		s.acts = s.acts[:len(s.acts)+1]
		a := &s.acts[len(s.acts)-1]
		a.s, a.entry, a.sides = s, e, e.Factory.Sides()
		a.f = e.Factory.New(a)
	}
	pool := &s.owner.Worker().Bufs
	for i := range s.acts {
		a := &s.acts[i]
		for k := range a.halves {
			h := &a.halves[k]
			h.held.Init(pool)
			h.ahead.Init(pool)
			h.added.Init(pool)
		}
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

// RequestEnded tells whether the whole request has passed all filters.
func (s *Stream) RequestEnded() bool { return s.dec.ended }

// Destroyed tells whether Destroy was called.
func (s *Stream) Destroyed() bool { return s.destroyed }

// Complete tells the filters that the stream is over, before access logs are written.
func (s *Stream) Complete() {
	for i := range s.acts {
		s.acts[i].f.OnStreamComplete()
	}
}

// Destroy ends the stream: filters are told, and what they hold is released. The owner calls it once.
func (s *Stream) Destroy() {
	if s.destroyed {
		return
	}
	s.destroyed = true
	s.gen++
	for i := range s.acts {
		a := &s.acts[i]
		a.f.OnDestroy()
		for k := range a.halves {
			h := &a.halves[k]
			h.held.Reset()
			h.ahead.Reset()
			h.added.Reset()
			*h = half{held: h.held, ahead: h.ahead, added: h.added}
		}
		a.f, a.entry, a.s = nil, nil, nil
	}
	clear(s.watchers)
	s.watchers = s.watchers[:0]
	s.madeTrailers[0].Release()
	s.madeTrailers[1].Release()
	s.reqHeaders, s.reqTrailers, s.respHeaders, s.respTrailers = nil, nil, nil, nil
	s.owner = nil
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
	s.above--
	if s.above == 0 {
		s.notify(false)
	}
}

func (s *Stream) notify(above bool) {
	gen := s.gen
	for _, f := range s.watchers {
		f(above)
		if s.gen != gen {
			return
		}
	}
}

// Next: proxy/internal/route/table.go
