package server

import (
	"slices"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// dump keeps what /config_dump shows, serialized and compressed: nothing of it is read while serving. owner: main loop.
type dump struct {
	archive *config.Archive
	boot    []byte // the bootstrap without its static clusters and listeners
	asRead  []byte // the same before the node was completed
	at      int64  // when that was, ns since 1970
	// clusters and listeners are the static ones in the order of the file. Their names are shared with what was built of them.
	clusters, listeners []kept
	byName              []uint32     // the places of clusters in the order of their names
	routes              []*keptRoute // inline ones
	dynamicRoutes       map[string]*keptRoute
	failed              []failedListener // of the last update of LDS
	failedStatic        []failedListener // of the last reload
}

type kept struct {
	name string
	ref  config.Ref
}

type keptRoute struct {
	name, version string
	updated       int64
	ref           config.Ref
	packed        []byte // instead of ref: compressed by itself
}

// listenerInfo is what a listener's pages show, and where it stands with /drain_listeners. owner: main loop.
type listenerInfo struct {
	inbound, stopped, api bool
	version               string
	updated               int64
	ref                   config.Ref
}

func (s *Server) archive() *config.Archive {
	if s.dump.archive == nil {
		s.dump.archive = config.NewArchive()
	}
	return s.dump.archive
}

// keepCluster keeps a cluster of the bootstrap; raw is its serialized form.
func (s *Server) keepCluster(p *clusterv3.Cluster, raw []byte) {
	s.dump.clusters = append(s.dump.clusters, kept{name: p.GetName(), ref: s.archive().Put(raw)})
}

// describe keeps a listener, in the place of what was kept of it before.
func (s *Server) describe(a *activeListener, p *listenerv3.Listener, version string, api bool) {
	at := s.forget(a)
	a.inbound = p.GetTrafficDirection() == corev3.TrafficDirection_INBOUND
	a.api, a.version, a.updated = api, version, s.main.Wall()
	a.ref = s.keep(p)
	if !api {
		s.dump.listeners = slices.Insert(s.dump.listeners, at, kept{name: p.GetName(), ref: a.ref})
	}
}

// forget drops what describe kept of a listener; it returns where that stood among those of the bootstrap, or would stand.
func (s *Server) forget(a *activeListener) (at int) {
	list := s.dump.listeners
	at = len(list)
	if a.ref == 0 {
		return at
	}
	if !a.api {
		if at = slices.IndexFunc(list, func(k kept) bool { return k.ref == a.ref }); at < 0 {
			at = len(list)
		} else {
			s.dump.listeners = slices.Delete(slices.Clone(list), at, at+1) // a page may be going through the old list
		}
	}
	s.archive().Drop(a.ref)
	a.ref = 0
	return at
}

func (s *Server) keep(m proto.Message) config.Ref {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return 0 // it came out of bytes, so it goes into bytes; a page without it is no reason to stop
	}
	return s.archive().Put(raw)
}

// keepRoutes keeps a route configuration that stands in a listener, until forget is called.
func (s *Server) keepRoutes(rc *routev3.RouteConfiguration) (forget func()) {
	d := &s.dump
	r := &keptRoute{name: rc.GetName(), updated: s.main.Wall(), ref: s.keep(rc)}
	d.routes = append(d.routes, r)
	return func() {
		s.archive().Drop(r.ref)
		d.routes = slices.DeleteFunc(d.routes, func(x *keptRoute) bool { return x == r })
	}
}

// routesChanged keeps a route configuration that came by RDS; nil: nobody uses it any more.
func (s *Server) routesChanged(name, version string, rc *routev3.RouteConfiguration, packed []byte) {
	d := &s.dump
	if old, ok := d.dynamicRoutes[name]; ok {
		s.archive().Drop(old.ref)
		delete(d.dynamicRoutes, name)
	}
	if rc == nil {
		return
	}
	if d.dynamicRoutes == nil {
		d.dynamicRoutes = map[string]*keptRoute{}
	}
	k := &keptRoute{name: name, version: version, updated: s.main.Wall(), packed: packed}
	if packed == nil {
		k.ref = s.keep(rc)
	}
	d.dynamicRoutes[name] = k
}

// keepAsRead keeps the bootstrap before anything is completed in it, to tell later what another one changes.
func (s *Server) keepAsRead() error {
	raw, err := deterministic.Marshal(s.boot)
	s.dump.asRead = config.Compress(raw)
	return err
}

// keepBootstrap keeps the rest of the bootstrap, at the end of the building.
func (s *Server) keepBootstrap() error {
	d := &s.dump
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(s.boot)
	if err != nil {
		return err
	}
	d.boot, d.at = config.Compress(raw), s.main.Wall()
	d.clusters, d.listeners = slices.Clip(d.clusters), slices.Clip(d.listeners)
	d.byName = byName(d.clusters)
	s.archive().Release()
	return nil
}

// byName returns the places of a list in the order of their names.
func byName(list []kept) []uint32 {
	out := make([]uint32, len(list))
	for i := range out {
		out[i] = uint32(i)
	}
	slices.SortStableFunc(out, func(a, b uint32) int { return strings.Compare(list[a].name, list[b].name) })
	return out
}

// timestamp is the moment ns as pages show it.
func timestamp(ns int64) time.Time { return time.Unix(0, ns).UTC().Truncate(time.Millisecond) }
