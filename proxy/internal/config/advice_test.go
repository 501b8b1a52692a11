package config_test

import (
	"strings"
	"testing"

	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3" // OldNames have them
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

func TestAddressesThatWereMeant(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1:80":     "did you mean '127.0.0.1'? (the port goes into port_value: 80)",
		"[::1]:80":         "did you mean '::1'? (the port goes into port_value: 80)",
		"[::1]":            "did you mean '::1'? (an address stands without brackets)",
		"10.0.0.0/8":       "did you mean '10.0.0.0'? (one address, not a range)",
		"http://10.0.0.1/": "did you mean '10.0.0.1'? (an address stands without http://)",
		"http://a.test":    "; an address stands without http://",
		"*":                "did you mean '0.0.0.0'?",
		"localhost":        "did you mean '127.0.0.1'? (names are looked up only for endpoints of STRICT_DNS",
		"a.example.com":    "allowed: an IP address; names are looked up only for endpoints",
		"10.0.0":           "malformed IP address: 10.0.0; allowed: an IP address",
		"":                 "malformed IP address: ; allowed: an IP address",
		"a b":              "malformed IP address: a b; allowed: an IP address",
	} {
		got := config.BadAddress(text).Error()
		if !strings.Contains(got, want) || strings.HasPrefix(want, "malformed") && got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
	for text, want := range map[string]string{
		"10.0.0.0/8": "address_prefix: malformed IP address: 10.0.0.0/8; allowed: an IP address; did you mean '{address_prefix: 10.0.0.0, prefix_len: 8}'?",
		"fc00::/7":   `did you mean '{address_prefix: "fc00::", prefix_len: 7}'?`,
		"x":          "address_prefix: malformed IP address: x; allowed: an IP address",
	} {
		if got := config.BadRange(text).Error(); !strings.HasSuffix(got, want) {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// What stands in one piece where a message is wanted is told in the form that is right.
func TestValuesInOnePiece(t *testing.T) {
	const route = "static_resources: {listeners: [{filter_chains: [{filters: [{typed_config: {\"@type\": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: v, domains: [a], "
	for in, want := range map[string]string{
		"admin: {address: 127.0.0.1:9901}":                                "{socket_address: {address: 127.0.0.1, port_value: 9901}}",
		"admin: {address: '[::1]:9901'}":                                  `{socket_address: {address: "::1", port_value: 9901}}`,
		"admin: {address: ':9901'}":                                       "{socket_address: {address: 0.0.0.0, port_value: 9901}}",
		"admin: {address: 9901}":                                          "{socket_address: {address: 0.0.0.0, port_value: 9901}}",
		"admin: {address: '::1'}":                                         `{socket_address: {address: "::1", port_value: ...}}`,
		"admin: {address: 'http://a.test:80/'}":                           "{socket_address: {address: a.test, port_value: 80}}",
		"admin: {address: /run/a.sock}":                                   "{pipe: {path: /run/a.sock}}",
		"admin: {address: 'unix:///run/a.sock'}":                          "{pipe: {path: /run/a.sock}}",
		"admin: {address: {socket_address: '127.0.0.1:9901'}}":            "{address: 127.0.0.1, port_value: 9901}",
		cluster("load_assignment: {endpoints: [{lb_endpoints: [a:80]}]}"): "{endpoint: {address: {socket_address: {address: a, port_value: 80}}}}",
		listenerOf("filter_chain_match: {prefix_ranges: 10.0.0.0/8}"):     "{address_prefix: 10.0.0.0, prefix_len: 8}",
		listenerOf("filter_chain_match: {prefix_ranges: ['::1']}"):        `{address_prefix: "::1", prefix_len: 128}`,
		route + "routes: [{match: {prefix: /}, direct_response: {status: 200, body: hello there}}]}}]}]}]}": `{inline_string: "hello there"}`,
		route + "routes: [{match: /a, route: {cluster: c}}]}}]}]}]}":                                        "{prefix: /a}",
		route + "routes: [{match: {prefix: /}, route: c}]}}]}]}]}":                                          "{cluster: c}",
		route + "request_headers_to_add: ['x-a: b']}}]}]}]}":                                                "{header: {key: x-a, value: b}}",
		route + "routes: [{match: {prefix: /, runtime_fraction: 50%}, route: {cluster: c}}]}}]}]}]}":        "{default_value: {numerator: 50}}",
		cluster("common_lb_config: {healthy_panic_threshold: 50}"):                                          "{value: 50}",
		cluster("eds_cluster_config: {eds_config: ads}"):                                                    "{ads: {}}",
		cluster("eds_cluster_config: {eds_config: /a.yaml}"):                                                "{path_config_source: {path: /a.yaml}}",
	} {
		if _, _, err := config.Load(write(t, "b.yaml", []byte(in)), config.Options{SkipValidation: true}); err == nil || !strings.Contains(err.Error(), "did you mean '"+want+"'?") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", in, err)
		}
	}
	for in, want := range map[string]string{
		routeOf("route: {weighted_clusters: [{name: c, weight: 1}]}"): "found a list; did you mean '{clusters: [...]}'?",
		"admin: [a]":               "found a list; allowed: one map, and not a list: without the dash",
		cluster("filters: [true]"): "static_resources.clusters[0].filters[0]: expected '{', a map of the fields of envoy.config.cluster.v3.Filter; found true; allowed: the fields config_discovery, name, typed_config",
		cluster("eds_cluster_config: {eds_config: bogus}"): "allowed: the fields ads, api_config_source, authorities, initial_fetch_timeout, path, path_config_source, resource_api_version, self",
	} {
		if _, _, err := config.Load(write(t, "b.yaml", []byte(in)), config.Options{SkipValidation: true}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// What stands at the wrong place, or has a name of another version of the API, is one problem, which says where it belongs.
func TestNamesThatBelongElsewhere(t *testing.T) {
	const typed = `"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: x, rds: {config_source: {ads: {}}, route_config_name: a}`
	for in, want := range map[string]string{
		"clusters: []":            "static_resources has that field: is the indent wrong?",
		"static_resource: {}":     "did you mean 'static_resources'?",
		cluster("hosts: []"):      "no such field: 'hosts': message envoy.config.cluster.v3.Cluster has unknown fields; did you mean 'load_assignment'? (as endpoints: ",
		cluster("tlsContext: {}"): "did you mean 'transport_socket'? (name: envoy.transport_sockets.tls, ",
		cluster("load_assignment: {cluster_name: c, endpoints: [{endpoint: {}}]}"):                                                    "load_assignment.endpoints[0].lb_endpoints[0] has that field",
		listenerOf("server_names: [a]"):                                                                                               "static_resources.listeners[0].filter_chains[0].filter_chain_match has that field: is the indent wrong?",
		listenerOf("filters: [{name: x, config: {}}]"):                                                                                "did you mean 'typed_config'? (with an @type",
		listenerOf(`filters: [{name: x, typed_config: {` + typed + `, idle_timeout: 5s}}]`):                                           "typed_config.common_http_protocol_options has that field",
		listenerOf(`filters: [{name: x, "@type": a}]`):                                                                                "did you mean 'typed_config'? (@type and the fields of the message that it names stand in typed_config)",
		routeBody("match: {prefix: /}, cluster: c"):                                                                                   "routes[0].cluster: no such field: 'cluster': message envoy.config.route.v3.Route has unknown fields; static_resources.clusters[0].transport_socket.typed_config.routes[0].route has that field: is the indent wrong?",
		cluster(`typed_extension_protocol_options: {"@type": type.googleapis.com/a.B, x: {y: 1}}`):                                    `did you mean '{a.B: {"@type": type.googleapis.com/a.B, ...}}'?`,
		"static_resources: {clusters: {c: {type: STATIC}}}":                                                                           "no such field: 'c': message envoy.config.cluster.v3.Cluster has unknown fields; a list is wanted here: [{name: c, ...}]",
		routeBody("match: {prefix: /}, route: {cluster: c}, request_headers_to_add: {x-a: b}"):                                        "a list is wanted here: [{header: {key: x-a, value: b}}]",
		routeBody("match: {prefix: /, headers: {x-a: b c}}, route: {cluster: c}"):                                                     `a list is wanted here: [{name: x-a, string_match: {exact: "b c"}}]`,
		routeBody("match: {prefix: /, cluster: c}"):                                                                                   "routes[0].route has that field: is the indent wrong?",
		routeBody("match: {path_prefix: /}, route: {cluster: c}"):                                                                     "did you mean 'prefix'?",
		routeBody("match: {prefix: /}, direct_response: {code: 200}"):                                                                 "did you mean 'status'?",
		listenerOf(`filters: [{name: x, typed_config: {type: type.googleapis.com/a.B, x: y}}]`):                                       `did you mean '"@type": type.googleapis.com/a.B'?`,
		listenerOf(`filters: [{name: x, typed_config: {` + strings.Replace(typed, "rds:", "rdss_configuration: {}, rds:", 1) + `}}]`): "no such field: 'rdss_configuration'",
		routeBody("prefix: /, route: {cluster: c}"):                                                                                   "routes[0].match has that field: is the indent wrong?",
		routeBody("match: {prefix: /}, route: {timeout: 1s}, cluster: c"):                                                             "routes[0].route has that field: is the indent wrong?",
		routeBody("match: {prefix: /, headers: [{name: a, regex_match: x}]}, route: {cluster: c}"):                                    "did you mean 'string_match'? (as {safe_regex: ",
	} {
		_, _, err := config.Load(write(t, "b.yaml", []byte(in)), config.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
}

// Each row is about a field that there is not, and names one that there is.
func TestOldNames(t *testing.T) {
	for name, fields := range config.OldNames {
		mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		has := mt.Descriptor().Fields()
		for old, now := range fields {
			if has.ByName(protoreflect.Name(old)) != nil {
				t.Errorf("%s has %s", name, old)
			}
			if now.Now != "" && has.ByName(protoreflect.Name(now.Now)) == nil || now == (config.OldName{}) {
				t.Errorf("%s has no %q", name, now.Now)
			}
		}
	}
}

func TestTypesOfTheAPIBefore(t *testing.T) {
	r, err := config.NewRegistry("envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext")
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"envoy.api.v2.auth.UpstreamTlsContext":                  "the v2 API is not supported; did you mean 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext'?",
		"envoy.config.filter.http.health_check.v2.HealthCheck":  "did you mean 'type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck'? (which is an extension that this build does not have)",
		"envoy.config.filter.network.redis_proxy.v2.RedisProxy": "'type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy'?",
		"envoy.config.bogus.v2.X":                               "could not find @type 'type.googleapis.com/envoy.config.bogus.v2.X': the v2 API is not supported",
	} {
		in := `bootstrap_extensions: [{name: x, typed_config: {"@type": type.googleapis.com/` + url + "}}]"
		if _, _, err := config.Load(write(t, "b.yaml", []byte(in)), config.Options{Resolver: r}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func cluster(s string) string { return "static_resources: {clusters: [{name: c, " + s + "}]}" }

func listenerOf(chain string) string {
	return "static_resources: {listeners: [{filter_chains: [{" + chain + "}]}]}"
}

func TestDurationsThatWereMeant(t *testing.T) {
	for text, want := range map[string]string{
		"'5'": "5s", "5": "5s", "5.": "5s", "5S": "5s", "5 s": "5s", "5.s": "5s", ".5s": "0.5s", "'0,5s'": "0.5s", "5m": "300s", "1h": "3600s", "1h30m": "5400s",
		"2 Minutes": "120s", "5sec": "5s", "500MS": "0.5s", "10 millis": "0.01s", "1d": "86400s", "1 day": "86400s", "2 days": "172800s", "PT5S": "5s", "5us": "0.000005s",
		"-5": "", "forever": "", "''": "", "5x": "", "0": "", "1e9h": "", "99999999999999d": "",
	} {
		_, _, err := config.Load(write(t, "b.yaml", []byte(cluster("cleanup_interval: "+text))), config.Options{})
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%s: %v", text, err)
		}
		if _, got, _ := strings.Cut(err.Error(), "did you mean '"); strings.TrimSuffix(got, "'?") != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestEnumsThatWereMeant(t *testing.T) {
	const redirect = "redirect: {response_code: "
	for in, want := range map[string]string{
		cluster("lb_policy: LEAST_CONN"):        "LEAST_REQUEST",
		cluster("lb_policy: least_connections"): "LEAST_REQUEST",
		cluster("lb_policy: RR"):                "ROUND_ROBIN",
		cluster("lb_policy: ip_hash"):           "RING_HASH",
		cluster("lb_policy: 99"):                "",
		cluster("lb_policy: best"):              "",
		cluster("type: DNS"):                    "STRICT_DNS",
		cluster("type: strict-dns"):             "STRICT_DNS",
		cluster("dns_lookup_family: IPV4"):      "V4_ONLY",
		tlsVersion("TLSv1.2"):                   "TLSv1_2",
		tlsVersion("TLS_1_2"):                   "TLSv1_2",
		tlsVersion("1.2"):                       "TLSv1_2",
		tlsVersion("12"):                        "TLSv1_2",
		tlsVersion("TLS 1.3"):                   "TLSv1_3",
		routeOf(redirect + "301}"):              "MOVED_PERMANENTLY",
		routeOf(redirect + "'308'}"):            "PERMANENT_REDIRECT",
		routeOf(redirect + "TEMPORARY}"):        "TEMPORARY_REDIRECT",
		routeOf("route: {cluster: c, cluster_not_found_response_code: 404}"):                           "NOT_FOUND",
		routeOf("route: {cluster: c, request_mirror_policies: [{runtime_fraction: " + hundred + "}]}"): "HUNDRED",
	} {
		_, _, err := config.Load(write(t, "b.yaml", []byte(in)), config.Options{})
		if err == nil || !strings.Contains(err.Error(), "; allowed: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if _, got, _ := strings.Cut(err.Error(), "did you mean '"); strings.TrimSuffix(got, "'?") != want {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
}

const hundred = "{default_value: {numerator: 1, denominator: 100}}"

func tlsVersion(s string) string {
	return `static_resources: {clusters: [{name: c, transport_socket: {name: t, typed_config: {"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, common_tls_context: {tls_params: {tls_minimum_protocol_version: ` + s + "}}}}}]}"
}

func routeOf(s string) string { return routeBody("match: {prefix: /}, " + s) }

func routeBody(s string) string {
	return `static_resources: {clusters: [{name: c, transport_socket: {name: t, typed_config: {"@type": type.googleapis.com/envoy.config.route.v3.VirtualHost, name: v, domains: [a], routes: [{` + s + "}]}}}]}"
}

func TestNumbersAndBooleansThatWereMeant(t *testing.T) {
	for in, want := range map[string]string{
		cluster("per_connection_buffer_limit_bytes: 1MB"):             "1048576",
		cluster("per_connection_buffer_limit_bytes: 32 KiB"):          "32768",
		cluster("per_connection_buffer_limit_bytes: '1,000'"):         "1000",
		cluster("per_connection_buffer_limit_bytes: 50%"):             "50",
		cluster("per_connection_buffer_limit_bytes: 5x"):              "",
		cluster("per_connection_buffer_limit_bytes: -5"):              "",
		cluster("per_connection_buffer_limit_bytes: 1.5"):             "",
		cluster("per_connection_buffer_limit_bytes: 9999999999999TB"): "",
		cluster("per_connection_buffer_limit_bytes: [1MB, 2MB]"):      "",
		cluster("track_timeout_budgets: enabled"):                     "true",
		cluster("track_timeout_budgets: disabled"):                    "false",
		cluster("track_timeout_budgets: maybe"):                       "",
		cluster("track_timeout_budgets: [enabled]"):                   "",
	} {
		_, _, err := config.Load(write(t, "b.yaml", []byte(in)), config.Options{})
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if _, got, _ := strings.Cut(err.Error(), "did you mean '"); strings.TrimSuffix(got, "'?") != want {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
}
