package route

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// ClusterPolicies are what a cluster says in place of the routes of its requests. What is nil it leaves to them. Of Retry the timeouts do
// not count: they are the routes' alone.
type ClusterPolicies struct {
	Retry   *RetryPolicy
	Hash    *HashPolicy
	Mirrors []Mirror
}

// NewClusterPolicies compiles a cluster's policies, nil if it has none. The error names the field.
func NewClusterPolicies(o *httpv3.HttpProtocolOptions, d Deps) (*ClusterPolicies, error) {
	if o.RetryPolicy == nil && len(o.HashPolicy) == 0 && len(o.RequestMirrorPolicies) == 0 {
		return nil, nil
	}
	c := &compiler{Deps: d, rc: &routev3.RouteConfiguration{}}
	p := &ClusterPolicies{}
	var errs config.Errors
	var err error
	if o.RetryPolicy != nil {
		p.Retry, err = c.retry(o.RetryPolicy)
		errs.Collect("retry_policy", err)
	}
	if len(o.HashPolicy) > 0 {
		p.Hash, err = c.hashPolicy(o.HashPolicy)
		errs.Collect("hash_policy", err)
	}
	if len(o.RequestMirrorPolicies) > 0 {
		p.Mirrors, err = c.mirrorList(o.RequestMirrorPolicies)
		errs.Collect("request_mirror_policies", err)
	}
	return p, errs.Err()
}
