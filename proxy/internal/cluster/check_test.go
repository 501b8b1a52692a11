package cluster_test

import (
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/health"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// checked are health checks that only a jump of the clock repeats, and no panic.
const checked = "health_checks: [{timeout: 60s, interval: 3600s, no_traffic_interval: 3600s, unhealthy_threshold: 1, healthy_threshold: 1, " +
	"http_health_check: {path: /hz}}], common_lb_config: {healthy_panic_threshold: {value: 0}}"

const nextCheck = time.Hour + time.Second

// patient is an upstream that is well or not, as a test says.
type patient struct {
	at    netip.AddrPort
	sick  atomic.Bool
	asked atomic.Int32
}

func newPatient(t *testing.T) *patient {
	p := &patient{}
	p.at = server(t, func(w nethttp.ResponseWriter, q *nethttp.Request) {
		if q.URL.Path != "/hz" {
			hello(w, q)
			return
		}
		p.asked.Add(1)
		if p.sick.Load() {
			w.WriteHeader(500)
		}
	})
	return p
}

func checkedCluster(name, more string, addrs ...string) string {
	return fmt.Sprintf("{name: %s, %s, %s load_assignment: {cluster_name: %s, endpoints: [{lb_endpoints: [%s]}]}}", name, checked, more, name, endpoints(addrs...))
}

// flagsOf are the hosts' flags, in order.
func flagsOf(c *cluster.Cluster) (out []string) {
	for _, h := range c.Hosts() {
		out = append(out, string(h.AppendFlags(nil)))
	}
	return out
}

// wantFlags waits until the hosts have these flags.
func (r *rig) wantFlags(c *cluster.Cluster, want ...string) {
	r.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !cmp.Equal(flagsOf(c), want) {
		if time.Now().After(deadline) {
			r.t.Fatalf("flags (-want +got):\n%s", cmp.Diff(want, flagsOf(c)))
		}
		r.main.Arm(&r.guard, time.Millisecond)
		r.main.Step(true)
		r.step()
	}
	r.main.Remove(&r.guard)
	r.step()
}

// A cluster waits until each of its hosts has had a result; then traffic goes to those that are well.
func TestChecksWarm(t *testing.T) {
	r := newRig(t, 1)
	good, bad := newPatient(t), newPatient(t)
	bad.sick.Store(true)
	c := r.add(checkedCluster("a", "", bad.at.String(), good.at.String()))
	warm := false
	r.m.WhenWarm(func() { warm = true })
	r.want(map[string]string{"cluster.a.membership_healthy": "0", "cluster.a.membership_total": "2", "cluster.a.health_check.attempt": "0"})
	r.m.Start()
	if warm {
		t.Error("warm before the first round")
	}
	r.run("the first round", func() bool { return warm })
	r.wantFlags(c, "/failed_active_hc", "healthy")
	for range 5 {
		if h := r.pick(c); h == nil || h.Address.IP != good.at {
			t.Fatalf("picked %v", h)
		}
	}
	r.want(map[string]string{"cluster.a.membership_healthy": "1", "cluster.a.membership_total": "2", "cluster.a.health_check.attempt": "2",
		"cluster.a.health_check.success": "1", "cluster.a.health_check.failure": "1", "cluster.a.health_check.healthy": "1",
		"cluster.a.upstream_cx_total": "0", "cluster_manager.warming_clusters": "0"})
	// What changes later is shown to the workers.
	good.sick.Store(true)
	bad.sick.Store(false)
	r.jump(nextCheck)
	r.wantFlags(c, "healthy", "/failed_active_hc")
	if h := r.pick(c); h == nil || h.Address.IP != bad.at {
		t.Errorf("picked %v", h)
	}
	r.m.Close()
	r.jump(nextCheck)
	if n := good.asked.Load() + bad.asked.Load(); n != 4 {
		t.Errorf("%d checks", n)
	}
}

// Hosts without checks do not wait, nor does a cluster without hosts.
func TestChecksNobody(t *testing.T) {
	r := newRig(t, 1)
	r.add(checkedCluster("none", ""))
	off := r.add("{name: none2, " + checked + `, load_assignment: {cluster_name: none2, endpoints: [{lb_endpoints: [
		{endpoint: {health_check_config: {disable_active_health_check: true}, address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]}}`)
	warm := false
	r.m.WhenWarm(func() { warm = true })
	r.m.Start()
	if !warm {
		t.Error("not warm")
	}
	r.wantFlags(off, "healthy")
	r.m.Close()
}

// ignore_new_hosts_until_first_hc.
func TestChecksPending(t *testing.T) {
	r := newRig(t, 1)
	r.m.Start()
	r.update(strings.Replace(checkedCluster("a", "", "127.0.0.1:1"), "common_lb_config: {", "common_lb_config: {ignore_new_hosts_until_first_hc: true, ", 1))
	if n := len(r.m.WarmingClusters()); n != 1 {
		t.Fatalf("%d warming clusters", n)
	}
	c := r.m.WarmingClusters()[0].Cluster
	if d := cmp.Diff([]string{"/failed_active_hc/pending_active_hc"}, flagsOf(c)); d != "" {
		t.Error(d)
	}
	r.wantFlags(c, "/failed_active_hc")
	r.want(map[string]string{"cluster.a.membership_excluded": "0", "cluster.a.membership_healthy": "0"})
	r.m.Close()
}

// A new configuration has hosts of its own, which it checks while the old one serves. A cluster that goes is checked no more.
func TestChecksUpdate(t *testing.T) {
	r := newRig(t, 1)
	r.m.Start()
	p := newPatient(t)
	r.update(checkedCluster("a", "", p.at.String()))
	r.run("warm", func() bool { return r.m.Lookup("a") != nil })
	first := r.m.Lookup("a").Load()
	r.update(checkedCluster("a", "connect_timeout: 2s,", p.at.String()))
	if r.m.Lookup("a").Load() != first {
		t.Error("the new cluster serves before it is warm")
	}
	r.want(map[string]string{"cluster.a.health_check.healthy": "1", "cluster.a.membership_healthy": "1"})
	r.run("warm", func() bool { return r.m.Lookup("a").Load() != first })
	second := r.m.Lookup("a").Load()
	if second.Hosts()[0] == first.Hosts()[0] {
		t.Error("the host of one configuration is another's, too")
	}
	r.wantFlags(second, "healthy")
	r.want(map[string]string{"cluster.a.health_check.healthy": "1", "cluster.a.membership_healthy": "1", "cluster.a.health_check.attempt": "2"})
	r.m.Remove("a")
	r.jump(nextCheck)
	if n := p.asked.Load(); n != 2 {
		t.Errorf("%d checks", n)
	}
	r.want(map[string]string{"cluster.a.health_check.healthy": ""})
	// One that is replaced before it was warm.
	r.update(checkedCluster("b", "", p.at.String()))
	r.update(static("b", "10.0.0.1:80"))
	r.step()
	r.want(map[string]string{"cluster.b.health_check.healthy": "", "cluster.b.membership_healthy": "1"})
}

func eds(more string) string {
	return "{name: a, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}, " + more + checked + "}"
}

func assign(addrs ...string) string {
	return "{cluster_name: a, endpoints: [{lb_endpoints: [" + endpoints(addrs...) + "]}]}"
}

// A host that endpoint discovery takes away stays as long as it is well.
func TestChecksRetain(t *testing.T) {
	r := newRig(t, 1)
	r.m.Start()
	p, q := newPatient(t), newPatient(t)
	r.update(eds(""))
	send := func(addrs ...string) {
		t.Helper()
		if err := r.eds.send(t, "a", assign(addrs...)); err != nil {
			t.Fatal(err)
		}
	}
	send(p.at.String(), q.at.String())
	r.run("warm", func() bool { return r.m.Lookup("a") != nil })
	c := r.m.Lookup("a").Load()
	r.wantFlags(c, "healthy", "healthy")
	gone := c.Hosts()[0]
	send(q.at.String())
	r.wantFlags(c, "healthy", "/pending_dynamic_removal")
	r.want(map[string]string{"cluster.a.membership_total": "2", "cluster.a.membership_change": "1", "cluster.a.membership_healthy": "2"})
	send(p.at.String(), q.at.String()) // it comes back
	r.wantFlags(c, "healthy", "healthy")
	if c.Hosts()[0] != gone {
		t.Error("the host is another one")
	}
	send(q.at.String())
	p.sick.Store(true)
	r.jump(nextCheck)
	r.wantFlags(c, "healthy")
	if !gone.Has(host.Removed) || gone.Has(host.Checked) {
		t.Error("the host is not removed")
	}
	r.want(map[string]string{"cluster.a.membership_total": "1", "cluster.a.membership_change": "2", "cluster.a.health_check.healthy": "1"})
	send(p.at.String(), q.at.String()) // as a new host
	r.wantFlags(c, "/failed_active_hc", "healthy")
	send(q.at.String()) // one that is not well goes at once
	r.wantFlags(c, "healthy")
	r.m.Close()
}

// ignore_health_on_host_removal.
func TestChecksRemoveAtOnce(t *testing.T) {
	r := newRig(t, 1)
	r.m.Start()
	p, q := newPatient(t), newPatient(t)
	r.update(eds("ignore_health_on_host_removal: true, "))
	if err := r.eds.send(t, "a", assign(p.at.String(), q.at.String())); err != nil {
		t.Fatal(err)
	}
	r.run("warm", func() bool { return r.m.Lookup("a") != nil })
	c := r.m.Lookup("a").Load()
	if err := r.eds.send(t, "a", assign(q.at.String())); err != nil {
		t.Fatal(err)
	}
	r.wantFlags(c, "healthy")
	r.m.Close()
}

// Hosts that are retained keep their place among the localities.
func TestChecksRetainLocality(t *testing.T) {
	r := newRig(t, 1)
	r.m.Start()
	p, q := newPatient(t), newPatient(t)
	r.update(strings.Replace(eds(""), "common_lb_config: {", "common_lb_config: {locality_weighted_lb_config: {}, ", 1))
	place := func(zone string, at netip.AddrPort) string {
		return "{locality: {zone: " + zone + "}, load_balancing_weight: 1, lb_endpoints: [" + endpoints(at.String()) + "]}"
	}
	if err := r.eds.send(t, "a", "{cluster_name: a, endpoints: ["+place("za", p.at)+", "+place("zb", q.at)+"]}"); err != nil {
		t.Fatal(err)
	}
	r.run("warm", func() bool { return r.m.Lookup("a") != nil })
	c := r.m.Lookup("a").Load()
	if err := r.eds.send(t, "a", "{cluster_name: a, endpoints: ["+place("zb", q.at)+"]}"); err != nil {
		t.Fatal(err)
	}
	r.wantFlags(c, "healthy", "/pending_dynamic_removal")
	for range 20 {
		if h := r.pick(c); h == nil || h.Address.IP != q.at {
			t.Fatalf("picked %v", h) // a place without a weight gets nothing
		}
	}
	r.m.Close()
}

// A host that says in an answer that it is not well gets no more requests until its checks say otherwise.
func TestFailNow(t *testing.T) {
	r := newRig(t, 1)
	p, q := newPatient(t), newPatient(t)
	c := r.add(checkedCluster("a", "", p.at.String(), q.at.String()))
	r.m.Start()
	r.wantFlags(c, "healthy", "healthy")
	r.m.FailNow(c, c.Hosts()[0])
	r.wantFlags(c, "/failed_active_hc/excluded_via_immediate_hc_fail", "healthy")
	if h := r.pick(c); h == nil || h.Address.IP != q.at {
		t.Errorf("picked %v", h)
	}
	r.want(map[string]string{"cluster.a.membership_excluded": "1", "cluster.a.membership_healthy": "1", "cluster.a.health_check.passive_failure": "1"})
	r.jump(nextCheck)
	r.wantFlags(c, "healthy", "healthy")
	r.m.Close()
	r.m.FailNow(c, c.Hosts()[0]) // too late
	r.step()
}

// The connections of a host that fails go after their last stream; those of tcp_proxy only if the cluster says so.
func TestConnectionsOfFailed(t *testing.T) {
	for _, closing := range []bool{false, true} {
		r := newRig(t, 1)
		p := newPatient(t)
		c := r.add(checkedCluster("a", fmt.Sprintf("close_connections_on_host_health_failure: %v,", closing), p.at.String()))
		r.m.Start()
		r.wantFlags(c, "healthy")
		idle := r.start(c, 0, false)
		r.run("the answer", func() bool { return idle.done })
		tcp := &tcpUser{}
		if x, _ := c.DialTCP(r.workers[0], r.pick(c), 0, tcp); x == nil {
			t.Fatal("no connection")
		}
		ended := &tcpUser{}
		x, _ := c.DialTCP(r.workers[0], r.pick(c), 0, ended)
		r.run("the connections", func() bool { return tcp.up && ended.up })
		x.NetConn().Close(0, "")
		p.sick.Store(true)
		r.jump(nextCheck)
		r.wantFlags(c, "/failed_active_hc")
		if tcp.closed != closing {
			t.Errorf("closing %v: closed %v", closing, tcp.closed)
		}
		r.want(map[string]string{"cluster.a.upstream_cx_active": map[bool]string{false: "1", true: "0"}[closing]})
		r.m.Close()
	}
}

type tcpUser struct{ up, closed bool }

func (u *tcpUser) OnConnected()        { u.up = true }
func (u *tcpUser) OnData(b []byte) int { return len(b) }
func (u *tcpUser) OnEOF()              {}
func (u *tcpUser) OnHighWatermark()    {}
func (u *tcpUser) OnLowWatermark()     {}
func (u *tcpUser) OnClose(conn.Closed) { u.closed = true }

// Without traffic checks are rare; the first connection for it changes that.
func TestChecksWithTraffic(t *testing.T) {
	r := newRig(t, 1)
	p := newPatient(t)
	c := r.add(strings.Replace(checkedCluster("a", "", p.at.String()), "no_traffic_interval: 3600s", "no_traffic_interval: 36000s", 1))
	r.m.Start()
	r.wantFlags(c, "healthy")
	r.jump(nextCheck)
	if n := p.asked.Load(); n != 1 {
		t.Errorf("%d checks without traffic", n)
	}
	x := r.start(c, 0, false)
	r.run("the answer", func() bool { return x.done })
	r.jump(10 * time.Hour)
	r.run("the second check", func() bool { return p.asked.Load() == 2 })
	r.wantFlags(c, "healthy")
	r.run("its end", func() bool { return r.values()["cluster.a.health_check.success"] == "2" })
	r.jump(nextCheck)
	r.run("the third check", func() bool { return p.asked.Load() == 3 })
	r.m.Close()
}

// What is read of a health check's configuration and of its endpoints.
func TestHealthConfig(t *testing.T) {
	got := make(chan string, 1)
	at := server(t, func(_ nethttp.ResponseWriter, q *nethttp.Request) {
		b, _ := io.ReadAll(q.Body)
		got <- strings.Join([]string{q.Method, q.RequestURI, q.Host, q.Header.Get("x-add"), q.UserAgent(), string(b)}, " ")
	})
	r := newRig(t, 1)
	r.deps.Headers = func(add []*corev3.HeaderValueOption, remove []string) (health.Edit, error) {
		return func(_ *event.Worker, h *http.HeaderMap, _ *stream.Info) {
			for _, a := range add {
				h.AddName(a.GetHeader().GetKey(), a.GetHeader().GetValue())
			}
			for _, name := range remove {
				h.RemoveName(name)
			}
		}, nil
	}
	c := r.add(fmt.Sprintf(`{name: a, health_checks: [{name: x, timeout: 60s, interval: 3600s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: {
		path: /hz, method: POST, send: {text: "70696e67"}, request_headers_to_add: [{header: {key: x-add, value: one}}], request_headers_to_remove: [user-agent],
		expected_statuses: [{start: 200, end: 201}], response_buffer_size: 10, receive: [{binary: ""}]}}],
		load_assignment: {cluster_name: a, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}},
		health_check_config: {port_value: %d, hostname: name.test, address: {socket_address: {address: 127.0.0.1, port_value: 2}}}}}]}]}}`, at.Port()))
	r.m.Start()
	r.wantFlags(c, "healthy")
	if d := cmp.Diff("POST /hz name.test one Go-http-client/1.1 ping", strings.Replace(<-got, "one  ping", "one Go-http-client/1.1 ping", 1)); d != "" {
		t.Error(d)
	}
	r.want(map[string]string{"cluster.a.health_check.name.x.success": "1"})
	r.m.Close()
}

// The files that take the events of health checks.
func TestEventLogs(t *testing.T) {
	r := newRig(t, 1)
	open := map[string]*logFile{}
	r.deps.EventLog = func(path string) (health.Log, error) {
		if path == "/bad" {
			return nil, errors.New("unable to open file '/bad': No such file or directory")
		}
		open[path] = &logFile{}
		return open[path], nil
	}
	yaml := func(name, second string) string {
		return strings.Replace(checkedCluster(name, "", "127.0.0.1:1"), "{timeout", fmt.Sprintf(`{event_log_path: /one, event_logger: [{name: x, typed_config: {
			"@type": type.googleapis.com/envoy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink, event_log_path: %s}}], timeout`, second), 1)
	}
	want := "health_checks[0].event_logger[0].typed_config.event_log_path: unable to open file '/bad': No such file or directory"
	if err := r.m.AddStatic(parse(t, yaml("a", "/bad"))); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if !open["/one"].released {
		t.Error("a file is held by a cluster that was refused")
	}
	r.add(yaml("a", "/two"))
	r.m.Start()
	r.run("the event", func() bool { return open["/one"].lines == 1 && open["/two"].lines == 1 })
	r.m.Close()
	if !open["/one"].released || !open["/two"].released {
		t.Error("files are held")
	}
}

type logFile struct {
	lines    int
	released bool
}

func (f *logFile) Line([]byte) { f.lines++ }
func (f *logFile) Release()    { f.released = true }

// Many hosts that fail together make one table, not one each.
func TestChecksTogether(t *testing.T) {
	r := newRig(t, 1)
	var addrs []string
	for i := range 100 {
		addrs = append(addrs, fmt.Sprintf("127.0.1.%d:1", i)) // nobody listens there
	}
	yaml := strings.Replace(checkedCluster("a", "", addrs...), "http_health_check: {path: /hz}", "tcp_health_check: {}", 1)
	c := r.add(strings.Replace(yaml, "value: 0", "value: 50", 1))
	r.m.Start()
	r.run("the first round", func() bool { return r.m.Warming() == 0 && r.values()["cluster.a.health_check.failure"] == "100" })
	for _, h := range c.Hosts() {
		h.SetFlag(host.FailedActiveHC, false)
	}
	before := c.Table()
	tables := 0
	r.jump(nextCheck)
	r.run("the second round", func() bool {
		if now := c.Table(); now != before {
			before = now
			tables++
		}
		return r.values()["cluster.a.health_check.failure"] == "200"
	})
	if tables > 50 {
		t.Errorf("%d tables", tables)
	}
	r.m.Close()
}
