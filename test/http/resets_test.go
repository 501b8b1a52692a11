package http_test

import (
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// breaking is an upstream that begins its answer, and then does what the path says; for /before it does not begin.
var breaking = scripttest.Upstream{Early: true, Serve: func(r *scripttest.Call) {
	if !strings.HasPrefix(r.Path(), "/before") {
		r.Write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")
	}
	switch {
	case strings.HasSuffix(r.Path(), "/close"):
		r.After(1e6, r.Close)
	case strings.HasSuffix(r.Path(), "/reset"):
		r.After(1e6, r.Reset)
	case strings.HasSuffix(r.Path(), "/fail"):
		r.After(1e6, r.Fail)
	}
}}

// What befalls an upstream after its answer has begun is an internal error to the client, whatever it was.
func TestResetsAfterTheHead(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{}, breaking)
		for _, path := range []string{"/close", "/reset", "/fail"} {
			c := p.Dial().Send(scripttest.Request(path))
			p.Pass(1e9)
			got := c.Response()
			if got.Status != 200 || got.Body != "abc" || !got.Broken {
				t.Errorf("%s: got %+v", path, got)
			}
			if m.Down.Streams() && got.Code != http2.ErrCodeInternal {
				t.Errorf("%s: reset by %v", path, got.Code)
			}
		}
		want := map[string]uint64{"cluster.up.upstream_rq_rx_reset": 0, "cluster.up.upstream_rq_tx_reset": 0}
		if m.Up.Streams() {
			want["cluster.up.upstream_rq_rx_reset"] = 1 // the stream that failed; those of the connections are not resets
		}
		p.Stats(want)
	})
}

// A tunnel ends by CONNECT_ERROR if the connection at its other end fails (RFC 9113, section 8.5), and by NO_ERROR if it is refused.
func TestTunnelsEndByConnectError(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		m.Not(t, !m.Down.Streams(), "there are no codes")
		p := m.Start(t, scripttest.Config{HCM: []string{"upgrade_configs: [{upgrade_type: websocket}]"},
			Routes: []string{"{match: {prefix: /local}, direct_response: {status: 418}}", "{match: {prefix: /}, route: {cluster: up}}"}}, breaking)
		for path, want := range map[string]http2.ErrCode{"/before/reset": http2.ErrCodeConnect, "/local": http2.ErrCodeNo} {
			c := p.Dial().Send(scripttest.Request(path, "connection: Upgrade", "upgrade: websocket"))
			p.Pass(1e9)
			if got := c.Response(); got.Status < 400 || got.Code != want {
				t.Errorf("%s: got %+v, want %v", path, got, want)
			}
		}
	})
}

// A client that may not have another protocol might send it all the same: its connection ends soon.
func TestRefusedUpgradesDrain(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{}, echo)
		c := p.Dial().Send(scripttest.Request("/", "connection: Upgrade", "upgrade: websocket"))
		if got := c.Response(); got.Status != 403 || !c.Leaving() {
			t.Errorf("leaving: %v, got %+v", c.Leaving(), got)
		}
	})
}
