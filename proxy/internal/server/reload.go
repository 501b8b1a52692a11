package server

import (
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/dragoman-proxy/dragoman/api/network"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Reloaded is what became of a bootstrap that was read anew.
type Reloaded struct {
	// Changed counts the clusters, listeners and secrets that were added, replaced or removed.
	Changed int
	// NeedRestart are the fields of the bootstrap that differ and are read at the start only.
	NeedRestart []string
	// Errors are what could not be applied; the old serves on there.
	Errors []error
}

// reload is a bootstrap on its way in. owner: main loop.
type reload struct {
	s         *Server
	pos       *config.Positions
	boot      *bootstrapv3.Bootstrap
	clusters  []staticCluster
	listeners []staticListener
	out       Reloaded
	failed    []failedListener
	pending   int // listeners that do not serve yet
	applied   bool
	done      func(Reloaded)
}

type staticCluster struct {
	p      *clusterv3.Cluster
	path   string
	raw    []byte
	failed bool
}

type staticListener struct {
	p    *listenerv3.Listener
	path string
	old  *activeListener // that it takes over from
}

// Reload makes the static clusters, listeners and secrets those of another bootstrap while the proxy serves, by the same ways as CDS
// and LDS: new clusters are warmed before listeners change, listeners keep the sockets of addresses that stay, and what is gone
// drains. Of a chain that differs in its routes only, the connections stay. An error means that nothing was changed; done is called
// on the main loop when everything else was done. It may be called from any goroutine, once at a time, when the proxy is live.
func (s *Server) Reload(boot *config.Stream, done func(Reloaded)) error {
	r := &reload{s: s, pos: boot.Positions(), done: done}
	var err error
	if r.boot, err = boot.Skeleton(); err != nil {
		return err
	}
	err = boot.Clusters(func(it config.Item[*clusterv3.Cluster]) error {
		r.clusters = append(r.clusters, staticCluster{p: it.Message, path: it.Path, raw: slices.Clone(it.Raw)})
		return nil
	})
	if err != nil {
		return err
	}
	names := map[string]bool{}
	err = boot.Listeners(func(it config.Item[*listenerv3.Listener]) error {
		name := it.Message.GetName()
		if name != "" && names[name] { // as at the start: what serves must not depend on which of the two ways it came
			s.standsTwice(name)
			return nil
		}
		names[name] = true
		r.listeners = append(r.listeners, staticListener{p: it.Message, path: it.Path})
		return nil
	})
	if err != nil {
		return err
	}
	s.main.Post(r.begin)
	return nil
}

// begin compares what cannot change, and goes through the rest in steps, so that the main loop does other things in between.
func (r *reload) begin() {
	s := r.s
	if s.State() != Live {
		r.fail("", fmt.Errorf("the proxy is not live (%s)", s.State()))
		s.countReload(stats.ReloadRefused, stats.ReloadRefusedTime)
		r.done(r.out)
		return
	}
	r.needRestart()
	r.secrets()
	steps := make([]func(), 0, len(r.clusters))
	for i := range r.clusters {
		steps = append(steps, func() { r.cluster(&r.clusters[i]) })
	}
	s.run(steps, func() {
		s.clusters.WhenWarm(func() { s.main.Post(r.second) })
	})
}

// second follows once the clusters are there.
func (r *reload) second() {
	s := r.s
	gone := r.pair()
	steps := make([]func(), 0, len(gone)+len(r.listeners)+2)
	for _, a := range gone {
		steps = append(steps, func() {
			s.removeActive(a)
			r.out.Changed++
		})
	}
	for i := range r.listeners {
		steps = append(steps, func() { r.listener(&r.listeners[i]) })
	}
	steps = append(steps, r.removeClusters, r.keep)
	s.run(steps, func() {
		r.applied = true
		r.finish()
	})
}

func (r *reload) finish() {
	if !r.applied || r.pending > 0 {
		return
	}
	left := len(r.s.workers) // they close sockets, among other things: when they are through with that, all is done
	for _, w := range r.s.workers {
		w.Post(func() {
			r.s.main.Post(func() {
				if left--; left == 0 {
					r.s.setFailedStatic(r.failed)
					which := stats.ReloadApplied
					if len(r.out.Errors) > 0 || len(r.out.NeedRestart) > 0 {
						which = stats.ReloadPartial
					}
					r.s.countReload(which, stats.ReloadAppliedTime)
					r.done(r.out)
				}
			})
		})
	}
}

// ReloadRefused counts a bootstrap that was refused before it came to Reload, or by it. It may be called from any goroutine.
func (s *Server) ReloadRefused() {
	s.main.Post(func() { s.countReload(stats.ReloadRefused, stats.ReloadRefusedTime) })
}

// countReload counts what became of a bootstrap, and keeps the time of it. owner: main loop.
func (s *Server) countReload(i astats.CounterIndex, at astats.GaugeIndex) {
	g := s.store.Root().Scope("server").Scope("dragoman").Scope("reload").Group(stats.BootstrapReloads)
	s.store.Main().Add(g.Counter(i), 1)
	s.store.SetGauge(g.Gauge(at), uint64(s.cfg.Clock.Now().UnixMilli())) //nolint:gosec // after 1970
}

// run calls steps one by one, each as a task of its own.
func (s *Server) run(steps []func(), done func()) {
	if len(steps) == 0 {
		done()
		return
	}
	steps[0]()
	s.main.Post(func() { s.run(steps[1:], done) })
}

func (r *reload) fail(path string, err error) {
	if path != "" {
		err = r.pos.Attach(path, err)
	}
	r.out.Errors = append(r.out.Errors, err)
}

// needRestart names the fields of the bootstrap that differ from what the proxy has started with.
func (r *reload) needRestart() {
	start := &bootstrapv3.Bootstrap{}
	raw, err := config.Decompress(nil, r.s.dump.asRead)
	if err == nil {
		err = proto.Unmarshal(raw, start)
	}
	if err != nil {
		r.fail("", err)
		return
	}
	was, is := start.ProtoReflect(), r.boot.ProtoReflect()
	fields := is.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if fd.Name() == "static_resources" {
			continue
		}
		if was.Has(fd) != is.Has(fd) || is.Has(fd) && !was.Get(fd).Equal(is.Get(fd)) {
			r.out.NeedRestart = append(r.out.NeedRestart, string(fd.Name()))
		}
	}
}

func (r *reload) secrets() {
	var serving []*tlsv3.Secret
	old := r.s.boot.GetStaticResources().GetSecrets()
	for i, x := range r.boot.GetStaticResources().GetSecrets() {
		changed, err := r.s.dynamic.secrets.UpdateStatic(x)
		if err != nil {
			r.fail(fmt.Sprintf("static_resources.secrets[%d]", i), err)
			same := func(o *tlsv3.Secret) bool {
				return o.GetName() == x.GetName() && fmt.Sprintf("%T", o.GetType()) == fmt.Sprintf("%T", x.GetType())
			}
			if k := slices.IndexFunc(old, same); k >= 0 {
				serving = append(serving, old[k])
			}
			continue
		}
		serving = append(serving, x)
		if changed {
			r.out.Changed++
		}
	}
	if r.boot.StaticResources != nil {
		r.boot.StaticResources.Secrets = serving
	}
}

func (r *reload) cluster(c *staticCluster) {
	s := r.s
	if a, ok := s.cfg.Upstreams[c.p.GetName()]; ok {
		embedUpstream(c.p, a)
	}
	changed, err := s.clusters.UpdateStatic(c.p)
	if err != nil {
		c.failed = true
		r.fail(c.path, err)
		return
	}
	if changed {
		r.out.Changed++
	}
}

// pair finds the listener that each one takes over from: by its name, or else by its address. It returns those that nobody takes over.
func (r *reload) pair() (gone []*activeListener) {
	byName, byAddress, left := map[string]*activeListener{}, map[network.Address]*activeListener{}, map[*activeListener]bool{}
	for _, a := range r.s.order {
		if !a.api {
			left[a] = true
			byName[a.name] = a
		}
	}
	for i := range r.listeners {
		l := &r.listeners[i]
		if a := byName[l.p.GetName()]; a != nil && a.name != "" && left[a] {
			l.old = a
			delete(left, a)
		}
	}
	for a := range left {
		byAddress[a.build.wanted[0]] = a
	}
	var moved []*staticListener // without a name, at another address
	for i := range r.listeners {
		l := &r.listeners[i]
		addr, err := address(l.p.GetAddress())
		if a := byAddress[addr]; err == nil && l.old == nil && a != nil && left[a] {
			l.old = a
			delete(left, a)
		}
		if l.old == nil && l.p.GetName() == "" {
			moved = append(moved, l)
		}
	}
	for a := range left { // the only one without a name is the one that was it before: should it not bind, the old serves on
		if len(left) == 1 && len(moved) == 1 && a.name == "" {
			moved[0].old = a
			delete(left, a)
		}
	}
	for _, a := range r.s.order {
		if left[a] {
			gone = append(gone, a)
		}
	}
	return gone
}

func (r *reload) listener(l *staticListener) {
	s := r.s
	b, err := s.newListenerBuild(l.p)
	if err != nil {
		r.failListener(l, err)
		return
	}
	if s.listenersStopped(l.p) {
		if same := l.old != nil && l.old.newest().whole == b.whole; !same {
			r.fail(l.path, &config.Error{Path: "name", Msg: "listeners do not come or change any more: /drain_listeners has stopped them",
				Found: "'" + l.p.GetName() + "'"})
		}
		return
	}
	b.keepConnections = true
	b.settled = func(err error) {
		r.pending--
		if err != nil {
			r.failListener(l, err)
		}
		r.finish()
	}
	r.pending++
	changed, err := s.takeListener(l.old, b)
	switch {
	case err != nil:
		b.settled = nil
		r.pending--
		r.failListener(l, err)
	case !changed:
		b.settled = nil
		r.pending--
	default:
		r.out.Changed++
	}
}

func (r *reload) failListener(l *staticListener, err error) {
	r.failed = append(r.failed, r.s.failure(l.p, err))
	r.fail(l.path, err)
}

// removeClusters takes away the clusters that nothing names any more, and secrets.
func (r *reload) removeClusters() {
	s := r.s
	next := make(map[string]bool, len(r.clusters))
	for _, c := range r.clusters {
		next[c.p.GetName()] = true
	}
	for _, k := range s.dump.clusters {
		if !next[k.name] && s.clusters.RemoveStatic(k.name) {
			r.out.Changed++
		}
	}
	s.dynamic.secrets.KeepStatic(r.boot.GetStaticResources().GetSecrets())
}

// keep makes /config_dump show what serves now: of what could not be applied, the old.
func (r *reload) keep() {
	s, d := r.s, &r.s.dump
	old := make(map[string]kept, len(d.clusters))
	for _, k := range d.clusters {
		old[k.name] = k
	}
	d.clusters = nil
	for _, c := range r.clusters {
		k, had := old[c.p.GetName()]
		switch {
		case !c.failed:
			s.keepCluster(c.p, c.raw)
		case had:
			d.clusters = append(d.clusters, k)
			delete(old, k.name)
		}
	}
	for _, k := range old {
		s.archive().Drop(k.ref)
	}
	boot := proto.CloneOf(s.boot)
	boot.StaticResources = r.boot.StaticResources
	s.boot = boot
	if err := s.keepBootstrap(); err != nil {
		r.fail("static_resources", err)
	}
}

// bareChains are the chains of a listener by what they are without their routes.
func (s *Server) bareChains(a *activeListener) map[uint64]*chainUse {
	raw, err := s.archive().Get(a.ref)
	p := &listenerv3.Listener{}
	if err != nil || proto.Unmarshal(raw, p) != nil {
		return nil
	}
	out := map[uint64]*chainUse{}
	for _, fc := range append(p.GetFilterChains(), p.GetDefaultFilterChain()) {
		raw, err := deterministic.Marshal(fc)
		if fc == nil || err != nil {
			continue
		}
		if u := a.build.byHash[xxhash.Sum64(raw)]; u != nil && len(u.inline) > 0 {
			if h, routes, err := withoutRoutes(fc); err == nil && len(routes) == len(u.inline) {
				out[h] = u
			}
		}
	}
	return out
}

// withoutRoutes returns the hash of a chain without the routes that stand in it, and these.
func withoutRoutes(fc *listenerv3.FilterChain) (hash uint64, routes []*routev3.RouteConfiguration, err error) {
	bare := proto.CloneOf(fc)
	for _, f := range bare.GetFilters() {
		m := &hcmv3.HttpConnectionManager{}
		if !f.GetTypedConfig().MessageIs(m) {
			continue
		}
		if err := f.GetTypedConfig().UnmarshalTo(m); err != nil {
			return 0, nil, err
		}
		rc := m.GetRouteConfig()
		if rc == nil {
			continue
		}
		routes = append(routes, rc)
		m.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{Name: rc.GetName()}}
		raw, err := deterministic.Marshal(m)
		if err != nil {
			return 0, nil, err
		}
		f.ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: &anypb.Any{TypeUrl: f.GetTypedConfig().GetTypeUrl(), Value: raw}}
	}
	raw, err := deterministic.Marshal(bare)
	return xxhash.Sum64(raw), routes, err
}

// otherRoutes takes a chain over that differs in its routes only; nil: there is none. The routes change when the listener does.
func (b *listenerBuild) otherRoutes(fc *listenerv3.FilterChain) (*chainUse, error) {
	if len(b.bare) == 0 {
		return nil, nil
	}
	hash, routes, err := withoutRoutes(fc)
	u := b.bare[hash]
	if err != nil || u == nil {
		return nil, nil // whoever builds the chain says what is wrong
	}
	delete(b.bare, hash)
	for i, rc := range routes {
		t, err := route.Compile(rc, b.s.routeDeps(true))
		if err != nil {
			return nil, at("filters", err)
		}
		r := u.inline[i]
		b.swaps = append(b.swaps, func() {
			r.slot.Store(t)
			r.forget()
			r.forget = b.s.keepRoutes(rc)
		})
	}
	return u, nil
}
