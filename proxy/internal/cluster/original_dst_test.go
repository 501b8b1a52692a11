package cluster_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
)

// dst is a cluster of the type with more fields.
func dst(name, fields string) string {
	return "{name: " + name + ", type: ORIGINAL_DST, lb_policy: CLUSTER_PROVIDED, " + fields + "}"
}

// asking is a pick with these headers, on worker i.
func (r *rig) asking(i int, lines ...string) *lb.Context {
	var arena http.Arena
	arena.Init(&http.ArenaPool{})
	h := &http.HeaderMap{}
	h.Init(&arena)
	for _, l := range lines {
		k, v, _ := strings.Cut(l, ": ")
		h.AddName(k, v)
	}
	return &lb.Context{W: r.workers[i], Headers: h, Info: &stream.Info{Conn: &network.ConnInfo{}}}
}

const overrideHeader = "x-envoy-original-dst-host: "

func TestOriginalDstAddress(t *testing.T) {
	const header, meta = "use_http_header: true", "metadata_key: {key: ns, path: [{key: a}, {key: b}]}"
	restored := func(c *lb.Context) { c.Info.Conn.SetLocal(network.AddrFrom(netip.MustParseAddrPort("10.0.0.1:80"))) }
	said := func(m *network.Metadata, v any) { m.Set("ns", "a", map[string]any{"b": v}) }
	for _, tc := range []struct {
		name, config string
		headers      []string
		change       func(c *lb.Context)
		want         string
		invalid      string
	}{
		{"nothing", header, nil, nil, "", "0"},
		{"the local address", "", nil, restored, "10.0.0.1:80", "0"},
		{"a local address that nobody restored", "", nil, func(c *lb.Context) {
			c.Info.Conn.Local = network.AddrFrom(netip.MustParseAddrPort("10.0.0.1:80"))
		}, "", "0"},
		{"a path", "", nil, func(c *lb.Context) { c.Info.Conn.SetLocal(network.Address{Path: "/x"}) }, "", "0"},
		{"no stream", header, nil, func(c *lb.Context) { c.Info = nil }, "", "0"},
		{"the header", header, []string{overrideHeader + "10.0.0.2:81"}, restored, "10.0.0.2:81", "0"},
		{"the header, IPv6", header, []string{overrideHeader + "[::1]:81"}, nil, "[::1]:81", "0"},
		{"the header that nobody asks for", "", []string{overrideHeader + "10.0.0.2:81"}, restored, "10.0.0.1:80", "0"},
		{"another header", header + ", http_header_name: X-Foo", []string{overrideHeader + "10.0.0.2:81", "x-foo: 10.0.0.3:82"}, nil, "10.0.0.3:82", "0"},
		{"a header with an id", header + ", http_header_name: ':authority'", []string{":authority: 10.0.0.3:82"}, nil, "10.0.0.3:82", "0"},
		{"the first header", header, []string{overrideHeader + "10.0.0.2:81", overrideHeader + "10.0.0.3:82"}, nil, "10.0.0.2:81", "0"},
		{"a header without a port", header, []string{overrideHeader + "10.0.0.2"}, nil, "", "1"},
		{"a header with a name", header, []string{overrideHeader + "localhost:80"}, nil, "", "1"},
		{"an empty header", header, []string{overrideHeader}, nil, "", "1"},
		{"a bad header, and the local address", header, []string{overrideHeader + "x"}, restored, "10.0.0.1:80", "1"},
		{"another port", header + ", upstream_port_override: 99", []string{overrideHeader + "10.0.0.2:81"}, nil, "10.0.0.2:99", "0"},
		{"port 0", "upstream_port_override: 0", nil, restored, "10.0.0.1:0", "0"},
		{"metadata of the stream", meta, nil, func(c *lb.Context) {
			said(c.Info.Metadata(), "10.0.0.4:83")
			said(c.Info.Conn.Metadata(), "10.0.0.5:84")
			restored(c)
		}, "10.0.0.4:83", "0"},
		{"metadata of the connection", meta, nil, func(c *lb.Context) {
			said(c.Info.Metadata(), 7.0)
			said(c.Info.Conn.Metadata(), "10.0.0.5:84")
		}, "10.0.0.5:84", "0"},
		{"a list in metadata", meta, nil, func(c *lb.Context) { said(c.Info.Metadata(), []any{"10.0.0.4:83", "x"}) }, "10.0.0.4:83", "0"},
		{"an empty list in metadata", meta, nil, func(c *lb.Context) { said(c.Info.Metadata(), []any{}) }, "", "0"},
		{"bad metadata, and the header", header + ", " + meta, []string{overrideHeader + "10.0.0.2:81"}, func(c *lb.Context) { said(c.Info.Metadata(), "x") },
			"10.0.0.2:81", "1"},
		{"metadata before the header", header + ", " + meta, []string{overrideHeader + "10.0.0.2:81"}, func(c *lb.Context) { said(c.Info.Metadata(), "10.0.0.4:83") },
			"10.0.0.4:83", "0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, 1)
			c := r.add(dst("c", "original_dst_lb_config: {"+tc.config+"}"))
			ctx := r.asking(0, tc.headers...)
			if tc.change != nil {
				tc.change(ctx)
			}
			h := c.Pick(ctx)
			got, total := "", "0"
			if h != nil {
				got, total = h.Address.String(), "1"
				if want := "c" + got; h.Hostname != want || h.Name() != want {
					t.Errorf("it is called %q, want %q", h.Hostname, want)
				}
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			r.step()
			r.want(map[string]string{"cluster.c.original_dst_host_invalid": tc.invalid, "cluster.c.membership_total": total, "cluster.c.membership_healthy": total,
				"cluster.c.membership_change": total, "cluster.c.default.total_match_count": total})
		})
	}
}

// An address has one host, which all workers share. Two workers that meet it at once have two for a moment.
func TestOriginalDstHostsAreShared(t *testing.T) {
	r := newRig(t, 2)
	u := server(t, hello)
	c := r.add(dst("c", "original_dst_lb_config: {use_http_header: true}, cleanup_interval: 5s"))
	r.m.Start()
	pick := func(w int) *host.Host { return c.Pick(r.asking(w, overrideHeader+u.String())) }
	one := pick(0)
	if pick(0) != one {
		t.Error("a worker makes two hosts before the main loop has seen the first")
	}
	x := &call{r: r, w: r.workers[0]}
	x.startAt(c, one)
	two := pick(1)
	if two == one {
		t.Error("the main loop has not seen the first yet")
	}
	y := &call{r: r, w: r.workers[1]}
	y.startAt(c, two)
	r.run("two answers", func() bool { return x.done && y.done })
	if x.status != 200 || y.status != 200 {
		t.Errorf("%d and %d", x.status, y.status)
	}
	kept, gone := one, two
	if one.Has(host.Removed) {
		kept, gone = two, one
	}
	if !gone.Has(host.Removed) || kept.Has(host.Removed) {
		t.Errorf("%v and %v", one.Has(host.Removed), two.Has(host.Removed))
	}
	r.run("the second host's connection to close", func() bool { return gone.CxActive.Load() == 0 })
	if kept.CxActive.Load() != 1 {
		t.Errorf("%d connections to the first", kept.CxActive.Load())
	}
	for w := range 2 {
		if pick(w) != kept {
			t.Errorf("worker %d has another host", w)
		}
	}
	if d := cmp.Diff([]string{u.String()}, addresses(c)); d != "" {
		t.Error(d)
	}
	r.want(map[string]string{"cluster.c.membership_total": "1", "cluster.c.membership_change": "1", "cluster.c.upstream_cx_active": "1"})
}

// Hosts that were not used for a whole interval go, unless there is a connection to them.
func TestOriginalDstCleanup(t *testing.T) {
	r := newRig(t, 1)
	c := r.add(dst("c", "original_dst_lb_config: {use_http_header: true}, cleanup_interval: 2s"))
	r.m.Start()
	r.step()
	pick := func(a string) *host.Host { return c.Pick(r.asking(0, overrideHeader+a)) }
	const busy, used, idle = "10.0.0.1:1", "10.0.0.2:2", "10.0.0.3:3"
	pick(busy).CxActive.Add(1)
	pick(used)
	first := pick(idle)
	r.step()
	after := func(change int, want ...string) {
		t.Helper()
		r.jump(2*time.Second + 5*time.Millisecond)
		if d := cmp.Diff(want, addresses(c)); d != "" {
			t.Error(d)
		}
		r.want(map[string]string{"cluster.c.membership_total": fmt.Sprint(len(want)), "cluster.c.membership_change": fmt.Sprint(change)})
	}
	after(3, busy, used, idle)
	pick(used)
	after(4, busy, used)
	if !first.Has(host.Removed) {
		t.Error("the host does not know that it is gone")
	}
	after(5, busy)
	again := pick(idle)
	if again == first {
		t.Error("a host that was gone is back")
	}
	pick(busy).CxActive.Add(-1)
	r.step()
	after(6, busy, idle)
	after(7)
	if pick(idle) == nil {
		t.Error("no host after all had gone")
	}
	// Another configuration begins without hosts, and the old one sweeps no more.
	r = newRig(t, 1)
	r.m.Start()
	r.update(dst("c", "original_dst_lb_config: {use_http_header: true}"))
	old := r.m.Slot("c").Load()
	h := old.Pick(r.asking(0, overrideHeader+idle))
	r.step()
	r.update(dst("c", "original_dst_lb_config: {use_http_header: true, upstream_port_override: 5}"))
	if !h.Has(host.Removed) || len(r.m.Slot("c").Load().Hosts()) != 0 {
		t.Error("hosts of another configuration stay")
	}
	r.want(map[string]string{"cluster.c.membership_total": "0"})
	old.Pick(r.asking(0, overrideHeader+used))
	r.jump(time.Minute)
	r.want(map[string]string{"cluster.c.membership_total": "0"})
}

func TestOriginalDstLimit(t *testing.T) {
	r := newRig(t, 1)
	c := r.add(dst("c", "cleanup_interval: 10s"))
	r.m.Start()
	r.step()
	ctx := r.asking(0)
	pick := func(i int) *host.Host {
		ctx.Info.Conn.SetLocal(network.AddrFrom(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 80)))
		return c.Pick(ctx)
	}
	for i := range cluster.MaxOriginalDstHosts {
		if pick(i) == nil {
			t.Fatalf("no host for the address %d", i)
		}
	}
	if pick(cluster.MaxOriginalDstHosts) != nil {
		t.Error("there is one more")
	}
	if pick(0) == nil {
		t.Error("a host that was there is not found")
	}
	r.run("the hosts to be shown", func() bool { return len(c.Hosts()) == cluster.MaxOriginalDstHosts })
	if pick(cluster.MaxOriginalDstHosts) != nil {
		t.Error("there is one more")
	}
	r.want(map[string]string{"cluster.c.upstream_cx_pool_overflow": "2", "cluster.c.membership_total": fmt.Sprint(cluster.MaxOriginalDstHosts)})
	r.jump(11 * time.Second)
	pick(7)
	r.jump(11 * time.Second)
	if got := addresses(c); len(got) != 1 || got[0] != "10.0.0.7:80" {
		t.Errorf("%d hosts", len(got))
	}
	if pick(cluster.MaxOriginalDstHosts) == nil {
		t.Error("no host although there is room")
	}
}

func TestOriginalDstPickDoesNotAllocate(t *testing.T) {
	r := newRig(t, 1)
	c := r.add(dst("c", "original_dst_lb_config: {use_http_header: true, metadata_key: {key: ns, path: [{key: a}]}}"))
	ctx := r.asking(0, overrideHeader+"10.0.0.2:81")
	c.Pick(ctx)
	r.step()
	if n := testing.AllocsPerRun(100, func() { c.Pick(ctx) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Hosts that come on demand are checked like others, until they go. What the checks find is for pages: an address that is asked for has one
// host.
func TestOriginalDstHealthChecks(t *testing.T) {
	r := newRig(t, 1)
	u := server(t, hello)
	c := r.add(dst("c", "original_dst_lb_config: {use_http_header: true}, cleanup_interval: 2s, "+
		"health_checks: [{timeout: 1s, interval: 1s, no_traffic_interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]"))
	r.m.Start()
	r.step()
	h := c.Pick(r.asking(0, overrideHeader+u.String()))
	r.run("a check", func() bool { return r.values()["cluster.c.health_check.success"] == "1" })
	if c.Pick(r.asking(0, overrideHeader+u.String())) != h {
		t.Error("the host has changed")
	}
	for range 2 {
		r.jump(2*time.Second + 5*time.Millisecond)
	}
	r.want(map[string]string{"cluster.c.membership_total": "0", "cluster.c.health_check.healthy": "0"})
}
