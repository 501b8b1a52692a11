package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/simtest"
)

const dynamicBootstrap = `
dynamic_resources:
  cds_config: {resource_api_version: V3, path_config_source: {path: /cds.yaml}}
  lds_config: {resource_api_version: V3, path_config_source: {path: /lds.yaml}}
node: {id: proxy, cluster: test}
`

func listeners(more string) string {
	return `
resources:
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: main
  address: LISTEN
  filter_chains:
  - filters:
    - name: envoy.filters.network.http_connection_manager
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: h1
        delayed_close_timeout: 60s
        ` + more + `
        rds: {route_config_name: r, config_source: {resource_api_version: V3, path_config_source: {path: /rds.yaml}}}
        http_filters:
        - name: envoy.filters.http.router
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
`
}

func routes(more string) string {
	return `
resources:
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: r
  virtual_hosts:
  - name: v
    domains: ["*"]
    ` + more + `
    routes:
    - match: {prefix: "/"}
      route: {cluster: b, timeout: 80s}
`
}

func clusters(more string) string {
	return `
resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: b
  type: EDS
  ` + more + `
  eds_cluster_config: {eds_config: {resource_api_version: V3, path_config_source: {path: /eds.yaml}}}
`
}

func endpoints(list string) string {
	return `
resources:
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: b
  endpoints:
  - lb_endpoints: [` + list + `]
`
}

// Configuration that changes under load loses nothing: hosts come and go, clusters and routes are replaced.
func TestPushes(t *testing.T) {
	build := simtest.Dynamic(dynamicBootstrap, 2, map[string][]string{
		"/lds.yaml": {listeners("")},
		"/rds.yaml": {routes(""), routes("response_headers_to_add: [{header: {key: x-a, value: b}}]")},
		"/cds.yaml": {clusters("connect_timeout: 5s"), clusters("per_connection_buffer_limit_bytes: 16384"), clusters("connect_timeout: 4s")},
		"/eds.yaml": {
			endpoints("{endpoint: {address: UPSTREAM_0}}, {endpoint: {address: UPSTREAM_1}}"),
			endpoints("{endpoint: {address: UPSTREAM_0}}"), endpoints("{endpoint: {address: UPSTREAM_1}}"),
		},
	})
	o := simtest.Options{Pipeline: 2, Stats: map[string]uint64{}}
	games(t, 60, build, o)
	happened(t, o.Stats, "cluster_manager.cluster_modified", "cluster.b.membership_change", "http.h1.rds.r.update_success")
}

// A listener that changes takes over its socket; connections of the old one go on until their requests are answered.
func TestListenerPushes(t *testing.T) {
	for p, name := range protocols {
		t.Run(name, func(t *testing.T) {
			build := simtest.Dynamic(dynamicBootstrap, 2, map[string][]string{
				"/lds.yaml": {listeners(""), listeners("server_name: other"), listeners("via: proxy")},
				"/rds.yaml": {routes("")},
				"/cds.yaml": {clusters("connect_timeout: 5s")},
				"/eds.yaml": {endpoints("{endpoint: {address: UPSTREAM_0}}, {endpoint: {address: UPSTREAM_1}}")},
			})
			// What was sent behind a request that is answered with "connection: close" is lost (RFC 9112, section 9.3.2).
			o := simtest.Options{Protocol: p, Pipeline: 1, Stats: map[string]uint64{}}
			games(t, 60, build, o)
			happened(t, o.Stats, "listener_manager.listener_modified", "http.h1.downstream_cx_drain_close")
		})
	}
}

// Names that resolve to other hosts each time, late or not at all, lose nothing either.
func TestNames(t *testing.T) {
	for up, name := range protocols {
		t.Run(name, func(t *testing.T) {
			named := strings.NewReplacer("type: STATIC", "type: STRICT_DNS\n    dns_refresh_rate: 0.05s\n    dns_lookup_family: V4_ONLY\n    respect_dns_ttl: true",
				"        - endpoint: {address: UPSTREAM_0}\n        - endpoint: {address: UPSTREAM_1}\n",
				fmt.Sprintf("        - endpoint: {address: {socket_address: {address: up.test, port_value: %d}}}\n", simtest.UpstreamPort)).Replace(config(up))
			o := simtest.Options{Upstream: up, Pipeline: 2, Stats: map[string]uint64{}}
			games(t, 40, simtest.Proxy(named, 2), o)
			happened(t, o.Stats, "cluster.b.membership_change", "cluster.b.update_failure", "http.h1.downstream_rq_2xx")
		})
	}
}
