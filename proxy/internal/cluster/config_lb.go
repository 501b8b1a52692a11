package cluster

import (
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/common/v3"
	leastrequestv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	maglevv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/maglev/v3"
	randomv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/random/v3"
	ringhashv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/ring_hash/v3"
	roundrobinv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	wrrlocalityv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/wrr_locality/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

// defaultChoices is choice_count of LEAST_REQUEST.
const defaultChoices = 2

// buildLB reads lb_policy and what goes with it, or load_balancing_policy, which wins.
func buildLB(cfg *clusterv3.Cluster, d *Deps, o *Options) error {
	o.LB.PanicThreshold = lb.DefaultPanicThreshold
	common := cfg.GetCommonLbConfig()
	if p := common.GetHealthyPanicThreshold(); p != nil {
		if math.IsNaN(p.GetValue()) { // which no bound of a field rule catches
			return rejected("common_lb_config.healthy_panic_threshold", "Value not in the range of 0..100 range.")
		}
		o.LB.PanicThreshold = p.GetValue()
	}
	o.LB.FailOnPanic = common.GetZoneAwareLbConfig().GetFailTrafficOnPanic()
	if cfg.GetLoadBalancingPolicy() != nil {
		return buildPolicies(cfg, d, o)
	}
	o.LB.LocalityWeighted = common.GetLocalityWeightedLbConfig() != nil
	o.LB.Zones = lb.Zones{MinSize: lb.DefaultZoneMinSize, Enabled: lb.DefaultZoneEnabled}
	if z := common.GetZoneAwareLbConfig(); z != nil {
		zones(z, &o.LB.Zones)
	}
	switch p := cfg.GetLbPolicy(); p {
	case clusterv3.Cluster_ROUND_ROBIN:
		if cfg.GetRoundRobinLbConfig().GetSlowStartConfig() != nil {
			return notYet("round_robin_lb_config.slow_start_config")
		}
		o.LB.Policy = lb.RoundRobin{}
	case clusterv3.Cluster_LEAST_REQUEST:
		c := cfg.GetLeastRequestLbConfig()
		if c.GetSlowStartConfig() != nil {
			return notYet("least_request_lb_config.slow_start_config")
		}
		o.LB.Policy = leastRequest(c.GetChoiceCount(), c.GetActiveRequestBias(), false)
	case clusterv3.Cluster_RANDOM:
		o.LB.Policy = lb.Random{}
	case clusterv3.Cluster_CLUSTER_PROVIDED:
		o.LB.Policy = provided{}
		return config.At("lb_policy", checkProvided(cfg, o))
	case clusterv3.Cluster_RING_HASH:
		c := cfg.GetRingHashLbConfig()
		low, high := ringSize(c.GetMinimumRingSize(), lb.DefaultRingMin), ringSize(c.GetMaximumRingSize(), lb.DefaultRingMax)
		if low > high {
			return rejected("ring_hash_lb_config", ringSizes(low, high))
		}
		o.LB.Policy = lb.RingHash{Min: low, Max: high, Murmur: c.GetHashFunction() == clusterv3.Cluster_RingHashLbConfig_MURMUR_HASH_2,
			Hashing: hashing(common.GetConsistentHashingLbConfig())}
	case clusterv3.Cluster_MAGLEV:
		size, err := maglevSize(cfg.GetMaglevLbConfig().GetTableSize())
		if err != nil {
			return config.At("maglev_lb_config", err)
		}
		o.LB.Policy = lb.Maglev{Size: size, Hashing: hashing(common.GetConsistentHashingLbConfig())}
	case clusterv3.Cluster_LOAD_BALANCING_POLICY_CONFIG:
		return rejected("lb_policy", "cluster: field load_balancing_policy need to be set")
	default:
		return rejected("lb_policy", p.String()+": not supported yet")
	}
	zonePolicy(o)
	return nil
}

// zoneAware is what the messages of zone aware routing have in common.
type zoneAware interface {
	GetMinClusterSize() *wrapperspb.UInt64Value
	GetRoutingEnabled() *typev3.Percent
}

func zones(c zoneAware, z *lb.Zones) {
	if n := c.GetMinClusterSize(); n != nil {
		z.MinSize = n.GetValue()
	}
	if p := c.GetRoutingEnabled(); p != nil {
		z.Enabled = uint32(p.GetValue())
	}
}

// zonePolicy tells which policies heed zones.
func zonePolicy(o *Options) {
	switch o.LB.Policy.(type) {
	case lb.RoundRobin, lb.LeastRequest, lb.Random:
		o.LB.Zoned = true
	default:
		o.LB.Zones = lb.Zones{}
	}
}

// consistentHashing is what the messages of consistent hashing have in common.
type consistentHashing interface {
	GetUseHostnameForHashing() bool
	GetHashBalanceFactor() *wrapperspb.UInt32Value
}

func hashing(c consistentHashing) lb.Hashing {
	return lb.Hashing{UseHostname: c.GetUseHostnameForHashing(), BalanceFactor: c.GetHashBalanceFactor().GetValue()}
}

func ringSize(n *wrapperspb.UInt64Value, def uint64) uint64 {
	if n == nil {
		return def
	}
	return n.GetValue()
}

func maglevSize(n *wrapperspb.UInt64Value) (uint64, error) {
	size := ringSize(n, lb.DefaultMaglevSize)
	if !prime(size) {
		return 0, rejected("table_size", "The table size of maglev must be prime number")
	}
	return size, nil
}

func leastRequest(choices *wrapperspb.UInt32Value, bias *corev3.RuntimeDouble, scan bool) lb.LeastRequest {
	p := lb.LeastRequest{Choices: defaultChoices, Bias: 1, FullScan: scan}
	if choices != nil {
		p.Choices = int(choices.GetValue())
	}
	if bias != nil {
		p.Bias = bias.GetDefaultValue()
	}
	return p
}

// buildPolicies takes the first policy of load_balancing_policy that we know, as Envoy does.
func buildPolicies(cfg *clusterv3.Cluster, d *Deps, o *Options) error {
	var names []string
	var missing error // one that Envoy has, and this build not
	for i, p := range cfg.GetLoadBalancingPolicy().GetPolicies() {
		ec := p.GetTypedExtensionConfig()
		ok, err := buildPolicy(ec, d, o)
		if err != nil {
			return config.At(fmt.Sprintf("load_balancing_policy.policies[%d].typed_extension_config.typed_config", i), err)
		}
		if ok {
			return config.At("load_balancing_policy", checkProvided(cfg, o))
		}
		a := ec.GetTypedConfig()
		// An Any of one would not have been read at all.
		if e := config.Unregistered(ec.GetName(), a); missing == nil && config.PayloadURL(a) != a.GetTypeUrl() && e.Known() {
			missing = config.At(fmt.Sprintf("load_balancing_policy.policies[%d].typed_extension_config.typed_config", i), e)
		}
		names = append(names, ec.GetName())
	}
	if missing != nil {
		return missing
	}
	return rejected("load_balancing_policy", "cluster: didn't find a registered load balancer factory implementation for cluster: '"+
		cfg.GetName()+"' with names from ["+strings.Join(names, ", ")+"]")
}

// buildPolicy reads one policy; false: it is not known. Errors name fields of its typed_config.
func buildPolicy(ec *corev3.TypedExtensionConfig, d *Deps, o *Options) (bool, error) {
	any := ec.GetTypedConfig()
	var err error
	read := func(m proto.Message) bool {
		if config.Holds(any, m) {
			err = config.Into(any, m)
			return true
		}
		return false
	}
	var (
		rr  roundrobinv3.RoundRobin
		lr  leastrequestv3.LeastRequest
		rnd randomv3.Random
		wrr wrrlocalityv3.WrrLocality
	)
	switch {
	case read(&rr):
		if rr.GetSlowStartConfig() != nil {
			return false, notYet("slow_start_config")
		}
		o.LB.Policy = lb.RoundRobin{}
		return true, orErr(err, localityLB(rr.GetLocalityLbConfig(), o))
	case read(&lr):
		if lr.GetSlowStartConfig() != nil {
			return false, notYet("slow_start_config")
		}
		o.LB.Policy = leastRequest(lr.GetChoiceCount(), lr.GetActiveRequestBias(),
			lr.GetSelectionMethod() == leastrequestv3.LeastRequest_FULL_SCAN || lr.GetEnableFullScan().GetValue()) //nolint:staticcheck // deprecated, still read by Envoy
		return true, orErr(err, localityLB(lr.GetLocalityLbConfig(), o))
	case read(&rnd):
		o.LB.Policy = lb.Random{}
		return true, orErr(err, localityLB(rnd.GetLocalityLbConfig(), o))
	case read(&wrr):
		return false, orErr(err, wrrLocality(&wrr, d))
	}
	if isProvided(any) {
		o.LB.Policy = provided{}
		return true, nil
	}
	if ok, err := hashPolicy(any, o); ok || err != nil {
		return ok, err
	}
	return extensionPolicy(any, d, o)
}

// wrrLocality tells what is wrong with a WrrLocality: in Envoy 1.40 it takes one endpoint picking policy, which this build does not have.
func wrrLocality(p *wrrlocalityv3.WrrLocality, d *Deps) error {
	const path = "endpoint_picking_policy"
	for i, x := range p.GetEndpointPickingPolicy().GetPolicies() {
		ec := x.GetTypedExtensionConfig()
		at := fmt.Sprintf(path+".policies[%d].typed_extension_config.typed_config", i)
		if e := config.Unregistered(ec.GetName(), ec.GetTypedConfig()); strings.HasSuffix(config.PayloadURL(ec.GetTypedConfig()), clientSideWRR) {
			return config.At(at, e)
		}
		if ok, _ := buildPolicy(ec, d, &Options{}); ok {
			return rejected(at, "Currently WrrLocalityLoadBalancer only supports ClientSideWeightedRoundRobinLoadBalancer as its endpoint picking policy.")
		}
	}
	return rejected(path, "No supported endpoint picking policy.")
}

const clientSideWRR = "envoy.extensions.load_balancing_policies.client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin"

// hashPolicy reads the policies of consistent hashing; false: it is none of them.
func hashPolicy(any *anypb.Any, o *Options) (bool, error) {
	var (
		rh ringhashv3.RingHash
		mg maglevv3.Maglev
	)
	switch {
	case config.Holds(any, &rh):
		if err := config.Into(any, &rh); err != nil {
			return false, err
		}
		low, high := ringSize(rh.GetMinimumRingSize(), lb.DefaultRingMin), ringSize(rh.GetMaximumRingSize(), lb.DefaultRingMax)
		if low > high {
			return false, rejected("minimum_ring_size", ringSizes(low, high))
		}
		p := lb.RingHash{Min: low, Max: high, Murmur: rh.GetHashFunction() == ringhashv3.RingHash_MURMUR_HASH_2}
		p.Hashing = hashing(&rh) //nolint:staticcheck // deprecated, still read by Envoy
		if c := rh.GetConsistentHashingLbConfig(); c != nil {
			if len(c.GetHashPolicy()) > 0 {
				return false, notYet("consistent_hashing_lb_config.hash_policy")
			}
			p.Hashing = hashing(c)
		}
		o.LB.Policy, o.LB.LocalityWeighted = p, rh.GetLocalityWeightedLbConfig() != nil
	case config.Holds(any, &mg):
		if err := config.Into(any, &mg); err != nil {
			return false, err
		}
		size, err := maglevSize(mg.GetTableSize())
		if err != nil {
			return false, err
		}
		c := mg.GetConsistentHashingLbConfig()
		if len(c.GetHashPolicy()) > 0 {
			return false, notYet("consistent_hashing_lb_config.hash_policy")
		}
		o.LB.Policy = lb.Maglev{Size: size, Hashing: hashing(c)}
		o.LB.LocalityWeighted = mg.GetLocalityWeightedLbConfig() != nil
	default:
		return false, nil
	}
	return true, nil
}

func localityLB(c *commonv3.LocalityLbConfig, o *Options) error {
	o.LB.LocalityWeighted = c.GetLocalityWeightedLbConfig() != nil
	o.LB.Zones = lb.Zones{MinSize: lb.DefaultZoneMinSize, Enabled: lb.DefaultZoneEnabled}
	if z := c.GetZoneAwareLbConfig(); z != nil {
		zones(z, &o.LB.Zones)
		if f := z.GetForceLocalZone(); f != nil {
			o.LB.Zones.Force, o.LB.Zones.ForceSize = true, 1
			if n := f.GetMinSize(); n != nil {
				o.LB.Zones.ForceSize = n.GetValue()
			}
		}
		if z.GetForceLocalityDirectRouting() { //nolint:staticcheck // deprecated, still read by Envoy
			o.LB.Zones.Force, o.LB.Zones.ForceSize = true, max(o.LB.Zones.ForceSize, 1)
		}
		o.LB.Zones.ByWeight = z.GetLocalityBasis() == commonv3.LocalityLbConfig_ZoneAwareLbConfig_HEALTHY_HOSTS_WEIGHT
		o.LB.FailOnPanic = z.GetFailTrafficOnPanic()
	}
	zonePolicy(o)
	return nil
}

func orErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func ringSizes(low, high uint64) string {
	return "ring hash: minimum_ring_size (" + decimal(low) + ") > maximum_ring_size (" + decimal(high) + ")"
}

func prime(n uint64) bool {
	if n < 2 {
		return false
	}
	for d := uint64(2); d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return true
}
