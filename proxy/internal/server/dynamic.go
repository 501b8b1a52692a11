package server

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/proxy/internal/async"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/secret"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
	"github.com/dragoman-proxy/dragoman/proxy/internal/xds"
)

// dynamic is what brings configuration in while the proxy runs. owner: main loop.
type dynamic struct {
	sources *xds.Sources
	files   *xds.Files
	streams *xds.Streams
	notify  *xds.Notify
	secrets *secret.Manager
	rds     *route.RDS
	cds     *cluster.CDS
	// listening: the first clusters are there. acknowledge lets CDS go on, which waits for clusters; nil mostly.
	listening   bool
	acknowledge func()
	// pending counts what must have come before the proxy serves; whenReady runs at zero.
	pending   int
	whenReady func()
}

// buildDynamic makes the sources. It comes before everything that subscribes.
func (s *Server) buildDynamic() {
	d := &s.dynamic
	d.files = &xds.Files{Main: s.main, Store: s.store, Options: s.dynamicOptions(), Read: s.cfg.ReadFile, Inline: s.cfg.Inline, Watcher: s.cfg.Watcher,
		Warn: func(text string) { s.logger("config").Warn(text) }}
	if d.files.Watcher == nil {
		d.notify = xds.NewNotify()
		d.files.Watcher = d.notify
	}
	d.streams = &xds.Streams{Main: s.main, Store: s.store, Options: d.files.Options, Inline: s.cfg.Inline, Warn: d.files.Warn,
		Client: func() *async.Client { return s.calls }}
	ads := s.boot.GetDynamicResources().GetAdsConfig()
	if ads != nil {
		d.streams.SetADS(ads)
	}
	d.sources = &xds.Sources{Files: d.files, Streams: d.streams, ADS: func() bool { return ads != nil }}
	d.sources.HasNode = func() bool { return s.node().GetId() != "" && s.node().GetCluster() != "" }
	d.secrets = &secret.Manager{Source: d.sources, Scope: s.store.Root(), Wait: s.wait, Wall: s.main.Wall}
}

// checkSources looks at the sources that are subscribed to when the proxy starts. It needs the clusters.
func (s *Server) checkSources() error {
	f, d := s.dynamic.sources, s.boot.GetDynamicResources()
	f.Meant = s.meantCluster
	f.Primary = func(name string) bool {
		return s.clusters.Primary(name) || s.clusters.Lookup(name) == nil && s.hasCluster(name) // what was refused was meant to be one
	}
	var errs config.Errors
	if a := d.GetAdsConfig(); a != nil {
		errs.Collect("ads_config", f.CheckADS(a, s.hasCluster))
	}
	if from := d.GetCdsConfig(); from != nil {
		errs.Collect("cds_config", f.Check(from, cluster.ClusterType))
	}
	if from := d.GetLdsConfig(); from != nil {
		errs.Collect("lds_config", f.Check(from, listenerType))
	}
	var all config.Errors
	all.Collect("", s.located("dynamic_resources", errs.Err()))
	all.Collect("", s.located("layered_runtime", s.checkRTDS()))
	for _, x := range s.problems.later {
		all.Collect("", s.located(x.path, f.Check(x.from, xdstype.Endpoint)))
	}
	s.problems.later = nil
	return all.Err()
}

// buildRDS makes the shared route subscriptions; it needs the clusters.
func (s *Server) buildRDS() {
	s.dynamic.rds = &route.RDS{Main: s.main, Store: s.store, Log: s.logger("rds"), Source: s.dynamic.sources, Deps: s.routeDeps(false), Changed: s.routesChanged}
}

func (s *Server) routeDeps(static bool) route.Deps {
	d := route.Deps{Slot: s.clusters.Slot, Exists: s.hasCluster, FilterConfig: s.ext.routeConfig, Optional: s.ext.unknownToRoutes, Format: s.format, ValidateDefault: static,
		Runtime: s.runtime, Scope: s.store.Root()}
	if static {
		d.Meant = s.meantCluster
	}
	return d
}

// maxNearest bounds for how many unknown clusters a start looks for the one that was meant: with many clusters each costs milliseconds.
const maxNearest = 100

// meantCluster completes the error about a cluster that does not exist with those that may have been meant.
func (s *Server) meantCluster(e *config.Error, name string) {
	e.NoCluster = name
	p := &s.problems
	if p.nearest++; p.nearest <= maxNearest && !p.unread {
		names := slices.Concat(s.clusters.Names(), slices.Collect(maps.Keys(p.clusters)))
		e.Among(name, "clusters", slices.DeleteFunc(names, func(n string) bool { return n == "" }))
	}
}

// wait makes the start wait for one more thing; the result says that it has come. It may be called more than once.
func (s *Server) wait() func() {
	d := &s.dynamic
	d.pending++
	done := false
	return func() {
		if done {
			return
		}
		done = true
		d.pending--
		if d.pending == 0 && d.whenReady != nil {
			f := d.whenReady
			d.whenReady = nil
			f()
		}
	}
}

// whenInitialized runs f once everything that was waited for is there.
func (s *Server) whenInitialized(f func()) {
	if s.dynamic.pending == 0 {
		f()
		return
	}
	s.dynamic.whenReady = f
}

// pauser makes what holds requests of some types back while an update is applied that changes what is wanted of them: they are asked
// for at once.
func (s *Server) pauser(typeURLs ...string) func() (resume func()) {
	return func() func() { return s.dynamic.streams.Pause(typeURLs...) }
}

// startStreams lets control planes be asked: the clusters that it takes are there. The other clusters begin when runtime layers have
// come.
func (s *Server) startStreams(begin func()) {
	st := s.dynamic.streams
	node, err := proto.Marshal(s.node())
	if err != nil {
		s.logger("config").Error("the node cannot be written: " + err.Error())
	}
	st.Node = node
	st.Start()
	s.startRTDS(func() {
		resume := st.Pause(xdstype.Endpoint, xdstype.LbEndpoint, xdstype.Secret)
		begin()
		resume()
	})
}

// clustersWarm holds the ACK of CDS back while clusters warm up, so that the control plane knows when they can be used.
func (s *Server) clustersWarm(warming int) {
	d := &s.dynamic
	switch {
	case warming > 0 && d.acknowledge == nil && d.listening:
		d.acknowledge = d.streams.Pause(xdstype.Cluster)
	case warming == 0 && d.acknowledge != nil:
		resume := d.acknowledge
		d.acknowledge = nil
		resume()
	}
}

// startCDS subscribes to clusters, if the bootstrap says so. done is called when the first ones are there, or will not come for now.
func (s *Server) startCDS(done func()) error {
	from := s.boot.GetDynamicResources().GetCdsConfig()
	if from == nil {
		done()
		return nil
	}
	s.dynamic.cds = &cluster.CDS{M: s.clusters, OnDone: done, Log: s.logger("upstream"), Pause: s.pauser(xdstype.Endpoint, xdstype.LbEndpoint, xdstype.Secret)}
	st, _ := sub.NewStats(s.store.Root().Scope("cluster_manager.cds"))
	_, err := s.dynamic.sources.Subscribe(from, cluster.ClusterType, nil, st, s.dynamic.cds)
	if err != nil {
		return s.located("dynamic_resources.cds_config", err)
	}
	return nil
}

const listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"

// startLDS subscribes to listeners, if the bootstrap says so.
func (s *Server) startLDS() error {
	from := s.boot.GetDynamicResources().GetLdsConfig()
	if from == nil {
		return nil
	}
	l := &lds{s: s, done: s.wait(), pause: s.pauser(xdstype.Route, xdstype.Secret)}
	st, _ := sub.NewStats(s.store.Root().Scope("listener_manager.lds"))
	_, err := s.dynamic.sources.Subscribe(from, listenerType, nil, st, l)
	if err != nil {
		return s.located("dynamic_resources.lds_config", err)
	}
	return nil
}
