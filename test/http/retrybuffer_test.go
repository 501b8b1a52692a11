package http_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// retrying is a route whose attempts wait about a second between each other, with metadata for how bodies are kept.
func retrying(metadata string) string {
	if metadata != "" {
		metadata = ", metadata: {filter_metadata: {dragoman.retry: " + metadata + "}}"
	}
	return `{match: {prefix: /}, route: {cluster: up, timeout: 0s, retry_policy: {retry_on: "5xx,reset,connect-failure", num_retries: 2,
		rate_limited_retry_back_off: {reset_headers: [{name: retry-after, format: SECONDS}], max_interval: 5s}}}` + metadata + `}`
}

// upload is a POST request with a body of n bytes, every one of them told by its place.
func upload(n int) (head, body string) {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + i%23 + i>>12%3)
	}
	return fmt.Sprintf("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n", n), string(b)
}

// whenGot calls f once n bytes of the body are here.
func whenGot(r *scripttest.Call, n int, f func()) {
	if len(r.Body) >= n {
		f()
		return
	}
	r.After(time.Millisecond, func() { whenGot(r, n, f) })
}

// buffer is the limit of bodies: per_connection_buffer_limit_bytes, and the window of streams.
const buffer = 65535

// limited is a configuration with a small buffer for bodies.
func limited(metadata string) scripttest.Config {
	return scripttest.Config{Routes: []string{retrying(metadata)},
		HCM:       []string{"http_protocol_options: {enable_trailers: true}", fmt.Sprint("http2_protocol_options: {initial_stream_window_size: ", buffer, "}")},
		Listener:  []string{fmt.Sprint("per_connection_buffer_limit_bytes: ", buffer)},
		Bootstrap: []string{"layered_runtime: {layers: [{name: s, static_layer: {dragoman.retry_buffer.max_file_bytes: 600000}}]}"}}
}

// A failed attempt waits for a second while the body goes on.
func TestBodyDuringBackoff(t *testing.T) {
	const all, early = 200 << 10, 1000
	cases := map[string]struct {
		metadata string
		status   int
		counters map[string]uint64
		held     bool
	}{
		"Envoy's way": {"", 507, map[string]uint64{
			"cluster.up.retry_or_shadow_abandoned": 1, "cluster.up.dragoman.retry_abandoned.buffer_limit": 1, "cluster.up.upstream_rq_retry": 0}, false},
		// The second attempt takes what was held, and then needs more than may be kept.
		"held back": {"{hold_client: true}", 200, map[string]uint64{
			"cluster.up.retry_or_shadow_abandoned": 1, "cluster.up.dragoman.retry_abandoned.memory_limit": 1, "cluster.up.upstream_rq_retry_success": 1}, true},
		"more memory": {"{memory_bytes: 204800}", 200, map[string]uint64{
			"cluster.up.retry_or_shadow_abandoned": 0, "cluster.up.upstream_rq_retry_success": 1}, false},
		"a file": {"{file_bytes: 204800}", 200, map[string]uint64{
			"cluster.up.retry_or_shadow_abandoned": 0, "cluster.up.upstream_rq_retry_success": 1, "cluster.up.dragoman.retry_buffer.files": 1}, true},
	}
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				head, body := upload(all)
				got := ""
				p := m.Start(t, limited(c.metadata), scripttest.Upstream{Early: true, Serve: func(r *scripttest.Call) {
					if r.N == 1 {
						whenGot(r, early, func() { r.Reply("503 Service Unavailable", "", "retry-after: 1") })
						return
					}
					whenGot(r, all, func() {
						got = r.Body
						r.Reply("200 OK", "")
					})
				}})
				cl := p.Dial().Send(head + body[:early])
				p.Pass(100 * time.Millisecond)
				cl.Send(body[early:])
				p.Pass(5 * time.Second)
				a := cl.Response()
				if a.Status != c.status {
					t.Errorf("got %+v", a)
				}
				if c.status == 200 && got != body {
					t.Errorf("another body arrived: %d bytes", len(got))
				}
				if c.status == 507 && a.Body != "exceeded request buffer limit while retrying upstream" {
					t.Errorf("got %q", a.Body)
				}
				p.Stats(c.counters)
				if paused := p.Stat("http.s.downstream_flow_control_paused_reading_total"); c.held && paused == 0 {
					t.Error("the client was not held back")
				}
			})
		}
	})
}

// Attempts fail when much of the body has gone out.
func TestBodyOfFailedAttempts(t *testing.T) {
	cases := map[string]struct {
		metadata string
		size     int
		abandon  string
	}{
		"in memory, at the limit":         {"{memory_bytes: 100000}", 100000, ""},
		"in memory, past the limit":       {"{memory_bytes: 100000}", 100001, "memory_limit"},
		"Envoy's way, at the limit":       {"", buffer, ""},
		"Envoy's way, past the limit":     {"", buffer + 1, "buffer_limit"},
		"in a file, at the limit":         {"{memory_bytes: 1000, file_bytes: 500000}", 500000, ""},
		"in a file, past the limit":       {"{memory_bytes: 1000, file_bytes: 500000}", 500001, "file_limit"},
		"too much for all files together": {"{memory_bytes: 1000, file_bytes: 700000}", 700000, "files_limit"},
		"smaller than what memory holds":  {"{file_bytes: 500000}", 1000, ""},
	}
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) { failedAttempts(t, m, c.metadata, c.size, c.abandon, false) })
			t.Run(name+", with trailers", func(t *testing.T) { failedAttempts(t, m, c.metadata, c.size, c.abandon, true) })
		}
	})
}

// failedAttempts sends a body to an upstream that fails twice when it has it; abandon is why no retry is possible.
func failedAttempts(t *testing.T, m scripttest.Mode, metadata string, size int, abandon string, trailers bool) {
	head, body := upload(size)
	sent := head + body
	var want []string
	if trailers {
		sent = fmt.Sprintf("POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\nx-t: v\r\n\r\n", size, body)
		want = []string{"x-t: v"}
	}
	calls, got := 0, ""
	var end []string
	up := scripttest.Upstream{Early: true, Serve: func(r *scripttest.Call) {
		calls = r.N
		whenGot(r, size, func() {
			if r.N < 3 {
				r.Fail()
				return
			}
			r.After(10*time.Millisecond, func() { // what ends the body
				got, end = r.Body, r.Trailers
				r.Reply("200 OK", "")
			})
		})
	}}
	c := limited(metadata)
	if !m.Up.Streams() {
		c.Cluster = []string{"http_protocol_options: {enable_trailers: true}"}
	}
	p := m.Start(t, c, up)
	cl := p.Dial().Send(sent[:500])
	cl.Send(sent[500:])
	p.Pass(3 * time.Second)
	a := cl.Response()
	if abandon != "" {
		if a.Status != 503 || calls != 1 {
			t.Errorf("%d calls, got %+v", calls, a)
		}
		p.Stats(map[string]uint64{"cluster.up.dragoman.retry_abandoned." + abandon: 1, "cluster.up.retry_or_shadow_abandoned": 1, "cluster.up.upstream_rq_retry": 0})
		return
	}
	if a.Status != 200 || calls != 3 {
		t.Errorf("%d calls, got %+v", calls, a)
	}
	if got != body {
		t.Errorf("another body arrived: %d bytes", len(got))
	}
	if diff := cmp.Diff(want, end); diff != "" {
		t.Errorf("trailers: %s", diff)
	}
	p.Stats(map[string]uint64{"cluster.up.upstream_rq_retry": 2, "cluster.up.retry_or_shadow_abandoned": 0})
}

// A body that is too large for the buffer costs no retry as long as nobody has taken a byte of it.
func TestBodyBeforeConnection(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		head, body := upload(200 << 10)
		got := ""
		up := scripttest.Upstream{Serve: func(r *scripttest.Call) {
			got = r.Body
			r.Reply("200 OK", "")
		}}
		c := limited("{hold_client: true}")
		c.Upstreams, c.Cluster = 2, []string{"connect_timeout: 1s"}
		// One of the hosts answers no attempt to connect. Requests go to each in turn.
		p := m.Start(t, c, scripttest.Upstream{Down: true}, up)
		for range 2 {
			got = ""
			cl := p.Dial().Send(head + body)
			p.Pass(10 * time.Second)
			if a := cl.Response(); a.Status != 200 || got != body {
				t.Errorf("got %+v; %d bytes arrived", a, len(got))
			}
		}
		if p.Stat("cluster.up.upstream_cx_connect_fail") == 0 {
			t.Error("no attempt to connect has failed")
		}
	})
}

// With a limit of 0, no body is kept.
func TestBodyWithoutBuffer(t *testing.T) {
	for _, field := range []string{"request_body_buffer_limit", "per_request_buffer_limit_bytes"} {
		scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
			calls := 0
			route := strings.Replace(retrying(""), "{match", "{"+field+": 0, match", 1)
			p := m.Start(t, scripttest.Config{Routes: []string{route}}, scripttest.Upstream{Serve: func(r *scripttest.Call) {
				calls = r.N
				r.Reply("503 Service Unavailable", "no")
			}})
			if a := p.Ask(scripttest.Message("POST", "/", "x")); a.Status != 503 || a.Body != "no" || calls != 1 {
				t.Errorf("%s: %d calls, got %+v", field, calls, a)
			}
			p.Stats(map[string]uint64{"cluster.up.retry_or_shadow_abandoned": 1})
		})
	}
}

// The client goes away, or the answer comes, while the body is being kept: nothing is left behind.
func TestBodyNobodyNeeds(t *testing.T) {
	head, body := upload(400 << 10)
	cases := map[string]struct {
		serve func(r *scripttest.Call)
		body  string
	}{
		"an early answer": {func(r *scripttest.Call) { r.Reply("200 OK", "early") }, "early"},
		"no answer":       {func(*scripttest.Call) {}, ""},
		"a failure": {func(r *scripttest.Call) {
			whenGot(r, 100<<10, func() { r.Reply("503 Service Unavailable", "", "retry-after: 1") })
		}, ""},
	}
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				p := m.Start(t, scripttest.Config{Routes: []string{retrying("{file_bytes: 1000000, memory_bytes: 1000}")}}, scripttest.Upstream{Early: true, Serve: c.serve})
				cl := p.Dial().Send(head + body[:150<<10])
				cl.Send(body[150<<10 : 300<<10])
				if a := cl.Response(); a.Body != c.body {
					t.Errorf("got %+v", a)
				}
				cl.Abort()
			})
		}
	})
}

// An upstream that refuses connections, whatever they would have spoken.
func TestRefusedConnections(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{}, scripttest.Upstream{Down: true})
		if a := p.Ask(scripttest.Request("/")); a.Status != 503 {
			t.Errorf("got %+v", a)
		}
		p.Stats(map[string]uint64{"cluster.up.upstream_cx_connect_fail": 1, "cluster.up.upstream_rq_pending_failure_eject": 1})
	})
}

// A reply in the middle of a body ends an HTTP/1 connection, also when the rest of the body came in the same read.
func TestConnectionAfterAbandonedRetry(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		for _, length := range []int{10, 11} {
			p := m.Start(t, scripttest.Config{Routes: []string{"{match: {prefix: /}, request_body_buffer_limit: 10, " +
				"route: {cluster: up, retry_policy: {retry_on: 5xx, rate_limited_retry_back_off: {reset_headers: [{name: retry-after}], max_interval: 9s}}}}"}},
				scripttest.Upstream{Early: true, Serve: func(r *scripttest.Call) {
					if r.N == 1 {
						r.Reply("503 Service Unavailable", "", "retry-after: 1")
					} else {
						whenGot(r, length, func() { r.Reply("200 OK", "") })
					}
				}})
			head, body := upload(length)
			cl := p.Dial().Send(head)
			cl.Send(body)
			p.Pass(5 * time.Second)
			status := 200
			if length > 10 {
				status = 507
			}
			if a := cl.Response(); a.Status != status || cl.Leaving() != (status == 507 && !m.Down.Streams()) {
				t.Errorf("%d bytes: got %+v, the connection ends: %v", length, a, cl.Leaving())
			}
		}
	})
}
