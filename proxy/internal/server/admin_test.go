package server

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
)

// adminConfig is the configuration with which a real Envoy was asked for the pages below.
const adminConfig = `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 24001}}}
node: {id: nid, cluster: clu, locality: {region: r, zone: z}, metadata: {a: b}}
static_resources:
  listeners:
  - name: main
    address: {socket_address: {address: 127.0.0.1, port_value: 24002}}
    traffic_direction: INBOUND
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: in
          route_config: {name: rc, virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: b}}]}]}
          http_filters: [{name: envoy.filters.http.router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
  clusters:
  - name: b
    connect_timeout: 5s
    load_assignment: {cluster_name: b, endpoints: [{locality: {region: r1, zone: z1, sub_zone: s1}, lb_endpoints: [{endpoint: {hostname: hh, address: {socket_address: {address: 127.0.0.1, port_value: 24003}}}}]}]}
  - name: a
    connect_timeout: 5s
    alt_stat_name: aaa
    load_assignment: {cluster_name: a, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 24004}}}}]}]}
layered_runtime: {layers: [{name: s, static_layer: {x: true, y: abc}}, {name: adm, admin_layer: {}}]}
`

const serverCounters = "server.debug_assertion_failures: 0\nserver.dropped_stat_flushes: 0\nserver.dynamic_unknown_fields: 0\n" +
	"server.envoy_bug_failures: 0\nserver.envoy_notifications: 0\nserver.main_thread.watchdog_mega_miss: 0\nserver.main_thread.watchdog_miss: 0\n" +
	"server.static_unknown_fields: 0\nserver.wip_protos: 0\nserver.worker_0.watchdog_mega_miss: 0\nserver.worker_0.watchdog_miss: 0\n" +
	"server.worker_1.watchdog_mega_miss: 0\nserver.worker_1.watchdog_miss: 0\n"

func TestAdminPages(t *testing.T) {
	r := newAdminRig(t, adminConfig)
	r.s.state.Store(int32(Live))
	const text, plain, jsonType = "text/plain; charset=UTF-8", "text/plain", "application/json"
	for _, c := range []struct {
		target string
		code   int
		ctype  string
		want   string
	}{
		{"/ready", 200, text, "LIVE\n"},
		{"/listeners", 200, text, "main::127.0.0.1:24002\n"},
		{"/listeners?format=xml", 200, text, "main::127.0.0.1:24002\n"},
		{"/listeners?format=json", 200, jsonType, "{\n \"listener_statuses\": [\n  {\n   \"name\": \"main\",\n   \"local_address\": {\n    \"socket_address\": {\n" +
			"     \"address\": \"127.0.0.1\",\n     \"port_value\": 24002\n    }\n   }\n  }\n ]\n}\n"},
		{"/certs", 200, jsonType, "{\n \"certificates\": []\n}\n"},
		{"/hot_restart_version", 200, text, "11.104"},
		{"/init_dump", 200, jsonType, "{}\n"},
		{"/contention", 200, text, "Mutex contention tracing is not enabled. To enable, run Envoy with flag --enable-mutex-tracing."},
		{"/clusters?filter=[", 400, text, "Invalid re2 regex"},
		{"/clusters?filter=zz", 200, text, ""},
		{"/clusters?filter=zz&format=json", 200, jsonType, "{}\n"},
		{"/runtime", 200, jsonType, "{\n \"layers\": [\n  \"s\",\n  \"adm\"\n ],\n \"entries\": {\n  \"x\": {\n   \"final_value\": \"true\",\n   \"layer_values\": [\n    \"true\",\n    \"\"\n   ]\n  }," +
			"\n  \"y\": {\n   \"final_value\": \"abc\",\n   \"layer_values\": [\n    \"abc\",\n    \"\"\n   ]\n  }\n }\n}\n"},
		{"/stats?filter=[", 400, text, "Invalid re2 regex: missing ]: ["},
		{"/stats?type=x", 400, text, "invalid &type= param"},
		{"/stats?format=foo", 400, text, "usage: /stats?format=(html|active-html|json|prometheus|text)\n\n"},
		{"/stats?histogram_buckets=x", 400, text, "usage: /stats?histogram_buckets=(cumulative|disjoint|detailed|summary|prometheusnative)\n"},
		{"/stats?format=prometheus&histogram_buckets=detailed", 400, text, "unsupported prometheus histogram bucket mode"},
		{"/stats?filter=zz", 200, text, ""},
		{"/stats?filter=zz&format=json", 200, jsonType, `{"stats":[]}`},
		{"/stats?filter=^server.live$", 200, text, "server.live: 1\n"},
		{"/stats?filter=^server.live|^[^s]&invert_filter&type=Counters", 200, text, serverCounters},
		{"/stats/prometheus?filter=server.live", 200, text, "# TYPE envoy_server_live gauge\nenvoy_server_live{} 1\n"},
		{"/config_dump?resource=bootstrap", 400, plain, "bootstrap is not a repeated field. Use ?mask=bootstrap to get only this field"},
		{"/config_dump?resource=version_info", 400, plain, "version_info is not a repeated field. Use ?mask=version_info to get only this field"},
		{"/config_dump?resource=nope", 404, plain, "nope not found in config dump"},
		{"/config_dump?resource=static_endpoint_configs", 404, plain, "static_endpoint_configs not found in config dump"},
		{"/config_dump?resource=dynamic_listeners", 200, jsonType, "{}\n"},
		{"/config_dump?resource=static_clusters&name_regex=zz", 200, jsonType, "{}\n"},
		{"/config_dump?mask=static_clusters.cluster.name", 400, plain, "FieldMask static_clusters.cluster.name could not be successfully applied to any configs."},
		{"/config_dump?mask=bootstrap.static_resources.clusters.name", 400, plain, "FieldMask bootstrap.static_resources.clusters.name could not be successfully applied to any configs."},
		{"/config_dump?resource=static_clusters&mask=cluster.load_assignment.endpoints.locality", 400, plain,
			"FieldMask paths: \"cluster.load_assignment.endpoints.locality\"\n could not be successfully used."},
		{"/config_dump?name_regex=[", 400, plain, "INVALID_ARGUMENT: Error while parsing name_regex from [: missing ]: ["},
		{"/config_dump?mask=bootstrap.node.id", 200, jsonType, "{\n \"configs\": [\n  {\n   \"@type\": \"type.googleapis.com/envoy.admin.v3.BootstrapConfigDump\",\n" +
			"   \"bootstrap\": {\n    \"node\": {\n     \"id\": \"nid\"\n    }\n   }\n  }\n ]\n}\n"},
		{"/config_dump?resource=static_clusters&mask=cluster.name&name_regex=a.*", 200, jsonType, "{\n \"configs\": [\n  {\n" +
			"   \"@type\": \"type.googleapis.com/envoy.admin.v3.ClustersConfigDump.StaticCluster\",\n   \"cluster\": {\n" +
			"    \"@type\": \"type.googleapis.com/envoy.config.cluster.v3.Cluster\",\n    \"name\": \"a\"\n   }\n  }\n ]\n}\n"},
	} {
		p := r.get(c.target)
		if d := cmp.Diff(fmt.Sprint(c.code, c.ctype, c.want), fmt.Sprint(p.code, p.ctype, p.text)); d != "" {
			t.Errorf("%s: %s", c.target, d)
		}
	}
}

// The names of an idle process are those that a real Envoy shows with two workers and an admin listener, but for http1.*, which come
// with the first connection.
func TestIdleStats(t *testing.T) {
	want, err := os.ReadFile("testdata/idle_stats.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := newAdminRig(t, "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}")
	got := regexp.MustCompile(`(?m):.*$`).ReplaceAllString(r.get("/stats").text, "")
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); d != "" {
		t.Error(d)
	}
	for _, line := range []string{"server.concurrency: 2", "server.state: 2", "server.days_until_first_cert_expiring: 4294967295", "server.total_connections: 0",
		"listener_manager.total_listeners_active: 0", "runtime.num_layers: 0"} {
		if !strings.Contains(r.get("/stats").text, line+"\n") {
			t.Errorf("no %s", line)
		}
	}
}

// The whole dump, but for what changes with the build and the time, is Envoy's.
func TestConfigDump(t *testing.T) {
	r := newAdminRig(t, adminConfig, func(c *Config) { c.Options.ServiceNode = "not in the dump" })
	p := r.get("/config_dump?include_eds")
	var got any
	if err := json.Unmarshal([]byte(p.text), &got); err != nil {
		t.Fatal(err)
	}
	prune(got, "last_updated", "extensions", "user_agent_build_version")
	golden(t, "testdata/config_dump.json", got)
}

func TestClustersPage(t *testing.T) {
	r := newAdminRig(t, adminConfig)
	h := r.s.clusters.Lookup("a").Load().Hosts()[0]
	h.RqTotal.Add(7)
	h.CxActive.Add(1)
	h.SetFlag(host.FailedOutlierCheck, true)
	text := r.get("/clusters").text
	if a, b := strings.Index(text, "a::observability_name::aaa\n"), strings.Index(text, "b::observability_name::b\n"); a != 0 || b < 0 {
		t.Errorf("order: %d %d", a, b)
	}
	for _, line := range []string{"a::added_via_api::false", "a::127.0.0.1:24004::rq_total::7", "a::127.0.0.1:24004::health_flags::/failed_outlier_check",
		"b::default_priority::max_retries::3", "b::127.0.0.1:24003::sub_zone::s1", "b::127.0.0.1:24003::local_origin_success_rate::-1"} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
	var got any
	if err := json.Unmarshal([]byte(r.get("/clusters?format=json").text), &got); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/clusters.json", got)
}

func TestServerInfo(t *testing.T) {
	r := newAdminRig(t, adminConfig, func(c *Config) {
		c.Options = Options{ServiceNode: "me", ServiceZone: "zz", DrainImmediate: true, CommandLine: CommandLine{Mode: "serve", DisableHotRestart: true}}
	})
	var got struct {
		Version, State, HotRestartVersion string
		Options                           map[string]any `json:"command_line_options"`
		Node                              struct {
			ID, Cluster string
			Locality    map[string]string
			Extensions  []any
		}
	}
	if err := json.Unmarshal([]byte(r.get("/server_info").text), &got); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(got.Version, "/"); n != 4 || got.State != "PRE_INITIALIZING" {
		t.Errorf("%s %s", got.Version, got.State)
	}
	if got.Node.ID != "me" || got.Node.Cluster != "clu" || got.Node.Locality["zone"] != "zz" || got.Node.Locality["region"] != "r" || len(got.Node.Extensions) < 10 {
		t.Errorf("%+v", got.Node)
	}
	if got.Options["drain_strategy"] != "Immediate" || got.Options["drain_time"] != "600s" || got.Options["mode"] != "Serve" || got.Options["concurrency"] != 2.0 {
		t.Errorf("%v", got.Options)
	}
}

func TestHealthcheckAndReady(t *testing.T) {
	r := newAdminRig(t, adminConfig)
	if p := r.get("/ready"); p.code != 503 || p.text != "PRE_INITIALIZING\n" {
		t.Error(p)
	}
	r.s.state.Store(int32(Live))
	for _, c := range []struct{ post, ready, live string }{{"/healthcheck/fail", "DRAINING\n", "0"}, {"/healthcheck/ok", "LIVE\n", "1"}} {
		if p := r.post(c.post); p.code != 200 || p.text != "OK\n" {
			t.Error(p)
		}
		if p := r.get("/ready"); p.text != c.ready {
			t.Error(p)
		}
		if p := r.get("/stats?filter=server.live"); p.text != "server.live: "+c.live+"\n" {
			t.Error(p)
		}
	}
}

func TestLoggingPage(t *testing.T) {
	r := newAdminRig(t, adminConfig)
	for _, c := range []struct {
		query string
		code  int
		want  []string
	}{
		{"", 200, []string{"active loggers:\n  a2a: info\n", "  upstream: info\n"}},
		{"?level=warning", 200, []string{"  http: warning\n", "  upstream: warning\n"}},
		{"?level=warn&x=y", 400, []string{"error: invalid number of query parameters\n"}},
		{"?http=debug", 200, []string{"  http: debug\n", "  upstream: warning\n"}},
		{"?paths=http:info,upstream:trace", 200, []string{"  http: info\n", "  upstream: trace\n"}},
		{"?paths=http:error,nologger:trace", 400, []string{"error: unknown logger name\n\nusage: /logging?<name>=<level>", "  http: info\n"}},
		{"?group=http:error", 200, []string{"  http: error\n"}},
		{"?level=bogus", 400, []string{"error: unknown logger level\n", "levels: trace debug info warning error critical off \n"}},
		{"?http=", 400, []string{"error: empty logger name or empty logger level\n"}},
	} {
		p := r.post("/logging" + c.query)
		for _, w := range c.want {
			if p.code != c.code || !strings.Contains(p.text, w) {
				t.Errorf("%s: %d, no %q in %q", c.query, p.code, w, p.text)
			}
		}
	}
	if p := r.get("/logging"); p.code != 405 || !strings.Contains(r.log.String(), `error admin admin path "/logging" mutates state, method=GET rather than POST`) {
		t.Errorf("%v %s", p, r.log)
	}
}

func TestRuntimeModify(t *testing.T) {
	r := newAdminRig(t, adminConfig)
	if p := r.post("/runtime_modify"); p.code != 400 || !strings.HasPrefix(p.text, "usage: /runtime_modify?key1=value1") {
		t.Error(p)
	}
	if p := r.post("/runtime_modify?x=false&upstream.maintenance_mode.b=25"); p.text != "OK\n" {
		t.Error(p)
	}
	refused := 0
	for range 100 {
		if r.s.clusters.Lookup("b").Load().MaintenanceMode() {
			refused++
		}
	}
	if v, _ := r.s.runtime.Snapshot().Get("x"); v.Raw != "false" || refused != 25 {
		t.Errorf("x is %s, %d of 100 are refused", v.Raw, refused)
	}
	if p := r.ask("POST", "/runtime_modify", "application/x-www-form-urlencoded", "upstream.maintenance_mode.b="); p.text != "OK\n" {
		t.Error(p)
	}
	if r.s.clusters.Lookup("b").Load().MaintenanceMode() {
		t.Error("maintenance goes on after its key went away")
	}
	none := newAdminRig(t, "layered_runtime: {layers: [{name: base, static_layer: {a: 1}}]}")
	if p := none.post("/runtime_modify?a=7"); p.code != 503 || p.text != "No admin layer specified" {
		t.Error(p)
	}
}

func TestPassesPage(t *testing.T) {
	r := newAdminRig(t, adminConfig)
	var got struct{ Threads []struct{ Name string } }
	if err := json.Unmarshal([]byte(r.get("/dragoman/passes").text), &got); err != nil || len(got.Threads) != 3 || got.Threads[1].Name != "worker_0" {
		t.Errorf("%v %v", got, err)
	}
	for _, p := range []string{"/heap_dump", "/debug/pprof/goroutine?debug=1", "/memory/tcmalloc"} {
		if got := r.get(p); got.code != 200 || got.text == "" {
			t.Errorf("%s: %d", p, got.code)
		}
	}
	if got := r.post("/cpuprofiler"); got.code != 400 || got.text != "?enable=<y|n>\n" {
		t.Error(got)
	}
}

// prune takes fields away, wherever they are.
func prune(v any, names ...string) {
	switch x := v.(type) {
	case map[string]any:
		for _, n := range names {
			delete(x, n)
		}
		for _, y := range x {
			prune(y, names...)
		}
	case []any:
		for _, y := range x {
			prune(y, names...)
		}
	}
}

// golden compares with a file; UPDATE=1 writes it.
func golden(t *testing.T, path string, got any) {
	t.Helper()
	text, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.TrimSuffix(string(want), "\n"), string(text)); d != "" {
		t.Error(d)
	}
}

// What tools compare: hosts with their metadata, and a name for each listener.
func TestDumpOfHostsAndNames(t *testing.T) {
	r := newAdminRig(t, `
static_resources:
  listeners:
  - {address: {socket_address: {address: 127.0.0.1, port_value: 0}}, filter_chains: [{}]}
  - {name: two, address: {socket_address: {address: 127.0.0.1, port_value: 0}}, filter_chains: [{}]}
  clusters:
  - name: dns
    load_assignment: {cluster_name: dns, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]}]}
  - name: none
    load_assignment: {cluster_name: none, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]}]}
  - name: some
    load_assignment: {cluster_name: some, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}, metadata: {filter_metadata: {a.b: {c: 1, d: [x, null]}}}}]}]}
`)
	got := map[string]any{}
	for _, c := range r.s.clusters.Clusters() {
		c.DNS = c.Cluster.Name() == "dns" // nobody answers for names here
		m := assignment(&c).GetEndpoints()[0].GetLbEndpoints()[0].GetMetadata()
		got[c.Cluster.Name()] = m != nil
		if m != nil {
			raw, err := protojson.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			got[c.Cluster.Name()] = strings.ReplaceAll(string(raw), " ", "")
		}
	}
	if d := cmp.Diff(map[string]any{"dns": "{}", "none": false, "some": `{"filterMetadata":{"a.b":{"c":1,"d":["x",null]}}}`}, got); d != "" {
		t.Error(d)
	}
	name := regexp.MustCompile(`(?m)^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}::127\.0\.0\.1:\d+$`)
	text := r.get("/listeners").text
	first := name.FindString(text)
	if first == "" || !strings.Contains(text, "\ntwo::127.0.0.1:") || r.get("/listeners").text != text {
		t.Error(text)
	}
	if j := r.get("/listeners?format=json").text; !strings.Contains(j, `"name": "`+first[:36]+`"`) {
		t.Errorf("%s in %s", first, j)
	}
}

// With deferred creation of statistics Envoy has those of traffic once there is some.
func TestStatsAreNotDeferred(t *testing.T) {
	r := newAdminRig(t, adminConfig+"\ndeferred_stat_options: {enable_deferred_creation_stats: true}")
	if got := r.get("/stats?filter=^cluster.b.upstream_cx_total").text; got != "cluster.b.upstream_cx_total: 0\n" {
		t.Error(got)
	}
}

// An assignment is shown as it is used: weights of places, the coarse health of hosts, what they have beside their address; the places
// in the order in which balancers have them.
func TestDumpOfAssignments(t *testing.T) {
	r := newAdminRig(t, `
static_resources:
  clusters:
  - name: a
    load_assignment:
      cluster_name: a
      policy: {overprovisioning_factor: 120}
      endpoints:
      - {priority: 1, locality: {region: r2}, lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 9}}}}]}
      - locality: {region: r1, zone: z2}
        load_balancing_weight: 1
        lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 8}}}, health_status: DEGRADED}]
      - locality: {region: r1, zone: z1}
        load_balancing_weight: 3
        lb_endpoints:
        - {health_status: DRAINING, endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}, health_check_config: {port_value: 99, hostname: hc}}}
        - {health_status: TIMEOUT, endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 2}}}}
        - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 3}}, additional_addresses: [{address: {socket_address: {address: 127.0.0.2, port_value: 4}}}]}
`)
	c := r.s.clusters.Clusters()[0]
	la := assignment(&c)
	got := []string{fmt.Sprint(la.GetPolicy().GetOverprovisioningFactor().GetValue())}
	for _, l := range la.GetEndpoints() {
		got = append(got, fmt.Sprintf("%d %s/%s weight %d", l.GetPriority(), l.GetLocality().GetRegion(), l.GetLocality().GetZone(), l.GetLoadBalancingWeight().GetValue()))
		for _, x := range l.GetLbEndpoints() {
			e := x.GetEndpoint()
			line := fmt.Sprintf("%d %s", e.GetAddress().GetSocketAddress().GetPortValue(), x.GetHealthStatus())
			if h := e.GetHealthCheckConfig(); h.GetPortValue() > 0 {
				line += fmt.Sprintf(" check %s:%d", h.GetHostname(), h.GetPortValue())
			}
			for _, a := range e.GetAdditionalAddresses() {
				line += fmt.Sprintf(" also %s:%d", a.GetAddress().GetSocketAddress().GetAddress(), a.GetAddress().GetSocketAddress().GetPortValue())
			}
			got = append(got, line)
		}
	}
	want := []string{"120", "0 r1/z1 weight 3", "1 UNHEALTHY check hc:99", "2 UNHEALTHY", "3 HEALTHY also 127.0.0.2:4", "0 r1/z2 weight 1", "8 DEGRADED",
		"1 r2/ weight 0", "9 HEALTHY"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
