package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
)

// zonal is a static cluster with so many hosts in each of z1, z2, ...
func zonal(name, rest string, hosts ...int) string {
	var places []string
	port := 1000
	for i, n := range hosts {
		var eps []string
		for range n {
			port++
			eps = append(eps, fmt.Sprintf("{endpoint: {hostname: z%d, address: {socket_address: {address: 10.0.0.1, port_value: %d}}}}", i+1, port))
		}
		places = append(places, fmt.Sprintf("{locality: {zone: z%d}, lb_endpoints: [%s]}", i+1, strings.Join(eps, ", ")))
	}
	return fmt.Sprintf("{name: %s, %s load_assignment: {cluster_name: %s, endpoints: [%s]}}", name, rest, name, strings.Join(places, ", "))
}

const smallest = "common_lb_config: {zone_aware_lb_config: {min_cluster_size: 1}},"

// zoneRig is a rig in zone z1 of the cluster "mine".
func zoneRig(t *testing.T) *rig {
	r := newRig(t, 1)
	r.deps.LocalCluster, r.deps.Here = "mine", host.Locality{Zone: "z1"}
	r.m = cluster.NewManager(r.deps)
	return r
}

// zonesOf tells which zones a cluster's hosts are picked from.
func (r *rig) zonesOf(c *cluster.Cluster) string {
	seen := map[string]bool{}
	for range 40 {
		seen[r.pick(c).Hostname] = true
	}
	var out string
	for _, z := range []string{"z1", "z2", "z3"} {
		if seen[z] {
			out += z
		}
	}
	return out
}

func TestZoneAwareRouting(t *testing.T) {
	r := zoneRig(t)
	pool := r.add(zonal("pool", smallest, 1, 1))
	if got := r.zonesOf(pool); got != "z1z2" {
		t.Errorf("before there is a local cluster: %s", got)
	}
	mine := r.add(zonal("mine", "", 1, 1))
	if got := r.zonesOf(pool); got != "z1" {
		t.Errorf("as many proxies as hosts: %s", got)
	}
	if got := r.zonesOf(mine); got != "z1z2" {
		t.Errorf("the local cluster itself: %s", got)
	}
	r.want(map[string]string{"cluster.pool.lb_recalculate_zone_structures": "2", "cluster.pool.lb_zone_routing_all_directly": "40",
		"cluster.pool.lb_zone_cluster_too_small": "0", "cluster.mine.lb_recalculate_zone_structures": "0"})
	hashed := r.add(zonal("hashed", "lb_policy: MAGLEV,", 3, 3))
	if got := r.zonesOf(hashed); got != "z1z2" {
		t.Errorf("consistent hashing: %s", got)
	}
	small := r.add(zonal("small", "", 2, 3))
	if got := r.zonesOf(small); got != "z1z2" {
		t.Errorf("a small cluster: %s", got)
	}
	r.want(map[string]string{"cluster.small.lb_zone_cluster_too_small": "2"})
	// More proxies here than elsewhere: not all requests can stay.
	if _, err := r.m.UpdateStatic(parse(t, zonal("mine", "", 3, 1))); err != nil {
		t.Fatal(err)
	}
	if got := r.zonesOf(pool); got != "z1z2" {
		t.Errorf("more proxies than hosts: %s", got)
	}
	// None here any more.
	if _, err := r.m.UpdateStatic(parse(t, zonal("mine", "", 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	before := r.values()["cluster.pool.lb_zone_routing_all_directly"]
	if got := r.zonesOf(pool); got != "z1z2" {
		t.Errorf("no proxies here: %s", got)
	}
	r.want(map[string]string{"cluster.pool.lb_local_cluster_not_ok": "2", "cluster.pool.lb_zone_routing_all_directly": before})
}

// A runtime key turns zone aware routing off while clusters serve.
func TestZoneRuntime(t *testing.T) {
	r := zoneRig(t)
	keys := &keysOf{}
	r.deps.Runtime = keys
	pool := r.add(zonal("pool", smallest, 1, 1))
	r.add(zonal("mine", "", 1, 1))
	if got := r.zonesOf(pool); got != "z1" {
		t.Errorf("without keys: %s", got)
	}
	keys.set = map[string]uint64{"upstream.zone_routing.enabled": 0}
	r.m.RuntimeChanged(nil)
	if got := r.zonesOf(pool); got != "z1z2" {
		t.Errorf("turned off: %s", got)
	}
	keys.set = map[string]uint64{"upstream.zone_routing.min_cluster_size": 3}
	r.m.RuntimeChanged(nil)
	if got := r.zonesOf(pool); got != "z1z2" {
		t.Errorf("too small: %s", got)
	}
	keys.set = nil
	r.m.RuntimeChanged(nil)
	if got := r.zonesOf(pool); got != "z1" {
		t.Errorf("without keys again: %s", got)
	}
}

// keysOf is a runtime of whole numbers.
type keysOf struct{ set map[string]uint64 }

func (k *keysOf) Len() int { return len(k.set) }
func (k *keysOf) Uint(key string, def uint64) uint64 {
	if n, ok := k.set[key]; ok {
		return n
	}
	return def
}
func (k *keysOf) Double(_ string, def float64) float64            { return def }
func (k *keysOf) Fraction(_ string, n, d uint64) (uint64, uint64) { return n, d }

// WrrLocality takes one picking policy in Envoy 1.40, which there is not here.
func TestWrrLocality(t *testing.T) {
	const ext = "type.googleapis.com/envoy.extensions.load_balancing_policies."
	wrr := func(policies string) string {
		return `{name: a, load_balancing_policy: {policies: [{typed_extension_config: {name: x, typed_config: {"@type": ` + ext + `wrr_locality.v3.WrrLocality, endpoint_picking_policy: {policies: [` + policies + `]}}}}]}}`
	}
	for policies, want := range map[string]string{
		`{typed_extension_config: {name: p, typed_config: {"@type": ` + ext + `random.v3.Random}}}`:                                                                                                        "Currently WrrLocalityLoadBalancer only supports ClientSideWeightedRoundRobinLoadBalancer as its endpoint picking policy.",
		`{typed_extension_config: {name: p, typed_config: {"@type": type.googleapis.com/envoy.config.core.v3.Metadata}}}`:                                                                                  "No supported endpoint picking policy.",
		`{typed_extension_config: {name: p, typed_config: {"@type": type.googleapis.com/xds.type.v3.TypedStruct, type_url: ` + ext + `client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin}}}`: "Didn't find a registered implementation for 'p'",
	} {
		if _, err := cluster.Build(parse(t, wrr(policies)), newRig(t, 1).deps); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", policies, err)
		}
	}
}
