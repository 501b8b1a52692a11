package cluster

import (
	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// resourceGauges are the gauges of one breaker: is it open, and how much is left.
var resourceGauges = [...]struct {
	open [pool.NumPriorities]apistats.GaugeIndex
	left apistats.GaugeIndex
}{
	{[...]apistats.GaugeIndex{stats.ClusterCircuitBreakersDefaultCxOpen, stats.ClusterCircuitBreakersHighCxOpen}, stats.RemainingRemainingCx},
	{[...]apistats.GaugeIndex{stats.ClusterCircuitBreakersDefaultCxPoolOpen, stats.ClusterCircuitBreakersHighCxPoolOpen}, stats.RemainingRemainingCxPools},
	{[...]apistats.GaugeIndex{stats.ClusterCircuitBreakersDefaultRqPendingOpen, stats.ClusterCircuitBreakersHighRqPendingOpen}, stats.RemainingRemainingPending},
	{[...]apistats.GaugeIndex{stats.ClusterCircuitBreakersDefaultRqRetryOpen, stats.ClusterCircuitBreakersHighRqRetryOpen}, stats.RemainingRemainingRetries},
	{[...]apistats.GaugeIndex{stats.ClusterCircuitBreakersDefaultRqOpen, stats.ClusterCircuitBreakersHighRqOpen}, stats.RemainingRemainingRq},
}

// UpdateGauges sets the gauges of all breakers to what is true now. Workers do not touch them: call it before stats are shown or
// flushed. It costs little for clusters that were never used.
func (m *Manager) UpdateGauges() {
	m.each(func(g *generation) {
		for p := range pool.NumPriorities {
			if b := g.c.settings.Used(p); b != nil {
				g.c.breakerGauges(m.d, p, b)
			}
		}
	})
}

func (c *Cluster) breakerGauges(d *Deps, p pool.Priority, b *pool.Breakers) {
	// In the order of resourceGauges.
	count := [...]int64{b.Connections.Count(), b.Pools.Count(), b.Pending.Count(), b.Retries.Count(), b.Requests.Count()}
	limit := [...]int64{b.Connections.Max(), b.Pools.Max(), b.Pending.Max(), b.Retries.Max(d.Main.Now()), b.Requests.Max()}
	var left apistats.GroupBase
	if b.Limits().TrackRemaining {
		scope := c.breakerScope(d, p)
		left = scope.Group(stats.ClusterRemaining)
		scope.Release(stats.ClusterRemaining) // the hold that track took stays
	}
	for i := range resourceGauges {
		g := &resourceGauges[i]
		open := count[i] > 0 && count[i] >= limit[i]
		if bit := uint8(1) << i; open != (b.Shown&bit != 0) {
			b.Shown ^= bit
			d.Store.SetGauge(c.settings.Stats.Gauge(g.open[p]), uint64(b.Shown&bit)>>i)
		}
		if left != (apistats.GroupBase{}) {
			n := uint64(max(limit[i]-count[i], 0))
			if limit[i] == pool.Unlimited && g.left == stats.RemainingRemainingCxPools {
				n = 1<<64 - 1 // as Envoy prints it
			}
			d.Store.SetGauge(left.Gauge(g.left), n)
		}
	}
}

// hideGauges shows all breakers as closed: c's gauges are those of what takes its place.
func (c *Cluster) hideGauges(d *Deps) {
	for p := range pool.NumPriorities {
		b := c.settings.Used(p)
		if b == nil {
			continue
		}
		for i := range resourceGauges {
			if b.Shown>>i&1 != 0 {
				d.Store.SetGauge(c.settings.Stats.Gauge(resourceGauges[i].open[p]), 0)
			}
		}
		b.Shown = 0
	}
}

// track registers what not every cluster has: gauges of hashing, matches of transport sockets, and remaining_* with the breakers
// that they show.
func (c *Cluster) track(d *Deps) {
	if scope, t := c.hashScope(d); t != nil {
		scope.Group(t)
	}
	if t, ok := c.settings.Transport.(*transports); ok {
		for i := range t.matches {
			t.matches[i].stats = c.scope(d).Scope(t.matches[i].name).Group(matchStats)
		}
	}
	for p := range pool.NumPriorities {
		if c.settings.Limits[p].TrackRemaining {
			c.breakerScope(d, p).Group(stats.ClusterRemaining)
			c.breakerGauges(d, p, c.settings.Breakers(p))
		}
	}
}

// The gauges of consistent hashing, "cluster.NAME.ring_hash_lb." and "maglev_lb.".
const (
	hashMin apistats.GaugeIndex = iota
	hashMax
	hashSize
)

var (
	ringStats = apistats.MustTemplate("ring hash lb", apistats.Gauge(hashMin, "min_hashes_per_host"),
		apistats.Gauge(hashMax, "max_hashes_per_host"), apistats.Gauge(hashSize, "size"))
	maglevStats = apistats.MustTemplate("maglev lb", apistats.Gauge(hashMin, "min_entries_per_host"),
		apistats.Gauge(hashMax, "max_entries_per_host"))
)

// hashScope returns where the gauges of consistent hashing are; a nil template if there are none.
func (c *Cluster) hashScope(d *Deps) (apistats.Scope, *apistats.Template) {
	switch c.opts.LB.Policy.(type) {
	case lb.RingHash:
		return c.scope(d).Scope("ring_hash_lb"), ringStats
	case lb.Maglev:
		return c.scope(d).Scope("maglev_lb"), maglevStats
	}
	return nil, nil
}

// hashGauges shows how the hosts share the table. It does not need the table.
func (c *Cluster) hashGauges(d *Deps) {
	scope, t := c.hashScope(d)
	if t == nil {
		return
	}
	base := scope.Group(t)
	scope.Release(t) // the hold that track took stays
	table := c.table.Load()
	for i := range table.Sets {
		n := c.opts.LB.Policy.(lb.Counter).Counts(&table.Sets[i], c.opts.LB.LocalityWeighted, table.InPanic(i))
		d.Store.SetGauge(base.Gauge(hashMin), n.Min)
		d.Store.SetGauge(base.Gauge(hashMax), n.Max)
		if t == ringStats {
			d.Store.SetGauge(base.Gauge(hashSize), n.Size)
		}
	}
}

// release gives all stats of c up.
func (c *Cluster) release(d *Deps) {
	if scope, t := c.hashScope(d); t != nil {
		scope.Release(t)
	}
	if t, ok := c.settings.Transport.(*transports); ok {
		for i := range t.matches {
			c.scope(d).Scope(t.matches[i].name).Release(matchStats)
		}
	}
	closeTransport(c.settings.Transport)
	if c.checks != nil {
		c.checkScope(d).Release(stats.HealthCheck)
	}
	for p := range pool.NumPriorities {
		if c.settings.Limits[p].TrackRemaining {
			c.breakerScope(d, p).Release(stats.ClusterRemaining)
		}
	}
	c.scope(d).Release(stats.Cluster)
}

func (c *Cluster) breakerScope(d *Deps, p pool.Priority) apistats.Scope {
	return c.scope(d).Scope("circuit_breakers").Scope(p.String())
}
