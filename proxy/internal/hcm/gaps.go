package hcm

import "github.com/dragoman-proxy/dragoman/internal/gap"

var gaps = gap.Of("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
	"codec_type=HTTP3",
	"tracing.provider",
	"request_id_extension (other than UuidRequestIdConfig)",
	"scoped_routes.scoped_rds.srds_resources_locator",
	"typed_header_validation_config (Envoy as it is released refuses it too)",
	"add_proxy_protocol_connection_state=false",
	"http2_protocol_options.max_header_field_size_kb",
	"http2_protocol_options.stream_reset_rate",
	"http2_protocol_options.stream_reset_burst",
	"~http2_protocol_options.max_metadata_size (allow_metadata is refused)",
	"~http2_protocol_options.disallow_obs_text (such bytes are what Envoy makes of them by default)",
	"~http2_protocol_options.enable_huffman_encoding (the shorter form of a value is sent)",
	"~http2_protocol_options.use_oghttp2_codec (there is one codec)",
	"~http_protocol_options.use_balsa_parser (there is one parser)",
	"~http3_protocol_options (there is no HTTP/3)",
	"~path_normalization_options (Envoy does not implement it either)",
	"~tracing.custom_tags (no spans are written yet)",
	"~tracing.max_path_tag_length (no spans are written yet)",
	"~tracing.no_context_propagation (no spans are written yet)",
	"~tracing.operation (no spans are written yet)",
	"~tracing.spawn_upstream_span (no spans are written yet)",
	"~tracing.upstream_operation (no spans are written yet)",
	"~tracing.verbose (no spans are written yet)",
	"!http_filters.config_discovery",
	"!upgrade_configs.filters.config_discovery",
)

// Gaps are the fields that are refused.
func Gaps() []*gap.Table { return []*gap.Table{gaps} }
