package xds

import "github.com/dragoman-proxy/dragoman/internal/gap"

var sourceGaps = gap.Of("envoy.config.core.v3.ConfigSource",
	"!self",
	"authorities",
	"path_config_source.poll_interval",
	"~path_config_source.watched_directory.watch_modify (changes in place are always seen)",
	"~resource_api_version (there is V3 only)",
)

var (
	apiGaps = gap.Of("envoy.config.core.v3.ApiConfigSource",
		"api_type=REST",
		"config_validators",
		"~request_timeout (it is for REST)",
	)
	grpcGaps = gap.Of("envoy.config.core.v3.GrpcService",
		"google_grpc",
		"initial_metadata (with operators in values)",
		"~timeout (the streams of xDS have none)",
		"~retry_policy.retry_on (a stream that ends is always opened again)",
		"~retry_policy.num_retries (a stream that ends is always opened again)",
		"~retry_policy.retry_priority (a stream that ends is always opened again)",
		"~retry_policy.retry_host_predicate (a stream that ends is always opened again)",
		"~retry_policy.host_selection_retry_max_attempts (a stream that ends is always opened again)",
	)
	envoyGaps = gap.Of("envoy.config.core.v3.GrpcService.EnvoyGrpc", "retry_policy", "skip_envoy_headers=true")
)

// Gaps are the fields that are refused.
func Gaps() []*gap.Table { return []*gap.Table{sourceGaps, apiGaps, grpcGaps, envoyGaps} }
