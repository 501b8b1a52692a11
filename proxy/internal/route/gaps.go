package route

import "github.com/dragoman-proxy/dragoman/internal/gap"

// Routes come by the ten thousand: the code that reads them checks these itself.
var (
	configGaps = gap.Of("envoy.config.route.v3.RouteConfiguration", "!vhds", "!route_specifiers")
	hostGaps   = gap.Of("envoy.config.route.v3.VirtualHost", "!route_specifiers")
	routeGaps  = gap.Of("envoy.config.route.v3.Route", "!filter_action", "!route_specifiers")
	actionGaps = gap.Of("envoy.config.route.v3.RouteAction",
		"!cluster_specifier_plugin",
		"!inline_cluster_specifier_plugin",
		"!flush_timeout",
		"!upgrade_configs.connect_config",
	)
	retryGaps  = gap.Of("envoy.config.route.v3.RetryPolicy", "!retry_options_predicates")
	limitGaps  = gap.Of("envoy.config.route.v3.RateLimit.Action", "!extension", "!metadata.source=CLUSTER_LOCALITY_ENTRY")
	stringGaps = gap.Of("envoy.type.matcher.v3.StringMatcher", "!custom")
)

// Gaps are the fields that are refused.
func Gaps() []*gap.Table {
	return []*gap.Table{configGaps, hostGaps, routeGaps, actionGaps, retryGaps, limitGaps, stringGaps}
}
