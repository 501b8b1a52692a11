package route

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	canaryv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/omit_canary_hosts/v3"
	metav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/omit_host_metadata/v3"
	previousv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	prioritiesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/priority/previous_priorities/v3"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
)

// RetryPolicy says when and how often to try again.
type RetryPolicy struct {
	On      RetryOn
	Retries int // 1 by default
	// PerTry bounds one attempt, PerTryIdle the time without progress; 0: none.
	PerTry, PerTryIdle time.Duration
	// BackoffBase and BackoffMax are 0 if not set: the runtime's, 25 ms, and ten times the base.
	BackoffBase, BackoffMax time.Duration
	// StatusCodes are retriable_status_codes.
	StatusCodes []int
	// RetriableHeaders match responses, RequestHeaders which requests may be retried at all (empty: all).
	RetriableHeaders, RequestHeaders []HeaderMatch
	// HostAttempts is host_selection_retry_max_attempts; PreviousHosts avoids hosts that were tried, OmitHost those that it is true for.
	HostAttempts  int
	PreviousHosts bool
	OmitHost      []func(h *host.Host) bool
	// PriorityFrequency is the update_frequency of previous_priorities, in attempts; 0: retries go to any priority.
	PriorityFrequency int
	// ResetHeaders say when an upstream wants to be asked again, at most ResetMax from now.
	ResetHeaders []ResetHeader
	ResetMax     time.Duration
	// RefreshCluster is refresh_cluster_on_retry.
	RefreshCluster bool
}

// ResetHeader is a response header with the time at which a rate limit ends.
type ResetHeader struct {
	Name string
	// Unix: the value is a time in seconds since 1970, not a number of seconds.
	Unix bool
}

// Interval returns how long a response asks to wait, 0 if it does not.
func (p *RetryPolicy) Interval(h *http.HeaderMap, wall int64) time.Duration {
	for _, r := range p.ResetHeaders {
		v, _ := h.GetName(r.Name)
		n, ok := parseUint(v)
		if !ok || n > 1<<40 {
			continue
		}
		if r.Unix {
			now := uint64(wall / int64(time.Second))
			if n < now {
				continue
			}
			n -= now
		}
		if d := time.Duration(n) * time.Second; n <= uint64(p.ResetMax/time.Second) && d <= p.ResetMax {
			return d
		}
	}
	return 0
}

// retry compiles a policy. All that is wrong with it is in the error.
func (c *compiler) retry(p *routev3.RetryPolicy) (*RetryPolicy, error) {
	var errs config.Errors
	out := &RetryPolicy{On: ParseRetryOn(p.RetryOn) | ParseRetryGRPCOn(p.RetryOn), Retries: 1, PerTry: dur(p.PerTryTimeout),
		PerTryIdle: dur(p.PerTryIdleTimeout), ResetMax: 300 * time.Second, RefreshCluster: p.RefreshClusterOnRetry}
	if p.NumRetries != nil {
		out.Retries = int(p.NumRetries.Value)
	}
	for _, s := range p.RetriableStatusCodes {
		out.StatusCodes = append(out.StatusCodes, int(s))
	}
	if b := p.RetryBackOff; b != nil {
		out.BackoffBase, out.BackoffMax = dur(b.BaseInterval), dur(b.MaxInterval)
		if out.BackoffMax > 0 && out.BackoffMax < out.BackoffBase {
			errs.Collect("retry_back_off.max_interval", errors.New("retry_policy.max_interval must greater than or equal to the base_interval"))
		}
	}
	if b := p.RateLimitedRetryBackOff; b != nil {
		for _, h := range b.ResetHeaders {
			out.ResetHeaders = append(out.ResetHeaders, ResetHeader{Name: strings.ToLower(h.Name), Unix: h.Format == routev3.RetryPolicy_UNIX_TIMESTAMP})
		}
		if b.MaxInterval != nil {
			out.ResetMax = b.MaxInterval.AsDuration()
		}
	}
	errs.Collect("retry_priority", out.priority(p.RetryPriority))
	if l := p.RetryOptionsPredicates; len(l) > 0 { // Envoy has none either
		errs.Collect("retry_options_predicates[0]", config.Unregistered(l[0].GetName(), l[0].GetTypedConfig()))
	}
	out.HostAttempts = int(max(p.HostSelectionRetryMaxAttempts, 1))
	for i, h := range p.RetryHostPredicate {
		errs.Collect(fmt.Sprintf("retry_host_predicate[%d]", i), out.predicate(h))
	}
	var err error
	out.RetriableHeaders, err = HeaderMatchers(p.RetriableHeaders)
	errs.Collect("retriable_headers", err)
	out.RequestHeaders, err = HeaderMatchers(p.RetriableRequestHeaders)
	errs.Collect("retriable_request_headers", err)
	return out, errs.Err()
}

// priority takes over a retry_priority.
func (p *RetryPolicy) priority(x *routev3.RetryPolicy_RetryPriority) error {
	if x == nil {
		return nil
	}
	a := x.GetTypedConfig()
	var m prioritiesv3.PreviousPrioritiesConfig
	if !config.Holds(a, &m) {
		return config.Unregistered(x.Name, a)
	}
	if err := config.Into(a, &m); err != nil {
		return err
	}
	if m.UpdateFrequency <= 0 {
		return errors.New("retry_priority: update_frequency must be greater than 0")
	}
	p.PriorityFrequency = int(m.UpdateFrequency)
	return nil
}

// predicate adds a retry_host_predicate.
func (p *RetryPolicy) predicate(h *routev3.RetryPolicy_RetryHostPredicate) error {
	a := h.GetTypedConfig()
	var meta metav3.OmitHostMetadataConfig
	switch {
	case config.Holds(a, &previousv3.PreviousHostsPredicate{}):
		p.PreviousHosts = true
	case config.Holds(a, &canaryv3.OmitCanaryHostsPredicate{}):
		p.OmitHost = append(p.OmitHost, (*host.Host).Canary)
	case config.Holds(a, &meta):
		if err := config.Into(a, &meta); err != nil {
			return err
		}
		p.OmitHost = append(p.OmitHost, hasMetadata(meta.MetadataMatch))
	default:
		return config.Unregistered(h.Name, a)
	}
	return nil
}

// hasMetadata tells whether a host has all that m has for load balancing.
func hasMetadata(m *corev3.Metadata) func(h *host.Host) bool {
	const space = "envoy.lb"
	want := m.GetFilterMetadata()[space].AsMap()
	return func(h *host.Host) bool {
		if len(want) == 0 {
			return false
		}
		md := h.Metadata()
		if md == nil {
			return false
		}
		for k, v := range want {
			if got, ok := md.Get(space, k); !ok || !equalValues(got, v) {
				return false
			}
		}
		return true
	}
}

// equalValues compares plain values.
func equalValues(a, b any) bool {
	switch x := a.(type) {
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equalValues(x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k := range x {
			if v, ok := y[k]; !ok || !equalValues(x[k], v) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// Omit tells whether a retry should not go to h.
func (p *RetryPolicy) Omit(h *host.Host) bool {
	for _, f := range p.OmitHost {
		if f(h) {
			return true
		}
	}
	return false
}
