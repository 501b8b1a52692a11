package main

import (
	"strings"
	"testing"
)

// One mistake is one problem, which says what to do.
func TestCheckAdvises(t *testing.T) {
	const direct = "direct_response: {status: 200, body: {inline_string: one}}"
	with := func(old, now string) string {
		if !strings.Contains(watched, old) {
			t.Fatalf("there is no %s", old)
		}
		return strings.Replace(watched, old, now, 1)
	}
	tls := func(message, more string) string {
		return `transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.` + message + ", common_tls_context: {" + more + "}}}"
	}
	for _, c := range []struct{ name, text, want string }{
		{"an admin address in one piece", "admin: {address: 127.0.0.1:9901}", "did you mean '{socket_address: {address: 127.0.0.1, port_value: 9901}}'?"},
		{"a socket address in one piece", "admin: {address: {socket_address: 127.0.0.1:9901}}", "did you mean '{address: 127.0.0.1, port_value: 9901}'?"},
		{"an address with its port", with("address: 127.0.0.1", "address: '127.0.0.1:80'"), "did you mean '127.0.0.1'? (the port goes into port_value: 80)"},
		{"a range in one piece", with("    - filters:", "    - filter_chain_match: {prefix_ranges: [{address_prefix: 10.0.0.0/8}]}\n      filters:"),
			"malformed IP address: 10.0.0.0/8; allowed: an IP address; did you mean '{address_prefix: 10.0.0.0, prefix_len: 8}'?\n      field static_resources.listeners[0].filter_chains[0].filter_chain_match.prefix_ranges[0].address_prefix"},
		{"a route at the wrong level", with(direct, "cluster: c") + "  clusters: [{name: c}]\n", "virtual_hosts[0].routes[0].route has that field: is the indent wrong?"},
		{"a cluster that there is not", with(direct, "route: {cluster: cc}") + "  clusters: [{name: c1}, {name: d}]\n", "unknown cluster 'cc'; did you mean 'c1'?"},
		{"none is like it", with(direct, "route: {cluster: backend}") + "  clusters: [{name: c1}, {name: d}]\n", "unknown cluster 'backend'; allowed: the clusters c1, d\n"},
		{"there are none", with(direct, "route: {cluster: backend}"), "unknown cluster 'backend'; there are no clusters\n"},
		{"a cluster that requests are copied to", with(direct, "route: {cluster: c1, request_mirror_policies: [{cluster: cc}]}") + "  clusters: [{name: c1}]\n", "unknown shadow cluster 'cc'; did you mean 'c1'?"},
		{"that of a control plane", "node: {id: a, cluster: b}\nstatic_resources: {clusters: [{name: xds}]}\ndynamic_resources: {ads_config: {api_type: GRPC, grpc_services: [{envoy_grpc: {cluster_name: xsd}}]}}",
			"Unknown gRPC client cluster 'xsd'; did you mean 'xds'?"},
		{"that of one source", "node: {id: a, cluster: b}\nstatic_resources: {clusters: [{name: xds}]}\ndynamic_resources: {cds_config: {api_config_source: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xsd}}]}}}",
			"or is an EDS cluster; did you mean 'xds'?"},
		{"a secret that there is not", "static_resources:\n  secrets: [{name: server_cert, tls_certificate: {}}]\n  clusters: [{name: c, " + tls("UpstreamTlsContext", "tls_certificate_sds_secret_configs: [{name: servercert}]") + "}]",
			"Unknown static secret: servercert; did you mean 'server_cert'?"},
		{"of another kind", "static_resources:\n  secrets: [{name: ca, validation_context: {}}]\n  clusters: [{name: c, " + tls("UpstreamTlsContext", "tls_certificate_sds_secret_configs: [{name: ca}]") + "}]",
			"Unknown static secret: ca; the static secret of that name is a CertificateValidationContext"},
		{"a validation context that there is not", "static_resources:\n  clusters: [{name: c, " + tls("UpstreamTlsContext", "validation_context_sds_secret_config: {name: ca}") + "}]",
			"Unknown static certificate validation context: ca; without an sds_config it is one of static_resources.secrets"},
		{"TLS of the other side", "static_resources:\n  clusters: [{name: c, " + tls("DownstreamTlsContext", "") + "}]",
			"this is for connections from clients, which belongs into a filter chain; a cluster takes envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"},
		{"TLS without a type", "static_resources: {clusters: [{name: c, transport_socket: {name: envoy.transport_sockets.tls}}]}",
			`did you mean 'typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext}'?`},
		{"an HTTP filter among network filters", with("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", "envoy.extensions.filters.http.router.v3.Router\n      - name: h\n        typed_config:\n          \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"),
			"this is an HTTP filter, which belongs into http_filters of http_connection_manager"},
		{"a network filter among HTTP filters", with("envoy.extensions.filters.http.router.v3.Router", "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: x, cluster: c"),
			"this is a network filter, which belongs into filters of a filter chain"},
		{"an HTTP filter among listener filters", with("    filter_chains:", `    listener_filters: [{name: x, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]`+"\n    filter_chains:"),
			"this is an HTTP filter, which belongs into http_filters of http_connection_manager"},
		{"a listener filter of the API before", with("    filter_chains:", "    listener_filters: [{name: envoy.listener.tls_inspector}]\n    filter_chains:"),
			`did you mean 'typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector}'?`},
		{"a filter without a type", with("          \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager\n", "          config: {}\n"),
			"missing @type in Any is only allowed for an empty object"},
	} {
		_, out, _ := command(t, "", "check", file(t, "a.yaml", c.text))
		if !strings.Contains(out, "a.yaml: is refused: 1 problem\n") || !strings.Contains(out, c.want) {
			t.Errorf("%s: no %q in\n%s", c.name, c.want, out)
		}
	}
}

// A deprecated field is a short note, one for all its places.
func TestCheckNotesDeprecatedFieldsOnce(t *testing.T) {
	path := file(t, "a.yaml", "static_resources: {clusters: [{name: a, type: STRICT_DNS, respect_dns_ttl: true}, {name: b, type: STRICT_DNS, respect_dns_ttl: true}]}")
	_, out, _ := command(t, "", "check", path)
	if want := "a.yaml:1:59: 'respect_dns_ttl' is deprecated: set it in a cluster_type of envoy.extensions.clusters.dns.v3.DnsCluster; so in 2 places\n"; !strings.Contains(out, want) ||
		strings.Count(out, "deprecated") != 1 {
		t.Errorf("no %q in\n%s", want, out)
	}
}
