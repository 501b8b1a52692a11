package server

import (
	"slices"

	"github.com/dragoman-proxy/dragoman/internal/gap"
	"github.com/dragoman-proxy/dragoman/proxy/internal/accesslog"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/hcm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/overload"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/secret"
	"github.com/dragoman-proxy/dragoman/proxy/internal/tcpproxy"
	"github.com/dragoman-proxy/dragoman/proxy/internal/tls"
)

var bootstrapGaps = gap.Of("envoy.config.bootstrap.v3.Bootstrap",
	"stats_sinks",
	"!cluster_manager.local_cluster_name",
	"!layered_runtime.layers.rtds_layer",
)

var listenerGaps = gap.Of("envoy.config.listener.v3.Listener",
	"udp_listener_config",
	"internal_listener",
	"api_listener",
	"filter_chain_matcher",
	"connection_balance_config.extend_balance",
	"!listener_filters.config_discovery",
	"!filter_chains.filters.config_discovery",
	"!address.envoy_internal_address",
)

var routerGaps = gap.Of(routerMessage, routerRefused...)

const routerMessage = "envoy.extensions.filters.http.router.v3.Router"

var routerRefused = []string{"upstream_http_filters"}

// Gaps are the fields of the engine's messages that are refused, by the tables of the packages that read them. The extensions have
// their own (ext.Info.Refused).
func Gaps() []*gap.Table {
	return slices.Concat([]*gap.Table{bootstrapGaps, listenerGaps, routerGaps}, cluster.Gaps(), route.Gaps(), hcm.Gaps(),
		tcpproxy.Gaps(), tls.Gaps(), secret.Gaps(), accesslog.Gaps(), overload.Gaps())
}
