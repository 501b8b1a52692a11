package http_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

func TestProxyStatus(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		dead := scripttest.Upstream{Down: true}
		const routes = "{match: {prefix: /up}, route: {cluster: up}}"
		for name, c := range map[string]struct {
			hcm, send, status, want string
		}{
			"no route": {"proxy_status_config: {}", scripttest.Request("/"), "404 Not Found",
				`envoy; error=destination_not_found; details="route_not_found; NR"`},
			"the recommended code": {"proxy_status_config: {set_recommended_response_code: true, remove_response_flags: true}", scripttest.Request("/"),
				"500 Internal Server Error", `envoy; error=destination_not_found; details="route_not_found"`},
			"a name": {"proxy_status_config: {literal_proxy_name: me, remove_details: true}", scripttest.Request("/"), "404 Not Found",
				"me; error=destination_not_found"},
			"the server's name": {"server_name: s, proxy_status_config: {remove_details: true}", scripttest.Request("/"), "404 Not Found",
				"s; error=destination_not_found"},
			"an upstream": {"proxy_status_config: {remove_details: true}", scripttest.Request("/up"), "503 Service Unavailable",
				"envoy; error=connection_refused"},
			"not when the client is to blame": {"proxy_status_config: {}", "GET / HTTP/1.1\r\nx y: z\r\n\r\n", "400 Bad Request", ""},
			"off":                             {"via: x", scripttest.Request("/"), "404 Not Found", ""},
		} {
			t.Run(name, func(t *testing.T) {
				p := m.Start(t, scripttest.Config{HCM: []string{c.hcm}, Routes: []string{routes}}, dead)
				m.Not(t, strings.Contains(c.send, "x y: z") && m.Down.Streams(), "it is about HTTP/1's text")
				got := p.Do(c.send)
				if !strings.HasPrefix(got, "HTTP/1.1 "+c.status+"\r\n") || scripttest.HeaderOf(got, "proxy-status") != c.want {
					t.Errorf("got %q, want %s, %s", got, c.status, c.want)
				}
			})
		}
	})
}

// What a client says of its own protocol has to say something.
func TestEmptyForwardedProto(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{}, echo)
		if got := p.Get("/", "x-forwarded-proto:"); !strings.HasPrefix(got, "HTTP/1.1 404 ") {
			t.Errorf("got %q", got)
		}
		p = m.Start(t, scripttest.Config{HCM: []string{"use_remote_address: true"}}, echo)
		if got := p.Get("/", "x-forwarded-proto:"); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Errorf("at the edge: %q", got)
		}
	})
}

// An edge takes no https URL on a connection without TLS.
func TestHTTPSURLOnPlainConnection(t *testing.T) {
	for hcm, want := range map[string]string{"use_remote_address: true": "403 Forbidden", "use_remote_address: false": "200 OK",
		"use_remote_address: true, xff_num_trusted_hops: 1": "200 OK"} {
		p := scripttest.Start(t, scripttest.Config{HCM: []string{hcm}}.YAML(), echo)
		if got := p.Do("GET https://h/ HTTP/1.1\r\nhost: h\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 "+want+"\r\n") {
			t.Errorf("%s: %q, want %s", hcm, got, want)
		}
	}
}

// A client that does not answer pings loses its connection.
func TestDownstreamKeepalive(t *testing.T) {
	p := scripttest.Start(t, scripttest.Config{HCM: []string{
		"http2_protocol_options: {connection_keepalive: {interval: 10s, timeout: 2s, interval_jitter: {value: 0}}}"}}.YAML(), scripttest.Upstream{})
	const pings = "\x00\x00\x08\x06\x00\x00\x00\x00\x00"
	c := p.Dial().Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	p.Pass(9 * time.Second)
	if got := c.Got(); strings.Contains(got, pings) || c.Closed() {
		t.Fatalf("too early: %q", got)
	}
	p.Pass(2 * time.Second)
	got := c.Got()
	i := strings.Index(got, pings)
	if i < 0 {
		t.Fatalf("no ping in %q", got)
	}
	c.Send("\x00\x00\x08\x06\x01\x00\x00\x00\x00" + got[i+9:i+17])
	p.Pass(5 * time.Second)
	if c.Closed() {
		t.Fatal("closed although it answered")
	}
	p.Pass(9 * time.Second)
	if !c.Closed() {
		t.Error("still there")
	}
	p.Stats(map[string]uint64{"http2.keepalive_timeout": 1})
}
