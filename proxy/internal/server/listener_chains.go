package server

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/anypb"

	aaccesslog "github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/hcm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/secret"
	"github.com/dragoman-proxy/dragoman/proxy/internal/tcpproxy"
)

// chains builds the filter chains. Those of old that did not change are taken over as they are, with their connections.
func (b *listenerBuild) chains(addr network.Address, old map[uint64]*chainUse) error {
	adding := func(err error) error { return prefixed(fmt.Sprintf("error adding listener '%s': ", addr), err) }
	p := b.p
	var errs config.Errors
	errs.Collect("filter_chains", adding(countChains(p)))
	errs.Collect("", adding(uniqueMatches(p)))
	var list []*listener.Chain
	for i, fc := range p.GetFilterChains() {
		path := fmt.Sprintf("filter_chains[%d]", i)
		m, err := chainMatch(fc.GetFilterChainMatch(), fc.GetName(), p.GetFilterChainMatcher() != nil)
		errs.Collect(path, adding(err))
		ch, err := b.chain(fc, m, old)
		errs.Collect(path, err)
		list = append(list, ch)
	}
	var def *listener.Chain
	if fc := p.GetDefaultFilterChain(); fc != nil {
		var err error
		def, err = b.chain(fc, listener.Match{}, old)
		errs.Collect("default_filter_chain", err)
	}
	if p.GetFilterChainMatcher() != nil {
		var err error
		b.set, err = b.matchedChains(list, def)
		errs.Collect("filter_chain_matcher", err)
		return errs.Err()
	}
	if err := errs.Err(); err != nil {
		return err
	}
	var err error
	if b.set, err = listener.NewChains(list, def); err != nil {
		return adding(err)
	}
	return nil
}

// countChains checks that a listener has chains if its connections need them.
func countChains(p *listenerv3.Listener) error {
	n, some := len(p.GetFilterChains()), p.GetDefaultFilterChain() != nil
	packets := isUDP(p.GetAddress()) && p.GetUdpListenerConfig().GetQuicOptions() == nil
	switch {
	case packets && n > 0:
		return fmt.Errorf("%d filter chain(s) specified for connection-less UDP listener.", n) //nolint:staticcheck // Envoy's text
	case !packets && n == 0 && !some:
		return errors.New("no filter chains specified")
	}
	return nil
}

// prefixed puts text before what err says, or each of several.
func prefixed(text string, err error) error {
	var errs config.Errors
	if errs.Collect("", err) {
		return nil
	}
	for _, x := range errs.List {
		x.Msg = text + x.Msg
	}
	return errs.Err()
}

// chain builds one filter chain, or takes it over.
func (b *listenerBuild) chain(fc *listenerv3.FilterChain, m listener.Match, old map[uint64]*chainUse) (*listener.Chain, error) {
	raw, err := deterministic.Marshal(fc)
	if err != nil {
		return nil, err
	}
	hash := xxhash.Sum64(raw)
	if u := old[hash]; u != nil {
		b.byHash[hash] = u
		return u.ch, nil
	}
	if u, err := b.otherRoutes(fc); err != nil {
		return nil, err
	} else if u != nil {
		b.byHash[hash] = u
		return u.ch, nil
	}
	u := &chainUse{ch: &listener.Chain{Name: fc.GetName(), Match: m, ConnectTimeout: fc.GetTransportSocketConnectTimeout().AsDuration()}}
	var errs config.Errors
	u.ch.Transport, err = b.s.downstreamTransport(fc.GetTransportSocket(), b.scope)
	errs.Collect("transport_socket", err)
	if t, ok := u.ch.Transport.(interface{ Close() }); ok && err == nil {
		u.release = append(u.release, t.Close)
	}
	last := len(fc.GetFilters()) - 1
	for i, f := range fc.GetFilters() {
		errs.Collect(fmt.Sprintf("filters[%d]", i), b.networkFilter(u, f, i == last))
	}
	if err := errs.Err(); err != nil {
		u.close()
		return nil, err
	}
	b.byHash[hash] = u
	return u.ch, nil
}

// networkFilter adds one network filter to a chain: the engine's own two, or an extension.
func (b *listenerBuild) networkFilter(u *chainUse, f *listenerv3.Filter, last bool) error {
	a := f.GetTypedConfig()
	if f.GetConfigDiscovery() != nil {
		return &config.Error{Path: "config_discovery", Msg: "is not supported yet"}
	}
	m, err := payload(a)
	if err != nil {
		return at("typed_config", err)
	}
	switch p := m.(type) {
	case *hcmv3.HttpConnectionManager:
		var errs config.Errors
		errs.Collect("", b.terminal(f, a, "envoy.filters.network.http_connection_manager", last))
		cfg, err := hcm.New(p, b.hcmDeps(u, p))
		if errs.Collect("typed_config", err); errs.Len() > 0 {
			return errs.Err()
		}
		cfg.Calls = b.s.calls
		u.ch.Terminal = hcmTerminal{cfg}
		return nil
	case *tcpv3.TcpProxy:
		var errs config.Errors
		errs.Collect("", b.terminal(f, a, "envoy.filters.network.tcp_proxy", last))
		s := b.s
		cfg, err := tcpproxy.New(p, &tcpproxy.Deps{Root: s.store.Root(), Slot: s.clusters.Slot, Lookup: s.clusters.Lookup,
			AccessLogs: s.accessLogs, BufferLimit: b.limit})
		if errs.Collect("typed_config", err); errs.Len() > 0 {
			return errs.Err()
		}
		u.ch.Terminal = cfg
		return nil
	}
	x := b.s.ext.network[shortURL(config.PayloadURL(a))]
	if x == nil {
		return at("typed_config", b.s.ext.unknownNetwork(f.GetName(), a))
	}
	var errs config.Errors
	errs.Collect("", terminal(f, x.Name, x.Terminal, last))
	errs.Collect("", b.s.ext.check(m))
	mk, err := x.New(m, &factoryContext{s: b.s, scope: b.s.store.Root()})
	if errs.Collect("typed_config", err); errs.Len() > 0 {
		return errs.Err()
	}
	u.ch.Filters = append(u.ch.Filters, mk)
	return nil
}

// terminal is the function of that name for the engine's own filters, which can be disabled.
func (b *listenerBuild) terminal(f *listenerv3.Filter, a *anypb.Any, typ string, last bool) error {
	if b.s.ext.off["envoy.filters.network/"+typ] {
		return config.Unregistered(f.GetName(), a)
	}
	return terminal(f, typ, true, last)
}

// terminal checks that a filter stands where it may.
func terminal(f *listenerv3.Filter, typ string, is, last bool) error {
	switch {
	case is && !last:
		return &config.Error{Msg: fmt.Sprintf("Error: terminal filter named %s of type %s must be the last filter in a network filter chain.",
			f.GetName(), typ)}
	case !is && last:
		return &config.Error{Msg: fmt.Sprintf("Error: non-terminal filter named %s of type %s is the last filter in a network filter chain.",
			f.GetName(), typ), Advice: "envoy.filters.network.http_connection_manager or tcp_proxy is the last one, mostly"}
	}
	return nil
}

type hcmTerminal struct{ cfg *hcm.Config }

func (t hcmTerminal) NewHandler(c *conn.Conn) conn.Handler { return hcm.NewConn(t.cfg, c) }

func (b *listenerBuild) hcmDeps(u *chainUse, p *hcmv3.HttpConnectionManager) hcm.Deps {
	s := b.s
	filterScope := s.store.Root().Scope("http." + p.StatPrefix)
	return hcm.Deps{
		Root: s.store.Root(), Listener: b.scope, Format: s.format, LocalAddress: s.cfg.Options.LocalAddress, BufferLimit: b.limit,
		Draining: s.draining(u.ch.Draining, b.p.GetDrainType()), Runtime: s.runtime, Direction: b.p.GetTrafficDirection(),
		Filter: func(name string, a *anypb.Any) (filter.Factory, bool, error) {
			f, terminal, err := s.ext.httpFilter(filterScope, name, a)
			if c, ok := f.(interface{ Close() }); ok && err == nil {
				u.release = append(u.release, c.Close)
			}
			return f, terminal, err
		},
		Inline: func(p *hcmv3.HttpConnectionManager) (*route.Slot, error) {
			slot, err := s.inlineRoutes(p.GetRouteConfig(), true)
			if err == nil {
				r := &inlineRoutes{slot: slot, forget: s.keepRoutes(p.GetRouteConfig())}
				u.inline = append(u.inline, r)
				u.release = append(u.release, func() { r.forget() }, func() { slot.Store(nil) })
			}
			return slot, err
		},
		RDS: func(r *hcmv3.Rds, prefix string) (*route.Slot, error) {
			slot, release, err := s.dynamic.rds.Get(r.GetConfigSource(), r.GetRouteConfigName(), s.store.Root().Scope("http."+prefix), b.target("shared target RdsRouteConfigSubscription RDS init "+r.GetRouteConfigName()))
			if err == nil {
				u.release = append(u.release, release)
			}
			return slot, err
		},
		Scoped: func(p *hcmv3.ScopedRoutes, prefix string) (*route.Scopes, error) {
			scopes, release, err := b.scopes(p, prefix)
			u.release = append(u.release, release...)
			return scopes, err
		},
		AccessLogs: func(p *hcmv3.HttpConnectionManager) (aaccesslog.Loggers, error) {
			return s.accessLogs(p.AccessLog)
		},
		LogFilter: s.mapperFilter, DataSource: s.dataSource, Metadata: plainMetadata(b.p.GetMetadata()),
		Cluster: s.node().GetCluster(), Node: s.node().GetId(),
	}
}

// dataSource reads a data source as text.
func (s *Server) dataSource(d *corev3.DataSource) (string, error) {
	b, err := secret.ReadSource(d)
	return string(b), err
}

// plainMetadata turns metadata into plain values, by namespace.
func plainMetadata(m *corev3.Metadata) map[string]map[string]any {
	if len(m.GetFilterMetadata()) == 0 {
		return nil
	}
	out := make(map[string]map[string]any, len(m.GetFilterMetadata()))
	for ns, s := range m.GetFilterMetadata() {
		out[ns] = s.AsMap()
	}
	return out
}

func (s *Server) inlineRoutes(rc *routev3.RouteConfiguration, static bool) (*route.Slot, error) {
	t, err := route.Compile(rc, s.routeDeps(static))
	if err != nil {
		return nil, err
	}
	sl := &route.Slot{Name: rc.Name}
	sl.Store(t)
	return sl, nil
}

// target makes the listener wait for one more thing, which /init_dump calls by name; the result says that it has come. It may be called
// more than once.
func (b *listenerBuild) target(name string) func() {
	t := &name
	b.targets = append(b.targets, t)
	return func() {
		if i := slices.Index(b.targets, t); i >= 0 {
			b.targets = slices.Delete(b.targets, i, i+1)
			b.ready()
		}
	}
}

// whenWarm runs f once everything that the listener waits for is there: maybe now.
func (b *listenerBuild) whenWarm(f func()) {
	b.warm, b.sealed = f, true
	b.ready()
}

func (b *listenerBuild) ready() {
	if f := b.warm; len(b.targets) == 0 && b.sealed && f != nil {
		b.warm = nil
		f()
	}
}

// abandon gives back what a build has taken, except for chains of others.
func (b *listenerBuild) abandon(keep map[uint64]*chainUse) {
	b.warm = nil
	stay := usesOf(keep)
	for _, u := range b.byHash {
		if !stay[u] {
			u.close()
		}
	}
}

// usesOf is the set of the chains of a table.
func usesOf(byHash map[uint64]*chainUse) map[*chainUse]bool {
	set := make(map[*chainUse]bool, len(byHash))
	for _, u := range byHash {
		set[u] = true
	}
	return set
}
