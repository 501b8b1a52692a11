package server

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	// Linked in so that configurations may name it.
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"

	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/tls"
)

func (s *Server) tlsDeps(scope astats.Scope) tls.Deps {
	return tls.Deps{Scope: scope, Secrets: s.dynamic.secrets, Match: func(m *matcherv3.StringMatcher) (interface{ Match(string) bool }, error) {
		return route.StringMatcher(m)
	}}
}

// downstreamTransport builds the transport socket of a filter chain; nil is plain bytes.
func (s *Server) downstreamTransport(ts *corev3.TransportSocket, scope astats.Scope) (listener.TransportFactory, error) {
	if ts == nil || shortURL(ts.GetTypedConfig().GetTypeUrl()) == rawBuffer {
		return nil, nil
	}
	m, _, err := config.Unpack(ts.GetTypedConfig(), nil)
	if err != nil {
		return nil, err
	}
	p, ok := m.(*tlsv3.DownstreamTlsContext)
	if !ok {
		return nil, unknownTransport(ts)
	}
	t, err := tls.NewServer(p, s.tlsDeps(scope))
	if err != nil {
		return nil, at("typed_config", err)
	}
	remember(&s.certs, t)
	return t, nil
}

const rawBuffer = "envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer"

// upstreamTransport is the same for a cluster.
func (s *Server) upstreamTransport(_ string, ts *corev3.TransportSocket, scope astats.Scope) (pool.TransportFactory, error) {
	m, _, err := config.Unpack(ts.GetTypedConfig(), nil)
	if err != nil {
		return nil, err
	}
	p, ok := m.(*tlsv3.UpstreamTlsContext)
	if !ok {
		return nil, unknownTransport(ts)
	}
	t, err := tls.NewClient(p, s.tlsDeps(scope))
	if err != nil {
		return nil, at("typed_config", err)
	}
	remember(&s.certs, t)
	return t, nil
}

func unknownTransport(ts *corev3.TransportSocket) error {
	return fmt.Errorf("Didn't find a registered implementation for '%s' with type URL: '%s'", ts.GetName(), shortURL(ts.GetTypedConfig().GetTypeUrl())) //nolint:staticcheck // Envoy's text
}
