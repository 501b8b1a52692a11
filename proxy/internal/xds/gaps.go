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

// Gaps are the fields that are refused.
func Gaps() []*gap.Table { return []*gap.Table{sourceGaps} }
