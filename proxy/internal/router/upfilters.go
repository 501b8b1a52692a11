package router

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	aroute "github.com/dragoman-proxy/dragoman/api/route"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
)

// CodecFilter is the factory of envoy.filters.http.upstream_codec, the terminal filter of upstream filters. It is for nothing else.
type CodecFilter struct{}

// Sides says that the codec takes requests and makes answers.
func (CodecFilter) Sides() filter.Sides { return filter.Decoder }

// New returns the codec filter of an attempt, nil where there is none.
func (CodecFilter) New(d network.Dispatcher) filter.Filter {
	if t, ok := d.(fm.Terminal); ok {
		if u, ok := t.Owner().(*upFilters); ok {
			return &u.codec
		}
	}
	return nil
}

// upFilters are the upstream HTTP filters of one attempt: the request goes through them to the codec, the answer through them to the
// router. Most attempts have none. It is the fm.Owner of its filters. owner: the attempt's worker.
type upFilters struct {
	a     *attempt
	fm    fm.Stream
	codec codecFilter
	holds int // how often filters hold the client back
}

// upstreamChain is the filters that attempts go through, nil if there are none: the cluster's, or the router's own.
func (r *Router) upstreamChain() *fm.Chain {
	if c, ok := r.cluster.Pools().Filters.(*fm.Chain); ok {
		return c
	}
	return r.cfg.UpstreamChain
}

// filtered makes an attempt go through filters.
func (a *attempt) filtered(chain *fm.Chain) {
	if a.filters == nil {
		a.filters = &upFilters{a: a}
		a.filters.codec.u = a.filters
	}
	u := a.filters
	a.chained = true
	u.holds, u.codec.state = 0, codecState{}
	u.fm.Init(u, chain, a.r.cb.BufferLimit())
}

// feed sends the request, as far as it is here, through the filters.
func (a *attempt) feed() {
	r, s := a.r, &a.filters.fm
	again := r.attempts > 1 && r.body.Len() > 0
	end := r.ended && r.trailers == nil
	s.DecodeHeaders(r.head, end && !again)
	if again && !a.gone {
		var b buffer.Buffer
		b.Init(&r.w.Bufs)
		r.copyBody(&b)
		s.DecodeData(&b, end)
		b.Reset()
	}
	if r.attempts > 1 && r.ended && r.trailers != nil && !a.gone {
		s.DecodeTrailers(r.trailers)
	}
}

// endFilters ends the filters. Nothing goes through them any more.
func (a *attempt) endFilters() {
	a.chained = false
	u := a.filters
	u.fm.Complete()
	u.fm.Destroy()
	for ; u.holds > 0; u.holds-- {
		a.r.cb.ReadDisable(false)
	}
}

// codecFilter ends the filters of an attempt: what gets here is sent to the upstream.
type codecFilter struct {
	filter.PassThrough
	u     *upFilters
	state codecState
}

// codecState is what is zero at the beginning of each attempt.
type codecState struct {
	passed   bool // the head has passed the filters
	sent     bool // and was sent
	end      bool // the end has passed
	trailers *http.HeaderMap
}

// SetCallbacks makes the upstream follow the filters' flow control.
func (c *codecFilter) SetCallbacks(cb filter.Callbacks) {
	c.CB = cb
	cb.SubscribeWatermarks(c.u.a.filtersAbove)
}

// DecodeHeaders sends the head when there is a stream.
func (c *codecFilter) DecodeHeaders(_ *http.HeaderMap, end bool) filter.HeadersStatus {
	c.state.passed, c.state.end = true, end
	c.u.a.pump()
	return filter.HeadersStopIteration
}

// DecodeData sends body bytes.
func (c *codecFilter) DecodeData(data *buffer.Buffer, end bool) filter.DataStatus {
	a := c.u.a
	c.state.end = end
	a.later().Move(data)
	a.pump()
	return filter.DataStopIterationNoBuffer
}

// DecodeTrailers ends the request.
func (c *codecFilter) DecodeTrailers(t *http.HeaderMap) filter.TrailersStatus {
	c.state.end, c.state.trailers = true, t
	c.u.a.pump()
	return filter.TrailersStopIteration
}

// pump sends what has passed the filters, as far as the upstream takes it.
func (a *attempt) pump() {
	r, c := a.r, &a.filters.codec.state
	if !a.open || a.gone || a.sentEnd || !c.passed {
		a.holdPending()
		return
	}
	if !c.sent {
		c.sent = true
		only := c.end && a.waits() == 0 && c.trailers == nil
		if !a.encodeHead(only) {
			return
		}
		if only {
			a.ended()
			return
		}
	}
	if a.tunnel {
		a.holdPending()
		return
	}
	end := c.end && c.trailers == nil
	if a.waits() > 0 || end {
		a.touch()
		a.encode(a.later(), end)
	}
	if a.gone {
		return
	}
	r.hold(a.above)
	if c.trailers != nil {
		a.enc.EncodeTrailers(c.trailers)
	}
	if c.end && !a.gone {
		a.ended()
	}
}

// holdPending holds the client back when too much waits.
func (a *attempt) holdPending() {
	if limit := a.r.cb.BufferLimit(); limit > 0 && a.waits() > limit && !a.gone {
		a.r.hold(true)
	}
}

// filtersAbove is told when the filters do not keep up with the answer.
func (a *attempt) filtersAbove(above bool) {
	a.choked = above
	a.readDisable(a.choked || a.r.above)
}

// The methods below make upFilters the fm.Owner.

// Worker returns the attempt's worker.
func (u *upFilters) Worker() *event.Worker { return u.a.r.w }

// Info returns what is known of the request.
func (u *upFilters) Info() *stream.Info { return u.a.r.info }

// Connection returns the downstream connection.
func (u *upFilters) Connection() network.Connection { return u.a.r.cb.Connection() }

// Arena returns the memory of the request's headers.
func (u *upFilters) Arena() *http.Arena { return u.a.r.head.Arena() }

// Route returns the request's route.
func (u *upFilters) Route() aroute.Entry {
	if r := u.a.r; r.sent { // the client's stream may have let go of it
		return r.rt
	}
	return u.a.r.cb.Route()
}

// ClearRouteCache does nothing: the router has its route.
func (u *upFilters) ClearRouteCache() {}

// Send1xx takes an informational head to the router.
func (u *upFilters) Send1xx(h *http.HeaderMap) { u.a.answer1xx(h) }

// SendHeaders takes the answer's head to the router.
func (u *upFilters) SendHeaders(h *http.HeaderMap, end bool) { u.a.answerHead(h, end) }

// SendData takes body bytes of the answer.
func (u *upFilters) SendData(data *buffer.Buffer, end bool) { u.a.answerBody(data, end) }

// SendTrailers takes the answer's trailers.
func (u *upFilters) SendTrailers(t *http.HeaderMap) { u.a.answerTrailers(t) }

// LocalReply answers the request downstream: a filter's reply is nobody's answer that could be tried again, as in Envoy.
func (u *upFilters) LocalReply(rep *filter.LocalReply) {
	r := u.a.r
	r.finish()
	r.cb.SendLocalReply(rep)
}

// PrepareLocalReply is never called: see LocalReply.
func (u *upFilters) PrepareLocalReply(*filter.LocalReply) (*http.HeaderMap, string) { return nil, "" }

// TooLarge counts nothing.
func (u *upFilters) TooLarge(request bool) {
	if request {
		u.a.r.endConnection()
	}
}

// ReadDisable holds the client back.
func (u *upFilters) ReadDisable(disable bool) {
	if disable {
		u.holds++
	} else if u.holds > 0 {
		u.holds--
	}
	u.a.r.cb.ReadDisable(disable)
}

// Recreate is not for upstream filters.
func (u *upFilters) Recreate(*buffer.Buffer, *http.HeaderMap) bool { return false }

// Reset ends the request downstream.
func (u *upFilters) Reset(reason http.ResetReason) { u.a.r.cb.ResetStream(reason) }

// Send starts a call of a filter.
func (u *upFilters) Send(c *filter.Call, done func(*filter.Answer, error)) filter.Canceler {
	return u.a.r.cb.Send(c, done)
}
