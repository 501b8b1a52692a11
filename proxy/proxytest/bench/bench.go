// Package bench runs a proxy for measuring, in this process, and tells what only its inside knows: how long the passes of its loops
// took, by the clock and in CPU, and what of its stats is still held.
//
// It is for tests and measuring programs. The figures are taken on the loops; everything else may be called from any goroutine.
package bench

import (
	"context"
	"math/bits"
	"runtime"
	"sync"
	"time"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/log"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/server"
)

// Config says what to run.
type Config struct {
	Bootstrap   string // a file
	Concurrency int
	Extensions  ext.Set
	Log         *log.Set // nil: none
}

// Proxy is a running proxy.
type Proxy struct {
	s     *server.Server
	mu    sync.Mutex
	loops []*loop
	ended chan error
	clock clock.Clock
}

// Start builds a proxy and returns when it serves.
func Start(ctx context.Context, c Config) (*Proxy, error) {
	boot, err := config.Open(c.Bootstrap, config.Options{})
	if err != nil {
		return nil, err
	}
	p := &Proxy{ended: make(chan error, 1), clock: clock.System()}
	p.s, err = server.New(server.Config{Boot: boot, Concurrency: c.Concurrency, Extensions: c.Extensions, Log: c.Log, Driver: p.driver})
	if err != nil {
		return nil, err
	}
	go func() { p.ended <- p.s.Run(ctx) }()
	select {
	case <-p.s.Ready():
		return p, nil
	case err := <-p.ended:
		return nil, err
	}
}

// Wait returns when the proxy has ended, which the context of Start tells it to.
func (p *Proxy) Wait() error { return <-p.ended }

// Addrs returns the addresses of the listeners.
func (p *Proxy) Addrs() map[string][]network.Address { return p.s.Bound() }

// Stats returns all stats in Envoy's text form.
func (p *Proxy) Stats() string { return p.s.StatsText() }

// Figures is what the inside tells.
type Figures struct {
	// Loops are the main loop ("main_thread") and the workers.
	Loops map[string]Loop
	// Clusters is how many there are; Released how many groups of stats were released and have not been cleared everywhere yet.
	Clusters, Released int
	// SlabsInUse and SlabsKept are the workers' buffers: those in use, and those that wait for their next use.
	SlabsInUse, SlabsKept int
}

// Loop is what one loop's passes took since Reset, in histograms: bucket i counts those below 2^i microseconds. Wall is by the
// clock; CPU is the thread's, in which waiting for a core of a busy machine does not show.
type Loop struct {
	Wall, CPU               [24]uint64
	LongestWall, LongestCPU time.Duration
}

// Over returns how many of a histogram's passes took at least d, a power of two of microseconds.
func Over(h [24]uint64, d time.Duration) (n uint64) {
	for i := bits.Len64(uint64(d.Microseconds())); i < len(h); i++ {
		n += h[i]
	}
	return n
}

// Figures asks the loops.
func (p *Proxy) Figures() Figures {
	f := Figures{Loops: map[string]Loop{}}
	p.each(func(l *loop) { f.Loops[l.name] = l.times })
	for _, w := range p.s.Workers() {
		p.on(w, func() { f.SlabsInUse, f.SlabsKept = f.SlabsInUse+w.Bufs.Live(), f.SlabsKept+w.Bufs.Free() })
	}
	p.on(p.s.Main(), func() { f.Clusters, f.Released = p.s.Clusters().Len(), p.s.Store().Released() })
	return f
}

// Reset begins the histograms anew.
func (p *Proxy) Reset() { p.each(func(l *loop) { l.times = Loop{} }) }

// each runs f on each loop's own thread, one after the other.
func (p *Proxy) each(f func(l *loop)) {
	p.mu.Lock()
	loops := p.loops
	p.mu.Unlock()
	workers := append([]*event.Worker{p.s.Main()}, p.s.Workers()...)
	for i, w := range workers {
		p.on(w, func() { f(loops[i]) })
	}
}

func (p *Proxy) on(w *event.Worker, f func()) {
	done := make(chan struct{})
	w.Post(func() { f(); close(done) })
	<-done
}

// loop is a driver that looks at the clocks whenever its worker comes to wait: what lies between two waits is a pass.
type loop struct {
	event.Driver
	clock     clock.Clock
	name      string
	times     Loop
	wall, cpu int64 // when the last wait ended, in ns
	locked    bool
}

func (p *Proxy) driver(name string) (event.Driver, error) {
	d, err := event.NewDriver(event.DefaultDriver())
	if err != nil {
		return nil, err
	}
	l := &loop{Driver: d, name: name, clock: p.clock}
	p.mu.Lock()
	p.loops = append(p.loops, l)
	p.mu.Unlock()
	return l, nil
}

// Wait implements event.Driver.
func (l *loop) Wait(dst []event.Ready, timeout time.Duration) int {
	if !l.locked {
		// The main loop is not bound to a thread. Here it must be, for its CPU to be told from that of others.
		runtime.LockOSThread()
		l.locked = true
	}
	if l.wall != 0 {
		l.times.record(time.Duration(l.clock.Mono()-l.wall), time.Duration(threadCPU()-l.cpu))
	}
	n := l.Driver.Wait(dst, timeout)
	l.wall, l.cpu = l.clock.Mono(), threadCPU()
	return n
}

func (t *Loop) record(wall, cpu time.Duration) {
	t.Wall[bucket(wall)]++
	t.CPU[bucket(cpu)]++
	t.LongestWall = max(t.LongestWall, wall)
	t.LongestCPU = max(t.LongestCPU, cpu)
}

func bucket(d time.Duration) int {
	return min(bits.Len64(uint64(max(d, 0))/1000), len(Loop{}.Wall)-1)
}
