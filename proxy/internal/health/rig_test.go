package health_test

import (
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
	"github.com/dragoman-proxy/dragoman/proxy/internal/health"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Times that only a jump of the clock reaches.
const (
	interval = time.Hour
	patience = time.Minute
)

// rig is a main loop, stepped by the test, and the checks of one cluster.
type rig struct {
	t       *testing.T
	w       *event.Worker
	clock   *fakeClock
	store   *stats.Store
	o       *health.Options
	rt      health.Runtime
	c       *health.Checker
	used    bool
	results []health.Result
	guard   event.Timer
	lines   []string
}

// fakeClock goes with real time, and jumps where a test says so.
type fakeClock struct {
	clock.Clock
	ahead time.Duration
}

func (c *fakeClock) Mono() int64    { return c.Clock.Mono() + int64(c.ahead) }
func (c *fakeClock) Now() time.Time { return c.Clock.Now().Add(c.ahead) }

func newRig(t *testing.T, change func(o *health.Options)) *rig {
	d, err := event.NewDriver("")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, store: stats.NewStore(), clock: &fakeClock{Clock: sim.NewSteady()}, used: true}
	r.w = event.New(event.Config{Index: -1, Name: "main_thread", Driver: d, Clock: r.clock, Rand: rand.Seeded([32]byte{1}), Stats: r.store.Main()})
	r.w.Bufs.Poison, r.w.Arenas.Poison = true, true
	o2 := h2.DefaultOptions()
	r.o = &health.Options{Timeout: patience, Interval: interval, UnhealthyInterval: interval, UnhealthyEdge: interval, HealthyEdge: interval,
		NoTrafficInterval: interval, NoTrafficHealthily: interval, Healthy: 1, Unhealthy: 1}
	change(r.o)
	r.guard.Fn = func() {}
	settings := &pool.Settings{Options: &pool.Options{H1: &h1.Options{}, H2: &o2, BufferLimit: 1 << 20},
		Stats: r.store.Root().Scope("cluster.c").Group(stats.Cluster)}
	r.c = health.New(health.Config{Worker: r.w, Options: r.o, Pools: settings, Cluster: "c", Used: func() bool { return r.used }, Runtime: r, Logs: []health.Log{(*log)(r)},
		Stats:    r.store.Root().Scope("cluster.c").Scope("health_check").Group(stats.HealthCheck),
		OnResult: func(_ *host.Host, x health.Result) { r.results = append(r.results, x) }})
	t.Cleanup(func() {
		r.c.Close()
		for _, h := range r.w.Handlers() {
			if c, ok := h.(*conn.Conn); ok {
				t.Error("a connection was left")
				c.Close(network.NoFlush, "")
			}
		}
		d.Close()
		if n := r.w.Bufs.Live(); n != 0 {
			t.Errorf("%d slabs leaked", n)
		}
		if n := r.w.Arenas.Live(); n != 0 {
			t.Errorf("%d arena chunks leaked", n)
		}
	})
	return r
}

// log is the rig as its own log.
type log rig

func (l *log) Line(b []byte) { l.lines = append(l.lines, string(b)) }
func (l *log) Release()      {}

// Uint and Fraction make the rig its own runtime, without keys.
func (r *rig) Uint(key string, def uint64) uint64 {
	if r.rt != nil {
		return r.rt.Uint(key, def)
	}
	return def
}

func (r *rig) Fraction(key string, n, d uint64) (uint64, uint64) {
	if r.rt != nil {
		return r.rt.Fraction(key, n, d)
	}
	return n, d
}

// run steps the worker until the condition holds.
func (r *rig) run(what string, until func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(25 * time.Second)
	for !until() {
		if time.Now().After(deadline) {
			r.t.Fatalf("waited too long: %s", what)
		}
		if r.w.Step(false) == 0 {
			r.w.Arm(&r.guard, time.Millisecond)
			r.w.Step(true)
			r.w.Remove(&r.guard)
		}
	}
}

// add begins to check a host.
func (r *rig) add(h *host.Host) {
	h.SetFlag(host.FailedActiveHC, true)
	r.c.Add(h)
}

// result waits for the result of the check that is under way.
func (r *rig) result() health.Result {
	r.t.Helper()
	n := len(r.results)
	r.run("a result", func() bool { return len(r.results) > n })
	return r.results[n]
}

// next lets the interval pass, so that the next check begins.
func (r *rig) next() { r.jump(interval + time.Second) }

func (r *rig) jump(d time.Duration) {
	r.clock.ahead += d
	r.w.Step(false)
}

// check waits for the first check of a host, and returns the flags that it led to.
func (r *rig) check(h *host.Host) string {
	r.t.Helper()
	r.add(h)
	r.result()
	return flags(h)
}

func flags(h *host.Host) string { return string(h.AppendFlags(nil)) }

// want compares some of the statistics.
func (r *rig) want(want map[string]string) {
	r.t.Helper()
	r.store.Collect()
	all, got := make(map[string]string), make(map[string]string)
	for line := range strings.SplitSeq(string(stats.WriteAll(r.store.Text(stats.Query{}))), "\n") {
		if name, v, ok := strings.Cut(line, ": "); ok {
			all[strings.TrimPrefix(name, "cluster.c.health_check.")] = v
		}
	}
	for name := range want {
		got[name] = all[name]
	}
	if d := cmp.Diff(want, got); d != "" {
		r.t.Errorf("stats (-want +got):\n%s", d)
	}
}

// server starts an HTTP server of the standard library, for HTTP/1 and prior-knowledge HTTP/2.
func server(t *testing.T, f nethttp.HandlerFunc) *host.Host {
	s := httptest.NewUnstartedServer(f)
	s.Config.Protocols = &nethttp.Protocols{}
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return hostOf(s.Listener.Addr())
}

func hostOf(a interface{ String() string }) *host.Host {
	return host.New(network.AddrFrom(netip.MustParseAddrPort(a.String())), "")
}

// raw serves connections with a function each.
func raw(t *testing.T, f func(n int, c net.Conn)) *host.Host {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				f(n, c)
			}()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return hostOf(l.Addr())
}

// refused returns a host that nobody listens at: a port that was free a moment ago could be somebody's by now.
func refused() *host.Host { return hostOf(netip.MustParseAddrPort("127.0.0.1:1")) }
