package config

import (
	"slices"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
)

// sides are the messages of a transport socket that stand at one side of the proxy each: the other side takes the other one.
var sides = map[string]struct{ at, other, what string }{
	"envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext": {
		at: "envoy.config.cluster.v3.Cluster", other: "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", what: "a cluster"},
	"envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext": {
		at: "envoy.config.listener.v3.FilterChain", other: "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext", what: "a filter chain"},
}

// wrongSide completes the error about the key c of the map n, which m has not, if m stands at the side that takes another message: that is
// the mistake, and told once. told: it was told already, and c is a field of the other message.
func (e *encoder) wrongSide(n, c yamlpos.Node, m *message, x *Error) (wrong, told bool) {
	side, ok := sides[m.name]
	if !ok || !slices.ContainsFunc(e.around, func(a nesting) bool { return a.m.name == side.at }) {
		return false, false
	}
	mt, err := e.resolver.FindMessageByURL(typePrefix + side.other)
	if err != nil {
		return false, false
	}
	other := e.schema.message(mt.Descriptor())
	for b := e.tree.First(n); b < c; b = e.tree.End(b) {
		if key := string(e.tree.Key(b)); key != "@type" && m.fields[key] == nil {
			return false, other.fields[string(e.tree.Key(c))] != nil
		}
	}
	x.Suggestion, x.Allowed, x.Advice = "", "", side.what+" takes "+typePrefix+side.other
	if other.fields[string(e.tree.Key(c))] != nil {
		x.Advice += ", which has that field"
	}
	return true, false
}
