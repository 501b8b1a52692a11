package http_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// Once a client has been told to go on, its request stays with the upstream that said so: no retry, and no per-try timeout.
func TestNoRetryAfterContinue(t *testing.T) {
	const route = "{match: {prefix: /}, route: {cluster: up, timeout: 8s, " +
		"retry_policy: {retry_on: '5xx,reset', per_try_timeout: 2s, retry_back_off: {base_interval: 0.001s}}}}"
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		for name, c := range map[string]struct {
			after  func(r *scripttest.Call)
			status int
			code   string // of the cluster's answers, "" for none
		}{
			"reset":  {func(r *scripttest.Call) { r.Fail() }, 503, ""},
			"error":  {func(r *scripttest.Call) { r.Reply("503 Service Unavailable", "") }, 503, "503"},
			"slow":   {func(r *scripttest.Call) { r.After(5*time.Second, func() { r.Reply("200 OK", "") }) }, 200, "200"},
			"silent": {func(*scripttest.Call) {}, 504, ""},
		} {
			t.Run(name, func(t *testing.T) {
				p := m.Start(t, scripttest.Config{HCM: []string{"proxy_100_continue: true"}, Routes: []string{route}},
					scripttest.Upstream{Early: true, Serve: func(r *scripttest.Call) {
						r.Write("HTTP/1.1 100 Continue\r\n\r\n")
						r.After(100*time.Millisecond, func() { c.after(r) })
					}})
				cl := p.Dial().Send("POST / HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n")
				if a := cl.Response(); !slices.Equal(a.Interim, []int{100}) {
					t.Fatalf("got %+v", a)
				}
				cl.Send("abc")
				p.Pass(12 * time.Second)
				if a := cl.Response(); a.Status != c.status {
					t.Errorf("got %+v", a)
				}
				p.Stats(map[string]uint64{"cluster.up.upstream_rq_retry": 0, "cluster.up.upstream_rq_total": 1, "cluster.up.upstream_rq_per_try_timeout": 0})
				// The 100 counts too, as in Envoy.
				if n := p.Stat("cluster.up.upstream_rq_completed"); n > 1 != (c.code != "") || p.Stat("cluster.up.upstream_rq_100") != 1 {
					t.Errorf("%d answers counted", n)
				}
			})
		}
	})
}
