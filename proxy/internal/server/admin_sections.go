package server

import (
	"cmp"
	"slices"
	"strings"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
)

// dumpSections lists what /config_dump has, in Envoy's order.
func (s *Server) dumpSections(d *dumpPage, eds bool) []dumpSection {
	clusters, listeners, routes := &clusterv3.Cluster{}, &listenerv3.Listener{}, &routev3.RouteConfiguration{}
	list := []dumpSection{
		{message: &adminv3.BootstrapConfigDump{}, bootstrap: true},
		{message: &adminv3.ClustersConfigDump{}, version: s.clustersVersion(), lists: []dumpList{
			{"static_clusters", &adminv3.ClustersConfigDump_StaticCluster{}, clusters, d.staticClusters},
			{"dynamic_active_clusters", &adminv3.ClustersConfigDump_DynamicCluster{}, clusters, d.dynamicClusters(d.clusters)},
			{"dynamic_warming_clusters", &adminv3.ClustersConfigDump_DynamicCluster{}, clusters, d.dynamicClusters(d.warming)}}},
	}
	if eds {
		cla := &endpointv3.ClusterLoadAssignment{}
		list = append(list, dumpSection{message: &adminv3.EndpointsConfigDump{}, lists: []dumpList{
			{"static_endpoint_configs", &adminv3.EndpointsConfigDump_StaticEndpointConfig{}, cla, d.endpoints(false)},
			{"dynamic_endpoint_configs", &adminv3.EndpointsConfigDump_DynamicEndpointConfig{}, cla, d.endpoints(true)}}})
	}
	secrets := &tlsv3.Secret{}
	return append(list,
		dumpSection{message: &adminv3.ListenersConfigDump{}, version: s.listenersVersion(), lists: []dumpList{
			{"static_listeners", &adminv3.ListenersConfigDump_StaticListener{}, listeners, d.staticListeners},
			{"dynamic_listeners", &adminv3.ListenersConfigDump_DynamicListener{}, listeners, d.dynamicListeners}}},
		dumpSection{message: &adminv3.ScopedRoutesConfigDump{}, lists: []dumpList{
			{"inline_scoped_route_configs", &adminv3.ScopedRoutesConfigDump_InlineScopedRouteConfigs{}, routes, nothing},
			{"dynamic_scoped_route_configs", &adminv3.ScopedRoutesConfigDump_DynamicScopedRouteConfigs{}, routes, nothing}}},
		dumpSection{message: &adminv3.RoutesConfigDump{}, lists: []dumpList{
			{"static_route_configs", &adminv3.RoutesConfigDump_StaticRouteConfig{}, routes, d.staticRoutes},
			{"dynamic_route_configs", &adminv3.RoutesConfigDump_DynamicRouteConfig{}, routes, d.dynamicRoutes}}},
		dumpSection{message: &adminv3.SecretsConfigDump{}, lists: []dumpList{
			{"static_secrets", &adminv3.SecretsConfigDump_StaticSecret{}, secrets, d.staticSecrets},
			{"dynamic_active_secrets", &adminv3.SecretsConfigDump_DynamicSecret{}, secrets, d.dynamicSecrets(true)},
			{"dynamic_warming_secrets", &adminv3.SecretsConfigDump_DynamicSecret{}, secrets, d.dynamicSecrets(false)}}},
	)
}

// clustersVersion is the version of the last update of clusters.
func (s *Server) clustersVersion() string {
	if c := s.dynamic.cds; c != nil {
		return c.Version
	}
	return ""
}

func (s *Server) listenersVersion() (version string) {
	at := int64(0)
	for _, l := range s.order {
		if l.api && l.updated >= at {
			version, at = l.version, l.updated
		}
	}
	return version
}

func nothing(func(proto.Message) bool) {}

// packed is a resource as it stands in a dump, from its bytes.
func packed(m proto.Message, raw []byte) *anypb.Any {
	return &anypb.Any{TypeUrl: typeURL(m), Value: slices.Clone(raw)}
}

// wrap is packed for a message.
func wrap(m proto.Message) *anypb.Any {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return &anypb.Any{TypeUrl: typeURL(m)}
	}
	return &anypb.Any{TypeUrl: typeURL(m), Value: raw}
}

func when(ns int64) *timestamppb.Timestamp { return timestamppb.New(timestamp(ns)) }

// get reads a kept resource; nil if it is gone.
func (d *dumpPage) get(ref config.Ref, m proto.Message) *anypb.Any {
	raw, err := d.s.archive().Get(ref)
	if err != nil || raw == nil {
		return nil
	}
	return packed(m, raw)
}

// one yields an element, or nil for one that is not wanted, so that the writing can pause there.
func (d *dumpPage) one(name string, a *anypb.Any, yield func(proto.Message) bool, make func(*anypb.Any) proto.Message) bool {
	if a == nil || !d.want(name) {
		return yield(nil)
	}
	return yield(make(a))
}

// clusters yields the clusters that serve, by name; nil where the writing can pause.
func (d *dumpPage) clusters(yield func(*cluster.Status) bool) {
	walk := d.s.clusters.Walk()
	for !walk.Step() {
		if !yield(nil) {
			return
		}
	}
	for c, ok := walk.Next(); ok; c, ok = walk.Next() {
		if !yield(&c) {
			return
		}
	}
}

func (d *dumpPage) warming(yield func(*cluster.Status) bool) {
	for _, c := range d.s.clusters.WarmingClusters() {
		if !yield(&c) {
			return
		}
	}
}

func (d *dumpPage) staticClusters(yield func(proto.Message) bool) {
	list := d.s.dump.clusters
	for _, i := range d.s.dump.byName {
		if !d.one(list[i].name, d.get(list[i].ref, &clusterv3.Cluster{}), yield, func(a *anypb.Any) proto.Message {
			return &adminv3.ClustersConfigDump_StaticCluster{Cluster: a, LastUpdated: when(d.s.dump.at)}
		}) {
			return
		}
	}
}

func (d *dumpPage) dynamicClusters(each func(yield func(*cluster.Status) bool)) func(yield func(proto.Message) bool) {
	return func(yield func(proto.Message) bool) {
		for c := range each {
			if c == nil || !c.AddedViaAPI {
				if !yield(nil) {
					return
				}
				continue
			}
			if !d.one(c.Cluster.Name(), packed(&clusterv3.Cluster{}, c.Raw), yield, func(a *anypb.Any) proto.Message {
				return &adminv3.ClustersConfigDump_DynamicCluster{VersionInfo: c.Version, Cluster: a, LastUpdated: when(c.Updated)}
			}) {
				return
			}
		}
	}
}

func (d *dumpPage) staticListeners(yield func(proto.Message) bool) {
	for _, k := range d.s.dump.listeners {
		if !d.one(k.name, d.get(k.ref, &listenerv3.Listener{}), yield, func(a *anypb.Any) proto.Message {
			return &adminv3.ListenersConfigDump_StaticListener{Listener: a, LastUpdated: when(d.s.dump.at)}
		}) {
			return
		}
	}
}

func (d *dumpPage) dynamicListeners(yield func(proto.Message) bool) {
	failed, names, all := d.failures()
	for _, l := range slices.Clone(d.s.order) {
		if !l.api {
			continue
		}
		if !d.one(l.name, d.get(l.ref, &listenerv3.Listener{}), yield, func(a *anypb.Any) proto.Message {
			m := &adminv3.ListenersConfigDump_DynamicListener{Name: l.name, ErrorState: failed[l.name]}
			state := &adminv3.ListenersConfigDump_DynamicListenerState{VersionInfo: l.version, Listener: a, LastUpdated: when(l.updated)}
			if m.ActiveState = state; l.cold() {
				m.ActiveState, m.WarmingState = nil, state
			}
			return m
		}) {
			return
		}
		delete(failed, l.name)
	}
	for _, name := range names {
		if f := failed[name]; f != nil && !yield(&adminv3.ListenersConfigDump_DynamicListener{Name: name, ErrorState: f}) {
			return
		}
	}
	for _, f := range all {
		if !yield(&adminv3.ListenersConfigDump_DynamicListener{ErrorState: f}) {
			return
		}
	}
}

func (d *dumpPage) staticRoutes(yield func(proto.Message) bool) {
	for _, r := range slices.Clone(d.s.dump.routes) {
		if !d.one(r.name, d.get(r.ref, &routev3.RouteConfiguration{}), yield, func(a *anypb.Any) proto.Message {
			return &adminv3.RoutesConfigDump_StaticRouteConfig{RouteConfig: a, LastUpdated: when(r.updated)}
		}) {
			return
		}
	}
}

func (d *dumpPage) dynamicRoutes(yield func(proto.Message) bool) {
	var list []*keptRoute
	for _, r := range d.s.dump.dynamicRoutes {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *keptRoute) int { return strings.Compare(a.name, b.name) })
	for _, r := range list {
		if !d.one(r.name, d.route(r), yield, func(a *anypb.Any) proto.Message {
			return &adminv3.RoutesConfigDump_DynamicRouteConfig{VersionInfo: r.version, RouteConfig: a, LastUpdated: when(r.updated)}
		}) {
			return
		}
	}
}

func (d *dumpPage) route(r *keptRoute) *anypb.Any {
	if r.packed == nil {
		return d.get(r.ref, &routev3.RouteConfiguration{})
	}
	raw, err := config.Decompress(nil, r.packed)
	if err != nil {
		return nil
	}
	return packed(&routev3.RouteConfiguration{}, raw)
}

func (d *dumpPage) staticSecrets(yield func(proto.Message) bool) {
	for _, x := range d.s.boot.GetStaticResources().GetSecrets() {
		if !d.one(x.GetName(), wrap(x), yield, func(a *anypb.Any) proto.Message {
			return &adminv3.SecretsConfigDump_StaticSecret{Name: x.GetName(), Secret: a}
		}) {
			return
		}
	}
}

func (d *dumpPage) dynamicSecrets(active bool) func(yield func(proto.Message) bool) {
	return func(yield func(proto.Message) bool) {
		for _, x := range d.s.dynamic.secrets.Dynamic() {
			if (x.Secret != nil) != active {
				continue
			}
			m := &tlsv3.Secret{Name: x.Name}
			if active {
				m = x.Secret
			}
			if !d.one(x.Name, wrap(m), yield, func(a *anypb.Any) proto.Message {
				return &adminv3.SecretsConfigDump_DynamicSecret{Name: x.Name, VersionInfo: x.Version, Secret: a, LastUpdated: when(x.Updated)}
			}) {
				return
			}
		}
	}
}

// endpoints yields the hosts of all clusters as assignments.
func (d *dumpPage) endpoints(api bool) func(yield func(proto.Message) bool) {
	return func(yield func(proto.Message) bool) {
		for c := range d.clusters {
			if c == nil || c.AddedViaAPI != api || !d.want(c.Cluster.Name()) {
				if !yield(nil) {
					return
				}
				continue
			}
			a := wrap(assignment(c))
			var m proto.Message = &adminv3.EndpointsConfigDump_StaticEndpointConfig{EndpointConfig: a}
			if api {
				m = &adminv3.EndpointsConfigDump_DynamicEndpointConfig{EndpointConfig: a}
			}
			if !yield(m) {
				return
			}
		}
	}
}

// assignment is what a cluster's hosts amount to now.
func assignment(c *cluster.Status) *endpointv3.ClusterLoadAssignment {
	name := c.Cluster.Name()
	if c.EDSServiceName != "" {
		name = c.EDSServiceName
	}
	out := &endpointv3.ClusterLoadAssignment{ClusterName: name, Policy: &endpointv3.ClusterLoadAssignment_Policy{
		OverprovisioningFactor: wrapperspb.UInt32(c.Cluster.Overprovisioning())}}
	type place struct {
		l        host.Locality
		priority uint32
	}
	groups := map[place]*endpointv3.LocalityLbEndpoints{}
	for _, h := range c.Cluster.Hosts() {
		p := place{priority: h.Priority()}
		if l := h.Locality(); l != nil {
			p.l = *l
		}
		g := groups[p]
		if g == nil {
			g = &endpointv3.LocalityLbEndpoints{Locality: localityOf(h.Locality()), Priority: p.priority}
			if c.Cluster.Options().Type != cluster.OriginalDST { // whose hosts have no places
				g.LoadBalancingWeight = wrapperspb.UInt32(0)
			}
			if w := c.Cluster.LocalityWeight(p.l, p.priority); w > 0 && !c.DNS {
				g.LoadBalancingWeight = wrapperspb.UInt32(w)
			}
			groups[p] = g
			out.Endpoints = append(out.Endpoints, g)
		}
		g.LbEndpoints = append(g.LbEndpoints, &endpointv3.LbEndpoint{HealthStatus: coarseHealth(h), Metadata: metadataOf(h, c.DNS),
			LoadBalancingWeight: wrapperspb.UInt32(h.Weight()), HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: endpointOf(h)}})
	}
	slices.SortStableFunc(out.Endpoints, func(a, b *endpointv3.LocalityLbEndpoints) int {
		x, y := a.GetLocality(), b.GetLocality()
		return cmp.Or(cmp.Compare(a.GetPriority(), b.GetPriority()), cmp.Compare(x.GetRegion(), y.GetRegion()), cmp.Compare(x.GetZone(), y.GetZone()),
			cmp.Compare(x.GetSubZone(), y.GetSubZone()))
	})
	return out
}

// endpointOf is a host as an assignment has it.
func endpointOf(h *host.Host) *endpointv3.Endpoint {
	check := &endpointv3.Endpoint_HealthCheckConfig{}
	e := &endpointv3.Endpoint{Address: addressOf(h.Address), Hostname: h.Hostname, HealthCheckConfig: check}
	x := h.Extra
	if x == nil {
		return e
	}
	if check.Hostname, check.PortValue = x.HealthCheckName, uint32(x.HealthCheckPort); x.HealthCheck.IP.IsValid() {
		check.PortValue = uint32(x.HealthCheck.IP.Port())
	}
	for _, a := range x.Addresses {
		if a != h.Address {
			e.AdditionalAddresses = append(e.AdditionalAddresses, &endpointv3.Endpoint_AdditionalAddress{Address: addressOf(a)})
		}
	}
	return e
}

// coarseHealth is what balancers think of a host.
func coarseHealth(h *host.Host) corev3.HealthStatus {
	switch h.Health() {
	case host.Unhealthy:
		return corev3.HealthStatus_UNHEALTHY
	case host.Degraded:
		return corev3.HealthStatus_DEGRADED
	}
	return corev3.HealthStatus_HEALTHY
}

// metadataOf is a host's metadata as a message. Without any it is nil, but for hosts that were found by a name: they share what their
// endpoint says, be it nothing.
func metadataOf(h *host.Host, found bool) *corev3.Metadata {
	m := h.Metadata()
	if m == nil && !found {
		return nil
	}
	out := &corev3.Metadata{}
	if m == nil {
		return out
	}
	out.FilterMetadata = make(map[string]*structpb.Struct, len(m.Spaces))
	for name, values := range m.Spaces {
		if x, err := structpb.NewStruct(values); err == nil { // it was made of one
			out.FilterMetadata[name] = x
		}
	}
	return out
}
