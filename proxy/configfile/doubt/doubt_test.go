package doubt_test

import (
	"fmt"
	"strings"
	"testing"

	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/configfile"
	"github.com/dragoman-proxy/dragoman/proxy/configfile/doubt"
)

const (
	types  = "type.googleapis.com/envoy.extensions."
	router = `http_filters: [{name: r, typed_config: {"@type": ` + types + `filters.http.router.v3.Router}}]`
	hosts  = `load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]}]}`
	good   = "static_resources:\n  clusters: [{name: c, " + hosts + "}]\n"
)

// manager is a bootstrap with an HTTP connection manager that has more fields, and more below.
func manager(fields, more string) string {
	return good + "  listeners: [{filter_chains: [{filters: [{typed_config: {\"@type\": " + types +
		"filters.network.http_connection_manager.v3.HttpConnectionManager, " + fields + "}}]}]}]\n" + more
}

// virtualHost is one with a virtual host that has more fields.
func virtualHost(fields string) string {
	return manager(router+", route_config: {virtual_hosts: [{"+fields+"}]}", "")
}

// routes is one with routes.
func routes(list string) string { return virtualHost("routes: [" + list + "]") }

// matches are routes with these matches.
func matches(list ...string) string {
	return routes("{match: {" + strings.Join(list, "}, redirect: {}}, {match: {") + "}, redirect: {}}")
}

func tcp(fields string) string {
	return good + "  listeners: [{filter_chains: [{filters: [{typed_config: {\"@type\": " + types + "filters.network.tcp_proxy.v3.TcpProxy, " + fields + "}}]}]}]\n"
}

func clusters(list string) string { return "static_resources: {clusters: [" + list + "]}" }

// ranges is a filter chain with ranges of addresses.
func ranges(list string) string {
	return good + "  listeners: [{filter_chains: [{filter_chain_match: {prefix_ranges: [{address_prefix: " + list + "}]}}]}]"
}

// tls is a cluster with TLS.
func tls(kind, host, fields, more string) string {
	return clusters(`{name: c, type: ` + kind + `, ` + strings.Replace(hosts, "127.0.0.1", host, 1) + `, transport_socket: {typed_config: {"@type": ` + types +
		`transport_sockets.tls.v3.UpstreamTlsContext, ` + fields + `}}, ` + more + `}`)
}

// server is a listener with TLS.
func server(fields string) string {
	return good + `  listeners: [{filter_chains: [{transport_socket: {typed_config: {"@type": ` + types + `transport_sockets.tls.v3.DownstreamTlsContext, ` + fields + `}}}]}]`
}

const cds = "dynamic_resources: {cds_config: {ads: {}}}\n"

// FuzzOf wants that nothing which can be read makes it panic: a proxy that starts looks, too.
func FuzzOf(f *testing.F) {
	for _, text := range []string{manager(router, cds), virtualHost("domains: ['a.*.b'], retry_policy: {retry_on: x}"), matches("prefix: a", "safe_regex: {regex: '/a?'}", "path: /"),
		tcp("cluster: x"), tls("STRICT_DNS", "a.b", "sni: a", ""), clusters("{name: c}"), routes("{match: 1, route: {weighted_clusters: {clusters: x}}}"), "static_resources: {clusters: [[]]}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		if file, err := configfile.Of("a.yaml", data, configfile.Options{}); err == nil {
			doubt.Of(file, nil, 3)
		}
	})
}

func TestOf(t *testing.T) {
	const ca = "common_tls_context: {validation_context: {trusted_ca: {filename: a}}}"
	nobody, unnamed := "not verified", "not told by which name"
	for _, c := range []struct{ name, text, want string }{
		{"a cluster of TCP", tcp("cluster: cc"), "there is no cluster 'cc', and no CDS that could bring it: connections are closed at once; did you mean 'c'?"},
		{"one that there is", tcp("cluster: c"), ""},
		{"one that CDS may bring", tcp("cluster: x") + cds, ""},
		{"one that is asked for on demand", tcp("cluster: x, on_demand: {odcds_config: {ads: {}}}"), ""},
		{"one of a connection's filter state", tcp(`cluster: x, access_log: [{filter: {a: envoy.tcp_proxy.cluster}}]`), ""},
		{"ADS without CDS", tcp("cluster: x") + "dynamic_resources: {lds_config: {ads: {}}}\n", "no cluster 'x'"},
		{"weighted clusters of TCP", tcp("weighted_clusters: {clusters: [{name: c, weight: 1}, {name: x, weight: 1}]}"), "no cluster 'x'"},
		{"a route", routes("{match: {prefix: /}, route: {cluster: x}}"), "no cluster 'x', and no CDS that could bring it: requests fail"},
		{"a route that says it at run time", routes("{match: {prefix: /}, route: {cluster_header: x}}"), ""},
		{"weighted clusters", routes("{match: {prefix: /}, route: {weighted_clusters: {clusters: [{name: x, weight: 1}]}}}"), "no cluster 'x'"},
		{"a mirror", routes("{match: {prefix: /}, route: {cluster: c, request_mirror_policies: [{cluster: x}]}}"), "no copies are sent"},
		{"a mirror of a header", routes("{match: {prefix: /}, route: {cluster: c, request_mirror_policies: [{cluster_header: x}]}}"), ""},
		{"a matcher's route", virtualHost(`matcher: {on_no_match: {action: {name: a, typed_config: {"@type": type.googleapis.com/envoy.config.route.v3.Route, match: {prefix: /}, route: {cluster: x}}}}}`),
			"no cluster 'x'"},
		{"a matcher's list", virtualHost(`matcher: {on_no_match: {action: {name: a, typed_config: {"@type": type.googleapis.com/envoy.config.route.v3.RouteList, routes: [{match: {prefix: /}, redirect: {}}, {match: {prefix: /a}, redirect: {}}]}}}}`),
			"no request comes"},
		{"gRPC", manager(router+", access_log: [{typed_config: {grpc_service: {envoy_grpc: {cluster_name: x}}}}]", ""), "no cluster 'x'"},
		{"HTTP of a filter", manager(router+", x: [{typed_config: {server_uri: {uri: 'http://a', cluster: x}}}]", ""), "no cluster 'x'"},
		{"a URI of something else", manager(router+", x: [{typed_config: {server_uri: {cluster: x}}}]", ""), ""},
		{"what a dynamic forward proxy makes", manager(router+", x: [{typed_config: {http_uri: {uri: 'http://a', cluster: 'DFPCluster:a:1'}}}]", ""), ""},
		{"an aggregate", clusters(`{name: c, cluster_type: {name: a, typed_config: {"@type": ` + types + `clusters.aggregate.v3.ClusterConfig, clusters: [x]}}}`), "it is left out"},

		{"gRPC over HTTP/1", good + "  listeners: [{access_log: [{typed_config: {grpc_service: {envoy_grpc: {cluster_name: c}}}}]}]\n", "speaks HTTP/1.1"},
		{"HTTP/1 by name", clusters("{name: c, "+hosts+", typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {explicit_http_config: {http_protocol_options: {}}}}}") +
			"\nstats_sinks: [{typed_config: {grpc_service: {envoy_grpc: {cluster_name: c}}}}]", "speaks HTTP/1.1"},
		{"gRPC over HTTP/2", clusters("{name: c, "+hosts+", typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {explicit_http_config: {http2_protocol_options: {}}}}}") +
			"\nstats_sinks: [{typed_config: {grpc_service: {envoy_grpc: {cluster_name: c}}}}]", ""},
		{"what ALPN says", clusters("{name: c, "+hosts+", typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {auto_config: {}}}}") +
			"\nstats_sinks: [{typed_config: {grpc_service: {envoy_grpc: {cluster_name: c}}}}]", ""},
		{"another pool", clusters("{name: c, "+hosts+", upstream_config: {name: x}}") + "\nstats_sinks: [{typed_config: {grpc_service: {envoy_grpc: {cluster_name: c}}}}]", ""},
		{"HTTP/2 as of old", clusters("{name: c, "+hosts+", http2_protocol_options: {}}") + "\nstats_sinks: [{typed_config: {grpc_service: {envoy_grpc: {cluster_name: c}}}}]", ""},

		{"no filters", manager("route_config: {}", ""), "no http_filters"},
		{"a filter", manager(router, ""), ""},

		{"a prefix", matches("prefix: api"), "no path fits 'api': paths begin with '/'"},
		{"OPTIONS", matches("path: '*'", "prefix: '*'"), ""},
		{"a query in a prefix", matches("prefix: '/a?'"), "no path fits '/a?': paths are compared without"},
		{"a query in a path", matches("path: '/a?b=1'"), "without the query"},
		{"a fragment", matches("path: '/a#b'"), "without the query"},
		{"paths that are changed before", manager(router+", early_header_mutation_extensions: [{name: a}], route_config: {virtual_hosts: [{routes: [{match: {path: a}, redirect: {}}]}]}", ""), ""},
		{"an expression", matches("safe_regex: {regex: 'api/.*'}"), "paths begin with"},
		{"one of two ways", matches("safe_regex: {regex: '(api|/api)/.*'}"), ""},
		{"one with an anchor", matches(`safe_regex: {regex: '^/api/\d+$'}`), ""},
		{"an anchor, and no slash", matches(`safe_regex: {regex: '^api'}`), "paths begin with"},
		{"a query in an expression", matches(`safe_regex: {regex: '/a\?b=.*'}`), "without the query"},
		{"one that may be there", matches(`safe_regex: {regex: '/a(\?b=.*)?'}`), ""},
		{"one that is broken", matches(`safe_regex: {regex: '('}`), ""},

		{"behind all", matches("prefix: /", "prefix: /a"), "no request comes to this route: routes[0], prefix '/', is before it"},
		{"behind an empty prefix", matches("prefix: ''", "path: /a"), "no request comes"},
		{"before all", matches("prefix: /a", "prefix: /"), ""},
		{"behind some of all", matches("prefix: /, headers: [{name: a}]", "prefix: /"), ""},
		{"behind a part of the traffic", matches("prefix: /, runtime_fraction: {}", "prefix: /"), ""},
		{"with a condition behind one without", matches("prefix: /a", "prefix: /ab, headers: [{name: a}]"), "no request comes"},
		{"behind a longer prefix", matches("prefix: /ab", "prefix: /a"), ""},
		{"twice", matches("path: /a", "path: /a"), "no request comes to this route: routes[0], path '/a',"},
		{"a prefix behind the path", matches("path: /a", "prefix: /a"), ""},
		{"another case", matches("prefix: /a", "prefix: /A"), ""},
		{"any case behind one", matches("prefix: /a", "prefix: /ab, case_sensitive: false"), ""},
		{"any case behind figures", matches("prefix: /1", "prefix: /12, case_sensitive: false"), "no request comes"},
		{"one case behind any", matches("prefix: /a, case_sensitive: false", "prefix: /AB"), "no request comes"},
		{"segments", matches("path_separated_prefix: /a", "prefix: /a/"), "no request comes"},
		{"segments, exactly", matches("path_separated_prefix: /a", "path: /a"), "no request comes"},
		{"not whole segments", matches("path_separated_prefix: /a", "prefix: /a"), ""},
		{"other segments", matches("path_separated_prefix: /a", "path: /ab"), ""},
		{"CONNECT behind all", matches("prefix: /", "connect_matcher: {}"), ""},
		{"an expression behind all", matches("prefix: /", "safe_regex: {regex: '/a.*'}"), "no request comes"},
		{"one that may fit no path", matches("prefix: /", "safe_regex: {regex: '.*'}"), ""},
		{"behind the same expression", matches("safe_regex: {regex: '.*a'}", "safe_regex: {regex: '.*a'}"), "no request comes"},
		{"behind an expression of all", matches("safe_regex: {regex: '.*'}", "prefix: /a"), "no request comes"},
		{"routes that are none of HTTP", manager("http_filters: [{}], x: {virtual_hosts: [{routes: {matcher_list: {}}}]}", ""), ""},

		{"a wildcard within", virtualHost(`domains: ["a.*.com"]`), "is called 'a.*.com'"},
		{"two of them", virtualHost(`domains: ["*.a.*"]`), "is called '*.a.*'"},
		{"a URL", virtualHost(`domains: ["https://a.com"]`), "is called 'https://a.com'"},
		{"a path", virtualHost(`domains: ["a.com/b"]`), "is called 'a.com/b'"},
		{"a port", virtualHost(`domains: ["a.com:80", "[::1]:80", "*:80"]`), ""},
		{"one at an end", virtualHost(`domains: ["*", "*.a", "a.*", "*-a.b"]`), ""},

		{"a word of a route", routes("{match: {prefix: /}, route: {cluster: c, retry_policy: {retry_on: '5xx, 5xxx'}}}"), "'5xxx' is no condition of retries: it is ignored; did you mean '5xx'?"},
		{"a word of a host", virtualHost("retry_policy: {retry_on: conect-failure}"), "did you mean 'connect-failure'?"},
		{"all words", virtualHost("retry_policy: {retry_on: '5xx,gateway-error,reset,reset-before-request,connect-failure,envoy-ratelimited,retriable-4xx,refused-stream,retriable-status-codes,retriable-headers,http3-post-connect-failure,cancelled,deadline-exceeded,internal,resource-exhausted,unavailable,'}"), ""},

		{"a filter that there is", routes("{match: {prefix: /}, redirect: {}, typed_per_filter_config: {r: {}}}"), ""},
		{"one that there is not", routes("{match: {prefix: /}, redirect: {}, typed_per_filter_config: {s: {}}}"), `typed_per_filter_config.s: this is not used: no filter has the name 's'; did you mean 'r'?`},
		{"none like it", virtualHost("typed_per_filter_config: {envoy.filters.http.cors: {}}"), "no filter has the name 'envoy.filters.http.cors'"},
		{"one that may be missing", virtualHost("typed_per_filter_config: {s: {is_optional: true}, t: {disabled: true}}"), ""},
		{"one of another manager", virtualHost("typed_per_filter_config: {s: {}}") + "x: {http_filters: [{name: s}]}\n", ""},

		{"a star at the end", matches("prefix: /api/*"), "match.prefix: '*' is no wildcard here: only paths fit that have a '*' themselves; did you mean 'prefix: /api/'?"},
		{"two of them", matches("path: /api/**"), "did you mean 'prefix: /api/'?"},
		{"a star within", matches("path: /a/*/b.c"), `did you mean 'safe_regex: {regex: "/a/[^/]*/b\\.c"}'?`},
		{"a template", matches("path: '/a/{id}'"), "'{id}' stands for nothing but itself here; templates are matched by a path_match_policy"},
		{"braces in a word", matches("path: '/a{id}'"), ""},
		{"the path of OPTIONS", matches("path: '*'"), ""},
		{"a star in an expression", matches("safe_regex: {regex: '/a/*'}"), "'/*' of a regular expression fits slashes only; did you mean '/a/.*'?"},
		{"another star", matches("safe_regex: {regex: '/a/.*/*'}", "safe_regex: {regex: '/b/.*'}"), ""},

		{"a rewrite without a slash", routes("{match: {prefix: /a}, route: {cluster: c, prefix_rewrite: b}}"), "route.prefix_rewrite: the path becomes 'b...', and paths begin with '/'"},
		{"redirects without one", routes("{match: {prefix: /a}, redirect: {path_redirect: b}}"), "redirect.path_redirect: the path becomes"},
		{"with one", routes("{match: {prefix: /a}, redirect: {prefix_rewrite: /b}}, {match: {prefix: /b}, route: {cluster: c, prefix_rewrite: /}}"), ""},
		{"a redirect to a URL", routes("{match: {prefix: /a}, redirect: {host_redirect: 'https://a.test/b'}}"), "a host called 'https://a.test/b': the scheme stands in scheme_redirect ('https'), a path in path_redirect; did you mean 'a.test'?"},
		{"a redirect to a host", routes("{match: {prefix: /a}, redirect: {host_redirect: a.test}}"), ""},

		{"a try longer than all", routes("{match: {prefix: /}, route: {cluster: c, timeout: 1s, retry_policy: {per_try_timeout: 1.5s}}}"), "per_try_timeout is not used: it is longer than the timeout of all tries together, 1s"},
		{"longer than the default", routes("{match: {prefix: /}, route: {cluster: c, retry_policy: {per_try_timeout: 20s}}}"), "15s (the default)"},
		{"as long", routes("{match: {prefix: /}, route: {cluster: c, timeout: 1s, retry_policy: {per_try_timeout: 1s}}}"), ""},
		{"no timeout", routes("{match: {prefix: /}, route: {cluster: c, timeout: 0s, retry_policy: {per_try_timeout: 20s}}}"), ""},
		{"that of the client", routes("{match: {prefix: /}, route: {cluster: c, max_stream_duration: {}, retry_policy: {per_try_timeout: 20s}}}"), ""},
		{"no duration", routes("{match: {prefix: /}, route: {cluster: c, retry_policy: {per_try_timeout: 20m}}}"), ""},

		{"hashes for nobody", routes("{match: {prefix: /}, route: {cluster: c, hash_policy: [{}]}}"), "route.hash_policy: hash_policy is not used: the cluster 'c' has the lb_policy ROUND_ROBIN"},
		{"for several", routes("{match: {prefix: /}, route: {weighted_clusters: {clusters: [{name: c}, {name: c}]}, hash_policy: [{}]}}"), "hash_policy is not used"},
		{"to choose one", routes("{match: {prefix: /}, route: {weighted_clusters: {use_hash_policy: true, clusters: [{name: c}]}, hash_policy: [{}]}}"), ""},
		{"a ring", strings.Replace(routes("{match: {prefix: /}, route: {cluster: c, hash_policy: [{}]}}"), "{name: c,", "{name: c, lb_policy: ring_hash,", 1), ""},
		{"another balancer", strings.Replace(routes("{match: {prefix: /}, route: {cluster: c, hash_policy: [{}]}}"), "{name: c,", "{name: c, load_balancing_policy: {},", 1), ""},
		{"of a cluster of CDS", routes("{match: {prefix: /}, route: {cluster: d, hash_policy: [{}]}}") + cds, ""},

		{"a group as elsewhere", routes("{match: {prefix: /}, route: {cluster: c, regex_rewrite: {pattern: {regex: '/a/(.*)'}, substitution: /b/$1}}}"), `'$1' is taken as it stands: a group is written \1`},
		{"a dollar", routes("{match: {prefix: /}, route: {cluster: c, regex_rewrite: {pattern: {regex: '/a'}, substitution: /b/$1}}}"), ""},
		{"a group that there is not", routes(`{match: {prefix: /}, route: {cluster: c, regex_rewrite: {pattern: {regex: '/a/(.*)'}, substitution: '/b/\2'}}}`), "nothing is replaced: '\\2' is a group that the regular expression has not, which has 1"},
		{"groups that there are", routes(`{match: {prefix: /}, route: {cluster: c, regex_rewrite: {pattern: {regex: '/a/(.*)'}, substitution: '/b/\1\0\\2'}}}`), ""},

		{"a port that is taken off", manager(router+`, strip_any_host_port: true, route_config: {virtual_hosts: [{domains: ["a:80"]}]}`, ""), "virtual_hosts[0].domains[0]: no request comes here by the domain 'a:80': strip_any_host_port takes the port off first; did you mean 'a'?"},
		{"by the routes", manager(router+`, route_config: {ignore_port_in_host_matching: true, virtual_hosts: [{domains: ["[::1]:80"]}]}`, ""), "did you mean '[::1]'?"},
		{"beside that without", manager(router+`, strip_any_host_port: true, route_config: {virtual_hosts: [{domains: ["a:80", a]}]}`, ""), ""},
		{"addresses", manager(router+`, strip_any_host_port: true, route_config: {virtual_hosts: [{domains: ["::1", "a:", ":80", "a:b"]}]}`, ""), ""},

		{"numbers that there are not", matches("prefix: /, headers: [{name: a, range_match: {start: 5, end: 5}}]"), "headers[0].range_match: no number is in this range"},
		{"numbers", matches("prefix: /, headers: [{name: a, range_match: {end: 5}}]"), ""},
		{"a range that is too narrow", ranges("10.0.0.0, prefix_len: 40"), "prefix_ranges[0].prefix_len: an address of IPv4 has 32 bits: a prefix_len of 40 is taken as 32"},
		{"a range of all", ranges("10.0.0.0"), "every address is in this range: without a prefix_len it is 0; did you mean 'prefix_len: 32'?"},
		{"ranges", ranges("10.0.0.0, prefix_len: 32}, {address_prefix: '::', prefix_len: 128}, {address_prefix: 0.0.0.0"), ""},

		{"versions without one between", tls("STATIC", "127.0.0.1", "common_tls_context: {validation_context: {system_root_certs: {}}, tls_params: {tls_minimum_protocol_version: TLSv1_3, tls_maximum_protocol_version: TLSv1_2}}", ""),
			"tls_params.tls_maximum_protocol_version: no handshake succeeds: the greatest version is below the least, TLSv1_3"},
		{"the greatest is implied", tls("STATIC", "127.0.0.1", "common_tls_context: {validation_context: {system_root_certs: {}}, tls_params: {tls_minimum_protocol_version: TLSv1_3}}", ""),
			"tls_params.tls_minimum_protocol_version: no handshake succeeds: this is above the greatest version, which is TLSv1_2 for upstreams if nothing else is said; tls_maximum_protocol_version: TLSv1_3"},
		{"one version", tls("STATIC", "127.0.0.1", "common_tls_context: {validation_context: {system_root_certs: {}}, tls_params: {tls_minimum_protocol_version: TLSv1_3, tls_maximum_protocol_version: TLSv1_3}}", ""), ""},
		{"for clients", good + "  listeners: [{x: {\"@type\": " + types + "transport_sockets.tls.v3.DownstreamTlsContext, common_tls_context: {tls_params: {tls_minimum_protocol_version: TLSv1_3}}}}]", ""},
		{"too old for clients", good + "  listeners: [{x: {\"@type\": " + types + "transport_sockets.tls.v3.DownstreamTlsContext, common_tls_context: {tls_params: {tls_maximum_protocol_version: TLSv1_1}}}}]", "the greatest version is below the least, TLSv1_2"},

		{"options that nobody uses", clusters("{name: c, " + hosts + ", typed_extension_protocol_options: {envoy.upstreams.http.http_protocol_options: {}}}"), "nothing uses options of this name; did you mean 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions'?"},

		{"no validation", tls("STATIC", "127.0.0.1", "sni: a", ""), nobody},
		{"an empty one", tls("STATIC", "127.0.0.1", "sni: a, common_tls_context: {validation_context: {}}", ""), nobody},
		{"one", tls("STATIC", "127.0.0.1", ca, ""), ""},
		{"that of the system", tls("STATIC", "127.0.0.1", "common_tls_context: {validation_context: {system_root_certs: {}}}", ""), ""},
		{"one over SDS", tls("STATIC", "127.0.0.1", "common_tls_context: {validation_context_sds_secret_config: {name: a}}", ""), ""},
		{"a combined one", tls("STATIC", "127.0.0.1", "common_tls_context: {combined_validation_context: {}}", ""), ""},
		{"SPIFFE", tls("STATIC", "127.0.0.1", "common_tls_context: {validation_context: {custom_validator_config: {}}}", ""), ""},
		{"a hash", tls("STATIC", "127.0.0.1", "common_tls_context: {validation_context: {verify_certificate_hash: [a]}}", ""), ""},
		{"none, as it says", tls("STATIC", "127.0.0.1", "common_tls_context: {validation_context: {trust_chain_verification: ACCEPT_UNTRUSTED}}", ""), ""},

		{"certificates that nobody asks for", server("require_client_certificate: true, common_tls_context: {tls_certificates: [{}]}"), "checks nothing without common_tls_context.validation_context.trusted_ca"},
		{"an empty context", server("require_client_certificate: true, common_tls_context: {validation_context: {}}"), "checks nothing"},
		{"accepted without a CA", server("require_client_certificate: true, common_tls_context: {validation_context: {trust_chain_verification: ACCEPT_UNTRUSTED}}"), "checks nothing"},
		{"a CA of clients", server("require_client_certificate: true, common_tls_context: {validation_context: {trusted_ca: {}}}"), ""},
		{"hashes of clients", server("require_client_certificate: true, common_tls_context: {validation_context: {verify_certificate_hash: [a]}}"), ""},
		{"a CA over SDS", server("require_client_certificate: true, common_tls_context: {validation_context_sds_secret_config: {name: a}}"), ""},
		{"none required", server("common_tls_context: {}"), ""},

		{"no SNI", tls("STRICT_DNS", "www.example.com", ca, ""), unnamed},
		{"SNI", tls("STRICT_DNS", "www.example.com", "sni: a, "+ca, ""), ""},
		{"SNI of the host", tls("LOGICAL_DNS", "www.example.com", "auto_host_sni: true, "+ca, ""), ""},
		{"SNI of the request", tls("STRICT_DNS", "www.example.com", ca, "typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {upstream_http_protocol_options: {auto_sni: true}}}"), ""},
		{"SNI of the request, as of old", tls("STRICT_DNS", "www.example.com", ca, "upstream_http_protocol_options: {auto_sni: true}"), ""},
		{"an address", tls("STRICT_DNS", "127.0.0.1", ca, ""), ""},
		{"a host inside", tls("STRICT_DNS", "a.b.svc.cluster.local.", ca, ""), ""},
		{"a host beside", tls("STRICT_DNS", "backend", ca, ""), ""},
		{"mutual TLS", tls("STRICT_DNS", "www.example.com", "common_tls_context: {tls_certificates: [{}], validation_context: {trusted_ca: {}}}", ""), ""},

		{"a host with its port", clusters(`{name: c, type: STRICT_DNS, ` + strings.Replace(hosts, "127.0.0.1", "'a.b:80'", 1) + `}`), "no host is called 'a.b:80'"},
		{"a host as a URL", clusters(`{name: c, type: LOGICAL_DNS, ` + strings.Replace(hosts, "127.0.0.1", "'http://a.b'", 1) + `}`), "no host is called 'http://a.b'"},
		{"an address of IPv6", clusters(`{name: c, type: STRICT_DNS, ` + strings.Replace(hosts, "127.0.0.1", "'::1'", 1) + `}`), ""},
		{"no endpoints", clusters("{name: c}"), "the cluster 'c' has no endpoints"},
		{"an empty list", clusters("{name: c, type: STRICT_DNS, load_assignment: {endpoints: [{lb_endpoints: []}]}}"), "has no endpoints"},
		{"EDS", clusters("{name: c, type: EDS}"), ""},
		{"another type", clusters("{name: c, cluster_type: {name: x}}"), ""},
		{"on purpose", clusters("{name: BlackHoleCluster, type: STATIC}, {name: EmptyCluster, type: STATIC}, {name: self_transparentproxy_no_destination_inbound, type: STATIC}"), ""},

		{"names of the user's own", good + "  listeners: [{metadata: {filter_metadata: {a: {virtual_hosts: [{domains: ['a.*.b']}]}}}}]", ""},
		{"names of nobody's", good + `  listeners: [{filter_chains: [{filters: [{typed_config: {"@type": type.googleapis.com/xds.type.v3.TypedStruct, value: {virtual_hosts: [{domains: ["a.*.b"]}]}}}]}]}]`, ""},
	} {
		got := find(t, c.text, configfile.Options{})
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func find(t testing.TB, text string, o configfile.Options) (list []string) {
	t.Helper()
	f, err := configfile.Of("a.yaml", []byte(text), o)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	for _, x := range doubt.Of(f, nil, 100) {
		if x.Kind != "doubtful" {
			t.Errorf("%q is the kind of %s", x.Kind, x.Error())
		}
		list = append(list, x.Error())
	}
	return list
}

// Doubts have places, in either spelling and form, in the order of the file, no more than are asked for; and what is merged counts.
func TestPlaces(t *testing.T) {
	const text = `staticResources:
  listeners:
  - filterChains:
    - filters:
      - typedConfig:
          "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
          cluster: x
  clusters:
  - name: xy
`
	want := []string{
		"a.yaml:7:20: static_resources.listeners[0].filter_chains[0].filters[0].typed_config.cluster: there is no cluster 'x', and no CDS that could bring it: connections are closed at once; did you mean 'xy'?",
		"a.yaml:9:11: static_resources.clusters[0].name: the cluster 'xy' has no endpoints: requests to it are answered with 503, connections closed",
	}
	if d := cmp.Diff(want, find(t, text, configfile.Options{})); d != "" {
		t.Error(d)
	}
	over := "static_resources: {clusters: [{name: x}]}"
	want = []string{"--config-yaml:1:38: static_resources.clusters[1].name: the cluster 'x' has no endpoints: requests to it are answered with 503, connections closed", want[1]}
	if d := cmp.Diff(want, find(t, text, configfile.Options{ConfigYAML: over})); d != "" {
		t.Error(d)
	}
	f, err := configfile.Of("a.yaml", []byte(text), configfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := doubt.Of(f, nil, 1); len(got) != 1 || got[0].Line != 7 {
		t.Errorf("%v", got)
	}
	proto, err := f.Encode(configfile.ProtoText)
	if err != nil {
		t.Fatal(err)
	}
	g, err := configfile.Of("a.pb_text", proto, configfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := doubt.Of(g, nil, 100); len(got) != 2 || got[0].Line == 0 {
		t.Errorf("%v", got)
	}
	binary, err := f.Encode(configfile.Proto)
	if err != nil {
		t.Fatal(err)
	}
	if g, err = configfile.Of("a.pb", binary, configfile.Options{}); err != nil {
		t.Fatal(err)
	}
	if got := doubt.Of(g, nil, 100); len(got) != 2 || got[0].File != "a.pb" {
		t.Errorf("%v", got)
	}
}

// manyRoutes is a virtual host of n routes and one that none reaches.
func manyRoutes(tb testing.TB, n int) (*configfile.File, *configfile.Value) {
	tb.Helper()
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"match": {"prefix": "/a/%d/"}, "redirect": {}}, `, i)
	}
	f, err := configfile.Of("a.json", []byte(`{"static_resources": {"listeners": [{"virtual_hosts": [{"routes": [`+b.String()+`{"match": {"path": "/a/7/b"}, "redirect": {}}]}]}]}}`), configfile.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return f, configfile.ProtoNames(f)
}

func TestManyRoutes(t *testing.T) {
	f, root := manyRoutes(t, 10_000)
	if got := doubt.Of(f, root, 100); len(got) != 1 || !strings.HasSuffix(got[0].Path, ".routes[10000]") || !strings.Contains(got[0].Msg, "routes[7], prefix '/a/7/',") {
		t.Errorf("%v", got)
	}
}

// BenchmarkManyRoutes takes a time that grows with the number of routes, not with its square.
func BenchmarkManyRoutes(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f, root := manyRoutes(b, n)
			for b.Loop() {
				doubt.Of(f, root, 100)
			}
		})
	}
}
