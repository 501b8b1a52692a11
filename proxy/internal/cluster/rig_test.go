package cluster_test

import (
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/dns"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a main loop and workers, stepped by the test, with names and endpoints that the test decides on.
type rig struct {
	t       testing.TB
	main    *event.Worker
	workers []*event.Worker
	store   *stats.Store
	deps    *cluster.Deps
	m       *cluster.Manager
	dns     *fakeDNS
	eds     *fakeSource
	clock   *fakeClock
	guard   event.Timer
}

type fakeClock struct {
	clock.Clock
	ahead time.Duration
}

func (c *fakeClock) Mono() int64    { return c.Clock.Mono() + int64(c.ahead) }
func (c *fakeClock) Now() time.Time { return c.Clock.Now().Add(c.ahead) }

func newRig(t testing.TB, workers int) *rig {
	r := &rig{t: t, store: stats.NewStore(), dns: &fakeDNS{}, eds: &fakeSource{}, clock: &fakeClock{Clock: sim.NewSteady()}}
	worker := func(i int, name string, sh *stats.Shard) *event.Worker {
		d, err := event.NewDriver("")
		if err != nil {
			t.Fatal(err)
		}
		w := event.New(event.Config{Index: i, Name: name, Driver: d, Clock: r.clock, Rand: rand.Seeded([32]byte{byte(i)}), Stats: sh})
		t.Cleanup(func() {
			for _, h := range w.Handlers() {
				if c, ok := h.(*conn.Conn); ok {
					c.Close(network.NoFlush, "")
				}
			}
			d.Close()
		})
		return w
	}
	r.main = worker(-1, "main_thread", r.store.Main())
	for i := range workers {
		name := fmt.Sprint("worker_", i)
		r.workers = append(r.workers, worker(i, name, r.store.NewShard(name)))
	}
	r.deps = &cluster.Deps{Main: r.main, Workers: r.workers, Store: r.store, Resolver: r.dns, Source: r.eds}
	r.m = cluster.NewManager(r.deps)
	r.guard.Fn = func() {}
	return r
}

// step lets everybody do what there is to do.
func (r *rig) step() {
	for range 3 {
		for _, w := range append([]*event.Worker{r.main}, r.workers...) {
			w.Step(false)
		}
	}
}

func (r *rig) run(what string, until func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(25 * time.Second)
	for !until() {
		if time.Now().After(deadline) {
			r.t.Fatalf("waited too long: %s", what)
		}
		r.step()
		r.main.Arm(&r.guard, time.Millisecond)
		r.main.Step(true)
	}
	r.main.Remove(&r.guard)
}

func (r *rig) jump(d time.Duration) {
	r.clock.ahead += d
	r.step()
}

// parse reads a cluster from YAML.
func parse(t testing.TB, yaml string) *clusterv3.Cluster {
	t.Helper()
	c := &clusterv3.Cluster{}
	if _, err := config.Parse("c.yaml", []byte(yaml), c, config.Options{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// add takes a static cluster in.
func (r *rig) add(yaml string) *cluster.Cluster {
	r.t.Helper()
	c := parse(r.t, yaml)
	if err := r.m.AddStatic(c); err != nil {
		r.t.Fatal(err)
	}
	return r.m.Slot(c.GetName()).Load()
}

// update takes a cluster of the API in.
func (r *rig) update(yaml string) bool {
	r.t.Helper()
	changed, err := r.m.Update(parse(r.t, yaml), "v")
	if err != nil {
		r.t.Fatal(err)
	}
	return changed
}

func (r *rig) values() map[string]string {
	for _, w := range r.workers {
		sn := r.store.Begin(w.Stats)
		w.Stats.Snapshot(sn)
		r.store.Collect(sn)
	}
	r.m.UpdateGauges()
	r.store.Collect()
	out := make(map[string]string)
	for line := range strings.SplitSeq(string(stats.WriteAll(r.store.Text(stats.Query{}))), "\n") {
		if name, v, ok := strings.Cut(line, ": "); ok {
			out[name] = v
		}
	}
	return out
}

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

// pick chooses a host on the first worker.
func (r *rig) pick(c *cluster.Cluster) *host.Host { return c.Pick(&lb.Context{W: r.workers[0]}) }

func addresses(c *cluster.Cluster) []string {
	var out []string
	for _, h := range c.Hosts() {
		out = append(out, h.Address.String())
	}
	return out
}

// fakeDNS answers when the test says so.
type fakeDNS struct {
	asked    []*question
	families map[string]dns.Family // that were asked for last
}

type question struct {
	name string
	done func(dns.Result)
	over bool
}

func (q *question) Cancel() { q.over = true }

func (f *fakeDNS) Resolve(name string, family dns.Family, done func(dns.Result)) dns.Query {
	if f.families == nil {
		f.families = map[string]dns.Family{}
	}
	f.families[name] = family
	q := &question{name: name, done: done}
	f.asked = append(f.asked, q)
	return q
}

// answerTTL answers with addresses that live for ttl; all but the first one live a second longer.
func (f *fakeDNS) answerTTL(t testing.TB, name string, ttl time.Duration, ips ...string) {
	t.Helper()
	for i, q := range f.asked {
		if q.name == name && !q.over {
			f.asked = slices.Delete(f.asked, i, i+1)
			var res dns.Result
			for i, ip := range ips {
				res.Addresses = append(res.Addresses, dns.Address{IP: netip.MustParseAddr(ip), TTL: ttl + time.Duration(i)*time.Second})
			}
			q.done(res)
			return
		}
	}
	t.Fatalf("nobody asked for %s", name)
}

// answer answers the open question for a name.
func (f *fakeDNS) answer(t testing.TB, name string, err error, ips ...string) {
	t.Helper()
	for i, q := range f.asked {
		if q.name == name && !q.over {
			f.asked = slices.Delete(f.asked, i, i+1)
			res := dns.Result{Err: err}
			for _, ip := range ips {
				res.Addresses = append(res.Addresses, dns.Address{IP: netip.MustParseAddr(ip)})
			}
			q.done(res)
			return
		}
	}
	t.Fatalf("nobody asked for %s", name)
}

func (f *fakeDNS) open() (n int) {
	for _, q := range f.asked {
		if !q.over {
			n++
		}
	}
	return n
}

// fakeSource holds subscriptions that the test serves.
type fakeSource struct{ subs []*subscription }

type subscription struct {
	typeURL string
	names   []string
	cb      sub.Callbacks
	closed  bool
}

func (f *fakeSource) Subscribe(_ *corev3.ConfigSource, typeURL string, names []string, _ sub.Stats, cb sub.Callbacks) (sub.Subscription, error) {
	s := &subscription{typeURL: typeURL, names: names, cb: cb}
	f.subs = append(f.subs, s)
	return s, nil
}

func (s *subscription) SetNames(names []string) { s.names = names }
func (s *subscription) Close()                  { s.closed = true }

// send delivers one ClusterLoadAssignment.
func (f *fakeSource) send(t testing.TB, name, yaml string) error {
	t.Helper()
	la := &endpointv3.ClusterLoadAssignment{}
	if _, err := config.Parse("e.yaml", []byte(yaml), la, config.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, s := range f.subs {
		if !s.closed && s.names[0] == name {
			return s.cb.OnUpdate(&sub.Update{Full: true, Resources: []sub.Resource{{Name: name, Body: la}}})
		}
	}
	t.Fatalf("nobody subscribed to %s", name)
	return nil
}

// server starts an upstream and returns its address.
func server(t testing.TB, f nethttp.HandlerFunc) netip.AddrPort {
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return netip.MustParseAddrPort(s.Listener.Addr().String())
}

func hello(w nethttp.ResponseWriter, q *nethttp.Request) {
	_, _ = io.Copy(io.Discard, q.Body)
	_, _ = io.WriteString(w, "hello")
}

// endpoints writes lb_endpoints in YAML.
func endpoints(addrs ...string) string {
	var b strings.Builder
	for i, a := range addrs {
		if i > 0 {
			b.WriteString(", ")
		}
		ap := netip.MustParseAddrPort(a)
		fmt.Fprintf(&b, "{endpoint: {address: {socket_address: {address: %q, port_value: %d}}}}", ap.Addr(), ap.Port())
	}
	return b.String()
}

func static(name string, addrs ...string) string {
	return fmt.Sprintf("{name: %s, load_assignment: {cluster_name: %s, endpoints: [{lb_endpoints: [%s]}]}}", name, name, endpoints(addrs...))
}

// call is one request of a test.
type call struct {
	r      *rig
	w      *event.Worker
	req    pool.Request
	arena  http.Arena
	head   http.HeaderMap
	resp   http.HeaderMap
	hold   bool
	s      codec.ClientStream
	conn   *pool.Conn
	ready  bool
	status int
	done   bool
	failed http.ResetReason
}

// start sends a request to c through worker i.
func (r *rig) start(c *cluster.Cluster, i int, hold bool) *call {
	r.t.Helper()
	x := &call{r: r, w: r.workers[i], hold: hold}
	h := c.Pick(&lb.Context{W: x.w})
	if h == nil {
		r.t.Fatal("no host")
	}
	x.startAt(c, h)
	return x
}

func (x *call) startAt(c *cluster.Cluster, h *host.Host) {
	x.arena.Init(&x.w.Arenas)
	x.head.Init(&x.arena)
	x.resp.Init(&x.arena)
	x.req.Decoder, x.req.Headers, x.req.CB = x, &x.resp, x
	c.Pool(x.w, h, 0, http.HTTP11).Start(&x.req)
}

func (x *call) OnPoolReady(s codec.ClientStream, c *pool.Conn) {
	x.ready, x.s, x.conn = true, s, c
	x.head.AddConst(http.Method, "POST")
	x.head.AddConst(http.Path, "/")
	x.head.AddConst(http.Authority, "u")
	_ = s.EncodeHeaders(&x.head, !x.hold)
}

func (x *call) finish() {
	var b buffer.Buffer
	b.Init(&x.w.Bufs)
	x.s.EncodeData(&b, true)
}

func (x *call) OnPoolFailure(reason http.ResetReason, _ string, _ *host.Host) {
	x.failed = reason
	x.end()
}
func (x *call) end() {
	x.done = true
	x.arena.Release()
}
func (x *call) Decode1xx(*http.HeaderMap) {}
func (x *call) DecodeHeaders(h *http.HeaderMap, end bool) {
	x.status = h.StatusCode()
	if end {
		x.end()
	}
}
func (x *call) DecodeData(b *buffer.Buffer, end bool) {
	b.Reset()
	if end {
		x.end()
	}
}
func (x *call) DecodeTrailers(*http.HeaderMap) { x.end() }
func (x *call) OnReset(reason http.ResetReason, _ string) {
	x.failed = reason
	x.end()
}
func (x *call) OnAboveHighWatermark() {}
func (x *call) OnBelowLowWatermark()  {}
