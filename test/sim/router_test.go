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
				games(t, 60, simtest.Proxy(hedging, 2), simtest.Options{Protocol: down, Upstream: up, Pipeline: 2, Retries: 2, Stats: seen})
				happened(t, seen, "cluster.b.upstream_rq_retry", "cluster.b.upstream_rq_retry_limit_exceeded")
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
				games(t, 25, simtest.Proxy(text, 2), simtest.Options{Protocol: down, Upstream: up, Pipeline: 2, Retries: 1, Stats: seen})
				happened(t, seen, "cluster.m.upstream_rq_2xx", "cluster.m.upstream_rq_5xx", "cluster.m.upstream_rq_timeout", "http.async-client.rq_total",
					"cluster.m.upstream_flow_control_backed_up_total")
			})
		}
	}
}
