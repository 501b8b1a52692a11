package xds

import "github.com/dragoman-proxy/dragoman/internal/gap"

var sourceGaps = gap.Of("envoy.config.core.v3.ConfigSource",
	"!api_config_source",
	"!ads",
	"!self",
	"authorities",
	"path_config_source.poll_interval",
	"~path_config_source.watched_directory.watch_modify (changes in place are always seen)",
	"~initial_fetch_timeout (files come at once)",
	"~resource_api_version (there is V3 only)",
)

// Of these messages only that much is read that mistakes in them are told: what holds them is refused as a whole.
var (
	apiGaps = gap.Of("envoy.config.core.v3.ApiConfigSource", "!config_validators", "!rate_limit_settings", "!request_timeout",
		"!set_node_on_first_message_only", "!transport_api_version")
	grpcGaps  = gap.Of("envoy.config.core.v3.GrpcService", "!google_grpc", "!initial_metadata", "!retry_policy", "!timeout")
	envoyGaps = gap.Of("envoy.config.core.v3.GrpcService.EnvoyGrpc", "!authority", "!max_receive_message_length", "!retry_policy",
		"!skip_envoy_headers")
)

// Gaps are the fields that are refused.
func Gaps() []*gap.Table { return []*gap.Table{sourceGaps, apiGaps, grpcGaps, envoyGaps} }
