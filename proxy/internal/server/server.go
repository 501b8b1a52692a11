// Package server puts a proxy together: the main loop and its workers, stats, clusters, listeners, logs and the admin interface,
// from a bootstrap. It starts them in Envoy's order, and ends them.
//
// A Server belongs to the main loop; what its exported methods may be called from is said at each. It touches nothing of the
// process around it (signals, limits, environment): cmd does.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/log"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/internal/guard"
	"github.com/dragoman-proxy/dragoman/proxy/internal/accesslog"
	"github.com/dragoman-proxy/dragoman/proxy/internal/admin"
	"github.com/dragoman-proxy/dragoman/proxy/internal/async"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/dns"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
	"github.com/dragoman-proxy/dragoman/proxy/internal/overload"
	"github.com/dragoman-proxy/dragoman/proxy/internal/runtime"
	"github.com/dragoman-proxy/dragoman/proxy/internal/socket"
	"github.com/dragoman-proxy/dragoman/proxy/internal/spill"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/xds"
)

// Config is what a Server is made of. Zero values mean: the system's.
type Config struct {
	// OpenLog opens the file of an access log for appending; nil is the file system.
	OpenLog     func(path string) (io.WriteCloser, error)
	Boot        *config.Stream
	Concurrency int
	Clock       clock.Clock
	// Rand makes each worker's source of chance.
	Rand func(worker string) *rand.Source
	// Driver makes each worker's driver.
	Driver  func(worker string) (event.Driver, error)
	Sockets socket.Source
	// Upstreams are the addresses of the program around the proxy that take the place of static clusters' hosts.
	Upstreams map[string]network.Address
	// Extensions are what configurations may use beside the engine's own.
	Extensions ext.Set
	// Log is the application log; nil: none.
	Log *log.Set
	// UnknownFields tells how many unknown fields the bootstrap had; nil: none.
	UnknownFields func() int
	// Note is told what is most likely not meant, though Envoy takes it, while the proxy is built; nil: nobody.
	Note    func(config.Error)
	Options Options
	// Resolver makes who answers for names; nil: the system's servers are asked.
	Resolver func(main *event.Worker, o dns.Options) dns.Resolver
	// ReadFile, Watcher and Inline are how resource files are read: for the simulation. Zero values are the system's.
	ReadFile func(path string) ([]byte, error)
	Watcher  xds.Watcher
	Inline   bool
}

// Options are the command line's.
type Options struct {
	DrainTime         time.Duration // 0: 600 s; below: none
	DrainImmediate    bool
	FileFlushInterval time.Duration // 10 s
	FileFlushSize     int           // 64 KiB
	ServiceCluster    string
	ServiceNode       string
	ServiceZone       string
	LocalAddress      netip.Addr
	Hostname          string
	Env               func(string) (string, bool)
	RestartEpoch      int
	// StatsTags are further tags of all stats, "name:value".
	StatsTags []string
	// CommandLine is what /server_info shows beside these.
	CommandLine CommandLine
}

// State is what /ready and server.state tell.
type State int32

// The states, with Envoy's numbers.
const (
	Live State = iota
	Draining
	PreInitializing
	Initializing
)

// String returns Envoy's name of the state.
func (s State) String() string {
	return [...]string{"LIVE", "DRAINING", "PRE_INITIALIZING", "INITIALIZING"}[s]
}

// Server is one proxy.
type Server struct {
	cfg     Config
	boot    *bootstrapv3.Bootstrap
	main    *event.Worker
	workers []*event.Worker
	store   *stats.Store
	threads threads
	working sync.WaitGroup // the workers
	collect collector

	clusters  *cluster.Manager
	overload  *overload.State
	listeners map[string]*activeListener
	order     []*activeListener
	redirects listener.Table
	retiring  retiring
	logs      *accesslog.Manager
	format    *format.Options
	ext       *extensions
	calls     *async.Client
	routes    map[string]*inlineRoutes

	admin         *admin.Admin
	adminListener *activeListener
	tagger        *stats.Tagger
	dynamic       dynamic
	process       process
	runtime       *runtime.Loader
	spill         *spill.Store
	guards        *guard.Set
	problems      problems
	dump          dump
	certs         certs
	drain         drain

	state    atomic.Int32
	failed   atomic.Bool // healthcheck/fail
	started  time.Time
	ready    chan struct{}
	stop     chan struct{}
	ended    chan struct{} // closed when no thread of the server runs any more
	stopping atomic.Bool
}

// New builds a Server from its bootstrap. Nothing listens before Start. Errors carry the place in the file.
func New(cfg Config) (*Server, error) {
	if cfg.Clock == nil {
		cfg.Clock = clock.System()
	}
	if cfg.Rand == nil {
		cfg.Rand = func(string) *rand.Source { return rand.New() }
	}
	if cfg.Driver == nil {
		cfg.Driver = func(string) (event.Driver, error) { return event.NewDriver(event.DefaultDriver()) }
	}
	if cfg.Sockets == nil {
		cfg.Sockets = socket.Kernel{}
	}
	if cfg.Concurrency <= 0 {
		cfg.Concurrency = 1
	}
	if cfg.Log == nil {
		cfg.Log = log.Discard()
	}
	s := &Server{cfg: cfg, listeners: map[string]*activeListener{}, routes: map[string]*inlineRoutes{},
		ready: make(chan struct{}), stop: make(chan struct{}), ended: make(chan struct{})}
	s.state.Store(int32(PreInitializing))
	s.started = cfg.Clock.Now()
	s.format = &format.Options{Hostname: cfg.Options.Hostname, Env: cfg.Options.Env}
	cfg.Boot.Thorough = true
	var err error
	if s.boot, err = cfg.Boot.Skeleton(); s.boot == nil {
		return nil, err
	}
	s.problems.broken = !s.problems.errs.Collect("", err)
	s.problems.loaded = slices.Clone(s.problems.errs.List)
	s.problems.notice()
	if err = s.keepAsRead(); err != nil {
		return nil, err
	}
	if s.ext, err = newExtensions(s, cfg.Extensions); err != nil {
		return nil, err
	}
	if err := s.makeWorkers(); err != nil {
		return nil, err
	}
	if err := s.build(); err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

func (s *Server) makeWorkers() error {
	s.store = stats.NewStore()
	make := func(i int, name string, sh *stats.Shard) (*event.Worker, error) {
		d, err := s.cfg.Driver(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return event.New(event.Config{Index: i, Name: name, Driver: d, Clock: s.cfg.Clock, Rand: s.cfg.Rand(name), Stats: sh,
			KeepP: i >= 0 && sparePs(s.cfg.Concurrency)}), nil
	}
	var err error
	if s.main, err = make(-1, "main_thread", s.store.Main()); err != nil {
		return err
	}
	s.collect.init(s)
	for i := 0; i < s.cfg.Concurrency; i++ {
		name := fmt.Sprintf("worker_%d", i)
		sh := s.store.NewShard(name)
		if sh == nil {
			return fmt.Errorf("--concurrency %d is more than the %d workers that are possible", s.cfg.Concurrency, stats.MaxShards-1)
		}
		w, err := make(i, name, sh)
		if err != nil {
			s.closeDrivers()
			return err
		}
		s.workers = append(s.workers, w)
	}
	return nil
}

func (s *Server) closeDrivers() {
	for _, w := range append([]*event.Worker{s.main}, s.workers...) {
		if w != nil {
			w.Driver.Close()
		}
	}
}

// build makes everything that the bootstrap names, in Envoy's order: clusters before listeners.
func (s *Server) build() error {
	s.logs = accesslog.NewManager(accesslog.Config{Home: s.main, Scope: s.store.Root(), FlushSize: s.cfg.Options.FileFlushSize,
		FlushInterval: s.cfg.Options.FileFlushInterval, Open: s.cfg.OpenLog})
	for _, w := range s.workers {
		s.logs.Attach(w)
	}
	s.part(func() error { return s.cfg.Boot.Positions().Attach("", config.Refuse(bootstrapGaps, s.boot, "")) })
	s.part(s.checkHeaderPrefix)
	s.part(s.checkRegexEngine)
	s.part(s.checkWatchdogs)
	s.part(s.checkEventLog)
	s.part(s.buildStats)
	s.buildProcess()
	s.buildNode()
	s.part(s.buildLog)
	s.logStart()
	s.part(s.buildOverload)
	s.part(s.buildRuntime)
	s.part(func() error { return s.buildAdmin(s.boot.Admin) })
	s.buildDynamic()
	s.part(s.buildSecrets)
	s.part(s.buildClusters)
	s.part(s.checkSources)
	s.buildCalls()
	s.buildRDS()
	s.part(s.buildListeners)
	if s.problems.errs.Len() == 0 {
		s.part(s.finishBuild)
	}
	s.problems.forget()
	s.problems.nameNode()
	s.problems.errs.Lacking(s.cfg.Boot.Positions(), s.ext.has)
	s.problems.errs.Sort()
	return s.problems.errs.Err()
}

// buildSecrets takes the static secrets.
func (s *Server) buildSecrets() error {
	var errs config.Errors
	for i, x := range s.boot.GetStaticResources().GetSecrets() {
		errs.Collect(fmt.Sprintf("[%d]", i), s.dynamic.secrets.AddStatic(x))
	}
	return s.located("static_resources.secrets", errs.Err())
}

// Main returns the main loop, Workers the workers: for the simulation, which steps them itself.
func (s *Server) Main() *event.Worker { return s.main }

// Workers returns the workers.
func (s *Server) Workers() []*event.Worker { return s.workers }

// Store returns the stats. owner: main loop.
func (s *Server) Store() *stats.Store { return s.store }

// State returns what /ready tells. Safe from any goroutine.
func (s *Server) State() State {
	if s.failed.Load() {
		return Draining
	}
	return State(s.state.Load())
}

// Ready is closed when the proxy serves.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Start opens the listeners and begins to serve once everything that was waited for is there; failed is called if it cannot.
// owner: main loop (its first task).
func (s *Server) Start(failed func(error)) {
	if err := s.openAdmin(); err != nil {
		failed(err)
		return
	}
	s.startProcess()
	s.clusters.OnPrimary, s.clusters.OnWarming = s.startStreams, s.clustersWarm
	s.clusters.WhenWarm(func() {
		if err := s.startCDS(func() { s.startSecond(failed) }); err != nil {
			failed(err)
		}
	})
	s.clusters.Start()
}

// startSecond follows once the clusters are there: listeners, then traffic.
func (s *Server) startSecond(failed func(error)) {
	s.clustersInitialized()
	s.state.Store(int32(Initializing))
	s.dynamic.listening = true
	if err := s.startLDS(); err != nil {
		failed(err)
		return
	}
	s.dynamic.streams.Listen()
	s.whenInitialized(func() {
		s.logger("config").Info("all dependencies initialized. starting workers")
		s.startListeners(func(err error) {
			if err != nil {
				failed(err)
				return
			}
			s.state.Store(int32(Live))
			s.becameLive()
			close(s.ready)
		})
	})
}

// Run serves until ctx ends, then drains and returns. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	for _, w := range s.workers {
		s.working.Add(1)
		s.threads.start(w, true, s.working.Done)
	}
	stopWatch := s.watchBugs()
	failed := make(chan error, 1)
	s.main.Post(func() { s.Start(func(err error) { failed <- err }) })
	s.threads.start(s.main, false, nil)
	var err error
	select {
	case <-ctx.Done():
	case <-s.stop:
	case err = <-failed:
	}
	stopWatch()
	s.logger("main").Info("shutting down server instance")
	s.shutdown()
	s.logger("main").Info("main dispatch loop exited")
	return err
}

// Quit makes Run return, as /quitquitquit does. Safe from any goroutine.
func (s *Server) Quit() {
	if s.stopping.CompareAndSwap(false, true) {
		close(s.stop)
	}
}

// shutdown ends the workers, then the main loop. Connections are closed as they are: draining comes before.
func (s *Server) shutdown() {
	for _, w := range s.workers {
		w.Post(func() {
			s.closeOn(w)
			closeAll(w)
		})
		w.Stop()
	}
	// What the workers have logged to the last is flushed by the main loop: they must have ended before.
	s.working.Wait()
	s.main.Post(func() {
		if a := s.adminListener; a != nil && len(a.accs) > 0 {
			a.accs[0].Close()
		}
		s.dynamic.streams.Close()
		s.clusters.Close()
		closeAll(s.main)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.logs.Close(ctx)
	})
	s.main.Stop()
	s.threads.wait()
	if n := s.dynamic.notify; n != nil {
		n.Close()
	}
	s.dynamic.files.Close()
	s.dynamic.streams.Wait()
	close(s.ended)
}

// closeAll closes the connections that w still has. owner: w.
func closeAll(w *event.Worker) {
	for _, h := range w.Handlers() {
		if c := conn.Of(h); c != nil {
			c.Close(network.NoFlush, "server_shutdown")
		}
	}
}

// Bound is Addrs for any goroutine, after Ready: control planes and reloads change listeners at any time.
func (s *Server) Bound() (out map[string][]network.Address) {
	if s.OnMain(func() { out = s.Addrs() }) != nil { // nothing changes any more
		out = s.Addrs()
	}
	return out
}

// Addrs returns the addresses that listeners are bound to, by listener name. Valid after Ready. owner: main loop.
func (s *Server) Addrs() map[string][]network.Address {
	out := map[string][]network.Address{}
	for _, l := range s.order {
		out[l.name] = append(append(out[l.name], l.bound), l.alsoAt()...)
	}
	return out
}

var errNoMain = errors.New("the main loop has ended")

// OnMain runs f on the main loop and waits for it. It must not be called there. The only error is that the main loop has ended: then f may
// not have run.
func (s *Server) OnMain(f func()) error {
	done := make(chan struct{})
	s.main.Post(func() { f(); close(done) })
	select {
	case <-done:
		return nil
	case <-s.ended:
		return errNoMain
	}
}
