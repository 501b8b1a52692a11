package server

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"

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
	return tls.Deps{Scope: scope, Secrets: s.dynamic.secrets, SetGauge: s.store.SetGauge,
		Count: func(id astats.CounterID) { s.store.Main().Inc(id) }, Match: func(m *matcherv3.StringMatcher) (interface{ Match(string) bool }, error) {
			return route.StringMatcher(m)
		}}
}

// downstreamTransport builds the transport socket of a filter chain; nil is plain bytes.
func (s *Server) downstreamTransport(ts *corev3.TransportSocket, scope astats.Scope) (listener.TransportFactory, error) {
	if ts == nil || shortURL(config.PayloadURL(ts.GetTypedConfig())) == rawBuffer {
		return nil, nil
	}
	m, _, err := config.Unpack(ts.GetTypedConfig(), nil)
	if err != nil {
		return nil, err
	}
	p, ok := m.(*tlsv3.DownstreamTlsContext)
	if !ok {
		return nil, unknownTransport(ts, p)
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
		return nil, unknownTransport(ts, p)
	}
	t, err := tls.NewClient(p, s.tlsDeps(scope))
	if err != nil {
		return nil, at("typed_config", err)
	}
	remember(&s.certs, t)
	return t, nil
}

// unknownTransport is the error about a transport socket that there is not; takes is the message of TLS at this side.
func unknownTransport(ts *corev3.TransportSocket, takes proto.Message) error {
	e := config.Unregistered(ts.GetName(), ts.GetTypedConfig())
	mine := string(takes.ProtoReflect().Descriptor().FullName())
	switch a := ts.GetTypedConfig(); {
	case a.GetTypeUrl() == "" && config.SameExtension(ts.GetName(), "envoy.transport_sockets.tls"):
		e.Typed(mine)
	case config.Holds(a, &tlsv3.CommonTlsContext{}):
		e.Misplaced("a part", "common_tls_context of "+mine)
	case config.Holds(a, &tlsv3.DownstreamTlsContext{}):
		e.Misplaced("for connections from clients", "a filter chain; a cluster takes "+mine)
	case config.Holds(a, &tlsv3.UpstreamTlsContext{}):
		e.Misplaced("for connections to upstreams", "a cluster; a filter chain takes "+mine)
	}
	return e
}
