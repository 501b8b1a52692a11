package router

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// attempt is one try of a request on one host. It is the pool's Callbacks and the codec's ResponseDecoder.
type attempt struct {
	r    *Router
	l    *local
	host *host.Host
	req  pool.Request
	enc  codec.ClientStream
	conn *pool.Conn
	resp http.HeaderMap
	// pending is what arrived before the stream was there.
	pending buffer.Buffer
	perTry  event.Timer
	start   int64

	pendingEnd   bool
	waiting      bool // in the pool's queue
	open         bool // the stream is there and not over
	sentEnd      bool // the whole request is encoded
	gotHeaders   bool
	paused       bool
	gone         bool
	countedRetry bool
}

func (a *attempt) begin(r *Router, h *host.Host) {
	a.r, a.host = r, h
	a.resp.Init(r.cb.Arena())
	a.pending.Init(&r.w.Bufs)
	a.start = r.w.Now()
	a.req.Decoder, a.req.Headers, a.req.CB = a, &a.resp, a
	r.cb.Info().Upstream = stream.Upstream{Host: h.Address, HostName: h.Hostname}
}

func (a *attempt) startPool(p *pool.Pool) {
	a.waiting = true
	p.Start(&a.req)
}

// OnPoolReady is the pool's: the stream is there.
func (a *attempt) OnPoolReady(s codec.ClientStream, c *pool.Conn) {
	r := a.r
	a.waiting, a.open = false, true
	a.enc, a.conn = s, c
	info := r.cb.Info()
	u := &info.Upstream
	ci := c.Info()
	u.Conn, u.ConnID, u.Local, u.Protocol = ci, ci.ID, ci.Local, c.Protocol()
	u.PoolReady, u.ConnStart = r.w.Now(), ci.Start
	u.FirstTx = r.w.Now()
	a.host.RqActive.Add(1)
	a.host.RqTotal.Add(1)
	kept := &r.body
	resend := r.attempts > 1 && kept.Len() > 0
	onlyHead := r.ended && a.pending.Len() == 0 && !resend && r.trailers == nil && (r.attempts == 1 || kept.Len() == 0) && !a.hasBodyToCome()
	if err := s.EncodeHeaders(r.head, onlyHead); err != nil {
		// Filters removed what a request must have (Envoy's filter_removed_required_request_headers).
		a.drop()
		r.reply(503, "missing required header: "+err.Error(), "filter_removed_required_request_headers{"+err.Error()+"}")
		return
	}
	if a.gone {
		return
	}
	if onlyHead {
		a.ended()
		return
	}
	a.flushBody(resend)
}

// hasBodyToCome tells whether the end of the request waits in pending.
func (a *attempt) hasBodyToCome() bool { return a.pendingEnd && a.pending.Len() > 0 }

// flushBody sends what was kept or has arrived before the stream was there.
func (a *attempt) flushBody(resend bool) {
	r := a.r
	end := r.ended && r.trailers == nil
	if resend {
		var again buffer.Buffer
		again.Init(&r.w.Bufs)
		for _, run := range r.body.Slices(nil, 1<<20) {
			again.Append(run)
		}
		if again.Len() > 0 || end {
			a.enc.EncodeData(&again, end)
		}
		again.Reset()
	} else if a.pending.Len() > 0 || a.pendingEnd {
		a.enc.EncodeData(&a.pending, a.pendingEnd)
	}
	if a.gone {
		return
	}
	r.hold(false)
	if end || a.pendingEnd {
		a.ended()
		return
	}
	if r.trailers != nil {
		a.enc.EncodeTrailers(r.trailers)
		if !a.gone {
			a.ended()
		}
	}
}

// ended: the whole request is on its way. Only now the per-try timeout begins, as Envoy's does: neither a slow client nor the wait
// for a connection counts.
func (a *attempt) ended() {
	a.sentEnd = true
	r := a.r
	r.cb.Info().Upstream.LastTx = r.w.Now()
	if r.perTry > 0 && a.open && !a.gotHeaders {
		r.w.Arm(&a.perTry, r.perTry)
	}
}

// data sends body bytes.
func (a *attempt) data(data *buffer.Buffer, end bool) {
	if a.open {
		a.enc.EncodeData(data, end)
		if end && !a.gone {
			a.ended()
		}
		return
	}
	if !a.waiting {
		return
	}
	if a.r.keepBody && a.r.attempts > 1 {
		return // the kept body has it all
	}
	a.pending.Move(data)
	a.pendingEnd = end
	if limit := a.r.cb.BufferLimit(); limit > 0 && a.pending.Len() > limit {
		a.r.hold(true)
	}
}

func (a *attempt) sendTrailers(t *http.HeaderMap) {
	if a.open {
		a.enc.EncodeTrailers(t)
		if !a.gone {
			a.ended()
		}
	}
}

// OnPoolFailure is the pool's: there is no stream.
func (a *attempt) OnPoolFailure(reason http.ResetReason, failure string, h *host.Host) {
	a.waiting = false
	if h != nil {
		a.host = h
	}
	a.r.cb.Info().Upstream.Failure = failure
	if reason != http.ResetOverflow {
		a.host.RqError.Add(1)
	}
	a.r.onReset(a, reason, failure)
}

// Decode1xx is the codec's.
func (a *attempt) Decode1xx(h *http.HeaderMap) {
	if a.r.try == a {
		a.r.cb.Encode1xx(h)
	}
}

// DecodeHeaders is the codec's: the response's head.
func (a *attempt) DecodeHeaders(h *http.HeaderMap, end bool) {
	a.gotHeaders = true
	u := &a.r.cb.Info().Upstream
	u.FirstRx = a.r.w.Now()
	if end {
		u.LastRx = u.FirstRx
		a.over()
	}
	a.r.onHeaders(a, h, end)
	if end {
		a.cutOff()
	}
}

// cutOff ends what is left of the request when its answer is over: nobody wants it any more, and the stream must not outlive the
// attempt.
func (a *attempt) cutOff() {
	if enc := a.enc; enc != nil && !a.sentEnd {
		a.enc = nil
		a.r.w.Stats.Inc(a.r.cluster.Stats().Counter(stats.ClusterUpstreamRqTxReset))
		enc.Reset(http.ResetLocal)
	}
}

// DecodeData is the codec's.
func (a *attempt) DecodeData(data *buffer.Buffer, end bool) {
	r := a.r
	if end {
		r.cb.Info().Upstream.LastRx = r.w.Now()
		a.over()
	}
	if r.final != a {
		data.Reset()
	} else {
		if end {
			r.complete(a)
		}
		r.cb.EncodeData(data, end)
	}
	if end {
		a.cutOff()
	}
}

// DecodeTrailers is the codec's.
func (a *attempt) DecodeTrailers(t *http.HeaderMap) {
	r := a.r
	r.cb.Info().Upstream.LastRx = r.w.Now()
	a.over()
	if r.final == a {
		r.complete(a)
		r.cb.EncodeTrailers(t)
	}
	a.cutOff()
}

// OnReset is the codec's: the stream broke.
func (a *attempt) OnReset(reason http.ResetReason, details string) {
	a.closeStream()
	a.enc = nil
	a.host.RqError.Add(1)
	r := a.r
	if reason == http.ResetRemote || reason == http.ResetRemoteRefused {
		r.w.Stats.Inc(r.cluster.Stats().Counter(stats.ClusterUpstreamRqRxReset))
	}
	r.onReset(a, reason, details)
}

// OnAboveHighWatermark and OnBelowLowWatermark are the codec's: the upstream does not keep up with the request.
func (a *attempt) OnAboveHighWatermark() {
	a.r.w.Stats.Inc(a.r.cluster.Stats().Counter(stats.ClusterUpstreamFlowControlBackedUpTotal))
	if a.r.try == a || a.r.final == a {
		a.r.hold(true)
	}
}

// OnBelowLowWatermark is the opposite.
func (a *attempt) OnBelowLowWatermark() {
	a.r.w.Stats.Inc(a.r.cluster.Stats().Counter(stats.ClusterUpstreamFlowControlDrainedTotal))
	if a.r.try == a || a.r.final == a {
		a.r.hold(false)
	}
}

func (a *attempt) readDisable(on bool) {
	if !a.open || a.paused == on {
		return
	}
	a.paused = on
	st := a.r.w.Stats
	if on {
		st.Inc(a.r.cluster.Stats().Counter(stats.ClusterUpstreamFlowControlPausedReadingTotal))
	} else {
		st.Inc(a.r.cluster.Stats().Counter(stats.ClusterUpstreamFlowControlResumedReadingTotal))
	}
	a.enc.ReadDisable(on)
}

// over: the response is complete.
func (a *attempt) over() {
	a.closeStream()
	a.host.RqSuccess.Add(1)
}

// closeStream: the stream is no more, by whatever way.
func (a *attempt) closeStream() {
	if !a.open {
		return
	}
	if a.enc != nil {
		u := &a.r.cb.Info().Upstream
		b := a.enc.WireBytes()
		u.WireSent, u.WireRecv, u.HeaderSent, u.HeaderRecv = b.Sent, b.Received, b.HeaderSent, b.HeaderReceived
	}
	a.open = false
	a.r.w.Disarm(&a.perTry)
	a.host.RqActive.Add(-1)
}

// drop gives the attempt up if it is under way, without a word to the router, and puts it back.
func (a *attempt) drop() {
	if a.gone {
		return
	}
	a.gone = true
	r := a.r
	r.w.Disarm(&a.perTry)
	switch {
	case a.waiting:
		a.waiting = false
		r.w.Stats.Inc(r.cluster.Stats().Counter(stats.ClusterUpstreamRqCancelled))
		a.req.Cancel()
	case a.open:
		r.w.Stats.Inc(r.cluster.Stats().Counter(stats.ClusterUpstreamRqTxReset))
		if a.paused {
			a.paused = false
			a.enc.ReadDisable(false)
		}
		enc := a.enc
		a.closeStream()
		a.enc = nil
		enc.Reset(http.ResetLocal)
	}
	a.pending.Reset()
	a.l.putAttempt(a)
	if r.try == a {
		r.try = nil
	}
	if r.final == a {
		r.final = nil
	}
}

// abandon is drop for a router that goes away.
func (a *attempt) abandon() { a.drop() }

func (a *attempt) release() {
	a.pending.Reset()
	a.resp.Release()
	*a = attempt{l: a.l, resp: a.resp, perTry: a.perTry}
}

func (a *attempt) onPerTry() {
	if a.gone || a.r == nil || a.r.try != a {
		return
	}
	a.r.onPerTryTimeout(a)
}
