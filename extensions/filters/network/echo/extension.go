// Package echo is the network filter that sends back what it receives.
//
// A filter belongs to one connection on its worker. It ends its chain and keeps nothing.
package echo

import (
	"google.golang.org/protobuf/proto"

	// The configuration has no fields, but it must be known.
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/echo/v3"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/network"
)

// Extension is the filter's entry in the list of extensions.
var Extension = ext.NetworkFilter{
	Info: ext.Info{
		Name:     "envoy.filters.network.echo",
		TypeURLs: []string{"envoy.extensions.filters.network.echo.v3.Echo"},
		Posture:  ext.UnknownPosture,
	},
	New: func(proto.Message, ext.FactoryContext) (func(d network.Dispatcher) network.ReadFilter, error) {
		return func(network.Dispatcher) network.ReadFilter { return &filter{} }, nil
	},
	Terminal: true,
}

type filter struct {
	cb      network.ReadCallbacks
	stopped bool
}

// OnNewConnection implements network.ReadFilter.
func (f *filter) OnNewConnection(cb network.ReadCallbacks) network.FilterStatus {
	f.cb = cb
	return network.Continue
}

// OnData implements network.ReadFilter.
func (f *filter) OnData(data *buffer.Buffer, end bool) network.FilterStatus {
	f.cb.Connection().Write(data, end)
	return network.StopIteration
}

// OnEvent implements network.ReadFilter: a peer that does not read is not read from.
func (f *filter) OnEvent(e network.ConnEvent) {
	switch e {
	case network.AboveHighWatermark:
		if !f.stopped {
			f.stopped = true
			f.cb.Connection().ReadDisable(true)
		}
	case network.BelowLowWatermark:
		if f.stopped {
			f.stopped = false
			f.cb.Connection().ReadDisable(false)
		}
	}
}
