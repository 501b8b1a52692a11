package router

import (
	"time"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

var timeoutHeaders = http.MakeSet(http.EnvoyUpstreamRqTimeoutMs, http.EnvoyUpstreamRqPerTryTimeoutMs, http.EnvoyUpstreamRqTimeoutAltResponse)

// timeouts finds the request's timeouts: the route's, or what an internal client asks for, and tells the upstream.
func (r *Router) timeouts(h *http.HeaderMap) {
	r.timeout = r.rt.RouteTimeout
	if p := r.rt.Retry; p != nil {
		r.perTry = p.PerTry
	}
	isGRPC := h.Has(http.GRPCTimeout) && r.rt.HasGRPCTimeoutMax
	if isGRPC {
		if d, ok := grpcTimeout(h.Get(http.GRPCTimeout)); ok {
			if r.rt.GRPCTimeoutOffset > 0 && d > r.rt.GRPCTimeoutOffset {
				d -= r.rt.GRPCTimeoutOffset
			}
			if m := r.rt.GRPCTimeoutMax; m > 0 && (d == 0 || d > m) {
				d = m
			}
			r.timeout = d
		} else {
			r.timeout = r.rt.GRPCTimeoutMax
		}
	}
	if r.cfg.RespectExpectedTimeout && h.Has(http.EnvoyExpectedRqTimeoutMs) {
		if n, ok := atoi(h.Get(http.EnvoyExpectedRqTimeoutMs)); ok {
			r.timeout = time.Duration(n) * time.Millisecond
		}
	} else if n, ok := atoi(h.Get(http.EnvoyUpstreamRqTimeoutMs)); ok {
		r.timeout = time.Duration(n) * time.Millisecond
	}
	if n, ok := atoi(h.Get(http.EnvoyUpstreamRqPerTryTimeoutMs)); ok {
		r.perTry = time.Duration(n) * time.Millisecond
	}
	if r.timeout > 0 && r.perTry >= r.timeout {
		r.perTry = 0
	}
	h.RemoveSet(&timeoutHeaders)
	if r.cfg.SuppressEnvoyHeaders {
		return
	}
	expected := r.timeout
	if r.perTry > 0 {
		expected = r.perTry
	}
	if expected > 0 {
		h.SetConst(http.EnvoyExpectedRqTimeoutMs, r.number(int(expected/time.Millisecond)))
		if isGRPC {
			h.SetConst(http.GRPCTimeout, r.cb.Arena().Concat(r.number(int(expected/time.Millisecond)), "m"))
		}
	}
}

// grpcTimeout reads a grpc-timeout header: up to eight digits and a unit (gRPC over HTTP/2, "Requests").
func grpcTimeout(s string) (time.Duration, bool) {
	if len(s) < 2 || len(s) > 9 {
		return 0, false
	}
	n, ok := atoi(s[:len(s)-1])
	if !ok {
		return 0, false
	}
	d := time.Duration(n)
	switch s[len(s)-1] {
	case 'H':
		d *= time.Hour
	case 'M':
		d *= time.Minute
	case 'S':
		d *= time.Second
	case 'm':
		d *= time.Millisecond
	case 'u':
		d = (d*time.Microsecond + time.Millisecond - 1) / time.Millisecond * time.Millisecond
	case 'n':
		d = (d + time.Millisecond - 1) / time.Millisecond * time.Millisecond
	default:
		return 0, false
	}
	return d, true
}

// onTimeout: the route's timeout passed.
func (r *Router) onTimeout() {
	if r.done || r.cluster == nil || r.cb == nil {
		return
	}
	r.w.Stats.Inc(r.cluster.Stats().Counter(stats.ClusterUpstreamRqTimeout))
	a := r.try
	if a == nil {
		a = r.final
	}
	if a != nil {
		a.host.RqTimeout.Add(1)
		if m := a.host.Monitor; m != nil {
			m.PutResponse(504)
		}
	}
	info := r.cb.Info()
	info.Flags.Set(stream.UpstreamRequestTimeout)
	if r.sent {
		info.Details = "response_timeout"
		r.cb.ResetStream(http.ResetLocal)
		return
	}
	r.timeoutReply("response_timeout")
}

func (r *Router) timeoutReply(details string) {
	code := 504
	if !r.ended {
		code = 408
	}
	r.chargeLocal(code)
	r.reply(code, "upstream request timeout", details)
}

func (r *Router) onPerTryTimeout(a *attempt) {
	r.w.Stats.Inc(r.cluster.Stats().Counter(stats.ClusterUpstreamRqPerTryTimeout))
	a.host.RqTimeout.Add(1)
	if m := a.host.Monitor; m != nil {
		m.PutResponse(504)
	}
	info := r.cb.Info()
	if r.retry.on != 0 && r.retry.onReset(r, http.ResetLocal) && r.schedule() {
		a.drop()
		return
	}
	info.Flags.Set(stream.UpstreamRequestTimeout)
	a.drop()
	r.timeoutReply("upstream_per_try_timeout")
}
