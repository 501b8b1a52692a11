package server

import (
	"slices"

	"github.com/dragoman-proxy/dragoman/internal/gap"
	"github.com/dragoman-proxy/dragoman/proxy/internal/accesslog"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/hcm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/overload"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/secret"
	"github.com/dragoman-proxy/dragoman/proxy/internal/tcpproxy"
	"github.com/dragoman-proxy/dragoman/proxy/internal/tls"
	"github.com/dragoman-proxy/dragoman/proxy/internal/xds"
)

var bootstrapGaps = gap.Of("envoy.config.bootstrap.v3.Bootstrap",
	"admin.socket_options",
	"~admin.ignore_global_conn_limit (the admin listener never counts)",
	"bootstrap_extensions",
	"certificate_provider_instances",
	"cluster_manager.load_stats_config",
	"~cluster_manager.outlier_detection.event_service (no host is ejected yet)",
	"~cluster_manager.enable_deferred_cluster_creation (what a cluster needs on a worker is always made when it is used first)",
	"config_sources",
	"default_config_source",
	"default_socket_interface",
	"dns_resolution_config",
	"dynamic_resources.cds_resources_locator",
	"dynamic_resources.lds_resources_locator",
	"fatal_actions",
	"hds_config",
	"header_prefix (another than x-envoy)",
	"layered_runtime.layers.rtds_layer.rtds_config.path",
	"!layered_runtime.layers.rtds_layer.rtds_config.path_config_source",
	"listener_manager",
	"stats_config.allow_default_tag_overrides=true",
	"stats_server_version_override",
	"stats_sinks",
	"tracing",
	"typed_dns_resolver_config",
	"use_tcp_for_dns_lookups=true",
	"xds_config_tracker_extension",
	"xds_delegate_extension",
	"default_regex_engine (another than GoogleRE2)",
	"~deferred_stat_options.enable_deferred_creation_stats (the statistics of clusters are there from the start, at zero)",
	"~enable_dispatcher_stats (the event loops' passes are shown by /dragoman/passes)",
	"~enable_worker_cpu_affinity (the kernel places the workers)",
	"~flags_path (no code asks for flags)",
	"~grpc_async_client_manager_config (a client needs no cache)",
	"~inline_headers (every header is found as fast)",
	"~memory_allocator_manager (the Go runtime's allocator is another)",
	"~node_context_params (there are no xdstp names)",
	"~perf_tracing_file_path (only special builds of Envoy have it)",
	"~stats_config.histogram_bucket_settings.bins (histograms grow as they need)",
	"~stats_eviction_interval (stats go when nothing has them any more)",
	"~watchdogs.main_thread_watchdog.actions.event"+watchdogReason,
	"~watchdogs.main_thread_watchdog.kill_timeout"+watchdogReason,
	"~watchdogs.main_thread_watchdog.max_kill_timeout_jitter"+watchdogReason,
	"~watchdogs.main_thread_watchdog.multikill_timeout"+watchdogReason,
	"~watchdogs.main_thread_watchdog.multikill_threshold"+watchdogReason,
)

const watchdogReason = " (a loop that hangs is logged, and ends nothing)"

var listenerGaps = gap.Of("envoy.config.listener.v3.Listener",
	"address.socket_address.protocol=UDP",
	"~udp_listener_config.downstream_socket_config (it is for listeners of UDP)",
	"~udp_listener_config.udp_packet_packet_writer_config (it is for listeners of UDP)",
	"internal_listener",
	"api_listener",
	"fcds_config",
	"enable_mptcp=true",
	"stats_matcher",
	"per_connection_buffer_high_watermark_timeout",
	"connection_balance_config.extend_balance",
	"connection_balance_config.cpu_locality_balance",
	"additional_addresses.tcp_keepalive",
	"filter_chains.use_proxy_proto=true",
	"default_filter_chain.use_proxy_proto=true",
	"socket_options.type",
	"socket_options.ip_version",
	"~socket_options.description (it is for readers)",
	"~filter_chains.metadata (nothing asks for it)",
	"~reuse_port (enable_reuse_port has taken its place)",
	"!listener_filters.config_discovery",
	"!filter_chains.filters.config_discovery",
	"!address.envoy_internal_address",
)

// What is common to many messages, and checked with each.
var commonGaps = []*gap.Table{
	gap.Of("envoy.config.core.v3.HeaderValue", "~raw_value (Envoy does not read it either)"),
	gap.Of("envoy.type.metadata.v3.MetadataKey", "~path.index (it finds nothing)"),
	gap.Of("envoy.extensions.matching.input_matchers.ip.v3.Ip", "~stat_prefix (there is nothing to count)"),
	gap.Of("envoy.config.core.v3.Metadata", "~typed_filter_metadata (nothing asks for it)"),
	gap.Of("envoy.config.core.v3.RuntimeDouble", "~runtime_key (its default_value holds)"),
	gap.Of("envoy.type.matcher.v3.RegexMatcher", "~google_re2 (there is no other engine)"),
}

var routerGaps = gap.Of(routerMessage, routerRefused...)

const routerMessage = "envoy.extensions.filters.http.router.v3.Router"

var routerRefused = []string{
	"!upstream_http_filters.config_discovery",
	"reject_connect_request_early_data=true",
	"~start_child_span (no spans are written yet)",
}

// Gaps are the fields of the engine's messages that are refused, by the tables of the packages that read them. The extensions have
// their own (ext.Info.Refused).
func Gaps() []*gap.Table {
	return slices.Concat([]*gap.Table{bootstrapGaps, listenerGaps, routerGaps}, commonGaps, cluster.Gaps(), route.Gaps(), hcm.Gaps(),
		tcpproxy.Gaps(), tls.Gaps(), secret.Gaps(), accesslog.Gaps(), overload.Gaps(), xds.Gaps(), format.Gaps())
}
