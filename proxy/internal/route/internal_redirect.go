package route

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	allowedv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/internal_redirect/allow_listed_routes/v3"
	previousroutesv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/internal_redirect/previous_routes/v3"
	safev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/internal_redirect/safe_cross_scheme/v3"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// InternalRedirect says which redirects of an upstream the proxy follows itself.
type InternalRedirect struct {
	// Max is how many a request may take, 1 by default.
	Max uint32
	// Codes are the statuses that are followed, 302 by default.
	Codes []int
	// CrossScheme lets them lead from HTTP to HTTPS and back.
	CrossScheme bool
	// Copy are response headers that become request headers; those that are not there are removed from the request.
	Copy       []string
	predicates []redirectPredicate
}

// redirectPredicate tells whether a redirect may lead from one route to another one.
type redirectPredicate func(r *stream.Redirects, from, to string, fromTLS, toTLS bool) bool

// Follows tells whether a status is one that is followed.
func (p *InternalRedirect) Follows(code int) bool { return slices.Contains(p.Codes, code) }

// Allows asks the predicates whether a redirect may lead from one route to another one. What they remember is in r.
func (p *InternalRedirect) Allows(r *stream.Redirects, from, to string, fromTLS, toTLS bool) bool {
	for _, f := range p.predicates {
		if !f(r, from, to, fromTLS, toTLS) {
			return false
		}
	}
	return true
}

// internalRedirect compiles a route's policy, in either form.
func internalRedirect(a *routev3.RouteAction) (*InternalRedirect, error) {
	p := a.InternalRedirectPolicy
	if p == nil {
		if a.InternalRedirectAction != routev3.RouteAction_HANDLE_INTERNAL_REDIRECT { //nolint:staticcheck // deprecated and still accepted
			return nil, nil
		}
		p = &routev3.InternalRedirectPolicy{MaxInternalRedirects: a.MaxInternalRedirects} //nolint:staticcheck // deprecated and still accepted
	}
	out := &InternalRedirect{Max: 1, CrossScheme: p.AllowCrossSchemeRedirect}
	if p.MaxInternalRedirects != nil {
		out.Max = p.MaxInternalRedirects.Value
	}
	for _, c := range p.RedirectResponseCodes {
		switch c {
		case 301, 302, 303, 307, 308: // others are ignored
			out.Codes = append(out.Codes, int(c))
		}
	}
	if len(p.RedirectResponseCodes) == 0 {
		out.Codes = []int{302}
	}
	var errs config.Errors
	for i, h := range p.ResponseHeadersToCopy {
		h = strings.ToLower(h)
		if strings.HasPrefix(h, ":") || h == "host" {
			errs.Collect(fmt.Sprintf("response_headers_to_copy[%d]", i), errors.New("`:`-prefixed headers or Hosts may not be specified here.")) //nolint:staticcheck // Envoy's text
		}
		out.Copy = append(out.Copy, h)
	}
	for i, x := range p.Predicates {
		f, err := newPredicate(x)
		errs.Collect(fmt.Sprintf("predicates[%d]", i), err)
		out.predicates = append(out.predicates, f)
	}
	return out, errs.Err()
}

func newPredicate(x *corev3.TypedExtensionConfig) (redirectPredicate, error) {
	a := x.GetTypedConfig()
	var allowed allowedv3.AllowListedRoutesConfig
	switch {
	case config.Holds(a, &allowed):
		if err := config.Into(a, &allowed); err != nil {
			return nil, err
		}
		names := allowed.AllowedRouteNames
		return func(_ *stream.Redirects, _, to string, _, _ bool) bool { return slices.Contains(names, to) }, nil
	case config.Holds(a, &previousroutesv3.PreviousRoutesConfig{}):
		return func(r *stream.Redirects, from, to string, _, _ bool) bool { return r.Take(from, to) }, nil
	case config.Holds(a, &safev3.SafeCrossSchemeConfig{}):
		return func(_ *stream.Redirects, _, _ string, fromTLS, toTLS bool) bool { return fromTLS || !toTLS }, nil
	}
	return nil, config.Unregistered(x.Name, a)
}
