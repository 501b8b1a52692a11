package config

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// oldName is a field that a message of the v2 API had and that of the v3 API has not, or a name that people give to a field.
type oldName struct {
	Now    string // the field of the same message that took its place, "" if there is none
	Advice string // what to do besides
}

// oldNames are by message and field. A field that only got a longer name is found by its likeness and needs no row.
var oldNames = map[string]map[string]oldName{
	"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
		"http_protocol_options":  {"explicit_http_config", "as {http_protocol_options: {...}}"},
		"http2_protocol_options": {"explicit_http_config", "as {http2_protocol_options: {...}}"},
		"http3_protocol_options": {"explicit_http_config", "as {http3_protocol_options: {...}}"},
	},
	"envoy.extensions.transport_sockets.tls.v3.TlsCertificate": {
		"key_file":               {"private_key", "as {filename: ...}"},
		"private_key_file":       {"private_key", "as {filename: ...}"},
		"cert_file":              {"certificate_chain", "as {filename: ...}"},
		"certificate_file":       {"certificate_chain", "as {filename: ...}"},
		"cert_chain_file":        {"certificate_chain", "as {filename: ...}"},
		"certificate_chain_file": {"certificate_chain", "as {filename: ...}"},
		"cert_chain":             {"certificate_chain", ""},
		"cert":                   {"certificate_chain", ""},
		"certificate":            {"certificate_chain", ""},
	},
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager": {
		"virtual_hosts": {"route_config", "as {virtual_hosts: [...]}"},
		"timeout":       {"", "request_timeout bounds how long a request may take to come; the timeout of a route all of it"},
		"filters":       {"http_filters", ""},
		"router":        {"http_filters", "as its last: {name: envoy.filters.http.router, typed_config: {...}}"},
		"routes":        {"route_config", "as {virtual_hosts: [{name: ..., domains: [...], routes: [...]}]}"},
	},
	"envoy.config.bootstrap.v3.Admin": {
		"port": {"address", "as {socket_address: {address: ..., port_value: ...}}"},
	},
	"envoy.config.route.v3.WeightedCluster.ClusterWeight": {
		"cluster": {"name", ""},
	},
	"envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext": {
		"sni": {"", "server_names in filter_chain_match choose the chain that has the certificate"},
	},
	"envoy.config.core.v3.CidrRange": {
		"ip":      {"address_prefix", ""},
		"address": {"address_prefix", ""},
		"prefix":  {"prefix_len", ""},
		"mask":    {"prefix_len", ""},
		"length":  {"prefix_len", ""},
	},
	"envoy.config.route.v3.DirectResponseAction": {
		"headers":       {"", "the route has response_headers_to_add"},
		"code":          {"status", ""},
		"response_code": {"status", ""},
	},
	"envoy.config.cluster.v3.CircuitBreakers": {
		"max_connections":      {"thresholds", "as [{max_connections: ...}]"},
		"max_pending_requests": {"thresholds", "as [{max_pending_requests: ...}]"},
		"max_requests":         {"thresholds", "as [{max_requests: ...}]"},
		"max_retries":          {"thresholds", "as [{max_retries: ...}]"},
	},
	"envoy.config.bootstrap.v3.Bootstrap": {
		"listener":           {"static_resources", "as {listeners: [...]}"},
		"cluster":            {"static_resources", "as {clusters: [...]}"},
		"concurrency":        {"", "it is a flag: --concurrency"},
		"log_level":          {"", "it is a flag: --log-level"},
		"base_id":            {"", "it is a flag: --base-id"},
		"resources":          {"", "this is a response of a control plane: the path_config_source of a cds_config, lds_config or another reads it"},
		"version_info":       {"", "this is a response of a control plane: the path_config_source of a cds_config, lds_config or another reads it"},
		"runtime":            {"layered_runtime", "as a layer with a disk_layer"},
		"rate_limit_service": {"", "the rate limit filter has a rate_limit_service of its own"},
	},
	"envoy.config.cluster.v3.Cluster": {
		"weight":                            {"", "weights are of endpoints (load_balancing_weight) and of weighted_clusters in a route"},
		"sni":                               {"transport_socket", "sni stands in a typed_config of " + upstreamTLS},
		"retry_policy":                      {"", "retries are of routes: the route of each has a retry_policy"},
		"timeout":                           {"connect_timeout", "the timeout of a request is that of its route"},
		"http2_options":                     {"", httpOptions + ", as explicit_http_config: {http2_protocol_options: {}}"},
		"protocol":                          {"", httpOptions + ", as explicit_http_config: {http2_protocol_options: {}}"},
		"slow_start_config":                 {"", "round_robin_lb_config and least_request_lb_config have it"},
		"address":                           {"load_assignment", "as endpoints: [{lb_endpoints: [{endpoint: {address: {...}}}]}]"},
		"discovery":                         {"type", ""},
		"tls":                               {"transport_socket", "name: envoy.transport_sockets.tls, with a typed_config of " + upstreamTLS},
		"hosts":                             {"load_assignment", "as endpoints: [{lb_endpoints: [{endpoint: {address: {...}}}]}]"},
		"endpoints":                         {"load_assignment", "as {cluster_name: ..., endpoints: [...]}"},
		"tls_context":                       {"transport_socket", "name: envoy.transport_sockets.tls, with the fields in a typed_config of " + upstreamTLS},
		"ssl_context":                       {"transport_socket", "name: envoy.transport_sockets.tls, with the fields in a typed_config of " + upstreamTLS},
		"extension_protocol_options":        {"typed_extension_protocol_options", ""},
		"drain_connections_on_host_removal": {"ignore_health_on_host_removal", ""},
		"cluster_name":                      {"name", ""},
		"discovery_type":                    {"type", ""},
		"service_name":                      {"eds_cluster_config", "it has service_name"},
	},
	"envoy.config.cluster.v3.Cluster.RingHashLbConfig": {
		"deprecated_v1": {"hash_function", ""},
	},
	"envoy.config.core.v3.ApiConfigSource": {
		"api_config_source": {"", "this is one: its fields stand here, without it"},
		"cluster_name":      {"grpc_services", "as [{envoy_grpc: {cluster_name: ...}}]"},
		"grpc_service":      {"grpc_services", ""},
	},
	"envoy.config.core.v3.HealthCheck": {
		"failure_threshold":  {"unhealthy_threshold", ""},
		"success_threshold":  {"healthy_threshold", ""},
		"redis_health_check": {"custom_health_check", "name: envoy.health_checkers.redis, with a typed_config"},
	},
	"envoy.config.core.v3.HealthCheck.HttpHealthCheck": {
		"url":          {"path", ""},
		"uri":          {"path", ""},
		"service_name": {"service_name_matcher", "as {prefix: ...}"},
		"use_http2":    {"codec_client_type", "as HTTP2"},
	},
	"envoy.config.core.v3.Node": {
		"name":          {"id", ""},
		"build_version": {"user_agent_build_version", "it is set by the proxy"},
	},
	"envoy.config.core.v3.SocketAddress": {
		"port": {"port_value", ""},
		"ip":   {"address", ""},
		"host": {"address", ""},
	},
	"envoy.config.core.v3.DataSource": {
		"inline":       {"inline_string", ""},
		"inline_value": {"inline_string", ""},
		"file":         {"filename", ""},
		"path":         {"filename", ""},
	},
	"envoy.config.endpoint.v3.LbEndpoint": {
		"port":   {"endpoint", "as {address: {socket_address: {address: ..., port_value: ...}}}"},
		"weight": {"load_balancing_weight", ""},
	},
	"envoy.config.listener.v3.Listener": {
		"tls_context": {"filter_chains", "as [{transport_socket: {name: envoy.transport_sockets.tls, typed_config: {...}}}]"},
		"ssl_context": {"filter_chains", "as [{transport_socket: {name: envoy.transport_sockets.tls, typed_config: {...}}}]"},
		"filters":     {"filter_chains", "as [{filters: [...]}]"},
		"port":        {"address", "as {socket_address: {address: ..., port_value: ...}}"},
	},
	"envoy.config.listener.v3.FilterChain": {
		"tls_context": {"transport_socket", "name: envoy.transport_sockets.tls, with the fields in a typed_config of " + downstreamTLS},
		"ssl_context": {"transport_socket", "name: envoy.transport_sockets.tls, with the fields in a typed_config of " + downstreamTLS},
		"sni_domains": {"filter_chain_match", "it has server_names"},
	},
	"envoy.config.listener.v3.FilterChainMatch": {
		"sni":         {"server_names", ""},
		"sni_domains": {"server_names", ""},
	},
	"envoy.config.route.v3.RouteMatch": {
		"ignore_case":      {"case_sensitive", "as false"},
		"case_insensitive": {"case_sensitive", "as false"},
		"hosts":            {"", hostsAdvice},
		"domain":           {"", hostsAdvice},
		"domains":          {"", hostsAdvice},
		"methods":          {"headers", `as [{name: ":method", string_match: {safe_regex: {regex: "GET|POST"}}}]`},
		"uri":              {"prefix", "or path, path_separated_prefix, safe_regex"},
		"path_template":    {"path_match_policy", "of envoy.path.match.uri_template.uri_template_matcher"},
		"path_prefix":      {"prefix", ""},
		"regex":            {"safe_regex", "as {regex: ...}"},
		"method":           {"headers", `as [{name: ":method", string_match: {exact: ...}}]`},
		"host":             {"headers", "hosts are the domains of a virtual host"},
	},
	"envoy.config.route.v3.HeaderMatcher": {
		"key":         {"name", ""},
		"header":      {"name", ""},
		"regex_match": {"string_match", "as {safe_regex: {regex: ...}}"},
		"value":       {"string_match", "as {exact: ...}"},
		"exact":       {"string_match", "as {exact: ...}"},
		"prefix":      {"string_match", "as {prefix: ...}"},
		"regex":       {"string_match", "as {safe_regex: {regex: ...}}"},
	},
	"envoy.config.route.v3.QueryParameterMatcher": {
		"value": {"string_match", "as {exact: ...}"},
		"regex": {"string_match", "as {safe_regex: {regex: ...}}"},
	},
	"envoy.config.route.v3.CorsPolicy": {
		"allow_origin":       {"allow_origin_string_match", "as [{exact: ...}]"},
		"allow_origin_regex": {"allow_origin_string_match", "as [{safe_regex: {regex: ...}}]"},
		"enabled":            {"filter_enabled", "as {default_value: {numerator: 100}}"},
	},
	"envoy.config.route.v3.Route": {
		"return": {"direct_response", "as {status: ...}"},
		"method": {"match", `it has headers: [{name: ":method", string_match: {exact: ...}}]`},
	},
	"envoy.config.route.v3.RouteAction": {
		"backend":               {"cluster", ""},
		"destination":           {"cluster", ""},
		"upstream":              {"cluster", ""},
		"service":               {"cluster", ""},
		"request_timeout":       {"timeout", ""},
		"use_websocket":         {"upgrade_configs", "as [{upgrade_type: websocket}]"},
		"retries":               {"retry_policy", "as {retry_on: ..., num_retries: ...}"},
		"request_mirror_policy": {"request_mirror_policies", "as a list"},
		"rewrite":               {"prefix_rewrite", ""},
		"host":                  {"host_rewrite_literal", ""},
	},
	"envoy.config.route.v3.VirtualHost": {
		"hosts": {"domains", ""},
	},
	"envoy.type.matcher.v3.StringMatcher": {
		"regex": {"safe_regex", "as {regex: ...}"},
		"value": {"exact", ""},
	},
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.Tracing": {
		"operation_name":           {"", "the listener's traffic_direction says it: INBOUND or OUTBOUND"},
		"request_headers_for_tags": {"custom_tags", "as [{tag: ..., request_header: {name: ...}}]"},
	},
	"envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext": {
		"ca":                      {"trusted_ca", "as {filename: ...}"},
		"ca_file":                 {"trusted_ca", "as {filename: ...}"},
		"ca_cert":                 {"trusted_ca", "as {filename: ...}"},
		"ca_certificate":          {"trusted_ca", "as {filename: ...}"},
		"verify_subject_alt_name": {"match_typed_subject_alt_names", "as [{san_type: DNS, matcher: {exact: ...}}]"},
	},
	"envoy.config.core.v3.TransportSocket": {
		"common_tls_context": {"typed_config", "it holds common_tls_context, with an @type that says whose it is"},
		"sni":                {"typed_config", "it holds sni, with the @type " + upstreamTLS},
	},
	"envoy.extensions.transport_sockets.tls.v3.TlsParameters": {
		"min_version": {"tls_minimum_protocol_version", "as TLSv1_2"},
		"max_version": {"tls_maximum_protocol_version", "as TLSv1_3"},
		"ciphers":     {"cipher_suites", ""},
	},
	"envoy.config.core.v3.Address": {
		"address": {"socket_address", "as {address: ..., port_value: ...}"},
		"host":    {"socket_address", "as {address: ..., port_value: ...}"},
		"port":    {"socket_address", "as {address: ..., port_value: ...}"},
	},
	"envoy.config.endpoint.v3.Endpoint": {
		"port":       {"address", "as {socket_address: {address: ..., port_value: ...}}"},
		"port_value": {"address", "as {socket_address: {address: ..., port_value: ...}}"},
		"host":       {"address", "as {socket_address: {address: ..., port_value: ...}}"},
	},
	"envoy.config.route.v3.RouteConfiguration": {
		"vhosts": {"virtual_hosts", ""},
		"hosts":  {"virtual_hosts", ""},
	},
	"envoy.config.core.v3.HeaderValue": {
		"name": {"key", ""},
	},
	"envoy.config.core.v3.HeaderValueOption": {
		"name":  {"header", "as {key: ..., value: ...}"},
		"key":   {"header", "as {key: ..., value: ...}"},
		"value": {"header", "as {key: ..., value: ...}"},
	},
	"envoy.config.route.v3.RouteAction.RequestMirrorPolicy": {
		"percentage": {"runtime_fraction", "as {default_value: {numerator: ...}}"},
		"percent":    {"runtime_fraction", "as {default_value: {numerator: ...}}"},
	},
	"envoy.extensions.filters.http.fault.v3.FaultAbort": {
		"status": {"http_status", ""},
	},
	"envoy.extensions.filters.http.cors.v3.Cors": {
		"expose_headers":            {"", corsAdvice},
		"max_age":                   {"", corsAdvice},
		"allow_credentials":         {"", corsAdvice},
		"allow_headers":             {"", corsAdvice},
		"allow_methods":             {"", corsAdvice},
		"allow_origin_string_match": {"", corsAdvice},
		"allow_origin":              {"", corsAdvice},
	},
	"envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext": {
		"insecure_skip_verify": {"", "without a validation_context nobody is verified"},
		"auto_sni":             {"auto_host_sni", "auto_sni is of upstream_http_protocol_options, and takes the name of each request"},
	},
	"envoy.config.route.v3.RedirectAction": {
		"url":         {"host_redirect", "and scheme_redirect, path_redirect"},
		"status":      {"response_code", "as MOVED_PERMANENTLY"},
		"status_code": {"response_code", "as MOVED_PERMANENTLY"},
		"code":        {"response_code", "as MOVED_PERMANENTLY"},
	},
	"envoy.config.route.v3.RetryPolicy": {
		"timeout": {"per_try_timeout", ""},
	},
	"envoy.config.bootstrap.v3.Bootstrap.DynamicResources": {
		"rds_config": {"", "routes come by rds in an http_connection_manager"},
		"sds_config": {"", "secrets come by an sds_config where they are used"},
		"eds_config": {"", "endpoints come by the eds_config in eds_cluster_config of a cluster"},
	},
	"envoy.extensions.transport_sockets.tls.v3.CommonTlsContext": {
		"tls_certificate": {"tls_certificates", "as a list"},
	},
}

const (
	hostsAdvice   = "hosts are the domains of a virtual host"
	corsAdvice    = "the policy stands in typed_per_filter_config of a route or a virtual host, with the @type " + typePrefix + "envoy.extensions.filters.http.cors.v3.CorsPolicy"
	upstreamTLS   = typePrefix + "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
	downstreamTLS = typePrefix + "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"
)

// byOldName fills in what m has in place of key, and tells whether that is known.
func (m *message) byOldName(key string, x *Error) bool {
	if fold(key) == "config" && m.fields["typed_config"] != nil {
		x.Suggestion, x.Advice = "typed_config", "with an @type among its fields, which says whose they are"
		return true
	}
	if m.name == "envoy.config.core.v3.Metadata" {
		x.Suggestion, x.Advice = "filter_metadata", "as {"+scalarText(key)+": {...}}"
		return true
	}
	if m.name == "envoy.config.route.v3.WeightedCluster" && nearest(key, m.fieldNames()) == "" {
		x.Suggestion, x.Advice = "clusters", "as [{name: "+scalarText(key)+", weight: ...}]"
		return true
	}
	for name, old := range oldNames[m.name] {
		if fold(name) == fold(key) {
			x.Suggestion, x.Advice = old.Now, old.Advice
			return true
		}
	}
	return false
}

// newTypeName is what a message of the v2 API is called in the v3 API, "" if nobody knows. Messages of the API say it themselves; those
// of extensions that are not linked in moved by a rule.
func newTypeName(old string) (found string) {
	if !strings.Contains(old, ".v2.") && !strings.Contains(old, ".v2alpha") {
		return ""
	}
	protoregistry.GlobalTypes.RangeMessages(func(t protoreflect.MessageType) bool {
		if name := string(t.Descriptor().FullName()); previousName(t.Descriptor()) == old && (found == "" || name < found) {
			found = name
		}
		return true
	})
	if found != "" {
		return found
	}
	for _, r := range movedPackages {
		rest, ok := strings.CutPrefix(old, r.old)
		if !ok {
			continue
		}
		extension, name, ok := strings.Cut(rest, ".v2")
		if i := strings.LastIndexByte(name, '.'); ok && i >= 0 {
			if now := r.now + extension + ".v3" + name[i:]; knownToEnvoy(now) {
				return now
			}
		}
	}
	return ""
}

// movedPackages are where extensions went.
var movedPackages = []struct{ old, now string }{
	{"envoy.config.filter.", "envoy.extensions.filters."},
	{"envoy.config.transport_socket.", "envoy.extensions.transport_sockets."},
	{"envoy.config.retry.", "envoy.extensions.retry."},
	{"envoy.config.", "envoy.extensions."},
}

// previousName is the name that the API before had for a message, as its options tell.
func previousName(d protoreflect.MessageDescriptor) (name string) {
	o := d.Options()
	if o == nil || proto.Size(o) == 0 {
		return ""
	}
	o.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.FullName() != "udpa.annotations.versioning" {
			return true
		}
		m := v.Message()
		if p := m.Descriptor().Fields().ByName("previous_message_type"); p != nil {
			name = m.Get(p).String()
		}
		return false
	})
	return name
}
