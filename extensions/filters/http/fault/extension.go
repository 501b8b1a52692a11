// Package fault is the HTTP filter that delays, aborts and slows down requests, to see how those who send them bear it.
//
// A filter belongs to one stream on its worker. How many faults are active is counted over all workers.
package fault

import (
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/stats"
)

// Extension is the filter's entry in the list of extensions.
var Extension = ext.HTTPFilter{
	Info: ext.Info{
		Name:     "envoy.filters.http.fault",
		TypeURLs: []string{"envoy.extensions.filters.http.fault.v3.HTTPFault"},
		Posture:  ext.RobustToUntrustedDownstream,
	},
	New: func(m proto.Message, ctx ext.FactoryContext) (filter.Factory, error) {
		s, err := newSettings(m.(*faultv3.HTTPFault), ctx)
		if err != nil {
			return nil, err
		}
		scope := ctx.Scope().Scope("fault")
		return &factory{settings: s, stats: scope.Group(template), runtime: ctx.Runtime(), callers: callers{ctx: ctx, scope: scope}}, nil
	},
	NewRoute: func(m proto.Message, ctx ext.FactoryContext) (any, error) {
		return newSettings(m.(*faultv3.HTTPFault), ctx)
	},
}

// The indices of the filter's stats.
const (
	abortsInjected     stats.CounterIndex = 0
	delaysInjected     stats.CounterIndex = 1
	faultsOverflow     stats.CounterIndex = 2
	responseRLInjected stats.CounterIndex = 3
	activeFaults       stats.GaugeIndex   = 4
)

var callerTemplate = stats.MustTemplate("fault filter, by downstream cluster",
	stats.Counter(abortsInjected, "aborts_injected"),
	stats.Counter(delaysInjected, "delays_injected"),
)

var template = stats.MustTemplate("fault filter",
	stats.Counter(abortsInjected, "aborts_injected"),
	stats.Counter(delaysInjected, "delays_injected"),
	stats.Counter(faultsOverflow, "faults_overflow"),
	stats.Counter(responseRLInjected, "response_rl_injected"),
	stats.Gauge(activeFaults, "active_faults"),
)
