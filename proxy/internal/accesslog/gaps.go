package accesslog

import "github.com/dragoman-proxy/dragoman/internal/gap"

var filterGaps = gap.Of("envoy.config.accesslog.v3.AccessLogFilter", "!traceable_filter", "!extension_filter")

// Gaps are the fields that are refused.
func Gaps() []*gap.Table { return []*gap.Table{filterGaps} }
