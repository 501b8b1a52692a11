package route

import (
	"errors"
	"fmt"
	"strings"

	rulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

// HeaderMutations compiles a list of changes that apply in their order.
func HeaderMutations(list []*rulesv3.HeaderMutation, o *format.Options) (*Mutations, error) {
	out := &Mutations{}
	for i, m := range list {
		var steps []mutation
		var err error
		switch a := m.Action.(type) {
		case *rulesv3.HeaderMutation_Remove:
			steps, err = Changes(nil, []string{a.Remove}, o)
		case *rulesv3.HeaderMutation_Append:
			steps, err = Changes([]*corev3.HeaderValueOption{a.Append}, nil, o)
		case *rulesv3.HeaderMutation_RemoveOnMatch_:
			var sm StringMatch
			if sm, err = StringMatcher(a.RemoveOnMatch.GetKeyMatcher()); err == nil {
				steps = []mutation{{match: sm, remove: true}}
			}
		default:
			err = errors.New("an action is required")
		}
		if err != nil {
			return nil, fmt.Errorf("mutations[%d]: %w", i, err)
		}
		out.levels = append(out.levels, newLevel(steps))
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
