package http_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// silent never answers; part begins an answer and does not go on.
var silent = scripttest.Upstream{Early: true, Serve: func(r *scripttest.Call) {
	if r.Path() == "/part" {
		r.Write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc")
	}
}}

const post = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nab"

func TestStreamTimeouts(t *testing.T) {
	for name, c := range map[string]struct {
		hcm     []string
		routes  []string
		send    string
		after   time.Duration
		status  string
		body    string
		counter string
		// broken: the answer had begun.
		broken bool
	}{
		"idle":                    {nil, nil, scripttest.Request("/"), 5 * time.Minute, "504 Gateway Timeout", "stream timeout", "downstream_rq_idle_timeout", false},
		"idle, configured":        {[]string{"stream_idle_timeout: 3s"}, nil, scripttest.Request("/"), 3 * time.Second, "504 Gateway Timeout", "stream timeout", "downstream_rq_idle_timeout", false},
		"idle within the request": {[]string{"stream_idle_timeout: 3s"}, nil, post, 3 * time.Second, "408 Request Timeout", "stream timeout", "downstream_rq_idle_timeout", false},
		"idle within the answer":  {[]string{"stream_idle_timeout: 3s"}, nil, scripttest.Request("/part"), 3 * time.Second, "200 OK", "abc", "downstream_rq_idle_timeout", true},
		"idle, by the route":      {nil, []string{"{match: {prefix: /}, route: {cluster: up, timeout: 0s, idle_timeout: 7s}}"}, scripttest.Request("/"), 7 * time.Second, "504 Gateway Timeout", "stream timeout", "downstream_rq_idle_timeout", false},
		"request":                 {[]string{"request_timeout: 3s"}, nil, post, 3 * time.Second, "408 Request Timeout", "request timeout", "downstream_rq_timeout", false},
		"head":                    {[]string{"request_headers_timeout: 3s"}, nil, "GET / HTTP/1.1\r\nho", 3 * time.Second, "408 Request Timeout", "request header timeout", "downstream_rq_header_timeout", false},
		"duration":                {[]string{"common_http_protocol_options: {max_stream_duration: 3s}"}, nil, scripttest.Request("/"), 3 * time.Second, "504 Gateway Timeout", "downstream duration timeout", "downstream_rq_max_duration_reached", false},
		"duration within":         {[]string{"common_http_protocol_options: {max_stream_duration: 3s}"}, nil, post, 3 * time.Second, "408 Request Timeout", "downstream duration timeout", "downstream_rq_max_duration_reached", false},
		"duration of the answer":  {[]string{"common_http_protocol_options: {max_stream_duration: 3s}"}, nil, scripttest.Request("/part"), 3 * time.Second, "200 OK", "abc", "downstream_rq_max_duration_reached", true},
		"duration, by the route":  {nil, []string{"{match: {prefix: /}, route: {cluster: up, max_stream_duration: {max_stream_duration: 9s}}}"}, scripttest.Request("/"), 9 * time.Second, "504 Gateway Timeout", "downstream duration timeout", "downstream_rq_max_duration_reached", false},
		"duration, off by route":  {[]string{"common_http_protocol_options: {max_stream_duration: 3s}"}, []string{"{match: {prefix: /}, route: {cluster: up, max_stream_duration: {max_stream_duration: 0s}}}"}, scripttest.Request("/"), 5 * time.Minute, "504 Gateway Timeout", "stream timeout", "downstream_rq_idle_timeout", false},
		"grpc's own":              {nil, []string{"{match: {prefix: /}, route: {cluster: up, max_stream_duration: {grpc_timeout_header_max: 0s}}}"}, scripttest.Request("/", "content-type: application/grpc", "grpc-timeout: 4S"), 4 * time.Second, "200 OK", "", "downstream_rq_max_duration_reached", false},
		"grpc's own, less a bit":  {nil, []string{"{match: {prefix: /}, route: {cluster: up, max_stream_duration: {grpc_timeout_header_max: 0s, grpc_timeout_header_offset: 1s}}}"}, scripttest.Request("/", "content-type: application/grpc", "grpc-timeout: 4S"), 3 * time.Second, "200 OK", "", "downstream_rq_max_duration_reached", false},
		"grpc's own, bound":       {nil, []string{"{match: {prefix: /}, route: {cluster: up, max_stream_duration: {grpc_timeout_header_max: 2s}}}"}, scripttest.Request("/", "content-type: application/grpc", "grpc-timeout: 4S"), 2 * time.Second, "200 OK", "", "downstream_rq_max_duration_reached", false},
	} {
		t.Run(name, func(t *testing.T) {
			if c.routes == nil {
				c.routes = []string{"{match: {prefix: /}, route: {cluster: up, timeout: 0s}}"}
			}
			p := scripttest.Start(t, scripttest.Config{HCM: c.hcm, Routes: c.routes}.YAML(), silent)
			cl := p.Dial().Send(c.send)
			p.Pass(c.after - 200*time.Millisecond)
			early := cl.Got()
			if early != "" && !c.broken {
				t.Fatalf("too early: %q", early)
			}
			p.Pass(500 * time.Millisecond)
			got := early + cl.Got()
			if !strings.HasPrefix(got, "HTTP/1.1 "+c.status+"\r\n") || !strings.HasSuffix(got, "\r\n\r\n"+c.body) {
				t.Errorf("got %q, want %s with %q", got, c.status, c.body)
			}
			if s := scripttest.HeaderOf(got, "grpc-status"); strings.HasPrefix(name, "grpc") && s != "4" {
				t.Errorf("grpc-status %q", s)
			}
			p.Stats(map[string]uint64{"http.s." + c.counter: 1})
			p.Pass(2 * time.Second)
			if whole := !strings.HasPrefix(c.status, "408") && !c.broken; cl.Closed() == whole {
				t.Errorf("closed: %v", cl.Closed())
			}
		})
	}
}

func TestIdleConnections(t *testing.T) {
	p := scripttest.Start(t, scripttest.Config{HCM: []string{"common_http_protocol_options: {idle_timeout: 60s}", "drain_timeout: 5s"}}.YAML(), scripttest.Upstream{})
	fresh, used := p.Dial(), p.Dial().Send(scripttest.Request("/"))
	p.Pass(59 * time.Second)
	if fresh.Closed() || used.Closed() {
		t.Error("closed too early")
	}
	p.Pass(2 * time.Second)
	if !fresh.Closed() {
		t.Error("a connection without a request is not closed at once")
	}
	if used.Closed() {
		t.Error("one that was used gets no time to send what it is about to")
	}
	used.Got()
	if v := scripttest.HeaderOf(used.Send(scripttest.Request("/")).Got(), "connection"); v != "close" {
		t.Errorf("the client is not told: %q", v)
	}
	if got := used.Send(scripttest.Request("/again")).Got(); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
		t.Errorf("a request that was on its way is lost: %q", got)
	}
	p.Pass(7 * time.Second)
	if !used.Closed() {
		t.Error("not closed after the drain time")
	}
	p.Stats(map[string]uint64{"http.s.downstream_cx_idle_timeout": 2})
}

func TestConnectionDuration(t *testing.T) {
	const age = "common_http_protocol_options: {max_connection_duration: 60s}"
	t.Run("drain", func(t *testing.T) {
		p := scripttest.Start(t, scripttest.Config{HCM: []string{age, "drain_timeout: 5s"}}.YAML(), scripttest.Upstream{})
		fresh, used := p.Dial(), p.Dial().Send(scripttest.Request("/"))
		used.Got()
		p.Pass(61 * time.Second)
		if !fresh.Closed() || used.Closed() {
			t.Errorf("closed: %v, %v", fresh.Closed(), used.Closed())
		}
		p.Pass(7 * time.Second)
		if !used.Closed() {
			t.Error("not closed after the drain time")
		}
		p.Stats(map[string]uint64{"http.s.downstream_cx_max_duration_reached": 2})
	})
	t.Run("soft", func(t *testing.T) {
		p := scripttest.Start(t, scripttest.Config{HCM: []string{age, "http1_safe_max_connection_duration: true"}}.YAML(), scripttest.Upstream{})
		c := p.Dial().Send(scripttest.Request("/"))
		c.Got()
		p.Pass(10 * time.Minute)
		if c.Closed() {
			t.Fatal("closed before its next answer")
		}
		p.Stats(map[string]uint64{"http.s.downstream_cx_http1_soft_drain": 1})
		if v := scripttest.HeaderOf(c.Send(scripttest.Request("/")).Got(), "connection"); v != "close" || !c.Closed() {
			t.Errorf("connection: %q, closed: %v", v, c.Closed())
		}
		p.Stats(map[string]uint64{"http.s.downstream_cx_http1_soft_drain": 0})
	})
}

func TestMaxRequests(t *testing.T) {
	p := scripttest.Start(t, scripttest.Config{HCM: []string{"common_http_protocol_options: {max_requests_per_connection: 2}"}}.YAML(), scripttest.Upstream{})
	c := p.Dial().Send(scripttest.Request("/"))
	if v := scripttest.HeaderOf(c.Got(), "connection"); v != "" || c.Closed() {
		t.Errorf("after the first: connection: %q, closed: %v", v, c.Closed())
	}
	if v := scripttest.HeaderOf(c.Send(scripttest.Request("/")).Got(), "connection"); v != "close" || !c.Closed() {
		t.Errorf("after the last: connection: %q, closed: %v", v, c.Closed())
	}
	p.Stats(map[string]uint64{"http.s.downstream_cx_max_requests_reached": 1})
}

// A client that resets its requests right away loses its connection once they are too many.
func TestPrematureResets(t *testing.T) {
	const limit = 20
	for _, c := range []struct {
		name  string
		reset int
		lost  bool
	}{{"below", limit/2 - 1, false}, {"at", limit / 2, true}} {
		t.Run(c.name, func(t *testing.T) {
			p := scripttest.Start(t, scripttest.Config{
				Routes:    []string{"{match: {prefix: /}, route: {cluster: up, timeout: 0s}}"},
				Bootstrap: []string{"layered_runtime: {layers: [{name: s, static_layer: {overload.premature_reset_total_stream_count: 20}}]}"}}.YAML(), silent)
			cl := p.Dial().Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, ""))
			for i := 0; i < c.reset; i++ {
				id := uint32(2*i + 1)
				cl.Send(frame(1, 5, id, "\x82\x84\x86\x41\x01h") + frame(3, 0, id, "\x00\x00\x00\x08"))
			}
			if cl.Closed() != c.lost {
				t.Errorf("closed: %v", cl.Closed())
			}
			want := map[string]uint64{"http.s.downstream_rq_too_many_premature_resets": 0}
			if c.lost {
				want["http.s.downstream_rq_too_many_premature_resets"] = 1
			}
			p.Stats(want)
		})
	}
}

// frame is an HTTP/2 frame (RFC 9113, section 4.1).
func frame(kind, flags byte, id uint32, payload string) string {
	n := len(payload)
	return string([]byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags, byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}) + payload
}
