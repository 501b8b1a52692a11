package server

import (
	"errors"
	"fmt"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// scopes builds what chooses among route configurations: those that stand in the listener, or those that SRDS brings. release is to be
// called in the end, even after an error.
func (b *listenerBuild) scopes(p *hcmv3.ScopedRoutes, prefix string) (scopes *route.Scopes, release []func(), err error) {
	s := b.s
	list := p.GetScopedRouteConfigurationsList()
	if list == nil {
		scopes, done, err := s.dynamic.rds.Scoped(p, s.store.Root().Scope("http."+prefix), b.target("SRDS init "+p.GetName()))
		if err != nil {
			return nil, nil, err
		}
		return scopes, []func(){done}, nil
	}
	if scopes, err = route.NewScopes(p.GetScopeKeyBuilder()); err != nil {
		return nil, nil, err
	}
	slots := map[string]*route.Slot{}
	for i, x := range list.GetScopedRouteConfigurations() {
		path := fmt.Sprintf("scoped_route_configurations_list.scoped_route_configurations[%d]", i)
		rc := x.GetRouteConfiguration()
		switch {
		case x.GetRouteConfigurationName() != "":
			return nil, release, at(path, errors.New("Fetching routes via RDS (route_configuration_name) is not supported with inline scoped routes.")) //nolint:staticcheck // Envoy's text
		case rc == nil:
			return nil, release, at(path, errors.New("You must specify a route_configuration with inline scoped routes.")) //nolint:staticcheck // Envoy's text
		case x.OnDemand:
			return nil, release, at(path+".on_demand", errors.New("is not supported yet"))
		}
		slot, err := s.inlineRoutes(rc, true)
		if err != nil {
			return nil, release, at(path, err)
		}
		release = append(release, s.keepRoutes(rc), func() { slot.Store(nil) })
		slots[route.ScopeKey(x.GetKey())] = slot // the last one of a key is taken
	}
	scopes.Set(slots)
	return scopes, release, nil
}
