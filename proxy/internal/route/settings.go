package route

import (
	"errors"
	"regexp"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
)

// Deps is what compiling needs of its surroundings. owner: main loop.
type Deps struct {
	// Slot binds a cluster by name; it need not exist yet.
	Slot func(name string) *cluster.Slot
	// Exists tells whether a cluster exists now, for validate_clusters; nil: not checked.
	Exists func(name string) bool
	// Meant completes the error about a cluster that does not exist with those that may have been meant; nil: they are not looked for.
	Meant func(e *config.Error, name string)
	// FilterConfig parses a filter's per-route configuration; the result goes to Callbacks.RouteConfig.
	FilterConfig func(name string, a *anypb.Any) (any, error)
	// Optional tells whether a filter's per-route configuration is of no filter that there is, and may be left out; nil: none is.
	Optional func(a *anypb.Any) bool
	Format   *format.Options
	// ValidateDefault is what validate_clusters is if it is not set: true for static configurations.
	ValidateDefault bool
	// Scope is the root of all stats; nil: none are kept.
	Scope astats.Scope
	// Runtime answers runtime keys while configurations are compiled; nil: defaults.
	Runtime RuntimeReader
	// MaxProgramSize bounds regular expressions, 0: not.
	MaxProgramSize int
}

var errNotYet = errors.New("not supported yet")

// entry compiles a route. All that is wrong with it is in the error, each thing at its field.
func (c *compiler) entry(h *hostBuilder, r *routev3.Route) (*Entry, error) {
	vh := h.vh
	e := &Entry{RouteName: r.Name, VHost: h.name, NotFoundCode: 503, Extras: c.extras()}
	e.hostMeta, e.hostRateLimits, e.virtualClusters = h.meta, h.limits, h.clusters
	var err error
	var errs config.Errors
	e.match, err = c.match(r.GetMatch())
	errs.Collect("match", err)
	if len(r.RouteSpecifiers) > 0 {
		errs.Collect("route_specifiers", errNotYet)
	}
	if r.StatPrefix != "" && r.GetRoute() != nil {
		n := h.counters("route", r.StatPrefix)
		e.RouteCounters = &n
	}
	e.AttemptsInRequest, e.AttemptsInResponse = vh.IncludeRequestAttemptCount, vh.IncludeAttemptCountInResponse
	e.metadata, err = plainMetadata(r.Metadata)
	errs.Collect("metadata", err)
	tracing(e, r)
	e.RetryBuffer, err = c.retryBuffer(e, vh)
	errs.Collect("", err)
	own, err := c.filterConfigs(r.TypedPerFilterConfig)
	errs.Collect("typed_per_filter_config", err)
	cors, err := c.cors(r.GetRoute().GetCors()) //nolint:staticcheck // deprecated and still accepted
	errs.Collect("route.cors", err)
	for _, l := range [][]namedConfig{c.all.filters, h.filters, own, h.cors, cors} {
		e.use(l)
	}
	bufferLimit(e, vh, r)
	req, resp, err := c.level(r)
	errs.Collect("", err)
	levels := [][]mutation{resp, h.resp, c.all.resp}
	e.RequestHeaders, e.ResponseHeaders = c.join([][]mutation{req, h.req, c.all.req}), c.join(levels)
	errs.Collect("", c.action(h, e, r, levels))
	c.settle(e)
	return e, errs.Err()
}

// action compiles what is done with a request. resp are the response headers of all levels.
func (c *compiler) action(h *hostBuilder, e *Entry, r *routev3.Route, resp [][]mutation) error {
	switch a := r.Action.(type) {
	case *routev3.Route_Route:
		return config.At("route", c.forward(h, e, a.Route, resp))
	case *routev3.Route_DirectResponse:
		e.Kind = Direct
		return config.At("direct_response", c.direct(h.t, e, a.DirectResponse))
	case *routev3.Route_Redirect:
		e.Kind = Redirect
		return config.At("redirect", c.redirect(e, a.Redirect))
	case *routev3.Route_NonForwardingAction:
		e.Kind = NonForwarding
		return nil
	case *routev3.Route_FilterAction:
		return config.At("filter_action", errNotYet)
	}
	return &config.Error{Path: "action", Kind: config.BrokenRule, Msg: "RouteValidationError.Action: value is required"}
}

// bufferLimit takes over how much of a request may be buffered: the more specific level and the newer field win.
func bufferLimit(e *Entry, vh *routev3.VirtualHost, r *routev3.Route) {
	for _, l := range []*wrapperspb.UInt32Value{vh.PerRequestBufferLimitBytes, r.PerRequestBufferLimitBytes} { //nolint:staticcheck // deprecated and still accepted
		if l != nil {
			e.BufferLimit, e.HasBufferLimit = int(l.Value), true
		}
	}
	for _, l := range []*wrapperspb.UInt64Value{vh.RequestBodyBufferLimit, r.RequestBodyBufferLimit} {
		if l != nil {
			e.BufferLimit, e.HasBufferLimit = int(l.Value), true
		}
	}
}

func plainMetadata(m *corev3.Metadata) (map[string]map[string]any, error) {
	if m == nil {
		return nil, nil
	}
	out := map[string]map[string]any{}
	for n, s := range m.FilterMetadata {
		out[n] = s.AsMap()
	}
	return out, nil
}

// expression is a regular expression that paths are matched with as a whole, and what all of them begin with.
type expression struct {
	re      *regexp.Regexp
	literal string
}

// regex compiles an expression, once for all routes that have it.
func (c *compiler) regex(m *matcherv3.RegexMatcher) (expression, error) {
	text := m.GetRegex()
	if x, ok := c.expressions[text]; ok {
		return x, nil
	}
	re, err := CompileRegex(text, true)
	if err != nil {
		return expression{}, err
	}
	x := expression{re, literalPrefix(text)}
	if c.expressions == nil {
		c.expressions = map[string]expression{}
	}
	c.expressions[text] = x
	return x, nil
}

// CompileRegex compiles a regular expression; full makes it match whole strings only, as Envoy's safe_regex does.
func CompileRegex(text string, full bool) (*regexp.Regexp, error) {
	return match.CompileRegex(text, full)
}

// literalPrefix is what every text begins with that a regular expression matches whole.
func literalPrefix(text string) string {
	// Without the anchor that many put there, which asks for nothing more, the expression matches more texts, but all of these.
	re, err := match.CompileRegex(strings.TrimPrefix(text, "^"), false)
	if err != nil {
		return ""
	}
	literal, _ := re.LiteralPrefix()
	return literal
}

func (c *compiler) rewriteRegex(r *matcherv3.RegexMatchAndSubstitute) (*RegexRewrite, error) {
	if r == nil {
		return nil, nil
	}
	return NewRegexRewrite(r)
}

// NewRegexRewrite compiles a rewrite. Its error is located at the pattern.
func NewRegexRewrite(r *matcherv3.RegexMatchAndSubstitute) (*RegexRewrite, error) {
	re, err := CompileRegex(r.GetPattern().GetRegex(), false)
	if err != nil {
		return nil, config.At("pattern.regex", err)
	}
	return &RegexRewrite{re: re, with: goSubstitution(r.Substitution)}, nil
}

// goSubstitution turns RE2's \1 into Go's ${1}.
func goSubstitution(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '$':
			b.WriteString("$$")
		case s[i] == '\\' && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9':
			b.WriteString("${" + s[i+1:i+2] + "}")
			i++
		case s[i] == '\\' && i+1 < len(s):
			b.WriteByte(s[i+1])
			i++
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func (c *compiler) fraction(f *corev3.RuntimeFractionalPercent) *fraction {
	if f == nil {
		return nil
	}
	den := map[typev3.FractionalPercent_DenominatorType]uint64{0: 100, 1: 10000, 2: 1000000}[f.GetDefaultValue().GetDenominator()]
	return &fraction{key: f.RuntimeKey, numerator: uint64(f.GetDefaultValue().GetNumerator()), denominator: den}
}
