package route

import (
	"errors"
	"fmt"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// Mirror sends copies of requests to another cluster.
type Mirror struct {
	// Name is the cluster's, or Header names the request header that says it.
	Name, Header string
	// Host replaces the copy's host, if it is set. Otherwise "-shadow" is added to it, unless KeepHost.
	Host     string
	KeepHost bool
	// Headers changes the copy; nil: not.
	Headers  *Mutations
	fraction *fraction // nil: all requests
}

// Cluster returns the name of the cluster that a copy of a request goes to, "" if the request names none.
func (m *Mirror) Cluster(h *http.HeaderMap) string {
	if m.Header == "" {
		return m.Name
	}
	name, _ := h.GetName(m.Header)
	return name
}

// Wants tells whether a request is copied. random is one number for all mirrors of the request.
func (m *Mirror) Wants(rt RuntimeReader, random uint64) bool {
	return m.fraction == nil || m.fraction.hit(&Request{Random: random, Runtime: rt})
}

// mirrors are the policies that apply: the route's own, or the virtual host's, or those of the whole configuration. Clusters must
// exist of those that a route makes use of.
func (c *compiler) mirrors(h *hostBuilder, a *routev3.RouteAction) (list []Mirror, err error) {
	var errs config.Errors
	switch {
	case len(a.RequestMirrorPolicies) > 0:
		list, err = c.mirrorList(a.RequestMirrorPolicies)
		errs.Collect("", err)
	case len(h.vh.RequestMirrorPolicies) > 0:
		list = h.mirrors
	default:
		list = c.all.mirrors
	}
	if !c.validate {
		return list, errs.Err()
	}
	for i := range list {
		if n := list[i].Name; n != "" && !c.Exists(n) {
			errs.Collect(fmt.Sprintf("[%d].cluster", i), c.noCluster("shadow cluster", n))
		}
	}
	return list, errs.Err()
}

// mirrorList compiles policies; a wrong one is in the list, too, without a cluster.
func (c *compiler) mirrorList(list []*routev3.RouteAction_RequestMirrorPolicy) ([]Mirror, error) {
	var out []Mirror
	var errs config.Errors
	for i, p := range list {
		m, err := c.mirror(p)
		errs.Collect(fmt.Sprintf("[%d]", i), err)
		out = append(out, m)
	}
	return out, errs.Err()
}

func (c *compiler) mirror(p *routev3.RouteAction_RequestMirrorPolicy) (m Mirror, err error) {
	switch {
	case p.Cluster != "" && p.ClusterHeader != "":
		return m, fmt.Errorf("Only one of cluster '%s' or cluster_header '%s' in request mirror policy can be specified", //nolint:staticcheck // Envoy's text
			p.Cluster, p.ClusterHeader)
	case p.Cluster == "" && p.ClusterHeader == "":
		return m, errors.New("Exactly one of cluster or cluster_header in request mirror policy need to be specified") //nolint:staticcheck // Envoy's text
	}
	m = Mirror{Name: p.Cluster, Header: strings.ToLower(p.ClusterHeader), Host: p.HostRewriteLiteral,
		KeepHost: p.DisableShadowHostSuffixAppend, fraction: c.fraction(p.RuntimeFraction)}
	if len(p.RequestHeadersMutations) > 0 {
		m.Headers, err = HeaderMutations(p.RequestHeadersMutations, c.Format)
	}
	return m, config.At("request_headers_mutations", err)
}
