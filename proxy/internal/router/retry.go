package router

import (
	"strings"
	"time"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// retryState is a request's: what may be retried, and how often yet. The zero value retries nothing.
type retryState struct {
	on     route.RetryOn
	left   int
	policy *route.RetryPolicy
	codes  []int
	taken  bool // a retry is counted in the circuit breaker
	tried  bool
}

const (
	defaultBackoffBase = 25 * time.Millisecond
)

// begin reads the route's policy and the x-envoy-* headers (which only internal clients can have sent: the HCM removes others).
func (s *retryState) begin(r *Router, h *http.HeaderMap) {
	s.policy = r.rt.Retry
	if s.policy != nil {
		s.on, s.left, s.codes = s.policy.On, s.policy.Retries, s.policy.StatusCodes
		if !s.requestMatches(h) {
			s.on = 0
		}
	}
	if v := h.Get(http.EnvoyRetryOn); v != "" {
		s.on |= route.ParseRetryOn(v)
	}
	if v := h.Get(http.EnvoyRetryGrpcOn); v != "" {
		s.on |= route.ParseRetryOn(v)
	}
	if s.on == 0 {
		return
	}
	if rt := r.cfg.Runtime; rt != nil {
		if n, d := rt.Fraction("upstream.use_retry", 100, 100); n < d && r.w.Rand.Uint64()%d >= n {
			s.on = 0
			return
		}
	}
	if s.policy == nil {
		s.left = 1
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
	rm := http.MakeSet(http.EnvoyRetryOn, http.EnvoyRetryGrpcOn, http.EnvoyMaxRetries, http.EnvoyRetriableStatusCodes, http.EnvoyRetriableHeaderNames,
		http.EnvoyHedgeOnPerTryTimeout)
	h.RemoveSet(&rm)
}

func (s *retryState) requestMatches(h *http.HeaderMap) bool {
	if len(s.policy.RequestHeaders) == 0 {
		return true
	}
	for _, m := range s.policy.RequestHeaders {
		if m.Match(h) {
			return true
		}
	}
	return false
}

func atoi(s string) (int, bool) {
	if s == "" || len(s) > 9 {
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

// onResponse tells whether a response is to be retried.
func (s *retryState) onResponse(r *Router, h *http.HeaderMap, code int) bool {
	if s.on == 0 || r.sent {
		return false
	}
	// A response with x-envoy-ratelimited is retried for that condition only.
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
	if s.on&route.RetryRetriableHeaders != 0 && s.policy != nil {
		for _, m := range s.policy.RetriableHeaders {
			if m.Match(h) {
				return true
			}
		}
	}
	return s.grpc(h)
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

// onReset tells whether a failed attempt is to be retried.
func (s *retryState) onReset(r *Router, reason http.ResetReason) bool {
	if s.on == 0 || r.sent || reason == http.ResetOverflow {
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
	case s.on&route.RetryResetBeforeRequest != 0 && (connect || r.try != nil && r.try.enc == nil):
		return true
	}
	return false
}

// exclude returns the hosts that a retry avoids.
func (s *retryState) exclude(r *Router) []*host.Host {
	if s.policy != nil && s.policy.PreviousHosts {
		return r.tries
	}
	return nil
}

// schedule begins the back-off before another attempt. false: there may be none, and flags say why.
func (r *Router) schedule() bool {
	s := &r.retry
	st, base := r.w.Stats, r.cluster.Stats()
	info := r.cb.Info()
	res := r.cluster.Resources(r.priority())
	if s.taken {
		s.taken = false
		res.Retries.Release()
	}
	if s.left <= 0 {
		st.Inc(base.Counter(stats.ClusterUpstreamRqRetryLimitExceeded))
		info.Flags.Set(stream.UpstreamRetryLimitExceeded)
		return false
	}
	if !res.Retries.TryAcquire() {
		st.Inc(base.Counter(stats.ClusterUpstreamRqRetryOverflow))
		info.Flags.Set(stream.UpstreamOverflow)
		return false
	}
	s.taken, s.tried = true, true
	s.left--
	st.Inc(base.Counter(stats.ClusterUpstreamRqRetry))
	st.Inc(base.Counter(stats.ClusterUpstreamRqRetryBackoffExponential))
	r.waiting = true
	r.w.Arm(&r.backoff, r.backoffTime())
	return true
}

func (r *Router) priority() int {
	if r.rt.HighPriority {
		return 1
	}
	return 0
}

// backoffTime is uniform in [0, min(base*(2^n-1), max)), as Envoy's fully jittered exponential back-off.
func (r *Router) backoffTime() time.Duration {
	base, limit := defaultBackoffBase, time.Duration(0)
	if rt := r.cfg.Runtime; rt != nil {
		base = time.Duration(rt.Uint("upstream.base_retry_backoff_ms", uint64(base/time.Millisecond))) * time.Millisecond
	}
	if p := r.retry.policy; p != nil && p.BackoffBase > 0 {
		base, limit = p.BackoffBase, p.BackoffMax
	}
	if limit == 0 {
		limit = 10 * base
	}
	d := base * (1<<min(r.attempts, 20) - 1)
	d = min(d, limit)
	return time.Duration(r.w.Rand.Uint64()%uint64(d)) / time.Millisecond * time.Millisecond
}

func (r *Router) onBackoff() {
	r.waiting = false
	if r.done || r.cb == nil {
		return
	}
	r.start(true)
}

func (s *retryState) end(r *Router) {
	if s.taken {
		s.taken = false
		r.cluster.Resources(r.priority()).Retries.Release()
	}
}
