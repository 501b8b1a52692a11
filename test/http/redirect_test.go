package http_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

const predicate = "predicates: [{name: p, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.internal_redirect."

// redirected are the routes of the tests of internal redirects.
var redirected = []string{
	"{name: one, match: {prefix: /one}, route: {cluster: up, internal_redirect_policy: {redirect_response_codes: [302, 303, 307], response_headers_to_copy: [x-copy, x-gone]}}}",
	"{name: more, match: {prefix: /more}, route: {cluster: up, internal_redirect_policy: {max_internal_redirects: 2}}}",
	"{name: allow, match: {prefix: /allow}, route: {cluster: up, internal_redirect_policy: {" + predicate + "allow_listed_routes.v3.AllowListedRoutesConfig, allowed_route_names: [ok]}}]}}}",
	"{name: previous, match: {prefix: /previous}, route: {cluster: up, internal_redirect_policy: {max_internal_redirects: 9, " + predicate + "previous_routes.v3.PreviousRoutesConfig}}]}}}",
	"{name: safe, match: {prefix: /safe}, route: {cluster: up, internal_redirect_policy: {allow_cross_scheme_redirect: true, " + predicate + "safe_cross_scheme.v3.SafeCrossSchemeConfig}}]}}}",
	"{name: cross, match: {prefix: /cross}, route: {cluster: up, internal_redirect_policy: {allow_cross_scheme_redirect: true}}}",
	"{name: small, match: {prefix: /small}, route: {cluster: up, internal_redirect_policy: {redirect_response_codes: [307]}}, request_body_buffer_limit: 4}",
	"{name: ok, match: {prefix: /ok}, route: {cluster: up}}",
	"{name: direct, match: {prefix: /direct}, direct_response: {status: 418}}",
}

// jumper answers with the redirect that the query asks for, or tells what it got.
var jumper = scripttest.Upstream{Serve: func(r *scripttest.Call) {
	path, to, found := strings.Cut(r.Path(), "?")
	if !found || strings.HasPrefix(path, "/ok") {
		r.Reply("200 OK", r.Head+"\r\n\r\n"+r.Body)
		return
	}
	code, to, _ := strings.Cut(to, ",")
	r.Reply(code+" Found", "go there", "location: "+strings.Replace(to, "~", "#", 1), "x-copy: from the answer")
}}

func TestInternalRedirects(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		const other = "http://other.test"
		for name, c := range map[string]struct {
			send   string // path, or a whole request
			status string
			want   []string // lines that the last upstream got
			passed string   // counter of a redirect that went to the client
		}{
			"followed": {scripttest.Request("/one?302,"+other+"/ok~f", "x-copy: old", "x-gone: old"), "200", []string{"GET /ok HTTP/1.1", "host: other.test",
				"x-envoy-original-url: http://h.test/one?302," + other + "/ok~f", "x-copy: from the answer", "-x-gone: old"}, ""},
			"a host alone":     {"/one?302," + other + ":81", "302", nil, "no_route"},
			"query":            {"/one?302," + other + "/ok?q=1", "200", []string{"GET /ok?q=1 HTTP/1.1"}, ""},
			"another code":     {"/one?301," + other + "/ok", "301", nil, "-"},
			"nowhere":          {"/one?302,", "302", nil, "bad_location"},
			"not absolute":     {"/one?302,/ok", "302", nil, "bad_location"},
			"another scheme":   {"/one?302,https://other.test/ok", "302", nil, "unsafe_scheme"},
			"a scheme may":     {"/cross?302,https://other.test/ok", "200", []string{"GET /ok HTTP/1.1", "host: other.test"}, ""},
			"unknown scheme":   {"/cross?302,ftp://other.test/ok", "302", nil, "bad_location"},
			"not safe":         {"/safe?302,https://other.test/ok", "302", nil, "predicate"},
			"safe":             {"/safe?302," + other + "/ok", "200", []string{"GET /ok HTTP/1.1"}, ""},
			"no route":         {"/one?302," + other + "/none", "302", nil, "no_route"},
			"to a reply":       {"/one?302," + other + "/direct", "418", nil, ""},
			"one is enough":    {"/one?302," + other + "/one?302," + other + "/ok", "302", nil, "too_many_redirects"},
			"two":              {"/more?302," + other + "/more?302," + other + "/ok", "200", []string{"GET /ok HTTP/1.1"}, ""},
			"listed":           {"/allow?302," + other + "/ok", "200", []string{"GET /ok HTTP/1.1"}, ""},
			"not listed":       {"/allow?302," + other + "/one", "302", nil, "predicate"},
			"a circle of one":  {"/previous?302," + other + "/previous?302," + other + "/previous?302," + other + "/ok", "302", nil, "predicate"},
			"with its body":    {"POST /one?307," + other + "/ok HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc", "200", []string{"POST /ok HTTP/1.1", "content-length: 3", "abc"}, ""},
			"chunks":           {"POST /one?307," + other + "/ok HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "200", []string{"POST /ok HTTP/1.1", "abc"}, ""},
			"with trailers":    {"POST /one?307," + other + "/ok HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-t: 1\r\n\r\n", "200", []string{"POST /ok HTTP/1.1", "abc", "-x-t: 1"}, ""},
			"trailers alone":   {"POST /one?307," + other + "/ok HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx-t: 1\r\n\r\n", "200", []string{"POST /ok HTTP/1.1", "-abc", "-x-t: 1"}, ""},
			"see other":        {"POST /one?303," + other + "/ok HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc", "200", []string{"GET /ok HTTP/1.1", "-content-length: 3", "-abc"}, ""},
			"body at limit":    {"POST /small?307," + other + "/ok HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\nabcd", "200", []string{"abcd"}, ""},
			"body past limit":  {"POST /small?307," + other + "/ok HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nabcde", "307", nil, "-"},
			"head is followed": {"HEAD /one?302," + other + "/ok HTTP/1.1\r\nhost: h\r\n\r\n", "200", nil, ""},
		} {
			t.Run(name, func(t *testing.T) {
				p := m.Start(t, scripttest.Config{Routes: redirected, HCM: []string{"http_protocol_options: {enable_trailers: true}"}}, jumper)
				m.Not(t, m.Down.TLS(), "http is another scheme there")
				send := c.send
				if send[0] == '/' {
					send = scripttest.Request(send)
				}
				cl := p.Dial().Send(send)
				p.Pass(time.Second)
				got := cl.Got()
				if !strings.HasPrefix(got, "HTTP/1.1 "+c.status+" ") {
					t.Fatalf("got %q, want %s", got, c.status)
				}
				_, body, _ := strings.Cut(got, "\r\n\r\n")
				for _, l := range c.want {
					text, absent := strings.CutPrefix(l, "-")
					if strings.Contains("\r\n"+body+"\r\n", "\r\n"+text+"\r\n") == absent {
						t.Errorf("line %q: the upstream got %q", l, body)
					}
				}
				succeeded, failed := uint64(1), uint64(0)
				switch {
				case c.passed != "":
					succeeded, failed = 0, 1
					if strings.HasPrefix(name, "a circle") || name == "one is enough" {
						succeeded = 1
					}
					if name == "another code" {
						failed = 0
					}
				case name == "two":
					succeeded = 2
				}
				p.Stats(map[string]uint64{"cluster.up.upstream_internal_redirect_succeeded_total": succeeded, "cluster.up.upstream_internal_redirect_failed_total": failed,
					"http.s.downstream_rq_completed": 1})
				if c.passed != "" && c.passed != "-" {
					p.Stats(map[string]uint64{"http.s.passthrough_internal_redirect_" + c.passed: 1})
				}
				if again := cl.Send(scripttest.Request("/ok")).Got(); !strings.HasPrefix(again, "HTTP/1.1 200 OK") {
					t.Errorf("the connection's next request: %q", again)
				}
			})
		}
	})
}
