package route_test

import (
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

func TestRetryOn(t *testing.T) {
	for s, want := range map[string]route.RetryOn{
		"": 0, "5xx": route.Retry5xx, "gateway-error,reset": route.RetryGatewayError | route.RetryReset, " connect-failure ,\trefused-stream": route.RetryConnectFailure | route.RetryRefusedStream,
		"bogus": 0, "5XX": 0, "5xx,,bogus,retriable-4xx": route.Retry5xx | route.RetryRetriable4xx, "cancelled": 0, ",": 0,
		"retriable-status-codes,retriable-headers,envoy-ratelimited,reset-before-request,http3-post-connect-failure": route.RetryRetriableStatusCodes | route.RetryRetriableHeaders |
			route.RetryEnvoyRatelimited | route.RetryResetBeforeRequest | route.RetryHTTP3PostConnectFailure,
	} {
		if got := route.ParseRetryOn(s); got != want {
			t.Errorf("%q: %b, want %b", s, got, want)
		}
	}
	for s, want := range map[string]route.RetryOn{
		"cancelled,deadline-exceeded": route.RetryGRPCCancelled | route.RetryGRPCDeadlineExceeded, "internal, resource-exhausted , unavailable,5xx": route.RetryGRPCInternal |
			route.RetryGRPCResourceExhausted | route.RetryGRPCUnavailable,
	} {
		if got := route.ParseRetryGRPCOn(s); got != want {
			t.Errorf("%q: %b, want %b", s, got, want)
		}
	}
}

func FuzzRetryOn(f *testing.F) {
	f.Add("5xx, gateway-error")
	f.Fuzz(func(t *testing.T, s string) {
		if route.ParseRetryOn(s)&route.ParseRetryGRPCOn(s) != 0 {
			t.Fatalf("%q: a word of both lists", s)
		}
		if route.ParseRetryOn(s+",5xx")&route.Retry5xx == 0 {
			t.Fatalf("%q hides the last word", s)
		}
	})
}

func policy(t *testing.T, text string) *route.RetryPolicy {
	t.Helper()
	return table(t, routes("{match: {prefix: /}, route: {cluster: up, retry_policy: {"+text+"}}}")).Match(&route.Request{Headers: headers("GET / a")}).Retry
}

func TestRetryPolicies(t *testing.T) {
	p := policy(t, "retry_on: '5xx,cancelled'")
	if p.On != route.Retry5xx|route.RetryGRPCCancelled || p.Retries != 1 || p.HostAttempts != 1 || p.PerTry != 0 || p.BackoffBase != 0 {
		t.Errorf("the defaults: %+v", p)
	}
	p = policy(t, "retry_on: 5xx, num_retries: 0, per_try_timeout: 1s, per_try_idle_timeout: 2s, retry_back_off: {base_interval: 3s, max_interval: 4s}, "+
		"host_selection_retry_max_attempts: 7, retriable_status_codes: [400, 418]")
	if p.Retries != 0 || p.PerTry != time.Second || p.PerTryIdle != 2*time.Second || p.BackoffBase != 3*time.Second || p.BackoffMax != 4*time.Second ||
		p.HostAttempts != 7 || len(p.StatusCodes) != 2 {
		t.Errorf("what is configured: %+v", p)
	}
	vhost := func(of, own string) *route.RetryPolicy {
		return table(t, "{virtual_hosts: [{name: v, domains: ['*'], "+of+", routes: [{match: {prefix: /}, route: {cluster: up"+own+"}}]}]}").Match(&route.Request{Headers: headers("GET / a")}).Retry
	}
	const typed = "retry_policy_typed_config: {'@type': type.googleapis.com/envoy.config.route.v3.RetryPolicy, num_retries: 9}"
	if p := vhost("retry_policy: {num_retries: 5}", ""); p.Retries != 5 {
		t.Errorf("of the virtual host: %+v", p)
	}
	if p := vhost("retry_policy: {num_retries: 5}", ", retry_policy: {num_retries: 6}"); p.Retries != 6 {
		t.Errorf("of the route: %+v", p)
	}
	if p := vhost("retry_policy: {num_retries: 5}", ", "+typed); p.Retries != 9 {
		t.Errorf("typed, of the route: %+v", p)
	}
	if p := vhost(typed, ""); p.Retries != 9 {
		t.Errorf("typed, of the virtual host: %+v", p)
	}
}

func TestRetryInterval(t *testing.T) {
	p := policy(t, "rate_limited_retry_back_off: {max_interval: 100s, reset_headers: [{name: Retry-After}, {name: X-Reset, format: UNIX_TIMESTAMP}]}")
	const now = int64(1_000_000) * 1e9
	for _, c := range []struct {
		lines []string
		want  time.Duration
	}{
		{nil, 0}, {[]string{"retry-after: 7"}, 7 * time.Second}, {[]string{"retry-after: 100"}, 100 * time.Second}, {[]string{"retry-after: 101"}, 0},
		{[]string{"retry-after: soon"}, 0}, {[]string{"retry-after: -1"}, 0}, {[]string{"retry-after: 18446744073709551615"}, 0}, {[]string{"retry-after: 9999999999999"}, 0},
		{[]string{"x-reset: 1000005"}, 5 * time.Second}, {[]string{"x-reset: 999999"}, 0}, {[]string{"x-reset: 1000101"}, 0},
		{[]string{"retry-after: 101", "x-reset: 1000005"}, 5 * time.Second}, {[]string{"x-reset: 1000005", "retry-after: 3"}, 3 * time.Second},
	} {
		if got := p.Interval(headers("GET / a", c.lines...), now); got != c.want {
			t.Errorf("%q: %v, want %v", c.lines, got, c.want)
		}
	}
	if got := policy(t, "rate_limited_retry_back_off: {reset_headers: [{name: retry-after}]}").Interval(headers("GET / a", "retry-after: 300"), now); got != 300*time.Second {
		t.Errorf("by default 300 s are allowed: %v", got)
	}
}

func TestOmitHosts(t *testing.T) {
	const meta = "{name: m, typed_config: {'@type': type.googleapis.com/envoy.extensions.retry.host.omit_host_metadata.v3.OmitHostMetadataConfig, " +
		"metadata_match: {filter_metadata: {envoy.lb: {zone: {a: [1, x]}, n: 2}}}}}"
	const canary = "{name: c, typed_config: {'@type': type.googleapis.com/envoy.extensions.retry.host.omit_canary_hosts.v3.OmitCanaryHostsPredicate}}"
	const previous = "{name: p, typed_config: {'@type': type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate}}"
	p := policy(t, "retry_host_predicate: ["+meta+", "+canary+", "+previous+"]")
	if !p.PreviousHosts || len(p.OmitHost) != 2 {
		t.Errorf("%+v", p)
	}
	with := func(lb map[string]any) *host.Host {
		h := host.New(network.Address{}, "h")
		canary, _ := lb["canary"].(bool)
		h.SetMetadata(&host.Metadata{Spaces: map[string]map[string]any{"envoy.lb": lb}, Canary: canary})
		return h
	}
	for i, c := range []struct {
		lb   map[string]any
		want bool
	}{
		{nil, false}, {map[string]any{"n": 2.0}, false}, {map[string]any{"n": 2.0, "zone": map[string]any{"a": []any{1.0, "x"}}, "more": true}, true},
		{map[string]any{"n": 2.0, "zone": map[string]any{"a": []any{1.0}}}, false}, {map[string]any{"n": 2.0, "zone": "a"}, false},
		{map[string]any{"canary": true}, true}, {map[string]any{"canary": "true"}, false},
	} {
		if got := p.Omit(with(c.lb)); got != c.want {
			t.Errorf("host %d: %v", i, got)
		}
	}
}

func TestRefusedRetryPolicies(t *testing.T) {
	for _, bad := range []string{
		"retry_back_off: {base_interval: 2s, max_interval: 1s}",
		"retry_host_predicate: [{name: x, typed_config: {'@type': type.googleapis.com/envoy.config.core.v3.Node}}]",
		"retry_priority: {name: x}", "retry_options_predicates: [{name: x}]",
		"retriable_headers: [{name: a, string_match: {safe_regex: {regex: '('}}}]", "retriable_request_headers: [{name: a, string_match: {safe_regex: {regex: '('}}}]",
	} {
		if _, err := compile(t, routes("{match: {prefix: /}, route: {cluster: up, retry_policy: {"+bad+"}}}")); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
