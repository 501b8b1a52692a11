package server

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/dragoman-proxy/dragoman/internal/certtest"
	"github.com/dragoman-proxy/dragoman/internal/invariant"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

// handClock is a clock that the test turns.
type handClock struct{ ns atomic.Int64 }

var epoch = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func (c *handClock) Now() time.Time        { return epoch.Add(time.Duration(c.ns.Load())) }
func (c *handClock) Mono() int64           { return c.ns.Load() }
func (c *handClock) add(d time.Duration)   { c.ns.Add(int64(d)) }
func withClock(k *handClock) func(*Config) { return func(c *Config) { c.Clock = k } }

// anyPort makes the kernel choose the ports of adminConfig.
var anyPort = strings.NewReplacer("24001", "0", "24002", "0")

// Gauges tell of the last flush, histograms show only what was flushed, and the next flush comes by itself.
func TestFlush(t *testing.T) {
	k := &handClock{}
	r := newAdminRig(t, adminConfig, withClock(k))
	value := func(name string) string {
		return strings.TrimSuffix(strings.TrimPrefix(r.get("/stats?filter=^"+name+"$").text, name+": "), "\n")
	}
	r.s.startProcess()
	k.add(1200 * time.Millisecond)
	r.s.becameLive()
	k.add(time.Second)
	if got := value("server.uptime"); got != "1" {
		t.Errorf("uptime between flushes: %s", got)
	}
	if got := value("server.initialization_time_ms"); got != "No recorded values" && !strings.HasPrefix(got, "server.initialization_time_ms: No") {
		t.Errorf("before the flush: %s", got)
	}
	for _, want := range []string{"7", "12"} {
		k.add(5*time.Second + 30*time.Millisecond)
		r.step()
		if got := value("server.uptime"); got != want {
			t.Errorf("uptime after a flush: %s, want %s", got, want)
		}
	}
	if got := value("server.initialization_time_ms"); !strings.Contains(got, "P50(nan,1250)") {
		t.Errorf("after the flush: %s", got)
	}
	if got := value("listener_manager.workers_started") + value("listener_manager.listener_create_success"); got != "12" {
		t.Errorf("listener_manager: %s", got)
	}
}

// With stats_flush_on_admin, looking is what flushes.
func TestFlushOnAdmin(t *testing.T) {
	k := &handClock{}
	r := newAdminRig(t, "stats_flush_on_admin: true", withClock(k))
	r.s.startProcess()
	r.s.becameLive()
	k.add(30 * time.Second)
	r.step()
	if got := r.get("/stats?filter=server.(uptime|init)").text; !strings.HasPrefix(got, "server.uptime: 30\nserver.initialization_time_ms: P0(") {
		t.Error(got)
	}
}

func TestStatsConfig(t *testing.T) {
	r := newAdminRig(t, `
stats_config:
  stats_matcher: {inclusion_list: {patterns: [{prefix: server.}, {exact: cluster_manager.active_clusters}]}}
  stats_tags: [{tag_name: my.tag, regex: "^server\\.((l)ive)"}, {tag_name: fixed, fixed_value: fv}]
  histogram_bucket_settings: [{match: {prefix: server.init}, buckets: [1, 10]}]
`, func(c *Config) { c.Options.StatsTags = []string{"zone:z1"} })
	if d := cmp.Diff("cluster_manager.active_clusters: 0\n", r.get("/stats?filter=^(cluster|http|runtime|listener)").text); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff("# TYPE envoy_server gauge\nenvoy_server{zone=\"z1\",fixed=\"fv\",my_tag=\"l\"} 1\n", r.get("/stats/prometheus?filter=server.live").text); d != "" {
		t.Error(d)
	}
	for boot, want := range map[string]string{
		`{stats_config: {stats_tags: [{tag_name: a, regex: "("}]}}`:                                           "stats_config.stats_tags[0].regex: Invalid regex '('",
		`{stats_config: {stats_tags: [{tag_name: nope}]}}`:                                                    "nope",
		`{stats_config: {stats_matcher: {exclusion_list: {patterns: [{safe_regex: {regex: "["}}]}}}}`:         "stats_config.stats_matcher",
		`{stats_config: {histogram_bucket_settings: [{match: {safe_regex: {regex: "["}}, buckets: [2, 1]}]}}`: "histogram_bucket_settings[0].match",
		`{stats_sinks: [{name: x}]}`: "stats_sinks: not supported yet",
		`{layered_runtime: {layers: [{name: a, static_layer: {}}, {name: a, static_layer: {}}]}}`:                              "layered_runtime.layers[1].name: Duplicate layer name: a",
		`{admin: {allow_paths: [{safe_regex: {regex: "["}}], address: {socket_address: {address: 127.0.0.1, port_value: 0}}}}`: "admin.allow_paths",
	} {
		if _, err := tryAdminRig(t, boot); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q, got %v", boot, want, err)
		}
	}
}

// Long passes are counted once, by thread and for all.
func TestWatchdog(t *testing.T) {
	k := &handClock{}
	r := newAdminRig(t, "watchdogs: {worker_watchdog: {miss_timeout: 0.1s, megamiss_timeout: 0.5s}}", withClock(k))
	w := r.s.workers[1]
	for _, d := range []time.Duration{99 * time.Millisecond, 100 * time.Millisecond, 499 * time.Millisecond, 500 * time.Millisecond} {
		w.Post(func() { k.add(d) })
		w.Step(false)
	}
	r.s.main.Post(func() { k.add(time.Second) })
	r.s.main.Step(false)
	want := "main_thread.watchdog_mega_miss: 1\nmain_thread.watchdog_miss: 1\nserver.main_thread.watchdog_mega_miss: 1\nserver.main_thread.watchdog_miss: 1\n" +
		"server.worker_1.watchdog_mega_miss: 1\nserver.worker_1.watchdog_miss: 3\nworkers.watchdog_mega_miss: 1\nworkers.watchdog_miss: 3\n"
	for range 2 {
		if d := cmp.Diff(want, r.get("/stats?filter=watchdog&usedonly").text); d != "" {
			t.Error(d)
		}
	}
}

// A loop that does not answer is logged once, and its last numbers are shown.
func TestSilentWorker(t *testing.T) {
	k := &handClock{}
	r := newAdminRig(t, "{}", withClock(k))
	done := 0
	for range 2 {
		r.s.collect.collect(func() { done++ })
		k.add(collectDeadline + 10*time.Millisecond)
		for range 3 {
			r.s.main.Step(false) // the workers do not run
		}
	}
	if done != 2 {
		t.Fatalf("%d answers", done)
	}
	if n := strings.Count(r.log.String(), "an event loop does not answer thread=worker_0"); n != 1 {
		t.Errorf("%d lines in\n%s", n, r.log)
	}
	r.step()
	r.get("/stats?filter=x")
	if !strings.Contains(r.log.String(), "an event loop answers again thread=worker_0") {
		t.Error(r.log)
	}
}

// The share of responses that end their connection grows over the drain time, as in Envoy.
func TestDrain(t *testing.T) {
	k := &handClock{}
	r := newAdminRig(t, adminConfig, withClock(k), func(c *Config) { c.Options.DrainTime = 10 * time.Second })
	own := false
	ask := r.s.draining(func() bool { return own }, listenerv3.Listener_DEFAULT)
	share := func() (n int) {
		for range 1000 {
			if ask() {
				n++
			}
		}
		return n
	}
	if n := share(); n != 0 {
		t.Errorf("not draining: %d", n)
	}
	own = true
	if n := share(); n != 0 {
		t.Errorf("at the beginning: %d", n)
	}
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{time.Second, 100}, {4 * time.Second, 500}, {5 * time.Second, 1000}, {time.Hour, 1000}} {
		k.add(c.after)
		if n := share(); n < c.want-1 || n > c.want {
			t.Errorf("after %v more: %d of 1000, want %d", c.after, n, c.want)
		}
	}
	own = false
	r.s.failed.Store(true)
	if n := share(); n != 1000 {
		t.Errorf("with failed health checks: %d", n)
	}
	if r.s.draining(func() bool { return own }, listenerv3.Listener_MODIFY_ONLY)() {
		t.Error("MODIFY_ONLY minds failed health checks")
	}
	r.s.failed.Store(false)
	r.post("/drain_listeners?skip_exit")
	k.add(5 * time.Second)
	if n := share(); n < 499 || n > 500 {
		t.Errorf("the process drains: %d", n)
	}
	r.s.cfg.Options.DrainImmediate = true
	if n := share(); n != 1000 {
		t.Errorf("immediate: %d", n)
	}
	r.s.cfg.Options.DrainImmediate, r.s.cfg.Options.DrainTime = false, -1
	if n := share(); n != 1000 {
		t.Errorf("in no time: %d", n)
	}
}

// When listeners stop depends on the parameters of /drain_listeners.
func TestDrainListenersStop(t *testing.T) {
	for _, c := range []struct {
		query      string
		now, later bool
	}{{"", true, true}, {"?graceful", false, true}, {"?skip_exit", false, false}, {"?graceful&skip_exit", false, false}, {"?inboundonly", true, true}} {
		k := &handClock{}
		boot := anyPort.Replace(adminConfig)
		r := newAdminRig(t, boot, withClock(k), func(c *Config) { c.Options.DrainTime = 10 * time.Second })
		var failed error
		r.s.main.Post(func() { r.s.Start(func(err error) { failed = err }) })
		r.step()
		if failed != nil {
			t.Fatal(failed)
		}
		addr := r.s.Addrs()["main"][0].String()
		refuses := func() bool {
			r.step()
			x, err := net.Dial("tcp", addr)
			if err == nil {
				x.Close()
			}
			return err != nil
		}
		if refuses() {
			t.Fatal("it does not listen")
		}
		r.post("/drain_listeners" + c.query)
		if got := refuses(); got != c.now {
			t.Errorf("%s: refuses at once: %v", c.query, got)
		}
		k.add(11 * time.Second)
		if got := refuses(); got != c.later {
			t.Errorf("%s: refuses after the drain time: %v", c.query, got)
		}
		if p := r.get("/listeners"); p.text != "main::"+addr+"\n" {
			t.Errorf("%s: %s", c.query, p.text)
		}
	}
}

// handWatcher is told of changes by the test.
type handWatcher map[string]func(whole bool)

func (w handWatcher) Watch(path string, _ bool, changed func(bool)) (func(), error) {
	w[path] = changed
	return func() {}, nil
}

// A disk layer is read again when its folder is replaced.
func TestDiskLayerIsWatched(t *testing.T) {
	dir, w := t.TempDir(), handWatcher{}
	link := filepath.Join(dir, "current")
	for _, v := range []string{"one", "two"} {
		if err := os.MkdirAll(filepath.Join(dir, v), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, v, "key"), []byte(v), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("one", link); err != nil {
		t.Fatal(err)
	}
	r := newAdminRig(t, fmt.Sprintf("layered_runtime: {layers: [{name: d, disk_layer: {symlink_root: %q}}]}", link), func(c *Config) { c.Watcher = w })
	r.s.startProcess()
	value := func() string {
		v, _ := r.s.runtime.Snapshot().Get("key")
		return v.Raw
	}
	if got := value(); got != "one" {
		t.Fatal(got)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("two", link); err != nil {
		t.Fatal(err)
	}
	w[link](false)
	r.step()
	if got := value(); got != "two" {
		t.Error(got)
	}
}

func TestStartLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin")
	r := newAdminRig(t, anyPort.Replace(adminConfig), func(c *Config) {
		c.Options.CommandLine.AdminAddressPath = path
	})
	r.s.main.Post(func() { r.s.Start(func(err error) { t.Error(err) }) })
	r.step()
	text := r.log.String()
	for _, want := range []string{"initializing epoch 0 (base id=0, hot restart version=11.104)", "statically linked extensions:", "  envoy.filters.http: envoy.filters.http.router",
		"loading 2 cluster(s)", "loading 1 listener(s)", "admin address: 127.0.0.1:", "cm init: all clusters initialized", "all clusters initialized. initializing init manager",
		"all dependencies initialized. starting workers", "starting main dispatch loop"} {
		i := strings.Index(text, want)
		if i < 0 {
			t.Errorf("no %q in order in\n%s", want, r.log)
			continue
		}
		text = text[i:]
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != r.s.adminListener.bound.String() {
		t.Errorf("%q %v", b, err)
	}
	if r.s.State() != Live {
		t.Error(r.s.State())
	}
}

func TestLogFormat(t *testing.T) {
	r := newAdminRig(t, `application_log_config: {log_format: {text_format: "<%l|%n> %v"}}`)
	if got := r.log.String(); !strings.HasPrefix(got, "<info|main> initializing epoch 0") {
		t.Error(got)
	}
	r = newAdminRig(t, `application_log_config: {log_format: {json_format: {Level: "%l", nested: {Message: "%j"}, n: 5}}}`)
	r.s.logger("config").Warn("a \"quoted\" <text>")
	if got := r.log.String(); !strings.HasSuffix(got, `{"Level":"warning","n":5,"nested":{"Message":"a \"quoted\" <text>"}}`+"\n") {
		t.Error(got)
	}
	for boot, want := range map[string]string{
		`application_log_config: {log_format: {json_format: {m: "%v"}}}`: "Usage of %v is unavailable for JSON log formats",
		`application_log_config: {log_format: {json_format: {m: "%_"}}}`: "Usage of %_ is unavailable for JSON log formats",
	} {
		if _, err := tryAdminRig(t, boot); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", boot, err)
		}
	}
	_, err := tryAdminRig(t, `application_log_config: {log_format: {text_format: "%v"}}`, func(c *Config) { c.Options.CommandLine.LogFormat = "%l" })
	if err == nil || !strings.Contains(err.Error(), "Only one of ApplicationLogConfig.log_format or CLI option --log-format") {
		t.Error(err)
	}
}

func TestBugsAreCounted(t *testing.T) {
	r := newAdminRig(t, "{}")
	stopWatch := r.s.watchBugs()
	stop := invariant.Record()
	invariant.Bug("something impossible", "n", 7)
	stop()
	stopWatch()
	r.s.refresh()
	if got := r.get("/stats?filter=server.envoy_bug").text; got != "server.envoy_bug_failures: 1\n" {
		t.Error(got)
	}
	if !strings.Contains(r.log.String(), "error envoy_bug envoy bug failure: something impossible n=7") {
		t.Error(r.log)
	}
}

func TestCertsPage(t *testing.T) {
	k := &handClock{}
	dir := t.TempDir()
	cert, key := writeCert(t, dir, 30*24*time.Hour)
	boot := fmt.Sprintf(`
static_resources:
  listeners:
  - name: l
    address: {socket_address: {address: 127.0.0.1, port_value: 24002}}
    filter_chains:
    - transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            tls_certificates: [{certificate_chain: {filename: %[1]q}, private_key: {filename: %[2]q}}]
            validation_context: {trusted_ca: {filename: %[1]q}}
      filters:
      - name: envoy.filters.network.tcp_proxy
        typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: t, cluster: c}
`, cert, key)
	r := newAdminRig(t, boot, withClock(k))
	k.add(24*time.Hour + time.Second)
	var got struct {
		Certificates []map[string][]struct {
			Path   string
			Serial string              `json:"serial_number"`
			Names  []map[string]string `json:"subject_alt_names"`
			Days   string              `json:"days_until_expiration"`
			Until  string              `json:"expiration_time"`
		}
	}
	if err := json.Unmarshal([]byte(r.get("/certs").text), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Certificates) != 1 || len(got.Certificates[0]["ca_cert"]) != 1 || len(got.Certificates[0]["cert_chain"]) != 1 {
		t.Fatalf("%+v", got)
	}
	c := got.Certificates[0]["cert_chain"][0]
	if c.Path != cert || c.Serial != "03e9" || c.Days != "28" || c.Until != "2026-05-31T12:00:00Z" ||
		!cmp.Equal(c.Names, []map[string]string{{"dns": "b.example"}, {"dns": "a.example"}, {"ip_address": "127.0.0.1"}}) {
		t.Errorf("%+v", c)
	}
	r.s.refresh()
	at := epoch.Add(30 * 24 * time.Hour).Unix()
	want := fmt.Sprintf("listener.127.0.0.1_24002.ssl.certificate.unnamed_ca_cert_e3b0c442.expiration_unix_time_seconds: %d\n"+
		"listener.127.0.0.1_24002.ssl.certificate.unnamed_cert_e3b0c442.expiration_unix_time_seconds: %d\n", at, at)
	if got := r.get("/stats?usedonly&filter=ssl.certificate").text; got != want {
		t.Error(got)
	}
	if got := r.get("/stats?filter=server.days").text; got != "server.days_until_first_cert_expiring: 28\n" {
		t.Error(got)
	}
}

// writeCert writes a certificate that signs itself.
func writeCert(t *testing.T, dir string, valid time.Duration) (cert, key string) {
	t.Helper()
	c, k := certtest.SelfSigned(t, &x509.Certificate{SerialNumber: big.NewInt(1001), Subject: pkix.Name{CommonName: "x"}, NotBefore: epoch, NotAfter: epoch.Add(valid),
		DNSNames: []string{"b.example", "a.example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true})
	cert, key = filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	for path, text := range map[string]string{cert: c, key: k} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// A listener that comes over LDS when listeners were stopped is left out.
func TestUpdateOfStoppedListeners(t *testing.T) {
	r := newAdminRig(t, anyPort.Replace(adminConfig))
	r.s.main.Post(func() { r.s.Start(func(err error) { t.Log(err) }) })
	r.step()
	r.post("/drain_listeners?inboundonly")
	parse := func(text string) sub.Resource {
		p := &listenerv3.Listener{}
		if err := protojson.Unmarshal([]byte(text), p); err != nil {
			t.Fatal(err)
		}
		return sub.Resource{Name: p.GetName(), Body: p}
	}
	const rest = `, "address": {"socketAddress": {"address": "127.0.0.1", "portValue": 0}}, "filterChains": [{"filters": [{"name": "t", "typedConfig":
		{"@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "statPrefix": "x", "cluster": "c"}}]}]}`
	l := &lds{s: r.s, done: func() {}, pause: func() func() { return func() {} }}
	var err error
	r.s.main.Post(func() {
		err = l.OnUpdate(&sub.Update{Full: true, Resources: []sub.Resource{
			parse(`{"name": "in", "trafficDirection": "INBOUND"` + rest), parse(`{"name": "out", "trafficDirection": "OUTBOUND"` + rest)}})
	})
	r.step()
	if err != nil || r.s.listeners["in"] != nil || r.s.listeners["out"] == nil {
		t.Errorf("%v, inbound %v, outbound %v", err, r.s.listeners["in"], r.s.listeners["out"])
	}
}
