package http_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

// What a request took on the wires to upstreams is the sum of its attempts, as in Envoy.
func TestUpstreamBytesOfRetries(t *testing.T) {
	const bootstrap = `{static_resources: {listeners: [{name: l, address: {socket_address: {address: 127.0.0.1, port_value: 0}}, filter_chains: [{filters: [{name: h, typed_config: {
  "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s,
  access_log: [{name: l, typed_config: {"@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: TEMPDIR/log,
    log_format: {text_format_source: {inline_string: "%REQ(:PATH)% %UPSTREAM_REQUEST_ATTEMPT_COUNT% %UPSTREAM_HEADER_BYTES_SENT% %UPSTREAM_HEADER_BYTES_RECEIVED%\n"}}}}],
  http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}],
  route_config: {name: r, virtual_hosts: [{name: v, domains: ["*"], request_headers_to_remove: [x-request-id, user-agent], routes: [
    {match: {prefix: /}, route: {cluster: up, timeout: 0s, retry_policy: {retry_on: 5xx, num_retries: 2, retry_back_off: {base_interval: 0.001s}}}}]}]}}}]}]}],
  clusters: [{name: up, load_assignment: {cluster_name: up, endpoints: [{lb_endpoints: [{endpoint: {address: UPSTREAM(up)}}]}]}}]}}`
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil
		if r.URL.Path == "/b" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	dir := t.TempDir()
	p := proxytest.Start(t, strings.ReplaceAll(bootstrap, "TEMPDIR", dir), proxytest.Upstream("up", upstream))
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	for _, path := range []string{"/a", "/b"} {
		q, err := http.NewRequest("GET", p.URL(path), nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Host = "h"
		a, err := (&http.Client{Transport: tr, Timeout: 25 * time.Second}).Do(q)
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close()
	}
	p.Stop() // the log is whole then
	// A request of 57 bytes and an answer of 18, and three times as much.
	if d := cmp.Diff([]string{"/a 1 57 18", "/b 3 171 54"}, sortedLines(dir+"/log")); d != "" {
		t.Error(d)
	}
}

// Streams that end by a reset, or by a reply of the connection manager, show what they took all the same; who answers before the router
// knows the cluster.
func TestLogsOfBrokenStreams(t *testing.T) {
	const bootstrap = `{static_resources: {listeners: [{name: l, address: {socket_address: {address: 127.0.0.1, port_value: 0}}, filter_chains: [{filters: [{name: h, typed_config: {
  "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s,
  access_log: [{name: l, typed_config: {"@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: TEMPDIR/log,
    log_format: {text_format_source: {inline_string: "%REQ(:PATH)% %RESPONSE_CODE% %UPSTREAM_CLUSTER% %VIRTUAL_CLUSTER_NAME% %DOWNSTREAM_WIRE_BYTES_RECEIVED% %DOWNSTREAM_HEADER_BYTES_SENT% %UPSTREAM_WIRE_BYTES_SENT% %UPSTREAM_HEADER_BYTES_SENT%\n"}}}}],
  http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}],
  route_config: {name: r, virtual_hosts: [{name: v, domains: ["*"], virtual_clusters: [{name: vc, headers: [{name: ":path", string_match: {exact: /early}}]}], routes: [
    {match: {prefix: /strip}, redirect: {prefix_rewrite: /to, strip_query: true}}, {match: {prefix: /idle}, route: {cluster: up, idle_timeout: 0.1s}}, {match: {prefix: /}, route: {cluster: up}}]}]}}}]}]}],
  clusters: [{name: up, load_assignment: {cluster_name: up, endpoints: [{lb_endpoints: [{endpoint: {address: UPSTREAM(up)}}]}]}}]}}`
	stop := make(chan struct{})
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/idle":
			<-stop
		case "/late":
			w.Header().Set("Content-Length", "10")
			_, _ = w.Write([]byte("abc"))
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	})
	dir := t.TempDir()
	p := proxytest.Start(t, strings.ReplaceAll(bootstrap, "TEMPDIR", dir), proxytest.Upstream("up", upstream))
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	for _, path := range []string{"/early", "/late", "/idle", "/upgrade", "/strip?x=1"} {
		q, err := http.NewRequest("POST", p.URL(path), strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		if path == "/upgrade" { // which no route allows
			q.Header.Set("Connection", "upgrade")
			q.Header.Set("Upgrade", "other")
		}
		stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		a, err := (&http.Client{Transport: tr, Timeout: 25 * time.Second, CheckRedirect: stay}).Do(q)
		if err != nil {
			t.Fatal(err)
		}
		if to := a.Header.Get("Location"); to != "" && !strings.HasSuffix(to, "/to") {
			t.Errorf("redirected to %s", to)
		}
		_, _ = io.Copy(io.Discard, a.Body)
		_ = a.Body.Close()
	}
	close(stop)
	p.Stop() // the log is whole then
	var got []string
	for _, l := range sortedLines(dir + "/log") {
		f := strings.Fields(l)
		for i := 4; i < len(f); i++ { // how many depends on ports and ids
			if f[i] != "0" {
				f[i] = "+"
			}
		}
		got = append(got, strings.Join(f, " "))
	}
	want := []string{"/early 503 up vc + + + +", "/idle 504 up - + + + +", "/late 200 up - + + + +", "/to?x=1 301 - - + + 0 0", "/upgrade 403 up - + + 0 0"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
