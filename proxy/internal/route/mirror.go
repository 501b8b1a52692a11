package route

import (
	"errors"
	"fmt"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/dragoman-proxy/dragoman/api/http"
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

// mirrors compiles the policies that apply: the route's own, or the virtual host's, or those of the whole configuration.
func (c *compiler) mirrors(vh *routev3.VirtualHost, a *routev3.RouteAction) ([]Mirror, error) {
	list := a.RequestMirrorPolicies
	if len(list) == 0 {
		list = vh.RequestMirrorPolicies
	}
	if len(list) == 0 {
		list = c.rc.RequestMirrorPolicies
	}
	var out []Mirror
	for i, p := range list {
		m, err := c.mirror(p)
		if err != nil {
			return nil, fmt.Errorf("request_mirror_policies[%d]: %w", i, err)
		}
		out = append(out, m)
	}
	return out, nil
}

func (c *compiler) mirror(p *routev3.RouteAction_RequestMirrorPolicy) (m Mirror, err error) {
	switch {
	case p.Cluster != "" && p.ClusterHeader != "":
		return m, fmt.Errorf("Only one of cluster '%s' or cluster_header '%s' in request mirror policy can be specified", //nolint:staticcheck // Envoy's text
			p.Cluster, p.ClusterHeader)
	case p.Cluster == "" && p.ClusterHeader == "":
		return m, errors.New("Exactly one of cluster or cluster_header need to be specified") //nolint:staticcheck // Envoy's text
	case p.Cluster != "" && c.validate && !c.Exists(p.Cluster):
		return m, fmt.Errorf("route: unknown shadow cluster '%s'", p.Cluster)
	}
	m = Mirror{Name: p.Cluster, Header: strings.ToLower(p.ClusterHeader), Host: p.HostRewriteLiteral,
		KeepHost: p.DisableShadowHostSuffixAppend, fraction: c.fraction(p.RuntimeFraction)}
	if len(p.RequestHeadersMutations) > 0 {
		m.Headers, err = HeaderMutations(p.RequestHeadersMutations, c.Format)
	}
	return m, err
}
