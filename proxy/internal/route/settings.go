package route

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"sort"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

// Deps is what compiling needs of its surroundings. owner: main loop.
type Deps struct {
	// Slot binds a cluster by name; it need not exist yet.
	Slot func(name string) *cluster.Slot
	// Exists tells whether a cluster exists now, for validate_clusters; nil: not checked.
	Exists func(name string) bool
	// FilterConfig parses a filter's per-route configuration; the result goes to Callbacks.RouteConfig.
	FilterConfig func(name string, a *anypb.Any) (any, error)
	Format       *format.Options
	// DataSource reads a data source (inline or file).
	DataSource func(d *corev3.DataSource) (string, error)
	// ValidateDefault is what validate_clusters is if it is not set: true for static configurations.
	ValidateDefault bool
	// MaxProgramSize bounds regular expressions, 0: not.
	MaxProgramSize int
}

// compiler builds one table.
type compiler struct {
	Deps
	rc       *routev3.RouteConfiguration
	validate bool
	specific bool // most_specific_header_mutations_wins
}

// Compile builds a table from a route configuration. Errors carry Envoy's texts.
func Compile(rc *routev3.RouteConfiguration, d Deps) (*Table, error) {
	c := &compiler{Deps: d, rc: rc, validate: d.ValidateDefault, specific: rc.GetMostSpecificHeaderMutationsWins()}
	if rc.ValidateClusters != nil {
		c.validate = rc.ValidateClusters.Value
	}
	if c.Exists == nil {
		c.validate = false
	}
	t := &Table{Name: rc.Name, exact: map[string]*VirtualHost{}, IgnorePort: rc.GetIgnorePortInHostMatching(),
		IgnoreParams: rc.IgnorePathParametersInPathMatching, HostHeader: strings.ToLower(rc.VhostHeader)}
	t.MaxDirectBody = 4096
	if rc.MaxDirectResponseBodySizeBytes != nil {
		t.MaxDirectBody = int(rc.MaxDirectResponseBodySizeBytes.Value)
	}
	for _, h := range rc.InternalOnlyHeaders {
		t.InternalOnly = append(t.InternalOnly, strings.ToLower(h))
	}
	switch {
	case rc.Vhds != nil:
		return nil, errors.New("vhds is not supported yet")
	case len(rc.RequestMirrorPolicies) > 0:
		return nil, errors.New("request_mirror_policies is not supported yet")
	case len(rc.RouteSpecifiers) > 0:
		return nil, errors.New("route_specifiers is not supported yet")
	}
	seen := map[string]bool{}
	for _, vh := range rc.VirtualHosts {
		v, err := c.virtualHost(t, vh)
		if err != nil {
			return nil, err
		}
		for _, d := range vh.Domains {
			d = strings.ToLower(d)
			if err := t.addDomain(d, v, seen); err != nil {
				return nil, err
			}
		}
	}
	byLength := func(w []wildcard) func(i, j int) bool {
		return func(i, j int) bool { return len(w[i].text) > len(w[j].text) }
	}
	sort.SliceStable(t.suffixes, byLength(t.suffixes))
	sort.SliceStable(t.prefixes, byLength(t.prefixes))
	if len(t.exact)+len(t.suffixes)+len(t.prefixes) == 0 {
		t.exact = nil
	}
	return t, nil
}

func (t *Table) addDomain(d string, v *VirtualHost, seen map[string]bool) error {
	if seen[d] {
		if d == "*" {
			return fmt.Errorf("Only a single wildcard domain is permitted in route %s", t.Name) //nolint:staticcheck // Envoy's text
		}
		return fmt.Errorf("Only unique values for domains are permitted. Duplicate entry of domain %s in route %s", d, t.Name) //nolint:staticcheck // Envoy's text
	}
	seen[d] = true
	switch {
	case d == "*":
		t.star = v
	case strings.HasPrefix(d, "*"):
		t.suffixes = append(t.suffixes, wildcard{d[1:], v})
	case strings.HasSuffix(d, "*"):
		t.prefixes = append(t.prefixes, wildcard{d[:len(d)-1], v})
	default:
		t.exact[d] = v
	}
	return nil
}

func (c *compiler) virtualHost(t *Table, vh *routev3.VirtualHost) (*VirtualHost, error) {
	v := &VirtualHost{Name: vh.Name, ignoreParams: t.IgnoreParams, externalOnly: vh.RequireTls == routev3.VirtualHost_EXTERNAL_ONLY}
	if vh.RequireTls != routev3.VirtualHost_NONE {
		v.toTLS = &Entry{VHost: vh.Name, Kind: Redirect, RedirectTo: &RedirectAction{Code: 301, Plain: true}}
	}
	meta, err := plainMetadata(vh.Metadata)
	if err != nil {
		return nil, err
	}
	switch {
	case vh.Matcher != nil:
		return nil, fmt.Errorf("virtual host %s: matcher is not supported yet", vh.Name)
	case len(vh.RouteSpecifiers) > 0:
		return nil, fmt.Errorf("virtual host %s: route_specifiers is not supported yet", vh.Name)
	}
	for i, r := range vh.Routes {
		e, err := c.entry(t, vh, r)
		if err != nil {
			return nil, fmt.Errorf("virtual_hosts[%s].routes[%d]: %w", vh.Name, i, err)
		}
		e.hostMeta = meta
		if e.Weighted != nil {
			for _, w := range e.Weighted.choices {
				w.entry.hostMeta = meta
			}
		}
		v.routes = append(v.routes, e)
	}
	v.index = newPathIndex(v.routes)
	return v, nil
}

func (c *compiler) entry(t *Table, vh *routev3.VirtualHost, r *routev3.Route) (*Entry, error) {
	e := &Entry{RouteName: r.Name, VHost: vh.Name, NotFoundCode: 503}
	var err error
	if e.match, err = c.match(r.GetMatch()); err != nil {
		return nil, err
	}
	if len(r.RouteSpecifiers) > 0 {
		return nil, errors.New("route_specifiers is not supported yet")
	}
	e.AttemptsInRequest, e.AttemptsInResponse = vh.IncludeRequestAttemptCount, vh.IncludeAttemptCountInResponse
	if e.metadata, err = plainMetadata(r.Metadata); err != nil {
		return nil, err
	}
	if e.RetryBuffer, err = c.retryBuffer(e, vh); err != nil {
		return nil, err
	}
	if err = c.filterConfigs(e, c.rc.TypedPerFilterConfig, vh.TypedPerFilterConfig, r.TypedPerFilterConfig); err != nil {
		return nil, err
	}
	if err = c.cors(e, vh.Cors, r.GetRoute().GetCors()); err != nil { //nolint:staticcheck // deprecated and still accepted
		return nil, err
	}
	for _, l := range []interface{ GetValue() uint32 }{vh.PerRequestBufferLimitBytes, r.PerRequestBufferLimitBytes} { //nolint:staticcheck // deprecated and still accepted
		if l != nil && l.GetValue() > 0 {
			e.BufferLimit, e.HasBufferLimit = int(l.GetValue()), true
		}
	}
	if l := vh.RequestBodyBufferLimit; l != nil {
		e.BufferLimit, e.HasBufferLimit = int(l.Value), true
	}
	if l := r.RequestBodyBufferLimit; l != nil {
		e.BufferLimit, e.HasBufferLimit = int(l.Value), true
	}
	req := [][]mutation{}
	resp := [][]mutation{}
	for _, lv := range []headerLevel{r, vh, c.rc} {
		a, b, err := c.level(lv)
		if err != nil {
			return nil, err
		}
		req, resp = append(req, a), append(resp, b)
	}
	e.RequestHeaders, e.ResponseHeaders = c.join(req), c.join(resp)
	switch a := r.Action.(type) {
	case *routev3.Route_Route:
		err = c.forward(e, vh, r, a.Route, resp)
	case *routev3.Route_DirectResponse:
		e.Kind = Direct
		err = c.direct(t, e, a.DirectResponse)
	case *routev3.Route_Redirect:
		e.Kind = Redirect
		err = c.redirect(e, a.Redirect)
	case *routev3.Route_NonForwardingAction:
		e.Kind = NonForwarding
	default:
		err = errors.New("filter_action is not supported yet")
	}
	return e, err
}

type headerLevel interface {
	GetRequestHeadersToAdd() []*corev3.HeaderValueOption
	GetRequestHeadersToRemove() []string
	GetResponseHeadersToAdd() []*corev3.HeaderValueOption
	GetResponseHeadersToRemove() []string
}

func (c *compiler) level(l headerLevel) (req, resp []mutation, err error) {
	if req, err = Changes(l.GetRequestHeadersToAdd(), l.GetRequestHeadersToRemove(), c.Format); err != nil {
		return nil, nil, err
	}
	resp, err = Changes(l.GetResponseHeadersToAdd(), l.GetResponseHeadersToRemove(), c.Format)
	return req, resp, err
}

// join orders the levels: most specific first, so that the least specific has the last word, unless the configuration asks for
// the opposite.
func (c *compiler) join(levels [][]mutation) *Mutations {
	m := &Mutations{}
	for i := range levels {
		if c.specific {
			i = len(levels) - 1 - i
		}
		if len(levels[i]) > 0 {
			m.levels = append(m.levels, newLevel(levels[i]))
		}
	}
	if len(m.levels) == 0 {
		return nil
	}
	return m
}

// first puts a level before all others.
func first(steps []mutation, m *Mutations) *Mutations {
	if len(steps) == 0 {
		return m
	}
	out := &Mutations{levels: []level{newLevel(steps)}}
	if m != nil {
		out.levels = append(out.levels, m.levels...)
	}
	return out
}

// Changes compiles additions and removals of headers.
func Changes(add []*corev3.HeaderValueOption, remove []string, o *format.Options) ([]mutation, error) {
	var out []mutation
	for _, a := range add {
		name := strings.ToLower(a.GetHeader().GetKey())
		if strings.HasPrefix(name, ":") || name == "host" {
			return nil, errors.New(":-prefixed or host headers may not be modified")
		}
		m := mutation{name: name, id: http.Lookup(name), keepEmpty: a.KeepEmptyValue, value: a.Header.Value}
		switch a.AppendAction {
		case corev3.HeaderValueOption_ADD_IF_ABSENT:
			m.action = AddIfAbsent
		case corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD:
			m.action = OverwriteOrAdd
		case corev3.HeaderValueOption_OVERWRITE_IF_EXISTS:
			m.action = OverwriteIfExists
		}
		if a.Append != nil && a.AppendAction == 0 && !a.Append.Value { //nolint:staticcheck // deprecated and still accepted
			m.action = OverwriteOrAdd
		}
		if strings.IndexByte(m.value, '%') >= 0 {
			p, err := format.ParseHeader(m.value, o)
			if err != nil {
				return nil, err
			}
			if lit, ok := p.Literal(); ok {
				m.value = lit
			} else {
				m.prog = p
			}
		}
		out = append(out, m)
	}
	for _, n := range remove {
		n = strings.ToLower(n)
		if strings.HasPrefix(n, ":") || n == "host" {
			return nil, errors.New(":-prefixed or host headers may not be removed")
		}
		out = append(out, mutation{name: n, id: http.Lookup(n), remove: true})
	}
	return out, nil
}

// NewMutations compiles a list of additions, for what is not a route (local replies).
func NewMutations(add []*corev3.HeaderValueOption, remove []string, o *format.Options) (*Mutations, error) {
	steps, err := Changes(add, remove, o)
	if err != nil || len(steps) == 0 {
		return nil, err
	}
	return &Mutations{[]level{newLevel(steps)}}, nil
}

func (c *compiler) filterConfigs(e *Entry, levels ...map[string]*anypb.Any) error {
	for _, l := range levels {
		for name, a := range l {
			if a.MessageIs(&routev3.FilterConfig{}) {
				var fc routev3.FilterConfig
				if err := a.UnmarshalTo(&fc); err != nil {
					return err
				}
				e.setDisabled(name, fc.Disabled)
				if fc.Config == nil {
					continue
				}
				a = fc.Config
			} else {
				e.setDisabled(name, false) // a configuration turns a filter on that is off by default
			}
			if c.FilterConfig == nil {
				continue
			}
			v, err := c.FilterConfig(name, a)
			if err != nil {
				return err
			}
			if e.filters == nil {
				e.filters = map[string]*filterConfig{}
			}
			e.filters[name] = &filterConfig{v, e.filters[name]}
		}
	}
	return nil
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

func (c *compiler) regex(m *matcherv3.RegexMatcher) (*regexp.Regexp, error) {
	return CompileRegex(m.GetRegex(), true)
}

// CompileRegex compiles a regular expression; full makes it match whole strings only, as Envoy's safe_regex does.
func CompileRegex(text string, full bool) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(text); err != nil { //ban:allow bannedcall compiled once, while configuration is built
		return nil, regexError(err)
	}
	if full {
		text = "^(?:" + text + ")$"
	}
	re, err := regexp.Compile(text) //ban:allow bannedcall compiled once, while configuration is built
	if err != nil {
		return nil, regexError(err)
	}
	return re, nil
}

// regexError turns Go's error into RE2's, which has no prefix.
func regexError(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), "error parsing regexp: "))
}

func (c *compiler) rewriteRegex(r *matcherv3.RegexMatchAndSubstitute) (*RegexRewrite, error) {
	if r == nil {
		return nil, nil
	}
	re, err := CompileRegex(r.GetPattern().GetRegex(), false)
	if err != nil {
		return nil, err
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

func (c *compiler) direct(t *Table, e *Entry, d *routev3.DirectResponseAction) error {
	e.DirectCode = int(d.Status)
	if d.Body != nil {
		body, err := c.dataSource(d.Body)
		if err != nil {
			return err
		}
		if len(body) > t.MaxDirectBody {
			return fmt.Errorf("response body size is %d bytes; maximum is %d", len(body), t.MaxDirectBody)
		}
		e.DirectBody = body
	}
	if bf := d.GetBodyFormat(); bf != nil {
		p, ct, err := Body(bf, c.Format)
		if err != nil {
			return err
		}
		e.DirectFormat, e.DirectType = p, ct
	}
	return nil
}

// Body compiles a SubstitutionFormatString and returns the content type that goes with it.
func Body(f *corev3.SubstitutionFormatString, o *format.Options) (*format.Format, string, error) {
	opts := *o
	opts.OmitEmpty = f.OmitEmptyValues
	ct := f.ContentType
	var p *format.Format
	var err error
	switch x := f.Format.(type) {
	case *corev3.SubstitutionFormatString_TextFormat:
		p, err = format.ParseText(x.TextFormat, &opts)
	case *corev3.SubstitutionFormatString_TextFormatSource:
		p, err = format.ParseText(x.TextFormatSource.GetInlineString(), &opts)
	case *corev3.SubstitutionFormatString_JsonFormat:
		p, err = format.ParseJSON(x.JsonFormat.AsMap(), &opts)
		if ct == "" {
			ct = "application/json"
		}
	}
	if ct == "" {
		ct = "text/plain"
	}
	return p, ct, err
}

func (c *compiler) dataSource(d *corev3.DataSource) (string, error) {
	switch s := d.Specifier.(type) {
	case *corev3.DataSource_InlineString:
		return s.InlineString, nil
	case *corev3.DataSource_InlineBytes:
		return string(s.InlineBytes), nil
	}
	if c.DataSource != nil {
		return c.DataSource(d)
	}
	return "", errors.New("data source is not supported here")
}

func (c *compiler) redirect(e *Entry, r *routev3.RedirectAction) error {
	d := &RedirectAction{entry: e, Host: r.HostRedirect, StripQuery: r.StripQuery}
	d.Code = map[routev3.RedirectAction_RedirectResponseCode]int{0: 301, 1: 302, 2: 303, 3: 307, 4: 308}[r.ResponseCode]
	switch s := r.SchemeRewriteSpecifier.(type) {
	case *routev3.RedirectAction_HttpsRedirect:
		d.HTTPS = s.HttpsRedirect
	case *routev3.RedirectAction_SchemeRedirect:
		d.Scheme = s.SchemeRedirect
	}
	if r.PortRedirect != 0 {
		d.Port = fmt.Sprint(r.PortRedirect)
	}
	switch p := r.PathRewriteSpecifier.(type) {
	case *routev3.RedirectAction_PathRedirect:
		d.PathText, d.HasPath = p.PathRedirect, p.PathRedirect != ""
	case *routev3.RedirectAction_PrefixRewrite:
		d.Prefix, d.HasPrefix = p.PrefixRewrite, p.PrefixRewrite != ""
	case *routev3.RedirectAction_RegexRewrite:
		var err error
		if d.Regex, err = c.rewriteRegex(p.RegexRewrite); err != nil {
			return err
		}
	case *routev3.RedirectAction_PathRewrite:
		var err error
		if d.Format, err = format.ParseHeader(p.PathRewrite, c.Format); err != nil {
			return err
		}
	}
	if strings.ContainsAny(d.PathText, " \r\n") {
		if _, err := url.Parse(d.PathText); err != nil {
			return err
		}
	}
	e.RedirectTo = d
	return nil
}
