package cluster

import (
	"maps"
	"sync/atomic"

	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// MaxAltNames bounds the names that x-envoy-upstream-alt-stat-name brings in, over all clusters: requests of further ones count in
// their cluster only. MaxAltNameBytes bounds one of them.
const (
	MaxAltNames     = 1024
	MaxAltNameBytes = 256
)

// altNames are the statistics that requests have asked for by name (stats.ClusterAlt). Workers read it, the main loop alone adds to it.
type altNames struct {
	known atomic.Pointer[map[altName]apistats.GroupBase]
}

type altName struct{ cluster, name string }

// AltCount is one thing to be counted under an alternative name: a code, or with Time how long an answer took.
type AltCount struct {
	Code             int
	Ms               uint64
	Time             bool
	Internal, Canary bool
}

// CountAlt counts x in a cluster under a name that a request has brought. owner: w.
func (m *Manager) CountAlt(w *event.Worker, c *Cluster, name string, x AltCount) {
	key := altName{c.ObservabilityName(), name}
	known := m.alt.known.Load()
	if known != nil {
		if g, ok := (*known)[key]; ok {
			x.count(w.Stats, g)
			return
		}
		if len(*known) >= MaxAltNames {
			return
		}
	}
	if len(name) > MaxAltNameBytes {
		return
	}
	m.countNewAlt(key, x)
}

// countNewAlt lets the main loop count what it has to name first. The key may be a view of a stream's memory.
func (m *Manager) countNewAlt(key altName, x AltCount) {
	key.name = string(append([]byte(nil), key.name...))
	m.d.Main.Post(func() {
		if g, ok := m.addAlt(key); ok {
			x.count(m.d.Store.Main(), g)
		}
	})
}

// addAlt names the statistics of key, unless they have been meanwhile. owner: main loop.
func (m *Manager) addAlt(key altName) (g apistats.GroupBase, ok bool) {
	var old map[altName]apistats.GroupBase
	if p := m.alt.known.Load(); p != nil {
		old = *p
	}
	if g, ok = old[key]; ok || len(old) >= MaxAltNames {
		return g, ok
	}
	next := make(map[altName]apistats.GroupBase, len(old)+1)
	maps.Copy(next, old)
	g = m.altScope(key).Group(stats.ClusterAlt)
	next[key] = g
	m.alt.known.Store(&next)
	return g, true
}

func (m *Manager) altScope(key altName) apistats.Scope {
	name := key.name
	if name == "" {
		name = "." // as Envoy has it: "cluster.c..upstream_rq_200"
	}
	return m.d.Store.Root().Scope("cluster").Scope(key.cluster).Scope(name)
}

// dropAlt forgets the names of a cluster that is gone. owner: main loop.
func (m *Manager) dropAlt(c *Cluster) {
	p := m.alt.known.Load()
	if p == nil {
		return
	}
	next := maps.Clone(*p)
	maps.DeleteFunc(next, func(key altName, _ apistats.GroupBase) bool {
		if key.cluster != c.ObservabilityName() {
			return false
		}
		m.altScope(key).Release(stats.ClusterAlt)
		return true
	})
	m.alt.known.Store(&next)
}

func (x *AltCount) count(s *stats.Shard, g apistats.GroupBase) {
	side := stats.ClusterAltExternal
	if x.Internal {
		side = stats.ClusterAltInternal
	}
	blocks := [...]apistats.BlockIndex{side, stats.ClusterAltCanary}
	n := 1
	if x.Canary {
		n = 2
	}
	if x.Time {
		s.Record(g.Histogram(stats.ClusterAltUpstreamRqTime), x.Ms)
		for _, b := range blocks[:n] {
			s.Record(stats.ClusterAlt.Block(g, b).Histogram(stats.ClusterCodesUpstreamRqTime), x.Ms)
		}
		return
	}
	s.Inc(g.Counter(stats.ClusterAltUpstreamRqCompleted))
	s.IncCode(g.Codes(stats.ClusterAltUpstreamRq), x.Code)
	for _, b := range blocks[:n] {
		at := stats.ClusterAlt.Block(g, b)
		s.Inc(at.Counter(stats.ClusterCodesUpstreamRqCompleted))
		s.IncCode(at.Codes(stats.ClusterCodesUpstreamRq), x.Code)
	}
}
