package http_test

import (
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// With refresh_cluster_on_retry a cluster specifier is asked again before each retry.
func TestRefreshClusterOnRetry(t *testing.T) {
	const types = `"@type": type.googleapis.com/envoy.`
	to := func(cluster string) string {
		return "{action: {name: a, typed_config: {" + types + "extensions.router.cluster_specifiers.matcher.v3.ClusterAction, cluster: " + cluster + "}}}"
	}
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		for name, c := range map[string]struct {
			then, refresh string
			status        int
			body          string
			stats         map[string]uint64
		}{
			"moves": {"two", "true", 200, "two", map[string]uint64{"cluster.up.upstream_rq_total": 1, "cluster.two.upstream_rq_total": 1, "cluster.up.upstream_rq_retry": 0,
				"cluster.two.upstream_rq_retry": 1, "cluster.two.upstream_rq_retry_success": 1}},
			"stays": {"two", "false", 503, "", map[string]uint64{"cluster.up.upstream_rq_total": 2, "cluster.two.upstream_rq_total": 0, "cluster.up.upstream_rq_retry": 1,
				"cluster.up.upstream_rq_retry_limit_exceeded": 1}},
			"nowhere": {"three", "true", 503, "no healthy upstream", map[string]uint64{"cluster.up.upstream_rq_total": 1, "cluster.up.upstream_rq_retry": 0}},
		} {
			t.Run(name, func(t *testing.T) {
				// The attempt's number is in the request before the first retry, and was not when it was routed.
				route := "{match: {prefix: /}, route: {inline_cluster_specifier_plugin: {extension: {name: m, typed_config: {" + types +
					"extensions.router.cluster_specifiers.matcher.v3.MatcherClusterSpecifier, cluster_matcher: {matcher_tree: {input: {name: i, typed_config: {" + types +
					"type.matcher.v3.HttpRequestHeaderMatchInput, header_name: x-envoy-attempt-count}}, exact_match_map: {map: {'1': " + to(c.then) + "}}}, on_no_match: " + to("up") +
					"}}}}, retry_policy: {retry_on: 5xx, refresh_cluster_on_retry: " + c.refresh + ", retry_back_off: {base_interval: 0.001s}}}}"
				p := m.Start(t, scripttest.Config{VirtualHost: []string{"include_request_attempt_count: true"}, Routes: []string{route}, Clusters: []string{
					"{name: two, load_assignment: {cluster_name: two, endpoints: [{lb_endpoints: [{endpoint: {address: UPSTREAM_1}}]}]}" + m.Cluster() + "}"}},
					scripttest.Upstream{Serve: func(r *scripttest.Call) { r.Reply("503 Service Unavailable", "") }},
					scripttest.Upstream{Serve: func(r *scripttest.Call) { r.Reply("200 OK", "two") }})
				cl := p.Dial().Send(scripttest.Request("/"))
				p.Pass(time.Second)
				if a := cl.Response(); a.Status != c.status || a.Body != c.body {
					t.Errorf("got %+v", a)
				}
				p.Stats(c.stats)
			})
		}
	})
}
