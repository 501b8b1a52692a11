package http_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

// maxGrowth is how much memory an upload may take that is kept for retries in a file, however large it is.
const maxGrowth = 2 << 20

// uploads is a bootstrap for large bodies: HERE is where the route's metadata go, H2 where the cluster's protocol goes.
const uploads = `{static_resources: {listeners: [{name: l, address: {socket_address: {address: 127.0.0.1, port_value: 0}}, filter_chains: [{filters: [{name: h, typed_config: {
  "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s,
  http2_protocol_options: {initial_stream_window_size: 65536, initial_connection_window_size: 65536},
  access_log: [{name: l, typed_config: {"@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: TEMPDIR/log,
    log_format: {text_format_source: {inline_string: "%RESPONSE_CODE% %UPSTREAM_REQUEST_ATTEMPT_COUNT% %DYNAMIC_METADATA(dragoman.retry:abandoned)%\n"}}}}],
  http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}],
  route_config: {name: r, virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, HERE route: {cluster: up, timeout: 0s, retry_policy: {retry_on: "reset,5xx", num_retries: 2}}}]}]}}}]}]}],
  clusters: [{name: up, H2 load_assignment: {cluster_name: up, endpoints: [{lb_endpoints: [{endpoint: {address: UPSTREAM(up)}}]}]}}]}}`

const h2Cluster = `typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http2_protocol_options: {initial_stream_window_size: 65536}}}},`

// breaks is an upstream that breaks its first two requests off after some of the body, and answers the third with the body's hash.
type breaks struct {
	after [2]int64
	calls atomic.Int32
}

func (u *breaks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if n := int(u.calls.Add(1)); n <= len(u.after) {
		_, _ = io.CopyN(io.Discard, r.Body, u.after[n-1])
		panic(http.ErrAbortHandler)
	}
	h := sha256.New()
	n, err := io.Copy(h, r.Body)
	fmt.Fprintf(w, "%d %x %v", n, h.Sum(nil), err)
}

// stream is a body that is made as it is read.
type stream struct{ at, size int64 }

func (s *stream) Read(p []byte) (int, error) {
	n := int(min(int64(len(p)), s.size-s.at))
	if n == 0 {
		return 0, io.EOF
	}
	for i := range p[:n] {
		k := s.at + int64(i)
		p[i] = byte(k>>16 + k>>8*7 + k*13)
	}
	s.at += int64(n)
	return n, nil
}

// protocols are what both sides may speak.
var protocols = map[string]func(p *http.Protocols){
	"h1":  func(p *http.Protocols) { p.SetHTTP1(true) },
	"h2c": func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) },
}

// sendBody uploads a body and returns the code and what came back.
func sendBody(t *testing.T, p *proxytest.Proxy, protocol string, body io.Reader, size int64) (int, string) {
	t.Helper()
	return sendPath(t, p, protocol, "/", body, size)
}

func sendPath(t *testing.T, p *proxytest.Proxy, protocol, path string, body io.Reader, size int64) (int, string) {
	t.Helper()
	tr := &http.Transport{Protocols: &http.Protocols{}, WriteBufferSize: 64 << 10}
	protocols[protocol](tr.Protocols)
	defer tr.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, "POST", p.URL(path), body)
	if err != nil {
		t.Fatal(err)
	}
	q.ContentLength = size
	a, err := tr.RoundTrip(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(text)
}

// A large upload meets an upstream that breaks off twice: Envoy's answer by default, success where the route keeps bodies in files.
func TestLargeUpload(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of megabytes")
	}
	for down := range protocols {
		for up := range protocols {
			t.Run(down+" to "+up, func(t *testing.T) {
				size := int64(12 << 20)
				if down == "h1" && up == "h1" {
					size = 100 << 20
				}
				config := strings.Replace(uploads, "H2", map[string]string{"h2c": h2Cluster}[up], 1)
				t.Run("default", func(t *testing.T) {
					u := &breaks{after: [2]int64{size / 3, size / 2}}
					p := proxytest.Start(t, strings.Replace(config, "HERE", "", 1), proxytest.Upstream("up", u))
					code, body := sendBody(t, p, down, &stream{size: size}, size)
					if code != 503 || !strings.HasPrefix(body, "upstream connect error or disconnect/reset before headers. reset reason: ") {
						t.Errorf("%d: %s", code, body)
					}
					p.Await("cluster.up.retry_or_shadow_abandoned", "1")
					p.Await("cluster.up.dragoman.retry_abandoned.buffer_limit", "1")
				})
				t.Run("in a file", func(t *testing.T) {
					u := &breaks{after: [2]int64{size / 3, size / 2}}
					meta := fmt.Sprintf("metadata: {filter_metadata: {dragoman.retry: {file_bytes: %d, file_folder: %s}}},", size, t.TempDir())
					p := proxytest.Start(t, strings.Replace(config, "HERE", meta, 1), proxytest.Upstream("up", u))
					want := sum(&stream{size: size})
					// What every first request costs is not meant.
					u.calls.Store(2)
					sendBody(t, p, down, &stream{size: 100_000}, 100_000)
					u.calls.Store(0)
					grown := growth(func() {
						code, body := sendBody(t, p, down, &stream{size: size}, size)
						if code != 200 || body != fmt.Sprintf("%d %s <nil>", size, want) {
							t.Errorf("%d: %s", code, body)
						}
					})
					t.Logf("%d MiB: heap grew by %d KiB, resident memory by %d KiB", size>>20, grown.heap>>10, grown.resident>>10)
					if grown.heap > maxGrowth {
						t.Errorf("the heap grew by %d bytes", grown.heap)
					}
					p.Await("cluster.up.upstream_rq_retry", "2")
					p.Await("cluster.up.upstream_rq_retry_success", "1")
					p.Await("cluster.up.retry_or_shadow_abandoned", "0")
				})
			})
		}
	}
}

func sum(r io.Reader) string {
	h := sha256.New()
	_, _ = io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil))
}

type grown struct{ heap, resident int64 }

// growth is how much the live heap and the resident memory of this process (the proxy, and both of its peers) grow at most while f
// runs.
func growth(f func()) (most grown) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	heap := func() int64 {
		runtime.GC()
		metrics.Read(live)
		return int64(live[0].Value.Uint64())
	}
	heap0, resident0 := heap(), resident()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	for {
		select {
		case <-done:
			return most
		case <-time.After(20 * time.Millisecond):
		}
		most.heap = max(most.heap, heap()-heap0)
		most.resident = max(most.resident, resident()-resident0)
	}
}

// resident is the resident memory of this process in bytes, 0 where it is not known.
func resident() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	f := strings.Fields(string(b))
	if err != nil || len(f) < 2 {
		return 0
	}
	n, _ := strconv.ParseInt(f[1], 10, 64)
	return n * int64(os.Getpagesize())
}
