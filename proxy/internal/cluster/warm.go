package cluster

import (
	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// begin starts a generation: at once if it has its hosts, otherwise when it is warm. The old one serves meanwhile.
func (m *Manager) begin(s *Slot, g *generation) {
	m.stopWarming(s)
	if g.c.source == nil && g.c.checks == nil {
		m.activate(s, g)
		m.checkWarm()
		return
	}
	s.warming = g
	m.slots[s.name] = s
	// Clusters of the bootstrap are there at once, as in Envoy: workers begin when all of them are warm.
	if s.active == nil && (g.c.opts.NoWarm || !g.api) {
		m.early++
		m.activate(s, g)
	}
	m.gauges()
	start := func() {
		if s.warming == g {
			g.c.start(func() { m.warmed(s, g) })
		}
	}
	switch {
	case m.started:
		start()
	case g.c.source == nil || g.c.source.primary():
		g.primary = true
		m.primaries++
		m.first = append(m.first, start)
	default:
		m.second = append(m.second, start)
	}
}

// Start begins to look for the hosts of the clusters that were added so far. Those that need others wait until those that do not are
// warm.
func (m *Manager) Start() {
	m.started = true
	first := m.first
	m.first = nil
	m.primaries++
	for _, f := range first {
		f()
	}
	m.primaryDone()
}

// primaryDone notes that one of the clusters that need no other is warm, or will not be.
func (m *Manager) primaryDone() {
	if m.primaries--; m.primaries > 0 {
		return
	}
	if m.OnPrimary != nil {
		m.OnPrimary(m.startSecond)
		return
	}
	m.startSecond()
}

// startSecond begins to look for the hosts of the clusters that need others.
func (m *Manager) startSecond() {
	second := m.second
	m.second = nil
	for _, f := range second {
		f()
	}
	m.primary = true
	m.checkWarm()
}

// WhenWarm calls f as soon as no cluster is warming, at once if that is so now. Listeners wait for it.
func (m *Manager) WhenWarm(f func()) {
	m.whenWarm = append(m.whenWarm, f)
	m.checkWarm()
}

// Warming returns how many clusters are warming and do not serve yet.
func (m *Manager) Warming() int { return len(m.slots) - m.early }

func (m *Manager) checkWarm() {
	for m.primary && len(m.slots) == 0 && len(m.whenWarm) > 0 {
		f := m.whenWarm[0]
		m.whenWarm = m.whenWarm[1:]
		f()
	}
}

// warmed is the source's call.
func (m *Manager) warmed(s *Slot, g *generation) {
	if s.warming != g {
		return
	}
	s.warming = nil
	delete(m.slots, s.name)
	if s.active == g {
		m.early--
	} else {
		m.activate(s, g)
	}
	m.gauges()
	m.checkWarm()
	if g.primary {
		g.primary = false
		m.primaryDone()
	}
}

// activate shows a generation to the workers.
func (m *Manager) activate(s *Slot, g *generation) {
	old := s.active
	s.active = g
	g.c.prev = nil
	s.cluster.Store(g.c)
	if old != nil {
		m.retire(old, g.c)
		g.c.gauges(m.d)
	} else {
		m.count++
		delete(m.unbound, s.name)
		m.index.add(s)
		m.gauges()
	}
	if s.name == m.d.LocalCluster {
		m.rezone()
	}
}

// retire lets a generation go: its connections end with their streams. Hosts that next has too are not gone.
func (m *Manager) retire(g *generation, next *Cluster) {
	c := g.c
	c.stop()
	stay := make(map[*host.Host]bool)
	if next != nil {
		next.eachHost(func(h *host.Host) { stay[h] = true })
	}
	c.eachHost(func(h *host.Host) {
		if !stay[h] {
			h.SetFlag(host.Removed, true)
		}
	})
	c.settings.Retire()
	c.hideGauges(m.d)
	c.eachLocal(m.d, func(_ *event.Worker, l *local) { l.drainAll() })
	c.release(m.d)
}

// stopWarming gives up a generation that was not warm yet.
func (m *Manager) stopWarming(s *Slot) {
	g := s.warming
	if g == nil {
		return
	}
	s.warming = nil
	delete(m.slots, s.name)
	if g.primary {
		g.primary = false
		defer m.primaryDone()
	}
	if s.active == g {
		m.early--
		return // it serves without being warm (wait_for_warm_on_init: false)
	}
	g.c.stop()
	g.c.release(m.d)
	if s.active == nil {
		m.unbind(s)
	}
}

func (m *Manager) inc(i apistats.CounterIndex) { m.d.Store.Main().Inc(m.stats.Counter(i)) }

func (m *Manager) gauges() {
	m.d.Store.SetGauge(m.stats.Gauge(stats.ClusterManagerActiveClusters), uint64(m.count))
	m.d.Store.SetGauge(m.stats.Gauge(stats.ClusterManagerWarmingClusters), uint64(m.Warming()))
	if m.OnWarming != nil {
		m.OnWarming(len(m.slots))
	}
}
