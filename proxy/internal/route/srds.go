package route

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

// ScopeType is the type URL of scopes.
const ScopeType = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration"

// srds follows the scopes that come from outside (scoped_rds). Their route configurations are subscribed to by name, or come with them.
// It is the sub.Callbacks of a wildcard subscription. owner: main loop.
type srds struct {
	rds    *RDS
	scopes *Scopes
	from   *corev3.ConfigSource // of the route configurations
	scope  astats.Scope
	stats  astats.GroupBase // stats.SRDS
	ready  func()
	live   map[string]*liveScope
}

// liveScope is a scope that is in use. subscribed: its route configuration comes by RDS.
type liveScope struct {
	key string

	subscribed bool
	slot       *Slot
	release    func()
}

// Scoped subscribes to scopes. ready is called once the first ones have come, with their route configurations, or will not come for
// now. release gives it all up.
func (r *RDS) Scoped(p *hcmv3.ScopedRoutes, scope astats.Scope, ready func()) (*Scopes, func(), error) {
	scopes, err := NewScopes(p.GetScopeKeyBuilder())
	if err != nil {
		return nil, nil, err
	}
	if r.Source == nil {
		return nil, nil, errors.New("scoped_rds.scoped_rds_config_source: there is no source of configuration")
	}
	own := scope.Scope("scoped_rds").Scope(p.GetName())
	st, releaseStats := sub.NewStats(own)
	scopes.Name = p.GetName()
	s := &srds{rds: r, scopes: scopes, from: p.GetRdsConfigSource(), scope: scope, stats: own.Group(stats.SRDS), ready: ready, live: map[string]*liveScope{}}
	done := func() {
		releaseStats()
		own.Release(stats.SRDS)
	}
	handle, err := r.Source.Subscribe(p.GetScopedRds().GetScopedRdsConfigSource(), ScopeType, nil, st, s)
	if err != nil {
		done()
		return nil, nil, err
	}
	return scopes, func() {
		handle.Close()
		for _, x := range s.live {
			x.release()
		}
		s.live = nil
		scopes.Set(nil)
		done()
	}, nil
}

// OnUpdate takes an update whole, or not at all.
func (s *srds) OnUpdate(u *sub.Update) error {
	err := s.update(u)
	if err != nil {
		if s.rds.Log != nil {
			s.rds.Log.Warn("srds: scoped route config '" + s.scopes.Name + "' rejected: " + err.Error())
		}
		s.arrived()
		return fmt.Errorf("Error adding/updating scoped route(s): %w", err) //nolint:staticcheck // Envoy's text
	}
	return nil
}

// arrived tells who waits for the first scopes.
func (s *srds) arrived() {
	if ready := s.ready; ready != nil {
		s.ready = nil
		ready()
	}
}

func (s *srds) update(u *sub.Update) error {
	if len(u.Resources)+len(u.Removed) == 0 {
		s.rds.Main.Stats.Inc(s.stats.Counter(stats.SRDSUpdateEmpty))
	}
	next := map[string]*liveScope{}
	if !u.Full {
		next = maps.Clone(s.live)
		for _, n := range u.Removed {
			delete(next, n)
		}
	}
	waiting := 1
	arrived := func() {
		if waiting--; waiting == 0 {
			s.arrived()
		}
	}
	var fresh []*liveScope
	for i := range u.Resources {
		x := &u.Resources[i]
		if x.Unchanged {
			next[x.Name] = s.live[x.Name]
			continue
		}
		l, err := s.take(x, &waiting, arrived)
		if err == nil {
			fresh = append(fresh, l)
			next[x.Name] = l
			err = config.At("key", conflict(next, x.Name))
		}
		if err != nil {
			for _, f := range fresh {
				f.release()
			}
			return x.Named(err)
		}
	}
	s.swap(next)
	arrived()
	return nil
}

// take makes a scope of a resource.
func (s *srds) take(x *sub.Resource, waiting *int, arrived func()) (*liveScope, error) {
	if x.Err != nil {
		return nil, x.Err
	}
	sc, ok := x.Body.(*routev3.ScopedRouteConfiguration)
	if !ok {
		return nil, fmt.Errorf("SRDS resource %s is no ScopedRouteConfiguration", x.Name)
	}
	l := &liveScope{key: ScopeKey(sc.GetKey())}
	var err error
	switch rc := sc.GetRouteConfiguration(); {
	case sc.OnDemand:
		return nil, config.At("on_demand", fmt.Errorf("scope %s: not supported yet", x.Name))
	case rc != nil:
		l.slot, l.release, err = s.rds.Inline(rc)
		err = config.At("route_configuration", err)
	case sc.GetRouteConfigurationName() == "":
		return nil, fmt.Errorf("scope %s: either route_configuration_name or route_configuration is required", x.Name)
	default:
		*waiting++
		l.subscribed = true
		l.slot, l.release, err = s.rds.Get(s.from, sc.GetRouteConfigurationName(), s.scope, arrived)
	}
	return l, err
}

// conflict tells whether a scope has the key of another one.
func conflict(all map[string]*liveScope, name string) error {
	for _, other := range slices.Sorted(maps.Keys(all)) {
		if other != name && all[other].key == all[name].key {
			return fmt.Errorf("scope key conflict found, first scope is '%s', second scope is '%s'", other, name)
		}
	}
	return nil
}

// swap makes next current, and gives up what is no more in use.
func (s *srds) swap(next map[string]*liveScope) {
	slots := make(map[string]*Slot, len(next))
	subscribed := uint64(0)
	for _, l := range next {
		slots[l.key] = l.slot
		if l.subscribed {
			subscribed++
		}
	}
	s.scopes.Set(slots)
	for n, l := range s.live {
		if next[n] != l {
			l.release()
		}
	}
	s.live = next
	m := s.rds.Main
	m.Stats.Inc(s.stats.Counter(stats.ReloadsConfigReload))
	s.rds.Store.SetGauge(s.stats.Gauge(stats.ReloadsConfigReloadTimeMs), uint64(m.Wall()/1e6))
	s.rds.Store.SetGauge(s.stats.Gauge(stats.SRDSAllScopes), uint64(len(next)))
	s.rds.Store.SetGauge(s.stats.Gauge(stats.SRDSActiveScopes), subscribed)
}

// OnFailure goes on without scopes: requests get 404.
func (s *srds) OnFailure(reason sub.Reason, _ error) {
	if reason != sub.ConnectionFailure {
		s.arrived()
	}
}

// Inline compiles a route configuration that stands within another one.
func (r *RDS) Inline(rc *routev3.RouteConfiguration) (*Slot, func(), error) {
	deps := r.Deps
	deps.ValidateDefault = true // as what a listener holds itself
	t, err := Compile(rc, deps)
	if err != nil {
		return nil, nil, err
	}
	slot := &Slot{Name: rc.Name}
	slot.Store(t)
	return slot, func() { slot.Store(nil) }, nil
}
