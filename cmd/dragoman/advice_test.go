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

// All that is wrong with one TLS context is told at once.
func TestCheckTellsAllOfTLS(t *testing.T) {
	_, out, _ := command(t, "", "check", file(t, "a.yaml", `static_resources: {clusters: [{name: c, transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, `+
		`common_tls_context: {tls_certificates: [{certificate_chain: {inline_string: a}, private_key: {inline_string: b}}], validation_context: {trusted_ca: {inline_string: a}}, `+
		`tls_params: {cipher_suites: [A], ecdh_curves: [C, D]}}}}}]}`))
	for _, want := range []string{"is refused: 4 problems\n", "Failed to load certificate chain", "Failed to load trusted CA", "Failed to initialize cipher suites A.", "Failed to initialize ECDH curves C:D"} {
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

// What follows from one mistake, or stands in one YAML anchor, is told with it; what is none the worse for it is told too.
func TestCheckTellsEachMistakeOnce(t *testing.T) {
	const direct = "{match: {prefix: /}, direct_response: {status: 200, body: {inline_string: one}}}"
	routes := func(list string) string { return strings.Replace(watched, direct, list, 1) }
	const dynamic = "\ndynamic_resources:\n  ads_config: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: c}}]}\n" +
		"  cds_config: {ads: {}}\n  lds_config: {ads: {}}\nstatic_resources: {clusters: [{name: c}]}\n"
	tls := func(message, more string) string {
		return `transport_socket: {name: tls, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.` + message + ", " + more + "}}"
	}
	t.Setenv("DRAGOMAN_TEST_EMPTY", "")
	for _, c := range []struct {
		name, text string
		want       []string // in this order, and no more
	}{
		{"a node's id that is a boolean", "node: {id: n, cluster: c}" + dynamic, []string{"a.yaml:1:12: expected '\"', a string; found a boolean n"}},
		{"a node that is misspelt", "nod: {id: a, cluster: c}" + dynamic, []string{"a.yaml:1:1: no such field: 'nod'"}},
		{"no node", dynamic, []string{"a.yaml:3:15: ads: node 'id' and 'cluster' are required"}},
		{"neither node nor ADS", "dynamic_resources: {lds_config: {ads: {}}}", []string{
			"node 'id' and 'cluster' are required. Set it either in 'node' config or via --service-node and --service-cluster options.; write node: {id: ..., cluster: ...}",
			"ADS must be configured to support an ADS config source; ads_config of dynamic_resources is missing"}},
		{"an unknown field in an anchor", routes("{match: {prefix: /a}, route: &r {cluster: c, tiemout: 1s}}, {match: {prefix: /b}, route: *r}, {match: {prefix: /c}, route: *r}") + "  clusters: [{name: c}]\n",
			[]string{"no such field: 'tiemout': message envoy.config.route.v3.RouteAction has unknown fields; did you mean 'timeout'?; so in 3 places\n      field static_resources.listeners[0].filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0].routes[0].route.tiemout"}},
		{"an unknown cluster in an anchor", routes("{match: {prefix: /a}, route: &r {cluster: d}}, {match: {prefix: /b}, route: *r}") + "  clusters: [{name: c}]\n",
			[]string{"unknown cluster 'd'; did you mean 'c'?; so in 2 places"}},
		{"a broken rule in an anchor", routes("{match: {prefix: /a}, direct_response: &r {status: 99}}, {match: {prefix: /b}, direct_response: *r}"), []string{"inside range [200, 600)); found 99; so in 2 places"}},
		{"fields of the other side", "static_resources: {clusters: [{name: c, " + tls("DownstreamTlsContext", "sni: a, auto_host_sni: true") + "}]}",
			[]string{"no such field: 'sni': message envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext has unknown fields; a cluster takes type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, which has that field"}},
		{"and in a listener", strings.Replace(watched, "    - filters:", "    - "+tls("UpstreamTlsContext", "require_client_certificate: true")+"\n      filters:", 1),
			[]string{"no such field: 'require_client_certificate': message envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext has unknown fields; a filter chain takes type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext, which has that field\n"}},
		{"of the other side, and of none", "static_resources: {clusters: [{name: c, " + tls("DownstreamTlsContext", "sni: a, common_tls_contxt: {}") + "}]}",
			[]string{"no such field: 'sni'", "no such field: 'common_tls_contxt'"}},
		{"at its own side", strings.Replace(watched, "    - filters:", "    - "+tls("DownstreamTlsContext", "sni: a")+"\n      filters:", 1),
			[]string{"No TLS certificates found for server context", "no such field: 'sni': message envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext has unknown fields; server_names in filter_chain_match choose"}},
		{"an empty variable", strings.Replace(watched, "port_value: 0", "port_value: '${DRAGOMAN_TEST_EMPTY}'", 1), []string{"invalid number: ''; allowed: an integer from 0 to 65535; the variable DRAGOMAN_TEST_EMPTY is empty"}},
		{"one without quotes", strings.Replace(watched, "port_value: 0", "port_value: ${DRAGOMAN_TEST_EMPTY}", 1), []string{"field: \"port_specifier\", reason: is required); allowed: one of port_value, named_port; the variable DRAGOMAN_TEST_EMPTY is empty"}},
		{"one of a field that must be there", strings.Replace(watched, "stat_prefix: p", "stat_prefix: ${DRAGOMAN_TEST_EMPTY}", 1), []string{"StatPrefix: value length must be at least 1 characters); found null; the variable DRAGOMAN_TEST_EMPTY is empty"}},
	} {
		_, out, _ := command(t, "", "check", "--config-env", file(t, "a.yaml", c.text))
		if n := strings.Count(out, "\n      field "); n != len(c.want) {
			t.Errorf("%s: %d problems in\n%s", c.name, n, out)
		}
		rest := out
		for _, want := range c.want {
			_, after, ok := strings.Cut(rest, want)
			if rest = after; !ok {
				t.Errorf("%s: no %q in\n%s", c.name, want, out)
			}
		}
	}
}
