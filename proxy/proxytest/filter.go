package proxytest

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/ext"
)

// HTTPFilter is a proxy with an HTTP filter before the router. Its listener counts as "http.test.", its cluster is "backend".
type HTTPFilter struct {
	// Filter is the filter, Config its typed_config as YAML in one line. Its entry in the chain is named "it".
	Filter ext.HTTPFilter
	Config string
	// Routes is what stands in route_config, as YAML in one line or indented by 12 at least; "": everything goes to the backend.
	Routes string
	// Clusters are further clusters: a list, indented by 2.
	Clusters string
	// Log is the format of the access log without its end of line; "": code, flags and details.
	Log string
}

const filterBootstrap = `
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
          access_log: [{name: f, typed_config: {"@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: "LOG", log_format: {text_format_source: {inline_string: "FORMAT\n"}}}}]
          route_config: ROUTES
          http_filters:
          - name: it
            typed_config: CONFIG
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: backend
    type: STATIC
    load_assignment: {cluster_name: backend, endpoints: [{lb_endpoints: [{endpoint: {address: UPSTREAM(backend)}}]}]}
`

// plainRoutes sends everything to the backend.
const plainRoutes = `{virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: backend}}]}]}`

// Start starts the proxy, with backend as its upstream. lines ends it and returns its access log.
func (x HTTPFilter) Start(t testing.TB, backend http.HandlerFunc, options ...Option) (p *Proxy, lines func() []string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	routes := x.Routes
	if routes == "" {
		routes = plainRoutes
	}
	format := x.Log
	if format == "" {
		format = "%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%"
	}
	text := strings.NewReplacer("CONFIG", x.Config, "ROUTES", routes, "LOG", log, "FORMAT", format).Replace(filterBootstrap + x.Clusters)
	p = Start(t, text, append(options, Filter(x.Filter), Upstream("backend", backend))...)
	return p, func() []string {
		p.Stop()
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
}
