package async_test

import (
	"fmt"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/async"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a main loop and a worker, stepped by the test, and real servers.
type rig struct {
	t       *testing.T
	main, w *event.Worker
	store   *stats.Store
	m       *cluster.Manager
	client  *async.Client
	clock   *fakeClock
	guard   event.Timer
	closed  bool
}

// fakeClock goes with real time, and jumps where a test says so.
type fakeClock struct {
	clock.Clock
	ahead time.Duration
}

func (c *fakeClock) Mono() int64    { return c.Clock.Mono() + int64(c.ahead) }
func (c *fakeClock) Now() time.Time { return c.Clock.Now().Add(c.ahead) }

func newRig(t *testing.T) *rig {
	r := &rig{t: t, store: stats.NewStore(), clock: &fakeClock{Clock: sim.NewSteady()}}
	worker := func(i int, name string, sh *stats.Shard) *event.Worker {
		d, err := event.NewDriver("")
		if err != nil {
			t.Fatal(err)
		}
		w := event.New(event.Config{Index: i, Name: name, Driver: d, Clock: r.clock, Rand: rand.Seeded([32]byte{byte(i)}), Stats: sh})
		w.Bufs.Poison, w.Arenas.Poison = true, true
		return w
	}
	r.main = worker(-1, "main_thread", r.store.Main())
	r.w = worker(0, "worker_0", r.store.NewShard("worker_0"))
	r.m = cluster.NewManager(&cluster.Deps{Main: r.main, Workers: []*event.Worker{r.w}, Store: r.store})
	r.client = async.New(async.Deps{Clusters: r.m, Root: r.store.Root(), LocalAddress: "10.1.2.3"})
	r.guard.Fn = func() {}
	t.Cleanup(r.close)
	return r
}

// close ends all connections and checks that nothing is left.
func (r *rig) close() {
	if r.closed {
		return
	}
	r.closed = true
	for _, w := range []*event.Worker{r.main, r.w} {
		for _, h := range w.Handlers() {
			if c, ok := h.(*conn.Conn); ok {
				c.Close(network.NoFlush, "")
			}
		}
	}
	r.step()
	for _, w := range []*event.Worker{r.main, r.w} {
		if n := async.Live(w); n != 0 {
			r.t.Errorf("%s: %d streams are left", w.Name, n)
		}
		if b, a := w.Bufs.Live(), w.Arenas.Live(); b != 0 || a != 0 {
			r.t.Errorf("%s: %d slabs, %d chunks are left", w.Name, b, a)
		}
		w.Driver.Close()
	}
	for name, v := range r.values() {
		if (strings.HasSuffix(name, "_active") || strings.HasSuffix(name, "_open")) && v != "0" {
			r.t.Errorf("%s is %s", name, v)
		}
	}
}

func (r *rig) step() {
	for range 3 {
		r.main.Step(false)
		r.w.Step(false)
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
		r.w.Arm(&r.guard, time.Millisecond)
		r.w.Step(true)
	}
	r.w.Remove(&r.guard)
}

// jump lets time pass.
func (r *rig) jump(d time.Duration) {
	r.step()
	r.clock.ahead += d
	r.step()
}

func (r *rig) values() map[string]string {
	if snap := r.store.Begin(r.w.Stats); snap != nil {
		r.w.Stats.Snapshot(snap)
		r.store.Collect(snap)
	}
	r.store.Collect()
	out := map[string]string{}
	for _, l := range strings.Split(string(stats.WriteAll(r.store.Text(stats.Query{}))), "\n") {
		if name, v, ok := strings.Cut(l, ": "); ok {
			out[name] = v
		}
	}
	return out
}

// cluster makes one whose only host is addr; more is further fields.
func (r *rig) cluster(name, addr, more string) {
	r.t.Helper()
	host, port, _ := strings.Cut(addr, ":")
	text := fmt.Sprintf("name: %s\ntype: STATIC\nload_assignment: {cluster_name: %s, endpoints: [{lb_endpoints: [{endpoint: {address: "+
		"{socket_address: {address: %s, port_value: %s}}}}]}]}\n%s", name, name, host, port, more)
	if addr == "" {
		text = fmt.Sprintf("name: %s\ntype: STATIC\n%s", name, more)
	}
	c := &clusterv3.Cluster{}
	if _, err := config.Parse("c.yaml", []byte(text), c, config.Options{}); err != nil {
		r.t.Fatal(err)
	}
	if err := r.m.AddStatic(c); err != nil {
		r.t.Fatal(err)
	}
}

const http2 = `typed_extension_protocol_options:
  envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
    "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
    explicit_http_config: {http2_protocol_options: {}}
`

// serve starts a server that speaks HTTP/1 and HTTP/2 without TLS.
func (r *rig) serve(h nethttp.HandlerFunc) string {
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = &nethttp.Protocols{}
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	r.t.Cleanup(func() { r.close(); s.CloseClientConnections(); s.Close() })
	return s.Listener.Addr().String()
}

// outcome is what a call came to.
type outcome struct {
	answer *filter.Answer
	err    error
	n      int
}

// send starts a call and checks that it does not call back at once.
func (r *rig) send(w *event.Worker, q *filter.Call) (*outcome, filter.Canceler) {
	r.t.Helper()
	o := &outcome{}
	inside := true
	c := r.client.Send(w, q, func(a *filter.Answer, err error) {
		if inside {
			r.t.Error("called back from within Send")
		}
		o.answer, o.err = a, err
		o.n++
	})
	inside = false
	return o, c
}

// call sends a call and waits.
func (r *rig) call(q *filter.Call) *outcome {
	r.t.Helper()
	o, _ := r.send(r.w, q)
	r.run("the answer", func() bool { return o.n > 0 })
	return o
}

func get(cluster string) *filter.Call {
	return &filter.Call{Cluster: cluster, Method: "GET", Path: "/", Authority: "test"}
}

// events is a handler that writes down what it is told.
type events struct {
	t     *testing.T
	s     *async.Stream
	list  []string
	body  strings.Builder
	ended bool
	calls int // to the stream, on the stack
	on    func(what string)
}

func (e *events) note(what string, end bool) {
	if e.ended {
		e.t.Errorf("%s after the end", what)
	}
	if e.calls > 0 {
		e.t.Errorf("%s from within a call to the stream", what)
	}
	e.ended = end
	e.list = append(e.list, what)
	if e.on != nil {
		e.on(what)
	}
}

func (e *events) OnHeaders(h *http.HeaderMap, end bool) {
	e.note(fmt.Sprint("headers ", h.StatusCode(), " ", end), end)
}

func (e *events) OnData(b *buffer.Buffer, end bool) {
	e.body.Write(b.Bytes())
	if end {
		e.note("end", true)
	}
}

func (e *events) OnTrailers(h *http.HeaderMap) {
	v, _ := h.GetName("x-t")
	e.note("trailers "+v, true)
}

func (e *events) OnReset(reason http.ResetReason, details string) {
	e.note(fmt.Sprint("reset ", reason, " ", details), true)
}

func (e *events) OnAboveHighWatermark() { e.note("above", false) }
func (e *events) OnBelowLowWatermark()  { e.note("below", false) }

// do calls the stream and minds that nothing is told meanwhile.
func (e *events) do(f func(s *async.Stream)) {
	e.calls++
	f(e.s)
	e.calls--
}

// start begins a stream with a head.
func (r *rig) start(o *async.Options, method string, end bool, more ...string) *events {
	r.t.Helper()
	e := &events{t: r.t}
	s, err := r.client.Start(r.w, o, e)
	if err != nil {
		r.t.Fatal(err)
	}
	e.s = s
	h := s.Headers()
	h.AddConst(http.Method, method)
	h.AddConst(http.Path, "/")
	h.AddConst(http.Authority, "test")
	for i := 0; i < len(more); i += 2 {
		h.AddName(more[i], more[i+1])
	}
	e.do(func(s *async.Stream) { s.SendHeaders(end) })
	return e
}

func (r *rig) data(text string) *buffer.Buffer {
	b := &buffer.Buffer{}
	b.Init(&r.w.Bufs)
	b.AppendString(text)
	return b
}
