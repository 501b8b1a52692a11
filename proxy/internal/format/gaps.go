package format

import "github.com/dragoman-proxy/dragoman/internal/gap"

var gaps = gap.Of("envoy.config.core.v3.SubstitutionFormatString", "json_format_options")

// Gaps are the fields that are refused.
func Gaps() []*gap.Table { return []*gap.Table{gaps} }
