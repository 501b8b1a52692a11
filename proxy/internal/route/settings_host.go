package route

import (
	"errors"
	"fmt"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/anypb"

	aroute "github.com/dragoman-proxy/dragoman/api/route"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
)

// virtualHost compiles vh, whose name is name.
func (c *compiler) virtualHost(t *Table, vh *routev3.VirtualHost, name string) (*VirtualHost, error) {
	v := &VirtualHost{Name: name, ignoreParams: t.IgnoreParams, externalOnly: vh.RequireTls == routev3.VirtualHost_EXTERNAL_ONLY}
	if vh.RequireTls != routev3.VirtualHost_NONE {
		v.toTLS = &Entry{VHost: name, Kind: Redirect, Extras: &Extras{RedirectTo: &RedirectAction{Code: 301, Plain: true}}}
	}
	h := &hostBuilder{c: c, t: t, vh: vh, name: name}
	if err := h.build(v); err != nil {
		release(h.held)
		return nil, err
	}
	v.held = h.held
	return v, nil
}

// build compiles what v does with requests.
func (h *hostBuilder) build(v *VirtualHost) error {
	c, vh := h.c, h.vh
	var errs config.Errors
	var err error
	h.meta, err = plainMetadata(vh.Metadata)
	errs.Collect("metadata", err)
	if len(vh.RouteSpecifiers) > 0 {
		errs.Collect("route_specifiers", errNotYet)
	}
	h.limits, err = RateLimits(vh.RateLimits, c.Format, c.formats())
	errs.Collect("", err)
	h.clusters, err = h.virtualClusters()
	errs.Collect("virtual_clusters", err)
	h.sharedLevel, err = c.shared(vh)
	errs.Collect("", err)
	h.cors, err = c.cors(vh.Cors) //nolint:staticcheck // deprecated and still accepted
	errs.Collect("cors", err)
	switch {
	case vh.Matcher != nil && len(vh.Routes) > 0:
		errs.Collect("", errors.New("cannot set both matcher and routes on virtual host"))
	case vh.Matcher != nil:
		v.tree, err = match.New(vh.Matcher, match.Options[[]*Entry]{Action: h.action, Input: onlyHeaders})
		errs.Collect("matcher", err)
	default:
		v.routes, err = h.entries(vh.Routes)
		errs.Collect("routes", err)
	}
	errs.Collect("", h.retryError)
	if errs.Len() == 0 {
		v.index = newPathIndex(v.routes)
	}
	return errs.Err()
}

// hostBuilder compiles the routes of a virtual host.
type hostBuilder struct {
	sharedLevel
	c      *compiler
	t      *Table
	vh     *routev3.VirtualHost
	name   string // that of vh
	meta   map[string]map[string]any
	limits []aroute.RateLimit
	cors   []namedConfig

	clusters []virtualCluster
	held     []astats.Scope // whose statistics there are

	// retryPolicy is for routes that have none, compiled when the first asks for it.
	retryPolicy *RetryPolicy
	retryError  error
	retryAsked  bool
}

// retry is the virtual host's retry policy; nil: it has none.
func (h *hostBuilder) retry() *RetryPolicy {
	if !h.retryAsked {
		h.retryAsked = true
		h.retryPolicy, h.retryError = h.c.retryPolicy(h.vh.RetryPolicy, h.vh.RetryPolicyTypedConfig)
	}
	return h.retryPolicy
}

func (h *hostBuilder) entries(list []*routev3.Route) ([]*Entry, error) {
	var out []*Entry
	var errs config.Errors
	for i, r := range list {
		e, err := h.c.entry(h, r)
		if err != nil {
			errs.Collect(fmt.Sprintf("[%d]", i), err)
		}
		out = append(out, e)
	}
	return out, errs.Err()
}

// action compiles an action of a virtual host's matcher: a route, or a list of them, of which the first that matches is taken.
func (h *hostBuilder) action(name string, a *anypb.Any) ([]*Entry, error) {
	m, _, err := config.Unpack(a, nil)
	if err != nil {
		return nil, err
	}
	was := h.c.validate
	h.c.validate = false // as Envoy: routes of a matcher may name clusters that there are not
	defer func() { h.c.validate = was }()
	switch x := m.(type) {
	case *routev3.Route:
		return h.entries([]*routev3.Route{x})
	case *routev3.RouteList:
		return h.entries(x.Routes)
	}
	return nil, config.Unregistered(name, a)
}

// onlyHeaders refuses what routes cannot be chosen by.
func onlyHeaders(url string) error {
	switch url[strings.LastIndexByte(url, '/')+1:] {
	case "envoy.type.matcher.v3.HttpRequestHeaderMatchInput", "envoy.extensions.matching.common_inputs.network.v3.FilterStateInput":
		return nil
	}
	return fmt.Errorf("requirement violation while creating route match tree: INVALID_ARGUMENT: Route table can only match on request headers, saw %s", url)
}

// domainBuilder collects domains.
type domainBuilder struct {
	seen               map[string]bool // with a wildcard
	suffixes, prefixes match.TrieBuilder[*VirtualHost]
}

func (b *domainBuilder) add(t *Table, domain string, v *VirtualHost) error {
	d := strings.ToLower(domain)
	if b.seen[d] || t.exact[d] != nil {
		if d == "*" {
			return fmt.Errorf("Only a single wildcard domain is permitted in route %s", t.Name) //nolint:staticcheck // Envoy's text
		}
		return fmt.Errorf("Only unique values for domains are permitted. Duplicate entry of domain %s in route %s", d, t.Name) //nolint:staticcheck // Envoy's text
	}
	switch {
	case d == "*":
		t.star = v
	case strings.HasPrefix(d, "*"):
		b.suffixes.Set(string(backwards(d[1:], nil)), v)
	case strings.HasSuffix(d, "*"):
		b.prefixes.Set(d[:len(d)-1], v)
	default:
		t.exact[d] = v
		return nil
	}
	if b.seen == nil {
		b.seen = map[string]bool{}
	}
	b.seen[d] = true
	return nil
}
