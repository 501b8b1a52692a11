package router

import (
	"time"

	"github.com/dragoman-proxy/dragoman/api/http"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// timeoutHeaders are the request headers about timeouts that do not go on.
var timeoutHeaders = http.MakeSet(http.EnvoyUpstreamRqTimeoutMs, http.EnvoyUpstreamRqPerTryTimeoutMs, http.EnvoyUpstreamRqTimeoutAltResponse,
	http.EnvoyUpstreamStreamDurationMs)

// otherTimeoutHeaders are those of them that go where x-envoy-expected-rq-timeout-ms says the timeout.
var otherTimeoutHeaders = http.MakeSet(http.EnvoyUpstreamRqPerTryTimeoutMs, http.EnvoyUpstreamRqTimeoutAltResponse, http.EnvoyUpstreamStreamDurationMs)

// timeouts finds the request's timeouts: the route's, or what an internal client asks for, and tells the upstream.
func (r *Router) timeouts(h *http.HeaderMap) {
	r.maxDuration = r.cluster.Pools().MaxStreamDuration
	r.routeTimeout(h)
	if p := r.rt.Retry; p != nil {
		r.perTry, r.perTryIdle = p.PerTry, p.PerTryIdle
	}
	expected := r.cfg.RespectExpectedTimeout && h.Has(http.EnvoyExpectedRqTimeoutMs)
	if expected {
		if n, ok := atoi(h.Get(http.EnvoyExpectedRqTimeoutMs)); ok {
			r.timeout = time.Duration(n) * time.Millisecond
		}
	}
	if h.HasAny(&timeoutHeaders) {
		r.headerTimeouts(h, expected)
	}
	if r.timeout > 0 && r.perTry >= r.timeout {
		r.perTry = 0
	}
	r.timeoutHeaders(h, 0)
}

// routeTimeout is the route's timeout, or what grpc-timeout says within the route's (older) bounds. With max_stream_duration there is
// none here: the connection manager keeps it.
func (r *Router) routeTimeout(h *http.HeaderMap) {
	rt := r.rt
	switch {
	case rt.NewTimeouts:
	case r.grpc && rt.HasGRPCTimeoutMax:
		d, _ := route.GRPCTimeout(h.Get(http.GRPCTimeout))
		if o := rt.GRPCTimeoutOffset; o < d {
			d -= o
		}
		if m := rt.GRPCTimeoutMax; m > 0 && (d == 0 || d > m) {
			d = m
		}
		r.timeout = d
	default:
		r.timeout = rt.RouteTimeout
	}
}

// headerTimeouts takes over what an internal client asks for, and removes it.
func (r *Router) headerTimeouts(h *http.HeaderMap, expected bool) {
	if n, ok := atoi(h.Get(http.EnvoyUpstreamRqTimeoutMs)); ok && !expected {
		r.timeout = time.Duration(n) * time.Millisecond
	}
	if n, ok := atoi(h.Get(http.EnvoyUpstreamRqPerTryTimeoutMs)); ok {
		r.perTry = time.Duration(n) * time.Millisecond
	}
	if n, ok := atoi(h.Get(http.EnvoyUpstreamStreamDurationMs)); ok {
		r.maxDuration = time.Duration(n) * time.Millisecond
	}
	r.altCode = h.Has(http.EnvoyUpstreamRqTimeoutAltResponse)
	if expected { // it has not been looked at
		h.RemoveSet(&otherTimeoutHeaders)
		return
	}
	h.RemoveSet(&timeoutHeaders)
}

// timeoutHeaders tells the upstream how long we wait for it, elapsed after the request's end.
func (r *Router) timeoutHeaders(h *http.HeaderMap, elapsed time.Duration) {
	expected := r.timeout
	if r.perTry > 0 && !r.hedge { // a slow attempt may go on until the end
		expected = r.perTry
	}
	if expected <= 0 {
		return
	}
	if r.timeout > 0 && elapsed > 0 {
		if elapsed >= r.timeout {
			expected = time.Millisecond // 0 would mean for ever
		} else {
			expected = min(expected, r.timeout-elapsed)
		}
	}
	ms := int(expected / time.Millisecond)
	if !r.cfg.SuppressEnvoyHeaders {
		h.SetConst(http.EnvoyExpectedRqTimeoutMs, r.number(ms))
	}
	if r.grpc && !r.rt.NewTimeouts && r.rt.HasGRPCTimeoutMax {
		h.SetConst(http.GRPCTimeout, route.FormatGRPCTimeout(h.Arena(), expected))
	}
}

// handshakes starts the clock for an answer to a WebSocket handshake, which comes before the request's end.
func (r *Router) handshakes() {
	if r.timeout > 0 && !r.done {
		r.w.Arm(&r.timer, r.timeout)
	}
}

// timeoutCode is what timeouts are answered with.
func (r *Router) timeoutCode() (code int, body string) {
	if r.altCode {
		return 204, ""
	}
	return 504, "upstream request timeout"
}

// onTimeout: the route's timeout passed.
func (r *Router) onTimeout() {
	if r.done || r.cluster == nil || r.cb == nil {
		return
	}
	code, _ := r.timeoutCode()
	r.underWay(func(a *attempt) {
		r.inc(stats.ClusterUpstreamRqTimeout)
		r.alsoInc(stats.VirtualClusterUpstreamRqTimeout)
		a.host.RqTimeout.Add(1)
		if !a.gotHeaders {
			if m := a.host.Monitor; m != nil && !a.blamed {
				m.PutResponse(code)
			}
			r.chargeAbort(a, code, false)
		}
	})
	r.abort("response_timeout")
}

// abort ends the request because of a timeout: by a reply, or by a reset if the response has begun.
func (r *Router) abort(details string) {
	r.info.Flags.Set(stream.UpstreamRequestTimeout)
	if r.sent {
		r.info.Details = details
		r.cb.ResetStream(http.ResetLocal)
		return
	}
	code, body := r.timeoutCode()
	r.reply(code, body, details)
}

// onTryTimeout: an attempt took too long.
func (r *Router) onTryTimeout(a *attempt, counter astats.CounterIndex, details string) {
	if r.hedge {
		r.slowTry(a)
		return
	}
	code, _ := r.timeoutCode()
	r.inc(counter)
	a.host.RqTimeout.Add(1)
	if m := a.host.Monitor; m != nil {
		m.PutResponse(code)
	}
	if r.retryReset(a, http.ResetLocal) {
		r.timedOut = true
		return
	}
	r.chargeAbort(a, code, false)
	if !r.sent {
		a.drop()
	}
	r.abort(details)
}

// onMaxDuration: an attempt has lasted as long as the upstream may be asked for.
func (r *Router) onMaxDuration(a *attempt) {
	r.inc(stats.ClusterUpstreamRqMaxDurationReached)
	if r.retryReset(a, http.ResetLocal) {
		return
	}
	r.info.Flags.Set(stream.UpstreamMaxStreamDurationReached)
	const details = "upstream_max_stream_duration_reached"
	if r.sent {
		r.info.Details = details
		r.cb.ResetStream(http.ResetLocal)
		return
	}
	a.drop()
	code := 504
	if !r.ended {
		code = 408
	}
	r.reply(code, "upstream max stream duration reached", details)
}
