package lb

import (
	"math/bits"
	"slices"

	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
)

// Zones are a cluster's settings of zone aware routing, which keeps requests near where that does not overload the hosts there: each
// zone shall serve as much of the load as it has of the cluster's hosts, and the proxies of a zone are taken to bring as much of it as
// they are of all proxies (common_lb_config.zone_aware_lb_config, cluster_manager.local_cluster_name).
type Zones struct {
	// MinSize is how many healthy hosts a cluster must have, 6 by default.
	MinSize uint64
	// Enabled is the share of picks in percent, 100 by default.
	Enabled uint32
	// Force sends all to the proxy's own place if it has ForceSize healthy hosts.
	Force     bool
	ForceSize uint32
	// ByWeight counts weights of hosts, not hosts.
	ByWeight bool
}

// The defaults of Zones.
const (
	DefaultZoneMinSize = 6
	DefaultZoneEnabled = 100
)

// Near is what a proxy knows of its own place and of the other proxies around.
type Near struct {
	// Here is where the proxy is.
	Here host.Locality
	// Local are the hosts of the cluster that the proxy itself belongs to, of the first priority.
	Local *HostSet
	// MinSize and Enabled replace those of Zones if they are not negative (runtime keys).
	MinSize, Enabled int64
}

// ZoneState says why there is no zone aware routing in a table that could have it, where that is counted.
type ZoneState uint8

// The states.
const (
	ZoneNone ZoneState = iota
	// ZoneTooSmall: the cluster has fewer healthy hosts than Zones.MinSize.
	ZoneTooSmall
	// ZoneNotHere: the local cluster has no host where the proxy is.
	ZoneNotHere
)

// tenThousand is what all of the hosts are: shares of places are in hundredths of a percent.
const tenThousand = 10_000

// zones chooses a place for requests to the first priority.
type zones struct {
	healthy, degraded []Balancer // by place, the own one first if direct or sample is not 0
	enabled           uint32     // in percent
	direct            bool       // all to the own place
	sample            uint32     // of ten thousand, how many go there
	here              bool       // there is an own place
	residual          []uint64   // sums of what the places have left for others
	localPanic        bool
	fail              bool
}

// site is what one place has.
type site struct {
	at                       host.Locality
	hosts, healthy, degraded []*host.Host
}

// sites groups the hosts of a set by place; those without hosts are none.
func sites(s *HostSet) (out []site) {
	for i := range s.Localities {
		l := &s.Localities[i]
		if len(l.Hosts) == 0 {
			continue
		}
		var at host.Locality
		if l.Place != nil {
			at = *l.Place
		}
		k := slices.IndexFunc(out, func(x site) bool { return x.at == at })
		if k < 0 {
			out = append(out, site{at, l.Hosts, l.Healthy, l.Degraded})
			continue
		}
		x := &out[k]
		x.hosts, x.healthy, x.degraded = slices.Concat(x.hosts, l.Hosts), slices.Concat(x.healthy, l.Healthy), slices.Concat(x.degraded, l.Degraded)
	}
	return out
}

// zoned says where requests to s go by place, nil if they go to all hosts alike.
func (t *Table) zoned(o *Options, s *HostSet, n *Near) *zones {
	z := o.Zones
	if n.MinSize >= 0 {
		z.MinSize = uint64(n.MinSize)
	}
	if n.Enabled >= 0 {
		z.Enabled = uint32(min(n.Enabled, 100))
	}
	up, local := sites(s), sites(n.Local)
	isHere := func(x site) bool { return x.at == n.Here }
	switch {
	case len(up) < 2 || len(local) < 2 && !z.Force:
		return nil
	case !slices.ContainsFunc(local, isHere):
		t.Zone = ZoneNotHere
		return nil
	case uint64(len(s.Healthy)) < z.MinSize:
		t.Zone = ZoneTooSmall
		return nil
	}
	out := &zones{enabled: z.Enabled, fail: o.FailOnPanic, localPanic: n.Local.percentUsable() < min(o.PanicThreshold, 100)}
	if i := slices.IndexFunc(up, isHere); i >= 0 {
		up[0], up[i] = up[i], up[0]
		out.here = true
	}
	out.shares(&z, up, local)
	for i := range up {
		out.healthy = append(out.healthy, t.build(o, up[i].healthy))
		out.degraded = append(out.degraded, t.build(o, up[i].degraded))
	}
	return out
}

// shares works out what goes where.
func (z *zones) shares(o *Zones, up, local []site) {
	mine, theirs := percentages(up, o.ByWeight), percentages(local, o.ByWeight)
	load := func(i int) uint64 { // what the proxies at a place bring
		if k := slices.IndexFunc(local, func(x site) bool { return x.at == up[i].at }); k >= 0 {
			return theirs[k]
		}
		return 0
	}
	if z.here {
		z.direct = mine[0] > 0 && mine[0] >= load(0) || o.Force && uint64(len(up[0].healthy)) >= uint64(o.ForceSize)
		if !z.direct && load(0) > 0 {
			z.sample = uint32(mine[0] * tenThousand / load(0))
		}
	}
	z.residual = make([]uint64, len(up))
	sum := uint64(0)
	for i := range up {
		if own := i == 0 && z.here; !own && mine[i] > load(i) {
			sum += mine[i] - load(i)
		}
		z.residual[i] = sum
	}
}

// percentages are the shares of the healthy hosts of each place in all, of ten thousand.
func percentages(list []site, byWeight bool) []uint64 {
	out, total := make([]uint64, len(list)), uint64(0)
	for i := range list {
		out[i] = uint64(len(list[i].healthy))
		if byWeight {
			out[i] = weights(list[i].healthy)
		}
		total += out[i]
	}
	for i := range out {
		if total > 0 {
			hi, lo := bits.Mul64(out[i], tenThousand)
			out[i], _ = bits.Div64(hi, lo, total)
		}
	}
	return out
}

// pick chooses a place, and a host there. ok is false if this pick is not to look at places.
func (z *zones) pick(c *Context, degraded bool) (h *host.Host, o Outcome, ok bool) {
	if z.enabled < 100 && uint32(c.W.Rand.IntN(100)) >= z.enabled {
		return nil, Normal, false
	}
	if z.localPanic {
		return nil, LocalNotOK, z.fail
	}
	i, o := z.place(c)
	if degraded {
		return z.degraded[i].Pick(c), o, true
	}
	return z.healthy[i].Pick(c), o, true
}

func (z *zones) place(c *Context) (int, Outcome) {
	if z.direct {
		return 0, ZoneDirect
	}
	if z.here && uint32(c.W.Rand.IntN(tenThousand)) < z.sample {
		return 0, ZoneSampled
	}
	total := z.residual[len(z.residual)-1]
	if total == 0 { // a rounding error
		return c.W.Rand.IntN(len(z.residual)), ZoneNoCapacity
	}
	n := uint64(c.W.Rand.IntN(int(total)))
	for i, sum := range z.residual {
		if n < sum {
			return i, ZoneCross
		}
	}
	return len(z.residual) - 1, ZoneCross
}
