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
	return r.cb.Arena().Copy(strconv.AppendInt(b[:0], int64(n), 10))
}

// onHeaders: an attempt's response has begun. It is taken, or tried again.
func (r *Router) onHeaders(a *attempt, h *http.HeaderMap, end bool) {
	if r.try != a {
		return
	}
	code := h.StatusCode()
	r.observe(a, code)
	if r.retry.onResponse(r, h, code) && r.schedule() {
		r.charge(a, h, code)
		a.drop()
		return
	}
	r.try, r.final = nil, a
	r.w.Disarm(&r.backoff)
	info := r.cb.Info()
	info.Details = "via_upstream"
	if !r.ended {
		// The answer came before the request's end. Retries are over; the rest of the body goes on.
		r.keepBody = false
		r.body.Reset()
		r.try = a
	}
	ms := (r.w.Now() - info.Start) / 1e6
	if info.RequestDone > 0 {
		ms = (r.w.Now() - info.RequestDone) / 1e6
	}
	if !r.cfg.SuppressEnvoyHeaders && info.RequestDone > 0 {
		h.SetConst(http.EnvoyUpstreamServiceTime, r.number(int(ms)))
	}
	if r.rt.AttemptsInResponse {
		h.SetConst(http.EnvoyAttemptCount, r.number(r.attempts))
	}
	r.charge(a, h, code)
	if r.rt.ResponseHeaders != nil {
		r.rt.ResponseHeaders.Apply(h, info)
	}
	if code == 101 || r.timeout > 0 && end {
		r.w.Disarm(&r.timer)
	}
	r.sent = true
	if end {
		r.complete(a)
	} else {
		r.cb.SubscribeWatermarks(r.onClientFn())
	}
	if r.done {
		return
	}
	r.cb.EncodeHeaders(h, end)
}

// onClientFn returns onClient as a function, made once per router.
func (r *Router) onClientFn() func(bool) {
	if r.watch == nil {
		r.watch = r.onClient
	}
	return r.watch
}

// complete: the response has arrived whole.
func (r *Router) complete(a *attempt) {
	r.w.Disarm(&r.timer)
	st, base := r.w.Stats, r.cluster.Stats()
	info := r.cb.Info()
	from := info.RequestDone
	if from == 0 {
		from = a.start
	}
	ms := uint64(r.w.Now()-from) / 1e6
	st.Record(base.Histogram(stats.ClusterUpstreamRqTime), ms)
	side := stats.Cluster.Block(base, r.side())
	st.Record(side.Histogram(stats.ClusterCodesUpstreamRqTime), ms)
	if r.attempts > 1 && a.resp.StatusCode() < 500 {
		st.Inc(base.Counter(stats.ClusterUpstreamRqRetrySuccess))
	}
	r.final = nil
	if r.try == a {
		r.try = nil
	}
	a.finishQuietly()
}

// finishQuietly puts an attempt back whose stream is over.
func (a *attempt) finishQuietly() {
	if a.gone {
		return
	}
	a.gone = true
	a.pending.Reset()
	a.l.putAttempt(a)
}

// charge counts a response's code.
func (r *Router) charge(a *attempt, h *http.HeaderMap, code int) {
	if !r.cfg.DynamicStats {
		return
	}
	st, base := r.w.Stats, r.cluster.Stats()
	st.Inc(base.Counter(stats.ClusterUpstreamRqCompleted))
	st.IncCode(base.Codes(stats.ClusterUpstreamRqCodes), code)
	side := stats.Cluster.Block(base, r.side())
	st.Inc(side.Counter(stats.ClusterCodesUpstreamRqCompleted))
	st.IncCode(side.Codes(stats.ClusterCodesUpstreamRq), code)
	if h.Has(http.EnvoyUpstreamCanary) && h.Get(http.EnvoyUpstreamCanary) == "true" || a.host.Canary() {
		canary := stats.Cluster.Block(base, stats.ClusterCanary)
		st.Inc(canary.Counter(stats.ClusterCodesUpstreamRqCompleted))
		st.IncCode(canary.Codes(stats.ClusterCodesUpstreamRq), code)
	}
}

func (r *Router) side() astats.BlockIndex {
	if r.head.Get(http.EnvoyInternal) == "true" {
		return stats.ClusterInternal
	}
	return stats.ClusterExternal
}

// chargeLocal counts a code of our own making in the cluster, as Envoy does.
func (r *Router) chargeLocal(code int) {
	if r.cluster == nil || !r.cfg.DynamicStats {
		return
	}
	st, base := r.w.Stats, r.cluster.Stats()
	st.Inc(base.Counter(stats.ClusterUpstreamRqCompleted))
	st.IncCode(base.Codes(stats.ClusterUpstreamRqCodes), code)
	side := stats.Cluster.Block(base, r.side())
	st.Inc(side.Counter(stats.ClusterCodesUpstreamRqCompleted))
	st.IncCode(side.Codes(stats.ClusterCodesUpstreamRq), code)
}

// observe tells outlier detection.
func (r *Router) observe(a *attempt, code int) {
	if m := a.host.Monitor; m != nil {
		m.PutResponse(code)
	}
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
	if r.done || r.try != a && r.final != a {
		a.finishQuietly()
		return
	}
	if m := a.host.Monitor; m != nil && reason != http.ResetOverflow {
		m.PutResult(resultOf(reason))
	}
	info := r.cb.Info()
	if r.sent {
		info.Flags.Set(flagOf(reason))
		info.Details = "upstream_reset_after_response_started{" + detail(reason, failure) + "}"
		r.cb.ResetStream(reason)
		return
	}
	if r.retry.onReset(r, reason) && r.schedule() {
		a.drop()
		return
	}
	info.Flags.Set(flagOf(reason))
	a.drop()
	code := 503
	if reason == http.ResetProtocolError {
		code = 502
	}
	body := "upstream connect error or disconnect/reset before headers. "
	if r.attempts > 1 {
		body += "retried and the latest reset reason: " + reason.String()
	} else {
		body += "reset reason: " + reason.String()
	}
	if failure != "" && !hideFailure(reason) {
		body += ", transport failure reason: " + failure
	}
	r.chargeLocal(code)
	details := "upstream_reset_before_response_started{" + detail(reason, failure) + "}"
	if reason == http.ResetOverflow {
		r.replyWith(code, body, details, overloaded)
		return
	}
	r.reply(code, body, details)
}

// hideFailure: Envoy keeps the transport's failure out of bodies since 1.39 (hide_transport_failure_reason_in_response_body).
func hideFailure(http.ResetReason) bool { return true }

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
	attempts := ""
	if r.rt != nil && r.rt.AttemptsInResponse && r.attempts > 0 {
		attempts = r.number(r.attempts)
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
	r.w.Disarm(&r.backoff)
	if a := r.try; a != nil {
		r.try = nil
		a.drop()
	}
	r.hold(false)
}
