package listener_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
	"github.com/dragoman-proxy/dragoman/proxy/internal/socket"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is how long a test waits for what must come.
const limit = 20 * time.Second

// fakeClock goes with real time, and jumps where a test says so.
type fakeClock struct {
	clock.Clock
	ahead time.Duration
}

func (c *fakeClock) Mono() int64    { return c.Clock.Mono() + int64(c.ahead) }
func (c *fakeClock) Now() time.Time { return c.Clock.Now().Add(c.ahead) }

// rig is some workers with a listener. The test's goroutine steps them; clients are connections on the first of them.
type rig struct {
	t       testing.TB
	ws      []*event.Worker
	clock   *fakeClock
	store   *stats.Store
	l       *listener.Listener
	guard   []event.Timer
	lend    buffer.Buffer
	at      network.Address
	served  []*server
	accs    []*listener.Acceptor
	logs    []string
	clients []*peer
}

// overDrivers runs a test over the kernel's sockets with each driver.
func overDrivers(t *testing.T, f func(t *testing.T, r *rig)) {
	kinds := []string{event.KindStd}
	if runtime.GOOS == "linux" {
		kinds = append(kinds, event.KindEpoll)
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) { f(t, newRig(t, kind, 1)) })
	}
}

func newRig(t testing.TB, kind string, workers int) *rig {
	r := &rig{t: t, clock: &fakeClock{Clock: sim.NewSteady()}, store: stats.NewStore(), guard: make([]event.Timer, workers)}
	for i := range workers {
		d, err := event.NewDriver(kind)
		if err != nil {
			t.Fatal(err)
		}
		name := "worker_" + string(rune('0'+i))
		w := event.New(event.Config{Index: i, Name: name, Driver: d, Clock: r.clock, Rand: rand.Seeded([32]byte{byte(i)}), Stats: r.store.NewShard(name)})
		w.Bufs.Poison = true
		r.guard[i].Fn = func() {}
		r.ws = append(r.ws, w)
	}
	r.lend.Init(&r.ws[0].Bufs)
	r.l = r.listener("l", addr("127.0.0.1:0"))
	r.chains(&listener.Chain{Name: "all", Terminal: &terminal{r: r}})
	t.Cleanup(r.end)
	return r
}

// listener makes a listener with stats and a log.
func (r *rig) listener(name string, at network.Address) *listener.Listener {
	scope := r.store.Root().Scope("listener").Scope(name)
	l := &listener.Listener{Name: name, Address: at, Spec: event.ListenSpec{Address: at, ReusePort: len(r.ws) > 1},
		Stats: scope.Group(stats.Listener), ConfigStats: scope.Group(stats.ListenerConfig), Logs: accesslog.Loggers{r}}
	for range r.ws {
		l.WorkerStats = append(l.WorkerStats, scope.Scope("worker").Group(stats.ListenerWorker))
	}
	return l
}

// chains gives the listener chains.
func (r *rig) chains(list ...*listener.Chain) {
	r.t.Helper()
	set, err := listener.NewChains(list, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.l.SetChains(set)
}

// open lets the listener accept, on the first n workers.
func (r *rig) open(n int) {
	r.t.Helper()
	for _, w := range r.ws[:n] {
		a, err := listener.Open(r.l, w, socket.Kernel{})
		if err != nil {
			r.t.Fatal(err)
		}
		if err := a.Start(); err != nil {
			r.t.Fatal(err)
		}
		r.at = a.LocalAddress()
		r.l.Spec.Address = r.at
		r.accs = append(r.accs, a)
	}
}

func (r *rig) end() {
	for _, a := range r.accs {
		a.Close()
	}
	for _, c := range r.clients {
		c.c.Close(network.NoFlush, "")
	}
	for _, w := range r.ws {
		listener.CloseAll(w)
		w.Step(false)
	}
	for name, v := range r.values() {
		if strings.HasSuffix(name, "_active") && v != "0" {
			r.t.Errorf("%s is %s in the end", name, v)
		}
	}
	if n := r.l.Active(); n != 0 {
		r.t.Errorf("%d connections are counted in the end", n)
	}
	for _, w := range r.ws {
		if n := w.Bufs.Live(); n != 0 {
			r.t.Errorf("%s: %d slabs leaked", w.Name, n)
		}
		w.Driver.Close()
	}
}

// Log implements accesslog.Logger.
func (r *rig) Log(_ network.Dispatcher, i *stream.Info, _ accesslog.Type) {
	line := i.Conn.Entered().ListenerName + "/" + i.Conn.Entered().ChainName + " " + string(i.Flags.AppendShort(nil))
	for _, s := range []string{i.Details, i.TerminationDetails, i.Conn.Ended().CloseReason} {
		if s != "" {
			line += " " + s
		}
	}
	r.logs = append(r.logs, line)
}

// run steps the workers until the condition holds.
func (r *rig) run(what string, until func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(limit)
	for !until() {
		if time.Now().After(deadline) {
			r.t.Fatalf("it did not come true that %s", what)
		}
		r.step()
	}
}

func (r *rig) step() (done int) {
	for _, w := range r.ws {
		done += w.Step(false)
	}
	if done == 0 {
		for i, w := range r.ws {
			w.Arm(&r.guard[i], time.Millisecond)
			w.Step(true)
			w.Remove(&r.guard[i])
		}
	}
	return done
}

// settle steps until nothing has happened for a while.
func (r *rig) settle() {
	for idle := 0; idle < 10; idle++ {
		if r.step() > 0 {
			idle = 0
		}
	}
}

// peer is a client.
type peer struct {
	r      *rig
	c      *conn.Conn
	got    []byte
	up     bool
	eof    bool
	closed bool
	why    conn.Closed
}

func (p *peer) OnConnected()            { p.up = true }
func (p *peer) OnData(b []byte) int     { p.got = append(p.got, b...); return len(b) }
func (p *peer) OnEOF()                  { p.eof = true }
func (p *peer) OnHighWatermark()        {}
func (p *peer) OnLowWatermark()         {}
func (p *peer) OnClose(why conn.Closed) { p.closed, p.why = true, why }

func (p *peer) send(s string) {
	p.r.lend.Borrow([]byte(s))
	p.c.WriteData(&p.r.lend)
}

// dial connects a client.
func (r *rig) dial() *peer {
	p := &peer{r: r}
	p.c = conn.Dial(r.ws[0], &event.ConnectSpec{Address: r.at}, nil, p)
	r.clients = append(r.clients, p)
	r.run("the client is connected", func() bool { return p.up })
	return p
}

// terminal serves connections and notes what it is told.
type terminal struct {
	r    *rig
	name string
}

func (t *terminal) NewHandler(c *conn.Conn) conn.Handler {
	s := &server{c: c, name: t.name}
	t.r.served = append(t.r.served, s)
	return s
}

type server struct {
	c          *conn.Conn
	name       string
	got        []byte
	begun, up  int
	eof        bool
	closed     int
	drains     int
	beforeOpen bool // data came before OnNewConnection
}

func (s *server) OnNewConnection() { s.begun++ }
func (s *server) OnConnected()     { s.up++ }
func (s *server) OnData(b []byte) int {
	s.beforeOpen = s.beforeOpen || s.begun == 0
	s.got = append(s.got, b...)
	return len(b)
}
func (s *server) OnEOF()                { s.eof = true }
func (s *server) OnHighWatermark()      {}
func (s *server) OnLowWatermark()       {}
func (s *server) OnClose(_ conn.Closed) { s.closed++ }
func (s *server) OnDrain()              { s.drains++ }

// values returns all stats.
func (r *rig) values() map[string]string {
	for _, w := range r.ws {
		sn := r.store.Begin(w.Stats)
		w.Stats.Snapshot(sn)
		r.store.Collect(sn)
	}
	out := make(map[string]string)
	for line := range strings.SplitSeq(string(stats.WriteAll(r.store.Text(stats.Query{}))), "\n") {
		if name, v, ok := strings.Cut(line, ": "); ok {
			out[strings.TrimPrefix(name, "listener.l.")] = v
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
