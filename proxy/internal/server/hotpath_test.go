package server

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

const plainConfig = `
static_resources:
  listeners:
  - name: main
    address: {socket_address: {address: 127.0.0.1, port_value: 10000}}
    filter_chains:
    - DOWNSTREAM
      filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: h1
          codec_type: CODEC
          use_remote_address: true
          ACCESSLOG
          route_config:
            name: r
            virtual_hosts:
            - name: v
              domains: ["*"]
              routes:
              - match: {path: /direct}
                direct_response: {status: 200, body: {inline_string: BODY}}
              - match: {prefix: "/"}
                route: {cluster: b, timeout: 0s}
          http_filters:
          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
  - name: b
    UPSTREAM
    type: STATIC
    load_assignment:
      cluster_name: b
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 10001}}}
`

const logConfig = `access_log:
          - name: envoy.access_loggers.file
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog
              path: PATH`

const request = "GET /1k HTTP/1.1\r\nHost: 127.0.0.1:18080\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101\r\n" +
	"Accept: text/html,application/xhtml+xml\r\nAccept-Encoding: gzip, deflate\r\nAccept-Language: en-US,en;q=0.5\r\n" +
	"Cookie: session=0123456789abcdef0123456789abcdef\r\n\r\n"

var answer = "HTTP/1.1 200 OK\r\nServer: backend\r\nDate: Sun, 29 Nov 2026 12:00:00 GMT\r\nContent-Type: text/plain\r\n" +
	"Content-Length: 1024\r\n\r\n" + strings.Repeat("x", 1024)

// setup says what a hot proxy speaks; zero values are plain HTTP/1 on both sides, without an access log.
type setup struct {
	codec, log           string
	downstream, upstream string // further settings of the filter chain and of the cluster
	newPeer              func() upstreamPeer
}

// hot is a proxy on a wire with one client connection.
type hot struct {
	s *Server
	w *event.Worker
	d *wire
	c event.Handle
}

func newHot(tb testing.TB, x setup) *hot {
	tb.Helper()
	or := func(s, other string) string {
		if s == "" {
			return other
		}
		return s
	}
	text := strings.NewReplacer("CODEC", or(x.codec, "HTTP1"), "ACCESSLOG", x.log, "DOWNSTREAM", or(x.downstream, "name: plain"),
		"UPSTREAM", or(x.upstream, "connect_timeout: 5s"), "BODY", strings.Repeat("x", 1024)).Replace(plainConfig)
	path := filepath.Join(tb.TempDir(), "boot.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	boot, err := config.Open(path, config.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	h := &hot{d: newWire(answer)}
	h.d.newPeer = x.newPeer
	h.s, err = New(Config{Boot: boot, Driver: func(name string) (event.Driver, error) {
		if name == "worker_0" {
			return h.d, nil
		}
		return newWire(""), nil
	}})
	if err != nil {
		tb.Fatal(err)
	}
	h.w = h.s.workers[0]
	h.s.main.Post(func() { h.s.Start(func(err error) { tb.Error(err) }) })
	for i := 0; i < 10; i++ {
		h.s.main.Step(false)
		h.w.Step(false)
	}
	h.c = h.d.connect()
	h.steps(3)
	tb.Cleanup(func() {
		h.s.closeOn(h.w)
		h.s.logs.Close(tb.Context())
	})
	return h
}

func (h *hot) steps(n int) {
	for i := 0; i < n; i++ {
		h.w.Step(false)
	}
}

// exchange sends a request and runs the loop until its answer is out.
func (h *hot) exchange(req []byte) bool {
	before := h.d.got
	h.d.push(h.c, req)
	for i := 0; i < 8; i++ {
		h.w.Step(false)
		if h.d.got > before {
			return true
		}
	}
	return false
}

func TestHTTP1Exchange(t *testing.T) {
	h := newHot(t, setup{})
	h.d.keep = true
	if !h.exchange([]byte(request)) {
		t.Fatalf("no answer; sent so far: %q", h.d.last)
	}
	for _, want := range []string{"GET /1k HTTP/1.1\r\n", "x-request-id: ", "x-envoy-external-address: ", "server: envoy\r\n",
		"x-envoy-upstream-service-time: "} {
		if !strings.Contains(string(h.d.last), want) {
			t.Errorf("%q is missing in\n%s", want, h.d.last)
		}
	}
}

// TestNothingIsAllocated is about requests on connections that are warm, whatever they speak.
func TestNothingIsAllocated(t *testing.T) {
	const warm, measured = 100, 1000
	for _, x := range hotCases(t, warm+measured+1) {
		t.Run(x.name, func(t *testing.T) {
			h := newHot(t, x.setup)
			next := x.client(t, h)
			for range warm {
				if !h.exchange(next()) {
					t.Fatal("no answer")
				}
			}
			before, heap := h.d.got, allocated()
			n := testing.AllocsPerRun(measured, func() { h.exchange(next()) })
			// What is made in blocks and not given back is less than one allocation for each. An access log's buffers grow to their size.
			bytes := (allocated() - heap) / (measured + 1)
			if (n != 0 || bytes > 16 && x.name != "http1 logged") && !(x.limited && poolsForget) {
				t.Errorf("%v allocations and %d bytes per request", n, bytes)
			}
			if per := (h.d.got - before) / (measured + 1); per < 1024 {
				t.Errorf("%d bytes per answer: the body is missing", per)
			}
		})
	}
}

// allocated is how many bytes of the heap were allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func BenchmarkRequest(b *testing.B) {
	for _, x := range hotCases(b, 0) {
		if x.limited {
			continue // its requests are made beforehand
		}
		b.Run(x.name, func(b *testing.B) {
			h := newHot(b, x.setup)
			next := x.client(b, h)
			for range 100 {
				if !h.exchange(next()) {
					b.Fatal("no answer")
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				h.exchange(next())
			}
		})
	}
}
