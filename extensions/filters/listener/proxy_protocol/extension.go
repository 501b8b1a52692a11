// Package proxy_protocol is the listener filter that reads the header by which a load balancer in front tells who its client is
// (PROXY protocol, versions 1 and 2), and gives the connection these addresses.
//
// A filter belongs to one connection on its worker. It takes the header off the connection and nothing else.
package proxy_protocol //nolint:revive // Envoy's name

import (
	"errors"

	"google.golang.org/protobuf/proto"

	proxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/proxy_protocol/v3"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/network"
)

// Extension is the filter's entry in the list of extensions.
var Extension = ext.ListenerFilter{
	Info: ext.Info{
		Name:     "envoy.filters.listener.proxy_protocol",
		TypeURLs: []string{"envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol"},
		Posture:  ext.RobustToUntrustedDownstream,
		Refused:  []string{"pass_through_tlvs", "tlv_location=FILTER_STATE"},
	},
	New: func(cfg proto.Message, ctx ext.FactoryContext) (func(d network.Dispatcher) network.ListenerFilter, error) {
		c := newConfig(cfg.(*proxyv3.ProxyProtocol), ctx.Scope())
		if !c.allowed[1] && !c.allowed[2] {
			return nil, errors.New("Proxy Protocol filter is misconfigured: all proxy protocol versions are disallowed.") //nolint:staticcheck // Envoy's text
		}
		return func(network.Dispatcher) network.ListenerFilter { return &filter{cfg: c} }, nil
	},
}
