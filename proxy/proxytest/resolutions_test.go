package proxytest_test

import (
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

// With record_route_resolution_stats a stream's end tells how often its route was looked up; without, there are no such histograms.
func TestRouteResolutionStats(t *testing.T) {
	for _, on := range []bool{true, false} {
		field := ""
		if on {
			field = "record_route_resolution_stats: true, "
		}
		p := proxytest.Start(t, `
stats_flush_on_admin: true
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  listeners:
  - name: main
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains: [{filters: [{name: h, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager,
      stat_prefix: s, `+field+`http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}],
      route_config: {virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {path: /}, direct_response: {status: 200}}]}]}}}]}]
`)
		for _, path := range []string{"/", "/", "/none"} {
			p.Get(path)
		}
		p.Await("http.s.downstream_rq_active", "0")
		got := p.Admin("GET", "/stats?filter=route_resol&histogram_buckets=detailed").Body
		if on != strings.Contains(got, "http.s.downstream_rq_route_resolutions:\n  totals=1,0.1:3") || on != strings.Contains(got, "http.s.downstream_rq_route_resolution_time_us:") {
			t.Errorf("%v: %q", on, got)
		}
	}
}
