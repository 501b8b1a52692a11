package cors_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/extensions/filters/http/cors"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start starts a proxy; lines ends it and returns its access log.
func start(t *testing.T, config, routes string, h http.HandlerFunc) (p *proxytest.Proxy, lines func() []string) {
	t.Helper()
	return proxytest.HTTPFilter{Filter: cors.Extension, Config: config, Routes: routes}.Start(t, h)
}

const routes = `
            virtual_hosts:
            - name: all
              domains: ["*"]
              typed_per_filter_config: {it: {"@type": POLICY, allow_origin_string_match: [{safe_regex: {regex: ".*\\.test"}}], allow_methods: "GET", max_age: "60", allow_credentials: true, expose_headers: "x-shown"}}
              routes:
              - match: {prefix: /own}
                route: {cluster: backend}
                typed_per_filter_config: {it: {"@type": POLICY, allow_methods: "PUT", allow_headers: "x-a,x-b", allow_credentials: false, allow_private_network_access: true}}
              - match: {prefix: /strict}
                route: {cluster: backend}
                typed_per_filter_config: {it: {"@type": POLICY, forward_not_matching_preflights: false}}
              - match: {prefix: /off}
                route: {cluster: backend}
                typed_per_filter_config: {it: {"@type": POLICY, filter_enabled: {default_value: {numerator: 0}}}}
              - match: {prefix: /shadow}
                route: {cluster: backend}
                typed_per_filter_config: {it: {"@type": POLICY, filter_enabled: {default_value: {numerator: 0}}, shadow_enabled: {default_value: {numerator: 100}}}}
              - match: {prefix: /}
                route: {cluster: backend}
            - name: old
              domains: [old.test]
              cors: {allow_origin_string_match: [{exact: "http://a.test"}], allow_methods: "GET", max_age: "60", filter_enabled: {default_value: {numerator: 100}}}
              routes:
              - match: {prefix: /own}
                route: {cluster: backend, cors: {allow_methods: "PUT", allow_headers: "x-a"}}
              - match: {prefix: /typed}
                route: {cluster: backend, cors: {allow_methods: "PUT"}}
                typed_per_filter_config: {it: {"@type": POLICY, allow_methods: "PATCH", allow_origin_string_match: [{prefix: "http"}]}}
              - match: {prefix: /}
                route: {cluster: backend}
`

// TestCORS compares answers with their access-control headers.
func TestCORS(t *testing.T) {
	p, lines := start(t, `{"@type": type.googleapis.com/envoy.extensions.filters.http.cors.v3.Cors}`,
		strings.ReplaceAll(routes, "POLICY", "type.googleapis.com/envoy.extensions.filters.http.cors.v3.CorsPolicy"),
		func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "upstream") })
	const good, bad = "http://a.test", "http://a.example"
	preflight := []string{"Access-Control-Request-Method", "GET", "Access-Control-Request-Private-Network", "true"}
	old := []string{"Host", "old.test"}
	for _, c := range []struct {
		method, path, origin string
		header               []string
		want                 string
	}{
		{"GET", "/", "", nil, "200 upstream"},
		{"GET", "/", good, nil, "200 upstream origin=http://a.test credentials=true expose=x-shown"},
		{"GET", "/", bad, nil, "200 upstream"},
		{"OPTIONS", "/", good, nil, "200 upstream origin=http://a.test credentials=true expose=x-shown"},
		{"OPTIONS", "/", good, preflight, "200  origin=http://a.test credentials=true expose=x-shown methods=GET age=60"},
		{"OPTIONS", "/own", good, preflight, "200  origin=http://a.test expose=x-shown methods=PUT headers=x-a,x-b age=60 private=true"},
		{"OPTIONS", "/", bad, preflight, "200 upstream"},
		{"OPTIONS", "/strict", bad, preflight, "200 "},
		{"GET", "/off", good, nil, "200 upstream"},
		{"GET", "/shadow", good, nil, "200 upstream"},
		{"GET", "/", good, old, "200 upstream origin=http://a.test"},
		{"GET", "/", bad, old, "200 upstream"},
		{"OPTIONS", "/", good, append(old, preflight...), "200  origin=http://a.test methods=GET age=60"},
		{"OPTIONS", "/own", good, append(old, preflight...), "200  origin=http://a.test methods=PUT headers=x-a age=60"},
		{"OPTIONS", "/typed", good, append(old, preflight...), "200  origin=http://a.test methods=PATCH"},
	} {
		h := c.header
		if c.origin != "" {
			h = append([]string{"Origin", c.origin}, h...)
		}
		a := p.Do(c.method, c.path, "", h...)
		got := fmt.Sprint(a.Code, " ", a.Body)
		for _, x := range [][2]string{{"origin", "Allow-Origin"}, {"credentials", "Allow-Credentials"}, {"expose", "Expose-Headers"}, {"methods", "Allow-Methods"},
			{"headers", "Allow-Headers"}, {"age", "Max-Age"}, {"private", "Allow-Private-Network"}} {
			if v := a.Header.Get("Access-Control-" + x[1]); v != "" {
				got += " " + x[0] + "=" + v
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s %s from %q: %s", c.method, c.path, c.origin, d)
		}
	}
	p.Await("http.test.cors.origin_valid", "9")
	p.Await("http.test.cors.origin_invalid", "4")
	if l := lines(); l[4] != "200 - cors_response" || l[3] != "200 - via_upstream" {
		t.Errorf("%q", l)
	}
}
