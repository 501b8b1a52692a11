package async

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// Stream is one request of the proxy's own and its answer. Streams are reused: after the last event, or Cancel, a Stream may belong
// to somebody else from the next pass on. owner: its worker.
type Stream struct {
	w  *event.Worker
	l  *local
	c  *Client
	hd Handler

	fm      fm.Stream
	rt      route.Entry
	inf     stream.Info
	arena   http.Arena
	req     http.HeaderMap
	resp    http.HeaderMap // of local replies
	reply   *filter.LocalReply
	forward bool

	// What came while it could not be told is told in the next pass.
	head     *http.HeaderMap
	body     buffer.Buffer
	trailers *http.HeaderMap
	reason   http.ResetReason
	waits    waits

	// calls counts the calls to the Stream, and those to its handler, that are on the stack.
	calls int
	// pauses counts how often the upstream holds the sender back; above is what the handler knows of it.
	pauses int
	above  bool

	queued bool // Run comes
	sent   bool // the whole request is
	closed bool // the router is gone
	dead   bool
}

// waits says what of an answer has not been told yet.
type waits uint8

const (
	headWaits waits = 1 << iota
	bodyWaits
	trailersWait
	resetWaits
	flowWaits
	endWaits // what waits ends the answer
)

func (s *Stream) begin(c *Client, o *Options, hd Handler, slot *cluster.Slot) {
	w := s.w
	s.c, s.hd = c, hd
	s.arena.Init(&w.Arenas)
	s.req.Init(&s.arena)
	s.resp.Init(&s.arena)
	s.body.Init(&w.Bufs)
	s.inf.Reset()
	s.inf.Start, s.inf.StartWall = w.Now(), w.Wall()
	s.inf.RequestHeaders = &s.req
	s.inf.Protocol = http.HTTP11
	s.rt = route.Entry{Kind: route.Forward, Slot: slot, NotFoundCode: 503, RouteTimeout: o.Timeout, Retry: o.Retry, Extras: route.NoExtras()}
	s.reply, s.forward = nil, o.ForwardedFor
	s.waits, s.calls, s.pauses = 0, 0, 0
	s.above, s.queued, s.sent, s.closed, s.dead = false, false, false, false, false
	chain := o.chain
	if chain == nil {
		chain = c.chain
	}
	s.fm.Init((*owner)(s), chain, o.BufferLimit)
}

// Headers is the map of the request's head, for the caller to fill before SendHeaders: :method, :path and :authority first. What it
// does not copy into the map's arena must live as long as the stream.
func (s *Stream) Headers() *http.HeaderMap { return &s.req }

// Reply is the local reply that the answer is; nil for an upstream's answer.
func (s *Stream) Reply() *filter.LocalReply { return s.reply }

// Info is what is known of the exchange.
func (s *Stream) Info() *stream.Info { return &s.inf }

// SendHeaders sends the head. end: there is no body.
func (s *Stream) SendHeaders(end bool) {
	if s.dead {
		return
	}
	h := &s.req
	if !h.Has(http.Scheme) {
		h.AddConst(http.Scheme, "http")
	}
	h.SetConst(http.EnvoyInternal, "true")
	if f := s.c.forward; s.forward && f != "" {
		if old := h.Get(http.XForwardedFor); old != "" {
			f = s.arena.Concat(old, ",", f)
		}
		h.SetConst(http.XForwardedFor, f)
	}
	s.calls++
	s.ended(end)
	s.fm.DecodeHeaders(h, end)
	s.calls--
}

// SendData sends body bytes and leaves data empty.
func (s *Stream) SendData(data *buffer.Buffer, end bool) {
	if !s.dead && !s.closed && !s.sent {
		s.calls++
		s.ended(end)
		s.fm.DecodeData(data, end)
		s.calls--
	}
	data.Reset()
}

// SendTrailers ends the request with trailers, which must live as long as the stream.
func (s *Stream) SendTrailers(t *http.HeaderMap) {
	if s.dead || s.closed || s.sent {
		return
	}
	s.calls++
	s.ended(true)
	s.fm.DecodeTrailers(t)
	s.calls--
}

func (s *Stream) ended(end bool) {
	if end {
		s.sent = true
		s.inf.RequestDone = s.w.Now()
	}
}

// Cancel gives the stream up. No event comes any more.
func (s *Stream) Cancel() {
	s.hd = nil
	s.finish()
}

// HoldAnswer stops the flow of the answer's bytes, or lets it go on; calls nest.
func (s *Stream) HoldAnswer(hold bool) {
	if s.dead || s.closed {
		return
	}
	s.calls++
	if hold {
		s.fm.OnAboveHighWatermark()
	} else {
		s.fm.OnBelowLowWatermark()
	}
	s.calls--
}

// wait keeps an event for the next pass if it cannot be told now: a call is on the stack, or something waits already.
func (s *Stream) wait(what waits) bool {
	if s.calls == 0 && s.waits == 0 {
		return false
	}
	s.waits |= what
	if !s.queued {
		s.queued = true
		s.w.Again(s)
	}
	return true
}

// Run is the worker's call in the next pass: what has waited is told, in the order of a message.
func (s *Stream) Run() {
	s.queued = false
	if s.dead {
		s.l.bury(s)
		return
	}
	w := s.waits
	s.waits = 0
	end := w&endWaits != 0
	if w&flowWaits != 0 {
		s.tellFlow()
	}
	if w&headWaits != 0 {
		s.tellHead(s.head, end && w&(bodyWaits|trailersWait) == 0)
	}
	if w&bodyWaits != 0 {
		s.tellBody(&s.body, end && w&trailersWait == 0)
	}
	if w&trailersWait != 0 {
		s.tellTrailers(s.trailers)
	}
	if w&resetWaits != 0 {
		s.tellReset(s.reason)
	}
}

// The tell functions call the handler, and end the stream with its last event. What a handler causes waits for its return.

func (s *Stream) tellHead(h *http.HeaderMap, end bool) {
	if s.dead {
		return
	}
	s.calls++
	s.hd.OnHeaders(h, end)
	s.calls--
	if end {
		s.finish()
	}
}

func (s *Stream) tellBody(data *buffer.Buffer, end bool) {
	if !s.dead {
		s.calls++
		s.hd.OnData(data, end)
		s.calls--
	}
	data.Reset()
	if end {
		s.finish()
	}
}

func (s *Stream) tellTrailers(t *http.HeaderMap) {
	if s.dead {
		return
	}
	s.calls++
	s.hd.OnTrailers(t)
	s.calls--
	s.finish()
}

func (s *Stream) tellReset(reason http.ResetReason) {
	if s.dead {
		return
	}
	s.calls++
	s.hd.OnReset(reason, s.inf.Details)
	s.calls--
	s.finish()
}

func (s *Stream) tellFlow() {
	if above := s.pauses > 0; !s.dead && above != s.above {
		s.above = above
		s.calls++
		if above {
			s.hd.OnAboveHighWatermark()
		} else {
			s.hd.OnBelowLowWatermark()
		}
		s.calls--
	}
}

// finish is the end of a stream.
func (s *Stream) finish() {
	if s.dead {
		return
	}
	s.dead = true
	s.inf.End = s.w.Now()
	s.close()
	s.waits = 0
	if !s.queued {
		s.l.bury(s)
	}
}

// close ends the router.
func (s *Stream) close() {
	if s.closed {
		return
	}
	s.closed = true
	s.fm.Complete()
	s.fm.Destroy()
}

func (s *Stream) release() {
	s.body.Reset()
	s.req.Release()
	s.resp.Release()
	s.arena.Release()
	s.hd, s.c, s.head, s.trailers, s.reply = nil, nil, nil, nil, nil
	s.rt = route.Entry{}
}
