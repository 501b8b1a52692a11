package scripttest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

func TestExchange(t *testing.T) {
	p := scripttest.Start(t, scripttest.Config{}.YAML(), scripttest.Upstream{Serve: func(r *scripttest.Call) {
		if r.Path() == "/later" {
			r.After(10*time.Second, func() { r.Reply("200 OK", "late") })
			return
		}
		r.Reply("200 OK", r.Body, "x-path: "+r.Path())
	}})
	got := p.Do("POST /a HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc")
	if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(got, "\r\n\r\nabc") || scripttest.HeaderOf(got, "x-path") != "/a" {
		t.Errorf("got %q", got)
	}
	c := p.Dial().Send(scripttest.Request("/later"))
	if got := c.Got(); got != "" {
		t.Errorf("too early: %q", got)
	}
	p.Pass(10 * time.Second)
	if got := c.Got(); !strings.HasSuffix(got, "late") {
		t.Errorf("got %q", got)
	}
	p.Stats(map[string]uint64{"http.s.downstream_rq_2xx": 2, "cluster.up.upstream_rq_200": 2, "http.s.downstream_cx_active": 2})
}

// The same text means the same in every mode.
func TestModes(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		given := 0
		p := m.Start(t, scripttest.Config{
			HCM:     []string{"http_protocol_options: {enable_trailers: true}"},
			Routes:  []string{`{match: {prefix: /}, route: {cluster: up}, response_headers_to_add: [{header: {key: x-p, value: "%PROTOCOL%"}}]}`},
			Cluster: trailers(m),
		}, scripttest.Upstream{
			Serve: func(r *scripttest.Call) {
				switch r.Path() {
				case "/silent":
				case "/fail":
					r.Fail()
				case "/cut":
					r.Write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc")
					r.Close()
				default:
					r.Write("HTTP/1.1 200 OK\r\nx-want: " + r.Header("x-a") + "\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n" + strings.Join(r.Trailers, "\r\n") + "\r\n\r\n")
				}
			},
			Canceled: func(*scripttest.Call) { given++ },
		})
		c := p.Dial().Send("POST / HTTP/1.1\r\nhost: h.test\r\nX-A: 1\r\ntransfer-encoding: chunked\r\n\r\n2\r\n12\r\n")
		if got := c.Response(); got.Status != 0 {
			t.Errorf("too early: %+v", got)
		}
		got := c.Send("0\r\nx-t: 2\r\n\r\n").Response()
		if got.Status != 200 || got.Get("x-want") != "1" || got.Get("x-p") != m.Down.Name() || got.Body != "abc" || !got.Whole || got.Broken {
			t.Errorf("got %+v", got)
		}
		if len(got.Trailers) != 1 || got.Trailers[0] != "x-t: 2" {
			t.Errorf("trailers %q", got.Trailers)
		}
		if got := p.Ask(scripttest.Request("/fail")); got.Status != 503 || !got.Whole {
			t.Errorf("got %+v", got)
		}
		c = p.Dial().Send(scripttest.Request("/cut"))
		p.Pass(2 * time.Second) // HTTP/1 ends it with the delayed close
		if got := c.Response(); got.Status != 200 || got.Body != "abc" || got.Whole || !got.Broken {
			t.Errorf("got %+v", got)
		}
		c = p.Dial().Send(scripttest.Request("/silent"))
		c.Cancel()
		if got := c.Response(); given != 1 || got.Status != 0 || c.Closed() == m.Down.Streams() {
			t.Errorf("got %+v, canceled %d, closed %v", got, given, c.Closed())
		}
	})
}

// trailers lets them through to upstreams with HTTP/1.
func trailers(m scripttest.Mode) []string {
	if m.Up.Streams() {
		return nil
	}
	return []string{`typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {"@type": ` +
		`type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: {http_protocol_options: {enable_trailers: true}}}}`}
}
