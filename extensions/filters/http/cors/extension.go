// Package cors is the HTTP filter for cross-origin requests of browsers: it answers preflight requests, and says in responses who may
// read them. What is allowed stands in the route's configuration.
//
// A filter belongs to one stream on its worker; policies are compiled once and shared.
package cors

import (
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/stats"
)

// Extension is the filter's entry in the list of extensions.
var Extension = ext.HTTPFilter{
	Info: ext.Info{
		Name:     "envoy.filters.http.cors",
		TypeURLs: []string{"envoy.extensions.filters.http.cors.v3.Cors"},
		Posture:  ext.RobustToUntrustedDownstream,
	},
	New: func(_ proto.Message, ctx ext.FactoryContext) (filter.Factory, error) {
		return &factory{stats: ctx.Scope().Scope("cors").Group(template), runtime: ctx.Runtime()}, nil
	},
	NewRoute: func(m proto.Message, ctx ext.FactoryContext) (any, error) {
		return newPolicy(m.(*corsv3.CorsPolicy), ctx)
	},
	RouteTypeURLs: []string{"envoy.extensions.filters.http.cors.v3.CorsPolicy"},
}

// The indices of the filter's stats.
const (
	originInvalid stats.CounterIndex = 0
	originValid   stats.CounterIndex = 1
)

var template = stats.MustTemplate("cors filter",
	stats.Counter(originInvalid, "origin_invalid"),
	stats.Counter(originValid, "origin_valid"),
)
