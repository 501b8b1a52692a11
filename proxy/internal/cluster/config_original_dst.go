package cluster

import (
	"errors"
	"hash/maphash"
	"strings"

	"google.golang.org/protobuf/types/known/anypb"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	originaldstv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/clusters/original_dst/v3"
	providedv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/cluster_provided/v3"
)

// originalDstHeader is http_header_name.
const originalDstHeader = "x-envoy-original-dst-host"

// originalDstType checks what goes with the type, which cfg names in one way or the other.
func originalDstType(cfg *clusterv3.Cluster, name string) (Type, error) {
	if p := cfg.GetLbPolicy(); p != clusterv3.Cluster_CLUSTER_PROVIDED {
		return noType, rejected("lb_policy", "cluster: LB policy "+p.String()+
			" is not valid for Cluster type "+name+". Only 'CLUSTER_PROVIDED' is allowed with cluster type 'ORIGINAL_DST'")
	}
	return OriginalDST, nil
}

// isOriginalDst tells whether a is the configuration of the extension, which says nothing.
func isOriginalDst(a *anypb.Any) bool { return config.Holds(a, &originaldstv3.OriginalDstCluster{}) }

// provided is the policy of clusters that find hosts for themselves: their tables are for pages and gauges.
type provided struct{}

// Build implements lb.Policy.
func (provided) Build([]*host.Host, int) lb.Balancer { return provided{} }

// Pick implements lb.Balancer.
func (provided) Pick(*lb.Context) *host.Host { return nil }

// isProvided tells whether a is the policy of that kind.
func isProvided(a *anypb.Any) bool { return config.Holds(a, &providedv3.ClusterProvided{}) }

// checkProvided compares what is configured with what the type brings.
func checkProvided(cfg *clusterv3.Cluster, o *Options) error {
	_, is := o.LB.Policy.(provided)
	switch {
	case o.Type == noType || is == (o.Type == OriginalDST):
		return nil
	case is:
		return errors.New("cluster manager: cluster provided LB specified but cluster '" + cfg.GetName() +
			"' did not provide one. Check cluster documentation.")
	}
	return errors.New("cluster manager: cluster provided LB not specified but cluster '" + cfg.GetName() +
		"' provided one. Check cluster documentation.")
}

// newOriginalDst makes what the cluster c has of its own.
func newOriginalDst(c *Cluster, cfg *clusterv3.Cluster, d *Deps) (*originalDst, error) {
	x := cfg.GetOriginalDstLbConfig()
	o := &originalDst{c: c, d: d, seed: maphash.MakeSeed(), opt: DstOptions{Cleanup: duration(cfg.GetCleanupInterval(), DefaultCleanupInterval)}}
	if n := x.GetHttpHeaderName(); x.GetUseHttpHeader() {
		o.opt.Header = originalDstHeader
		if n != "" {
			o.opt.Header = strings.ToLower(n)
		}
		o.header = http.Lookup(o.opt.Header)
	} else if n != "" {
		return nil, rejected("original_dst_lb_config.http_header_name", "ORIGINAL_DST cluster: invalid config http_header_name="+n+
			" and use_http_header is false. Set use_http_header to true if http_header_name is desired.")
	}
	if p := x.GetUpstreamPortOverride(); p != nil {
		o.opt.Port, o.opt.HasPort = uint16(p.GetValue()), true
	}
	o.opt.Namespace = x.GetMetadataKey().GetKey()
	for _, s := range x.GetMetadataKey().GetPath() {
		o.opt.Path = append(o.opt.Path, s.GetKey())
	}
	o.sweeper.Fn, o.shower.Fn = o.sweep, func() { o.show(nil) }
	return o, nil
}
