package authorize_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/examples/customfilters/authorize"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const bootstrap = `
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
          route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: backend}}]}]}
          http_filters:
          - name: authorize
            typed_config: {"@type": type.googleapis.com/xds.type.v3.TypedStruct, type_url: a.b/dragoman.examples.Authorize, value: CONFIG}
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: backend
    type: STATIC
    load_assignment: {cluster_name: backend, endpoints: [{lb_endpoints: [{endpoint: {address: UPSTREAM(backend)}}]}]}
  - name: authz
    type: STATIC
    load_assignment: {cluster_name: authz, endpoints: [{lb_endpoints: [{endpoint: {address: UPSTREAM(authz)}}]}]}
`

// service answers by the path that it is asked about.
func service() proxytest.Option {
	return proxytest.Upstream("authz", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/check/ok":
			w.Header().Set("X-User", q.Header.Get("Authorization")+"@"+q.Host)
		case "/check/deny":
			w.WriteHeader(403)
			_, _ = fmt.Fprint(w, "go away")
		case "/check/broken":
			w.WriteHeader(500)
		case "/check/slow":
			<-q.Context().Done()
		}
	}))
}

func backend() proxytest.Option {
	return proxytest.Upstream("backend", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = fmt.Fprint(w, "user=", q.Header.Get("X-User"))
	}))
}

func TestAuthorize(t *testing.T) {
	proxytest.EachIO(t, func(t *testing.T, kind proxytest.Option) {
		config := "{cluster: authz, path_prefix: /check, timeout: 25s}"
		p := proxytest.Start(t, strings.ReplaceAll(bootstrap, "CONFIG", config), proxytest.Filter(authorize.Extension), service(), backend(), kind)
		for path, want := range map[string]string{"/ok": "200 user=me@test", "/deny": "403 go away", "/broken": "503 "} {
			a := p.Get(path, "Host", "test", "Authorization", "me", "X-User", "root")
			if got := fmt.Sprint(a.Code, " ", a.Body); got != want {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
		}
		for stat, want := range map[string]string{"http.test.authorize.ok": "1", "http.test.authorize.denied": "1", "http.test.authorize.error": "1",
			"http.test.suspended_filters": "0", "http.test.suspended_filters_overflow": "0", "http.async-client.rq_total": "3",
			"cluster.authz.upstream_rq_timeout": "0"} {
			p.Await(stat, want)
		}
	})
}

// TestTimeout: a service that does not answer in time is none.
func TestTimeout(t *testing.T) {
	proxytest.EachIO(t, func(t *testing.T, kind proxytest.Option) {
		config := "{cluster: authz, path_prefix: /check, timeout: 0.05s}"
		p := proxytest.Start(t, strings.ReplaceAll(bootstrap, "CONFIG", config), proxytest.Filter(authorize.Extension), service(), backend(), kind)
		if a := p.Get("/slow"); a.Code != 503 {
			t.Errorf("%+v", a)
		}
		p.Await("http.test.authorize.error", "1")
		p.Await("cluster.authz.upstream_rq_timeout", "1")
	})
}

// TestFailOpen: with the service away, requests pass if that was asked for, and the body that waited comes with them.
func TestFailOpen(t *testing.T) {
	for config, want := range map[string]int{"{cluster: nobody, fail_open: true}": 200, "{cluster: nobody}": 503} {
		p := proxytest.Start(t, strings.ReplaceAll(bootstrap, "CONFIG", config), proxytest.Filter(authorize.Extension), service(), backend())
		if a := p.Do("POST", "/ok", strings.Repeat("x", 1<<20)); a.Code != want {
			t.Errorf("%s: %+v", config, a)
		}
	}
}

// TestClientLeaves: the call ends with the client.
func TestClientLeaves(t *testing.T) {
	p := proxytest.Start(t, strings.ReplaceAll(bootstrap, "CONFIG", "{cluster: authz, path_prefix: /check, timeout: 100s}"),
		proxytest.Filter(authorize.Extension), service(), backend())
	ctx, cancel := context.WithCancel(t.Context())
	q, err := http.NewRequestWithContext(ctx, "GET", p.URL("/slow"), nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r, err := tr.RoundTrip(q); err == nil {
			_ = r.Body.Close()
			t.Error("there was an answer")
		}
	}()
	p.Await("http.test.suspended_filters", "1")
	p.Await("cluster.authz.upstream_rq_active", "1")
	cancel()
	<-done
	p.Await("http.test.suspended_filters", "0")
	p.Await("cluster.authz.upstream_rq_active", "0")
}
