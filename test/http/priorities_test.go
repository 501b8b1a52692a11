package http_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// Retries leave a priority that was tried, and come back when all were.
func TestPreviousPriorities(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		const other = "{name: pool, load_assignment: {cluster_name: pool, endpoints: [{priority: 0, lb_endpoints: [{endpoint: {address: UPSTREAM_0}}]}, " +
			"{priority: 1, lb_endpoints: [{endpoint: {address: UPSTREAM_1}}]}]}"
		for frequency, want := range map[string]string{"1": "0101", "2": "0011"} {
			order := ""
			serve := func(name string) scripttest.Upstream {
				return scripttest.Upstream{Serve: func(r *scripttest.Call) {
					order += name
					r.Reply("503 Service Unavailable", "")
				}}
			}
			p := m.Start(t, scripttest.Config{Clusters: []string{other + m.Cluster() + "}"}, Routes: []string{"{match: {prefix: /}, route: {cluster: pool, retry_policy: {retry_on: 5xx, num_retries: 3, " +
				"retry_back_off: {base_interval: 0.001s}, retry_priority: {name: p, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig, " +
				"update_frequency: " + frequency + "}}}}}"}}, serve("0"), serve("1"))
			cl := p.Dial().Send(scripttest.Request("/"))
			p.Pass(time.Second)
			if got := cl.Got(); !strings.HasPrefix(got, "HTTP/1.1 503 ") {
				t.Errorf("got %q", got)
			}
			if order != want {
				t.Errorf("every %s: the order is %s, want %s", frequency, order, want)
			}
		}
	})
}
