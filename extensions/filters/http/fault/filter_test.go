package fault_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/extensions/filters/http/fault"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start starts a proxy; lines ends it and returns its access log.
func start(t *testing.T, config, routes string, h http.HandlerFunc) (p *proxytest.Proxy, lines func() []string) {
	t.Helper()
	return proxytest.HTTPFilter{Filter: fault.Extension, Config: config, Routes: routes}.Start(t, h)
}

const typed = `{"@type": type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault, `

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "hello") }

func TestAbort(t *testing.T) {
	p, lines := start(t, typed+`abort: {header_abort: {}, percentage: {numerator: 100}}, headers: [{name: x-on, present_match: true}]}`, "", hello)
	for _, c := range []struct {
		header []string
		want   string
	}{
		{[]string{"x-on", "1", "x-envoy-fault-abort-request", "503"}, "503 fault filter abort"},
		{[]string{"x-envoy-fault-abort-request", "503"}, "200 hello"},
		{[]string{"x-on", "1"}, "200 hello"},
		{[]string{"x-on", "1", "x-envoy-fault-abort-request", "99"}, "200 hello"},
		{[]string{"x-on", "1", "x-envoy-fault-abort-request", "600"}, "200 hello"},
		{[]string{"x-on", "1", "x-envoy-fault-abort-request", "503", "x-envoy-fault-abort-request-percentage", "0"}, "200 hello"},
	} {
		a := p.Get("/", c.header...)
		if got := fmt.Sprint(a.Code, " ", a.Body); got != c.want {
			t.Errorf("%q: %s, want %s", c.header, got, c.want)
		}
	}
	a := p.Get("/", "x-on", "1", "x-envoy-fault-abort-grpc-request", "14", "content-type", "application/grpc")
	if a.Code != 200 || a.Header.Get("grpc-status") != "14" || a.Header.Get("grpc-message") != "fault filter abort" {
		t.Errorf("%+v", a)
	}
	p.Await("http.test.fault.aborts_injected", "2")
	p.Await("http.test.fault.active_faults", "0")
	if l := lines(); l[0] != "503 FI fault_filter_abort" || l[1] != "200 - via_upstream" {
		t.Errorf("%q", l)
	}
}

func TestDelayThenAbort(t *testing.T) {
	p, lines := start(t, typed+`delay: {fixed_delay: 0.05s, percentage: {numerator: 100}}, abort: {http_status: 418, percentage: {numerator: 100}}}`, "", hello)
	begin := time.Now()
	if a := p.Do("GET", "/", ""); a.Code != 418 {
		t.Errorf("%+v", a)
	}
	if d := time.Since(begin); d < 50*time.Millisecond {
		t.Errorf("after %v", d)
	}
	p.Await("http.test.fault.delays_injected", "1")
	p.Await("http.test.fault.active_faults", "0")
	if d := cmp.Diff([]string{"418 DI,FI fault_filter_abort"}, lines()); d != "" {
		t.Error(d)
	}
}

// TestDelayByHeader: the body waits with the head.
func TestDelayByHeader(t *testing.T) {
	p, _ := start(t, typed+`delay: {header_delay: {}, percentage: {numerator: 100}}}`, "", func(w http.ResponseWriter, q *http.Request) {
		_, _ = fmt.Fprint(w, q.ContentLength)
	})
	begin := time.Now()
	if a := p.Do("POST", "/", strings.Repeat("x", 100000), "x-envoy-fault-delay-request", "50"); a.Code != 200 || a.Body != "100000" {
		t.Errorf("%+v", a)
	}
	if d := time.Since(begin); d < 50*time.Millisecond {
		t.Errorf("after %v", d)
	}
	for _, v := range []string{"", "x", "-1", "0"} {
		if a := p.Get("/", "x-envoy-fault-delay-request", v); a.Code != 200 {
			t.Errorf("%q: %+v", v, a)
		}
	}
	p.Await("http.test.fault.delays_injected", "1")
}

// TestThroughput: a response of 3000 bytes at 10 KiB a second, of which one sixteenth may go at once.
func TestThroughput(t *testing.T) {
	body := strings.Repeat("0123456789", 300)
	p, _ := start(t, typed+`response_rate_limit: {header_limit: {}, percentage: {numerator: 100}}}`, "", func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/pieces" {
			for i := range 10 {
				_, _ = fmt.Fprint(w, body[i*300:(i+1)*300])
				_ = http.NewResponseController(w).Flush()
			}
			return
		}
		_, _ = fmt.Fprint(w, body)
	})
	begin := time.Now()
	if a := p.Get("/", "x-envoy-fault-throughput-response", "10"); a.Body != body {
		t.Errorf("%d bytes", len(a.Body))
	}
	if d := time.Since(begin); d < 200*time.Millisecond { // (3000-640)/10240 s
		t.Errorf("after %v", d)
	}
	for _, rate := range []string{"100", "1000000", "0", "99999999999999999999"} {
		if a := p.Get("/pieces", "x-envoy-fault-throughput-response", rate); a.Body != body {
			t.Errorf("%s: %d bytes", rate, len(a.Body))
		}
	}
	p.Await("http.test.fault.response_rl_injected", "3")
	p.Await("http.test.fault.active_faults", "0")
}

// TestMaxActive: at the bound, faults are not injected.
func TestMaxActive(t *testing.T) {
	p, _ := start(t, typed+`max_active_faults: 1, delay: {header_delay: {}, percentage: {numerator: 100}}, abort: {http_status: 418, percentage: {numerator: 100}}}`, "", hello)
	q, err := http.NewRequest("GET", p.URL("/"), nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("x-envoy-fault-delay-request", "100000")
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r, err := (&http.Client{Transport: tr, Timeout: 25 * time.Second}).Do(q.WithContext(ctx)); err == nil {
			_ = r.Body.Close()
		}
	}()
	p.Await("http.test.fault.active_faults", "1")
	if a := p.Get("/"); a.Code != 200 {
		t.Errorf("%+v", a)
	}
	p.Await("http.test.fault.faults_overflow", "1")
	cancel()
	<-done
	p.Await("http.test.fault.active_faults", "0")
	if a := p.Get("/"); a.Code != 418 {
		t.Errorf("%+v", a)
	}
}

// TestWhom: faults for an upstream cluster, for downstream nodes, by route.
func TestWhom(t *testing.T) {
	routes := `
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {prefix: /direct}
                direct_response: {status: 200}
              - match: {prefix: /own}
                route: {cluster: backend}
                typed_per_filter_config: {it: ` + typed + `abort: {http_status: 410, percentage: {numerator: 1000000, denominator: MILLION}}}}
              - match: {prefix: /}
                route: {cluster: backend}
`
	p, _ := start(t, typed+`upstream_cluster: backend, downstream_nodes: [here], abort: {http_status: 418, percentage: {numerator: 100}}}`, routes, hello)
	for _, c := range []struct {
		path, node string
		want       int
	}{{"/", "here", 418}, {"/", "there", 200}, {"/", "", 200}, {"/direct", "here", 200}, {"/own", "", 410}} {
		if a := p.Get(c.path, "x-envoy-downstream-service-node", c.node); a.Code != c.want {
			t.Errorf("%+v: %d", c, a.Code)
		}
	}
}

// TestDownstreamClusters: those that say where they come from are counted by it, up to a bound.
func TestDownstreamClusters(t *testing.T) {
	p, _ := start(t, typed+`abort: {http_status: 418, percentage: {numerator: 100}}}`, "", hello)
	for range 3 {
		p.Get("/", "x-envoy-downstream-service-cluster", "mine")
	}
	p.Await("http.test.fault.mine.aborts_injected", "3")
	p.Await("http.test.fault.mine.delays_injected", "0")
	q, err := http.NewRequest("GET", p.URL("/"), nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	for i := range fault.MaxDownstreamClusters + 5 {
		q.Header.Set("x-envoy-downstream-service-cluster", fmt.Sprint("c", i))
		r, err := (&http.Client{Transport: tr, Timeout: 25 * time.Second}).Do(q)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
	}
	p.Await("http.test.fault.aborts_injected", fmt.Sprint(3+fault.MaxDownstreamClusters+5))
	p.Await(fmt.Sprintf("http.test.fault.c%d.aborts_injected", fault.MaxDownstreamClusters-2), "1")
	if v, ok := p.Stats()[fmt.Sprintf("http.test.fault.c%d.aborts_injected", fault.MaxDownstreamClusters-1)]; ok {
		t.Errorf("one more than the bound has its own stats: %s", v)
	}
	off, _ := start(t, typed+`disable_downstream_cluster_stats: true, abort: {http_status: 418, percentage: {numerator: 100}}}`, "", hello)
	off.Get("/", "x-envoy-downstream-service-cluster", "mine")
	off.Await("http.test.fault.aborts_injected", "1")
	if _, ok := off.Stats()["http.test.fault.mine.aborts_injected"]; ok {
		t.Error("counted although it is turned off")
	}
}
