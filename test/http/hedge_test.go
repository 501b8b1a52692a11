package http_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

const hedged = "{match: {prefix: /}, route: {cluster: up, timeout: 10s, hedge_policy: {hedge_on_per_try_timeout: true}, " +
	`retry_policy: {retry_on: "5xx,reset", num_retries: 2, per_try_timeout: 1s, retry_back_off: {base_interval: 0.001s}}}}`

// The first good answer wins, whichever attempt it is of.
func TestHedging(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		type answer struct {
			after  time.Duration // <0: never
			status string        // "": it breaks
		}
		for name, c := range map[string]struct {
			answers []answer // of the attempts, in their order
			want    string   // status and the attempt that it is of
			after   time.Duration
			stats   map[string]uint64
		}{
			"the first is fast": {[]answer{{500 * time.Millisecond, "200 OK"}}, "200 OK 1", time.Second,
				map[string]uint64{"upstream_rq_total": 1, "upstream_rq_retry": 0}},
			"the second wins": {[]answer{{-1, ""}, {100 * time.Millisecond, "200 OK"}}, "200 OK 2", 2 * time.Second,
				map[string]uint64{"upstream_rq_retry": 1, "upstream_rq_retry_success": 1, "upstream_rq_per_try_timeout": 0, "upstream_rq_200": 1}},
			"the slow one wins": {[]answer{{1500 * time.Millisecond, "200 OK"}, {-1, ""}}, "200 OK 1", 2 * time.Second,
				map[string]uint64{"upstream_rq_retry": 1, "upstream_rq_retry_success": 0, "upstream_rq_200": 1}},
			"a bad answer waits for a good one": {[]answer{{1200 * time.Millisecond, "503 Service Unavailable"}, {500 * time.Millisecond, "200 OK"}}, "200 OK 2", 2 * time.Second,
				map[string]uint64{"upstream_rq_retry": 1, "upstream_rq_200": 1, "upstream_rq_503": 0}},
			"a broken one waits too": {[]answer{{1200 * time.Millisecond, ""}, {500 * time.Millisecond, "200 OK"}}, "200 OK 2", 2 * time.Second,
				map[string]uint64{"upstream_rq_retry": 1, "upstream_rq_200": 1}},
			"three at a time": {[]answer{{-1, ""}, {-1, ""}, {100 * time.Millisecond, "200 OK"}}, "200 OK 3", 3 * time.Second,
				map[string]uint64{"upstream_rq_retry": 2, "upstream_rq_total": 3, "upstream_rq_tx_reset": 0}},
			"the last bad one is told": {[]answer{{1200 * time.Millisecond, "503 Service Unavailable"}, {1500 * time.Millisecond, "500 Internal Server Error"},
				{100 * time.Millisecond, "502 Bad Gateway"}}, "500 Internal Server Error 2", 5 * time.Second, map[string]uint64{"upstream_rq_retry": 2, "upstream_rq_retry_limit_exceeded": 1}},
			"none answers": {[]answer{{-1, ""}, {-1, ""}, {-1, ""}}, "504 Gateway Timeout", 11 * time.Second,
				map[string]uint64{"upstream_rq_timeout": 3, "upstream_rq_total": 3, "upstream_rq_504": 3}},
		} {
			t.Run(name, func(t *testing.T) {
				up := scripttest.Upstream{Serve: func(r *scripttest.Call) {
					a := c.answers[r.N-1]
					if n := fmt.Sprint(r.N); r.Header("x-envoy-attempt-count") != n || r.Body != "abc" {
						t.Errorf("attempt %s has %q and body %q", n, r.Head, r.Body)
					}
					switch n := r.N; {
					case a.after < 0:
					case a.status == "":
						r.After(a.after, r.Fail)
					default:
						r.After(a.after, func() { r.Reply(a.status, fmt.Sprint(n)) })
					}
				}}
				p := m.Start(t, scripttest.Config{Routes: []string{hedged}, VirtualHost: []string{"include_request_attempt_count: true"}}, up)
				cl := p.Dial().Send("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc")
				p.Pass(c.after)
				got := cl.Got()
				status, _, _ := strings.Cut(strings.TrimPrefix(got, "HTTP/1.1 "), "\r\n")
				if _, body, _ := strings.Cut(got, "\r\n\r\n"); len(body) == 1 {
					status += " " + body
				}
				if status != c.want {
					t.Errorf("got %q, want %q", status, c.want)
				}
				for name, v := range c.stats {
					if name == "upstream_rq_tx_reset" && m.Up.Streams() {
						v = 2 // the slow ones, which with HTTP/1 go with their connections
					}
					p.Stats(map[string]uint64{"cluster.up." + name: v})
				}
			})
		}
	})
}

// An internal client may ask for it, or ask not to have it.
func TestHedgingByHeader(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		internal := []string{"use_remote_address: true", "internal_address_config: {cidr_ranges: [{address_prefix: 192.0.2.0, prefix_len: 24}]}"}
		for value, want := range map[string]string{"true": "200 OK", "false": "504 Gateway Timeout"} {
			route := strings.Replace(hedged, "hedge_on_per_try_timeout: true", "hedge_on_per_try_timeout: "+map[string]string{"true": "false", "false": "true"}[value], 1)
			p := m.Start(t, scripttest.Config{HCM: internal, Routes: []string{route}}, scripttest.Upstream{Serve: func(r *scripttest.Call) {
				if v := r.Header("x-envoy-hedge-on-per-try-timeout"); v != "" {
					t.Errorf("the upstream sees %q", v)
				}
				if r.N == 1 {
					r.After(2*time.Second, func() { r.Reply("200 OK", "") })
				}
			}})
			cl := p.Dial().Send(scripttest.Request("/", "x-envoy-hedge-on-per-try-timeout: "+value))
			p.Pass(5 * time.Second)
			if got := cl.Got(); !strings.HasPrefix(got, "HTTP/1.1 "+want) {
				t.Errorf("%s: got %q", value, got)
			}
		}
	})
}

// A client that leaves takes all attempts with it.
func TestHedgingClientLeaves(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{Routes: []string{hedged}}, scripttest.Upstream{Serve: func(*scripttest.Call) {}})
		cl := p.Dial().Send(scripttest.Request("/"))
		p.Pass(1500 * time.Millisecond)
		p.Stats(map[string]uint64{"cluster.up.upstream_rq_active": 2})
		cl.Close()
		p.Stats(map[string]uint64{"cluster.up.upstream_rq_active": 0, "cluster.up.circuit_breakers.default.rq_retry_open": 0})
	})
}
