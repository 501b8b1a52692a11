// Package original_dst is the listener filter that asks the kernel where a redirected connection was addressed to, and makes that
// its local address.
//
// A filter belongs to one connection on its worker. It needs no bytes and keeps nothing.
package original_dst //nolint:revive // Envoy's name

import (
	"google.golang.org/protobuf/proto"

	// The configuration has no fields, but it must be known.
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_dst/v3"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/network"
)

// Extension is the filter's entry in the list of extensions.
var Extension = ext.ListenerFilter{
	Info: ext.Info{
		Name:     "envoy.filters.listener.original_dst",
		TypeURLs: []string{"envoy.extensions.filters.listener.original_dst.v3.OriginalDst"},
		Posture:  ext.RobustToUntrustedDownstream,
	},
	New: func(proto.Message, ext.FactoryContext) (func(d network.Dispatcher) network.ListenerFilter, error) {
		return func(network.Dispatcher) network.ListenerFilter { return filter{} }, nil
	},
}

type filter struct{}

// OnAccept implements network.ListenerFilter.
func (filter) OnAccept(cb network.ListenerCallbacks) network.FilterStatus {
	if a, ok := cb.OriginalDestination(); ok && a.Valid() {
		cb.Info().SetLocal(a)
	}
	return network.Continue
}

func (filter) OnData([]byte) network.FilterStatus { return network.Continue }
func (filter) MaxReadBytes() int                  { return 0 }
func (filter) OnClose()                           {}
