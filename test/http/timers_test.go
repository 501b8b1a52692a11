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
	cases := map[string]struct {
		hcm     []string
		routes  []string
		send    string
		after   time.Duration
		status  int
		body    string
		counter string
		// broken: the answer had begun.
		broken bool
	}{
		"idle":                    {nil, nil, scripttest.Request("/"), 5 * time.Minute, 504, "stream timeout", "downstream_rq_idle_timeout", false},
		"idle, configured":        {[]string{"stream_idle_timeout: 3s"}, nil, scripttest.Request("/"), 3 * time.Second, 504, "stream timeout", "downstream_rq_idle_timeout", false},
		"idle within the request": {[]string{"stream_idle_timeout: 3s"}, nil, post, 3 * time.Second, 408, "stream timeout", "downstream_rq_idle_timeout", false},
		"idle within the answer":  {[]string{"stream_idle_timeout: 3s"}, nil, scripttest.Request("/part"), 3 * time.Second, 200, "abc", "downstream_rq_idle_timeout", true},
		"idle, by the route":      {nil, []string{"{match: {prefix: /}, route: {cluster: up, timeout: 0s, idle_timeout: 7s}}"}, scripttest.Request("/"), 7 * time.Second, 504, "stream timeout", "downstream_rq_idle_timeout", false},
		"request":                 {[]string{"request_timeout: 3s"}, nil, post, 3 * time.Second, 408, "request timeout", "downstream_rq_timeout", false},
		"head":                    {[]string{"request_headers_timeout: 3s"}, nil, "GET / HTTP/1.1\r\nho", 3 * time.Second, 408, "request header timeout", "downstream_rq_header_timeout", false},
		"duration":                {[]string{"common_http_protocol_options: {max_stream_duration: 3s}"}, nil, scripttest.Request("/"), 3 * time.Second, 504, "downstream duration timeout", "downstream_rq_max_duration_reached", false},
		"duration within":         {[]string{"common_http_protocol_options: {max_stream_duration: 3s}"}, nil, post, 3 * time.Second, 408, "downstream duration timeout", "downstream_rq_max_duration_reached", false},
		"duration of the answer":  {[]string{"common_http_protocol_options: {max_stream_duration: 3s}"}, nil, scripttest.Request("/part"), 3 * time.Second, 200, "abc", "downstream_rq_max_duration_reached", true},
		"duration, by the route":  {nil, []string{"{match: {prefix: /}, route: {cluster: up, max_stream_duration: {max_stream_duration: 9s}}}"}, scripttest.Request("/"), 9 * time.Second, 504, "downstream duration timeout", "downstream_rq_max_duration_reached", false},
		"duration, off by route":  {[]string{"common_http_protocol_options: {max_stream_duration: 3s}"}, []string{"{match: {prefix: /}, route: {cluster: up, max_stream_duration: {max_stream_duration: 0s}}}"}, scripttest.Request("/"), 5 * time.Minute, 504, "stream timeout", "downstream_rq_idle_timeout", false},
		"grpc's own":              {nil, []string{"{match: {prefix: /}, route: {cluster: up, max_stream_duration: {grpc_timeout_header_max: 0s}}}"}, scripttest.Request("/", "content-type: application/grpc", "grpc-timeout: 4S"), 4 * time.Second, 200, "", "downstream_rq_max_duration_reached", false},
		"grpc's own, less a bit":  {nil, []string{"{match: {prefix: /}, route: {cluster: up, max_stream_duration: {grpc_timeout_header_max: 0s, grpc_timeout_header_offset: 1s}}}"}, scripttest.Request("/", "content-type: application/grpc", "grpc-timeout: 4S"), 3 * time.Second, 200, "", "downstream_rq_max_duration_reached", false},
		"grpc's own, bound":       {nil, []string{"{match: {prefix: /}, route: {cluster: up, max_stream_duration: {grpc_timeout_header_max: 2s}}}"}, scripttest.Request("/", "content-type: application/grpc", "grpc-timeout: 4S"), 2 * time.Second, 200, "", "downstream_rq_max_duration_reached", false},
	}
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				m.Not(t, name == "head" && m.Down.Streams(), "there is no stream before its head is whole")
				if c.routes == nil {
					c.routes = []string{"{match: {prefix: /}, route: {cluster: up, timeout: 0s}}"}
				}
				p := m.Start(t, scripttest.Config{HCM: c.hcm, Routes: c.routes}, silent)
				cl := p.Dial().Send(c.send)
				p.Pass(c.after - 200*time.Millisecond)
				if early := cl.Response(); !c.broken && early.Status != 0 || early.Broken {
					t.Fatalf("too early: %+v", early)
				}
				p.Pass(500 * time.Millisecond)
				got := cl.Response()
				if got.Status != c.status || got.Body != c.body || got.Whole == c.broken {
					t.Errorf("got %+v, want %d with %q", got, c.status, c.body)
				}
				if s := got.Get("grpc-status"); strings.HasPrefix(name, "grpc") && s != "4" {
					t.Errorf("grpc-status %q", s)
				}
				p.Stats(map[string]uint64{"http.s." + c.counter: 1})
				p.Pass(2 * time.Second)
				closes := (c.status == 408 || c.broken) && !m.Down.Streams()
				if cl.Closed() != closes {
					t.Errorf("closed: %v", cl.Closed())
				}
			})
		}
	})
}

func TestIdleConnections(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{HCM: []string{"common_http_protocol_options: {idle_timeout: 60s}", "drain_timeout: 5s"}}, scripttest.Upstream{})
		fresh, used := p.Dial(), p.Dial().Send(scripttest.Request("/"))
		p.Pass(59 * time.Second)
		if fresh.Closed() || used.Closed() {
			t.Error("closed too early")
		}
		p.Pass(2 * time.Second)
		// A client with HTTP/2 has sent its preface by now, and is told.
		if fresh.Closed() == m.Down.Streams() || fresh.Leaving() != m.Down.Streams() {
			t.Errorf("a connection without a request: closed %v, told %v", fresh.Closed(), fresh.Leaving())
		}
		if used.Closed() {
			t.Error("one that was used gets no time to send what it is about to")
		}
		if used.Send(scripttest.Request("/")); !used.Leaving() {
			t.Error("the client is not told")
		}
		if got := used.Send(scripttest.Request("/again")).Response(); got.Status != 200 || got.Body != "ok" {
			t.Errorf("a request that was on its way is lost: %+v", got)
		}
		p.Pass(7 * time.Second)
		if !used.Closed() {
			t.Error("not closed after the drain time")
		}
		p.Stats(map[string]uint64{"http.s.downstream_cx_idle_timeout": 2})
	})
}

func TestConnectionDuration(t *testing.T) {
	const age = "common_http_protocol_options: {max_connection_duration: 60s}"
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{HCM: []string{age, "drain_timeout: 5s"}}, scripttest.Upstream{})
		fresh, used := p.Dial(), p.Dial().Send(scripttest.Request("/"))
		p.Pass(61 * time.Second)
		if fresh.Closed() == m.Down.Streams() || used.Closed() {
			t.Errorf("closed: %v, %v", fresh.Closed(), used.Closed())
		}
		p.Pass(7 * time.Second)
		if !used.Closed() || !fresh.Closed() {
			t.Error("not closed after the drain time")
		}
		p.Stats(map[string]uint64{"http.s.downstream_cx_max_duration_reached": 2})
	})
}

// A client that asks for it is never cut off between a request and its answer.
func TestSafeConnectionDuration(t *testing.T) {
	const age = "common_http_protocol_options: {max_connection_duration: 60s}"
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		m.Not(t, m.Down.Streams(), "http1_safe_max_connection_duration is for HTTP/1")
		p := m.Start(t, scripttest.Config{HCM: []string{age, "http1_safe_max_connection_duration: true"}}, scripttest.Upstream{})
		c := p.Dial().Send(scripttest.Request("/"))
		p.Pass(10 * time.Minute)
		if c.Closed() {
			t.Fatal("closed before its next answer")
		}
		p.Stats(map[string]uint64{"http.s.downstream_cx_http1_soft_drain": 1})
		if c.Send(scripttest.Request("/")); !c.Leaving() || !c.Closed() {
			t.Errorf("told: %v, closed: %v", c.Leaving(), c.Closed())
		}
		p.Stats(map[string]uint64{"http.s.downstream_cx_http1_soft_drain": 0})
	})
}

func TestMaxRequests(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{HCM: []string{"common_http_protocol_options: {max_requests_per_connection: 2}"}}, scripttest.Upstream{})
		c := p.Dial().Send(scripttest.Request("/"))
		if c.Response().Status != 200 || c.Leaving() || c.Closed() {
			t.Errorf("after the first: told: %v, closed: %v", c.Leaving(), c.Closed())
		}
		if c.Send(scripttest.Request("/")); c.Response().Status != 200 || !c.Leaving() || c.Closed() == m.Down.Streams() {
			t.Errorf("after the last: told: %v, closed: %v", c.Leaving(), c.Closed())
		}
		p.Stats(map[string]uint64{"http.s.downstream_cx_max_requests_reached": 1})
	})
}

// A client that resets its requests right away loses its connection once they are too many.
func TestPrematureResets(t *testing.T) {
	const limit = 20
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		m.Not(t, !m.Down.Streams(), "a reset request is a lost connection")
		for _, c := range []struct {
			name  string
			reset int
			lost  bool
		}{{"below", limit/2 - 1, false}, {"at", limit / 2, true}} {
			t.Run(c.name, func(t *testing.T) {
				p := m.Start(t, scripttest.Config{
					Routes:    []string{"{match: {prefix: /}, route: {cluster: up, timeout: 0s}}"},
					Bootstrap: []string{"layered_runtime: {layers: [{name: s, static_layer: {overload.premature_reset_total_stream_count: 20}}]}"}}, silent)
				cl := p.Dial()
				for i := 0; i < c.reset; i++ {
					cl.Send(scripttest.Request("/")).Cancel()
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
	})
}

// The per-try idle timeout begins when the whole request is on its way, as the per-try timeout does.
func TestPerTryIdleBegins(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{Routes: []string{"{match: {prefix: /}, route: {cluster: up, timeout: 0s, retry_policy: {retry_on: reset, num_retries: 0, per_try_idle_timeout: 3s}}}"}}, silent)
		c := p.Dial().Send(post)
		p.Pass(time.Minute)
		if got := c.Response(); got.Status != 0 {
			t.Fatalf("answered before the request's end: %+v", got)
		}
		c.Send("cde")
		p.Pass(2900 * time.Millisecond)
		if got := c.Response(); got.Status != 0 {
			t.Fatalf("too early: %+v", got)
		}
		p.Pass(200 * time.Millisecond)
		if got := c.Response(); got.Status != 504 {
			t.Errorf("got %+v", got)
		}
	})
}

// A grpc-timeout that is none is passed on where there is no limit.
func TestBadGRPCTimeout(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{Routes: []string{"{match: {prefix: /}, route: {cluster: up, max_stream_duration: {grpc_timeout_header_max: 1s}}}"}}, echo)
		for sent, want := range map[string]string{"150": "150", "abc": "abc", "150m": "150m", "4S": "1000m"} {
			got := p.Ask(scripttest.Request("/", "content-type: application/grpc", "grpc-timeout: "+sent))
			if v := scripttest.HeaderOf(got.Body, "grpc-timeout"); v != want {
				t.Errorf("%s became %q, want %q", sent, v, want)
			}
		}
	})
}
