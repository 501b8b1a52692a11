package route

import "github.com/dragoman-proxy/dragoman/internal/gap"

// Routes come by the ten thousand: the code that reads them checks these itself.
var (
	configGaps = gap.Of("envoy.config.route.v3.RouteConfiguration", "!vhds", "!route_specifiers",
		"~metadata (nothing asks for it)")
	hostGaps  = gap.Of("envoy.config.route.v3.VirtualHost", "!route_specifiers")
	routeGaps = gap.Of("envoy.config.route.v3.Route", "!filter_action", "!route_specifiers",
		"~tracing.custom_tags (no spans are written yet)", "~tracing.operation (no spans are written yet)", "~tracing.upstream_operation (no spans are written yet)")
	actionGaps = gap.Of("envoy.config.route.v3.RouteAction",
		"~metadata_match (no cluster has subsets)",
		"early_data_policy (another than the default one)",
		"!upgrade_configs.connect_config.proxy_protocol_config",
		"!upgrade_configs.connect_config (of CONNECT-UDP)",
	)
	retryGaps  = gap.Of("envoy.config.route.v3.RetryPolicy", "!retry_options_predicates (Envoy has no extension for it either)")
	limitGaps  = gap.Of("envoy.config.route.v3.RateLimit.Action", "!extension", "!metadata.source=CLUSTER_LOCALITY_ENTRY")
	weightGaps = gap.Of("envoy.config.route.v3.WeightedCluster", "~clusters.metadata_match (no cluster has subsets)",
		"~total_weight (the weights' sum is taken)")
	hedgeGaps = gap.Of("envoy.config.route.v3.HedgePolicy", "~initial_requests (Envoy does not implement it either)",
		"~additional_request_chance (Envoy does not implement it either)")
	mirrorGaps = gap.Of("envoy.config.route.v3.RouteAction.RequestMirrorPolicy", "~trace_sampled (no spans are written yet)")
	scopeGaps  = gap.Of("envoy.config.route.v3.ScopedRouteConfiguration", "!on_demand", "~name (scopes are told apart by their keys)")
	stringGaps = gap.Of("envoy.type.matcher.v3.StringMatcher", "!custom")
)

// Gaps are the fields that are refused.
func Gaps() []*gap.Table {
	return []*gap.Table{configGaps, hostGaps, routeGaps, actionGaps, retryGaps, limitGaps, weightGaps, hedgeGaps, mirrorGaps, scopeGaps, stringGaps}
}
