package cluster

import (
	"slices"

	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// zoned tells whether c heeds zones. The local cluster itself does not.
func (c *Cluster) zoned(d *Deps) bool {
	return d.LocalCluster != "" && c.opts.LB.Zoned && c.name != d.LocalCluster
}

// newTable builds a table of sets, with zones if the proxy knows of others like it.
func (c *Cluster) newTable(d *Deps, sets []lb.HostSet) *lb.Table {
	if !c.zoned(d) || d.near == nil {
		return lb.NewTable(&c.opts.LB, sets, nil)
	}
	t := lb.NewTable(&c.opts.LB, sets, d.near)
	count := func(of apistats.CounterIndex) { // each of Envoy's threads does this for itself
		d.Store.Main().Add(c.settings.Stats.Counter(of), uint64(len(d.Workers)+1))
	}
	count(stats.ClusterLbRecalculateZoneStructures)
	switch t.Zone {
	case lb.ZoneTooSmall:
		count(stats.ClusterLbZoneClusterTooSmall)
	case lb.ZoneNotHere:
		count(stats.ClusterLbLocalClusterNotOk)
	}
	return t
}

// hostsPublished takes note of the local cluster's hosts, which the shares of zones depend on.
func (m *Manager) hostsPublished(c *Cluster) {
	if s := m.index.find(m.d.LocalCluster); s != nil && s.Load() == c {
		m.rezone()
	}
}

// rezone works the zones of all clusters out anew.
func (m *Manager) rezone() {
	s := m.index.find(m.d.LocalCluster)
	if s == nil || s.Load() == nil {
		m.d.near = nil
	} else {
		m.d.near = &lb.Near{Here: m.d.Here, Local: &s.Load().table.Load().Sets[0], MinSize: -1, Enabled: -1}
		if r := m.d.Runtime; r != nil {
			m.d.near.MinSize, m.d.near.Enabled = zoneRuntime(r)
		}
	}
	again := func(c *Cluster) {
		if c.zoned(m.d) {
			c.table.Store(c.newTable(m.d, slices.Clone(c.table.Load().Sets)))
		}
	}
	m.each(func(g *generation) { again(g.c) })
	for _, s := range m.slots {
		if s.warming != s.active {
			again(s.warming.c)
		}
	}
}

// zoneRuntime reads the runtime keys of zone aware routing, -1 for those that are not set.
func zoneRuntime(r Runtime) (minSize, enabled int64) {
	read := func(key string) int64 {
		const unset = 1 << 62
		if n := r.Uint(key, unset); n < unset {
			return int64(n)
		}
		return -1
	}
	return read("upstream.zone_routing.min_cluster_size"), read("upstream.zone_routing.enabled")
}

// zonesChanged takes over what the runtime keys of zone aware routing say now.
func (m *Manager) zonesChanged() {
	if n := m.d.near; n != nil && m.d.Runtime != nil {
		if size, enabled := zoneRuntime(m.d.Runtime); size != n.MinSize || enabled != n.Enabled {
			m.rezone()
		}
	}
}
