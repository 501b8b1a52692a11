package sim_test

import (
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/simtest"
)

// Several attempts of a request are under way at a time: one answer comes out, whole.
func TestHedging(t *testing.T) {
	for up, upName := range protocols {
		for down, downName := range protocols {
			t.Run(downName+" to "+upName, func(t *testing.T) {
				hedging := strings.Replace(config(up), "route: {cluster: b, timeout: 80s}", `
                route:
                  cluster: b
                  timeout: 80s
                  hedge_policy: {hedge_on_per_try_timeout: true}
                  retry_policy: {retry_on: "5xx,reset,connect-failure", num_retries: 2, per_try_timeout: 0.2s, retry_back_off: {base_interval: 0.1s}}`, 1)
				seen := map[string]uint64{}
				games(t, 15, simtest.Proxy(hedging, 2), simtest.Options{Protocol: down, Upstream: up, Pipeline: 2, Retries: 2, Stats: seen})
				happened(t, seen, "cluster.b.upstream_rq_retry")
			})
		}
	}
}

// Copies of requests go elsewhere: whatever becomes of them, nobody notices.
func TestMirroring(t *testing.T) {
	for up, upName := range protocols {
		for down, downName := range protocols {
			t.Run(downName+" to "+upName, func(t *testing.T) {
				one, two, _ := strings.Cut(config(up), "  clusters:\n")
				mirror := strings.Replace(strings.Replace(two, "- name: b", "- name: m", 1), "cluster_name: b", "cluster_name: m", 1)
				mirror = strings.Replace(mirror, "        - endpoint: {address: UPSTREAM_0}\n", "", 1)
				two = strings.Replace(two, "        - endpoint: {address: UPSTREAM_1}\n", "", 1)
				text := strings.Replace(one, "route: {cluster: b, timeout: 80s}", "route: {cluster: b, timeout: 80s, request_mirror_policies: [{cluster: m}]}", 1) + "  clusters:\n" + two + mirror
				seen := map[string]uint64{}
				games(t, 40, simtest.Proxy(text, 2), simtest.Options{Protocol: down, Upstream: up, Pipeline: 2, Retries: 1, Stats: seen})
				happened(t, seen, "cluster.m.upstream_rq_2xx", "cluster.m.upstream_rq_5xx", "cluster.m.upstream_rq_timeout", "http.async-client.rq_total",
					"cluster.m.upstream_flow_control_backed_up_total")
			})
		}
	}
}

// Redirects to the upstreams themselves are followed: the client sees the last answer only.
func TestInternalRedirects(t *testing.T) {
	for down, downName := range protocols {
		t.Run(downName, func(t *testing.T) {
			following := strings.Replace(config(simtest.HTTP1), "route: {cluster: b, timeout: 80s}",
				"route: {cluster: b, timeout: 80s, internal_redirect_policy: {max_internal_redirects: 2}}", 1)
			seen := map[string]uint64{}
			games(t, 20, simtest.Proxy(following, 2), simtest.Options{Protocol: down, Pipeline: 2, Redirects: true, Stats: seen})
			happened(t, seen, "cluster.b.upstream_internal_redirect_succeeded_total", "http.h1.downstream_rq_5xx")
			if n := seen["cluster.b.upstream_internal_redirect_failed_total"]; n > 0 {
				t.Errorf("%d were not followed", n)
			}
		})
	}
}
