package tag_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/examples/customfilters/tag"
	"github.com/dragoman-proxy/dragoman/proxy"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const bootstrap = `
static_resources:
  listeners:
  - name: main
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: test
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {prefix: /route}
                route: {cluster: backend}
                typed_per_filter_config: {mine: {"@type": type.googleapis.com/xds.type.v3.TypedStruct, type_url: a.b/dragoman.examples.Tag, value: ROUTE}}
              - match: {prefix: /off}
                route: {cluster: backend}
                typed_per_filter_config: {mine: {"@type": type.googleapis.com/envoy.config.route.v3.FilterConfig, disabled: true}}
              - match: {prefix: /local}
                direct_response: {status: 418}
              - match: {prefix: /}
                route: {cluster: backend}
          http_filters:
          - name: mine
            typed_config: {"@type": type.googleapis.com/xds.type.v3.TypedStruct, type_url: a.b/dragoman.examples.Tag, value: CONFIG}
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: backend
    type: STATIC
    load_assignment: {cluster_name: backend, endpoints: [{lb_endpoints: [{endpoint: {address: UPSTREAM(backend)}}]}]}
`

func text(config, route string) string {
	return strings.NewReplacer("CONFIG", config, "ROUTE", route).Replace(bootstrap)
}

func TestTag(t *testing.T) {
	proxytest.EachIO(t, func(t *testing.T, kind proxytest.Option) {
		p := proxytest.Start(t, text(`{header: x-tag, value: "%REQ(:METHOD)%!"}`, "{value: route}"), proxytest.Filter(tag.Extension), kind,
			proxytest.Upstream("backend", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				_, _ = fmt.Fprint(w, q.Header.Get("X-Tag"))
			})))
		for path, want := range map[string]string{"/": "GET!", "/route": "route", "/off": ""} {
			if a := p.Get(path, "X-Tag", ""); a.Code != 200 || a.Body != want || a.Header.Get("X-Tag") != want {
				t.Errorf("%s: %+v", path, a)
			}
		}
		if a := p.Get("/local"); a.Code != 418 || a.Header.Get("X-Tag") != "GET!" {
			t.Errorf("%+v", a)
		}
		p.Await("http.test.tag.requests", "3")
		p.Await("http.test.tag.responses", "3")
	})
}

// TestConfig: what is wrong is refused, and named.
func TestConfig(t *testing.T) {
	good := "{header: a, value: b}"
	for _, c := range []struct{ config, route, want string }{
		{"{}", "{value: a}", "header (lower-case) and value are required"},
		{"{header: A, value: b}", "{value: a}", "header (lower-case) and value are required"},
		{"{header: a, value: b, vale: c}", "{value: a}", "no such field: vale"},
		{"{header: a, value: 1}", "{value: a}", "value: expected a string"},
		{"{header: a, value: '%REQ('}", "{value: a}", "value: "},
		{good, "{header: a, value: b}", "a route has a value, and no header"},
		{good, "{}", "a route has a value, and no header"},
	} {
		yaml := strings.ReplaceAll(text(c.config, c.route), "UPSTREAM(backend)", "{socket_address: {address: 127.0.0.1, port_value: 1}}")
		b, err := proxy.LoadWith("", proxy.LoadOptions{ConfigYAML: yaml})
		if err != nil {
			t.Fatal(err)
		}
		_, err = proxy.New(b, proxy.WithExtensions(ext.Set{HTTPFilters: []ext.HTTPFilter{tag.Extension}}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v", c.config, c.route, err)
		}
	}
}
