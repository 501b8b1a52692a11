package listener_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/network"
	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

func TestPlainConnection(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		r.open(1)
		c := r.dial()
		c.send("hello")
		r.run("it was served", func() bool { return len(r.served) == 1 && string(r.served[0].got) == "hello" })
		s := r.served[0]
		if s.begun != 1 || s.up != 1 || s.beforeOpen {
			t.Errorf("OnNewConnection %d, OnConnected %d, data before: %v", s.begun, s.up, s.beforeOpen)
		}
		i := &s.c.Info
		if i.Local != r.at || i.Entered().ListenerName != "l" || i.Entered().ChainName != "all" {
			t.Errorf("local %v, %+v", i.Local, i.Entered())
		}
		r.want(map[string]string{"downstream_cx_total": "1", "downstream_cx_active": "1", "worker.downstream_cx_total": "1"})
		c.c.Close(network.FlushWrite, "")
		r.run("it is closed", func() bool { return s.closed == 1 })
		r.want(map[string]string{"downstream_cx_destroy": "1", "downstream_cx_active": "0", "worker.downstream_cx_active": "0"})
		if d := cmp.Diff([]string{"l/all -"}, r.logs); d != "" {
			t.Error(d)
		}
	})
}

func TestWildcardAddress(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		r.l.Spec.Address = addr("0.0.0.0:0")
		r.open(1)
		r.at = network.AddrFrom(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), r.at.IP.Port()))
		r.dial()
		r.run("it was served", func() bool { return len(r.served) == 1 })
		if got := r.served[0].c.Info.Local; got != r.at {
			t.Errorf("local address %v, want %v", got, r.at)
		}
	})
}

func TestNoChain(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		r.chains(&listener.Chain{Match: listener.Match{SourcePorts: []uint16{1}}, Terminal: &terminal{r: r}})
		r.open(1)
		c := r.dial()
		r.run("it was refused", func() bool { return c.closed })
		r.want(map[string]string{"no_filter_chain_match": "1", "downstream_cx_total": "0", "downstream_cx_destroy": "0"})
		if d := cmp.Diff([]string{"l/ NR filter_chain_not_found"}, r.logs); d != "" {
			t.Error(d)
		}
	})
}

func TestEmptyChain(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		r.chains(&listener.Chain{Name: "empty"})
		r.open(1)
		c := r.dial()
		r.run("it was refused", func() bool { return c.closed })
		r.want(map[string]string{"network_extension_config_missing": "1", "downstream_cx_total": "1", "downstream_cx_destroy": "1"})
		if d := cmp.Diff([]string{"l/empty - no_filters"}, r.logs); d != "" {
			t.Error(d)
		}
	})
}

// The limit lets as many connections in as it says, and the next one when one of them has gone.
func TestConnectionLimit(t *testing.T) {
	const most = 3
	overDrivers(t, func(t *testing.T, r *rig) {
		r.l.Limit = func() int64 { return most }
		r.open(1)
		var last *peer
		for range most {
			last = r.dial()
		}
		r.run("all are served", func() bool { return len(r.served) == most })
		r.want(map[string]string{"downstream_cx_overflow": "0"})
		over := r.dial()
		r.run("the next one is closed", func() bool { return over.closed })
		r.want(map[string]string{"downstream_cx_overflow": "1", "downstream_cx_active": fmt.Sprint(most)})
		last.c.Close(network.NoFlush, "")
		r.run("there is room", func() bool { return r.l.Active() == most-1 })
		r.dial()
		r.run("another one is served", func() bool { return len(r.served) == most+1 })
	})
}

// door is an Admission that counts.
type door struct{ open, in int }

func (d *door) Admit(*event.Worker) (apistats.CounterIndex, bool) {
	if d.in >= d.open {
		return stats.ListenerDownstreamGlobalCxOverflow, false
	}
	d.in++
	return 0, true
}

func (d *door) Release(*event.Worker) { d.in-- }

func TestAdmission(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		d := &door{open: 1}
		r.l.Admit = d
		r.open(1)
		first := r.dial()
		r.run("it is served", func() bool { return len(r.served) == 1 })
		second := r.dial()
		r.run("the next one is closed", func() bool { return second.closed })
		r.want(map[string]string{"downstream_global_cx_overflow": "1", "downstream_cx_total": "1"})
		first.c.Close(network.NoFlush, "")
		r.run("it was released", func() bool { return d.in == 0 })
	})
}

// waiting is a transport whose handshake never ends.
type waiting struct{}

func (waiting) New(*event.Worker) conn.Transport           { return waiting{} }
func (waiting) Start(*conn.Conn)                           {}
func (waiting) Feed(*conn.Conn, []byte)                    {}
func (waiting) EOF(*conn.Conn)                             {}
func (waiting) Seal(_ *conn.Conn, plain, _ *buffer.Buffer) { plain.Reset() }
func (waiting) CloseNotify(*conn.Conn) bool                { return false }
func (waiting) Destroy()                                   {}

func TestHandshakeTimeout(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		r.chains(&listener.Chain{Name: "tls", Transport: waiting{}, ConnectTimeout: time.Minute, Terminal: &terminal{r: r}})
		r.open(1)
		c := r.dial()
		r.run("it began", func() bool { return len(r.served) == 1 && r.served[0].begun == 1 })
		r.clock.ahead += 59 * time.Second
		r.settle()
		if c.closed {
			t.Fatal("closed before its time")
		}
		r.clock.ahead += 2 * time.Second
		r.run("it was closed", func() bool { return c.closed })
		r.want(map[string]string{"downstream_cx_transport_socket_connect_timeout": "1"})
		if d := cmp.Diff([]string{"l/tls - transport socket timeout was reached transport_socket_timeout"}, r.logs); d != "" {
			t.Error(d)
		}
		if r.served[0].up != 0 {
			t.Error("OnConnected without a handshake")
		}
	})
}

// Chains may be replaced while connections are there; those of a chain can be told to drain, and be closed.
func TestChainsChange(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		old := &listener.Chain{Name: "old", Terminal: &terminal{r, "old"}}
		r.chains(old)
		r.open(1)
		a := r.dial()
		r.run("it is served", func() bool { return len(r.served) == 1 })
		next := &listener.Chain{Name: "new", Terminal: &terminal{r, "new"}}
		r.chains(next)
		b := r.dial()
		r.run("it is served", func() bool { return len(r.served) == 2 })
		if r.served[0].name != "old" || r.served[1].name != "new" {
			t.Errorf("served by %q and %q", r.served[0].name, r.served[1].name)
		}
		old.Drain()
		listener.NotifyDrain(r.ws[0])
		if r.served[0].drains != 1 || r.served[1].drains != 0 || !old.Draining() || next.Draining() {
			t.Error("other connections were told to drain than those of the old chain")
		}
		listener.CloseChain(r.ws[0], old)
		r.run("the old one is closed", func() bool { return a.closed })
		r.settle()
		if b.closed {
			t.Error("the other chain's connection was closed too")
		}
		r.l.Drain()
		if !next.Draining() {
			t.Error("draining the listener does not drain its chain")
		}
		listener.CloseListener(r.ws[0], r.l)
		r.run("the other one is closed", func() bool { return b.closed })
	})
}

// A socket that another listener takes over loses no connection that waits in its queue.
func TestSocketGoesOn(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		r.open(1)
		next := r.listener("l", r.at)
		set, err := listener.NewChains([]*listener.Chain{{Name: "next", Terminal: &terminal{r, "next"}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		next.SetChains(set)
		c := &peer{r: r}
		c.c = conn.Dial(r.ws[0], &event.ConnectSpec{Address: r.at}, nil, c)
		r.clients = append(r.clients, c)
		r.accs[0].Serve(next)
		r.run("it is served", func() bool { return len(r.served) == 1 })
		if r.served[0].name != "next" {
			t.Errorf("served by %q", r.served[0].name)
		}
		c.c.Close(network.NoFlush, "")
		r.run("it is gone", func() bool { return next.Active() == 0 })
	})
}

// Connections that one worker accepts are shared out evenly.
func TestExactBalance(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only epoll hands connections over")
	}
	const workers, n = 3, 12
	r := newRig(t, event.KindEpoll, workers)
	r.l.Balance = listener.NewBalance(r.ws)
	r.open(1)
	for i := range n {
		r.dial().send("hello")
		r.run("it is served", func() bool { return len(r.served) == i+1 && string(r.served[i].got) == "hello" })
	}
	per := make([]int, workers)
	for _, s := range r.served {
		per[s.c.Worker().Index]++
	}
	if d := cmp.Diff([]int{n / workers, n / workers, n / workers}, per); d != "" {
		t.Error(d)
	}
	// Two that leave one worker make room there.
	gone := 0
	for i, s := range r.served {
		if s.c.Worker().Index == 2 && gone < 2 {
			gone++
			r.clients[i].c.Close(network.NoFlush, "")
		}
	}
	r.run("they are gone", func() bool { return r.l.Active() == n-2 })
	for i := range 2 {
		r.dial()
		r.run("it is served", func() bool { return len(r.served) == n+i+1 })
		if w := r.served[n+i].c.Worker().Index; w != 2 {
			t.Errorf("the next one went to worker %d", w)
		}
	}
}

func TestBalanceNeedsSharedHandles(t *testing.T) {
	r := newRig(t, event.KindStd, 1)
	if listener.NewBalance(r.ws) != nil {
		t.Error("connections of the portable driver cannot be handed over")
	}
	r.open(1)
}

// restore is a listener filter that gives the connection another local address.
type restore struct{ to network.Address }

func (f restore) OnAccept(cb network.ListenerCallbacks) network.FilterStatus {
	cb.Info().SetLocal(f.to)
	return network.Continue
}
func (restore) OnData([]byte) network.FilterStatus { return network.Continue }
func (restore) MaxReadBytes() int                  { return 0 }
func (restore) OnClose()                           {}

func TestRedirect(t *testing.T) {
	for _, tc := range []struct{ name, to, want string }{
		{"the listener of the address", "10.1.1.1:80", "exact"},
		{"the listener of the port", "10.2.2.2:80", "wildcard"},
		{"nobody", "10.2.2.2:81", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			overDrivers(t, func(t *testing.T, r *rig) {
				m := map[netip.AddrPort]*listener.Listener{}
				for name, at := range map[string]string{"exact": "10.1.1.1:80", "wildcard": "0.0.0.0:80"} {
					l := r.listener("l", addr(at))
					set, err := listener.NewChains([]*listener.Chain{{Name: name, Terminal: &terminal{r, name}}}, nil)
					if err != nil {
						t.Fatal(err)
					}
					l.SetChains(set)
					m[netip.MustParseAddrPort(at)] = l
				}
				r.l.Redirect = &listener.Table{}
				r.l.Redirect.Set(m)
				r.l.Filters = []listener.Filter{{New: func(network.Dispatcher) network.ListenerFilter { return restore{addr(tc.to)} }}}
				r.open(1)
				c := r.dial()
				c.send("hello")
				r.run("it is served", func() bool { return len(r.served) == 1 && string(r.served[0].got) == "hello" })
				if got := r.served[0].name; got != tc.want {
					t.Errorf("served by %q, want %q", got, tc.want)
				}
				c.c.Close(network.NoFlush, "")
				r.run("it is gone", func() bool { return r.served[0].closed == 1 })
				for _, l := range m {
					if n := l.Active(); n != 0 {
						t.Errorf("%d connections are counted in the end", n)
					}
				}
			})
		})
	}
}
