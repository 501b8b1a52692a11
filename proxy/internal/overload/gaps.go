package overload

import "github.com/dragoman-proxy/dragoman/internal/gap"

var gaps = gap.Of("envoy.config.overload.v3.OverloadManager",
	"resource_monitors (other than envoy.resource_monitors.global_downstream_max_connections)",
	"actions",
	"loadshed_points",
	"buffer_factory_config",
	"~refresh_interval (no monitor needs to be asked)",
)

// Gaps are the fields that are refused.
func Gaps() []*gap.Table { return []*gap.Table{gaps} }
