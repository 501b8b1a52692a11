package router

import (
	"math"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/freelist"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// attempt is one try of a request on one host. It is the pool's Callbacks and the codec's ResponseDecoder.
type attempt struct {
	l    *local
	req  pool.Request
	resp http.HeaderMap
	tail *http.HeaderMap // made when there are some: the answer's trailers
	// pending is what arrived before it could be sent; nil mostly, see later.
	pending *buffer.Buffer
	// Timers that few requests need are made when they do.
	perTry  *event.Timer
	idle    *event.Timer // per_try_idle_timeout
	life    *event.Timer // max_stream_duration of the upstream
	rec     *record      // for upstream access logs; nil mostly
	filters *upFilters   // nil mostly

	attemptState
}

// attemptState is what is zero at the beginning of each attempt.
type attemptState struct {
	r     *Router
	host  *host.Host
	conn  *pool.Conn         // of the stream
	enc   codec.ClientStream // until the stream is over in both directions
	up    *stream.Upstream   // where what is known of the attempt goes: the request's Info, or a place of its own
	raw   *tcpStream         // nil mostly
	start int64
	// before is what the attempts before this one took on the wire.
	before codec.Bytes

	pendingEnd bool
	waiting    bool // in the pool's queue
	open       bool // the stream is there and its response not over
	sentEnd    bool // the whole request is encoded
	gotHeaders bool
	paused     bool // we hold the upstream back
	tunnel     bool // the body waits until the upstream has accepted what the head asks for
	deferred   bool // a gRPC response's success is known by its trailers
	above      bool // the upstream does not keep up with the request
	retried    bool // another attempt follows, or runs beside this one (hedging)
	blamed     bool // outlier detection has heard of its timeout
	logged     bool // rec is in use
	chained    bool // filters are
	choked     bool // they do not keep up with the answer
	gone       bool
}

func (a *attempt) begin(r *Router, h *host.Host) {
	a.r, a.host = r, h
	a.resp.Init(r.head.Arena())
	a.start = r.w.Now()
	a.req.Decoder, a.req.Headers, a.req.CB = a, &a.resp, a
	a.tunnel = r.websocket || r.connect
	a.up = &r.info.Upstream
	u := a.up
	a.before = codec.Bytes{Sent: u.WireSent, Received: u.WireRecv, HeaderSent: u.HeaderSent, HeaderReceived: u.HeaderRecv}
	*u = stream.Upstream{}
	u.Host, u.HostName, u.Static = h.Address, h.Hostname, r
	a.putWire(&codec.Bytes{})
	if len(r.cfg.UpstreamLogs) > 0 {
		a.beginRecord()
	}
}

func (a *attempt) startPool(p *pool.Pool) {
	a.waiting = true
	p.Start(&a.req)
}

// OnPoolReady is the pool's: the stream is there.
func (a *attempt) OnPoolReady(s codec.ClientStream, c *pool.Conn) {
	a.conn = c
	a.up.Protocol, a.up.Streams = c.Protocol(), c.Streams()
	a.ready(s, c.Info())
}

// ready sends the request, as far as it is here, on its stream.
func (a *attempt) ready(s codec.ClientStream, ci *network.ConnInfo) {
	r := a.r
	now := r.w.Now()
	a.waiting, a.open = false, true
	a.enc = s
	u := a.up
	u.Conn, u.ConnID, u.Local = ci, ci.ID, ci.Local
	u.PoolReady, u.ConnStart, u.FirstTx = now, ci.Start, now
	if a.logged {
		a.rec.inf.Protocol = u.Protocol
		if r.cfg.UpstreamLogReady {
			a.log(accesslog.UpstreamPoolReady)
		}
	}
	if a.raw == nil { // the connection has counted itself
		a.host.RqActive.Add(1)
		a.host.RqTotal.Add(1)
	}
	r.alsoInc(stats.VirtualClusterUpstreamRqTotal)
	if r.rt.AutoHostRewrite && a.host.Hostname != "" {
		r.setHost(r.head, r.head.Get(http.Authority), a.host.Hostname)
	}
	if r.info.SchemeUpstream {
		scheme := "http"
		if ci.TLS != nil {
			scheme = "https"
		}
		r.head.SetConst(http.Scheme, scheme)
	}
	if r.websocket && r.perTryIdle > 0 {
		a.arm(&a.idle, (*attempt).onIdle, r.perTryIdle)
	}
	if r.websocket && r.perTry > 0 {
		a.arm(&a.perTry, (*attempt).onPerTry, r.perTry)
	}
	if r.maxDuration > 0 {
		a.arm(&a.life, (*attempt).onLife, r.maxDuration)
	}
	if a.chained {
		a.pump()
		return
	}
	kept := r.body.Len() > 0 && r.attempts > 1
	onlyHead := r.ended && !kept && a.waits() == 0 && r.trailers == nil && !r.keeper.some()
	if !a.encodeHead(onlyHead) {
		return
	}
	if onlyHead {
		a.ended()
		return
	}
	if !a.tunnel {
		a.flushBody()
	}
}

// encodeHead sends the head. false: the attempt is over.
func (a *attempt) encodeHead(end bool) bool {
	r := a.r
	if err := a.enc.EncodeHeaders(r.head, end); err != nil {
		// Filters removed what a request must have.
		a.drop()
		r.reply(503, "missing required header: "+err.Error(), "filter_removed_required_request_headers{"+err.Error()+"}")
		return false
	}
	return !a.gone
}

// encode sends body bytes.
func (a *attempt) encode(data *buffer.Buffer, end bool) {
	if a.logged {
		a.rec.inf.BytesSent += uint64(data.Len())
	}
	a.enc.EncodeData(data, end)
}

// accepted: the upstream speaks the other protocol now, so what waited goes out.
func (a *attempt) accepted() {
	if a.tunnel {
		a.tunnel = false
		switch {
		case a.chained:
			a.pump()
		case a.open && !a.sentEnd:
			a.flushBody()
		}
	}
}

// flushBody sends what was kept or has arrived before it could be sent.
func (a *attempt) flushBody() {
	r := a.r
	if r.keeper != nil {
		r.keeper.begin(a)
		return
	}
	end := r.ended && r.trailers == nil
	if r.attempts > 1 && r.body.Len() > 0 {
		var again buffer.Buffer
		again.Init(&r.w.Bufs)
		r.copyBody(&again)
		a.encode(&again, end)
		again.Reset()
	} else if a.waits() > 0 || end {
		a.encode(a.later(), end)
	}
	if a.gone {
		return
	}
	r.hold(a.above)
	if !end && r.trailers != nil {
		a.enc.EncodeTrailers(r.trailers)
		if a.gone {
			return
		}
		end = true
	}
	if end {
		a.ended()
	}
}

// later returns the buffer of what cannot be sent yet.
func (a *attempt) later() *buffer.Buffer {
	if a.pending == nil {
		a.pending = freelist.Take(&a.l.bodies, nil)
		a.pending.Init(&a.l.w.Bufs)
	}
	return a.pending
}

// waits returns how many bytes cannot be sent yet.
func (a *attempt) waits() int {
	if a.pending == nil {
		return 0
	}
	return a.pending.Len()
}

func (a *attempt) forgetPending() {
	if a.pending != nil {
		a.pending.Reset()
	}
}

// copyBody appends what was kept of the body.
func (r *Router) copyBody(to *buffer.Buffer) {
	for _, run := range r.body.Slices(nil, math.MaxInt) {
		to.Append(run)
	}
}

// ended: the whole request is on its way. Only now the per-try timeout begins, as Envoy's does: neither a slow client nor the wait
// for a connection counts.
func (a *attempt) ended() {
	a.sentEnd = true
	r := a.r
	a.up.LastTx = r.w.Now()
	if r.perTry > 0 && a.open && !a.gotHeaders {
		a.arm(&a.perTry, (*attempt).onPerTry, r.perTry)
	}
	a.touch()
}

// data sends body bytes.
func (a *attempt) data(data *buffer.Buffer, end bool) {
	r := a.r
	if a.chained {
		a.filters.fm.DecodeData(data, end)
		return
	}
	if a.open && !a.tunnel {
		a.touch()
		a.encode(data, end)
		if end && !a.gone {
			a.ended()
		}
		return
	}
	if !a.waiting && !a.open {
		return
	}
	if r.keepBody && r.attempts > 1 {
		return // the kept body has it all
	}
	a.later().Move(data)
	a.pendingEnd = end
	if limit := r.cb.BufferLimit(); limit > 0 && a.waits() > limit {
		r.hold(true)
	}
}

func (a *attempt) sendTrailers(t *http.HeaderMap) {
	if a.chained {
		a.filters.fm.DecodeTrailers(t)
		return
	}
	if a.open && !a.tunnel {
		a.enc.EncodeTrailers(t)
		if !a.gone {
			a.ended()
		}
	}
}

// touch puts the per-try idle timeout off, which like the per-try timeout begins when the whole request is on its way.
func (a *attempt) touch() {
	if a.r.perTryIdle > 0 && a.open && (a.sentEnd || a.r.websocket) {
		a.arm(&a.idle, (*attempt).onIdle, a.r.perTryIdle)
	}
}

// Decode1xx is the codec's.
func (a *attempt) Decode1xx(h *http.HeaderMap) {
	if a.chained {
		a.filters.fm.Encode1xx(h)
		return
	}
	a.answer1xx(h)
}

func (a *attempt) answer1xx(h *http.HeaderMap) {
	r := a.r
	if r.sent || !r.has(a) {
		return
	}
	if h.StatusCode() <= 103 && !r.informed {
		r.settleOn(a)
	}
	r.charge(h.StatusCode(), a.host.Canary(), false)
	r.cb.Encode1xx(h)
}

// DecodeHeaders is the codec's: the response's head.
func (a *attempt) DecodeHeaders(h *http.HeaderMap, end bool) {
	a.touch()
	u := a.up
	u.FirstRx = a.r.w.Now()
	if end {
		u.LastRx = u.FirstRx
		a.closeStream()
	}
	if a.chained {
		a.filters.fm.EncodeHeaders(h, end)
	} else {
		a.answerHead(h, end)
	}
	if end {
		a.cutOff()
	}
}

func (a *attempt) answerHead(h *http.HeaderMap, end bool) {
	a.gotHeaders = true
	if a.logged {
		a.logHead(h)
	}
	a.r.onHeaders(a, h, end)
}

// cutOff ends what is left of the request when its answer is over: nobody wants it any more, and the stream must not outlive the
// attempt.
func (a *attempt) cutOff() {
	if enc := a.enc; enc != nil && !a.sentEnd {
		a.enc = nil
		a.reset(enc)
	}
}

// reset gives the upstream's stream up. Resets are counted where they are frames; HTTP/1 closes its connection.
func (a *attempt) reset(enc codec.ClientStream) {
	if a.up.Protocol == http.HTTP2 {
		a.r.inc(stats.ClusterUpstreamRqTxReset)
	}
	enc.Reset(http.ResetLocal)
}

// DecodeData is the codec's.
func (a *attempt) DecodeData(data *buffer.Buffer, end bool) {
	a.touch()
	if end {
		a.up.LastRx = a.r.w.Now()
		a.closeStream()
	}
	if a.chained {
		a.filters.fm.EncodeData(data, end)
	} else {
		a.answerBody(data, end)
	}
	if end {
		a.cutOff()
	}
}

func (a *attempt) answerBody(data *buffer.Buffer, end bool) {
	r := a.r
	if a.logged {
		a.rec.inf.BytesReceived += uint64(data.Len())
	}
	if r.final != a {
		data.Reset()
		return
	}
	if end {
		r.complete(a)
	}
	r.cb.EncodeData(data, end)
}

// DecodeTrailers is the codec's.
func (a *attempt) DecodeTrailers(t *http.HeaderMap) {
	a.up.LastRx = a.r.w.Now()
	a.closeStream()
	if a.r.has(a) {
		// The codec's map goes with its stream; encoding filters may hold the trailers longer.
		if a.tail == nil {
			a.tail = &http.HeaderMap{}
		}
		a.tail.Init(a.r.head.Arena())
		a.tail.CopyFrom(t)
		if a.chained {
			a.filters.fm.EncodeTrailers(a.tail)
		} else {
			a.answerTrailers(a.tail)
		}
	}
	a.cutOff()
}

func (a *attempt) answerTrailers(t *http.HeaderMap) {
	r := a.r
	if r.final != a {
		return
	}
	if a.logged {
		a.rec.inf.ResponseTrailers = t
	}
	r.settle(a, t)
	r.complete(a)
	r.cb.EncodeTrailers(t)
}

// OnAboveHighWatermark and OnBelowLowWatermark are the codec's: the upstream does not keep up with the request.
func (a *attempt) OnAboveHighWatermark() {
	a.above = true
	a.r.inc(stats.ClusterUpstreamFlowControlBackedUpTotal)
	a.holds(true)
}

// OnBelowLowWatermark is the opposite.
func (a *attempt) OnBelowLowWatermark() {
	a.above = false
	a.r.inc(stats.ClusterUpstreamFlowControlDrainedTotal)
	a.holds(false)
}

// unblock lets go of the client whom an attempt has held back: it is over.
func (a *attempt) unblock() {
	if a.above {
		a.OnBelowLowWatermark()
	}
}

// holds holds the client back, or no longer.
func (a *attempt) holds(on bool) {
	r := a.r
	if r.try != a && r.final != a {
		return
	}
	if k := r.keeper; k != nil {
		k.watermark(a, on)
	} else {
		r.hold(on)
	}
}

func (a *attempt) readDisable(on bool) {
	if !a.open || a.paused == on {
		return
	}
	a.paused = on
	if on {
		a.r.inc(stats.ClusterUpstreamFlowControlPausedReadingTotal)
	} else {
		a.r.inc(stats.ClusterUpstreamFlowControlResumedReadingTotal)
	}
	a.enc.ReadDisable(on)
}

// closeStream: the response is over, by whatever way.
func (a *attempt) closeStream() {
	if !a.open {
		return
	}
	a.open = false
	a.countWire()
	a.disarm()
	if a.raw == nil {
		a.host.RqActive.Add(-1)
	}
}

func (a *attempt) disarm() {
	w := a.r.w
	w.Disarm(a.perTry)
	w.Disarm(a.idle)
	w.Disarm(a.life)
}

// drop gives the attempt up if it is under way, without a word to the router, and puts it back.
func (a *attempt) drop() {
	if a.gone {
		return
	}
	a.gone = true
	r := a.r
	a.disarm()
	a.unblock()
	switch {
	case a.waiting:
		a.waiting = false
		r.inc(stats.ClusterUpstreamRqCancelled)
		if a.raw != nil {
			a.raw.cancel()
		} else {
			a.req.Cancel()
		}
	case a.open:
		if a.paused {
			a.paused = false
			a.enc.ReadDisable(false)
		}
		enc := a.enc
		a.closeStream()
		a.enc = nil
		a.reset(enc)
	}
	a.forgetPending()
	if a.chained {
		a.endFilters()
	}
	if a.logged {
		a.endRecord()
	}
	a.l.putAttempt(a)
	r.forget(a)
}

// finish puts an attempt back whose stream is over.
func (a *attempt) finish() {
	if a.gone {
		return
	}
	a.gone = true
	a.forgetPending()
	if a.logged {
		a.endRecord()
	}
}

func (a *attempt) release() {
	if a.pending != nil {
		a.pending.Reset()
		if len(a.l.bodies) < maxFree {
			a.l.bodies = append(a.l.bodies, a.pending)
		}
		a.pending = nil
	}
	a.resp.Release()
	if a.tail != nil {
		a.tail.Release()
	}
	a.attemptState = attemptState{}
}

// under tells whether a timer's attempt is still that of its router.
func (a *attempt) under() bool { return !a.gone && a.r != nil && a.r.has(a) }

func (a *attempt) onPerTry() {
	if a.under() && !a.r.sent && !a.r.informed {
		if a.logged {
			a.rec.inf.Flags.Set(stream.UpstreamRequestTimeout)
		}
		a.r.onTryTimeout(a, stats.ClusterUpstreamRqPerTryTimeout, "upstream_per_try_timeout")
	}
}

func (a *attempt) onIdle() {
	if a.under() {
		if a.logged {
			a.rec.inf.Flags.Set(stream.StreamIdleTimeout)
		}
		a.r.onTryTimeout(a, stats.ClusterUpstreamRqPerTryIdleTimeout, "upstream_per_try_idle_timeout")
	}
}

func (a *attempt) onLife() {
	if a.under() {
		a.r.onMaxDuration(a)
	}
}
