package accesslog

import (
	"errors"
	"fmt"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/stream"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// maxFilterDepth bounds filters inside filters.
const maxFilterDepth = 32

// NewFilter builds an access log filter.
func NewFilter(f *accesslogv3.AccessLogFilter, d *Deps) (accesslog.Filter, error) {
	return newFilter(f, d, 0)
}

func newFilter(f *accesslogv3.AccessLogFilter, d *Deps, depth int) (accesslog.Filter, error) {
	if depth > maxFilterDepth {
		return nil, fmt.Errorf("access log filters are nested deeper than %d", maxFilterDepth)
	}
	switch s := f.GetFilterSpecifier().(type) {
	case *accesslogv3.AccessLogFilter_StatusCodeFilter:
		return statusCode{newComparison(s.StatusCodeFilter.GetComparison(), d)}, nil
	case *accesslogv3.AccessLogFilter_DurationFilter:
		return duration{newComparison(s.DurationFilter.GetComparison(), d)}, nil
	case *accesslogv3.AccessLogFilter_NotHealthCheckFilter:
		return notHealthCheck{}, nil
	case *accesslogv3.AccessLogFilter_RuntimeFilter:
		return newFraction(s.RuntimeFilter, d), nil
	case *accesslogv3.AccessLogFilter_AndFilter:
		list, err := newFilters(s.AndFilter.GetFilters(), d, depth)
		return and(list), err
	case *accesslogv3.AccessLogFilter_OrFilter:
		list, err := newFilters(s.OrFilter.GetFilters(), d, depth)
		return or(list), err
	case *accesslogv3.AccessLogFilter_HeaderFilter:
		if d.Header == nil {
			return nil, errors.New("access log header_filter: there are no header matchers here")
		}
		match, err := d.Header(s.HeaderFilter.GetHeader())
		return header{match}, err
	case *accesslogv3.AccessLogFilter_ResponseFlagFilter:
		return newFlags(s.ResponseFlagFilter.GetFlags())
	case *accesslogv3.AccessLogFilter_GrpcStatusFilter:
		g := grpcStatus{codes: map[int64]bool{}, exclude: s.GrpcStatusFilter.GetExclude()}
		for _, c := range s.GrpcStatusFilter.GetStatuses() {
			g.codes[int64(c)] = true
		}
		return g, nil
	case *accesslogv3.AccessLogFilter_LogTypeFilter:
		t := logType{exclude: s.LogTypeFilter.GetExclude()}
		for _, v := range s.LogTypeFilter.GetTypes() {
			if v < 32 {
				t.types |= 1 << v
			}
		}
		return t, nil
	case *accesslogv3.AccessLogFilter_MetadataFilter:
		return newMetadata(s.MetadataFilter, d)
	case *accesslogv3.AccessLogFilter_TraceableFilter:
		return nil, errors.New("access log traceable_filter is not supported yet")
	case *accesslogv3.AccessLogFilter_ExtensionFilter:
		return nil, config.Unregistered(s.ExtensionFilter.GetName(), s.ExtensionFilter.GetTypedConfig())
	}
	return nil, errors.New("an access log filter needs one of the filters")
}

func newFilters(list []*accesslogv3.AccessLogFilter, d *Deps, depth int) ([]accesslog.Filter, error) {
	out := make([]accesslog.Filter, len(list))
	for i, f := range list {
		var err error
		if out[i], err = newFilter(f, d, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func newComparison(c *accesslogv3.ComparisonFilter, d *Deps) comparison {
	v := c.GetValue()
	out := comparison{value: uint64(v.GetDefaultValue()), key: v.GetRuntimeKey(), runtime: d.Runtime}
	switch c.GetOp() {
	case accesslogv3.ComparisonFilter_GE:
		out.op = greaterOrEqual
	case accesslogv3.ComparisonFilter_LE:
		out.op = lessOrEqual
	case accesslogv3.ComparisonFilter_NE:
		out.op = notEqual
	}
	return out
}

func newFraction(f *accesslogv3.RuntimeFilter, d *Deps) fraction {
	p := f.GetPercentSampled()
	out := fraction{
		m: d.Manager, runtime: d.Runtime, key: f.GetRuntimeKey(), numerator: uint64(p.GetNumerator()), denominator: 100,
		independent: f.GetUseIndependentRandomness(),
	}
	switch p.GetDenominator() {
	case typev3.FractionalPercent_TEN_THOUSAND:
		out.denominator = 10_000
	case typev3.FractionalPercent_MILLION:
		out.denominator = 1_000_000
	}
	return out
}

// newFlags maps the short names of response flags. No names mean: any flag.
func newFlags(names []string) (accesslog.Filter, error) {
	f := flags{any: len(names) == 0}
	for _, n := range names {
		flag, ok := stream.ParseFlag(n)
		if !ok {
			return nil, fmt.Errorf("access log response_flag_filter: there is no response flag %q", n)
		}
		f.list = append(f.list, flag)
	}
	return f, nil
}

func newMetadata(f *accesslogv3.MetadataFilter, d *Deps) (accesslog.Filter, error) {
	m := f.GetMatcher()
	out := metadata{missing: true, space: m.GetFilter()}
	if v := f.GetMatchIfKeyNotFound(); v != nil {
		out.missing = v.GetValue()
	}
	if m == nil {
		return out, nil
	}
	for _, p := range m.GetPath() {
		out.path = append(out.path, p.GetKey())
	}
	var err error
	out.match, err = newValueMatch(m.GetValue(), d, 0)
	return out, err
}

// newValueMatch builds a matcher of plain values.
func newValueMatch(v *matcherv3.ValueMatcher, d *Deps, depth int) (valueMatch, error) {
	if depth > maxFilterDepth {
		return nil, fmt.Errorf("value matchers are nested deeper than %d", maxFilterDepth)
	}
	switch p := v.GetMatchPattern().(type) {
	case *matcherv3.ValueMatcher_NullMatch_:
		return func(v any) bool { return v == nil }, nil
	case *matcherv3.ValueMatcher_BoolMatch:
		return func(v any) bool { b, ok := v.(bool); return ok && b == p.BoolMatch }, nil
	case *matcherv3.ValueMatcher_PresentMatch:
		return func(v any) bool { return (v != nil) == p.PresentMatch }, nil
	case *matcherv3.ValueMatcher_DoubleMatch:
		return newDouble(p.DoubleMatch), nil
	case *matcherv3.ValueMatcher_StringMatch:
		if d.String == nil {
			return nil, errors.New("access log metadata_filter: there are no string matchers here")
		}
		match, err := d.String(p.StringMatch)
		return func(v any) bool { s, ok := v.(string); return ok && match(s) }, err
	case *matcherv3.ValueMatcher_ListMatch:
		one, err := newValueMatch(p.ListMatch.GetOneOf(), d, depth+1)
		return func(v any) bool {
			list, _ := v.([]any)
			for _, e := range list {
				if one(e) {
					return true
				}
			}
			return false
		}, err
	case *matcherv3.ValueMatcher_OrMatch:
		return newOrMatch(p.OrMatch.GetValueMatchers(), d, depth)
	}
	return nil, errors.New("a value matcher needs a pattern")
}

func newOrMatch(list []*matcherv3.ValueMatcher, d *Deps, depth int) (valueMatch, error) {
	var all []valueMatch
	for _, m := range list {
		one, err := newValueMatch(m, d, depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return func(v any) bool {
		for _, m := range all {
			if m(v) {
				return true
			}
		}
		return false
	}, nil
}

func newDouble(m *matcherv3.DoubleMatcher) valueMatch {
	if r := m.GetRange(); r != nil {
		start, end := r.GetStart(), r.GetEnd()
		return func(v any) bool { f, ok := v.(float64); return ok && f >= start && f < end }
	}
	exact := m.GetExact()
	return func(v any) bool { f, ok := v.(float64); return ok && f == exact }
}
