package hcm

import "github.com/dragoman-proxy/dragoman/internal/gap"

var gaps = gap.Of("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
	"codec_type=HTTP3",
	"tracing",
	"scoped_routes",
	"request_id_extension (other than UuidRequestIdConfig)",
	"forward_client_cert_matcher",
	"record_route_resolution_stats",
	"typed_header_validation_config",
	"!http_filters.config_discovery",
	"!upgrade_configs.filters.config_discovery",
)

// Gaps are the fields that are refused.
func Gaps() []*gap.Table { return []*gap.Table{gaps} }
