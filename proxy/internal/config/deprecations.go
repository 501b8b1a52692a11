package config

import (
	"strings"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// deprecated tells of a deprecated field: shortly, and in Envoy's words.
func (e *encoder) deprecated(c yamlpos.Node, f *field) {
	name := string(f.desc.FullName())
	x := Error{Kind: Deprecated, Msg: "'" + f.name + "' is deprecated: Envoy is to lose it"}
	if now := replacements[name]; now != "" {
		x.Msg = "'" + f.name + "' is deprecated: " + now
	}
	said := saidOfDeprecated(f.desc)
	e.note(func(x *Error) { e.opts.OnDeprecated(x, said) }, c, e.tree.KeyPos, x)
}

// saidOfDeprecated is what Envoy logs of a field.
func saidOfDeprecated(fd protoreflect.FieldDescriptor) string {
	file := fd.ParentFile().Path()
	return "Deprecated field: type " + string(fd.ContainingMessage().FullName()) + " Using deprecated option '" + string(fd.FullName()) +
		"' from file " + file[strings.LastIndexByte(file, '/')+1:] + ". This configuration will be removed from Envoy soon."
}

// replacements say what to do about deprecated fields, as far as there is more to do than to leave them out.
var replacements = map[string]string{
	bootstrapMessage + "Admin.access_log_path":             "set access_log",
	bootstrapMessage + "Bootstrap.dns_resolution_config":   "set typed_dns_resolver_config",
	bootstrapMessage + "Bootstrap.tracing":                 "set tracing.provider of the http_connection_manager",
	bootstrapMessage + "Bootstrap.use_tcp_for_dns_lookups": "set typed_dns_resolver_config",
	bootstrapMessage + "Bootstrap.watchdog":                "set watchdogs",

	clusterMessage + "common_http_protocol_options":   httpOptions,
	clusterMessage + "http_protocol_options":          httpOptions,
	clusterMessage + "http2_protocol_options":         httpOptions,
	clusterMessage + "upstream_http_protocol_options": httpOptions,
	clusterMessage + "protocol_selection":             httpOptions,
	clusterMessage + "max_requests_per_connection":    httpOptions,
	clusterMessage + "dns_failure_refresh_rate":       dnsCluster,
	clusterMessage + "dns_jitter":                     dnsCluster,
	clusterMessage + "dns_refresh_rate":               dnsCluster,
	clusterMessage + "respect_dns_ttl":                dnsCluster,
	clusterMessage + "dns_resolution_config":          "set typed_dns_resolver_config",
	clusterMessage + "dns_resolvers":                  "set typed_dns_resolver_config",
	clusterMessage + "use_tcp_for_dns_lookups":        "set typed_dns_resolver_config",
	clusterMessage + "track_timeout_budgets":          "set timeout_budgets in track_cluster_stats",

	coreMessage + "BindConfig.additional_source_addresses":                      "set extra_source_addresses",
	coreMessage + "ConfigSource.path":                                           "set path_config_source",
	coreMessage + "HeaderValueOption.append":                                    "set append_action",
	coreMessage + "HealthCheck.event_log_path":                                  "set event_logger",
	coreMessage + "Http1ProtocolOptions.use_balsa_parser":                       noEffect,
	coreMessage + "Http2ProtocolOptions.stream_error_on_invalid_http_messaging": "set override_stream_error_on_invalid_http_message",
	coreMessage + "JsonFormatOptions.sort_properties":                           noEffect,
	coreMessage + "SubstitutionFormatString.text_format":                        "set text_format_source: {inline_string: ...}",

	"envoy.config.listener.v3.FilterChain.use_proxy_proto": "add the listener filter envoy.filters.listener.proxy_protocol",
	"envoy.config.listener.v3.Listener.deprecated_v1":      "set bind_to_port",
	"envoy.config.listener.v3.Listener.reuse_port":         "set enable_reuse_port",

	routeMessage + "HeaderMatcher.contains_match":               "set string_match: {contains: ...}",
	routeMessage + "HeaderMatcher.exact_match":                  "set string_match: {exact: ...}",
	routeMessage + "HeaderMatcher.prefix_match":                 "set string_match: {prefix: ...}",
	routeMessage + "HeaderMatcher.safe_regex_match":             "set string_match: {safe_regex: ...}",
	routeMessage + "HeaderMatcher.suffix_match":                 "set string_match: {suffix: ...}",
	routeMessage + "RateLimit.Action.dynamic_metadata":          "set metadata",
	routeMessage + "Route.per_request_buffer_limit_bytes":       "set request_body_buffer_limit",
	routeMessage + "VirtualHost.per_request_buffer_limit_bytes": "set request_body_buffer_limit",
	routeMessage + "RouteAction.cors":                           corsConfig,
	routeMessage + "VirtualHost.cors":                           corsConfig,
	routeMessage + "RouteAction.grpc_timeout_offset":            "set grpc_timeout_header_offset in max_stream_duration",
	routeMessage + "RouteAction.max_grpc_timeout":               "set grpc_timeout_header_max in max_stream_duration",
	routeMessage + "RouteAction.include_vh_rate_limits":         "set vh_rate_limits of the rate limit filter in typed_per_filter_config",
	routeMessage + "RouteAction.internal_redirect_action":       "set internal_redirect_policy",
	routeMessage + "RouteAction.max_internal_redirects":         "set internal_redirect_policy",
	routeMessage + "WeightedCluster.total_weight":               "the weights are added up without it",

	"envoy.config.tap.v3.TapConfig.match_config":                      "set match",
	"envoy.config.trace.v3.LightstepConfig.access_token_file":         "set access_token",
	"envoy.config.trace.v3.ZipkinConfig.split_spans_for_request":      spawnSpan,
	"envoy.extensions.filters.http.router.v3.Router.start_child_span": spawnSpan,

	fileLog + "format":            "set log_format: {text_format_source: ...}",
	fileLog + "json_format":       "set log_format: {json_format: ...}",
	fileLog + "typed_json_format": "set log_format: {json_format: ...}",

	networkFilter + "http_connection_manager.v3.HttpConnectionManager.access_log_flush_interval":       "set access_log_options",
	networkFilter + "http_connection_manager.v3.HttpConnectionManager.flush_access_log_on_new_request": "set access_log_options",
	networkFilter + "tcp_proxy.v3.TcpProxy.access_log_flush_interval":                                  "set access_log_options",
	networkFilter + "tcp_proxy.v3.TcpProxy.flush_access_log_on_connected":                              "set access_log_options",

	lbPolicy + "least_request.v3.LeastRequest.enable_full_scan": "set selection_method: FULL_SCAN",
	lbPolicy + "ring_hash.v3.RingHash.hash_balance_factor":      "set it in consistent_hashing_lb_config",
	lbPolicy + "ring_hash.v3.RingHash.use_hostname_for_hashing": "set it in consistent_hashing_lb_config",

	tlsMessage + "CertificateValidationContext.match_subject_alt_names":                                                   "set match_typed_subject_alt_names",
	tlsMessage + "CommonTlsContext.CombinedCertificateValidationContext.validation_context_certificate_provider":          caProvider,
	tlsMessage + "CommonTlsContext.CombinedCertificateValidationContext.validation_context_certificate_provider_instance": caProvider,
	tlsMessage + "CommonTlsContext.validation_context_certificate_provider":                                               caProvider,
	tlsMessage + "CommonTlsContext.validation_context_certificate_provider_instance":                                      caProvider,
	tlsMessage + "CommonTlsContext.tls_certificate_certificate_provider":                                                  "set tls_certificate_provider_instance",
	tlsMessage + "CommonTlsContext.tls_certificate_certificate_provider_instance":                                         "set tls_certificate_provider_instance",
	tlsMessage + "UpstreamTlsContext.enforce_rsa_key_usage":                                                               noEffect,

	"envoy.type.matcher.v3.RegexMatcher.google_re2":                 "RE2 is meant without it",
	"envoy.type.matcher.v3.RegexMatcher.GoogleRE2.max_program_size": "the runtime key re2.max_program_size.error_level is a bound",
}

// Where deprecated fields are, and what is said of more than one of them.
const (
	bootstrapMessage = "envoy.config.bootstrap.v3."
	clusterMessage   = "envoy.config.cluster.v3.Cluster."
	coreMessage      = "envoy.config.core.v3."
	routeMessage     = "envoy.config.route.v3."
	fileLog          = "envoy.extensions.access_loggers.file.v3.FileAccessLog."
	networkFilter    = "envoy.extensions.filters.network."
	lbPolicy         = "envoy.extensions.load_balancing_policies."
	tlsMessage       = "envoy.extensions.transport_sockets.tls.v3."

	httpOptions = "set it in typed_extension_protocol_options, under envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	dnsCluster  = "set it in a cluster_type of envoy.extensions.clusters.dns.v3.DnsCluster"
	corsConfig  = "set it in typed_per_filter_config, under envoy.filters.http.cors"
	spawnSpan   = "set spawn_upstream_span in tracing of the http_connection_manager"
	caProvider  = "set ca_certificate_provider_instance in validation_context"
	noEffect    = "leave it out, it has no effect"
)
