package cluster

import (
	"errors"
	"io"
	"weak"

	"github.com/cespare/xxhash/v2"

	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

// Manager owns all clusters. owner: main loop, except Lookup.
type Manager struct {
	d     *Deps
	index *index
	// unbound are the slots that somebody may hold although there is no cluster of that name.
	unbound map[string]weak.Pointer[Slot]
	pruneAt int
	stats   apistats.GroupBase
	count   int
	// maintained are the clusters that have a runtime key for maintenance mode.
	maintained []string

	// slots are those whose cluster warms up, and what is to be done when there are none.
	slots    map[string]*Slot
	early    int // of them, those that serve already
	whenWarm []func()
	// first are the sources of clusters that were added before Start and need no other cluster, second those of the rest. primaries
	// counts those of the first that are not warm yet, and primary says that the second have begun.
	first, second []func()
	primaries     int
	primary       bool
	started       bool

	// OnPrimary is called when the clusters of the bootstrap that need no others are warm: it calls begin, now or later, to let the
	// others begin. OnWarming tells how many clusters warm up, when that may have changed. nil: nobody.
	OnPrimary func(begin func())
	OnWarming func(warming int)

	alt altNames
}

// NewManager returns a Manager without clusters.
func NewManager(d *Deps) *Manager {
	m := &Manager{d: d, index: newIndex(), unbound: make(map[string]weak.Pointer[Slot]), slots: make(map[string]*Slot),
		stats: d.Store.Root().Scope("cluster_manager").Group(stats.ClusterManager)}
	if d.LocalCluster != "" {
		d.published = m.hostsPublished
	}
	return m
}

// Slot returns the slot of a name, which may have no cluster yet.
func (m *Manager) Slot(name string) *Slot {
	s := m.slot(name)
	if s.last() == nil {
		m.unbind(s)
	}
	return s
}

// slot is Slot for one that will have a cluster at once.
func (m *Manager) slot(name string) *Slot {
	if s := m.index.find(name); s != nil {
		return s
	}
	if p, ok := m.unbound[name]; ok {
		if s := p.Value(); s != nil {
			return s
		}
	}
	if s := m.slots[name]; s != nil {
		return s
	}
	return &Slot{name: name}
}

// unbind keeps s findable as long as somebody holds it.
func (m *Manager) unbind(s *Slot) {
	if len(m.unbound) >= m.pruneAt {
		for name, p := range m.unbound {
			if p.Value() == nil {
				delete(m.unbound, name)
			}
		}
		m.pruneAt = max(64, 2*len(m.unbound))
	}
	m.unbound[s.name] = weak.Make(s)
}

// Lookup returns the slot of an existing cluster, nil if there is none. Safe from any thread.
func (m *Manager) Lookup(name string) *Slot { return m.index.find(name) }

// Primary tells whether there is a cluster of the bootstrap of that name that needs no other cluster to find its hosts: a control plane
// may stand behind it.
func (m *Manager) Primary(name string) bool {
	s := m.index.find(name)
	return s != nil && s.active != nil && !s.active.api && (s.active.c.source == nil || s.active.c.source.primary())
}

// Len returns how many clusters there are, warming new ones not included.
func (m *Manager) Len() int { return m.count }

// generation is one configuration of a cluster, with what the main loop alone must know of it.
type generation struct {
	c       *Cluster
	hash    uint64
	version string
	updated int64 // ns since 1970
	api     bool
	primary bool   // the others of the bootstrap wait for it
	raw     []byte // the configuration of a cluster that came by the API, serialized
}

// AddStatic takes a cluster of the bootstrap.
func (m *Manager) AddStatic(cfg *clusterv3.Cluster) error {
	s := m.slot(cfg.GetName())
	if s.last() != nil {
		_, err := build(cfg, m.d, nil)
		var errs config.Errors
		errs.Collect("name", errors.New("cluster manager: duplicate cluster '"+cfg.GetName()+"'"))
		errs.Collect("", err)
		return errs.Err()
	}
	g, err := m.prepare(cfg, "", false)
	if err != nil {
		return err
	}
	if g.c, err = build(cfg, m.d, nil); err != nil {
		return err
	}
	m.inc(stats.ClusterManagerClusterAdded)
	m.begin(s, g)
	return nil
}

// Update adds or replaces a cluster that came by the API (CDS). changed is false if it is the same as before. The old one serves
// until the new one is warm. A cluster of the bootstrap cannot be replaced.
func (m *Manager) Update(cfg *clusterv3.Cluster, version string) (changed bool, err error) {
	s := m.slot(cfg.GetName())
	if s.active != nil && !s.active.api {
		return false, nil
	}
	return m.update(s, cfg, version, true)
}

// UpdateStatic is Update for a cluster of the bootstrap, when that is read anew. One that came by the API is in its way.
func (m *Manager) UpdateStatic(cfg *clusterv3.Cluster) (changed bool, err error) {
	s := m.slot(cfg.GetName())
	if last := s.last(); last != nil && last.api {
		return false, rejected("name", "cluster manager: a cluster '"+cfg.GetName()+"' came by the API")
	}
	return m.update(s, cfg, "", false)
}

func (m *Manager) update(s *Slot, cfg *clusterv3.Cluster, version string, api bool) (changed bool, err error) {
	g, err := m.prepare(cfg, version, api)
	if err != nil {
		return false, err
	}
	if last := s.last(); last != nil && last.hash == g.hash {
		last.version = version
		return false, nil
	}
	var prev *Cluster
	if s.active != nil {
		prev = s.active.c
	}
	if g.c, err = build(cfg, m.d, prev); err != nil {
		return false, err
	}
	if s.active == nil && s.warming == nil {
		m.inc(stats.ClusterManagerClusterAdded)
	} else {
		m.inc(stats.ClusterManagerClusterModified)
	}
	m.begin(s, g)
	return true, nil
}

// Remove takes a cluster of the API away and tells whether there was one. Streams to it go on.
func (m *Manager) Remove(name string) bool { return m.remove(name, true) }

// RemoveStatic is Remove for a cluster of the bootstrap, when that is read anew.
func (m *Manager) RemoveStatic(name string) bool { return m.remove(name, false) }

func (m *Manager) remove(name string, api bool) bool {
	s := m.slot(name)
	if s.last() == nil || s.last().api != api {
		return false
	}
	m.inc(stats.ClusterManagerClusterRemoved)
	m.stopWarming(s)
	if s.active != nil {
		s.cluster.Store(nil)
		m.retire(s.active, nil)
		m.dropAlt(s.active.c)
		s.active = nil
		m.count--
		m.index.remove(s)
		m.unbind(s)
		if name == m.d.LocalCluster {
			m.rezone()
		}
	}
	m.gauges()
	m.checkWarm()
	return true
}

func (m *Manager) prepare(cfg *clusterv3.Cluster, version string, api bool) (*generation, error) {
	raw, err := fingerprint(cfg)
	if err != nil {
		return nil, rejected("", err.Error())
	}
	g := &generation{hash: xxhash.Sum64(raw), version: version, updated: m.d.Main.Wall(), api: api}
	if api {
		g.raw = raw
	}
	return g, nil
}

// Close ends the search for hosts of all clusters, and the resolver. Clusters stay as they are: their connections end with the
// workers.
func (m *Manager) Close() {
	m.each(func(g *generation) { g.c.stop() })
	for _, s := range m.slots {
		s.warming.c.stop()
	}
	if c, ok := m.d.Resolver.(io.Closer); ok {
		_ = c.Close()
	}
	for _, r := range m.d.resolvers {
		if c, ok := r.(io.Closer); ok {
			_ = c.Close()
		}
	}
}
