package buffer_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/extensions/filters/http/buffer"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const config = `{"@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: 1000}`

const routes = `
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {prefix: /off}
                route: {cluster: backend}
                typed_per_filter_config: {it: {"@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.BufferPerRoute, disabled: true}}
              - match: {prefix: /more}
                route: {cluster: backend}
                typed_per_filter_config: {it: {"@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.BufferPerRoute, buffer: {max_request_bytes: 2000}}}
              - match: {prefix: /}
                route: {cluster: backend}
`

// chunks is a body of unknown length.
type chunks struct{ io.Reader }

func TestBuffer(t *testing.T) {
	rig := proxytest.HTTPFilter{Filter: buffer.Extension, Config: config, Routes: routes}
	p, _ := rig.Start(t, func(w http.ResponseWriter, q *http.Request) {
		b, _ := io.ReadAll(q.Body)
		_, _ = fmt.Fprint(w, q.ContentLength, " ", len(b))
	})
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
		r, err := (&http.Client{Transport: tr, Timeout: 25 * time.Second}).Do(q)
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
