package cluster_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/dns"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

func TestSlots(t *testing.T) {
	r := newRig(t, 1)
	s := r.m.Slot("late")
	if s.Load() != nil || s.Name() != "late" || r.m.Slot("late") != s || r.m.Lookup("late") != nil {
		t.Fatal("a slot without a cluster is not as it should be")
	}
	r.m.Start()
	r.update(static("late", "10.0.0.1:80"))
	if s.Load() == nil || r.m.Lookup("late") != s {
		t.Fatal("the slot does not show the cluster")
	}
	if !r.m.Remove("late") || s.Load() != nil || r.m.Lookup("late") != nil || r.m.Remove("late") {
		t.Fatal("the cluster is not gone")
	}
	if r.m.Slot("late") != s {
		t.Error("a route's slot was lost with the cluster")
	}
}

// Slots that nobody holds go away.
func TestSlotsAreFreed(t *testing.T) {
	r := newRig(t, 1)
	for i := range 5000 {
		r.m.Slot(fmt.Sprint("n", i))
		if i%500 == 0 {
			runtime.GC()
		}
	}
	if n := r.m.Unbound(); n > 2000 {
		t.Errorf("%d slots are kept for nobody", n)
	}
}

// Readers find every cluster that exists, while others come and go.
func TestLookupWhileWriting(t *testing.T) {
	r := newRig(t, 1)
	r.m.Start()
	r.update(static("stays", "10.0.0.1:80"))
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		bad := 0
		for {
			select {
			case <-stop:
				done <- bad
				return
			default:
			}
			if s := r.m.Lookup("stays"); s == nil || s.Load() == nil {
				bad++
			}
			if s := r.m.Lookup("none"); s != nil {
				bad++
			}
		}
	}()
	for i := range 300 {
		r.update(static(fmt.Sprint("c", i), "10.0.0.1:80"))
		if i >= 20 {
			r.m.Remove(fmt.Sprint("c", i-20))
		}
	}
	close(stop)
	if bad := <-done; bad > 0 {
		t.Errorf("%d wrong answers", bad)
	}
	if r.m.Len() != 21 {
		t.Errorf("%d clusters", r.m.Len())
	}
}

func TestAddUpdateRemove(t *testing.T) {
	r := newRig(t, 1)
	r.add(static("boot", "10.0.0.1:80"))
	if err := r.m.AddStatic(parse(t, static("boot", "10.0.0.1:80"))); err == nil || err.Error() != "name: cluster manager: duplicate cluster 'boot'" {
		t.Errorf("got %v", err)
	}
	r.m.Start()
	if r.update(static("boot", "10.0.0.2:80")) || r.m.Remove("boot") {
		t.Error("a cluster of the bootstrap was changed")
	}
	if !r.update(static("a", "10.0.0.1:80")) || r.update(static("a", "10.0.0.1:80")) {
		t.Error("changed is wrong")
	}
	first := r.m.Slot("a").Load()
	if !r.update(static("a", "10.0.0.2:80")) || r.m.Slot("a").Load() == first {
		t.Error("the cluster was not replaced")
	}
	r.want(map[string]string{"cluster_manager.active_clusters": "2", "cluster_manager.cluster_added": "2", "cluster_manager.cluster_modified": "1",
		"cluster_manager.cluster_removed": "0", "cluster.a.membership_total": "1"})
	if !r.m.Remove("a") {
		t.Error("not removed")
	}
	r.want(map[string]string{"cluster_manager.active_clusters": "1", "cluster_manager.cluster_removed": "1", "cluster.a.membership_total": ""})
}

// A new configuration of a cluster keeps the hosts that both have, with their counters.
func TestHostIdentity(t *testing.T) {
	r := newRig(t, 1)
	r.m.Start()
	r.update(static("a", "10.0.0.1:80", "10.0.0.2:80"))
	before := r.m.Slot("a").Load().Hosts()
	before[0].RqTotal.Add(7)
	r.update(static("a", "10.0.0.3:80", "10.0.0.1:80"))
	after := r.m.Slot("a").Load().Hosts()
	if after[1] != before[0] || after[1].RqTotal.Load() != 7 {
		t.Error("the host lost its identity")
	}
	if after[0] == before[1] || after[0].Index == after[1].Index {
		t.Errorf("indices %d and %d", after[0].Index, after[1].Index)
	}
}

// Streams of a cluster that is replaced or removed end in peace; their connections go with them, and then the cluster's memory.
func TestReplacedClusterEnds(t *testing.T) {
	for _, how := range []string{"replaced", "removed"} {
		t.Run(how, func(t *testing.T) {
			r := newRig(t, 2)
			addr := server(t, hello).String()
			r.m.Start()
			r.update(static("a", addr))
			freed := make(chan struct{})
			func() {
				c := r.m.Slot("a").Load()
				runtime.AddCleanup(c, func(ch chan struct{}) { close(ch) }, freed)
				busy, idle := r.start(c, 0, true), r.start(c, 1, false)
				r.run("requests", func() bool { return busy.ready && idle.done })
				if how == "removed" {
					r.m.Remove("a")
				} else {
					r.update(static("a", "10.0.0.9:80"))
				}
				r.step()
				if n := c.Hosts()[0].CxActive.Load(); n != 1 {
					t.Errorf("%d connections, want the busy one", n)
				}
				late := r.start(c, 0, false) // a stream that held the cluster retries
				r.run("late", func() bool { return late.done })
				busy.finish()
				r.run("end", func() bool { return busy.done })
				r.step()
				if busy.status != 200 || late.status != 200 {
					t.Errorf("got %d and %d", busy.status, late.status)
				}
				if n := c.Hosts()[0].CxActive.Load(); n != 0 {
					t.Errorf("%d connections are left", n)
				}
			}()
			// What the workers still hold of closed sockets and timers goes as they go on.
			r.jump(2 * time.Hour)
			r.run("the memory of the old cluster to be freed", func() bool {
				runtime.GC()
				select {
				case <-freed:
					return true
				default:
					return false
				}
			})
		})
	}
}

// The old cluster serves until the new one has its hosts.
func TestWarming(t *testing.T) {
	const v1 = "{name: a, type: EDS, eds_cluster_config: {eds_config: {path_config_source: {path: /x}}}}"
	const v2 = "{name: a, type: EDS, connect_timeout: 2s, eds_cluster_config: {eds_config: {path_config_source: {path: /x}}}}"
	r := newRig(t, 1)
	r.m.Start()
	r.update(v1)
	s := r.m.Slot("a")
	warm := 0
	r.m.WhenWarm(func() { warm++ })
	if s.Load() != nil || r.m.Warming() != 1 || warm != 0 {
		t.Fatal("a cluster without endpoints serves")
	}
	r.want(map[string]string{"cluster_manager.warming_clusters": "1", "cluster_manager.active_clusters": "0"})
	const one = "{cluster_name: a, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]}"
	if err := r.eds.send(t, "a", one); err != nil {
		t.Fatal(err)
	}
	first := s.Load()
	if first == nil || warm != 1 {
		t.Fatal("not warm")
	}
	h := first.Hosts()[0]
	r.update(v2)
	if s.Load() != first || r.m.Warming() != 1 {
		t.Error("the old one is gone too early")
	}
	r.want(map[string]string{"cluster.a.membership_total": "1"})
	r.update(v1 + " ") // back to the first: what was warming is forgotten
	r.update(v2)
	open := 0
	for _, x := range r.eds.subs {
		if !x.closed {
			open++
		}
	}
	if open != 2 {
		t.Errorf("%d subscriptions are open, want 2", open)
	}
	last := r.eds.subs[len(r.eds.subs)-1]
	r.eds.subs = r.eds.subs[len(r.eds.subs)-1:]
	if err := r.eds.send(t, "a", one); err != nil {
		t.Fatal(err)
	}
	if s.Load() == first || s.Load().ConnectTimeout() != 2*time.Second || last.closed {
		t.Error("the new one does not serve")
	}
	if s.Load().Hosts()[0] != h {
		t.Error("the host lost its identity")
	}
	r.m.Remove("a")
	if !last.closed {
		t.Error("the subscription stays open")
	}
	r.want(map[string]string{"cluster_manager.warming_clusters": "0", "cluster_manager.active_clusters": "0"})
}

func TestEDS(t *testing.T) {
	r := newRig(t, 1)
	r.add("{name: a, type: EDS, eds_cluster_config: {service_name: svc, eds_config: {path_config_source: {path: /x}}}}")
	r.m.Start()
	c := r.m.Slot("a")
	send := func(addrs ...string) error {
		return r.eds.send(t, "svc", fmt.Sprintf("{cluster_name: svc, endpoints: [{lb_endpoints: [%s]}]}", endpoints(addrs...)))
	}
	if err := send("10.0.0.1:80", "10.0.0.2:80", "10.0.0.2:80"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"10.0.0.1:80", "10.0.0.2:80"}, addresses(c.Load())); d != "" {
		t.Error(d)
	}
	keep := c.Load().Hosts()[1]
	if err := send("10.0.0.2:80", "10.0.0.3:80"); err != nil {
		t.Fatal(err)
	}
	if c.Load().Hosts()[0] != keep {
		t.Error("the host lost its identity")
	}
	if err := send("10.0.0.2:80", "10.0.0.3:80"); err != nil {
		t.Fatal(err)
	}
	r.want(map[string]string{"cluster.a.membership_change": "2", "cluster.a.membership_total": "2", "cluster.a.update_no_rebuild": "1",
		"cluster.a.max_host_weight": "1", "cluster.a.default.total_match_count": "7"})
	if err := r.eds.send(t, "svc", "{cluster_name: other}"); err != nil {
		t.Error(err) // the resource's own name counts
	}
	if err := r.eds.subs[0].cb.OnUpdate(&sub.Update{Full: true}); err != nil {
		t.Error(err)
	}
	r.want(map[string]string{"cluster.a.update_empty": "1", "cluster.a.membership_total": "0"})
	err := r.eds.send(t, "svc", "{cluster_name: svc, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: a.b, port_value: 80}}}}]}]}")
	if err == nil || !strings.HasPrefix(err.Error(), `resources["svc"].endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address: malformed IP address: a.b`) {
		t.Errorf("a hostname: %v", err)
	}
}

// Weight, health and metadata change in place.
func TestEDSChangesInPlace(t *testing.T) {
	r := newRig(t, 1)
	r.add("{name: a, type: EDS, eds_cluster_config: {eds_config: {path_config_source: {path: /x}}}}")
	r.m.Start()
	send := func(extra string) {
		t.Helper()
		if err := r.eds.send(t, "a", "{cluster_name: a, endpoints: [{locality: {zone: z}, lb_endpoints: [{"+extra+
			"endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]}"); err != nil {
			t.Fatal(err)
		}
	}
	send("")
	c := r.m.Slot("a").Load()
	h := c.Hosts()[0]
	send("health_status: UNHEALTHY, load_balancing_weight: 5, metadata: {filter_metadata: {envoy.lb: {canary: true}}}, ")
	if c.Hosts()[0] != h || h.Weight() != 5 || !h.Canary() || h.Health() != 2 || h.Locality().Zone != "z" {
		t.Errorf("weight %d, canary %v, health %v", h.Weight(), h.Canary(), h.Health())
	}
	r.want(map[string]string{"cluster.a.membership_change": "1", "cluster.a.membership_healthy": "0", "cluster.a.max_host_weight": "5"})
	send("")
	if h.Weight() != 1 || h.Canary() || h.Health() != 0 {
		t.Error("the changes were not taken back")
	}
}

// A host that leaves takes its idle connections along at once, the others after their last stream.
func TestRemovedHostDrains(t *testing.T) {
	r := newRig(t, 2)
	a, b := server(t, hello).String(), server(t, hello).String()
	r.add("{name: a, type: EDS, eds_cluster_config: {eds_config: {path_config_source: {path: /x}}}}")
	r.m.Start()
	send := func(addrs ...string) {
		t.Helper()
		if err := r.eds.send(t, "a", fmt.Sprintf("{cluster_name: a, endpoints: [{lb_endpoints: [%s]}]}", endpoints(addrs...))); err != nil {
			t.Fatal(err)
		}
	}
	send(a)
	c := r.m.Slot("a").Load()
	old := c.Hosts()[0]
	busy, idle, other := r.start(c, 0, true), r.start(c, 0, false), r.start(c, 1, false)
	r.run("requests", func() bool { return busy.ready && idle.done && other.done })
	send(b)
	r.step()
	if n := old.CxActive.Load(); n != 1 {
		t.Errorf("%d connections to the host that left", n)
	}
	fresh := r.start(c, 1, false)
	r.run("request", func() bool { return fresh.done })
	if fresh.conn.Host() == old {
		t.Error("the host that left was chosen")
	}
	late := &call{r: r, w: r.workers[1]}
	late.startAt(c, old) // it was picked before
	r.run("late", func() bool { return late.done && old.CxActive.Load() == 1 })
	busy.finish()
	r.run("end", func() bool { return busy.done })
	r.step()
	if n := old.CxActive.Load(); n != 0 || busy.status != 200 || late.status != 200 {
		t.Errorf("%d connections, status %d and %d", n, busy.status, late.status)
	}
	send(a)
	if c.Hosts()[0] == old {
		t.Error("a host that was gone came back as the same")
	}
}

func TestStrictDNS(t *testing.T) {
	r := newRig(t, 1)
	r.add(`{name: a, type: STRICT_DNS, dns_failure_refresh_rate: {base_interval: 1s, max_interval: 2s}, load_assignment: {cluster_name: a, endpoints: [
		{lb_endpoints: [{endpoint: {address: {socket_address: {address: x.test, port_value: 80}}}}]},
		{priority: 1, lb_endpoints: [{endpoint: {hostname: named, address: {socket_address: {address: y.test, port_value: 81}}}}]}]}}`)
	warm := false
	r.m.WhenWarm(func() { warm = true })
	r.m.Start()
	if warm || r.dns.open() != 2 {
		t.Fatal("it does not wait for DNS")
	}
	r.dns.answer(t, "y.test", nil, "10.0.1.1")
	if !warm {
		t.Fatal("the first answer should do")
	}
	c := r.m.Slot("a").Load()
	r.dns.answer(t, "x.test", nil, "10.0.0.1", "10.0.0.2")
	if d := cmp.Diff([]string{"10.0.0.1:80", "10.0.0.2:80", "10.0.1.1:81"}, addresses(c)); d != "" {
		t.Error(d)
	}
	hs := c.Hosts()
	if hs[0].Hostname != "x.test" || hs[2].Hostname != "named" || hs[2].Priority() != 1 {
		t.Errorf("%q %q %d", hs[0].Hostname, hs[2].Hostname, hs[2].Priority())
	}
	r.jump(4 * time.Second)
	if r.dns.open() != 0 {
		t.Error("asked too early")
	}
	r.jump(1100 * time.Millisecond)
	if r.dns.open() != 2 {
		t.Error("not asked again")
	}
	r.dns.answer(t, "x.test", fmt.Errorf("timeout"))
	r.dns.answer(t, "y.test", dns.ErrNotFound) // it has no address any more
	if d := cmp.Diff([]string{"10.0.0.1:80", "10.0.0.2:80"}, addresses(c)); d != "" {
		t.Error(d)
	}
	r.jump(1100 * time.Millisecond)
	r.dns.answer(t, "x.test", nil, "10.0.0.2", "10.0.0.3")
	if c.Hosts()[0] != hs[1] {
		t.Error("the host lost its identity")
	}
	r.want(map[string]string{"cluster.a.update_attempt": "5", "cluster.a.update_success": "4", "cluster.a.update_failure": "1", "cluster.a.membership_change": "4"})
}

func TestLogicalDNS(t *testing.T) {
	r := newRig(t, 1)
	r.add("{name: a, type: LOGICAL_DNS, load_assignment: {cluster_name: a, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: x.test, port_value: 80}}}}]}]}}")
	r.m.Start()
	r.dns.answer(t, "x.test", nil, "10.0.0.1", "10.0.0.2")
	c := r.m.Slot("a").Load()
	h := c.Hosts()[0]
	if len(c.Hosts()) != 1 || h.Current().String() != "10.0.0.1:80" || h.Hostname != "x.test" {
		t.Errorf("got %v", addresses(c))
	}
	r.jump(6 * time.Second)
	r.dns.answer(t, "x.test", nil, "10.0.0.7")
	if len(c.Hosts()) != 1 || c.Hosts()[0] != h || h.Current().String() != "10.0.0.7:80" {
		t.Errorf("the host is %v", h.Current())
	}
	r.jump(6 * time.Second)
	r.dns.answer(t, "x.test", nil)
	if h.Current().String() != "10.0.0.7:80" {
		t.Error("an empty answer took the address away")
	}
	r.want(map[string]string{"cluster.a.membership_change": "1", "cluster.a.update_success": "3"})
}

// The extension envoy.cluster.dns is either of the two types, and its fields hold instead of the cluster's.
func TestDNSExtension(t *testing.T) {
	r := newRig(t, 1)
	one := strings.Replace(oneEndpoint, "%", "x.test", 1)
	for name, yaml := range map[string]string{
		"s":     dnsCluster + "dns_refresh_rate: 60s, dns_lookup_family: V6_ONLY}}, dns_refresh_rate: 1s, dns_lookup_family: V4_ONLY, ",
		"l":     dnsCluster + "all_addresses_in_single_endpoint: true, respect_dns_ttl: true, dns_min_refresh_rate: 20s}}, ",
		"named": "cluster_type: {name: envoy.cluster.dns}, ",
	} {
		r.add("{name: " + name + ", " + yaml + strings.ReplaceAll(one, "x.test", name+".test") + "}")
	}
	r.m.Start()
	for name, want := range map[string][]string{"s": {"10.0.0.1:80", "10.0.0.2:80"}, "l": {"10.0.0.1:80"}, "named": {"10.0.0.1:80", "10.0.0.2:80"}} {
		r.dns.answerTTL(t, name+".test", time.Second, "10.0.0.1", "10.0.0.2")
		if d := cmp.Diff(want, addresses(r.m.Slot(name).Load())); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if f := r.dns.families["s.test"]; f != dns.V6Only {
		t.Errorf("family %v", f)
	}
	if f := r.dns.families["named.test"]; f != dns.Auto {
		t.Errorf("family %v", f)
	}
	for _, step := range []struct {
		after time.Duration
		open  int
	}{{4 * time.Second, 0}, {2 * time.Second, 1}, {15 * time.Second, 2}, {40 * time.Second, 3}} { // named after 5 s, l after 20 s, s after 60 s
		if r.jump(step.after); r.dns.open() != step.open {
			t.Errorf("after %v more %d are asked, want %d", step.after, r.dns.open(), step.open)
		}
	}
}

// Breakers' gauges show what is true when they are asked for.
func TestBreakerGauges(t *testing.T) {
	r := newRig(t, 1)
	c := r.add("{name: a, circuit_breakers: {thresholds: [{max_requests: 1, track_remaining: true}]}, " + static("a", server(t, hello).String())[len("{name: a, "):])
	r.m.Start()
	r.want(map[string]string{"cluster.a.circuit_breakers.default.remaining_rq": "1", "cluster.a.circuit_breakers.default.remaining_cx": "1024",
		"cluster.a.circuit_breakers.default.remaining_cx_pools": "18446744073709551615"})
	x := r.start(c, 0, true)
	r.run("ready", func() bool { return x.ready })
	r.want(map[string]string{"cluster.a.circuit_breakers.default.rq_open": "1", "cluster.a.circuit_breakers.high.rq_open": "0",
		"cluster.a.circuit_breakers.default.remaining_rq": "0", "cluster.a.circuit_breakers.default.remaining_cx": "1023"})
	x.finish()
	r.run("end", func() bool { return x.done })
	r.want(map[string]string{"cluster.a.circuit_breakers.default.rq_open": "0", "cluster.a.circuit_breakers.default.remaining_rq": "1"})
	c.Pool(r.workers[0], c.Hosts()[0], 0, http.HTTP11).Drain()
}

// A breaker that was open when its cluster was replaced is not shown as open for ever: the new cluster has breakers of its own.
func TestBreakerGaugesOfAReplacedCluster(t *testing.T) {
	r := newRig(t, 1)
	one := "{name: a, type: STATIC, connect_timeout: %ds, circuit_breakers: {thresholds: [{max_retries: 1}]}}"
	r.update(fmt.Sprintf(one, 1))
	r.m.Start()
	retries := cluster.RetriesOf(r.m.Slot("a").Load())
	if !retries.TryAcquire(0) {
		t.Fatal("the first retry")
	}
	r.want(map[string]string{"cluster.a.circuit_breakers.default.rq_retry_open": "1"})
	r.update(fmt.Sprintf(one, 2))
	r.step()
	if now := cluster.RetriesOf(r.m.Slot("a").Load()); now == retries {
		t.Fatal("the cluster was not replaced")
	}
	r.want(map[string]string{"cluster.a.circuit_breakers.default.rq_retry_open": "0"})
	retries.Release()
	r.want(map[string]string{"cluster.a.circuit_breakers.default.rq_retry_open": "0"})
}

func TestPoolLimit(t *testing.T) {
	r := newRig(t, 1)
	c := r.add("{name: a, circuit_breakers: {thresholds: [{max_connection_pools: 1}]}, " + static("a", "10.0.0.1:80", "10.0.0.2:80")[len("{name: a, "):])
	hs, w := c.Hosts(), r.workers[0]
	p := c.Pool(w, hs[0], 0, http.HTTP11)
	if p == nil || c.Pool(w, hs[0], 0, http.HTTP11) != p || c.Pool(w, hs[1], 0, http.HTTP11) != nil {
		t.Error("there should be one pool")
	}
	if c.Pool(w, hs[1], 1, http.HTTP11) == nil {
		t.Error("the other priority has its own limit")
	}
	x := &call{r: r, w: w}
	x.startAt(c, hs[1])
	if x.failed != http.ResetOverflow {
		t.Errorf("got %v", x.failed)
	}
	r.want(map[string]string{"cluster.a.upstream_cx_pool_overflow": "2"})
}

func TestMaintenance(t *testing.T) {
	r := newRig(t, 1)
	c := r.add(static("a"))
	for share, want := range map[uint32]int{0: 0, 2500: 250, 10000: 1000} {
		c.SetMaintenance(share)
		n := 0
		for range 1000 {
			if c.MaintenanceMode() {
				n++
			}
		}
		if n != want {
			t.Errorf("share %d refuses %d of 1000", share, n)
		}
	}
}

func TestPickPanicIsCounted(t *testing.T) {
	r := newRig(t, 1)
	c := r.add(static("a"))
	if r.pick(c) != nil {
		t.Error("a host of an empty cluster")
	}
	r.want(map[string]string{"cluster.a.lb_healthy_panic": "1", "cluster.a.membership_change": "0"})
}

// A cluster that is taken away while it warms holds nobody up.
func TestRemoveWhileWarming(t *testing.T) {
	r := newRig(t, 1)
	r.m.Start()
	r.update("{name: a, type: EDS, eds_cluster_config: {eds_config: {path_config_source: {path: /x}}}}")
	warm := false
	r.m.WhenWarm(func() { warm = true })
	slot := r.m.Slot("a")
	if !r.m.Remove("a") || !warm || r.m.Warming() != 0 || r.m.Remove("a") || !r.eds.subs[0].closed {
		t.Error("the cluster still warms")
	}
	r.update(static("a", "10.0.0.1:80"))
	if slot.Load() == nil {
		t.Error("the slot was lost")
	}
}

// The life of an answer says when to ask again, if it is to be respected.
func TestRespectTTL(t *testing.T) {
	for _, c := range []struct {
		respect bool
		ttl     time.Duration
		before  time.Duration // not asked again yet
		after   time.Duration
	}{
		{false, time.Second, 4900 * time.Millisecond, 200 * time.Millisecond},
		{true, time.Second, 900 * time.Millisecond, 200 * time.Millisecond},
		{true, time.Minute, 59 * time.Second, 2 * time.Second},
		{true, 0, 4900 * time.Millisecond, 200 * time.Millisecond},
	} {
		r := newRig(t, 1)
		r.add(fmt.Sprintf("{name: a, type: STRICT_DNS, respect_dns_ttl: %v, load_assignment: {cluster_name: a, endpoints: "+
			"[{lb_endpoints: [{endpoint: {address: {socket_address: {address: x.test, port_value: 80}}}}]}]}}", c.respect))
		r.m.Start()
		r.dns.answerTTL(t, "x.test", c.ttl, "10.0.0.1", "10.0.0.2")
		r.jump(c.before)
		if r.dns.open() != 0 {
			t.Errorf("%+v: asked too early", c)
		}
		r.jump(c.after)
		if r.dns.open() != 1 {
			t.Errorf("%+v: not asked again", c)
		}
		r.m.Close()
	}
}
