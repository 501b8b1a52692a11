package header_mutation //nolint:revive // Envoy's name

import (
	"fmt"

	rulesv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/ext"
)

// newLevel compiles what one level says.
func newLevel(p *mutationv3.Mutations, ctx ext.FactoryContext) (*level, error) {
	l := &level{}
	if list := p.GetFormatters(); len(list) > 0 {
		all := make([]proto.Message, len(list))
		for i, f := range list {
			all[i] = f
		}
		var err error
		if ctx, err = ctx.WithFormatters(all); err != nil {
			return nil, fmt.Errorf("formatters: %w", err)
		}
	}
	for _, x := range []struct {
		name string
		from []*rulesv3.HeaderMutation
		to   *ext.HeaderMutations
	}{
		{"request_mutations", p.GetRequestMutations(), &l.request},
		{"response_mutations", p.GetResponseMutations(), &l.response},
		{"request_trailers_mutations", p.GetRequestTrailersMutations(), &l.requestTrailers},
		{"response_trailers_mutations", p.GetResponseTrailersMutations(), &l.responseTrailers},
	} {
		if len(x.from) == 0 {
			continue
		}
		list := make([]proto.Message, len(x.from))
		for i, m := range x.from {
			list[i] = m
		}
		m, err := ctx.HeaderMutations(list)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", x.name, err)
		}
		*x.to = m
	}
	for i, m := range p.GetQueryParameterMutations() {
		q, err := newQuery(m, ctx)
		if err != nil {
			return nil, fmt.Errorf("query_parameter_mutations[%d]: %w", i, err)
		}
		l.query = append(l.query, q)
	}
	return l, nil
}

func newQuery(m *corev3.KeyValueMutation, ctx ext.FactoryContext) (q query, err error) {
	if r := m.GetRemove(); r != "" {
		return query{name: r, remove: true}, nil
	}
	a := m.GetAppend()
	q = query{name: a.GetRecord().GetKey(), action: action(a.GetAction())}
	if q.name == "" {
		q.name = a.GetEntry().GetKey() //nolint:staticcheck // deprecated, and valid
		q.value, err = ctx.Format(string(a.GetEntry().GetValue()))
		return q, err
	}
	q.value, err = ctx.Format(a.GetRecord().GetValue().GetStringValue())
	return q, err
}
