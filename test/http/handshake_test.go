package http_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// An upstream that does not answer a WebSocket handshake is not waited for longer than for other answers; one that does may take as long
// as it likes afterwards.
func TestHandshakeTimeouts(t *testing.T) {
	const upgrades = "upgrade_configs: [{upgrade_type: websocket}]"
	handshake := scripttest.Request("/", "connection: upgrade", "upgrade: websocket")
	for name, c := range map[string]struct {
		route, status, counter string
		answers                bool
	}{
		"route":          {"timeout: 2s", "504 Gateway Timeout", "upstream_rq_timeout", false},
		"attempt":        {"timeout: 9s, retry_policy: {per_try_timeout: 2s}", "504 Gateway Timeout", "upstream_rq_per_try_timeout", false},
		"second attempt": {"timeout: 9s, retry_policy: {retry_on: 5xx, per_try_timeout: 1s, retry_back_off: {base_interval: 0.001s}}", "504 Gateway Timeout", "upstream_rq_retry", false},
		"accepted":       {"timeout: 2s, retry_policy: {per_try_timeout: 2s}", "101 Switching Protocols", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := scripttest.Start(t, scripttest.Config{HCM: []string{upgrades}, Routes: []string{"{match: {prefix: /}, route: {cluster: up, " + c.route + "}}"}}.YAML(),
				scripttest.Upstream{Serve: func(r *scripttest.Call) {
					if c.answers {
						r.Write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n")
						r.After(20*time.Second, func() { r.Write("late") })
					}
				}})
			cl := p.Dial().Send(handshake)
			p.Pass(3 * time.Second)
			if got := cl.Got(); !strings.HasPrefix(got, "HTTP/1.1 "+c.status+"\r\n") {
				t.Errorf("got %q, want %s", got, c.status)
			}
			if c.counter != "" {
				p.Stats(map[string]uint64{"cluster.up." + c.counter: 1})
			}
			if p.Pass(20 * time.Second); c.answers && cl.Got() != "late" {
				t.Error("the tunnel is gone")
			}
			cl.Close()
		})
	}
}

// An answer that is neither the other protocol nor an error has no body, but all that its head says beside it.
func TestHandshakeRedirected(t *testing.T) {
	for name, router := range map[string][]string{"plain": nil, "no x-envoy headers": {"suppress_envoy_headers: true"}} {
		t.Run(name, func(t *testing.T) {
			p := scripttest.Start(t, scripttest.Config{HCM: []string{"upgrade_configs: [{upgrade_type: websocket}]"}, Router: router}.YAML(),
				scripttest.Upstream{Serve: func(r *scripttest.Call) {
					r.Reply("302 Found", "body", "location: /there", "X-Other: 1", "set-cookie: a=b", "set-cookie: c=d", "content-type: text/x", "date: today", "server: theirs")
				}})
			a := p.Ask(scripttest.Request("/", "connection: upgrade", "upgrade: websocket"))
			want := []string{"location: /there", "x-other: 1", "set-cookie: a=b", "set-cookie: c=d", "date: today", "server: envoy", "content-length: 0"}
			if d := cmp.Diff(want, a.Lines); a.Status != 302 || a.Body != "" || d != "" {
				t.Errorf("got %+v, fields %s", a, d)
			}
		})
	}
}

// A bad request ends its connection, whoever says that it is bad; an upstream's word does not.
func TestBadRequestsEndConnections(t *testing.T) {
	internal := []string{"use_remote_address: true", "internal_address_config: {cidr_ranges: [{address_prefix: 192.0.2.0, prefix_len: 24}]}"}
	p := scripttest.Start(t, scripttest.Config{HCM: internal, Router: []string{"strict_check_headers: [x-envoy-retry-on, x-envoy-max-retries]"},
		Routes: []string{"{match: {prefix: /direct}, direct_response: {status: 400}}", "{match: {prefix: /}, route: {cluster: up}}"}}.YAML(),
		scripttest.Upstream{Serve: func(r *scripttest.Call) {
			if r.Path() == "/upstream" {
				r.Reply("400 Bad Request", "")
				return
			}
			r.Reply("200 OK", "")
		}})
	for _, c := range []struct {
		path, header, status string
		closes               bool
	}{
		{"/direct", "x: y", "400", true},
		{"/upstream", "x: y", "400", false},
		{"/strict", "x-envoy-max-retries: 1x", "400", true},
		{"/strict", "x-envoy-retry-on: 5xx,foo", "400", true},
		{"/strict", "x-envoy-retry-on: 5xx, reset", "200", false},
		{"/strict", "x-envoy-retry-on:", "200", false},
	} {
		cl := p.Dial().Send(scripttest.Request(c.path, c.header))
		got := cl.Got()
		p.Pass(2 * time.Second)
		if !strings.HasPrefix(got, "HTTP/1.1 "+c.status+" ") || cl.Closed() != c.closes {
			t.Errorf("%s, %s: got %q, closed %v", c.path, c.header, got, cl.Closed())
		}
	}
}

// An upstream that closes what it has upgraded ends the stream: that is no failure.
func TestUpgradeEnds(t *testing.T) {
	p := scripttest.Start(t, scripttest.Config{HCM: []string{"upgrade_configs: [{upgrade_type: websocket}]"}}.YAML(),
		scripttest.Upstream{Serve: func(r *scripttest.Call) {
			r.Write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nbye")
			r.Close()
		}})
	cl := p.Dial().Send(scripttest.Request("/", "connection: upgrade", "upgrade: websocket"))
	p.Pass(5 * time.Second)
	if got := cl.Got(); !strings.HasPrefix(got, "HTTP/1.1 101 ") || !strings.HasSuffix(got, "bye") || !cl.Closed() {
		t.Errorf("got %q, closed %v", got, cl.Closed())
	}
	p.Stats(map[string]uint64{"http.s.downstream_rq_tx_reset": 0, "http.s.downstream_cx_upgrades_active": 0})
}
