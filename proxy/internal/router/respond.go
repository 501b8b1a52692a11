package router

import (
	"strconv"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// numMillis is how many numbers are kept as text.
const numMillis = 256

// number returns n as text that lives as long as the stream.
func (r *Router) number(n int) string {
	if n >= 0 && n < numMillis {
		if r.l.millis[n] == "" {
			r.l.millis[n] = strconv.Itoa(n)
		}
		return r.l.millis[n]
	}
	var b [20]byte
	return r.head.Arena().Copy(strconv.AppendInt(b[:0], int64(n), 10))
}

// onHeaders: an attempt's response has begun. It is taken, or tried again.
func (r *Router) onHeaders(a *attempt, h *http.HeaderMap, end bool) {
	if h.Has(http.EnvoyImmediateHealthCheckFail) && a.host.Has(host.Checked) && r.cfg.Clusters != nil {
		r.cfg.Clusters.FailNow(r.cluster, a.host)
	}
	if !r.has(a) || r.sent {
		return
	}
	code := h.StatusCode()
	if r.websocket && !r.handshake(a, h, code) {
		return
	}
	grpc, hasGRPC := r.grpcCode(h)
	if m := a.host.Monitor; m != nil {
		if hasGRPC {
			m.PutResponse(grpc)
		} else {
			m.PutResponse(code)
		}
	}
	if (r.retry.on != 0 || r.rt.InternalRedirect != nil) && r.notTaken(a, h, code) {
		return
	}
	r.take(a)
	if r.completed > 0 && !r.cfg.SuppressEnvoyHeaders {
		h.SetConst(http.EnvoyUpstreamServiceTime, r.number(int((r.w.Now()-r.completed)/1e6)))
	}
	r.charge(code, r.canary(a, h), false)
	r.fared(a, code, grpc, hasGRPC, end)
	for _, c := range r.cookies {
		h.AddConst(http.SetCookie, c)
	}
	r.info.Details, r.info.Code = "via_upstream", code
	if m := r.rt.ResponseHeaders; m != nil {
		m.Apply(r.w, h, r.info)
	}
	if r.rt.AttemptsInResponse {
		h.SetConst(http.EnvoyAttemptCount, r.number(int(r.attempts)))
	}
	r.sent = true
	if end {
		r.complete(a)
	} else {
		if !a.chained {
			r.rt = r.rt.Rest()
		}
		r.cb.SubscribeWatermarks(r.watch)
	}
	if r.done {
		return
	}
	r.cb.EncodeHeaders(h, end)
	if code == 101 || r.connect && code == 200 {
		if r.websocket {
			r.w.Disarm(&r.timer)
			r.w.Disarm(a.perTry)
		}
		if !a.gone && !r.done {
			a.accepted()
		}
	}
}

// notTaken tries again, or elsewhere, what an attempt was answered with. true: the client does not get this answer.
func (r *Router) notTaken(a *attempt, h *http.HeaderMap, code int) bool {
	bad := false
	if r.retry.on != 0 && r.retry.onResponse(r, h, code) {
		if !a.retried && r.schedule(h) {
			a.host.RqError.Add(1)
			r.chargeRetry(code)
			a.drop()
			return true
		}
		bad = true
	}
	if p := r.rt.InternalRedirect; p != nil && p.Follows(code) && r.redirect(a, p, h, code) {
		return true
	}
	if bad && r.lost(a) {
		a.host.RqError.Add(1)
		return true
	}
	return false
}

// take makes a the attempt whose answer the client gets.
func (r *Router) take(a *attempt) {
	if len(r.slow) > 0 || r.waiting {
		r.wins(a)
	}
	r.try, r.final = nil, a
	if a.retried {
		r.retry.end(r)
	} else {
		r.retry.settled(r)
	}
	if !r.ended {
		// The answer came before the request's end. Retries are over; the rest of the body goes on.
		r.keepBody = false
		r.body.Reset()
		r.try = a
		if r.keeper != nil {
			r.keeper.noRetry()
		}
	}
}

// settleOn makes a the attempt whose answer the client gets, since the client has been told to go on: another upstream might not want
// the body. As in Envoy, there is no retry from here on, and a per-try timeout means nothing.
func (r *Router) settleOn(a *attempt) {
	r.informed = true
	if len(r.slow) > 0 || r.waiting {
		r.wins(a)
		r.try = a
	}
	r.retry.on = 0
	r.retry.end(r)
	if r.rt.InternalRedirect == nil {
		r.keepBody = false
		r.body.Reset()
	}
	if r.keeper != nil && !r.ended {
		r.keeper.noRetry()
	}
}

// handshake looks at the answer to a WebSocket handshake: anything but success and errors ends the matter without a body, since there
// is nothing that it could be about (RFC 6455, section 4.1). false: the request was answered.
func (r *Router) handshake(a *attempt, h *http.HeaderMap, code int) bool {
	if code == 101 || code >= 400 || a.up.Protocol == http.HTTP2 {
		return true
	}
	var said http.HeaderMap // the attempt's own goes with it
	said.Init(r.head.Arena())
	said.CopyFrom(h)
	r.completeQuietly(a)
	r.finish()
	r.attempts = 0 // which are not told
	r.localReply(code, "", "websocket_handshake_unsuccessful", func(reply *http.HeaderMap) {
		for _, f := range said.All() {
			if f.ID != http.Status {
				reply.AddView(f.ID, f.Name, f.Value)
			}
		}
	})
	return false
}

func (r *Router) completeQuietly(a *attempt) {
	a.countWire()
	a.drop()
}

// canary tells whether an answer comes from a canary.
func (r *Router) canary(a *attempt, h *http.HeaderMap) bool {
	return h.Has(http.EnvoyUpstreamCanary) && h.Get(http.EnvoyUpstreamCanary) == "true" || a.host.Canary()
}

// grpcCode is the HTTP status that stands for a gRPC response's status in its head, if there is one.
func (r *Router) grpcCode(h *http.HeaderMap) (code int, ok bool) {
	if !r.grpc || !h.Has(http.GRPCStatus) {
		return 0, false
	}
	n, ok := atoi(h.Get(http.GRPCStatus))
	return grpcToHTTP(n), ok
}

// grpcToHTTP maps a gRPC status as gRPC says (doc/http-grpc-status-mapping.md).
func grpcToHTTP(n int) int {
	switch n {
	case 0:
		return 200
	case 1:
		return 499
	case 3, 9, 11:
		return 400
	case 4:
		return 504
	case 5:
		return 404
	case 6, 10:
		return 409
	case 7:
		return 403
	case 8:
		return 429
	case 12:
		return 501
	case 14:
		return 503
	case 16:
		return 401
	}
	return 500
}

// fared counts for the host how a request fared: gRPC's status counts, which may come with the trailers only.
func (r *Router) fared(a *attempt, code, grpc int, hasGRPC, end bool) {
	switch {
	case code >= 500:
		if r.dynamic() {
			a.host.RqError.Add(1)
		}
	case !r.grpc:
		a.host.RqSuccess.Add(1)
	case !end:
		a.deferred = true
	case hasGRPC && grpc < 500:
		a.host.RqSuccess.Add(1)
	default:
		a.host.RqError.Add(1)
	}
}

// settle is fared for a response whose trailers have come.
func (r *Router) settle(a *attempt, t *http.HeaderMap) {
	if !a.deferred {
		return
	}
	a.deferred = false
	if code, ok := r.grpcCode(t); ok && code < 500 {
		a.host.RqSuccess.Add(1)
	} else {
		a.host.RqError.Add(1)
	}
}

// complete: the response has arrived whole.
func (r *Router) complete(a *attempt) {
	r.w.Disarm(&r.timer)
	if a.deferred { // a gRPC response without trailers
		a.deferred = false
		a.host.RqError.Add(1)
	}
	if r.completed > 0 && r.dynamic() {
		st, base := r.w.Stats, r.cluster.Stats()
		ms := uint64(r.w.Now()-r.completed) / 1e6
		st.Record(base.Histogram(stats.ClusterUpstreamRqTime), ms)
		canary := r.canary(a, &a.resp)
		r.alsoTime(ms, canary)
		side := stats.Cluster.Block(base, r.side())
		st.Record(side.Histogram(stats.ClusterCodesUpstreamRqTime), ms)
		if canary {
			canary := stats.Cluster.Block(base, stats.ClusterCanary)
			st.Record(canary.Histogram(stats.ClusterCodesUpstreamRqTime), ms)
		}
	}
	r.final = nil
	if r.try == a {
		r.try = nil
	}
	a.finish()
	r.answered = a
}

// dynamic tells whether codes are counted for this request.
func (r *Router) dynamic() bool {
	return r.cfg.DynamicStats && !r.info.HealthCheck && !(r.grpc && r.cfg.SuppressGRPCFailureStats)
}

func (r *Router) side() astats.BlockIndex {
	if r.internal {
		return stats.ClusterInternal
	}
	return stats.ClusterExternal
}

// charge counts a response's code. dropped: a circuit breaker made it.
func (r *Router) charge(code int, canary, dropped bool) {
	if !r.dynamic() {
		return
	}
	_ = dropped // load reports will want it
	st, base := r.w.Stats, r.cluster.Stats()
	st.Inc(base.Counter(stats.ClusterUpstreamRqCompleted))
	st.IncCode(base.Codes(stats.ClusterUpstreamRqCodes), code)
	r.chargeBlock(r.side(), code)
	r.alsoCode(code, canary)
	if canary {
		r.chargeBlock(stats.ClusterCanary, code)
	}
}

func (r *Router) chargeBlock(b astats.BlockIndex, code int) {
	st := r.w.Stats
	side := stats.Cluster.Block(r.cluster.Stats(), b)
	st.Inc(side.Counter(stats.ClusterCodesUpstreamRqCompleted))
	st.IncCode(side.Codes(stats.ClusterCodesUpstreamRq), code)
}

// chargeRetry counts a response that is not sent because the request is tried again.
func (r *Router) chargeRetry(code int) {
	if r.grpc && r.cfg.SuppressGRPCFailureStats {
		return
	}
	r.chargeBlock(stats.ClusterRetry, code)
}

// chargeLocal counts a code of our own making in the cluster, as Envoy does.
func (r *Router) chargeLocal(code int, dropped bool) {
	if r.cluster != nil {
		r.charge(code, false, dropped)
	}
}

// chargeAbort is chargeLocal for an attempt that failed before its response.
func (r *Router) chargeAbort(a *attempt, code int, dropped bool) {
	if r.sent || r.informed {
		if a.deferred {
			a.deferred = false
			a.host.RqError.Add(1)
			r.count(stats.RouterRqResetAfterDownstreamResponseStarted)
		}
		return
	}
	r.charge(code, a.host.Canary(), dropped)
	a.host.RqError.Add(1)
}

// flagOf is the response flag of a reset.
func flagOf(reason http.ResetReason) stream.Flag {
	switch reason {
	case http.ResetLocal, http.ResetLocalRefused:
		return stream.LocalReset
	case http.ResetRemote, http.ResetRemoteRefused, http.ResetConnectError:
		return stream.UpstreamRemoteReset
	case http.ResetLocalConnectionFailure, http.ResetRemoteConnectionFailure, http.ResetConnectionTimeout:
		return stream.UpstreamConnectionFailure
	case http.ResetConnectionTermination, http.ResetHTTP11HalfClosed:
		return stream.UpstreamConnectionTermination
	case http.ResetOverflow:
		return stream.UpstreamOverflow
	case http.ResetProtocolError:
		return stream.UpstreamProtocolError
	case http.ResetOverload:
		return stream.OverloadManager
	}
	return stream.UpstreamRemoteReset
}

// resultOf is what outlier detection hears of a reset.
func resultOf(reason http.ResetReason) host.Result {
	switch reason {
	case http.ResetConnectionTimeout:
		return host.ConnectTimeout
	case http.ResetLocalConnectionFailure, http.ResetRemoteConnectionFailure:
		return host.ConnectFailed
	}
	return host.RequestFailed
}

// onReset: an attempt failed. It is tried again, or the client is told.
func (r *Router) onReset(a *attempt, reason http.ResetReason, failure string) {
	if r.done || !r.has(a) {
		a.finish()
		return
	}
	if a.logged {
		a.rec.inf.Flags.Set(flagOf(reason))
	}
	if m := a.host.Monitor; m != nil && reason != http.ResetOverflow {
		m.PutResult(resultOf(reason))
	}
	if r.retryReset(a, reason) || r.resend(a, reason) {
		return
	}
	code := 503
	if reason == http.ResetProtocolError {
		code = 502
	}
	dropped := reason == http.ResetOverflow
	r.chargeAbort(a, code, dropped)
	if !r.sent && r.lost(a) {
		return
	}
	details := "upstream_reset_before_response_started{"
	if r.sent || r.informed {
		details = "upstream_reset_after_response_started{"
	}
	details += detail(reason, failure) + "}"
	r.info.Flags.Set(flagOf(reason))
	a.drop()
	if r.sent {
		r.info.Details = details
		// What befell the upstream is not the client's doing: it hears of an internal error only.
		r.cb.ResetStream(http.ResetLocal)
		return
	}
	body := "upstream connect error or disconnect/reset before headers. reset reason: " + reason.String()
	if r.attempts > 1 {
		body = "upstream connect error or disconnect/reset before headers. retried and the latest reset reason: " + reason.String()
	}
	if failure != "" && !r.hidesFailure() {
		body += ", transport failure reason: " + failure
	}
	if dropped {
		r.replyWith(code, body, details, overloaded)
		return
	}
	r.reply(code, body, details)
}

// hidesFailure: Envoy keeps the transport's failure out of bodies since 1.39, unless told otherwise.
func (r *Router) hidesFailure() bool {
	return r.cfg.Runtime == nil || r.cfg.Runtime.Bool("envoy.reloadable_features.hide_transport_failure_reason_in_response_body", true)
}

func detail(reason http.ResetReason, failure string) string {
	d := strings.ReplaceAll(reason.String(), " ", "_")
	if failure != "" {
		d += "|" + strings.ReplaceAll(failure, " ", "_")
	}
	return d
}

func overloaded(h *http.HeaderMap) { h.AddConst(http.EnvoyOverloaded, "true") }

// reply answers the request itself.
func (r *Router) reply(code int, body, details string) { r.replyWith(code, body, details, nil) }

func (r *Router) replyWith(code int, body, details string, modify func(h *http.HeaderMap)) {
	r.finish()
	if r.cfg.SuppressEnvoyHeaders {
		modify = nil
	}
	r.localReply(code, body, details, modify)
}

// localReply sends a local reply with what the route says of attempts.
func (r *Router) localReply(code int, body, details string, modify func(h *http.HeaderMap)) {
	attempts := ""
	if r.rt != nil && r.rt.AttemptsInResponse && r.attempts > 0 {
		attempts = r.number(int(r.attempts))
	}
	r.cb.SendLocalReply(&filter.LocalReply{Code: code, Body: body, Details: details, GRPCStatus: -1, Modify: func(h *http.HeaderMap) {
		if modify != nil {
			modify(h)
		}
		if attempts != "" {
			h.SetConst(http.EnvoyAttemptCount, attempts)
		}
	}})
}

// finish ends the router's own work; what comes from attempts is ignored from now on.
func (r *Router) finish() {
	r.done = true
	r.w.Disarm(&r.timer)
	r.w.Disarm(r.backoff)
	if a := r.try; a != nil {
		r.try = nil
		a.drop()
	}
	r.dropSlow(nil)
	r.hold(false)
}
