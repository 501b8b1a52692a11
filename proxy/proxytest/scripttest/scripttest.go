// Package scripttest talks to a whole proxy in plain text: a test sends bytes, says what upstreams answer, moves the clock, and reads
// what came back.
//
// Everything runs on the test's goroutine over a simulated network (package proxy/internal/event/sim), so that hours pass at once and
// every run is the same. Nothing goes wrong on that network unless a script makes it. It checks at the end that nothing leaked.
package scripttest

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest/simtest"
)

// Proxy is a proxy with one worker in a world of its own.
type Proxy struct {
	t     testing.TB
	w     *sim.World
	sys   simtest.System
	at    network.Address
	mode  Mode
	peers []*sim.Conn
}

// stats are what a whole proxy can tell.
type stats interface{ Stats() map[string]uint64 }

// settle is how long things may take that take no time.
const settle = 50 * time.Millisecond

// Start starts a proxy. In its bootstrap LISTEN stands for its socket address, and UPSTREAM_0, UPSTREAM_1 and so on for those of the
// upstreams. Its peers speak plain HTTP/1; see Mode.Start for the others.
func Start(t testing.TB, bootstrap string, upstreams ...Upstream) *Proxy {
	t.Helper()
	return start(t, Mode{}, bootstrap, upstreams)
}

func start(t testing.TB, m Mode, bootstrap string, upstreams []Upstream) *Proxy {
	t.Helper()
	p := &Proxy{t: t, w: sim.NewWorld(1), at: address(10, 1), mode: m}
	net := simtest.Net{Listen: p.at}
	for i := range upstreams {
		a := address(20, i)
		net.Upstreams = append(net.Upstreams, a)
		if upstreams[i].Down {
			continue
		}
		if _, err := p.w.Serve(a, upstreams[i].accept(p)); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if p.sys, err = simtest.Proxy(bootstrap, 1)(p.w, net); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.end)
	return p
}

func address(net byte, i int) network.Address {
	return network.AddrFrom(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, net, byte(i)}), 8080))
}

// Pass lets time pass.
func (p *Proxy) Pass(d time.Duration) {
	p.t.Helper()
	over := false
	p.w.After(d, func() { over = true })
	err := p.w.Run(p.sys.Workers(), func() bool { return over }, d+time.Second)
	if err != nil && !errors.Is(err, sim.ErrStuck) {
		p.t.Fatal(err)
	}
}

// Settle lets everything happen that takes no time.
func (p *Proxy) Settle() { p.t.Helper(); p.Pass(settle) }

// Stat returns a counter or gauge.
func (p *Proxy) Stat(name string) uint64 { return p.sys.(stats).Stats()[name] }

// Stats checks counters and gauges, given as "name value" pairs.
func (p *Proxy) Stats(want map[string]uint64) {
	p.t.Helper()
	got := p.sys.(stats).Stats()
	for name, v := range want {
		if got[name] != v {
			p.t.Errorf("%s is %d, want %d", name, got[name], v)
		}
	}
}

// end closes everything and looks for what is left.
func (p *Proxy) end() {
	for _, c := range p.peers {
		if !c.IsClosed() {
			c.Close()
		}
	}
	p.Pass(time.Minute)
	if busy := p.sys.Busy(); len(busy) > 0 {
		p.t.Errorf("still busy: %s", strings.Join(busy, ", "))
	}
	p.sys.Close()
	p.Pass(time.Minute)
	if leaks := p.sys.Leaks(); len(leaks) > 0 {
		p.t.Errorf("leaks: %s", strings.Join(leaks, ", "))
	}
}
