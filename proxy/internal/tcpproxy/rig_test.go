package tcpproxy_test

import (
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/tcpproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is how long a test waits for what must come.
const limit = 60 * time.Second

// fakeClock goes with real time, and jumps where a test says so.
type fakeClock struct {
	clock.Clock
	ahead time.Duration
}

func (c *fakeClock) Mono() int64    { return c.Clock.Mono() + int64(c.ahead) }
func (c *fakeClock) Now() time.Time { return c.Clock.Now().Add(c.ahead) }

// spy counts what a driver's Splicer is asked for.
type spy struct {
	event.Driver
	event.Splicer
	in, pipes, most int
}

func (s *spy) NewPipe(size int) (event.Pipe, syscall.Errno) {
	p, e := s.Splicer.NewPipe(size)
	if e == 0 {
		s.pipes++
		s.most = max(s.most, s.pipes)
	}
	return p, e
}

func (s *spy) ClosePipe(p event.Pipe) { s.pipes--; s.Splicer.ClosePipe(p) }

func (s *spy) SpliceIn(h event.Handle, p event.Pipe, n int) (int, syscall.Errno) {
	k, e := s.Splicer.SpliceIn(h, p, n)
	s.in += k
	return k, e
}

// rig is one worker with a listening socket, a TCP proxy behind it and a cluster. The test's goroutine steps the worker; its peers
// are the standard library's, on goroutines.
type rig struct {
	t        testing.TB
	w        *event.Worker
	clock    *fakeClock
	spy      *spy // nil if the driver cannot splice
	store    *stats.Store
	clusters *cluster.Manager
	cfg      *tcpproxy.Config
	at       network.Address
	prepare  func(c *conn.Conn)
	guard    event.Timer
	logs     []string
	tried    int // hosts that the last logged session could not be connected to
	peers    sync.WaitGroup
}

// kind of a rig: a driver, or the epoll driver where a filter wants to see the bytes.
type kind struct {
	name, driver string
	keep         bool
}

func kinds() []kind {
	list := []kind{{"std", event.KindStd, false}}
	if runtime.GOOS == "linux" {
		list = append(list, kind{"splice", event.KindEpoll, false}, kind{"copy", event.KindEpoll, true})
	}
	return list
}

func overKinds(t *testing.T, f func(t *testing.T, k kind)) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) { f(t, k) })
	}
}

// options change what newRig builds.
type options struct {
	proxy   func(p *tcpv3.TcpProxy)
	cluster func(c *clusterv3.Cluster)
	buffer  int
}

// newRig makes a proxy to the upstream at up.
func newRig(t testing.TB, k kind, up net.Addr, o options) *rig {
	t.Helper()
	d, err := event.NewDriver(k.driver)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, clock: &fakeClock{Clock: sim.NewSteady()}, store: stats.NewStore()}
	if s, ok := d.(event.Splicer); ok {
		r.spy = &spy{Driver: d, Splicer: s}
		d = r.spy
	}
	r.w = event.New(event.Config{Name: "worker_0", Driver: d, Clock: r.clock, Rand: rand.Seeded([32]byte{1}), Stats: r.store.NewShard("worker_0")})
	r.w.Bufs.Poison = true
	r.guard.Fn = func() {}
	if k.keep {
		r.prepare = func(c *conn.Conn) { c.KeepBytes(true) }
	}
	r.clusters = cluster.NewManager(&cluster.Deps{Main: r.w, Workers: []*event.Worker{r.w}, Store: r.store})
	c := staticCluster("up", up)
	if o.cluster != nil {
		o.cluster(c)
	}
	if err := r.clusters.AddStatic(c); err != nil {
		t.Fatal(err)
	}
	r.clusters.Start()
	p := &tcpv3.TcpProxy{StatPrefix: "t", ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: "up"}}
	if o.proxy != nil {
		o.proxy(p)
	}
	if o.buffer == 0 {
		o.buffer = 1 << 20
	}
	r.cfg, err = tcpproxy.New(p, &tcpproxy.Deps{Root: r.store.Root(), Slot: r.clusters.Slot, Lookup: r.clusters.Lookup, BufferLimit: o.buffer,
		AccessLogs: func([]*accesslogv3.AccessLog) (accesslog.Loggers, error) { return accesslog.Loggers{r}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	r.listen()
	t.Cleanup(r.end)
	return r
}

func staticCluster(name string, addr net.Addr) *clusterv3.Cluster {
	a := addr.(*net.TCPAddr)
	socket := &corev3.SocketAddress{Address: a.IP.String(), PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(a.Port)}}
	return &clusterv3.Cluster{Name: name, LoadAssignment: &endpointv3.ClusterLoadAssignment{ClusterName: name,
		Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{
			Endpoint: &endpointv3.Endpoint{Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: socket}}}}}}}}}}
}

// Log implements accesslog.Logger.
func (r *rig) Log(_ network.Dispatcher, i *stream.Info, when accesslog.Type) {
	line := when.String() + " " + string(i.Flags.AppendShort(nil))
	if i.Conn.Ended().CloseReason != "" {
		line += " " + i.Conn.Ended().CloseReason
	}
	r.logs = append(r.logs, line)
	r.tried = len(i.Upstream.Tried)
}

func (r *rig) listen() {
	r.t.Helper()
	h, err := r.w.Driver.Listen(&event.ListenSpec{Address: network.AddrFrom(netip.MustParseAddrPort("127.0.0.1:0"))})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.w.Register(h, &acceptor{r, h}); err != nil {
		r.t.Fatal(err)
	}
	r.at = r.w.Driver.LocalAddress(h)
}

type acceptor struct {
	r *rig
	h event.Handle
}

// OnReady does what a listener does.
func (a *acceptor) OnReady(event.Events) {
	for {
		h, peer, e := a.r.w.Driver.Accept(a.h)
		if e != 0 {
			return
		}
		c := conn.New(a.r.w, h, nil)
		c.Info.Remote = peer
		if a.r.prepare != nil {
			a.r.prepare(c)
		}
		s := a.r.cfg.NewHandler(c)
		if c.Start(s) == nil {
			s.(interface{ OnNewConnection() }).OnNewConnection()
		}
	}
}

// end closes everything and looks for what was left.
func (r *rig) end() {
	for _, h := range r.w.Handlers() {
		switch h := h.(type) {
		case *conn.Conn:
			h.Close(network.NoFlush, "")
		case *acceptor:
			r.w.Close(h.h, false)
		}
	}
	r.run("the peers ended", r.idle)
	r.peers.Wait()
	for name, v := range r.values() {
		if strings.HasSuffix(name, "_active") || strings.HasSuffix(name, "_buffered") {
			if v != "0" {
				r.t.Errorf("%s is %s in the end", name, v)
			}
		}
	}
	if r.spy != nil {
		if n := tcpproxy.ClosePipes(r.w); n != 0 || r.spy.pipes != 0 {
			r.t.Errorf("%d pipes leaked, %d by the driver's count", n, r.spy.pipes)
		}
	}
	r.w.Step(false)
	if n := r.w.Bufs.Live(); n != 0 {
		r.t.Errorf("%d slabs leaked", n)
	}
	r.w.Driver.Close()
}

func (r *rig) idle() bool {
	return !slices.ContainsFunc(r.w.Handlers(), func(h event.Handler) bool { _, ok := h.(*conn.Conn); return ok })
}

// run steps the worker until the condition holds.
func (r *rig) run(what string, until func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(limit)
	for !until() {
		if time.Now().After(deadline) {
			r.t.Fatalf("it did not come true that %s", what)
		}
		if r.w.Step(false) == 0 {
			r.w.Arm(&r.guard, time.Millisecond)
			r.w.Step(true)
			r.w.Remove(&r.guard)
		}
	}
}

// settle steps the worker until nothing has happened for a while.
func (r *rig) settle() {
	for idle := 0; idle < 20; {
		if r.w.Step(false) > 0 {
			idle = 0
			continue
		}
		idle++
		r.w.Arm(&r.guard, time.Millisecond)
		r.w.Step(true)
		r.w.Remove(&r.guard)
	}
}

// jump lets time pass.
func (r *rig) jump(d time.Duration) {
	r.clock.ahead += d
	r.settle()
}

// peer runs f on a goroutine and returns what tells that it has ended. Errors are the test's.
func (r *rig) peer(f func() error) (done func() bool) {
	ch := make(chan struct{})
	var err error
	r.peers.Add(1)
	go func() {
		defer r.peers.Done()
		defer close(ch)
		err = f()
	}()
	told := false
	return func() bool {
		select {
		case <-ch:
			if err != nil && !told {
				told = true
				r.t.Error(err)
			}
			return true
		default:
			return false
		}
	}
}

// dial connects a client to the proxy.
func (r *rig) dial() *net.TCPConn {
	r.t.Helper()
	c, err := net.DialTCP("tcp", nil, net.TCPAddrFromAddrPort(r.at.IP))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(limit))
	return c
}

// upstream listens for the proxy.
func upstream(t testing.TB) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// accept takes one connection, while the worker runs.
func (r *rig) accept(l *net.TCPListener) *net.TCPConn {
	r.t.Helper()
	var c *net.TCPConn
	done := r.peer(func() (err error) {
		_ = l.SetDeadline(time.Now().Add(limit))
		c, err = l.AcceptTCP()
		return err
	})
	r.run("the proxy connects", done)
	if c == nil {
		r.t.FailNow()
	}
	r.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(limit))
	return c
}

// values returns all stats.
func (r *rig) values() map[string]string {
	sn := r.store.Begin(r.w.Stats)
	r.w.Stats.Snapshot(sn)
	r.store.Collect(sn)
	out := make(map[string]string)
	for line := range strings.SplitSeq(string(stats.WriteAll(r.store.Text(stats.Query{}))), "\n") {
		if name, v, ok := strings.Cut(line, ": "); ok {
			out[name] = v
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
