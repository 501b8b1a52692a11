// Package http_test says in plain text what a whole proxy does with requests and answers, on a simulated network and clock.
package http_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// echo answers with the head that the upstream got.
var echo = scripttest.Upstream{Serve: func(r *scripttest.Call) { r.Reply("200 OK", r.Head) }}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// headOf is the head that echo has answered with, one line after the other; what is random is named.
func headOf(body string) []string {
	var out []string
	for _, l := range strings.Split(body, "\r\n") {
		if k, v, _ := strings.Cut(l, ": "); k == "x-request-id" && uuid.MatchString(v) {
			l = "x-request-id: UUID"
		}
		out = append(out, l)
	}
	return out
}

func TestRequestHeaders(t *testing.T) {
	const internal = "internal_address_config: {cidr_ranges: [{address_prefix: 10.0.0.0, prefix_len: 8}, {address_prefix: 192.0.2.0, prefix_len: 24}]}"
	cases := map[string]struct {
		hcm  []string
		send []string
		want []string // "S" is the scheme
		// connection: HTTP/2 has no such fields.
		connection bool
	}{
		"nothing": {want: []string{"x-forwarded-proto: S", "x-request-id: UUID", "x-envoy-expected-rq-timeout-ms: 15000"}},
		"hop by hop": {send: []string{"connection: x-y", "x-y: 1", "keep-alive: 5", "proxy-connection: p", "te: trailers, gzip", "upgrade: foo"},
			want: []string{"te: trailers", "x-forwarded-proto: S", "x-request-id: UUID", "x-envoy-expected-rq-timeout-ms: 15000"}, connection: true},
		"te without trailers": {send: []string{"te: gzip"}, want: []string{"x-forwarded-proto: S", "x-request-id: UUID", "x-envoy-expected-rq-timeout-ms: 15000"}, connection: true},
		"a client may not steer": {send: []string{"x-envoy-max-retries: 3", "x-envoy-retry-on: 5xx", "x-envoy-upstream-rq-timeout-ms: 5", "x-envoy-internal: true",
			"x-envoy-original-path: /x", "x-envoy-foo: bar"},
			want: []string{"x-envoy-original-path: /x", "x-envoy-foo: bar", "x-forwarded-proto: S", "x-request-id: UUID", "x-envoy-expected-rq-timeout-ms: 15000"}},
		"at the edge": {hcm: []string{"use_remote_address: true"}, send: []string{"x-forwarded-for: 1.2.3.4", "x-forwarded-proto: https", "x-envoy-original-path: /x",
			"x-envoy-decorator-operation: o", "x-request-id: mine"},
			want: []string{"x-forwarded-for: 1.2.3.4,192.0.2.7", "x-forwarded-proto: S", "x-request-id: UUID", "x-envoy-external-address: 192.0.2.7",
				"x-envoy-expected-rq-timeout-ms: 15000"}},
		"behind a proxy that is trusted": {hcm: []string{"use_remote_address: true", "xff_num_trusted_hops: 1"}, send: []string{"x-forwarded-for: 9.9.9.9, 1.2.3.4",
			"x-forwarded-proto: https"},
			want: []string{"x-forwarded-for: 9.9.9.9, 1.2.3.4,192.0.2.7", "x-forwarded-proto: https", "x-envoy-external-address: 1.2.3.4", "x-request-id: UUID",
				"x-envoy-expected-rq-timeout-ms: 15000"}},
		"an internal peer": {hcm: []string{"use_remote_address: true", internal}, send: []string{"x-request-id: mine", "x-envoy-upstream-rq-timeout-ms: 700"},
			want: []string{"x-request-id: mine", "x-forwarded-for: 192.0.2.7", "x-forwarded-proto: S", "x-envoy-internal: true", "x-envoy-expected-rq-timeout-ms: 700"}},
		"an internal client by xff": {hcm: []string{internal}, send: []string{"x-forwarded-for: 10.1.1.1"},
			want: []string{"x-forwarded-for: 10.1.1.1", "x-forwarded-proto: S", "x-envoy-internal: true", "x-request-id: UUID", "x-envoy-expected-rq-timeout-ms: 15000"}},
		"two in xff are not internal": {hcm: []string{internal}, send: []string{"x-forwarded-for: 10.1.1.1, 10.1.1.2"},
			want: []string{"x-forwarded-for: 10.1.1.1, 10.1.1.2", "x-forwarded-proto: S", "x-request-id: UUID", "x-envoy-expected-rq-timeout-ms: 15000"}},
		"identity": {hcm: []string{"via: v1", "append_x_forwarded_port: true", "generate_request_id: false"}, send: []string{"via: v0"},
			want: []string{"via: v0, v1", "x-forwarded-proto: S", "x-forwarded-port: 8080", "x-envoy-expected-rq-timeout-ms: 15000"}},
		"scheme": {hcm: []string{"scheme_header_transformation: {scheme_to_overwrite: https}"},
			want: []string{"x-forwarded-proto: https", "x-request-id: UUID", "x-envoy-expected-rq-timeout-ms: 15000"}},
		"a bad referer": {send: []string{"referer: a:b"}, want: []string{"x-forwarded-proto: S", "x-request-id: UUID", "x-envoy-expected-rq-timeout-ms: 15000"}},
		"a certificate that nobody asked for": {send: []string{"x-forwarded-client-cert: Hash=1"},
			want: []string{"x-forwarded-proto: S", "x-request-id: UUID", "x-envoy-expected-rq-timeout-ms: 15000"}},
		"a certificate that is let through": {hcm: []string{"forward_client_cert_details: ALWAYS_FORWARD_ONLY"}, send: []string{"x-forwarded-client-cert: Hash=1"},
			want: []string{"x-forwarded-client-cert: Hash=1", "x-forwarded-proto: S", "x-request-id: UUID", "x-envoy-expected-rq-timeout-ms: 15000"}},
	}
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				m.Not(t, c.connection && m.Down.Streams(), "such a request is malformed there")
				p := m.Start(t, scripttest.Config{HCM: c.hcm}, echo)
				got := headOf(p.Ask(scripttest.Request("/x", c.send...)).Body)
				want := []string{"GET /x HTTP/1.1", "host: h.test"}
				for _, l := range c.want {
					want = append(want, strings.Replace(l, "proto: S", "proto: "+m.Down.Scheme(), 1))
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Error(d)
				}
			})
		}
	})
}

func TestInternalOnlyHeaders(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{RouteConfig: []string{"internal_only_headers: [X-Secret]"}}, echo)
		for _, l := range headOf(p.Ask(scripttest.Request("/", "x-secret: 1")).Body) {
			if strings.HasPrefix(l, "x-secret") {
				t.Errorf("a client outside said %s", l)
			}
		}
	})
}

// What is answered before anything else happens.
func TestRefusedRequests(t *testing.T) {
	cases := map[string]struct {
		send       string
		status     int
		body       string
		connection string
		// text: it is about HTTP/1's text.
		text bool
	}{
		"no host":             {"GET / HTTP/1.1\r\n\r\n", 400, "", "close", true},
		"empty host":          {"GET / HTTP/1.1\r\nhost:\r\n\r\n", 200, "", "", true},
		"fragment":            {"GET /#f HTTP/1.1\r\nhost: a\r\n\r\n", 400, "", "close", false},
		"not a path":          {"OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n", 404, "", "", false},
		"old":                 {"GET / HTTP/1.0\r\nhost: a\r\n\r\n", 426, "Upgrade Required", "close", true},
		"query without type":  {"QUERY / HTTP/1.1\r\nhost: a\r\n\r\n", 400, "", "close", false},
		"query":               {"QUERY / HTTP/1.1\r\nhost: a\r\ncontent-type: a/b\r\n\r\n", 200, "", "", false},
		"upgrade not allowed": {"GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: foo\r\n\r\n", 403, "", "close", false},
		"syntax":              {"GET / HTTP/1.1\r\nhost: a\r\nx y: z\r\n\r\n", 400, "Bad Request", "close", true},
		"connect to nowhere":  {"CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n", 404, "", "close", false},
	}
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{HCM: []string{"upgrade_configs: [{upgrade_type: foo, enabled: false}]"}}, echo)
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				m.Not(t, c.text && m.Down.Streams(), "it is about HTTP/1's text")
				cl := p.Dial().Send(c.send)
				got := cl.Response()
				if got.Status != c.status || !got.Whole {
					t.Errorf("got %+v, want %d", got, c.status)
				}
				if v := scripttest.HeaderOf(cl.Got(), "connection"); !m.Down.Streams() && v != c.connection {
					t.Errorf("connection: %q, want %q", v, c.connection)
				}
				if c.status != 200 && got.Body != c.body {
					t.Errorf("body %q, want %q", got.Body, c.body)
				}
			})
		}
	})
}

func TestEscapedSlashes(t *testing.T) {
	cases := map[string]string{
		"KEEP_UNCHANGED": "GET /a%2Fb?q=%2f HTTP/1.1", "REJECT_REQUEST": "400 ", "UNESCAPE_AND_REDIRECT": "307 /a/b?q=%2f", "UNESCAPE_AND_FORWARD": "GET /a/b?q=%2f HTTP/1.1",
	}
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		for action, want := range cases {
			p := m.Start(t, scripttest.Config{HCM: []string{"path_with_escaped_slashes_action: " + action}}, echo)
			a := p.Ask(scripttest.Request("/a%2Fb?q=%2f"))
			got := headOf(a.Body)[0]
			if a.Status != 200 {
				got = fmt.Sprint(a.Status, " ", a.Get("location"))
			}
			if got != want {
				t.Errorf("%s: got %q, want %q", action, got, want)
			}
		}
	})
}

func TestDetection(t *testing.T) {
	const ext = "type.googleapis.com/envoy.extensions.http.original_ip_detection."
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{HCM: []string{
			`original_ip_detection_extensions: [{name: a, typed_config: {"@type": ` + ext + `custom_header.v3.CustomHeaderConfig, header_name: X-IP, ` +
				`reject_with_status: {code: OK}}}]`},
			VirtualHost: []string{`request_headers_to_add: [{header: {key: x-from, value: "%DOWNSTREAM_REMOTE_ADDRESS%"}}]`}}, echo)
		if got := p.Ask(scripttest.Request("/", "x-ip: 8.8.8.8")); !strings.Contains(got.Body, "\r\nx-from: 8.8.8.8:0") {
			t.Errorf("got %+v", got)
		}
		if got := p.Ask(scripttest.Request("/", "x-ip: no address")); got.Status != 403 {
			t.Errorf("got %+v", got)
		}
		p.Stats(map[string]uint64{"http.s.downstream_rq_rejected_via_ip_detection": 1})
	})
}
