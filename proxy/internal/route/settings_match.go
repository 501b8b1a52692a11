package route

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	uritmplv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
)

func (c *compiler) match(m *routev3.RouteMatch) (conditions, error) {
	out := conditions{demands: &demands{}}
	p := &out.path
	if m.CaseSensitive != nil {
		p.fold = !m.CaseSensitive.Value
	}
	var err error
	var errs config.Errors
	switch s := m.PathSpecifier.(type) {
	case *routev3.RouteMatch_Prefix:
		p.kind, p.text = pathPrefix, s.Prefix
	case *routev3.RouteMatch_Path:
		p.kind, p.text = pathExact, s.Path
	case *routev3.RouteMatch_SafeRegex:
		p.kind = pathRegex
		x, err := c.regex(s.SafeRegex)
		errs.Collect("safe_regex.regex", err)
		p.re, p.literal = x.re, x.literal
	case *routev3.RouteMatch_PathSeparatedPrefix:
		p.kind, p.text = pathSeparated, s.PathSeparatedPrefix
	case *routev3.RouteMatch_ConnectMatcher_:
		p.kind = pathConnect
	case *routev3.RouteMatch_PathMatchPolicy:
		p.kind = pathTemplate
		errs.Collect("path_match_policy", p.template(s.PathMatchPolicy))
	default:
		errs.Collect("", errors.New("path specifier is required"))
	}
	out.headers, err = HeaderMatchers(m.Headers)
	errs.Collect("headers", err)
	out.params, err = paramMatchers(m.QueryParameters)
	errs.Collect("query_parameters", err)
	for i, k := range m.Cookies {
		v, err := StringMatcher(k.StringMatch)
		errs.Collect(fmt.Sprintf("cookies[%d].string_match", i), err)
		out.cookies = append(out.cookies, cookieMatch{name: k.Name, value: v, invert: k.InvertMatch})
	}
	out.fraction = c.fraction(m.RuntimeFraction)
	out.grpc = m.Grpc != nil
	if t := m.TlsContext; t != nil {
		out.tls = &tlsMatch{}
		if t.Presented != nil {
			out.tls.presented = &t.Presented.Value
		}
		if t.Validated != nil {
			out.tls.validated = &t.Validated.Value
		}
	}
	for i, d := range m.DynamicMetadata {
		f, err := metadataMatch(d)
		errs.Collect(fmt.Sprintf("dynamic_metadata[%d]", i), err)
		out.custom = append(out.custom, f)
	}
	for i, f := range m.FilterState {
		sm, err := filterStateMatch(f)
		errs.Collect(fmt.Sprintf("filter_state[%d]", i), err)
		out.custom = append(out.custom, sm)
	}
	if reflect.ValueOf(out.demands).Elem().IsZero() {
		out.demands = nil
	}
	return out, errs.Err()
}

// paramMatchers compiles matchers of query parameters.
func paramMatchers(list []*routev3.QueryParameterMatcher) (out []paramMatch, err error) {
	var errs config.Errors
	for i, q := range list {
		pm := paramMatch{name: q.Name}
		switch x := q.QueryParameterMatchSpecifier.(type) {
		case *routev3.QueryParameterMatcher_PresentMatch:
			pm.present = &x.PresentMatch
		case *routev3.QueryParameterMatcher_StringMatch:
			pm.value, err = StringMatcher(x.StringMatch)
			errs.Collect(fmt.Sprintf("[%d].string_match", i), err)
		}
		out = append(out, pm)
	}
	return out, errs.Err()
}

// HeaderMatchers compiles header matchers; all of them must match.
func HeaderMatchers(list []*routev3.HeaderMatcher) ([]HeaderMatch, error) {
	var out []HeaderMatch
	var errs config.Errors
	for i, h := range list {
		m, err := HeaderMatcher(h)
		errs.Collect(fmt.Sprintf("[%d]", i), err)
		out = append(out, m)
	}
	return out, errs.Err()
}

// HeaderMatcher compiles one header matcher.
func HeaderMatcher(h *routev3.HeaderMatcher) (HeaderMatch, error) {
	name := strings.ToLower(h.GetName())
	if name == "host" {
		name = ":authority"
	}
	m := &headerMatch{name: name, id: http.Lookup(name), invert: h.GetInvertMatch(), missing: h.GetTreatMissingHeaderAsEmpty()}
	var err error
	switch x := h.GetHeaderMatchSpecifier().(type) {
	case *routev3.HeaderMatcher_StringMatch:
		m.value, err = StringMatcher(x.StringMatch)
		err = config.At("string_match", err)
	case *routev3.HeaderMatcher_RangeMatch:
		m.rng = &[2]int64{x.RangeMatch.Start, x.RangeMatch.End}
	case *routev3.HeaderMatcher_PresentMatch:
		m.present = &x.PresentMatch
	case *routev3.HeaderMatcher_ExactMatch: //nolint:staticcheck // deprecated and still accepted
		m.value = match.Exact(x.ExactMatch)
	case *routev3.HeaderMatcher_PrefixMatch: //nolint:staticcheck // deprecated and still accepted
		m.value = match.Prefix(x.PrefixMatch)
	case *routev3.HeaderMatcher_SuffixMatch: //nolint:staticcheck // deprecated and still accepted
		m.value = match.Suffix(x.SuffixMatch)
	case *routev3.HeaderMatcher_ContainsMatch: //nolint:staticcheck // deprecated and still accepted
		m.value = match.Contains(x.ContainsMatch)
	case *routev3.HeaderMatcher_SafeRegexMatch: //nolint:staticcheck // deprecated and still accepted
		m.value, err = match.Regex(x.SafeRegexMatch.Regex)
		err = config.At("safe_regex_match", err)
	default:
		yes := true
		m.present = &yes
	}
	return m, err
}

// StringMatcher compiles a string matcher.
func StringMatcher(m *matcherv3.StringMatcher) (StringMatch, error) { return match.NewString(m) }

func metadataMatch(m *matcherv3.MetadataMatcher) (func(r *Request) bool, error) {
	var path []string
	for _, p := range m.Path {
		path = append(path, p.GetKey())
	}
	value, err := match.NewValue(m.Value)
	if err != nil {
		return nil, err
	}
	return func(r *Request) bool {
		var v any
		ok := false
		if r.Info != nil && r.Info.HasMetadata() {
			v, ok = r.Info.Metadata().Get(m.Filter, path...)
		}
		return value(v, ok) != m.Invert
	}, nil
}

// filterStateMatch matches an object of the stream's filter state, or of its connection's, by its text or as an address.
func filterStateMatch(m *matcherv3.FilterStateMatcher) (func(r *Request) bool, error) {
	var text StringMatch
	var nets []netip.Prefix
	invert := false
	switch x := m.Matcher.(type) {
	case *matcherv3.FilterStateMatcher_StringMatch:
		var err error
		if text, err = StringMatcher(x.StringMatch); err != nil {
			return nil, err
		}
	case *matcherv3.FilterStateMatcher_AddressMatch:
		invert = x.AddressMatch.InvertMatch
		var err error
		if nets, err = match.Prefixes(x.AddressMatch.Ranges); err != nil {
			return nil, config.At("filter_state.address_match.ranges", err)
		}
	default:
		return nil, errors.New("filter_state matcher is required")
	}
	return func(r *Request) bool {
		v, ok := r.state(m.Key)
		if !ok {
			return false
		}
		if text != nil {
			return text.Match(v)
		}
		a, err := netip.ParseAddr(v)
		if err != nil {
			if ap, err := netip.ParseAddrPort(v); err == nil {
				a = ap.Addr()
			}
		}
		for _, n := range nets {
			if n.Contains(a) {
				return !invert
			}
		}
		return invert
	}, nil
}

// state returns the text of an object of the filter state.
func (r *Request) state(key string) (string, bool) { return match.State(r.Info, nil, key) }

// template takes over a path_match_policy.
func (p *pathMatch) template(x *corev3.TypedExtensionConfig) (err error) {
	var cfg uritmplv3.UriTemplateMatchConfig
	a := x.GetTypedConfig()
	if !config.Holds(a, &cfg) {
		return config.Unregistered(x.GetName(), a)
	}
	if err := config.Into(a, &cfg); err != nil {
		return config.At("typed_config", err)
	}
	p.tmpl, err = parseTemplate(cfg.PathTemplate)
	p.literal = cfg.PathTemplate[:strings.IndexAny(cfg.PathTemplate+"*", "*{")]
	return config.At("typed_config.path_template", err)
}
