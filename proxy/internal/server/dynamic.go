package server

import (
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/secret"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
	"github.com/dragoman-proxy/dragoman/proxy/internal/xds"
)

// dynamic is what brings configuration in while the proxy runs. owner: main loop.
type dynamic struct {
	files   *xds.Files
	notify  *xds.Notify
	secrets *secret.Manager
	rds     *route.RDS
	cds     *cluster.CDS
	// pending counts what must have come before the proxy serves; whenReady runs at zero.
	pending   int
	whenReady func()
}

// buildDynamic makes the sources. It comes before everything that subscribes.
func (s *Server) buildDynamic() {
	d := &s.dynamic
	d.files = &xds.Files{Main: s.main, Store: s.store, Options: s.dynamicOptions(), Read: s.cfg.ReadFile, Inline: s.cfg.Inline, Watcher: s.cfg.Watcher,
		Log: func(_, _ string, err error) {
			s.logger("config").Warn("Filesystem config update rejection: " + err.Error())
		}}
	if d.files.Watcher == nil {
		d.notify = xds.NewNotify()
		d.files.Watcher = d.notify
	}
	d.secrets = &secret.Manager{Source: d.files, Scope: s.store.Root(), Wait: s.wait, Wall: s.main.Wall}
}

// buildRDS makes the shared route subscriptions; it needs the clusters.
func (s *Server) buildRDS() {
	s.dynamic.rds = &route.RDS{Source: s.dynamic.files, Deps: s.routeDeps(false), Changed: s.routesChanged}
}

func (s *Server) routeDeps(static bool) route.Deps {
	return route.Deps{Slot: s.clusters.Slot, Exists: s.hasCluster, FilterConfig: s.ext.routeConfig, Format: s.format, ValidateDefault: static}
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

// subscribeRDS is hcm's RDS: the slot of a named route configuration. Listeners wait for its first version.
func (s *Server) subscribeRDS(r *hcmv3.Rds, prefix string) (*route.Slot, error) {
	slot, _, err := s.dynamic.rds.Get(r.GetConfigSource(), r.GetRouteConfigName(), s.store.Root().Scope("http."+prefix), s.wait())
	return slot, err
}

// startCDS subscribes to clusters, if the bootstrap says so.
func (s *Server) startCDS() error {
	from := s.boot.GetDynamicResources().GetCdsConfig()
	if from == nil {
		return nil
	}
	s.dynamic.cds = &cluster.CDS{M: s.clusters, OnDone: s.wait()}
	_, err := s.dynamic.files.Subscribe(from, cluster.ClusterType, nil, s.subStats("cluster_manager.cds"), s.dynamic.cds)
	if err != nil {
		return s.located("dynamic_resources.cds_config", err)
	}
	return nil
}

func (s *Server) subStats(scope string) sub.Stats {
	st := s.store.Root().Scope(scope)
	return sub.Stats{
		Attempt: st.Counter("update_attempt"), Success: st.Counter("update_success"), Failure: st.Counter("update_failure"),
		Rejected: st.Counter("update_rejected"), FetchTimeout: st.Counter("init_fetch_timeout"), Time: st.Gauge("update_time"),
		Version: st.Gauge("version"), VersionText: st.Text("version_text"), Duration: st.Histogram("update_duration", astats.Milliseconds),
	}
}

const listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"

// startLDS subscribes to listeners, if the bootstrap says so.
func (s *Server) startLDS() error {
	from := s.boot.GetDynamicResources().GetLdsConfig()
	if from == nil {
		return nil
	}
	l := &lds{s: s, done: s.wait()}
	_, err := s.dynamic.files.Subscribe(from, listenerType, nil, s.subStats("listener_manager.lds"), l)
	if err != nil {
		return s.located("dynamic_resources.lds_config", err)
	}
	return nil
}

// lds applies updates of listeners.
type lds struct {
	s     *Server
	done  func()
	names map[string]bool
}

// OnUpdate adds, changes and removes listeners. Good ones are applied even if others are refused.
func (l *lds) OnUpdate(u *sub.Update) error {
	if l.names == nil {
		l.names = map[string]bool{}
	}
	bad := ""
	seen := map[string]bool{}
	for _, r := range u.Resources {
		seen[r.Name] = true
		if r.Unchanged {
			continue
		}
		p, ok := r.Body.(*listenerv3.Listener)
		if !ok {
			bad += r.Name + ": is no Listener\n"
			continue
		}
		if err := l.s.addOrUpdateListener(p, u.Version); err != nil {
			bad += p.Name + ": " + err.Error() + "\n"
			continue
		}
		l.names[p.Name] = true
	}
	if u.Full {
		for n := range l.names {
			if !seen[n] {
				l.remove(n)
			}
		}
	}
	for _, n := range u.Removed {
		l.remove(n)
	}
	l.done()
	if bad != "" {
		return ldsError(bad)
	}
	return nil
}

func (l *lds) remove(name string) {
	delete(l.names, name)
	l.s.removeListener(name)
}

type ldsError string

func (e ldsError) Error() string { return "Error adding/updating listener(s) " + string(e) }

// OnFailure goes on without listeners.
func (l *lds) OnFailure(reason sub.Reason, _ error) {
	if reason != sub.ConnectionFailure {
		l.done()
	}
}
