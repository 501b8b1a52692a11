// Package http_inspector is the listener filter that finds out whether a plain connection speaks HTTP, and which version, so that
// filter chains can be chosen by application protocol.
//
// A filter belongs to one connection on its worker. It reads bytes that stay in the connection, and never answers any.
package http_inspector //nolint:revive // Envoy's name

import (
	"google.golang.org/protobuf/proto"

	// The configuration has no fields, but it must be known.
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/http_inspector/v3"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stats"
)

// Extension is the filter's entry in the list of extensions.
var Extension = ext.ListenerFilter{
	Info: ext.Info{
		Name:     "envoy.filters.listener.http_inspector",
		TypeURLs: []string{"envoy.extensions.filters.listener.http_inspector.v3.HttpInspector"},
		Posture:  ext.RequiresTrustedDownstreamAndUpstream,
	},
	New: func(_ proto.Message, ctx ext.FactoryContext) (func(d network.Dispatcher) network.ListenerFilter, error) {
		base := ctx.Scope().Scope("http_inspector").Group(template)
		return func(network.Dispatcher) network.ListenerFilter { return &inspector{stats: base} }, nil
	},
}

// The indices of the filter's stats.
const (
	http10Found stats.CounterIndex = iota
	http11Found
	http2Found
	notFound
	readError
)

var template = stats.MustTemplate("http inspector filter",
	stats.Counter(http10Found, "http10_found"),
	stats.Counter(http11Found, "http11_found"),
	stats.Counter(http2Found, "http2_found"),
	stats.Counter(notFound, "http_not_found"),
	stats.Counter(readError, "read_error"),
)
