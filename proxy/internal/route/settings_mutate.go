package route

import (
	"errors"
	"fmt"
	"strings"

	rulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

// HeaderMutations compiles a list of changes that apply in their order.
func HeaderMutations(list []*rulesv3.HeaderMutation, o *format.Options) (*Mutations, error) {
	out := &Mutations{}
	var errs config.Errors
	for i, m := range list {
		var steps []mutation
		var err error
		switch a := m.Action.(type) {
		case *rulesv3.HeaderMutation_Remove:
			steps, err = removals([]string{a.Remove})
			if err != nil {
				err = config.At("remove", errors.New(config.List(err)[0].Msg))
			}
		case *rulesv3.HeaderMutation_Append:
			var one mutation
			one, err = addition(a.Append, o)
			steps, err = []mutation{one}, config.At("append.header", err)
		case *rulesv3.HeaderMutation_RemoveOnMatch_:
			var sm StringMatch
			sm, err = StringMatcher(a.RemoveOnMatch.GetKeyMatcher())
			steps, err = []mutation{{match: sm, remove: true}}, config.At("remove_on_match.key_matcher", err)
		default:
			err = errors.New("an action is required")
		}
		if errs.Collect(fmt.Sprintf("[%d]", i), err) {
			out.levels = append(out.levels, newLevel(steps))
		}
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return out, nil
}

type headerLevel interface {
	GetRequestHeadersToAdd() []*corev3.HeaderValueOption
	GetRequestHeadersToRemove() []string
	GetResponseHeadersToAdd() []*corev3.HeaderValueOption
	GetResponseHeadersToRemove() []string
}

func (c *compiler) level(l headerLevel) (req, resp []mutation, err error) {
	var errs config.Errors
	list := func(add []*corev3.HeaderValueOption, remove []string, of string) []mutation {
		added, err := additions(add, c.Format)
		if err != nil { // each level of each route comes here: no string is made for nothing
			errs.Collect(of+"_headers_to_add", err)
		}
		removed, err := removals(remove)
		if err != nil {
			errs.Collect(of+"_headers_to_remove", err)
		}
		return append(added, removed...)
	}
	req = list(l.GetRequestHeadersToAdd(), l.GetRequestHeadersToRemove(), "request")
	resp = list(l.GetResponseHeadersToAdd(), l.GetResponseHeadersToRemove(), "response")
	return req, resp, errs.Err()
}

// join orders the levels: most specific first, so that the least specific has the last word, unless the configuration asks for
// the opposite.
func (c *compiler) join(levels [][]mutation) *Mutations {
	// Most routes have no level of their own: those that share theirs share the result, too.
	var k joinKey
	for i, l := range levels {
		if len(l) > 0 {
			k[i] = &l[0]
		}
	}
	if k == (joinKey{}) {
		return nil
	}
	if m, ok := c.joined[k]; ok {
		return m
	}
	m := lone(levels)
	if m == nil {
		m = &Mutations{}
		for i := range levels {
			if c.specific {
				i = len(levels) - 1 - i
			}
			if len(levels[i]) > 0 {
				m.levels = append(m.levels, newLevel(levels[i]))
			}
		}
	}
	if k[0] == nil {
		if c.joined == nil {
			c.joined = map[joinKey]*Mutations{}
		}
		c.joined[k] = m
	}
	return m
}

// lone returns the Mutations of levels that have one step in all, nil for others. They are one object instead of three: the streams of a
// configuration that is gone hold them one by one, each on its page.
func lone(levels [][]mutation) *Mutations {
	n, at := 0, 0
	for i, l := range levels {
		if n += len(l); len(l) > 0 {
			at = i
		}
	}
	if n != 1 {
		return nil
	}
	o := &struct {
		m     Mutations
		level [1]level
		step  [1]mutation
	}{step: [1]mutation(levels[at])}
	o.level[0] = newLevel(o.step[:])
	o.m.levels = o.level[:]
	return &o.m
}

// joinKey tells levels apart by their first steps; the first is the route's own.
type joinKey [3]*mutation

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
	var errs config.Errors
	added, err := additions(add, o)
	errs.Collect("", err)
	removed, err := removals(remove)
	errs.Collect("", err)
	return append(added, removed...), errs.Err()
}

func additions(add []*corev3.HeaderValueOption, o *format.Options) ([]mutation, error) {
	var out []mutation
	var errs config.Errors
	for i, a := range add {
		m, err := addition(a, o)
		errs.Collect(fmt.Sprintf("[%d].header", i), err)
		if a.Append != nil && a.AppendAction != 0 { //nolint:staticcheck // deprecated and still accepted
			errs.Collect(fmt.Sprintf("[%d].append", i), &config.Error{Msg: "Both append and append_action are set and it's not allowed", Advice: "append_action says it alone"})
		}
		out = append(out, m)
	}
	return out, errs.Err()
}

func addition(a *corev3.HeaderValueOption, o *format.Options) (m mutation, err error) {
	name := strings.ToLower(a.GetHeader().GetKey())
	if strings.HasPrefix(name, ":") || name == "host" {
		return m, config.At("key", errors.New(":-prefixed or host headers may not be modified"))
	}
	m = mutation{name: name, id: http.Lookup(name), keepEmpty: a.KeepEmptyValue, value: a.GetHeader().GetValue()}
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
	if strings.IndexByte(m.value, '%') < 0 {
		return m, nil
	}
	p, err := format.ParseHeader(m.value, o)
	if err != nil {
		return m, config.At("value", err)
	}
	if lit, ok := p.Literal(); ok {
		m.value = lit
	} else {
		m.prog = p
	}
	return m, nil
}

func removals(remove []string) ([]mutation, error) {
	var out []mutation
	var errs config.Errors
	for i, n := range remove {
		n = strings.ToLower(n)
		if strings.HasPrefix(n, ":") || n == "host" {
			errs.Collect(fmt.Sprintf("[%d]", i), errors.New(":-prefixed or host headers may not be removed"))
			continue
		}
		out = append(out, mutation{name: n, id: http.Lookup(n), remove: true})
	}
	return out, errs.Err()
}

// NewMutations compiles a list of additions, for what is not a route (local replies).
func NewMutations(add []*corev3.HeaderValueOption, remove []string, o *format.Options) (*Mutations, error) {
	steps, err := Changes(add, remove, o)
	if err != nil || len(steps) == 0 {
		return nil, err
	}
	return &Mutations{[]level{newLevel(steps)}}, nil
}
