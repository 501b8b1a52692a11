package http_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

// head2 is a HEADERS frame of stream 1 with fields "name=value", each as it is.
func head2(t *testing.T, end bool, fields ...string) string {
	t.Helper()
	var block, frames bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		if err := enc.WriteField(hpack.HeaderField{Name: name, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	if err := http2.NewFramer(&frames, nil).WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: end, EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
	return frames.String()
}

// send2 sends frames on a connection of its own, and returns when the proxy has ended the connection or stream 1.
func send2(t *testing.T, addr, frames string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(25 * time.Second))
	if _, err := io.WriteString(c, http2.ClientPreface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00"+frames); err != nil {
		t.Fatal(err)
	}
	in := http2.NewFramer(nil, c)
	for {
		f, err := in.ReadFrame()
		if err != nil {
			return
		}
		if h := f.Header(); h.StreamID == 1 && (h.Type == http2.FrameRSTStream || h.Flags.Has(http2.FlagDataEndStream) && h.Type <= http2.FrameHeaders) {
			return
		}
	}
}

var (
	port = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	sent = regexp.MustCompile(` [1-9]\d+$`)
)

// What is wrong with a stream of HTTP/2 is in its details, and whose fault it was in its flags, as in Envoy.
func TestLogsOfBadStreams(t *testing.T) {
	const bootstrap = `{static_resources: {listeners: [{name: l, address: {socket_address: {address: 127.0.0.1, port_value: 0}}, filter_chains: [{filters: [{name: h, typed_config: {
  "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s,
  common_http_protocol_options: {headers_with_underscores_action: REJECT_REQUEST, max_headers_count: 20}, max_request_headers_kb: 4, delayed_close_timeout: 0s, OPTIONS
  access_log: [{name: l, typed_config: {"@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: TEMPDIR/log,
    log_format: {text_format_source: {inline_string: "%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %UPSTREAM_HOST% %UPSTREAM_CONNECTION_POOL_READY_DURATION% %DOWNSTREAM_HEADER_BYTES_SENT%\n"}}}}],
  http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}],
  route_config: {name: r, virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /full}, route: {cluster: full}}, {match: {prefix: /}, route: {cluster: up}}]}]}}}]}]}],
  clusters: [{name: up, load_assignment: {cluster_name: up, endpoints: [{lb_endpoints: [{endpoint: {address: UPSTREAM(up)}}]}]}},
    {name: full, circuit_breakers: {thresholds: [{max_pending_requests: 0}]}, load_assignment: {cluster_name: full, endpoints: [{lb_endpoints: [{endpoint: {address: UPSTREAM(up)}}]}]}}]}}`
	get := func(more ...string) string {
		return head2(t, true, append([]string{":method=GET", ":scheme=http", ":authority=a", ":path=/"}, more...)...)
	}
	many := strings.Split(strings.TrimSuffix(strings.Repeat("x=y ", 20), " "), " ")
	frames := []string{get(many...), get("x=" + strings.Repeat("y", 5000)), get("x_y=1"), get("te=gzip"), head2(t, true, ":method=GET"),
		head2(t, false, ":method=POST", ":scheme=http", ":authority=a", ":path=/", "content-length=1") + "\x00\x00\x02\x00\x01\x00\x00\x00\x01ab",
		head2(t, true, ":method=GET", ":scheme=http", ":authority=a", ":path=/full"),
		head2(t, false, ":method=POST", ":scheme=http", ":authority=a", ":path=/full")}
	for name, dead := range map[string]string{"connections": "2", "streams": "0"} {
		t.Run(name, func(t *testing.T) {
			options := ""
			if name == "streams" {
				options = "http2_protocol_options: {override_stream_error_on_invalid_http_message: true},"
			}
			dir := t.TempDir()
			p := proxytest.Start(t, strings.NewReplacer("TEMPDIR", dir, "OPTIONS", options).Replace(bootstrap),
				proxytest.Upstream("up", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
			for _, f := range frames {
				send2(t, p.Addr("l"), f)
			}
			p.Await("http.s.downstream_cx_active", "0")
			if got := p.Stats()["http.s.downstream_cx_destroy_local_active_rq"]; got != dead {
				t.Errorf("%s connections ended with requests, want %s", got, dead)
			}
			p.Stop() // the log is whole then
			got := sortedLines(dir + "/log")
			for i := range got {
				got[i] = sent.ReplaceAllString(port.ReplaceAllString(got[i], "HOST"), " +")
			}
			want := []string{"0 DPE http2.invalid.header.field - - 0", "0 DPE http2.remote_reset HOST - 0", "0 DPE http2.violation.of.messaging.rule - - 0",
				"0 DR http2.header_list_size_too_large - - 0", "0 DR http2.too_many_headers - - 0", "0 DR http2.unexpected_underscore - - 0",
				"503 UO upstream_reset_before_response_started{overflow} - 0 +", "503 UO upstream_reset_before_response_started{overflow} - 0 +"}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
