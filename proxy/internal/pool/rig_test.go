package pool_test

import (
	"io"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// drivers are the kinds that talk to the kernel's sockets, where independent peers are.
func drivers() []string {
	if runtime.GOOS == "linux" {
		return []string{event.KindEpoll, event.KindStd}
	}
	return []string{event.KindStd}
}

// rig is a worker, stepped by the test, and the settings of one cluster.
type rig struct {
	t     *testing.T
	w     *event.Worker
	clock *fakeClock
	store *stats.Store
	s     *pool.Settings
	guard event.Timer
}

// fakeClock goes with real time, and jumps where a test says so.
type fakeClock struct {
	clock.Clock
	ahead time.Duration
}

func (c *fakeClock) Mono() int64    { return c.Clock.Mono() + int64(c.ahead) }
func (c *fakeClock) Now() time.Time { return c.Clock.Now().Add(c.ahead) }

func overDrivers(t *testing.T, f func(r *rig)) {
	for _, kind := range drivers() {
		t.Run(kind, func(t *testing.T) { f(newRig(t, kind)) })
	}
}

func newRig(t testing.TB, kind string) *rig {
	d, err := event.NewDriver(kind)
	if err != nil {
		t.Fatal(err)
	}
	store := stats.NewStore()
	r := &rig{store: store, clock: &fakeClock{Clock: sim.NewSteady()}}
	r.t, _ = t.(*testing.T)
	r.w = event.New(event.Config{Name: "worker_0", Driver: d, Clock: r.clock, Rand: rand.Seeded([32]byte{1}), Stats: store.NewShard("worker_0")})
	r.w.Bufs.Poison, r.w.Arenas.Poison = r.t != nil, r.t != nil
	limits := [pool.NumPriorities]pool.Limits{pool.DefaultLimits, pool.DefaultLimits}
	o2 := h2.DefaultOptions()
	r.s = &pool.Settings{
		Options: &pool.Options{H1: &h1.Options{}, H2: &o2, ConnectTimeout: 5 * time.Second, IdleTimeout: time.Hour, BufferLimit: 1 << 20},
		Stats:   store.Root().Scope("cluster.c").Group(stats.Cluster),
		Limits:  &limits,
	}
	r.guard.Fn = func() {}
	t.Cleanup(func() {
		for _, h := range r.w.Handlers() { // of a test that failed
			if c, ok := h.(*conn.Conn); ok {
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

// jump lets time pass.
func (r *rig) jump(d time.Duration) {
	r.clock.ahead += d
	r.w.Step(false)
}

func (r *rig) pool(h *host.Host, p pool.Protocol) *pool.Pool {
	return pool.New(r.w, r.s, h, pool.DefaultPriority, p)
}

// values returns the cluster's stats.
func (r *rig) values() map[string]string {
	sn := r.store.Begin(r.w.Stats)
	r.w.Stats.Snapshot(sn)
	r.store.Collect(sn)
	r.store.Flush()
	out := make(map[string]string)
	for line := range strings.SplitSeq(string(stats.WriteAll(r.store.Text(stats.Query{}))), "\n") {
		if name, v, ok := strings.Cut(line, ": "); ok {
			out[strings.TrimPrefix(name, "cluster.c.")] = v
		}
	}
	return out
}

// want compares some of them.
func (r *rig) want(want map[string]string) {
	r.t.Helper()
	all, got := r.values(), make(map[string]string)
	for name := range want {
		got[name] = all[name]
	}
	if d := cmp.Diff(want, got); d != "" {
		r.t.Errorf("stats (-want +got):\n%s", d)
	}
}

// server starts an HTTP server of the standard library, for HTTP/1 and prior-knowledge HTTP/2.
func server(t testing.TB, f nethttp.HandlerFunc) *httptest.Server {
	s := httptest.NewUnstartedServer(f)
	s.Config.Protocols = &nethttp.Protocols{}
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Listener = &keeper{Listener: s.Listener}
	s.Start()
	t.Cleanup(func() {
		s.Listener.(*keeper).breakAll()
		s.Close()
	})
	return s
}

// keeper is a listener that can close what it has accepted.
type keeper struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (k *keeper) Accept() (net.Conn, error) {
	c, err := k.Listener.Accept()
	k.mu.Lock()
	k.conns = append(k.conns, c)
	k.mu.Unlock()
	return c, err
}

func (k *keeper) breakAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.conns {
		if c != nil {
			_ = c.Close()
		}
	}
}

func hostOf(s interface{ String() string }) *host.Host {
	return host.New(network.AddrFrom(netip.MustParseAddrPort(s.String())), "")
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

// ended tells whether a channel is closed.
func ended(ch <-chan struct{}) func() bool {
	return func() bool {
		select {
		case <-ch:
			return true
		default:
			return false
		}
	}
}

// call is one request of a test.
type call struct {
	r      *rig
	req    pool.Request
	arena  http.Arena
	head   http.HeaderMap
	resp   http.HeaderMap
	method string
	path   string
	hold   bool // do not end the request

	s       codec.ClientStream
	conn    *pool.Conn
	body    []byte
	status  int
	done    bool
	reset   http.ResetReason
	failed  http.ResetReason
	failure string
	ready   int
	onDone  func()
	onHead  func()
}

func (r *rig) call(p *pool.Pool, path string) *call {
	c := &call{r: r, method: "GET", path: path}
	c.start(p)
	return c
}

func (c *call) start(p *pool.Pool) {
	c.arena.Init(&c.r.w.Arenas)
	c.head.Init(&c.arena)
	c.resp.Init(&c.arena)
	c.req.Decoder, c.req.Headers, c.req.CB = c, &c.resp, c
	p.Start(&c.req)
}

func (c *call) OnPoolReady(s codec.ClientStream, pc *pool.Conn) {
	c.ready++
	c.s, c.conn = s, pc
	c.head.Add(http.Method, c.method)
	c.head.Add(http.Path, c.path)
	c.head.Add(http.Scheme, "http")
	c.head.Add(http.Authority, "upstream")
	if err := s.EncodeHeaders(&c.head, !c.hold); err != nil {
		c.r.t.Errorf("encode: %v", err)
	}
}

func (c *call) OnPoolFailure(reason http.ResetReason, failure string, _ *host.Host) {
	c.failed, c.failure = reason, failure
	c.end()
}

func (c *call) end() {
	if c.done {
		c.r.t.Error("ended twice")
	}
	c.done = true
	c.arena.Release()
	if c.onDone != nil {
		c.onDone()
	}
}

func (c *call) Decode1xx(*http.HeaderMap) {}
func (c *call) DecodeHeaders(h *http.HeaderMap, end bool) {
	c.status = h.StatusCode()
	if c.onHead != nil {
		c.onHead()
	}
	if end {
		c.end()
	}
}
func (c *call) DecodeData(b *buffer.Buffer, end bool) {
	for _, s := range b.Slices(nil, 1024) {
		c.body = append(c.body, s...)
	}
	b.Reset()
	if end {
		c.end()
	}
}
func (c *call) DecodeTrailers(*http.HeaderMap) { c.end() }
func (c *call) OnReset(reason http.ResetReason, _ string) {
	c.reset = reason
	c.end()
}
func (c *call) OnAboveHighWatermark() {}
func (c *call) OnBelowLowWatermark()  {}

// finish ends a request that was held.
func (c *call) finish() {
	var b buffer.Buffer
	b.Init(&c.r.w.Bufs)
	c.s.EncodeData(&b, true)
	b.Reset()
}

func allDone(calls ...*call) func() bool {
	return func() bool {
		for _, c := range calls {
			if !c.done {
				return false
			}
		}
		return true
	}
}

// reading answers when it has the whole request.
func reading(_ nethttp.ResponseWriter, q *nethttp.Request) { _, _ = io.Copy(io.Discard, q.Body) }

func text(s string) nethttp.HandlerFunc {
	return func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = io.WriteString(w, s) }
}

// deafTransport is a transport whose handshake never ends.
type deafTransport struct{}

func (deafTransport) New(*event.Worker, *host.Host, []string) (conn.Transport, string) {
	return deafTransport{}, ""
}
func (deafTransport) Start(*conn.Conn)                           {}
func (deafTransport) Feed(*conn.Conn, []byte)                    {}
func (deafTransport) EOF(*conn.Conn)                             {}
func (deafTransport) Seal(_ *conn.Conn, plain, _ *buffer.Buffer) { plain.Reset() }
func (deafTransport) CloseNotify(*conn.Conn) bool                { return false }
func (deafTransport) Destroy()                                   {}
