package simtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/dns"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
	"github.com/dragoman-proxy/dragoman/proxy/internal/server"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Proxy builds a whole proxy of n workers from a bootstrap in YAML. In it LISTEN stands for the socket address of Net.Listen, and
// UPSTREAM_0, UPSTREAM_1 and so on for those of Net.Upstreams. Any name resolves to some of these, others each time; their port is
// UpstreamPort.
func Proxy(bootstrap string, n int) Build { return Dynamic(bootstrap, n, nil) }

// Dynamic is Proxy with resource files, which the bootstrap names by path. Each has one or more versions; it begins with the first,
// and while the game goes on others are moved into its place.
func Dynamic(bootstrap string, n int, versions map[string][]string) Build {
	return func(w *World, net Net) (System, error) {
		fill := func(text string) string {
			text = strings.ReplaceAll(text, "LISTEN", socketAddress(net.Listen))
			for i, u := range net.Upstreams {
				text = strings.ReplaceAll(text, fmt.Sprint("UPSTREAM_", i), socketAddress(u))
			}
			return text
		}
		boot, err := config.Open("", config.Options{ConfigYAML: fill(bootstrap)})
		if err != nil {
			return nil, err
		}
		p := &proxySystem{files: newFiles(versions, fill)}
		splice := w.Rand("splice").IntN(2) == 0
		p.s, err = server.New(server.Config{
			Boot: boot, Concurrency: n, Clock: w.Clock(), Rand: w.Rand,
			Driver: func(worker string) (event.Driver, error) {
				if splice {
					return w.SplicingDriver(worker), nil
				}
				return w.Driver(worker), nil
			},
			ReadFile: p.files.read, Watcher: p.files, Inline: true,
			Resolver: func(main *event.Worker, _ dns.Options) dns.Resolver {
				return &names{w: w, main: main, rnd: w.Rand("names"), all: net.Upstreams}
			},
			// Games are short: those who must leave are told at once.
			Options: server.Options{DrainImmediate: true, DrainTime: 10 * time.Minute},
		})
		if err != nil {
			return nil, err
		}
		for _, k := range p.Workers() {
			k.Bufs.Poison = true
		}
		var failed error
		p.s.Main().Post(func() { p.s.Start(func(err error) { failed = err }) })
		live := func() bool { return failed != nil || p.s.State() == server.Live }
		if err := w.Run(p.Workers(), live, settleTime); err != nil {
			return nil, fmt.Errorf("starting: %w", err)
		}
		return p, failed
	}
}

func socketAddress(a network.Address) string {
	return fmt.Sprintf("{socket_address: {address: %s, port_value: %d}}", a.IP.Addr(), a.IP.Port())
}

// proxySystem is a Server whose loops the world steps.
type proxySystem struct {
	s     *server.Server
	files *files
}

// Leave implements leaver.
func (p *proxySystem) Leave(how Leave) {
	if how == Shutdown {
		p.Close()
		return
	}
	p.s.Main().Post(func() { p.s.Drain(how == Drain, false, how == Drain) })
}

// Push changes one of the files.
func (p *proxySystem) Push(r *rand.Source) { p.files.push(r) }

func (p *proxySystem) Workers() []*event.Worker {
	return append([]*event.Worker{p.s.Main()}, p.s.Workers()...)
}

// Close ends what each loop has, on the loop.
func (p *proxySystem) Close() {
	for _, w := range p.Workers() {
		w.Post(func() {
			for _, h := range w.Handlers() {
				if a, ok := h.(*listener.Acceptor); ok {
					a.Close()
				} else if c := conn.Of(h); c != nil {
					c.Close(network.NoFlush, "server_shutdown")
				}
			}
		})
	}
}

// Leaks looks at the buffers, and at the gauges of what is in use: they must be back at zero.
func (p *proxySystem) Leaks() (leaks []string) {
	for _, w := range p.Workers() {
		if n := w.Bufs.Live(); n != 0 {
			leaks = append(leaks, fmt.Sprintf("%s: %d slabs", w.Name, n))
		}
	}
	return append(leaks, p.active("_active")...)
}

// Busy looks for requests, and for connections of clients.
func (p *proxySystem) Busy() []string {
	return p.active("rq_active", "rq_pending_active", "downstream_cx_active", "downstream_cx_http1_active", "downstream_cx_http2_active")
}

// active returns the gauges with one of the endings that are not zero.
func (p *proxySystem) active(endings ...string) (active []string) {
	for name, value := range p.Stats() {
		if strings.HasPrefix(name, "listener_manager.") {
			continue // what is configured
		}
		for _, end := range endings {
			if strings.HasSuffix(name, end) && value != 0 {
				active = append(active, fmt.Sprintf("%s: %d", name, value))
			}
		}
	}
	slices.Sort(active)
	return active
}

// Stats returns the counters and gauges. No loop runs meanwhile, so that every shard may be read from here.
func (p *proxySystem) Stats() map[string]uint64 {
	store := p.s.Store()
	for _, w := range p.s.Workers() {
		if snap := store.Begin(w.Stats); snap != nil {
			w.Stats.Snapshot(snap)
			store.Collect(snap)
		}
	}
	store.Collect()
	values := map[string]uint64{}
	for line := range strings.Lines(string(stats.WriteAll(store.Text(stats.Query{})))) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if v, err := strconv.ParseUint(text, 10, 64); err == nil {
			values[name] = v
		}
	}
	return values
}
