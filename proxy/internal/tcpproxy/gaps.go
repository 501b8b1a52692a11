package tcpproxy

import "github.com/dragoman-proxy/dragoman/internal/gap"

var gaps = gap.Of("envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
	"tunneling_config",
	"on_demand",
	"metadata_match",
	"proxy_protocol_tlvs",
	"weighted_clusters.clusters.metadata_match",
	"hash_policy.filter_state",
	"backoff_options",
	"check_drain_close=true",
	"downstream_idle_timeout",
	"upstream_idle_timeout",
	"~proxy_protocol_tlv_merge_policy (proxy_protocol_tlvs is refused)",
)

// Gaps are the fields that are refused.
func Gaps() []*gap.Table { return []*gap.Table{gaps} }
