package route

import (
	"errors"
	"fmt"

	rulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

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
