package server

import (
	"errors"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"

	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/dns"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/health"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// Clusters returns the clusters. owner: main loop.
func (s *Server) Clusters() *cluster.Manager { return s.clusters }

// buildClusters makes the static clusters.
func (s *Server) buildClusters() error {
	resolver := s.cfg.Resolver
	if resolver == nil {
		resolver = func(main *event.Worker, o dns.Options) dns.Resolver { return dns.NewSystem(main, o) }
	}
	deps := &cluster.Deps{Main: s.main, Workers: s.workers, Store: s.store, Transport: s.upstreamTransport, Runtime: s.runtime,
		Source: s.dynamic.sources, Resolver: resolver(s.main, dns.Options{}),
		NewResolver: func(o dns.Options) dns.Resolver { return resolver(s.main, o) }, BindConfig: s.boot.GetClusterManager().GetUpstreamBindConfig()}
	deps.HTTPFilters = func(list []*hcmv3.HttpFilter, field string, scope astats.Scope) (any, error) {
		return s.ext.upstreamChain(list, field, false, scope)
	}
	deps.Policies = func(o *httpv3.HttpProtocolOptions) (any, error) {
		p, err := route.NewClusterPolicies(o, s.routeDeps(true))
		if p == nil { // not an interface of a nil pointer
			return nil, err
		}
		return p, err
	}
	local := s.boot.GetClusterManager().GetLocalClusterName()
	deps.LocalCluster = local
	if l := s.node().GetLocality(); l != nil {
		deps.Here = host.Locality{Region: l.GetRegion(), Zone: l.GetZone(), SubZone: l.GetSubZone()}
	}
	deps.Headers = func(add []*corev3.HeaderValueOption, remove []string) (health.Edit, error) {
		m, err := route.NewMutations(add, remove, s.format)
		if m == nil {
			return nil, err
		}
		return m.Apply, nil
	}
	deps.EventLog = func(path string) (health.Log, error) { return s.logs.File(path) }
	s.clusters = cluster.NewManager(deps)
	var errs config.Errors
	errs.Collect("", s.cfg.Boot.Clusters(func(it config.Item[*clusterv3.Cluster]) error {
		if a, ok := s.cfg.Upstreams[it.Message.GetName()]; ok {
			embedUpstream(it.Message, a)
		}
		err := attempt(it.Broken || s.problems.broken, func() error { return s.addStatic(it.Message) })
		if err != nil || it.Broken {
			s.refusedCluster(it.Message.GetName())
			return s.located(it.Path, err)
		}
		s.keepCluster(it.Message, it.Raw)
		if from := it.Message.GetEdsClusterConfig().GetEdsConfig(); from.GetApiConfigSource() != nil {
			s.problems.later = append(s.problems.later, sourceAt{it.Path + ".eds_cluster_config.eds_config", from})
		}
		return nil
	}))
	errs.Collect("", s.checkUpstreams())
	if local != "" && !s.hasCluster(local) {
		errs.Collect("", s.located("cluster_manager.local_cluster_name", errors.New("local cluster '"+local+"' must be defined")))
	}
	return errs.Err()
}

// addStatic adds a cluster. The name of one that was refused is not free, either.
func (s *Server) addStatic(p *clusterv3.Cluster) error {
	var errs config.Errors
	if s.problems.clusters[p.GetName()] {
		errs.Collect("name", errors.New("cluster manager: duplicate cluster '"+p.GetName()+"'"))
	}
	errs.Collect("", s.clusters.AddStatic(p))
	return errs.Err()
}

func (s *Server) refusedCluster(name string) {
	p := &s.problems
	if p.clusters == nil {
		p.clusters = map[string]bool{}
	}
	p.clusters[name] = true
}

// inlineRoutes is a route configuration that stands in a listener. forget drops what is kept of it for /config_dump.
type inlineRoutes struct {
	slot   *route.Slot
	forget func()
}
