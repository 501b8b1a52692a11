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
	options := func(name, message string) string {
		return "static_resources: {clusters: [{name: c, typed_extension_protocol_options: {" + name + `: {"@type": type.googleapis.com/envoy.extensions.` + message + "}}}]}"
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
		{"a part of TLS", "static_resources:\n  clusters: [{name: c, transport_socket: {name: tls, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.CommonTlsContext}}}]",
			"this is a part, which belongs into common_tls_context of envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"},
		{"options of HTTP under another name", options("envoy.http.v3.HttpProtocolOptions", "upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http_protocol_options: {}}"),
			"name: 'envoy.http.v3.HttpProtocolOptions'; did you mean 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions'?"},
		{"another message in their place", options("envoy.extensions.upstreams.http.v3.HttpProtocolOptions", "filters.http.router.v3.Router"),
			"Unable to unpack as envoy.extensions.upstreams.http.v3.HttpProtocolOptions: envoy.extensions.filters.http.router.v3.Router is another message"},
		{"a copy that keeps its name", with(direct, "route: {cluster: d}") + "  clusters: [{name: c}, {name: c}]\n", "duplicate cluster 'c'"},
		{"a cluster without a name", with(direct, "route: {cluster: c}") + "  clusters: [{type: STATIC}]\n", "'name' is missing"},
		{"a route to nowhere", with(direct, "route: {}"), "field: \"cluster_specifier\", reason: is required); allowed: one of cluster, "},
		{"a header to add in two ways", with(direct, direct+", request_headers_to_add: [{header: {key: a, value: b}, append: true, append_action: ADD_IF_ABSENT}]"),
			"Both append and append_action are set and it's not allowed"},
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

// As many unknown clusters as have lost their names are theirs; one more is told.
func TestCheckTellsOfMoreUnknownClusters(t *testing.T) {
	text := strings.Replace(watched, "direct_response: {status: 200, body: {inline_string: one}}", "route: {weighted_clusters: {clusters: [{name: a, weight: 1}, {name: b, weight: 1}]}}", 1)
	_, out, _ := command(t, "", "check", file(t, "a.yaml", text+"  clusters: [{name: c}, {name: c}]\n"))
	for _, want := range []string{"is refused: 3 problems\n", "unknown cluster 'a'", "unknown cluster 'b'", "duplicate cluster 'c'"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// Envoy takes the options of HTTP under their second name, too.
func TestCheckTakesOptionsThatNobodyUses(t *testing.T) {
	_, out, _ := command(t, "", "check", file(t, "a.yaml", `static_resources: {clusters: [{name: c, typed_extension_protocol_options: {envoy.upstreams.http.http_protocol_options: `+
		`{"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {}}}}}]}`))
	if !strings.Contains(out, "a.yaml: runs as it is\n") {
		t.Error(out)
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
