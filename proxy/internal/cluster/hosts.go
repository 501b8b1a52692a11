package cluster

import (
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// assignment is what is known of a cluster's endpoints: configured, resolved or discovered.
type assignment struct {
	localities       []locality
	overprovisioning uint32
	weightedHealth   bool
}

// locality is the endpoints of one place and priority.
type locality struct {
	place     *host.Locality
	priority  uint32
	weight    uint32
	endpoints []endpoint
}

// all returns the endpoints.
func (a *assignment) all() (out []endpoint) {
	if len(a.localities) == 1 {
		return a.localities[0].endpoints
	}
	for i := range a.localities {
		out = append(out, a.localities[i].endpoints...)
	}
	return out
}

type endpoint struct {
	target
	hostname string
	weight   uint32
	health   host.Flag
	metadata *host.Metadata
	extra    *host.Extra
	path     string // in the configuration, for errors
}

// placeWeight is the weight of a place at a priority.
type placeWeight struct {
	place            host.Locality
	priority, weight uint32
}

// keepWeights keeps the weights of places for the admin interface: those that there are, which is mostly none.
func (c *Cluster) keepWeights(a *assignment) {
	c.weights = nil
	for i := range a.localities {
		l := &a.localities[i]
		if l.weight == 0 {
			continue
		}
		w := placeWeight{priority: l.priority, weight: l.weight}
		if l.place != nil {
			w.place = *l.place
		}
		c.weights = append(c.weights, w)
	}
}

// LocalityWeight returns the weight that a place has at a priority, 0 if none was given. owner: main loop.
func (c *Cluster) LocalityWeight(place host.Locality, priority uint32) uint32 {
	for i := range c.weights {
		if w := &c.weights[i]; w.place == place && w.priority == priority {
			return w.weight
		}
	}
	return 0
}

// Overprovisioning returns the overprovisioning factor in percent. owner: main loop.
func (c *Cluster) Overprovisioning() uint32 {
	if t := c.table.Load(); t != nil && len(t.Sets) > 0 && t.Sets[0].Overprovisioning != 0 {
		return t.Sets[0].Overprovisioning
	}
	return lb.DefaultOverprovisioning
}

// edsFlags are the flags that an endpoint's health_status sets.
const edsFlags = host.FailedEDSHealth | host.EDSStatusDraining | host.DegradedEDSHealth

// apply makes a the cluster's hosts and tells whether anything changed. Hosts that were there before stay the same objects.
// owner: main loop.
func (c *Cluster) apply(d *Deps, a *assignment) bool {
	c.keepWeights(a)
	u := newUpdate(c, d, a)
	for i := range a.localities {
		u.locality(&a.localities[i])
	}
	u.retain()
	gone := u.gone()
	if c.table.Load() != nil && !u.changed && u.added == 0 && len(gone) == 0 {
		return false
	}
	c.publish(d, u.sets())
	if u.added > 0 || len(gone) > 0 || u.moved { // Envoy takes a host in another place for another host
		d.Store.Main().Inc(c.settings.Stats.Counter(stats.ClusterMembershipChange))
	}
	if len(gone) > 0 {
		for h := range gone {
			h.SetFlag(host.Removed, true)
		}
		c.eachLocal(d, func(_ *event.Worker, l *local) { l.drainHosts(gone) })
	} else if u.added > 0 && c.opts.DrainOnChange {
		c.eachLocal(d, func(_ *event.Worker, l *local) { l.drainAll() })
	}
	c.checks.sync(gone)
	return true
}

// healthChanged builds the table anew after flags of hosts have changed, without those that are gone. owner: main loop.
func (c *Cluster) healthChanged(d *Deps, gone map[*host.Host]bool) {
	old := c.table.Load()
	sets := make([]lb.HostSet, len(old.Sets))
	for i := range sets {
		o := &old.Sets[i]
		sets[i] = lb.NewHostSet(without(o.Hosts, gone))
		sets[i].Overprovisioning, sets[i].WeightedHealth = o.Overprovisioning, o.WeightedHealth
		for _, l := range o.Localities {
			sets[i].Localities = append(sets[i].Localities, newLocalitySet(l.Place, without(l.Hosts, gone), l.Weight))
		}
	}
	c.publish(d, sets)
}

func without(hosts []*host.Host, gone map[*host.Host]bool) []*host.Host {
	if len(gone) == 0 {
		return hosts
	}
	out := make([]*host.Host, 0, len(hosts))
	for _, h := range hosts {
		if !gone[h] {
			out = append(out, h)
		}
	}
	return out
}

// publish builds the table of sets and shows it to the workers.
func (c *Cluster) publish(d *Deps, sets []lb.HostSet) {
	c.table.Store(c.newTable(d, sets))
	if c.prev == nil {
		c.gauges(d)
	}
	if d.published != nil {
		d.published(c)
	}
}

// eachHost calls f for all hosts. owner: main loop.
func (c *Cluster) eachHost(f func(h *host.Host)) {
	t := c.table.Load()
	for i := range t.Sets {
		for _, h := range t.Sets[i].Hosts {
			f(h)
		}
	}
}

// gauges sets what tells of the hosts as they are now.
func (c *Cluster) gauges(d *Deps) {
	sets := c.table.Load().Sets
	var total, healthy, degraded, excluded, weight uint64
	for i := range sets {
		s := &sets[i]
		total += uint64(len(s.Hosts))
		healthy += uint64(len(s.Healthy))
		degraded += uint64(len(s.Degraded))
		excluded += uint64(s.Excluded)
		for _, h := range s.Hosts {
			weight = max(weight, uint64(h.Weight()))
		}
	}
	base, st := c.settings.Stats, d.Store
	st.SetGauge(base.Gauge(stats.ClusterMembershipTotal), total)
	st.SetGauge(base.Gauge(stats.ClusterMembershipHealthy), healthy)
	st.SetGauge(base.Gauge(stats.ClusterMembershipDegraded), degraded)
	st.SetGauge(base.Gauge(stats.ClusterMembershipExcluded), excluded)
	c.hashGauges(d)
	if c.opts.Type == StrictDNS || c.opts.Type == EDS {
		st.SetGauge(base.Gauge(stats.ClusterMaxHostWeight), max(weight, 1))
	}
}

// eachLocal runs f on every worker that has used the cluster.
func (c *Cluster) eachLocal(d *Deps, f func(w *event.Worker, l *local)) {
	all := c.locals.Load()
	if all == nil {
		return
	}
	for i := range *all {
		l := (*all)[i].Load()
		if l == nil {
			continue
		}
		w := d.Main
		if i > 0 {
			w = d.Workers[i-1]
		}
		w.Post(func() { f(w, l) })
	}
}

// update compares an assignment with the hosts that there are.
type update struct {
	c       *Cluster
	d       *Deps
	a       *assignment
	old     map[network.Address]*host.Host // what was not met yet
	seen    map[network.Address]struct{}   // nil for static clusters, which may repeat an address
	adopt   map[network.Address]*host.Host // of the cluster that this one will replace
	used    []bool                         // indices of hosts that stay
	free    int                            // no index below is free
	prios   [][]*host.Host
	places  [][]lb.LocalitySet
	added   int
	changed bool
	moved   bool // a host has another place than before
}

func newUpdate(c *Cluster, d *Deps, a *assignment) *update {
	u := &update{c: c, d: d, a: a}
	if c.prev != nil {
		u.adopt = u.collect(c.prev)
		if c.checks != nil || c.prev.checks != nil {
			u.adopt = nil // what one configuration found out about a host is not what another one asks
		}
	}
	if t := c.table.Load(); t != nil {
		u.old = u.collect(c)
		for i := range t.Sets {
			u.changed = u.changed || t.Sets[i].Overprovisioning != a.overprovisioning || t.Sets[i].WeightedHealth != a.weightedHealth
		}
	}
	if c.opts.Type != Static {
		u.seen = make(map[network.Address]struct{})
	}
	return u
}

// collect returns the hosts of c by address and notes their indices.
func (u *update) collect(c *Cluster) map[network.Address]*host.Host {
	m := make(map[network.Address]*host.Host)
	c.eachHost(func(h *host.Host) {
		m[h.Address] = h
		for int(h.Index) >= len(u.used) {
			u.used = append(u.used, false)
		}
		u.used[h.Index] = true
	})
	return m
}

// locality takes the endpoints of one place in.
func (u *update) locality(l *locality) {
	for int(l.priority) >= len(u.prios) {
		u.prios = append(u.prios, nil)
		u.places = append(u.places, nil)
	}
	hosts := make([]*host.Host, 0, len(l.endpoints))
	for i := range l.endpoints {
		e := &l.endpoints[i]
		if u.seen != nil {
			if _, twice := u.seen[e.address]; twice {
				continue
			}
			u.seen[e.address] = struct{}{}
		}
		h := u.host(e)
		u.set(h, e, l)
		hosts = append(hosts, h)
	}
	if u.prios[l.priority] == nil {
		u.prios[l.priority] = hosts
	} else {
		u.prios[l.priority] = append(u.prios[l.priority], hosts...)
	}
	if u.byPlace() {
		u.places[l.priority] = append(u.places[l.priority], newLocalitySet(l.place, hosts, l.weight))
		u.changed = u.changed || !u.sameWeights(l)
	}
}

// byPlace tells whether somebody asks for the hosts by their place.
func (u *update) byPlace() bool {
	return u.c.opts.LB.LocalityWeighted || u.d.LocalCluster != "" && (u.c.opts.LB.Zoned || u.c.name == u.d.LocalCluster)
}

// sameWeights tells whether the place had this weight before.
func (u *update) sameWeights(l *locality) bool {
	t := u.c.table.Load()
	n := len(u.places[l.priority]) - 1
	return t != nil && int(l.priority) < len(t.Sets) && n < len(t.Sets[l.priority].Localities) &&
		t.Sets[l.priority].Localities[n].Weight == l.weight
}

func newLocalitySet(place *host.Locality, hosts []*host.Host, weight uint32) lb.LocalitySet {
	s := lb.NewHostSet(hosts)
	return lb.LocalitySet{Place: place, Weight: weight, Hosts: hosts, Healthy: s.Healthy, Degraded: s.Degraded}
}

// host returns the host of an endpoint: the one that there is, or a new one. Another hostname, or other addresses, make another host.
func (u *update) host(e *endpoint) *host.Host {
	is := func(h *host.Host) bool {
		return h.Hostname == e.hostname && !h.Has(host.Removed) && u.c.opts.Eyeballs.sameAddresses(h, e.extra) &&
			(u.c.checks == nil || sameCheck(h.Extra, e.extra))
	}
	if h, ok := u.old[e.address]; ok && is(h) {
		delete(u.old, e.address)
		return h
	}
	if h, ok := u.adopt[e.address]; ok && is(h) {
		delete(u.adopt, e.address)
		u.added++
		return h
	}
	h := host.New(e.address, e.hostname)
	h.Extra = e.extra
	if x := e.extra; x != nil && len(x.Addresses) > 0 {
		x.Addresses = u.c.opts.Eyeballs.order(x.Addresses)
	}
	h.Index = u.index()
	u.c.checks.mark(h)
	u.added++
	return h
}

// index takes the lowest index that no host has.
func (u *update) index() uint32 {
	for u.free < len(u.used) && u.used[u.free] {
		u.free++
	}
	if u.free == len(u.used) {
		u.used = append(u.used, true)
	}
	u.used[u.free] = true
	return uint32(u.free)
}

// set gives h what an update may change.
func (u *update) set(h *host.Host, e *endpoint, l *locality) {
	u.changed = u.changed || h.Weight() != max(e.weight, 1) || h.Priority() != l.priority
	h.SetWeight(e.weight)
	h.SetPriority(l.priority)
	if place := u.d.shared.place(l.place); h.Locality() != place {
		u.changed, u.moved = true, true
		h.SetLocality(place)
	}
	if e.metadata != nil || h.Metadata() != nil {
		// A comparison would cost more than the new value.
		h.SetMetadata(e.metadata)
		u.changed = true
	}
	if h.SetFlag(host.PendingDynamicRemoval, false) {
		u.changed = true
	}
	for _, f := range []host.Flag{host.FailedEDSHealth, host.EDSStatusDraining, host.DegradedEDSHealth} {
		if h.SetFlag(f, e.health&f != 0) {
			u.changed = true
		}
	}
}

// gone returns the hosts that are no more.
func (u *update) gone() map[*host.Host]bool {
	if len(u.old) == 0 {
		return nil
	}
	out := make(map[*host.Host]bool, len(u.old))
	for _, h := range u.old {
		out[h] = true
	}
	return out
}

func (u *update) sets() []lb.HostSet {
	sets := make([]lb.HostSet, max(len(u.prios), 1))
	for i := range sets {
		var hosts []*host.Host
		if i < len(u.prios) {
			hosts = u.prios[i]
		}
		sets[i] = lb.NewHostSet(hosts)
		sets[i].Overprovisioning, sets[i].WeightedHealth = u.a.overprovisioning, u.a.weightedHealth
		if i < len(u.places) {
			sets[i].Localities = u.places[i]
		}
	}
	return sets
}
