// Package header_mutation is the HTTP filter that changes headers, trailers and query parameters, by its own configuration and by
// those of all levels of a route.
//
// A filter belongs to one stream on its worker; what it applies is compiled once and shared.
package header_mutation //nolint:revive // Envoy's name

import (
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
)

// Extension is the filter's entry in the list of extensions.
var Extension = ext.HTTPFilter{
	Info: ext.Info{
		Name:     "envoy.filters.http.header_mutation",
		TypeURLs: []string{"envoy.extensions.filters.http.header_mutation.v3.HeaderMutation"},
		Status:   ext.Alpha,
		Posture:  ext.UnknownPosture,
	},
	New: func(m proto.Message, ctx ext.FactoryContext) (filter.Factory, error) {
		p := m.(*mutationv3.HeaderMutation)
		l, err := newLevel(p.GetMutations(), ctx)
		if err != nil {
			return nil, err
		}
		return &factory{own: l, specificWins: p.GetMostSpecificHeaderMutationsWins()}, nil
	},
	NewRoute: func(m proto.Message, ctx ext.FactoryContext) (any, error) {
		return newLevel(m.(*mutationv3.HeaderMutationPerRoute).GetMutations(), ctx)
	},
	RouteTypeURLs: []string{"envoy.extensions.filters.http.header_mutation.v3.HeaderMutationPerRoute"},
}
