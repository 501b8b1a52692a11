package server

import (
	"fmt"
	"net"
	"net/netip"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/socket"
)

// Given is the source of listening sockets that the program around the proxy brings, by the names of listeners.
type Given map[string]net.Listener

// Listen returns a handle for the program's listener, if it has one of that name.
func (g Given) Listen(d event.Driver, spec *event.ListenSpec) (event.Handle, error) {
	ln := g[spec.Name]
	if ln == nil {
		return event.NoHandle, socket.ErrNone
	}
	return adopt(d, spec, ln)
}

// Probe tells whether it has one.
func (g Given) Probe(_ event.Driver, spec *event.ListenSpec) error {
	if g[spec.Name] == nil {
		return socket.ErrNone
	}
	return nil
}

// Bound is the source of listening sockets that somebody else has opened, by the addresses that they are bound to.
type Bound []net.Listener

// Listen returns a handle for the socket that is bound to the listener's address, if there is one.
func (b Bound) Listen(d event.Driver, spec *event.ListenSpec) (event.Handle, error) {
	for _, ln := range b {
		if boundTo(ln.Addr()) == spec.Address {
			return adopt(d, spec, ln)
		}
	}
	return event.NoHandle, socket.ErrNone
}

// Probe tells whether it has one.
func (b Bound) Probe(_ event.Driver, spec *event.ListenSpec) error {
	for _, ln := range b {
		if boundTo(ln.Addr()) == spec.Address {
			return nil
		}
	}
	return socket.ErrNone
}

// boundTo is an address of package net as configurations have it; none if it is neither TCP nor a Unix socket.
func boundTo(a net.Addr) network.Address {
	switch x := a.(type) {
	case *net.TCPAddr:
		at := x.AddrPort()
		return network.AddrFrom(netip.AddrPortFrom(at.Addr().Unmap(), at.Port()))
	case *net.UnixAddr:
		return network.Address{Path: x.Name}
	}
	return network.Address{}
}

func adopt(d event.Driver, spec *event.ListenSpec, ln net.Listener) (event.Handle, error) {
	a, ok := d.(event.Adopter)
	if !ok {
		return event.NoHandle, fmt.Errorf("listener %s: the driver cannot take over sockets", spec.Name)
	}
	return a.Adopt(ln)
}

// embedUpstream makes the program around the proxy the only host of a static cluster.
func embedUpstream(c *clusterv3.Cluster, a network.Address) {
	at := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: a.IP.Addr().String(),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(a.IP.Port())}}}}
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
	c.EdsClusterConfig, c.TransportSocket, c.TransportSocketMatches, c.HealthChecks = nil, nil, nil, nil
	c.LoadAssignment = &endpointv3.ClusterLoadAssignment{ClusterName: c.Name, Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: at}}}}}}}
}

// checkUpstreams refuses upstreams for clusters that there are not.
func (s *Server) checkUpstreams() error {
	for name := range s.cfg.Upstreams {
		if s.clusters.Lookup(name) == nil && !s.problems.clusters[name] {
			return fmt.Errorf("an upstream was given for cluster %q, which the bootstrap does not have", name)
		}
	}
	return nil
}
