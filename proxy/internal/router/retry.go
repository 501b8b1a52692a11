package router

import (
	"strings"
	"time"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// retryState is a request's: what may be retried, and how often yet. The zero value retries nothing.
type retryState struct {
	on     route.RetryOn
	left   int
	count  int // retries so far
	policy *route.RetryPolicy
	codes  []int
	names  []string // of response headers that an internal client wants retries for
	taken  bool     // a retry is counted in the circuit breaker
	asked  bool     // how long to wait is what the upstream has asked for
}

const defaultBackoffMs = 25

// retryHeaders are the request headers about retries; none of them goes on.
var retryHeaders = http.MakeSet(http.EnvoyRetryOn, http.EnvoyRetryGrpcOn, http.EnvoyMaxRetries, http.EnvoyRetriableStatusCodes,
	http.EnvoyRetriableHeaderNames, http.EnvoyHedgeOnPerTryTimeout)

// begin reads the route's policy and the x-envoy-* headers (which only internal clients can have sent: the HCM removes others).
func (s *retryState) begin(r *Router, h *http.HeaderMap) {
	p := r.rt.Retry
	if own := r.policies; own != nil && own.Retry != nil {
		p = own.Retry
	}
	asked := h.HasAny(&retryHeaders)
	if p == nil && !asked {
		return
	}
	s.policy, s.left = p, 1
	if p != nil {
		s.on, s.left, s.codes = p.On, p.Retries, p.StatusCodes
	}
	if asked {
		s.headers(h)
	}
	if p != nil && s.on != 0 && !requestMatches(p.RequestHeaders, h) {
		s.on = 0
	}
	if asked {
		h.RemoveSet(&retryHeaders)
	}
}

// headers takes over what an internal client asks for.
func (s *retryState) headers(h *http.HeaderMap) {
	s.on |= route.ParseRetryOn(h.Get(http.EnvoyRetryOn)) | route.ParseRetryGRPCOn(h.Get(http.EnvoyRetryGrpcOn))
	if s.on == 0 {
		return
	}
	if n, ok := atoi(h.Get(http.EnvoyMaxRetries)); ok {
		s.left = n
	}
	if v := h.Get(http.EnvoyRetriableStatusCodes); v != "" {
		codes := append([]int(nil), s.codes...)
		for _, w := range strings.Split(v, ",") {
			if n, ok := atoi(strings.TrimSpace(w)); ok {
				codes = append(codes, n)
			}
		}
		s.codes = codes
	}
	if v := h.Get(http.EnvoyRetriableHeaderNames); v != "" {
		for _, w := range strings.Split(v, ",") {
			if w = strings.ToLower(strings.TrimSpace(w)); w != "" {
				s.names = append(s.names, w)
			}
		}
	}
}

// requestMatches tells whether a request may be retried at all.
func requestMatches(list []route.HeaderMatch, h *http.HeaderMap) bool {
	for _, m := range list {
		if m.Match(h) {
			return true
		}
	}
	return len(list) == 0
}

// onResponse tells whether a response is to be retried.
func (s *retryState) onResponse(r *Router, h *http.HeaderMap, code int) bool {
	if r.sent {
		return false
	}
	// A response with x-envoy-ratelimited comes from another Envoy and is retried for that condition only.
	if h.Has(http.EnvoyRatelimited) {
		return s.on&route.RetryEnvoyRatelimited != 0
	}
	if s.on&route.Retry5xx != 0 && code >= 500 && code < 600 || s.on&route.RetryGatewayError != 0 && code >= 502 && code <= 504 ||
		s.on&route.RetryRetriable4xx != 0 && code == 409 {
		return true
	}
	if s.on&route.RetryRetriableStatusCodes != 0 {
		for _, c := range s.codes {
			if c == code {
				return true
			}
		}
	}
	if s.on&route.RetryRetriableHeaders != 0 && s.header(h) {
		return true
	}
	return s.grpc(h)
}

// header tells whether a response has one of the headers that ask for a retry.
func (s *retryState) header(h *http.HeaderMap) bool {
	if s.policy != nil {
		for _, m := range s.policy.RetriableHeaders {
			if m.Match(h) {
				return true
			}
		}
	}
	for _, n := range s.names {
		if _, ok := h.GetName(n); ok {
			return true
		}
	}
	return false
}

func (s *retryState) grpc(h *http.HeaderMap) bool {
	const any = route.RetryGRPCCancelled | route.RetryGRPCDeadlineExceeded | route.RetryGRPCInternal | route.RetryGRPCResourceExhausted | route.RetryGRPCUnavailable
	if s.on&any == 0 || !h.Has(http.GRPCStatus) {
		return false
	}
	switch h.Get(http.GRPCStatus) {
	case "1":
		return s.on&route.RetryGRPCCancelled != 0
	case "4":
		return s.on&route.RetryGRPCDeadlineExceeded != 0
	case "8":
		return s.on&route.RetryGRPCResourceExhausted != 0
	case "13":
		return s.on&route.RetryGRPCInternal != 0
	case "14":
		return s.on&route.RetryGRPCUnavailable != 0
	}
	return false
}

// onReset tells whether a failed attempt is to be retried. started: something of it has been sent.
func (s *retryState) onReset(reason http.ResetReason, started bool) bool {
	if reason == http.ResetOverflow {
		return false
	}
	connect := reason == http.ResetLocalConnectionFailure || reason == http.ResetRemoteConnectionFailure || reason == http.ResetConnectionTimeout
	switch {
	case s.on&(route.RetryReset|route.Retry5xx|route.RetryGatewayError) != 0:
		return true
	case s.on&route.RetryConnectFailure != 0 && connect:
		return true
	case s.on&route.RetryRefusedStream != 0 && reason == http.ResetRemoteRefused:
		return true
	case s.on&route.RetryResetBeforeRequest != 0 && !started:
		return true
	}
	return false
}

// retryReset tries again what failed without a response. true: the attempt is given up, and another will follow.
func (r *Router) retryReset(a *attempt, reason http.ResetReason) bool {
	if r.sent || r.retry.on == 0 || a.retried {
		return false
	}
	if !r.retry.onReset(reason, a.up.FirstTx != 0) {
		r.retry.settled(r)
		return false
	}
	if !r.schedule(nil) {
		return false
	}
	a.host.RqError.Add(1)
	a.drop()
	return true
}

// settled: there is no need for another try; if there was one before, it was of use.
func (s *retryState) settled(r *Router) {
	if s.taken {
		r.inc(stats.ClusterUpstreamRqRetrySuccess)
		r.alsoInc(stats.VirtualClusterUpstreamRqRetrySuccess)
		s.end(r)
	}
}

// schedule begins the back-off before another attempt. h is the response that is given up, nil if there is none. false: there may be
// no other attempt, and flags say why.
func (r *Router) schedule(h *http.HeaderMap) bool {
	s := &r.retry
	s.end(r)
	if s.left <= 0 {
		r.inc(stats.ClusterUpstreamRqRetryLimitExceeded)
		r.alsoInc(stats.VirtualClusterUpstreamRqRetryLimitExceeded)
		r.info.Flags.Set(stream.UpstreamRetryLimitExceeded)
		return false
	}
	s.left--
	if !r.cluster.Resources(r.priority()).Retries.TryAcquire(r.w.Now()) {
		r.inc(stats.ClusterUpstreamRqRetryOverflow)
		r.alsoInc(stats.VirtualClusterUpstreamRqRetryOverflow)
		r.info.Flags.Set(stream.UpstreamOverflow)
		return false
	}
	s.taken = true
	if rt := r.cfg.Runtime; rt != nil {
		if n, d := rt.Fraction("upstream.use_retry", 100, 100); n < d && r.w.Rand.Uint64()%d >= n {
			s.end(r)
			return false
		}
	}
	s.count++
	r.waiting, r.timedOut = true, false
	if r.backoff == nil {
		r.backoff = &event.Timer{Fn: r.onBackoff}
	}
	r.w.Arm(r.backoff, r.wait(h))
	return true
}

func (r *Router) priority() int {
	if r.rt.HighPriority {
		return 1
	}
	return 0
}

// wait is how long to wait before the next attempt: what the upstream asks for, up to half as much again, or the back-off.
func (r *Router) wait(h *http.HeaderMap) time.Duration {
	r.retry.asked = false
	if p := r.retry.policy; h != nil && p != nil && len(p.ResetHeaders) > 0 {
		if d := p.Interval(h, r.w.Wall()); d > time.Millisecond {
			r.retry.asked = true
			return d + r.jitter(d/2)
		}
	}
	return r.jitter(r.backoffLimit())
}

// jitter returns a random time below d, in whole milliseconds.
func (r *Router) jitter(d time.Duration) time.Duration {
	ms := uint64(d / time.Millisecond)
	if ms == 0 {
		return 0
	}
	return time.Duration(r.w.Rand.Uint64()%ms) * time.Millisecond
}

// backoffLimit is what the back-off stays below: the base interval, doubled with each retry, up to the maximum.
func (r *Router) backoffLimit() time.Duration {
	base, limit := time.Duration(defaultBackoffMs)*time.Millisecond, time.Duration(0)
	if rt := r.cfg.Runtime; rt != nil {
		base = time.Duration(rt.Uint("upstream.base_retry_backoff_ms", defaultBackoffMs)) * time.Millisecond
	}
	if p := r.retry.policy; p != nil {
		if p.BackoffBase > 0 {
			base = max(p.BackoffBase, time.Millisecond)
		}
		limit = p.BackoffMax
	}
	if limit == 0 {
		limit = 10 * base
	}
	return min(base<<min(r.retry.count-1, 30), limit)
}

func (r *Router) onBackoff() {
	if r.done || r.cb == nil || !r.waiting {
		return
	}
	r.waiting = false
	if !r.retarget() {
		return
	}
	// A retry counts when it begins: the request may be over before.
	r.inc(stats.ClusterUpstreamRqRetry)
	r.alsoInc(stats.VirtualClusterUpstreamRqRetry)
	if r.retry.asked {
		r.inc(stats.ClusterUpstreamRqRetryBackoffRatelimited)
	} else {
		r.inc(stats.ClusterUpstreamRqRetryBackoffExponential)
	}
	r.again()
}

// end gives the place in the circuit breaker back.
func (s *retryState) end(r *Router) {
	if s.taken {
		s.taken = false
		r.cluster.Resources(r.priority()).Retries.Release()
	}
}

// atoi reads a number that is not negative, as Envoy does.
func atoi(s string) (int, bool) {
	s = strings.TrimPrefix(s, "+")
	if s == "" || len(s) > 12 {
		return 0, false
	}
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}
