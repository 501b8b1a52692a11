// Package sni_cluster is the network filter that makes the server name that a client asked for the name of the cluster that the TCP
// proxy behind it connects to.
//
// A filter belongs to one connection on its worker. It looks at no bytes.
package sni_cluster //nolint:revive // Envoy's name

import (
	"google.golang.org/protobuf/proto"

	// The configuration has no fields, but it must be known.
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/sni_cluster/v3"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/network"
)

// Extension is the filter's entry in the list of extensions.
var Extension = ext.NetworkFilter{
	Info: ext.Info{
		Name:     "envoy.filters.network.sni_cluster",
		TypeURLs: []string{"envoy.extensions.filters.network.sni_cluster.v3.SniCluster"},
		Posture:  ext.UnknownPosture,
	},
	New: func(proto.Message, ext.FactoryContext) (func(d network.Dispatcher) network.ReadFilter, error) {
		return func(network.Dispatcher) network.ReadFilter { return filter{} }, nil
	},
}

type filter struct{}

// OnNewConnection implements network.ReadFilter.
func (filter) OnNewConnection(cb network.ReadCallbacks) network.FilterStatus {
	i := cb.Connection().Info()
	if name := i.Said().ServerName; name != "" {
		i.FilterState().Set(network.TCPProxyCluster, name)
	}
	return network.Continue
}

func (filter) OnData(*buffer.Buffer, bool) network.FilterStatus { return network.Continue }
func (filter) OnEvent(network.ConnEvent)                        {}

// Indifferent implements network.Indifferent.
func (filter) Indifferent() bool { return true }
