// Package tls_inspector is the listener filter that reads the ClientHello of a TLS connection, so that filter chains can be chosen
// by server name, transport protocol and ALPN.
//
// A filter belongs to one connection on its worker. It reads bytes that stay in the connection, and never answers any.
package tls_inspector //nolint:revive // Envoy's name

import (
	"google.golang.org/protobuf/proto"

	inspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/network"
)

// Extension is the filter's entry in the list of extensions.
var Extension = ext.ListenerFilter{
	Info: ext.Info{
		Name:     "envoy.filters.listener.tls_inspector",
		TypeURLs: []string{"envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"},
		Posture:  ext.RobustToUntrustedDownstream,
		Ignored:  []string{"initial_read_buffer_size"},
	},
	New: func(cfg proto.Message, ctx ext.FactoryContext) (func(d network.Dispatcher) network.ListenerFilter, error) {
		c := newConfig(cfg.(*inspectorv3.TlsInspector), ctx.Scope())
		return func(network.Dispatcher) network.ListenerFilter { return &inspector{cfg: c} }, nil
	},
}
