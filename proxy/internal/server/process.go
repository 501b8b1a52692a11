package server

import (
	"runtime/metrics"
	"time"

	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/internal/invariant"
	"github.com/dragoman-proxy/dragoman/internal/version"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// defaultFlush is stats_flush_interval where it is not set.
const defaultFlush = 5 * time.Second

// process is what the server counts of itself, and the regular flush of all stats. owner: main loop.
type process struct {
	group     astats.GroupBase // stats.Server
	listeners astats.GroupBase // stats.ListenerManager
	watch     watchdog
	// interval is that of flushes; onAdmin: there is no interval, asking for a page flushes (stats_flush_on_admin).
	interval time.Duration
	onAdmin  bool
	timer    event.Timer
	flushed  func() // for tests
	epoch    time.Time
	bugs     uint64
	lookups  bool
	metrics  []metrics.Sample
}

// buildProcess registers what every proxy has, used or not.
func (s *Server) buildProcess() {
	p := &s.process
	root := s.store.Root()
	p.group = root.Scope("server").Group(stats.Server)
	p.listeners = root.Scope("listener_manager").Group(stats.ListenerManager)
	root.Scope("http.async-client").Group(stats.Router)
	root.Group(stats.Overload)
	for _, w := range append([]*event.Worker{s.main}, s.workers...) {
		root.Scope("thread_local_cluster_manager").Scope(w.Name).Group(stats.ThreadClusters)
	}
	p.watch.build(s)
	p.interval, p.onAdmin = defaultFlush, s.boot.GetStatsFlushOnAdmin()
	if d := s.boot.GetStatsFlushInterval(); d != nil {
		p.interval = d.AsDuration()
	}
	p.epoch = s.started
	p.bugs = invariant.Count()
	p.metrics = []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/total:bytes"}}
	s.gauge(stats.ServerConcurrency, uint64(len(s.workers)))
	s.gauge(stats.ServerHotRestartEpoch, uint64(s.cfg.Options.RestartEpoch))
	if !s.cfg.Options.CommandLine.DisableHotRestart {
		s.store.SetGauge(s.store.Root().Gauge("server.hot_restart_generation"), 1) // the parents and this one: there are no parents
	}
	s.gauge(stats.ServerVersion, version.Gauge())
	s.gauge(stats.ServerCompilationSettingsFipsMode, 0)
	s.gauge(stats.ServerStatsRecentLookups, 0)
	s.refresh()
	p.timer.Fn = func() { s.flush(s.armFlush) }
}

// startProcess begins the regular work. owner: main loop.
func (s *Server) startProcess() {
	s.refresh()
	s.armFlush()
	s.watchRuntime()
}

func (s *Server) armFlush() {
	if !s.process.onAdmin && s.process.interval > 0 {
		s.main.Arm(&s.process.timer, s.process.interval)
	}
	if f := s.process.flushed; f != nil {
		f()
	}
}

// flush ends an interval of the stats; done is called on the main loop.
func (s *Server) flush(done func()) {
	s.collect.collect(func() {
		s.refresh()
		s.store.Flush()
		done()
	})
}

// gathered calls f on the main loop when the store has the numbers of now, after a flush if pages are what flushes.
func (s *Server) gathered(f func()) {
	if s.process.onAdmin {
		s.flush(f)
		return
	}
	s.collect.collect(f)
}

func (s *Server) gauge(i astats.GaugeIndex, v uint64) {
	s.store.SetGauge(s.process.group.Gauge(i), v)
}

func (s *Server) count(i astats.CounterIndex, n uint64) {
	if n > 0 {
		s.store.Main().Add(s.process.group.Counter(i), n)
	}
}

// countListener counts what becomes of listeners.
func (s *Server) countListener(i astats.CounterIndex, n int) {
	s.store.Main().Add(s.process.listeners.Counter(i), uint64(n))
}

// refresh sets the gauges that tell of the moment.
func (s *Server) refresh() {
	live := uint64(1)
	st := s.State()
	if st == Draining || s.failed.Load() {
		live = 0
	}
	s.gauge(stats.ServerLive, live)
	s.gauge(stats.ServerState, uint64(st))
	s.gauge(stats.ServerUptime, uint64(s.uptime()/time.Second))
	s.gauge(stats.ServerTotalConnections, uint64(s.connections()))
	s.gauge(stats.ServerDaysUntilFirstCertExpiring, s.daysUntilFirstCert())
	if n := invariant.Count(); n > s.process.bugs {
		s.count(stats.ServerEnvoyBugFailures, n-s.process.bugs)
		s.process.bugs = n
	}
	s.store.SetGauge(s.process.listeners.Gauge(stats.ListenerManagerTotalListenersActive), uint64(len(s.order)))
	m := s.memory()
	s.gauge(stats.ServerMemoryAllocated, m.allocated)
	s.gauge(stats.ServerMemoryHeapSize, m.heap)
	s.gauge(stats.ServerMemoryPhysicalSize, m.physical)
}

// uptime is how long this process has run.
func (s *Server) uptime() time.Duration {
	return time.Duration(max(s.cfg.Clock.Now().Sub(s.process.epoch), 0))
}

// connections is the number of downstream connections.
func (s *Server) connections() (n int64) {
	for _, a := range s.order {
		n += a.l.Active()
	}
	return max(n, 0)
}

// memory is what the process takes, in bytes, as far as the Go runtime knows.
type memory struct{ allocated, heap, unmapped, free, stacks, physical uint64 }

func (s *Server) memory() memory {
	m := s.process.metrics
	metrics.Read(m)
	v := func(i int) uint64 { return m[i].Value.Uint64() }
	return memory{allocated: v(0), heap: v(0) + v(1) + v(2), unmapped: v(4), free: v(1) + v(2), stacks: v(3), physical: v(5) - v(4)}
}

// becameLive notes that the proxy serves.
func (s *Server) becameLive() {
	ms := s.cfg.Clock.Now().Sub(s.started).Milliseconds()
	s.store.Main().Record(s.process.group.Histogram(stats.ServerInitializationTimeMs), uint64(max(ms, 0)))
	s.store.SetGauge(s.process.listeners.Gauge(stats.ListenerManagerWorkersStarted), 1)
	s.countListener(stats.ListenerManagerListenerCreateSuccess, len(s.order)*len(s.workers))
	s.refresh()
	s.logger("main").Info("starting main dispatch loop")
}
