package lb

import (
	"slices"
	"unsafe"

	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
)

// HostSet is the hosts of one priority, and of them those that are healthy and degraded. Order is the configuration's.
type HostSet struct {
	Hosts, Healthy, Degraded []*host.Host
	// Excluded counts hosts that do not count when availability is computed.
	Excluded int
	// Localities are the same hosts by place, with the weights of locality weighted balancing; nil if nobody asks for them: neither that nor
	// zone aware routing.
	Localities []LocalitySet
	// Overprovisioning is the factor in percent, 140 by default; WeightedHealth weighs hosts when availability is computed.
	Overprovisioning uint32
	WeightedHealth   bool
}

// LocalitySet is the hosts of one place.
type LocalitySet struct {
	// Place is where the hosts are; nil: nobody said so.
	Place                    *host.Locality
	Weight                   uint32
	Hosts, Healthy, Degraded []*host.Host
}

// NewHostSet sorts hosts into a HostSet by their health now. It keeps hosts.
func NewHostSet(hosts []*host.Host) HostSet {
	s := HostSet{Hosts: hosts, Overprovisioning: DefaultOverprovisioning}
	healthy := 0
	for _, h := range hosts {
		if h.Health() == host.Healthy {
			healthy++
		}
		if h.Excluded() {
			s.Excluded++
		}
	}
	if healthy == len(hosts) {
		s.Healthy = hosts
		return s
	}
	s.Healthy = make([]*host.Host, 0, healthy)
	for _, h := range hosts {
		switch h.Health() {
		case host.Healthy:
			s.Healthy = append(s.Healthy, h)
		case host.Degraded:
			s.Degraded = append(s.Degraded, h)
		}
	}
	return s
}

// The defaults of a cluster.
const (
	DefaultOverprovisioning = 140
	DefaultPanicThreshold   = 50
)

// Loads is the share of traffic of each priority in percent: to its healthy hosts, and to its degraded ones. All shares sum up
// to 100.
type Loads struct{ Healthy, Degraded []uint32 }

// Options say how a Table is built.
type Options struct {
	Policy Policy
	// PanicThreshold in percent: below it all hosts are used. 0 turns panic off.
	PanicThreshold float64
	// FailOnPanic picks nothing in panic.
	FailOnPanic bool
	// LocalityWeighted picks a locality by weight first.
	LocalityWeighted bool
	// Zoned tells that the policy heeds zones; Zones says how.
	Zoned bool
	Zones Zones
}

// Table says which hosts get which share of the traffic. It is immutable.
type Table struct {
	// Sets are the hosts of each priority.
	Sets []HostSet
	// Loads is the share of each priority.
	Loads Loads
	// Zone is why there is no zone aware routing.
	Zone ZoneState

	// only is set if there is just one list to choose from, the common case.
	only   Balancer
	prios  []priority
	states int
	fail   bool
	peeks  bool
}

// priority is what a pick needs of one priority.
type priority struct {
	panic                  bool
	all, healthy, degraded Balancer
	// byHealthy and byDegraded choose a locality first, if set.
	byHealthy, byDegraded *localities
	// zones chooses by place otherwise, if set.
	zones *zones
}

// Outcome says what a pick met that must be counted.
type Outcome uint8

// Outcomes of a pick.
const (
	Normal Outcome = iota
	// Panic: too few healthy hosts, all were used (or none, with FailOnPanic).
	Panic
	// ZoneDirect, ZoneSampled: zone aware routing chose the own place, which all requests go to, or a share of them. ZoneCross chose
	// another one, ZoneNoCapacity any. LocalNotOK: it did not choose, for too few proxies are healthy.
	ZoneDirect
	ZoneSampled
	ZoneCross
	ZoneNoCapacity
	LocalNotOK
)

// single is a Table of one priority, which most are, in one object: one of a cluster that changes among thousands that do not would leave
// each of its parts on a page of the heap of its own.
type single struct {
	t     Table
	set   [1]HostSet
	loads [2]uint32
}

// SingleSize is what a Table of one priority takes of the heap, in bytes, without its balancer.
const SingleSize = unsafe.Sizeof(single{})

// NewTable builds a Table. sets is kept, unless there is one. near is for zone aware routing; nil: there is none.
func NewTable(o *Options, sets []HostSet, near *Near) *Table {
	var t *Table
	if len(sets) == 1 {
		one := &single{set: [1]HostSet(sets)}
		t, sets = &one.t, one.set[:]
		t.Loads = Loads{Healthy: one.loads[:1:1], Degraded: one.loads[1:]}
	} else {
		n := len(sets)
		both := make([]uint32, 2*n)
		t = &Table{Loads: Loads{Healthy: both[:n:n], Degraded: both[n:]}}
	}
	t.Sets, t.fail, t.peeks = sets, o.FailOnPanic, canPeek(o.Policy)
	if len(sets) == 0 {
		return t
	}
	panics := t.share(o)
	var z *zones
	if near != nil && o.Zoned {
		z = t.zoned(o, &sets[0], near)
	}
	if z == nil && len(sets) == 1 && !panics[0] && t.Loads.Healthy[0] == 100 && !o.LocalityWeighted {
		t.only = t.build(o, sets[0].Healthy)
		return t
	}
	t.prios = make([]priority, len(sets))
	for i := range sets {
		t.prios[i] = t.priority(o, &sets[i], panics[i])
	}
	t.prios[0].zones = z
	return t
}

func (t *Table) build(o *Options, hosts []*host.Host) Balancer {
	if len(hosts) == 0 {
		return none{}
	}
	t.states++
	return o.Policy.Build(hosts, t.states-1)
}

func (t *Table) priority(o *Options, s *HostSet, inPanic bool) (p priority) {
	p.panic = inPanic
	if shared, ok := o.Policy.(sharer); ok && o.LocalityWeighted {
		return t.sharedPriority(o, shared, s, inPanic)
	}
	if inPanic {
		p.all = t.build(o, s.Hosts)
		return p
	}
	if o.LocalityWeighted && len(s.Localities) > 0 {
		p.byHealthy = t.localities(o, s, func(l *LocalitySet) []*host.Host { return l.Healthy })
		p.byDegraded = t.localities(o, s, func(l *LocalitySet) []*host.Host { return l.Degraded })
	}
	p.healthy = t.build(o, s.Healthy)
	p.degraded = t.build(o, s.Degraded)
	return p
}

// sharedPriority is priority for a policy that weighs places by the shares of their hosts.
func (t *Table) sharedPriority(o *Options, by sharer, s *HostSet, inPanic bool) (p priority) {
	build := func(which func(*LocalitySet) []*host.Host) Balancer {
		list, shares := s.byPlace(which)
		if len(list) == 0 {
			return none{}
		}
		return by.buildShared(list, shares)
	}
	if p.panic = inPanic; inPanic {
		p.all = build(func(l *LocalitySet) []*host.Host { return l.Hosts })
		return p
	}
	p.healthy = build(func(l *LocalitySet) []*host.Host { return l.Healthy })
	p.degraded = build(func(l *LocalitySet) []*host.Host { return l.Degraded })
	return p
}

// InPanic tells whether all hosts of the priority are used, whatever their health.
func (t *Table) InPanic(priority int) bool { return priority < len(t.prios) && t.prios[priority].panic }

// Pick chooses a host. nil means that there is none to be used.
func (t *Table) Pick(l *Local, c *Context) (*host.Host, Outcome) {
	if l.table != t {
		l.bind(t)
	}
	c.local = l
	if len(l.ahead) > 0 {
		if h, o := l.next(); !c.avoid(h) {
			return h, o
		}
	}
	if t.only != nil && len(c.Exclude) == 0 && c.Reject == nil {
		return t.only.Pick(c), Normal
	}
	return t.pickSlow(c)
}

func (t *Table) pickSlow(c *Context) (*host.Host, Outcome) {
	for c.attempt = 0; ; c.attempt++ {
		h, o := t.pickOnce(c)
		if h == nil || c.attempt >= c.Attempts || !c.avoid(h) {
			c.attempt = 0
			return h, o
		}
	}
}

func (t *Table) pickOnce(c *Context) (*host.Host, Outcome) {
	if t.only != nil {
		return t.only.Pick(c), Normal
	}
	if len(t.prios) == 0 {
		return nil, Normal
	}
	i, degraded := t.choose(c)
	p := &t.prios[i]
	switch {
	case p.panic && t.fail:
		return nil, Panic
	case p.panic:
		return p.all.Pick(c), Panic
	case degraded && p.byDegraded != nil:
		return p.byDegraded.pick(c), Normal
	case !degraded && p.byHealthy != nil:
		return p.byHealthy.pick(c), Normal
	}
	o := Normal
	if p.zones != nil {
		var h *host.Host
		var ok bool
		if h, o, ok = p.zones.pick(c, degraded); ok {
			return h, o
		}
	}
	if degraded {
		return p.degraded.Pick(c), o
	}
	return p.healthy.Pick(c), o
}

// choose picks a priority by its share of the load.
func (t *Table) choose(c *Context) (i int, degraded bool) {
	loads := &t.Loads
	if c.Loads != nil && len(c.Loads.Healthy) == len(t.prios) && len(c.Loads.Degraded) == len(t.prios) {
		loads = c.Loads
	}
	var n uint32
	if c.HasHash {
		n = uint32(c.Hash%100) + 1
	} else {
		n = uint32(c.W.Rand.IntN(100)) + 1
	}
	sum := uint32(0)
	for i, l := range loads.Healthy {
		if sum += l; n <= sum {
			return i, false
		}
	}
	for i, l := range loads.Degraded {
		if sum += l; n <= sum {
			return i, true
		}
	}
	return 0, false
}

// share computes Loads and which priorities are in panic, as Envoy does: each priority takes as much of the traffic as its
// healthy hosts, times the overprovisioning factor, can bear; the rest spills over to the next one, then to degraded hosts.
func (t *Table) share(o *Options) (panics []bool) {
	n := len(t.Sets)
	panics = make([]bool, n)
	avail := make([]uint32, 2*n)
	healthy, degraded := avail[:n:n], avail[n:]
	total := uint32(0)
	for i := range t.Sets {
		healthy[i], degraded[i] = t.Sets[i].availability()
		total = min(100, total+healthy[i]+degraded[i])
	}
	if total > 0 {
		firstHealthy, rest := distribute(t.Loads.Healthy, healthy, 100, total)
		firstDegraded, rest := distribute(t.Loads.Degraded, degraded, rest, total)
		switch { // what is left is a rounding error
		case firstHealthy >= 0:
			t.Loads.Healthy[firstHealthy] += rest
		case firstDegraded >= 0:
			t.Loads.Degraded[firstDegraded] += rest
		}
	}
	if o.PanicThreshold == 0 && total == 0 {
		t.Loads.Healthy[0] = 100
		return panics
	}
	if total == 100 {
		return panics
	}
	for i := range t.Sets {
		panics[i] = t.Sets[i].percentUsable() < min(o.PanicThreshold, 100)
	}
	if !slices.Contains(panics, false) {
		t.shareInPanic()
	}
	return panics
}

// distribute gives each priority as much of load as it can bear.
func distribute(loads, avail []uint32, load, total uint32) (first int, rest uint32) {
	first = -1
	for i, a := range avail {
		if first < 0 && a > 0 {
			first = i
		}
		loads[i] = min(load, a*100/total)
		load -= loads[i]
	}
	return first, load
}

// shareInPanic shares by the number of hosts: no priority has enough healthy ones.
func (t *Table) shareInPanic() {
	total := 0
	for i := range t.Sets {
		total += len(t.Sets[i].Hosts)
	}
	clear(t.Loads.Healthy)
	clear(t.Loads.Degraded)
	if total == 0 {
		t.Loads.Healthy[0] = 100
		return
	}
	rest, first := uint32(100), -1
	for i := range t.Sets {
		n := len(t.Sets[i].Hosts)
		if n > 0 && first < 0 {
			first = i
		}
		t.Loads.Healthy[i] = uint32(100 * n / total)
		rest -= t.Loads.Healthy[i]
	}
	t.Loads.Healthy[first] += rest
}

// availability returns how much of the traffic in percent the healthy, and the degraded hosts can bear.
func (s *HostSet) availability() (healthy, degraded uint32) {
	total := uint64(len(s.Hosts) - s.Excluded)
	if total == 0 {
		return 0, 0
	}
	good, fair := uint64(len(s.Healthy)), uint64(len(s.Degraded))
	if s.WeightedHealth {
		good, fair, total = weights(s.Healthy), weights(s.Degraded), 0
		for _, h := range s.Hosts {
			if !h.Excluded() {
				total += uint64(h.Weight())
			}
		}
	}
	f := uint64(s.Overprovisioning)
	return uint32(min(100, f*good/total)), uint32(min(100, f*fair/total))
}

// percentUsable is what the panic threshold is compared with.
func (s *HostSet) percentUsable() float64 {
	total := len(s.Hosts) - s.Excluded
	if total == 0 {
		return 0
	}
	return 100 * float64(len(s.Healthy)+len(s.Degraded)) / float64(total)
}

func weights(hosts []*host.Host) (sum uint64) {
	for _, h := range hosts {
		sum += uint64(h.Weight())
	}
	return sum
}

// none is the balancer of no hosts.
type none struct{}

func (none) Pick(*Context) *host.Host { return nil }
