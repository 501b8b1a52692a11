package http_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// answering returns an upstream that answers every request with these bytes.
func answering(text string) scripttest.Upstream {
	return scripttest.Upstream{Serve: func(r *scripttest.Call) { r.Write(text) }}
}

// lines returns the lines of an answer's head; today's date is named.
func lines(answer string) []string {
	head, _, _ := strings.Cut(answer, "\r\n\r\n")
	out := strings.Split(head, "\r\n")
	for i, l := range out {
		if k, v, _ := strings.Cut(l, ": "); k == "date" && !strings.Contains(v, " 2000 ") {
			out[i] = "date: NOW"
		}
	}
	return out
}

func TestResponseHeaders(t *testing.T) {
	const plain = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
	const full = "HTTP/1.1 200 OK\r\ndate: Sat, 01 Jan 2000 00:00:00 GMT\r\nserver: mine\r\nkeep-alive: t=1\r\nproxy-connection: p\r\nvia: u\r\n" +
		"x-request-id: zz\r\nx-envoy-upstream-service-time: 77\r\ncontent-length: 2\r\n\r\nok"
	for name, c := range map[string]struct {
		hcm    []string
		answer string
		want   []string
	}{
		"plain": {nil, plain, []string{"HTTP/1.1 200 OK", "content-length: 2", "x-envoy-upstream-service-time: 0", "date: NOW", "server: envoy"}},
		"full": {nil, full, []string{"HTTP/1.1 200 OK", "date: Sat, 01 Jan 2000 00:00:00 GMT", "server: envoy", "via: u", "x-request-id: zz",
			"x-envoy-upstream-service-time: 0", "content-length: 2"}},
		"named": {[]string{"server_name: s1", "via: me", "always_set_request_id_in_response: true", "preserve_external_request_id: true"}, full,
			[]string{"HTTP/1.1 200 OK", "date: Sat, 01 Jan 2000 00:00:00 GMT", "server: s1", "via: u, me", "x-request-id: client",
				"x-envoy-upstream-service-time: 0", "content-length: 2"}},
		"append to none": {[]string{"server_header_transformation: APPEND_IF_ABSENT"}, plain,
			[]string{"HTTP/1.1 200 OK", "content-length: 2", "x-envoy-upstream-service-time: 0", "date: NOW", "server: envoy"}},
		"append to one": {[]string{"server_header_transformation: APPEND_IF_ABSENT"}, full, []string{"HTTP/1.1 200 OK", "date: Sat, 01 Jan 2000 00:00:00 GMT",
			"server: mine", "via: u", "x-request-id: zz", "x-envoy-upstream-service-time: 0", "content-length: 2"}},
		"pass through": {[]string{"server_header_transformation: PASS_THROUGH"}, plain,
			[]string{"HTTP/1.1 200 OK", "content-length: 2", "x-envoy-upstream-service-time: 0", "date: NOW"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := scripttest.Start(t, scripttest.Config{HCM: c.hcm}.YAML(), answering(c.answer))
			if d := cmp.Diff(c.want, lines(p.Get("/", "x-request-id: client"))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestExpectContinue(t *testing.T) {
	const send = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n"
	p := scripttest.Start(t, scripttest.Config{}.YAML(), echo)
	c := p.Dial().Send(send)
	if got := c.Got(); got != "HTTP/1.1 100 Continue\r\n\r\n" {
		t.Errorf("got %q", got)
	}
	if got := c.Send("ab").Got(); !strings.HasPrefix(got, "HTTP/1.1 200 ") || strings.Contains(got, "\r\nexpect:") {
		t.Errorf("got %q", got)
	}
	p.Stats(map[string]uint64{"http.s.downstream_rq_1xx": 1, "http.s.downstream_rq_2xx": 1, "http.s.downstream_rq_completed": 2})
	proxied := scripttest.Start(t, scripttest.Config{HCM: []string{"proxy_100_continue: true"}}.YAML(),
		scripttest.Upstream{Early: true, Serve: func(r *scripttest.Call) {
			if r.Header("expect") == "" {
				t.Error("the upstream was not asked")
			}
			r.Write("HTTP/1.1 100 Go\r\nx-a: b\r\n\r\n")
		}})
	if got := proxied.Dial().Send(send).Got(); got != "HTTP/1.1 100 Continue\r\nx-a: b\r\n\r\n" {
		t.Errorf("got %q", got)
	}
}

// When a connection ends with its answer, and how.
func TestClosing(t *testing.T) {
	for name, c := range map[string]struct {
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
	} {
		t.Run(name, func(t *testing.T) {
			p := scripttest.Start(t, scripttest.Config{HCM: []string{"http_protocol_options: {accept_http_10: true}"},
				Routes: []string{"{match: {prefix: /d}, direct_response: {status: 200, body: {inline_string: d}}}",
					"{match: {prefix: /n}, direct_response: {status: 404}}", "{match: {prefix: /}, route: {cluster: up}}"}}.YAML(),
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
}

func TestLocalReplies(t *testing.T) {
	p := scripttest.Start(t, scripttest.Config{
		HCM: []string{`local_reply_config: {mappers: [
			{filter: {header_filter: {header: {name: x-map, string_match: {exact: a}}}}, status_code: 450, body: {inline_string: mapped},
				headers_to_add: [{header: {key: x-was, value: "%RESPONSE_CODE%"}}]},
			{filter: {status_code_filter: {comparison: {op: EQ, value: {default_value: 503, runtime_key: k}}}},
				body_format_override: {json_format: {code: "%RESPONSE_CODE%", text: "%LOCAL_REPLY_BODY%"}}}]}`},
		Routes: []string{`{match: {prefix: /503}, direct_response: {status: 503, body: {inline_string: sorry}}}`,
			`{match: {prefix: /301}, redirect: {path_redirect: /x}, response_headers_to_add: [{header: {key: x-r, value: v}}]}`,
			`{match: {prefix: /d}, direct_response: {status: 200, body: {inline_string: text}}}`},
	}.YAML(), scripttest.Upstream{})
	for name, c := range map[string]struct {
		send string
		want []string
		body string
	}{
		"plain":          {scripttest.Request("/d"), []string{"HTTP/1.1 200 OK", "content-length: 4", "content-type: text/plain", "date: NOW", "server: envoy"}, "text"},
		"head":           {"HEAD /d HTTP/1.1\r\nhost: a\r\n\r\n", []string{"HTTP/1.1 200 OK", "content-length: 4", "content-type: text/plain", "date: NOW", "server: envoy"}, ""},
		"nothing":        {scripttest.Request("/zzz"), []string{"HTTP/1.1 404 Not Found", "date: NOW", "server: envoy", "content-length: 0"}, ""},
		"head, nothing":  {"HEAD /zzz HTTP/1.1\r\nhost: a\r\n\r\n", []string{"HTTP/1.1 404 Not Found", "date: NOW", "server: envoy", "transfer-encoding: chunked"}, ""},
		"mapped":         {scripttest.Request("/zzz", "x-map: a"), []string{"HTTP/1.1 450 Unknown", "x-was: 404", "content-length: 6", "content-type: text/plain", "date: NOW", "server: envoy"}, "mapped"},
		"formatted":      {scripttest.Request("/503"), []string{"HTTP/1.1 503 Service Unavailable", "content-length: 28", "content-type: application/json", "date: NOW", "server: envoy"}, `{"code":503,"text":"sorry"}` + "\n"},
		"redirect":       {scripttest.Request("/301"), []string{"HTTP/1.1 301 Moved Permanently", "location: http://h.test/x", "x-r: v", "date: NOW", "server: envoy", "content-length: 0"}, ""},
		"grpc":           {scripttest.Request("/d", "content-type: application/grpc"), []string{"HTTP/1.1 200 OK", "content-type: application/grpc", "grpc-status: 2", "grpc-message: text", "date: NOW", "server: envoy", "content-length: 0"}, ""},
		"grpc, mapped":   {scripttest.Request("/503", "content-type: application/grpc+x"), []string{"HTTP/1.1 200 OK", "content-type: application/grpc", "grpc-status: 14", `grpc-message: {"code":503,"text":"sorry"}`, "date: NOW", "server: envoy", "content-length: 0"}, ""},
		"grpc, no route": {scripttest.Request("/zzz", "content-type: application/grpc"), []string{"HTTP/1.1 200 OK", "content-type: application/grpc", "grpc-status: 12", "date: NOW", "server: envoy", "content-length: 0"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := p.Do(c.send)
			if d := cmp.Diff(c.want, lines(got)); d != "" {
				t.Error(d)
			}
			if _, body, _ := strings.Cut(got, "\r\n\r\n"); body != c.body {
				t.Errorf("body %q, want %q", body, c.body)
			}
		})
	}
}

func TestUpgrade(t *testing.T) {
	upgrading := scripttest.Upstream{Early: true, Serve: func(r *scripttest.Call) {
		if strings.HasPrefix(r.Path(), "/no") {
			r.Reply(r.Path()[3:]+" No", "refused", "x-mine: 1")
			return
		}
		r.Write("HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\nhello")
	}}
	p := scripttest.Start(t, scripttest.Config{HCM: []string{"upgrade_configs: [{upgrade_type: websocket}]"}}.YAML(), upgrading)
	ask := func(path string) *scripttest.Client {
		return p.Dial().Send(scripttest.Request(path, "connection: keep-alive, Upgrade", "upgrade: WebSocket"))
	}
	c := ask("/yes")
	got := c.Got()
	want := []string{"HTTP/1.1 101 Switching Protocols", "connection: Upgrade", "upgrade: websocket", "date: NOW", "server: envoy"}
	if d := cmp.Diff(want, lines(got)); d != "" {
		t.Error(d)
	}
	if !strings.HasSuffix(got, "\r\n\r\nhello") {
		t.Errorf("got %q", got)
	}
	p.Stats(map[string]uint64{"http.s.downstream_cx_upgrades_total": 1, "http.s.downstream_cx_upgrades_active": 1})
	c.Close()
	p.Stats(map[string]uint64{"http.s.downstream_cx_upgrades_active": 0})
	// Success that is none has no body; errors have theirs.
	for code, body := range map[string]string{"200": "", "299": "", "301": "", "404": "refused", "500": "refused"} {
		c := ask("/no" + code)
		got := c.Got()
		if !strings.HasPrefix(got, "HTTP/1.1 "+code+" ") || !strings.HasSuffix(got, "\r\n\r\n"+body) || scripttest.HeaderOf(got, "connection") != "close" {
			t.Errorf("%s: got %q", code, got)
		}
		if mine := scripttest.HeaderOf(got, "x-mine"); (mine != "") != (body != "") {
			t.Errorf("%s: x-mine is %q", code, mine)
		}
	}
}
