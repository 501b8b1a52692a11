package health_check_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	checkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/health_check/v3"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/extensions/filters/http/health_check"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest/filtertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const clusters = `  - name: empty
    type: STATIC
  - name: half
    type: STATIC
    load_assignment:
      cluster_name: half
      endpoints:
      - lb_endpoints:
        - {endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}, health_status: UNHEALTHY}
        - {endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 2}}}, health_status: DEGRADED}
`

// start starts a proxy; lines ends it and returns its access log.
func start(t *testing.T, config string, h http.HandlerFunc) (p *proxytest.Proxy, lines func() []string) {
	t.Helper()
	return proxytest.HTTPFilter{Filter: health_check.Extension, Config: config, Clusters: clusters}.Start(t, h)
}

const typed = `{"@type": type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck, headers: [{name: ":path", string_match: {exact: /hz}}], `

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "hello") }

// TestOwnAnswer: the filter answers by itself, as the proxy was told to.
func TestOwnAnswer(t *testing.T) {
	p, lines := start(t, typed+"pass_through_mode: false}", hello)
	check := func(path string, code int, body, failing string) {
		t.Helper()
		a := p.Do("POST", path, "body")
		_, marked := a.Header["X-Envoy-Upstream-Healthchecked-Cluster"]
		if a.Code != code || a.Body != body || marked != (path == "/hz") || a.Header.Get("X-Envoy-Immediate-Health-Check-Fail") != failing {
			t.Errorf("%s: %+v", path, a)
		}
	}
	check("/hz", 200, "", "")
	check("/other", 200, "hello", "")
	p.Admin("POST", "/healthcheck/fail")
	check("/hz", 503, "", "true")
	check("/other", 200, "hello", "true")
	p.Admin("POST", "/healthcheck/ok")
	check("/hz", 200, "", "")
	p.Await("http.test.downstream_rq_total", "5")
	p.Await("http.test.downstream_rq_2xx", "2") // checks are not counted
	want := []string{"200 - health_check_ok", "200 - via_upstream", "503 LH health_check_failed", "200 - via_upstream", "200 - health_check_ok"}
	if d := cmp.Diff(want, lines()); d != "" {
		t.Error(d)
	}
}

// TestCache: of the checks of one span of time, one goes through.
func TestCache(t *testing.T) {
	var n atomic.Int32
	p, lines := start(t, typed+"pass_through_mode: true, cache_time: 1000s}", func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		w.Header().Set("X-Envoy-Degraded", "")
		w.WriteHeader(503)
	})
	for range 3 {
		if a := p.Get("/hz"); a.Code != 503 {
			t.Errorf("%+v", a)
		} else if _, ok := a.Header["X-Envoy-Degraded"]; !ok {
			t.Errorf("not degraded: %v", a.Header)
		}
	}
	if n.Load() != 1 {
		t.Errorf("%d checks went through", n.Load())
	}
	if d := cmp.Diff([]string{"503 - via_upstream", "503 LH health_check_cached", "503 LH health_check_cached"}, lines()); d != "" {
		t.Error(d)
	}
}

// TestClusters: a share of the hosts of clusters must be usable.
func TestClusters(t *testing.T) {
	for min, want := range map[string]string{"{backend: {value: 100}}": "200 - health_check_ok_cluster_healthy",
		"{nobody: {value: 1}}": "503 LH health_check_failed_no_cluster_found", "{empty: {value: 1}}": "503 LH health_check_failed_cluster_empty",
		"{empty: {value: 0}}": "200 - health_check_ok_cluster_healthy", "{half: {value: 50}}": "200 - health_check_ok_cluster_healthy",
		"{half: {value: 51}, backend: {value: 1}}": "503 LH health_check_failed_cluster_unhealthy"} {
		p, lines := start(t, typed+"pass_through_mode: false, cluster_min_healthy_percentages: "+min+"}", hello)
		p.Get("/hz")
		if d := cmp.Diff([]string{want}, lines()); d != "" {
			t.Error(min, d)
		}
	}
}

func TestConfig(t *testing.T) {
	_, err := health_check.Extension.New(&checkv3.HealthCheck{PassThroughMode: wrapperspb.Bool(false), CacheTime: durationpb.New(time.Second)},
		filtertest.NewContext())
	if err == nil || err.Error() != "cache_time_ms must not be set when path_through_mode is disabled" {
		t.Error(err)
	}
}
