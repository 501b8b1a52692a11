package cluster_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/dns"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

const httpOptions = `typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {
	"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, `

const oneEndpoint = "load_assignment: {cluster_name: a, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %, port_value: 80}}}}]}]}"

// dnsCluster begins the configuration of the extension.
const dnsCluster = `cluster_type: {name: x, typed_config: {"@type": type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster, `

const (
	originalDst     = "type: ORIGINAL_DST, lb_policy: CLUSTER_PROVIDED"
	roundRobin      = `"@type": type.googleapis.com/envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin`
	clusterProvided = `"@type": type.googleapis.com/envoy.extensions.load_balancing_policies.cluster_provided.v3.ClusterProvided`
)

// Texts that Envoy 1.40 prints for the same mistakes are marked.
func TestConfigErrors(t *testing.T) {
	ep := func(a string) string { return strings.Replace(oneEndpoint, "%", a, 1) }
	const hc = "timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1"
	for _, c := range []struct{ yaml, want string }{
		// Envoy's words.
		{ep("foo.bar"), "load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address: malformed IP address: foo.bar. Consider setting resolver_name or setting cluster type to 'STRICT_DNS' or 'LOGICAL_DNS'"},
		{"type: EDS", "eds_cluster_config: cannot create an EDS cluster without an EDS config"},
		{"type: LOGICAL_DNS", "load_assignment: LOGICAL_DNS clusters must have a single host"},
		{"type: LOGICAL_DNS, load_assignment: {cluster_name: a, endpoints: [{}]}", "load_assignment: LOGICAL_DNS clusters must have a single locality_lb_endpoint and a single lb_endpoint"},
		{"type: ORIGINAL_DST", "lb_policy: cluster: LB policy ROUND_ROBIN is not valid for Cluster type ORIGINAL_DST. Only 'CLUSTER_PROVIDED' is allowed with cluster type 'ORIGINAL_DST'"},
		{"cluster_type: {name: envoy.cluster.original_dst}", "lb_policy: cluster: LB policy ROUND_ROBIN is not valid for Cluster type envoy.cluster.original_dst. Only 'CLUSTER_PROVIDED' is allowed with cluster type 'ORIGINAL_DST'"},
		{originalDst + ", load_assignment: {cluster_name: a}", "load_assignment: ORIGINAL_DST clusters must have no load assignment configured"},
		{originalDst + ", original_dst_lb_config: {http_header_name: x-foo}", "original_dst_lb_config.http_header_name: ORIGINAL_DST cluster: invalid config http_header_name=x-foo and use_http_header is false. Set use_http_header to true if http_header_name is desired."},
		{originalDst + ", load_balancing_policy: {policies: [{typed_extension_config: {name: x, typed_config: {" + roundRobin + "}}}]}", "load_balancing_policy: cluster manager: cluster provided LB not specified but cluster 'a' provided one. Check cluster documentation."},
		{"load_balancing_policy: {policies: [{typed_extension_config: {name: x, typed_config: {" + clusterProvided + "}}}]}", "load_balancing_policy: cluster manager: cluster provided LB specified but cluster 'a' did not provide one. Check cluster documentation."},
		{"lb_policy: CLUSTER_PROVIDED", "lb_policy: cluster manager: cluster provided LB specified but cluster 'a' did not provide one. Check cluster documentation."},
		{"lb_policy: MAGLEV, maglev_lb_config: {table_size: 100}", "maglev_lb_config.table_size: The table size of maglev must be prime number"},
		{"lb_policy: RING_HASH, ring_hash_lb_config: {minimum_ring_size: 100, maximum_ring_size: 10}", "ring_hash_lb_config: ring hash: minimum_ring_size (100) > maximum_ring_size (10)"},
		{"lb_policy: LOAD_BALANCING_POLICY_CONFIG", "lb_policy: cluster: field load_balancing_policy need to be set"},
		{"load_balancing_policy: {}", "load_balancing_policy: cluster: didn't find a registered load balancer factory implementation for cluster: 'a' with names from []"},
		{`load_balancing_policy: {policies: [{typed_extension_config: {name: x, typed_config: {"@type": type.googleapis.com/envoy.config.core.v3.Metadata}}}]}`,
			"load_balancing_policy: cluster: didn't find a registered load balancer factory implementation for cluster: 'a' with names from [x]"},
		{"type: STRICT_DNS, dns_failure_refresh_rate: {base_interval: 5s, max_interval: 1s}", "dns_failure_refresh_rate: dns_failure_refresh_rate must have max_interval greater than or equal to the base_interval"},
		{"cluster_type: {name: bogus}", "cluster_type: Didn't find a registered cluster factory implementation for name: 'bogus'"},
		{dnsCluster + "dns_failure_refresh_rate: {base_interval: 5s, max_interval: 1s}}}",
			"cluster_type.typed_config.dns_failure_refresh_rate: dns_failure_refresh_rate must have max_interval greater than or equal to the base_interval"},
		{dnsCluster + "all_addresses_in_single_endpoint: true}}", "load_assignment: LOGICAL_DNS clusters must have a single host"},
		{"upstream_bind_config: {source_address: {address: foo, port_value: 0}}", "upstream_bind_config.source_address.address: malformed IP address: foo; allowed: an IP address; names are looked up only for endpoints of STRICT_DNS and LOGICAL_DNS clusters"},
		{`typed_extension_protocol_options: {x: {"@type": type.googleapis.com/envoy.config.core.v3.Metadata}}`,
			`typed_extension_protocol_options["x"]: Didn't find a registered network or http filter or protocol options implementation for name: 'x'`},
		{"health_checks: [{HC, grpc_health_check: {}}]", "health_checks[0]: a cluster must support HTTP/2 for gRPC healthchecking"},
		{"health_checks: [{HC, tcp_health_check: {send: {text: zz}}}]", "health_checks[0].tcp_health_check.send.text: invalid hex string 'zz'"},
		{`health_checks: [{HC, tcp_health_check: {receive: [{text: "00"}, {text: "123"}]}}]`, "health_checks[0].tcp_health_check.receive[1].text: invalid hex string '123'"},
		{"health_checks: [{HC, http_health_check: {path: /, expected_statuses: [{start: 200, end: 200}]}}]",
			"health_checks[0].http_health_check.expected_statuses[0]: Invalid http expected status range: expecting start < end, but found start=200 and end=200"},
		{"health_checks: [{HC, http_health_check: {path: /, expected_statuses: [{start: 99, end: 200}]}}]",
			"health_checks[0].http_health_check.expected_statuses[0]: Invalid http expected status range: expecting start >= 100, but found start=99"},
		{"health_checks: [{HC, http_health_check: {path: /, retriable_statuses: [{start: 100, end: 601}]}}]",
			"health_checks[0].http_health_check.retriable_statuses[0]: Invalid http retriable status range: expecting end <= 600, but found end=601"},
		{`health_checks: [{HC, http_health_check: {path: /, send: {text: "61"}}}]`, "health_checks[0].http_health_check.send: HTTP health check cannot specify a request payload with method 'GET'. " +
			"Only methods that support a request body (POST, PUT, PATCH, OPTIONS) can be used with payload."},
		{httpOptions + "auto_config: {}}}", "typed_extension_protocol_options: ALPN configured for cluster a which has a non-ALPN transport socket"},
		{"circuit_breakers: {per_host_thresholds: [{max_connections: 1}, {max_requests: 1}]}",
			"circuit_breakers.per_host_thresholds[1]: Unsupported field in per_host_thresholds; allowed: max_connections"}, // told once
		// Ours.
		{"outlier_detection: {}", "outlier_detection: not supported yet"},
		{"health_checks: [{HC, tcp_health_check: {}}, {HC, tcp_health_check: {}}]", "health_checks[1]: not supported yet"},
		{"health_checks: [{HC, event_log_path: /x, tcp_health_check: {}}]", "health_checks[0].event_log_path: not supported yet"},
		{`health_checks: [{HC, event_logger: [{name: x, typed_config: {"@type": type.googleapis.com/envoy.config.core.v3.Metadata}}], tcp_health_check: {}}]`,
			"health_checks[0].event_logger[0]: not supported yet"},
		{"health_checks: [{HC, tls_options: {alpn_protocols: [h2]}, tcp_health_check: {}}]", "health_checks[0].tls_options.alpn_protocols: not supported yet"},
		{"health_checks: [{HC, http_health_check: {path: /, codec_client_type: HTTP3}}]", "health_checks[0].http_health_check.codec_client_type: not supported yet; found HTTP3"},
		{"round_robin_lb_config: {slow_start_config: {slow_start_window: 1s}}", "round_robin_lb_config.slow_start_config: not supported yet"},
		{"cluster_type: {name: envoy.clusters.aggregate}", "cluster_type: envoy.clusters.aggregate: not supported yet"},
		{"transport_socket: {name: envoy.transport_sockets.tls}", "transport_socket: not supported yet"},
		{"http2_protocol_options: {allow_metadata: true}", "http2_protocol_options.allow_metadata: not supported yet"},
		{httpOptions + "explicit_http_config: {http3_protocol_options: {}}}}",
			`typed_extension_protocol_options["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"].explicit_http_config.http3_protocol_options: not supported yet`},
		{"load_assignment: {cluster_name: a, policy: {drop_overloads: [{category: x}]}}", "load_assignment.policy.drop_overloads: not supported yet"},
	} {
		r := newRig(t, 1)
		_, err := cluster.Build(parse(t, "{name: a, "+strings.ReplaceAll(c.yaml, "HC", hc)+"}"), r.deps)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.yaml, err, c.want)
		}
		r.want(map[string]string{"cluster.a.membership_total": ""}) // nothing is left of it
	}
}

func TestDefaults(t *testing.T) {
	r := newRig(t, 1)
	c := r.add("{name: a, alt_stat_name: other}")
	o := c.Pools()
	if c.ConnectTimeout() != 5*time.Second || c.IdleTimeout() != time.Hour || c.PerConnectionBufferLimit() != 1<<20 ||
		c.MaxRequestsPerConnection() != 0 || c.Protocol() != pool.HTTP1 || o.MaxDuration != 0 {
		t.Errorf("%+v", o.Options)
	}
	if c.ObservabilityName() != "other" || c.AltStatName() != "other" || c.Name() != "a" {
		t.Error("names")
	}
	if d := cmp.Diff(pool.DefaultLimits, o.Limits[0]); d != "" {
		t.Error(d)
	}
	if o.H2.MaxConcurrentStreams != 1024 || o.H2.InitialStreamWindow != 16<<20 || o.H2.InitialConnWindow != 24<<20 {
		t.Errorf("%+v", o.H2)
	}
	r.want(map[string]string{"cluster.other.upstream_cx_total": "0", "cluster.a.upstream_cx_total": ""})
}

func TestOptions(t *testing.T) {
	r := newRig(t, 1)
	c := r.add(`{name: a, connect_timeout: 0.25s, per_connection_buffer_limit_bytes: 32768, lb_policy: LEAST_REQUEST,
		least_request_lb_config: {choice_count: 5, active_request_bias: {default_value: 0.5, runtime_key: x}},
		common_lb_config: {healthy_panic_threshold: {value: 10}, locality_weighted_lb_config: {}},
		circuit_breakers: {thresholds: [{max_connections: 1, max_pending_requests: 2, max_requests: 3, max_retries: 4, max_connection_pools: 5},
			{priority: HIGH, retry_budget: {budget_percent: {value: 50}}}], per_host_thresholds: [{max_connections: 6}]},
		upstream_connection_options: {tcp_keepalive: {keepalive_time: 7}}, ` + httpOptions + `
		common_http_protocol_options: {idle_timeout: 3s, max_connection_duration: 4s, max_requests_per_connection: 8},
		explicit_http_config: {http2_protocol_options: {max_concurrent_streams: 9}}}}}`)
	o := c.Pools()
	if c.ConnectTimeout() != 250*time.Millisecond || c.PerConnectionBufferLimit() != 32768 || c.IdleTimeout() != 3*time.Second ||
		o.MaxDuration != 4*time.Second || c.MaxRequestsPerConnection() != 8 || c.Protocol() != pool.HTTP2 || o.H2.MaxConcurrentStreams != 9 {
		t.Errorf("%+v", o.Options)
	}
	if len(o.Sockets) != 2 || o.Sockets[1].Int != 7 {
		t.Errorf("sockets: %+v", o.Sockets)
	}
	want := [2]pool.Limits{
		{MaxConnections: 1, MaxPending: 2, MaxRequests: 3, MaxRetries: 4, MaxPools: 5, PerHostConnections: 6},
		{MaxConnections: 1024, MaxPending: 1024, MaxRequests: 1024, MaxRetries: 3, MaxPools: pool.Unlimited, PerHostConnections: pool.Unlimited,
			HasBudget: true, BudgetPercent: 50, MinRetries: 3},
	}
	if d := cmp.Diff(want, *o.Limits); d != "" {
		t.Error(d)
	}
	l := c.Options().LB
	if l.Policy != (lb.LeastRequest{Choices: 5, Bias: 0.5}) || l.PanicThreshold != 10 || !l.LocalityWeighted {
		t.Errorf("%+v", l)
	}
}

func TestPolicies(t *testing.T) {
	const ext = "type.googleapis.com/envoy.extensions.load_balancing_policies."
	for _, c := range []struct {
		yaml     string
		want     lb.Policy
		locality bool
	}{
		{`{"@type": ` + ext + `round_robin.v3.RoundRobin}`, lb.RoundRobin{}, false},
		{`{"@type": ` + ext + `random.v3.Random}`, lb.Random{}, false},
		{`{"@type": ` + ext + `least_request.v3.LeastRequest, choice_count: 3, locality_lb_config: {locality_weighted_lb_config: {}}}`, lb.LeastRequest{Choices: 3, Bias: 1}, true},
		{`{"@type": ` + ext + `least_request.v3.LeastRequest, selection_method: FULL_SCAN}`, lb.LeastRequest{Choices: 2, Bias: 1, FullScan: true}, false},
		{`{"@type": ` + ext + `ring_hash.v3.RingHash, hash_function: MURMUR_HASH_2, minimum_ring_size: 7, use_hostname_for_hashing: true}`,
			lb.RingHash{Min: 7, Max: lb.DefaultRingMax, Murmur: true, Hashing: lb.Hashing{UseHostname: true}}, false},
		{`{"@type": ` + ext + `maglev.v3.Maglev, table_size: 11, consistent_hashing_lb_config: {hash_balance_factor: 150}}`,
			lb.Maglev{Size: 11, Hashing: lb.Hashing{BalanceFactor: 150}}, false},
	} {
		r := newRig(t, 1)
		// The first policy is not known: it is passed over.
		a := r.add(`{name: a, load_balancing_policy: {policies: [
			{typed_extension_config: {name: other, typed_config: {"@type": type.googleapis.com/envoy.config.core.v3.Metadata}}},
			{typed_extension_config: {name: x, typed_config: ` + c.yaml + `}}]}}`)
		if l := a.Options().LB; l.Policy != c.want || l.LocalityWeighted != c.locality {
			t.Errorf("%s: %+v", c.yaml, l)
		}
	}
}

// Clusters that are configured alike share their settings.
func TestSharedSettings(t *testing.T) {
	r := newRig(t, 1)
	a, b, other := r.add(static("a", "10.0.0.1:80")), r.add(static("b", "10.0.0.1:80")), r.add("{name: c, connect_timeout: 1s}")
	if a.Pools().Options != b.Pools().Options || a.Pools().Limits != b.Pools().Limits || a.Options() != b.Options() {
		t.Error("equal settings are not shared")
	}
	if a.Pools().Options == other.Pools().Options || a.Pools().H2 != other.Pools().H2 {
		t.Error("what differs is shared, or what does not is not")
	}
}

func TestResolverOptions(t *testing.T) {
	const cares = `typed_dns_resolver_config: {name: x, typed_config: {"@type": type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig, `
	server := netip.MustParseAddrPort("127.0.0.1:5353")
	for _, c := range []struct {
		yaml string
		want *dns.Options // nil: the resolver of all
		err  string
	}{
		{"", nil, ""},
		{`typed_dns_resolver_config: {name: x, typed_config: {"@type": type.googleapis.com/envoy.extensions.network.dns_resolver.getaddrinfo.v3.GetAddrInfoDnsResolverConfig}}`, nil, ""},
		{cares + "resolvers: [{socket_address: {address: 127.0.0.1, port_value: 5353}}], dns_resolver_options: {no_default_search_domain: true}, query_tries: 3, query_timeout_seconds: 2}}",
			&dns.Options{Servers: []netip.AddrPort{server}, NoSearch: true, Tries: 3, Timeout: 2 * time.Second}, ""},
		{"dns_resolvers: [{socket_address: {address: 127.0.0.1, port_value: 5353}}], use_tcp_for_dns_lookups: true", &dns.Options{Servers: []netip.AddrPort{server}, TCP: true}, ""},
		{"dns_resolution_config: {resolvers: [{socket_address: {address: 127.0.0.1, port_value: 5353}}]}", &dns.Options{Servers: []netip.AddrPort{server}}, ""},
		{cares + "rotate_nameservers: true}}", nil, "typed_dns_resolver_config.typed_config.rotate_nameservers: not supported yet"},
		{"dns_resolvers: [{socket_address: {address: ns.test, port_value: 53}}]", nil, "dns_resolvers[0].socket_address.address: malformed IP address: ns.test; allowed: an IP address; names are looked up only for endpoints of STRICT_DNS and LOGICAL_DNS clusters"},
	} {
		r := newRig(t, 1)
		var got *dns.Options
		made := 0
		r.deps.NewResolver = func(o dns.Options) dns.Resolver {
			made++
			got = &o
			return r.dns
		}
		_, err := cluster.Build(parse(t, "{name: a, type: STRICT_DNS, "+c.yaml+"}"), r.deps)
		if err == nil {
			_, err = cluster.Build(parse(t, "{name: b, type: STRICT_DNS, "+c.yaml+"}"), r.deps)
		}
		if (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %v", c.yaml, err)
		}
		if d := cmp.Diff(c.want, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); d != "" || made > 1 {
			t.Errorf("%s: %d resolvers, %s", c.yaml, made, d)
		}
	}
}
