package match

import (
	"errors"

	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// PlainValue tells whether a plain value fits; has is false if there is none.
type PlainValue func(v any, has bool) bool

// NewValue compiles envoy.type.matcher.v3.ValueMatcher.
func NewValue(m *matcherv3.ValueMatcher) (PlainValue, error) {
	switch x := m.GetMatchPattern().(type) {
	case *matcherv3.ValueMatcher_NullMatch_:
		return func(v any, has bool) bool { return has && v == nil }, nil
	case *matcherv3.ValueMatcher_BoolMatch:
		return func(v any, has bool) bool { b, is := v.(bool); return is && b == x.BoolMatch }, nil
	case *matcherv3.ValueMatcher_PresentMatch:
		return func(v any, has bool) bool { return has == x.PresentMatch }, nil
	case *matcherv3.ValueMatcher_StringMatch:
		s, err := NewString(x.StringMatch)
		if err != nil {
			return nil, err
		}
		return func(v any, has bool) bool { t, is := v.(string); return is && s.Match(t) }, nil
	case *matcherv3.ValueMatcher_DoubleMatch:
		r, exact := x.DoubleMatch.GetRange(), x.DoubleMatch.GetExact()
		return func(v any, has bool) bool {
			f, is := v.(float64)
			if r != nil {
				return is && f >= r.Start && f < r.End
			}
			return is && f == exact
		}, nil
	case *matcherv3.ValueMatcher_ListMatch:
		one, err := NewValue(x.ListMatch.GetOneOf())
		if err != nil {
			return nil, err
		}
		return func(v any, has bool) bool {
			l, _ := v.([]any)
			for _, e := range l {
				if one(e, true) {
					return true
				}
			}
			return false
		}, nil
	case *matcherv3.ValueMatcher_OrMatch:
		return newOr(x.OrMatch.GetValueMatchers())
	}
	return nil, errors.New("value matcher is required")
}

func newOr(list []*matcherv3.ValueMatcher) (PlainValue, error) {
	var all []PlainValue
	for _, o := range list {
		f, err := NewValue(o)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return func(v any, has bool) bool {
		for _, f := range all {
			if f(v, has) {
				return true
			}
		}
		return false
	}, nil
}
