package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/cmd/dragoman/internal/compare"
)

// pages are an admin interface's, by path.
var pages = map[string]string{
	"/server_info": `{"version": "v1", "state": "LIVE", "uptime_current_epoch": "5s"}`,
	"/config_dump": `{"configs": [
 {"@type": "b", "bootstrap": {"node": {"id": "n", "extensions": [{"name": "x"}], "user_agent_name": "envoy"}, "static_resources": {"listeners": []}, "admin": {"address": {"socket_address": {"port_value": 1}}}}, "last_updated": "then"},
 {"@type": "c", "static_clusters": [{"cluster": {"name": "one", "connect_timeout": "1s"}, "last_updated": "then"}], "dynamic_active_clusters": [{"version_info": "1", "cluster": {"name": "two"}}]},
 {"@type": "l", "static_listeners": [{"listener": {"name": "main", "address": {"socket_address": {"address": "0.0.0.0", "port_value": 80}}}}], "dynamic_listeners": [{"name": "dyn", "active_state": {"version_info": "1", "listener": {"name": "dyn"}}}]},
 {"@type": "r", "static_route_configs": [{"route_config": {"name": "r"}}, {"route_config": {"name": "r", "virtual_hosts": []}}]}]}`,
	"/clusters": `{"cluster_statuses": [{"name": "one", "host_statuses": [
 {"address": {"socket_address": {"address": "10.0.0.2", "port_value": 80}}, "stats": [{"name": "cx_total", "value": "7"}], "health_status": {"eds_health_status": "HEALTHY"}, "weight": 1},
 {"address": {"pipe": {"path": "/x"}}, "weight": 1}]}]}`,
	"/stats": `{"stats": [{"name": "cluster.one.upstream_rq_total", "value": 100}, {"name": "cluster.one.upstream_rq_active", "value": 3}, {"name": "server.uptime", "value": 9},
 {"name": "control_plane.identifier", "value": "x"}, {"name": "only.a", "value": 1},
 {"histograms": {"supported_quantiles": [1], "computed_quantiles": [{"name": "cluster.one.upstream_rq_time", "values": []}]}}]}`,
}

// admin serves pages, with words of them replaced.
func admin(t *testing.T, replace ...string) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		p, ok := pages[q.URL.Path]
		if !ok || q.Method != http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(strings.NewReplacer(replace...).Replace(p)))
	})
}

func serveAdmin(t *testing.T, replace ...string) string {
	s := httptest.NewServer(admin(t, replace...))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestCompareEqual(t *testing.T) {
	a := serveAdmin(t)
	b := serveAdmin(t, `"envoy"`, `"dragoman"`, `{"name": "x"}`, "", `"then"`, `"now"`, `"value": "7"`, `"value": "8"`, `uptime", "value": 9`, `uptime", "value": 1`, `rq_active", "value": 3`, `rq_active", "value": 0`)
	code, out, problem := command(t, "", "ctl", "compare", a, "http://"+b+"/")
	if code != exitOK || problem != "" || strings.Count(out, "no difference") != 3 || !strings.Contains(out, "stat names: 6 in both, 0 only in A (-), 0 only in B (+)") ||
		!strings.Contains(out, "A "+a+": v1, LIVE for 5s\n") || !strings.Contains(out, "clusters: 1 cluster, no") {
		t.Errorf("%d %s%s", code, out, problem)
	}
	if code, out, _ = command(t, "", "ctl", "compare", a, b, "--volatile"); code != exitNo || !strings.Contains(out, "server.uptime: 9 -> 1 (-88.9%)") {
		t.Errorf("%d %s", code, out)
	}
}

func TestCompareDifferent(t *testing.T) {
	a := serveAdmin(t)
	path := filepath.Join(t.TempDir(), "admin.sock")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	b := &httptest.Server{Listener: ln, Config: &http.Server{Handler: admin(t, `"connect_timeout": "1s"`, `"connect_timeout": "2s"`, `"two"`, `"three"`,
		`"port_value": 80}}}`, `"port_value": 81}}}`, `"HEALTHY"`, `"DRAINING"`, `"10.0.0.2"`, `"10.0.0.3"`, `"value": 100`, `"value": 95`, "only.a", "only.b", `"weight": 1}]`, `"weight": 2}]`)}}
	b.Start()
	t.Cleanup(b.Close)
	want := `configuration: 7 resources, 4 differ (A -> B)
  - cluster two: only in A
  + cluster three: only in B
  ~ cluster one
      connect_timeout: 1s -> 2s
  ~ listener main
      address.socket_address.port_value: 80 -> 81

clusters: 1 cluster, 1 differ (A -> B)
  ~ cluster one
      hosts["/x"].weight: 1 -> 2
      hosts["10.0.0.2:80"]: - {"health_status": {"eds_health_status": "HEALTHY"}, "weight": 1}
      hosts["10.0.0.3:80"]: + {"health_status": {"eds_health_status": "DRAINING"}, "weight": 1}

stat names: 5 in both, 1 only in A (-), 1 only in B (+)
  - only.a
  + only.b

stat values: 1 counters and gauges, 1 differ (A -> B)
  cluster.one.upstream_rq_total: 100 -> 95 (-5.0%)
`
	code, out, _ := command(t, "", "ctl", "compare", a, path)
	_, out, _ = strings.Cut(out, "\n\n")
	want = strings.ReplaceAll(want, `hosts["/x"]`, "hosts./x")
	if d := cmp.Diff(want, out); d != "" || code != exitNo {
		t.Errorf("%d %s", code, d)
	}
	var r compare.Report
	code, out, _ = command(t, "", "ctl", "compare", a, path, "--output", "json", "--tolerance", "5", "--ignore", `port_value|^only|hosts`)
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitNo || len(r.Configuration) != 3 || len(r.Values) != 0 || len(r.StatsOnlyA) != 0 || len(r.Clusters) != 0 {
		t.Errorf("%d %v %+v", code, err, r)
	}
	if code, out, _ = command(t, "", "ctl", "compare", a, path, "--ignore", `.`); code != exitOK {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ = command(t, "", "ctl", "compare", a, path, "--slack", "5", "--ignore", `^(cluster|listener) |only`); code != exitOK {
		t.Errorf("%d %s", code, out)
	}
}

// TestCompareRoutesOfOneName compares a proxy that was reloaded, whose dump still has the routes of listeners that drain.
func TestCompareRoutesOfOneName(t *testing.T) {
	const routes = `{"route_config": {"name": "r"}}, {"route_config": {"name": "r", "virtual_hosts": []}}`
	old := `{"route_config": {"name": "r", "virtual_hosts": [{"name": "old"}]}}, `
	a := serveAdmin(t, routes, old+routes, `{"name": "only.a", "value": 1}`, `{"name": "only.a", "value": 1}, {"name": "listener_manager.total_listeners_draining", "value": 2}`)
	b := serveAdmin(t)
	_, out, _ := command(t, "", "ctl", "compare", a, b)
	if !strings.Contains(out, "configuration: 8 resources, 1 differ (A -> B)\n  - route r: only in A\n\n") ||
		!strings.Contains(out, "  listeners that drain: 2; routes of theirs are in its configuration until they are gone\nB ") {
		t.Error(out)
	}
	_, out, _ = command(t, "", "ctl", "compare", b, a)
	if !strings.Contains(out, "1 differ (A -> B)\n  + route r (3): only in B\n\n") {
		t.Error(out)
	}
}

// TestCompareLimits shows as much of the one as of the other.
func TestCompareLimits(t *testing.T) {
	list := func(prefix string) string {
		var b strings.Builder
		for i := range shownLines + 1 {
			fmt.Fprintf(&b, `{"name": "%s.%02d", "value": 1}, `, prefix, i)
		}
		return b.String() + `{"name": "only.a", "value": 1}`
	}
	a, b := serveAdmin(t, `{"name": "only.a", "value": 1}`, list("x")), serveAdmin(t, `{"name": "only.a", "value": 1}`, list("y"))
	_, out, _ := command(t, "", "ctl", "compare", a, b)
	for _, want := range []string{"  - x.39\n  ... and 1 more lines (--all)\n  + y.00\n", "  + y.39\n  ... and 1 more lines (--all)\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if _, out, _ = command(t, "", "ctl", "compare", a, b, "--all"); !strings.Contains(out, "  - x.40\n  + y.00\n") || !strings.Contains(out, "  + y.40\n") {
		t.Error(out)
	}
}

func TestCompareErrors(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer other.Close()
	none := httptest.NewServer(http.NotFoundHandler())
	defer none.Close()
	a := serveAdmin(t)
	for b, want := range map[string]string{
		other.Listener.Addr().String(): "is that the admin interface of an Envoy or a Dragoman?",
		none.URL:                       "status 404; is that the admin interface",
		"/nonexistent/socket":          "/nonexistent/socket does not answer",
		"ftp://x":                      "write HOST:PORT, http://HOST:PORT, or the path of a Unix socket",
	} {
		if code, _, problem := command(t, "", "ctl", "compare", a, b); code != exitFailed || !strings.Contains(problem, want) {
			t.Errorf("%s: %d %s", b, code, problem)
		}
	}
	if code, _, problem := command(t, "", "ctl", "compare", a, a, "--ignore", "("); code != exitFailed || !strings.Contains(problem, "--ignore: ") {
		t.Errorf("%d %s", code, problem)
	}
}

// TestCompareOnOneMachine compares two proxies that must have different ports: stats of a listener are found by its name.
func TestCompareOnOneMachine(t *testing.T) {
	const stat = `{"name": "only.a", "value": 1}`
	more := func(port int) string {
		return fmt.Sprintf(`%s, {"name": "listener.0.0.0.0_%d.downstream_cx_total", "value": 5}, {"name": "listener.0.0.0.0_%d.http.p.downstream_rq_2xx", "value": 4}`, stat, port, port)
	}
	a := serveAdmin(t, stat, more(80))
	b := serveAdmin(t, `"port_value": 80}}}`, `"port_value": 81}}}`, stat, more(81))
	code, out, problem := command(t, "", "ctl", "compare", a, b, "--ignore", "port_value")
	if code != exitOK || !strings.Contains(out, "stat names: 8 in both, 0 only in A (-), 0 only in B (+)") {
		t.Errorf("%d %s%s", code, out, problem)
	}
	b = serveAdmin(t, `"port_value": 80}}}`, `"port_value": 81}}}`, stat, strings.Replace(more(81), `"value": 5`, `"value": 50`, 1))
	if _, out, _ = command(t, "", "ctl", "compare", a, b, "--ignore", "port_value"); !strings.Contains(out, "listener.0.0.0.0_80.downstream_cx_total: 5 -> 50") {
		t.Error(out)
	}
}

// TestCompareSecrets compares secrets of SDS, of which Envoy shows what their files hold, and Dragoman the names of the files.
func TestCompareSecrets(t *testing.T) {
	const end = `{"@type": "r", "static_route_configs"`
	section := func(chain, key, name string) string {
		return `{"@type": "s", "dynamic_active_secrets": [{"name": "` + name + `", "secret": {"name": "` + name + `", "tls_certificate": {"certificate_chain": {` + chain + `}, "private_key": {` + key + `}}}}]}, ` + end
	}
	a := serveAdmin(t, end, section(`"inline_bytes": "Y2VydA=="`, `"inline_bytes": "W3JlZGFjdGVkXQ=="`, "s"))
	b := serveAdmin(t, end, section(`"filename": "/c.pem"`, `"filename": "/k.pem"`, "s"))
	if code, out, problem := command(t, "", "ctl", "compare", a, b); code != exitOK {
		t.Errorf("%d %s%s", code, out, problem)
	}
	if code, out, problem := command(t, "", "ctl", "compare", b, a); code != exitOK {
		t.Errorf("%d %s%s", code, out, problem)
	}
	c := serveAdmin(t, end, section(`"inline_bytes": "b3RoZXI="`, `"inline_bytes": "W3JlZGFjdGVkXQ=="`, "s"))
	if code, out, _ := command(t, "", "ctl", "compare", a, c); code != exitNo || !strings.Contains(out, "certificate_chain.inline_bytes") {
		t.Errorf("%d %s", code, out)
	}
}
