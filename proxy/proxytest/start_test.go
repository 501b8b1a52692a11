package proxytest_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const plain = `
static_resources:
  listeners:
  - name: main
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: test
          access_log:
          - name: file
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog
              path: TEMPDIR/access.log
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {prefix: /}
                route: {cluster: backend}
          http_filters:
          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
  - name: backend
    type: STATIC
    load_assignment: {cluster_name: backend, endpoints: [{lb_endpoints: [{endpoint: {address: UPSTREAM(backend)}}]}]}
`

func backend() proxytest.Option {
	return proxytest.Upstream("backend", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		b, _ := io.ReadAll(q.Body)
		w.Header().Set("X-Upstream", "yes")
		_, _ = fmt.Fprint(w, q.Method, " ", q.URL.Path, " ", string(b))
	}))
}

func TestStart(t *testing.T) {
	proxytest.EachIO(t, func(t *testing.T, kind proxytest.Option) {
		p := proxytest.Start(t, plain, backend(), kind)
		if a := p.Get("/a"); a.Code != 200 || a.Body != "GET /a " || a.Header.Get("X-Upstream") != "yes" {
			t.Errorf("%+v", a)
		}
		if a := p.Do("POST", "/b", "body"); a.Body != "POST /b body" {
			t.Errorf("%+v", a)
		}
		p.Await("http.test.downstream_rq_2xx", "2")
		if a := p.Admin("GET", "/ready"); a.Code != 200 || a.Body != "LIVE\n" {
			t.Errorf("%+v", a)
		}
		if !strings.HasPrefix(p.Addr("main"), "127.0.0.1:") {
			t.Error(p.Addr("main"))
		}
		p.Stop()
		p.Stop()
	})
}

// TestTempDir: files are written below a folder of the test, and are complete when the proxy has ended.
func TestTempDir(t *testing.T) {
	dir := t.TempDir()
	p := proxytest.Start(t, strings.ReplaceAll(plain, "TEMPDIR", dir), backend())
	p.Get("/logged")
	p.Stop()
	if b, err := os.ReadFile(dir + "/access.log"); err != nil || !strings.Contains(string(b), "GET /logged") {
		t.Errorf("%q, %v", b, err)
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		proxytest.Start(b, plain, backend()).Stop()
	}
}
