package http_test

import (
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// x-envoy-upstream-alt-stat-name of an internal client counts its answers under a name of their own too. Others may not name anything.
func TestAltStatName(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		up := scripttest.Upstream{Serve: func(r *scripttest.Call) {
			if r.Header("x-envoy-upstream-alt-stat-name") != "" {
				t.Error("the upstream has been told the name")
			}
			if r.Header("x-n") == "broken" {
				r.Reply("503 Service Unavailable", "", "x-envoy-upstream-canary: true")
				return
			}
			r.Reply("200 OK", "")
		}}
		p := m.Start(t, scripttest.Config{HCM: []string{"use_remote_address: true", "internal_address_config: {cidr_ranges: [{address_prefix: 192.0.2.0, prefix_len: 24}]}"}}, up)
		for _, n := range []string{"one", "one", "broken"} {
			p.Ask(scripttest.Request("/", "x-n: "+n, "x-envoy-upstream-alt-stat-name: "+n))
		}
		p.Ask(scripttest.Request("/"))
		p.Stats(map[string]uint64{"cluster.up.upstream_rq_completed": 4,
			"cluster.up.one.upstream_rq_200": 2, "cluster.up.one.internal.upstream_rq_200": 2, "cluster.up.one.upstream_rq_completed": 2,
			"cluster.up.broken.upstream_rq_503": 1, "cluster.up.broken.canary.upstream_rq_5xx": 1, "cluster.up.broken.external.upstream_rq_503": 0})
		outside := m.Start(t, scripttest.Config{}, up)
		outside.Ask(scripttest.Request("/", "x-envoy-upstream-alt-stat-name: one"))
		outside.Stats(map[string]uint64{"cluster.up.upstream_rq_200": 1, "cluster.up.one.upstream_rq_200": 0})
	})
}
