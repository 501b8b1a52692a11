package http_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// What a cluster says of retries, mirrors and hashing stands in place of what the route says, but for the route's timeouts.
func TestClusterPolicies(t *testing.T) {
	const (
		retry  = "retry_policy: {retry_on: 5xx, num_retries: %d, retry_back_off: {base_interval: 0.001s}%s}"
		mirror = "request_mirror_policies: [{cluster: %s}]"
	)
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		for name, c := range map[string]struct {
			cluster, route string
			after          time.Duration // of an answer
			want           string        // status, attempts, copies
		}{
			"retries of the cluster":    {fmt.Sprintf(retry, 2, ""), "timeout: 9s", 0, "503 3 0"},
			"retries of both":           {fmt.Sprintf(retry, 1, ""), fmt.Sprintf(retry, 3, ""), 0, "503 2 0"},
			"its timeouts mean nothing": {fmt.Sprintf(retry, 1, ", per_try_timeout: 1s"), fmt.Sprintf(retry, 3, ""), 2 * time.Second, "503 2 0"},
			"the route's do":            {fmt.Sprintf(retry, 1, ""), fmt.Sprintf(retry, 3, ", per_try_timeout: 1s"), 2 * time.Second, "504 2 0"},
			"copies of the cluster":     {fmt.Sprintf(mirror, "sh"), "timeout: 9s", 0, "503 1 1"},
			"copies of both":            {fmt.Sprintf(mirror, "sh"), fmt.Sprintf(mirror, "up"), 0, "503 1 1"},
			"copies for nobody":         {fmt.Sprintf(mirror, "nowhere"), fmt.Sprintf(mirror, "sh"), 0, "503 1 0"},
		} {
			t.Run(name, func(t *testing.T) {
				attempts, copies := 0, 0
				p := m.Start(t, scripttest.Config{HTTPOptions: []string{c.cluster}, Clusters: []string{mirrors(m)},
					Routes: []string{"{match: {prefix: /}, route: {cluster: up, " + c.route + "}}"}},
					scripttest.Upstream{Serve: func(r *scripttest.Call) {
						attempts++
						r.After(c.after, func() { r.Reply("503 Service Unavailable", "") })
					}},
					scripttest.Upstream{Serve: func(r *scripttest.Call) {
						copies++
						r.Reply("200 OK", "")
					}})
				cl := p.Dial().Send(scripttest.Request("/"))
				p.Pass(10 * time.Second)
				status := cl.Response().Status
				p.Settle()
				if d := cmp.Diff(c.want, fmt.Sprint(status, " ", attempts, " ", copies)); d != "" {
					t.Error(d)
				}
			})
		}
	})
}

func TestHashPolicyOfTheCluster(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		var served [2]int
		ups := counting(&served)
		p := m.Start(t, scripttest.Config{Upstreams: 2, Cluster: []string{"lb_policy: RING_HASH"}, HTTPOptions: []string{"hash_policy: [{header: {header_name: x-a}}]"},
			Routes: []string{"{match: {prefix: /}, route: {cluster: up, hash_policy: [{header: {header_name: x-b}}]}}"}}, ups...)
		for i := range 12 {
			p.Ask(scripttest.Request("/", "x-a: same", fmt.Sprint("x-b: ", i)))
		}
		if max(served[0], served[1]) != 12 {
			t.Errorf("the hosts got %v requests of one hash", served)
		}
	})
}
