package server

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/dns"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// Clusters returns the clusters. owner: main loop.
func (s *Server) Clusters() *cluster.Manager { return s.clusters }

// buildClusters makes the static clusters.
func (s *Server) buildClusters() error {
	deps := &cluster.Deps{Main: s.main, Workers: s.workers, Store: s.store, Transport: s.upstreamTransport, Runtime: s.runtime,
		Source: s.dynamic.files, Resolver: dns.NewSystem(s.main, dns.Options{}),
		NewResolver: func(o dns.Options) dns.Resolver { return dns.NewSystem(s.main, o) }, BindConfig: s.boot.GetClusterManager().GetUpstreamBindConfig()}
	s.clusters = cluster.NewManager(deps)
	if s.boot.GetClusterManager().GetLocalClusterName() != "" {
		return s.located("cluster_manager", &config.Error{Path: "local_cluster_name", Msg: "not supported yet"})
	}
	err := s.cfg.Boot.Clusters(func(it config.Item[*clusterv3.Cluster]) error {
		if a, ok := s.cfg.Upstreams[it.Message.GetName()]; ok {
			embedUpstream(it.Message, a)
		}
		if err := s.clusters.AddStatic(it.Message); err != nil {
			return s.located(it.Path, err)
		}
		s.keepCluster(it.Message, it.Raw)
		return nil
	})
	if err != nil {
		return err
	}
	return s.checkUpstreams()
}

// located gives an error its place in the file.
func (s *Server) located(path string, err error) error {
	pos := s.cfg.Boot.Positions()
	if e, ok := err.(*config.Errors); ok {
		return pos.Attach(path, e)
	}
	if e, ok := err.(*config.Error); ok {
		x := *e
		if x.Path != "" {
			path += "." + x.Path
		}
		return pos.Error(path, x)
	}
	return pos.Error(path, config.Error{Msg: err.Error()})
}

// inlineRoutes is a route configuration that stands in a listener. forget drops what is kept of it for /config_dump.
type inlineRoutes struct {
	slot   *route.Slot
	forget func()
}
