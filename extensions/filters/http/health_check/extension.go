// Package health_check is the HTTP filter that answers health checks of this proxy, by itself or with what an upstream answered, and
// tells callers when the proxy was told to fail them.
//
// A filter belongs to one stream on its worker; the cache is shared by all workers, by atomics.
package health_check //nolint:revive // Envoy's name

import (
	checkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/health_check/v3"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
)

// Extension is the filter's entry in the list of extensions.
var Extension = ext.HTTPFilter{
	Info: ext.Info{
		Name:     "envoy.filters.http.health_check",
		TypeURLs: []string{"envoy.extensions.filters.http.health_check.v3.HealthCheck"},
		Posture:  ext.RobustToUntrustedDownstream,
	},
	New: func(m proto.Message, ctx ext.FactoryContext) (filter.Factory, error) {
		return newFactory(m.(*checkv3.HealthCheck), ctx)
	},
}
