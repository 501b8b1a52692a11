package cluster

import "github.com/dragoman-proxy/dragoman/internal/gap"

var clusterGaps = gap.Of("envoy.config.cluster.v3.Cluster",
	"transport_socket_matcher",
	"stats_matcher",
	"per_connection_buffer_high_watermark_timeout",
	"health_checks (more than one)",
	"outlier_detection",
	"lb_subset_config.subset_selectors",
	"~lb_subset_config.default_subset (it is about subset_selectors)",
	"~lb_subset_config.fallback_policy (it is about subset_selectors)",
	"~lb_subset_config.list_as_any (it is about subset_selectors)",
	"~lb_subset_config.locality_weight_aware (it is about subset_selectors)",
	"~lb_subset_config.metadata_fallback_policy (it is about subset_selectors)",
	"~lb_subset_config.panic_mode_any (it is about subset_selectors)",
	"~lb_subset_config.scale_locality_weight (it is about subset_selectors)",
	"filters",
	"lrs_server",
	"lrs_report_endpoint_metrics",
	"upstream_config",
	"preconnect_policy.preconnect_enabled_metadata",
	"connection_pool_per_downstream_connection",
	"queuing_policies",
	"track_timeout_budgets",
	"track_cluster_stats",
	"common_lb_config.override_host_status",
	"upstream_connection_options.set_local_interface_name_on_upstream_connections=true",
	"cluster_type (other than static, strict_dns, logical_dns, dns, eds and original_dst)",
	"transport_socket (other than raw_buffer and tls)",
	"typed_extension_protocol_options (other than HttpProtocolOptions)",
	"typed_dns_resolver_config (other than c-ares and getaddrinfo)",
	"!round_robin_lb_config.slow_start_config",
	"!least_request_lb_config.slow_start_config",
)

var healthGaps = gap.Of("envoy.config.core.v3.HealthCheck",
	"custom_health_check",
	"event_logger (other than envoy.health_check.event_sink.file)",
	"event_service",
	"~alt_port (Envoy makes no use of it either)",
	"tls_options.alpn_protocols",
	"transport_socket_match_criteria",
	"http_health_check.use_alpn_protocol=true",
	"http_health_check.codec_client_type=HTTP3",
	"tcp_health_check.proxy_protocol_config",
)

var bindGaps = gap.Of("envoy.config.core.v3.BindConfig",
	"freebind=true",
	"extra_source_addresses",
	"additional_source_addresses",
	"local_address_selector",
	"validate_network_namespaces",
	"socket_options.type",
	"socket_options.ip_version",
	"~socket_options.description (it is for readers)",
)

var protocolGaps = gap.Of("envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
	"!http_filters.config_discovery",
	"header_validation_config",
	"outlier_detection",
	"explicit_http_config.http3_protocol_options",
	"auto_config.http3_protocol_options",
	"~auto_config.alternate_protocols_cache_options (it is for HTTP/3)",
	"~use_downstream_protocol_config.http3_protocol_options (listeners have no HTTP/3)",
	"~common_http_protocol_options.max_connection_duration_jitter (Envoy makes no use of it in clusters either)",
	"explicit_http_config.http_protocol_options.header_key_format.stateful_formatter (other than preserve_case)",
	"!explicit_http_config.http2_protocol_options.allow_metadata",
	"!explicit_http_config.http2_protocol_options.custom_settings_parameters",
)

var caresGaps = gap.Of("envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig",
	"use_resolvers_as_fallback (with resolvers)",
	"filter_unroutable_families",
	"rotate_nameservers",
	"edns0_max_payload_size",
	"qcache_max_ttl",
	"~udp_max_queries (each question has a socket of its own)",
	"~max_udp_channel_duration (each question has a socket of its own)",
	"~reinit_channel_on_timeout (each question has a socket of its own)",
)

// Endpoints come by the ten thousand: the code that reads them checks these itself.
var assignmentGaps = gap.Of("envoy.config.endpoint.v3.ClusterLoadAssignment",
	"~endpoints.proximity (Envoy makes no use of it either)",
	"!policy.drop_overloads",
	"!policy.endpoint_stale_after",
	"!named_endpoints",
	"!endpoints.load_balancer_endpoints",
	"!endpoints.leds_cluster_locality_config",
	"!endpoints.lb_endpoints.endpoint_name",
	"!endpoints.lb_endpoints.endpoint.observability_name",
	"!endpoints.lb_endpoints.endpoint.address.envoy_internal_address",
	"!endpoints.lb_endpoints.endpoint.address.socket_address.protocol=UDP",
	"!endpoints.lb_endpoints.endpoint.address.socket_address.named_port",
	"!endpoints.lb_endpoints.endpoint.address.socket_address.network_namespace_filepath",
	"endpoints.lb_endpoints.endpoint.address.socket_address.resolver_name (other than envoy.ip)",
)

// The policies of load_balancing_policy.
var policyGaps = []*gap.Table{
	gap.Of("envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin", "!slow_start_config"),
	gap.Of("envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest", "!slow_start_config"),
	gap.Of("envoy.extensions.load_balancing_policies.ring_hash.v3.RingHash", "!consistent_hashing_lb_config.hash_policy"),
	gap.Of("envoy.extensions.load_balancing_policies.maglev.v3.Maglev", "!consistent_hashing_lb_config.hash_policy"),
}

// Gaps are the fields that are refused.
func Gaps() []*gap.Table {
	return append([]*gap.Table{clusterGaps, healthGaps, bindGaps, protocolGaps, caresGaps, assignmentGaps}, policyGaps...)
}
