package buffer_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/extensions/filters/http/buffer"
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
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {prefix: /off}
                route: {cluster: backend}
                typed_per_filter_config: {buffer: {"@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.BufferPerRoute, disabled: true}}
              - match: {prefix: /more}
                route: {cluster: backend}
                typed_per_filter_config: {buffer: {"@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.BufferPerRoute, buffer: {max_request_bytes: 2000}}}
              - match: {prefix: /}
                route: {cluster: backend}
          http_filters:
          - name: buffer
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: 1000}
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: backend
    type: STATIC
    load_assignment: {cluster_name: backend, endpoints: [{lb_endpoints: [{endpoint: {address: UPSTREAM(backend)}}]}]}
`

// chunks is a body of unknown length.
type chunks struct{ io.Reader }

func TestBuffer(t *testing.T) {
	p := proxytest.Start(t, bootstrap, proxytest.Filter(buffer.Extension),
		proxytest.Upstream("backend", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			b, _ := io.ReadAll(q.Body)
			_, _ = fmt.Fprint(w, q.ContentLength, " ", len(b))
		})))
	for _, c := range []struct {
		path string
		n    int
		want string
	}{
		{"/", 1000, "200 1000 1000"},
		{"/", 1001, "413 Payload Too Large"},
		{"/more", 2000, "200 2000 2000"},
		{"/more", 2001, "413 Payload Too Large"},
		{"/off", 3000, "200 -1 3000"},
		{"/", 0, "200 0 0"},
	} {
		q, err := http.NewRequest("POST", p.URL(c.path), chunks{strings.NewReader(strings.Repeat("x", c.n))})
		if err != nil {
			t.Fatal(err)
		}
		tr := &http.Transport{}
		r, err := tr.RoundTrip(q)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		tr.CloseIdleConnections()
		if got := fmt.Sprint(r.StatusCode, " ", string(b)); got != c.want {
			t.Errorf("%s, %d bytes: %s, want %s", c.path, c.n, got, c.want)
		}
	}
	if a := p.Get("/"); a.Body != "0 0" {
		t.Errorf("%+v", a)
	}
	p.Await("http.test.downstream_rq_too_large", "2")
}
