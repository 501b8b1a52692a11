package config_test

import (
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// One mistake is one problem that says what to write.
func TestWhatWasMeant(t *testing.T) {
	listener := func(fields string) string { return "static_resources: {listeners: [{name: l, " + fields + "}]}" }
	endpoint := func(s string) string {
		return cluster("load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [" + s + "]}]}")
	}
	added := func(s string) string {
		return routeBody("match: {prefix: /}, route: {cluster: c}, request_headers_to_add: " + s)
	}
	match := func(s string) string { return routeBody("match: {" + s + "}, route: {cluster: c}") }
	health := func(s string) string {
		return cluster("health_checks: [{timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, " + s + "}]")
	}
	for in, want := range map[string]string{
		listener("transport_socket: {name: t}"):                                                                 "listeners[0].filter_chains[0] has that field",
		listener("filter_chain_match: {}"):                                                                      "listeners[0].filter_chains[0] has that field",
		listener("tls_context: {}"):                                                                             "did you mean 'filter_chains'? (as [{transport_socket: ",
		listener("load_assignment: {}"):                                                                         "'load_assignment': message envoy.config.listener.v3.Listener has unknown fields; allowed: ",
		listener("address: 127.0.0.1, port: 80"):                                                                "did you mean '{socket_address: {address: 127.0.0.1, port_value: 80}}'?",
		listenerOf("filter_chain_match: a.test"):                                                                "did you mean '{server_names: [a.test]}'?",
		listenerOf("transport_socket: {name: t, sni: a}"):                                                       "did you mean 'typed_config'? (it holds sni, with the @type ",
		listenerOf("filter_chain_match: 10.0/8"):                                                                "allowed: the fields ",
		cluster("sni: a"):                                                                                       "did you mean 'transport_socket'? (sni stands in a typed_config of ",
		cluster("retry_policy: {}"):                                                                             "; retries are of routes",
		cluster("protocol: HTTP2"):                                                                              "; set it in typed_extension_protocol_options, under envoy.extensions.upstreams.http.v3.HttpProtocolOptions, as explicit_http_config",
		cluster("metadata: {a: b}"):                                                                             "did you mean 'filter_metadata'? (as {a: {...}})",
		cluster("circuit_breakers: [{max_retries: 1}]"):                                                         "did you mean '{thresholds: [...]}'?",
		cluster("load_assignment: [{cluster_name: c}]"):                                                         "found a list; allowed: one map, and not a list",
		cluster("circuit_breakers: {max_retries: 1, max_requests: 2}"):                                          "did you mean 'thresholds'? (as [{max_retries: ...}])",
		cluster("http2_protocol_options: true"):                                                                 "found true; did you mean '{}'?",
		cluster("eds_cluster_config: {eds_config: {ads: true}}"):                                                "found true; did you mean '{}'?",
		cluster("lb_policy: P2C"):                                                                               "did you mean 'LEAST_REQUEST'?",
		endpoint("{endpoint: {address: localhost, port_value: 80}}"):                                            "did you mean '{socket_address: {address: localhost, port_value: 80}}'?",
		endpoint("{endpoint: {address: {host: localhost, port: 80}}}"):                                          "did you mean 'socket_address'? (as {address: ..., port_value: ...})",
		endpoint("{endpoint: {address: {socket_address: {address: 'a:80'}}}}"):                                  "did you mean '{address: a, port_value: 80}'?",
		endpoint("{endpoint: {address: {socket_address: {address: 'a'}}}}"):                                     "field: \"port_specifier\", reason: is required); allowed: one of port_value, named_port",
		cluster("load_assignment: {cluster_name: c, endpoints: ['a:80']}"):                                      "did you mean '{lb_endpoints: [{endpoint: {address: ",
		added("[{key: a, value: b}]"):                                                                           "no such field: 'key', 'value': message envoy.config.core.v3.HeaderValueOption has unknown fields; did you mean 'header'? (as {key: ..., value: ...})",
		added("[{name: a, value: b}]"):                                                                          "no such field: 'name': message envoy.config.core.v3.HeaderValueOption has unknown fields; did you mean 'header'? (as {key: ..., value: ...})",
		added("[{a: b}]"):                                                                                       "did you mean '{header: {key: a, value: b}}'?",
		added("[{header: {a: b}}]"):                                                                             "did you mean '{key: a, value: b}'?",
		added("[{header: {name: a, value: b}}]"):                                                                "did you mean 'key'?",
		routeBody("match: {prefix: /}, route: {cluster: c}, header_to_add: []"):                                 "allowed: request_headers_to_add, response_headers_to_add, ",
		routeBody("match: {prefix: /}, route: {cluster: c}, request_headers_to_remove: [{key: a}]"):             "found a map; did you mean 'a'?",
		routeBody("match: {prefix: /, retry_policy: {}}, route: {cluster: c}"):                                  "routes[0].route has that field",
		routeBody("match: {prefix: /}, route: {cluster: c, retry_policy: {retry_on: [5xx, reset]}}"):            "did you mean '5xx,reset'?",
		routeBody("match: {prefix: /}, route: {cluster: c, retry_policy: {retriable_status_codes: '503,504'}}"): "did you mean '[503, 504]'?",
		routeBody("match: {prefix: /}, route: {cluster: c, request_mirror_policies: [d]}"):                      "did you mean '{cluster: d}'?",
		routeBody("match: {prefix: /}, redirect: 'https://a.test:8443/b'"):                                      "did you mean '{scheme_redirect: https, host_redirect: a.test, port_redirect: 8443, path_redirect: /b}'?",
		routeBody("match: {prefix: /}, redirect: /b"):                                                           "did you mean '{path_redirect: /b}'?",
		routeBody("match: {prefix: /}, redirect: 'a b'"):                                                        "allowed: the fields host_redirect, ",
		routeBody("match: {prefix: /}, direct_response: hello"):                                                 "did you mean '{status: 200, body: {inline_string: hello}}'?",
		routeBody("match: {prefix: /}, direct_response: 404"):                                                   "did you mean '{status: 404}'?",
		routeBody("match: {prefix: /}, direct_response: {}"):                                                    "value must be inside range [200, 600)); 'status' is missing",
		match("prefix: /, headers: ['x-a: b']"):                                                                 "did you mean '{name: x-a, string_match: {exact: b}}'?",
		match("prefix: /, headers: [x-a]"):                                                                      "did you mean '{name: x-a, present_match: true}'?",
		match("prefix: /, headers: [{key: a, present_match: true}]"):                                            "did you mean 'name'?",
		match("prefix: /, query_parameters: ['a=b']"):                                                           "did you mean '{name: a, string_match: {exact: b}}'?",
		match("path_separated_prefix: /a/"):                                                                     "did you mean '/a'? (what follows is nothing, or a slash and more)",
		match("path_separated_prefix: /"):                                                                       "did you mean 'prefix: /'?",
		match("path_separated_prefix: '/a?b'"):                                                                  "; paths are compared without the query",
		health("http_health_check: {path: /, expected_statuses: [200]}"):                                        "did you mean '{start: 200, end: 201}'?",
		health("http_health_check: {path: /, expected_statuses: ['200-299']}"):                                  "did you mean '{start: 200, end: 300}'?",
		health("http_health_check: {path: /, expected_statuses: [2xx]}"):                                        "found '2xx'; allowed: the fields end, start",
		health("tcp_health_check: {send: PING}"):                                                                `did you mean '{text: "50494e47"}'?`,
		listenerOf(`filters: [{name: x, stat_prefix: a}]`):                                                      "did you mean 'typed_config'? (it holds the fields of the extension",
		listenerOf(`filters: [{name: x, typed_config: {type_url: type.googleapis.com/a.B, x: y}}]`):             `did you mean '"@type": type.googleapis.com/a.B'?`,
		listenerOf(`filters: [{name: x, typed_config: HttpConnectionManager}]`):                                 `did you mean '{"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager}'?`,
		routeBody("match: {prefix: /}, route: {cluster: c}, typed_per_filter_config: {a: {disabled: true}}"):    `did you mean '"@type": type.googleapis.com/envoy.config.route.v3.FilterConfig'?`,
		"admin: {address: {socket_address: {address: 127.0.0.1, port_value: ':80'}}}":                           "did you mean '80'?",
		"dynamic_resources: {ads_config: {api_config_source: {api_type: GRPC}}}":                                "; this is one: its fields stand here, without it",
		cluster("load_assignment: null, cluster_name: c, endpoints: []"):                                        "no such field: 'cluster_name', 'endpoints': message envoy.config.cluster.v3.Cluster has unknown fields; did you mean 'load_assignment'?",
		endpoint("{endpoint: {address: {socket_address: null, address: a, port_value: 1}}}"):                    "did you mean 'socket_address'? (as {address: ..., port_value: ...})",
		cluster("load_balancing_policy: ROUND_ROBIN"):                                                           "did you mean 'lb_policy: ROUND_ROBIN'?",
		cluster("weight: 1"):                                                                                    "; weights are of endpoints",
		listenerOf("filters: [{envoy.filters.network.x: null, typed_config: {}}]"):                              "did you mean 'name'? (as name: envoy.filters.network.x)",
		added("{a: b, c: d}"):                                                                                   "a list is wanted here: [{header: {key: a, value: b}}]",
		routeBody("match: {prefix: /}, route: {weighted_clusters: {c: 1, d: 2}}"):                               "did you mean 'clusters'? (as [{name: c, weight: ...}])",
		routeBody("match: {prefix: /}, route: {cluster: c, max_stream_duration: 5m}"):                           "did you mean '{max_stream_duration: 300s}'?",
		routeBody("match: {prefix: /}, direct_response: {status: 200, body: {inline_string: {a: 1}}}"):          "body.inline_string: expected '\"', a string; found a map",
		match("prefix: /, ignore_case: true"):                                                                   "did you mean 'case_sensitive'? (as false)",
		match("prefix: /, hosts: [a]"):                                                                          "; hosts are the domains of a virtual host",
		"dynamic_resources: {rds_config: {}}":                                                                   "; routes come by rds",
		"dynamic_resources: {cds_config: {path_config_source: /a}}":                                             "did you mean '{path: /a}'?",
		"admin: '127.0.0.1:9901'":                                                                               "did you mean '{address: {socket_address: {address: 127.0.0.1, port_value: 9901}}}'?",
		"stats_config: {stats_tags: {a: b}}":                                                                    "a list is wanted here: [{tag_name: a, fixed_value: b}]",
		"listener: []":                                                                                          "did you mean 'static_resources'?",
		"concurrency: 2":                                                                                        "; it is a flag: --concurrency",
		"node: {id: {{ .Values.id }}}":                                                                          "; the file seems to be a template",
		"apiVersion: v1\nkind: ConfigMap\ndata: {}":                                                             "no such field: 'apiVersion'",
		"resources: []\nversion_info: a":                                                                        "; this is a response of a control plane",
		"":                                                                                                      "found nothing: the file is empty",
	} {
		_, _, err := config.Load(write(t, "b.yaml", []byte(in)), config.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
}

// A file whose name says another form than the one that it has is told as that.
func TestOtherForms(t *testing.T) {
	const yaml, json, text = "# a\nnode: {id: x}\n", `{"node": {"id": "x"}}`, "node {\n id: \"x\"\n}\n"
	for _, c := range []struct{ name, data, want string }{
		{"envoy.json", yaml, "did you mean 'envoy.yaml'? (the file holds YAML, and its name says JSON: .yaml and .yml mean YAML, "},
		{"envoy.conf", yaml, "did you mean 'envoy.yaml'?"},
		{"envoy.yaml.bak", yaml, "did you mean 'envoy.yaml'?"},
		{"envoy", yaml, "did you mean 'envoy.yaml'?"},
		{"a.pb_text", yaml, "did you mean 'a.yaml'? (the file holds YAML, and its name says protobuf text: "},
		{"a.pb", yaml, "did you mean 'a.yaml'? (the file holds YAML, and its name says binary protobuf: "},
		{"a.pb_text", json, "did you mean 'a.json'? (the file holds JSON, and its name says protobuf text: "},
		{"a.yaml", text, "did you mean 'a.pb_text'? (the file holds protobuf text, and its name says YAML: "},
		{"a.json", text, "did you mean 'a.pb_text'?"},
		{"a.json", "// a\n" + json, "; JSON has no comments"},
		{"a.json", "{", "a.json:1:2: "},
		{"a.conf", "hello", "a.conf:1:1: "},
		{"a.yaml", "a: b: c", "a.yaml:1:"},
	} {
		_, err := config.Parse(c.name, []byte(c.data), &bootstrapv3.Bootstrap{}, config.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "did you mean") != strings.HasPrefix(c.want, "did") {
			t.Errorf("%s of %q: %v, want %s", c.name, c.data, err, c.want)
		}
	}
	if _, err := config.Parse("a.conf", []byte(json), &bootstrapv3.Bootstrap{}, config.Options{}); err != nil {
		t.Error(err)
	}
}
