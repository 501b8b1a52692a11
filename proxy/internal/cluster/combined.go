package cluster

import (
	"fmt"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

// combined refuses fields that Envoy does not take together, each in Envoy's words.
func combined(cfg *clusterv3.Cluster, d *Deps) error {
	var errs config.Errors
	refuse := func(path, msg string) { errs.Collect("", &config.Error{Path: path, Kind: config.Invalid, Msg: msg}) }
	common := cfg.GetCommonLbConfig()
	if cfg.GetLoadBalancingPolicy() != nil {
		if cfg.GetLbSubsetConfig() != nil {
			refuse("lb_subset_config", "cluster: load_balancing_policy cannot be combined with lb_subset_config")
		}
		if common.GetLocalityConfigSpecifier() != nil || common.GetConsistentHashingLbConfig() != nil {
			refuse("common_lb_config", "cluster: load_balancing_policy cannot be combined with partial fields (zone_aware_lb_config, locality_weighted_lb_config, "+
				"consistent_hashing_lb_config) of common_lb_config")
		}
	}
	if common.GetConsistentHashingLbConfig().GetUseHostnameForHashing() {
		if name := legacyTypeName(cfg); name != "envoy.cluster.strict_dns" {
			refuse("common_lb_config.consistent_hashing_lb_config.use_hostname_for_hashing",
				"Cannot use hostname for consistent hashing loadbalancing for cluster of type: '"+name+"'")
		}
	}
	typed := cfg.GetTypedExtensionProtocolOptions()[httpOptionsName] != nil
	if !typed && cfg.GetHttpProtocolOptions() != nil && cfg.GetHttp2ProtocolOptions() != nil && //nolint:staticcheck // deprecated, still read by Envoy
		cfg.GetProtocolSelection() == clusterv3.Cluster_USE_CONFIGURED_PROTOCOL { //nolint:staticcheck // the same
		refuse("http2_protocol_options", "cluster: Both HTTP1 and HTTP2 options may only be configured with non-default 'protocol_selection' values")
	}
	if d.LocalCluster != "" && cfg.GetName() == d.LocalCluster {
		for i, l := range cfg.GetLoadAssignment().GetEndpoints() {
			if l.GetPriority() != 0 {
				refuse(fmt.Sprintf("load_assignment.endpoints[%d].priority", i), "Unexpected non-zero priority for local cluster '"+cfg.GetName()+"'.")
			}
		}
	}
	return errs.Err()
}

// legacyTypeName is the extension that a type stands for, "" for a cluster_type.
func legacyTypeName(cfg *clusterv3.Cluster) string {
	if _, ok := cfg.GetClusterDiscoveryType().(*clusterv3.Cluster_ClusterType); ok {
		return ""
	}
	return "envoy.cluster." + strings.ToLower(cfg.GetType().String())
}
