package http_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// counting returns two upstreams that answer, and count what each of them serves.
func counting(served *[2]int) (ups []scripttest.Upstream) {
	for i := range served {
		ups = append(ups, scripttest.Upstream{Serve: func(r *scripttest.Call) {
			served[i]++
			r.Reply("200 OK", "")
		}})
	}
	return ups
}

// The host is chosen for the request as the route has made it: hash policies see it so.
func TestHashOfTheRewrittenRequest(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		var served [2]int
		ups := counting(&served)
		p := m.Start(t, scripttest.Config{Upstreams: 2, Cluster: []string{"lb_policy: RING_HASH"}, Routes: []string{
			`{match: {prefix: /}, route: {cluster: up, hash_policy: [{header: {header_name: ":path"}}], regex_rewrite: {pattern: {regex: ".*"}, substitution: /same}}}`}}, ups...)
		for i := range 12 {
			p.Ask(scripttest.Request(fmt.Sprint("/", i)))
		}
		if max(served[0], served[1]) != 12 {
			t.Errorf("the hosts got %v requests of one path", served)
		}
	})
}

// A request that finds no host has been rewritten already: its reply and its log tell of it.
func TestNoHostAfterRewrite(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{Clusters: []string{"{name: empty, type: STATIC}"}, VirtualHost: []string{"include_request_attempt_count: true",
			`response_headers_to_add: [{header: {key: x-r, value: "%REQ(:PATH)% %REQ(X-ENVOY-ATTEMPT-COUNT)% %REQ(X-ENVOY-EXPECTED-RQ-TIMEOUT-MS)%"}}]`},
			Routes: []string{"{match: {prefix: /a}, route: {cluster: empty, prefix_rewrite: /b, timeout: 3s}}"}}, scripttest.Upstream{})
		a := p.Ask(scripttest.Request("/a/x"))
		if a.Status != 503 || a.Get("x-r") != "/b/x 1 3000" {
			t.Errorf("got %+v", a)
		}
	})
}

// What the router adds to an answer stands in Envoy's order.
func TestOrderOfAddedHeaders(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{VirtualHost: []string{"include_attempt_count_in_response: true", "response_headers_to_add: [{header: {key: x-r, value: r}}]"}},
			scripttest.Upstream{Serve: func(r *scripttest.Call) { r.Reply("200 OK", "", "x-a: 1") }})
		var names []string
		for _, l := range p.Ask(scripttest.Request("/")).Lines {
			if name, _, _ := strings.Cut(l, ":"); strings.HasPrefix(name, "x-") || name == "server" {
				names = append(names, name)
			}
		}
		if want := []string{"x-a", "x-envoy-upstream-service-time", "x-r", "x-envoy-attempt-count", "server"}; !slices.Equal(names, want) {
			t.Errorf("got %q, want %q", names, want)
		}
	})
}

// The host is rewritten before the path, which the order of the originals shows.
func TestOrderOfRewrites(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		var names []string
		p := m.Start(t, scripttest.Config{Routes: []string{"{match: {prefix: /a}, route: {cluster: up, prefix_rewrite: /b, host_rewrite_literal: other, append_x_forwarded_host: true}}"}},
			scripttest.Upstream{Serve: func(r *scripttest.Call) {
				for l := range strings.SplitSeq(r.Head, "\r\n") {
					if name, _, _ := strings.Cut(l, ":"); strings.HasPrefix(name, "x-envoy-original") || name == "x-forwarded-host" {
						names = append(names, name)
					}
				}
				r.Reply("200 OK", "")
			}})
		p.Ask(scripttest.Request("/a"))
		if want := []string{"x-envoy-original-host", "x-forwarded-host", "x-envoy-original-path"}; !slices.Equal(names, want) {
			t.Errorf("got %q, want %q", names, want)
		}
	})
}
