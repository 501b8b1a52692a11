package cluster

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

// MaxPriority is the highest priority of endpoints.
const MaxPriority = 128

// buildAssignment reads a cluster's own endpoints. EDS clusters have none.
func buildAssignment(cfg *clusterv3.Cluster, t Type) (*assignment, error) {
	la := cfg.GetLoadAssignment()
	if t == EDS { // what is written of it is not used, as in Envoy
		return &assignment{}, nil
	}
	if t == OriginalDST {
		if la != nil {
			return nil, rejected("load_assignment", "ORIGINAL_DST clusters must have no load assignment configured")
		}
		return &assignment{overprovisioning: lb.DefaultOverprovisioning}, nil
	}
	a, err := readAssignment(la, "load_assignment.")
	var errs config.Errors
	errs.Collect("", err)
	if t == Static {
		for _, l := range a.localities {
			for _, e := range l.endpoints {
				if !e.target.address.Valid() && e.path != "" {
					errs.Collect(addressPath(&e), badAddress(e.target.name))
				}
			}
		}
	}
	if t == LogicalDNS {
		if len(a.localities) != 1 || len(a.localities[0].endpoints) != 1 {
			errs.Collect("load_assignment", errors.New(logicalDNSShape(len(a.localities))))
		}
	}
	return a, errs.Err()
}

// badAddress says what is wrong with an address that should be one, in Envoy's words.
func badAddress(name string) *config.Error {
	x := &config.Error{Msg: "Address must be set"}
	if name != "" {
		x = config.BadAddress(name)
	}
	x.Msg += ". Consider setting resolver_name or setting cluster type to 'STRICT_DNS' or 'LOGICAL_DNS'"
	if !strings.ContainsAny(name, ":/[]*") { // that is all there is to say of a name
		x.Allowed, x.Advice = "", ""
	}
	return x
}

func addressPath(e *endpoint) string {
	if e.target.name == "" {
		return e.path
	}
	return e.path + ".socket_address.address"
}

func logicalDNSShape(localities int) string {
	if localities == 0 {
		return "LOGICAL_DNS clusters must have a single host"
	}
	return "LOGICAL_DNS clusters must have a single locality_lb_endpoint and a single lb_endpoint"
}

// readAssignment reads a ClusterLoadAssignment, from a cluster or from EDS.
func readAssignment(la *endpointv3.ClusterLoadAssignment, path string) (*assignment, error) {
	a := &assignment{overprovisioning: number(la.GetPolicy().GetOverprovisioningFactor(), lb.DefaultOverprovisioning),
		weightedHealth: la.GetPolicy().GetWeightedPriorityHealth()}
	var errs config.Errors
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"policy.drop_overloads", len(la.GetPolicy().GetDropOverloads()) > 0},
		{"policy.endpoint_stale_after", la.GetPolicy().GetEndpointStaleAfter() != nil},
		{"named_endpoints", len(la.GetNamedEndpoints()) > 0},
	} {
		if f.set {
			errs.Collect("", notYet(path+f.name))
		}
	}
	a.localities = make([]locality, 0, len(la.GetEndpoints()))
	for i, l := range la.GetEndpoints() {
		x, err := readLocality(l, fmt.Sprintf("%sendpoints[%d].", path, i))
		errs.Collect("", err)
		a.localities = append(a.localities, x)
	}
	return a, errs.Err()
}

func readLocality(l *endpointv3.LocalityLbEndpoints, path string) (x locality, err error) {
	switch {
	case l.GetLoadBalancerEndpoints() != nil:
		return x, notYet(path + "load_balancer_endpoints")
	case l.GetLedsClusterLocalityConfig() != nil:
		return x, notYet(path + "leds_cluster_locality_config")
	case l.GetPriority() > MaxPriority:
		return x, rejected(path+"priority", "priority must be at most 128")
	}
	var errs config.Errors
	x.priority, x.weight = l.GetPriority(), l.GetLoadBalancingWeight().GetValue()
	if p := l.GetLocality(); p.GetRegion() != "" || p.GetZone() != "" || p.GetSubZone() != "" {
		x.place = &host.Locality{Region: p.GetRegion(), Zone: p.GetZone(), SubZone: p.GetSubZone()}
	}
	common := readMetadata(l.GetMetadata())
	x.endpoints = make([]endpoint, 0, len(l.GetLbEndpoints()))
	for i, e := range l.GetLbEndpoints() {
		ep, err := readEndpoint(e, fmt.Sprintf("%slb_endpoints[%d].", path, i))
		errs.Collect("", err)
		if common != nil {
			if ep.extra == nil {
				ep.extra = &host.Extra{}
			}
			ep.extra.LocalityMetadata = common
		}
		x.endpoints = append(x.endpoints, ep)
	}
	return x, errs.Err()
}

func readEndpoint(e *endpointv3.LbEndpoint, path string) (ep endpoint, err error) {
	if e.GetEndpointName() != "" {
		return ep, notYet(path + "endpoint_name")
	}
	in := e.GetEndpoint()
	if in.GetObservabilityName() != "" {
		return ep, notYet(path + "endpoint.observability_name")
	}
	if ep.target, err = buildTarget(in.GetAddress(), path+"endpoint.address."); err != nil {
		return ep, err
	}
	ep.path = path + "endpoint.address"
	ep.hostname = in.GetHostname()
	ep.weight = number(e.GetLoadBalancingWeight(), 1)
	ep.metadata = readMetadata(e.GetMetadata())
	switch e.GetHealthStatus() {
	case corev3.HealthStatus_UNHEALTHY, corev3.HealthStatus_TIMEOUT:
		ep.health = host.FailedEDSHealth
	case corev3.HealthStatus_DRAINING:
		ep.health = host.EDSStatusDraining
	case corev3.HealthStatus_DEGRADED:
		ep.health = host.DegradedEDSHealth
	}
	if hc := in.GetHealthCheckConfig(); hc != nil || len(in.GetAdditionalAddresses()) > 0 {
		return ep, readExtra(in, &ep, path+"endpoint.")
	}
	return ep, nil
}

func readExtra(in *endpointv3.Endpoint, ep *endpoint, path string) error {
	hc := in.GetHealthCheckConfig()
	ep.extra = &host.Extra{HealthCheckName: hc.GetHostname(), NoHealthCheck: hc.GetDisableActiveHealthCheck(),
		HealthCheckPort: uint16(hc.GetPortValue())}
	if a := hc.GetAddress(); a != nil {
		at := path + "health_check_config.address."
		t, err := buildTarget(a, at)
		if err != nil {
			return err
		}
		if !t.address.Valid() {
			return config.At(at+"socket_address.address", config.BadAddress(t.name))
		}
		ep.extra.HealthCheck = t.address
	}
	if len(in.GetAdditionalAddresses()) > 0 {
		if !ep.address.Valid() { // a name, which has its own addresses
			return notYet(path + "additional_addresses")
		}
		ep.extra.Addresses = append(ep.extra.Addresses, ep.address)
	}
	for i, a := range in.GetAdditionalAddresses() {
		at := fmt.Sprintf("%sadditional_addresses[%d].address.", path, i)
		t, err := buildTarget(a.GetAddress(), at)
		if err != nil {
			return err
		}
		if !t.address.Valid() {
			return config.At(at+"socket_address.address", config.BadAddress(t.name))
		}
		ep.extra.Addresses = append(ep.extra.Addresses, t.address)
	}
	return nil
}

// readMetadata turns metadata into plain values.
func readMetadata(m *corev3.Metadata) *host.Metadata {
	if len(m.GetFilterMetadata()) == 0 {
		return nil
	}
	out := &host.Metadata{Spaces: make(map[string]map[string]any, len(m.GetFilterMetadata()))}
	for ns, s := range m.GetFilterMetadata() {
		out.Spaces[ns] = s.AsMap()
	}
	if c, ok := out.Get("envoy.lb", "canary"); ok {
		out.Canary, _ = c.(bool)
	}
	return out
}
