package http_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// answering returns an upstream that answers every request with these bytes.
func answering(text string) scripttest.Upstream {
	return scripttest.Upstream{Serve: func(r *scripttest.Call) { r.Write(text) }}
}

// lines returns the status of a response and its fields; today's date is named. A handshake may take a millisecond.
func lines(r scripttest.Response) []string {
	out := append([]string{fmt.Sprint(r.Status)}, r.Lines...)
	for i, l := range out {
		if k, v, _ := strings.Cut(l, ": "); k == "date" && !strings.Contains(v, " 2000 ") {
			out[i] = "date: NOW"
		}
		if l == "x-envoy-upstream-service-time: 1" {
			out[i] = "x-envoy-upstream-service-time: 0"
		}
	}
	return out
}

func TestResponseHeaders(t *testing.T) {
	const plain = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
	const full = "HTTP/1.1 200 OK\r\ndate: Sat, 01 Jan 2000 00:00:00 GMT\r\nserver: mine\r\nkeep-alive: t=1\r\nproxy-connection: p\r\nvia: u\r\n" +
		"x-request-id: zz\r\nx-envoy-upstream-service-time: 77\r\ncontent-length: 2\r\n\r\nok"
	cases := map[string]struct {
		hcm    []string
		answer string
		want   []string
	}{
		"plain": {nil, plain, []string{"200", "content-length: 2", "x-envoy-upstream-service-time: 0", "date: NOW", "server: envoy"}},
		"full": {nil, full, []string{"200", "date: Sat, 01 Jan 2000 00:00:00 GMT", "server: envoy", "via: u", "x-request-id: zz",
			"x-envoy-upstream-service-time: 0", "content-length: 2"}},
		"named": {[]string{"server_name: s1", "via: me", "always_set_request_id_in_response: true", "preserve_external_request_id: true"}, full,
			[]string{"200", "date: Sat, 01 Jan 2000 00:00:00 GMT", "server: s1", "via: u, me", "x-request-id: client",
				"x-envoy-upstream-service-time: 0", "content-length: 2"}},
		"append to none": {[]string{"server_header_transformation: APPEND_IF_ABSENT"}, plain,
			[]string{"200", "content-length: 2", "x-envoy-upstream-service-time: 0", "date: NOW", "server: envoy"}},
		"append to one": {[]string{"server_header_transformation: APPEND_IF_ABSENT"}, full, []string{"200", "date: Sat, 01 Jan 2000 00:00:00 GMT",
			"server: mine", "via: u", "x-request-id: zz", "x-envoy-upstream-service-time: 0", "content-length: 2"}},
		"pass through": {[]string{"server_header_transformation: PASS_THROUGH"}, plain,
			[]string{"200", "content-length: 2", "x-envoy-upstream-service-time: 0", "date: NOW"}},
	}
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				p := m.Start(t, scripttest.Config{HCM: c.hcm}, answering(c.answer))
				if d := cmp.Diff(c.want, lines(p.Ask(scripttest.Request("/", "x-request-id: client")))); d != "" {
					t.Error(d)
				}
			})
		}
	})
}

func TestExpectContinue(t *testing.T) {
	const send = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n"
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{}, echo)
		c := p.Dial().Send(send)
		if got := c.Response(); got.Status != 0 || !slices.Equal(got.Interim, []int{100}) {
			t.Errorf("got %+v", got)
		}
		if got := c.Send("ab").Response(); got.Status != 200 || strings.Contains(got.Body, "\r\nexpect:") {
			t.Errorf("got %+v", got)
		}
		p.Stats(map[string]uint64{"http.s.downstream_rq_1xx": 1, "http.s.downstream_rq_2xx": 1, "http.s.downstream_rq_completed": 2})
		proxied := m.Start(t, scripttest.Config{HCM: []string{"proxy_100_continue: true"}},
			scripttest.Upstream{Early: true, Serve: func(r *scripttest.Call) {
				if r.Header("expect") == "" {
					t.Error("the upstream was not asked")
				}
				r.Write("HTTP/1.1 100 Go\r\nx-a: b\r\n\r\n")
			}})
		if got := proxied.Dial().Send(send).Got(); got != "HTTP/1.1 100 Continue\r\nx-a: b\r\n\r\n" {
			t.Errorf("got %q", got)
		}
	})
}

// When a connection ends with its answer, and how.
func TestClosing(t *testing.T) {
	cases := map[string]struct {
		send, connection string
		// Whether the connection is closed at once, or by the delayed close.
		now, later bool
	}{
		"stays":                             {"GET / HTTP/1.1\r\nhost: a\r\n\r\n", "", false, false},
		"close":                             {"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", "close", true, true},
		"close, answered within":            {"GET /d HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", "close", false, true},
		"bad request":                       {"GET /d HTTP/1.1\r\n\r\n", "close", false, true},
		"answered before the body":          {"POST /d HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n", "close", false, true},
		"answered after the body":           {"POST /d HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nabcde", "close", false, true},
		"old":                               {"GET / HTTP/1.0\r\nhost: a\r\n\r\n", "close", true, true},
		"old and kept":                      {"GET / HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n", "keep-alive", false, false},
		"old and kept, but of no length":    {"GET /u HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n", "close", true, true},
		"old and kept, answered with empty": {"GET /n HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n", "close", false, true},
	}
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		m.Not(t, m.Down.Streams(), "a connection outlives its requests")
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				p := m.Start(t, scripttest.Config{HCM: []string{"http_protocol_options: {accept_http_10: true}"},
					Routes: []string{"{match: {prefix: /d}, direct_response: {status: 200, body: {inline_string: d}}}",
						"{match: {prefix: /n}, direct_response: {status: 404}}", "{match: {prefix: /}, route: {cluster: up}}"}},
					scripttest.Upstream{Serve: func(r *scripttest.Call) {
						if r.Path() == "/u" {
							r.Write("HTTP/1.1 200 OK\r\n\r\nxyz")
							r.Close()
							return
						}
						r.Reply("200 OK", "ok")
					}})
				cl := p.Dial().Send(c.send)
				if v := scripttest.HeaderOf(cl.Got(), "connection"); v != c.connection {
					t.Errorf("connection: %q, want %q", v, c.connection)
				}
				if cl.Closed() != c.now {
					t.Errorf("closed at once: %v", cl.Closed())
				}
				p.Pass(2e9)
				if cl.Closed() != c.later {
					t.Errorf("closed later: %v", cl.Closed())
				}
				if cl.Reset() {
					t.Error("by a reset")
				}
			})
		}
	})
}

func TestLocalReplies(t *testing.T) {
	config := scripttest.Config{
		HCM: []string{`local_reply_config: {mappers: [
			{filter: {header_filter: {header: {name: x-map, string_match: {exact: a}}}}, status_code: 450, body: {inline_string: mapped},
				headers_to_add: [{header: {key: x-was, value: "%RESPONSE_CODE%"}}]},
			{filter: {status_code_filter: {comparison: {op: EQ, value: {default_value: 503, runtime_key: k}}}},
				body_format_override: {json_format: {code: "%RESPONSE_CODE%", text: "%LOCAL_REPLY_BODY%"}}}]}`},
		Routes: []string{`{match: {prefix: /503}, direct_response: {status: 503, body: {inline_string: sorry}}}`,
			`{match: {prefix: /301}, redirect: {path_redirect: /x}, response_headers_to_add: [{header: {key: x-r, value: v}}]}`,
			`{match: {prefix: /d}, direct_response: {status: 200, body: {inline_string: text}}}`},
	}
	cases := map[string]struct {
		send string
		want []string
		body string
	}{
		"plain":          {scripttest.Request("/d"), []string{"200", "content-length: 4", "content-type: text/plain", "date: NOW", "server: envoy"}, "text"},
		"head":           {"HEAD /d HTTP/1.1\r\nhost: a\r\n\r\n", []string{"200", "content-length: 4", "content-type: text/plain", "date: NOW", "server: envoy"}, ""},
		"nothing":        {scripttest.Request("/zzz"), []string{"404", "date: NOW", "server: envoy", "content-length: 0"}, ""},
		"head, nothing":  {"HEAD /zzz HTTP/1.1\r\nhost: a\r\n\r\n", []string{"404", "date: NOW", "server: envoy"}, ""},
		"mapped":         {scripttest.Request("/zzz", "x-map: a"), []string{"450", "x-was: 404", "content-length: 6", "content-type: text/plain", "date: NOW", "server: envoy"}, "mapped"},
		"formatted":      {scripttest.Request("/503"), []string{"503", "content-length: 28", "content-type: application/json", "date: NOW", "server: envoy"}, `{"code":503,"text":"sorry"}` + "\n"},
		"redirect":       {scripttest.Request("/301"), []string{"301", "location: S://h.test/x", "x-r: v", "date: NOW", "server: envoy", "content-length: 0"}, ""},
		"grpc":           {scripttest.Request("/d", "content-type: application/grpc"), []string{"200", "content-type: application/grpc", "grpc-status: 2", "grpc-message: text", "date: NOW", "server: envoy", "content-length: 0"}, ""},
		"grpc, mapped":   {scripttest.Request("/503", "content-type: application/grpc+x"), []string{"200", "content-type: application/grpc", "grpc-status: 14", `grpc-message: {"code":503,"text":"sorry"}`, "date: NOW", "server: envoy", "content-length: 0"}, ""},
		"grpc, no route": {scripttest.Request("/zzz", "content-type: application/grpc"), []string{"200", "content-type: application/grpc", "grpc-status: 12", "date: NOW", "server: envoy", "content-length: 0"}, ""},
	}
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, config, scripttest.Upstream{})
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				var want []string
				for _, l := range c.want {
					if m.Down.Streams() && l == "content-length: 0" {
						continue // the end of the stream says it
					}
					want = append(want, strings.Replace(l, " S://", " "+m.Down.Scheme()+"://", 1))
				}
				got := p.Ask(c.send)
				if d := cmp.Diff(want, lines(got)); d != "" {
					t.Error(d)
				}
				if got.Body != c.body || !got.Whole {
					t.Errorf("body %q, want %q", got.Body, c.body)
				}
			})
		}
	})
}

// The body of a route's own response may come from a file or the environment, and a format may be laid around it.
func TestDirectResponseBodies(t *testing.T) {
	t.Setenv("DRAGOMAN_TEST_BODY", "from the environment")
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, []byte("<%LOCAL_REPLY_BODY%> %REQ(:path)%"), 0o600); err != nil {
		t.Fatal(err)
	}
	var config scripttest.Config
	for path, r := range map[string]string{
		"f": "body: {filename: " + file + "}", "e": "body: {environment_variable: DRAGOMAN_TEST_BODY}",
		"t": "body: {inline_string: hi}, body_format: {text_format: '<%LOCAL_REPLY_BODY%> %RESPONSE_CODE%', content_type: text/html}",
		"j": "body: {inline_string: hi}, body_format: {json_format: {a: '%LOCAL_REPLY_BODY%'}}",
		"s": "body: {inline_string: hi}, body_format: {text_format_source: {filename: " + file + "}}",
	} {
		config.Routes = append(config.Routes, "{match: {path: /"+path+"}, direct_response: {status: 200, "+r+"}}")
	}
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, config, scripttest.Upstream{})
		for path, want := range map[string][]string{
			"f": {"content-length: 33", "content-type: text/plain", "<%LOCAL_REPLY_BODY%> %REQ(:path)%"},
			"e": {"content-length: 20", "content-type: text/plain", "from the environment"},
			"t": {"content-type: text/html", "content-length: 6", "<hi> 0"},
			"j": {"content-type: application/json", "content-length: 11", "{\"a\":\"hi\"}\n"},
			"s": {"content-length: 7", "content-type: text/plain", "<hi> /s"},
		} {
			got := p.Ask(scripttest.Request("/" + path))
			if l := lines(got); !cmp.Equal(l[1:3], want[:2]) || got.Body != want[2] {
				t.Errorf("%s: %q %q, want %q", path, l, got.Body, want)
			}
		}
	})
}

func TestUpgrade(t *testing.T) {
	upgrading := scripttest.Upstream{Early: true, Tunnel: func(r *scripttest.Call, bytes string) { r.Write(bytes) }, Serve: func(r *scripttest.Call) {
		if strings.HasPrefix(r.Path(), "/no") {
			r.Reply(r.Path()[3:]+" No", "refused", "x-mine: 1")
			return
		}
		r.Write("HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\nhello")
	}}
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{HCM: []string{"upgrade_configs: [{upgrade_type: websocket}]"}}, upgrading)
		ask := func(path string) *scripttest.Client {
			return p.Dial().Send(scripttest.Request(path, "connection: keep-alive, Upgrade", "upgrade: WebSocket"))
		}
		c := ask("/yes")
		if d := cmp.Diff([]string{"101", "date: NOW", "server: envoy"}, lines(c.Response())); d != "" {
			t.Error(d)
		}
		if got := c.Response().Body; got != "hello" {
			t.Errorf("got %q", got)
		}
		got := c.Got()
		if !strings.EqualFold(scripttest.HeaderOf(got, "connection"), "upgrade") || !strings.EqualFold(scripttest.HeaderOf(got, "upgrade"), "websocket") {
			t.Errorf("got %q", got)
		}
		if got := c.Send("ping").Response().Body; got != "helloping" {
			t.Errorf("got %q", got)
		}
		p.Stats(map[string]uint64{"http.s.downstream_cx_upgrades_total": 1, "http.s.downstream_cx_upgrades_active": 1})
		c.Close()
		p.Stats(map[string]uint64{"http.s.downstream_cx_upgrades_active": 0})
		// Over HTTP/1, success that is none has no body; errors have theirs.
		for code, body := range map[string]string{"200": "", "299": "", "301": "", "404": "refused", "500": "refused"} {
			if m.Up.Streams() && code[0] == '2' || m.Down.Streams() && code == "200" {
				continue // there it is success
			}
			if m.Up.Streams() {
				body = "refused"
			}
			c := ask("/no" + code)
			got := c.Response()
			if fmt.Sprint(got.Status) != code || got.Body != body || !c.Leaving() && !m.Down.Streams() {
				t.Errorf("%s: got %+v", code, got)
			}
			if mine := got.Get("x-mine"); mine != "1" {
				t.Errorf("%s: x-mine is %q", code, mine)
			}
		}
	})
}

// Codes that are of no class are requests that came to an end, too.
func TestForeignCodes(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{}, answering("HTTP/1.1 600 X\r\ncontent-length: 0\r\n\r\n"))
		if got := p.Ask(scripttest.Request("/")); got.Status != 600 {
			t.Errorf("got %+v", got)
		}
		p.Stats(map[string]uint64{"http.s.downstream_rq_completed": 1, "http.s.downstream_rq_5xx": 0})
	})
}
