package header_to_metadata_test //nolint:revive // Envoy's name

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/extensions/filters/http/header_to_metadata"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const typed = `{"@type": type.googleapis.com/envoy.extensions.filters.http.header_to_metadata.v3.Config, `

// start starts a proxy with the filter; lines ends it and returns the metadata of each request.
func start(t *testing.T, config string, h http.HandlerFunc) (p *proxytest.Proxy, lines func() []string) {
	t.Helper()
	return proxytest.HTTPFilter{
		Filter: header_to_metadata.Extension, Config: typed + config + "}",
		Routes: `{virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /own}, route: {cluster: backend}, ` +
			`typed_per_filter_config: {it: ` + typed + `request_rules: [{header: x-own, on_header_present: {metadata_namespace: ns, key: own}}]}}}, ` +
			`{match: {prefix: /}, route: {cluster: backend}}]}]}`,
		Log: "%DYNAMIC_METADATA(ns)% %DYNAMIC_METADATA(envoy.filters.http.header_to_metadata)%",
	}.Start(t, h)
}

// answer answers with headers, and tells which of the request's it got.
func answer(w http.ResponseWriter, r *http.Request) {
	w.Header()["X-Got"] = []string{strings.Join(r.Header["X-A"], ",")}
	w.Header()["X-Resp"] = []string{"one", "two"}
}

// TestRules compares with what Envoy 1.40 makes of the same rules and requests.
func TestRules(t *testing.T) {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	a := func(more string) string {
		return "request_rules: [{header: x-a, on_header_present: {metadata_namespace: ns, key: a" + more + "}}]"
	}
	tier := "request_rules: [{cookie: ck, on_header_present: {metadata_namespace: ns, key: a}, on_header_missing: {metadata_namespace: ns, key: m, value: none}}]"
	for name, c := range map[string]struct {
		config string
		sent   [][]string // header name, value...
		want   []string
	}{
		"present or missing": {"request_rules: [{header: X-A, on_header_present: {metadata_namespace: ns, key: a}, on_header_missing: {metadata_namespace: ns, key: m, value: none}}]",
			[][]string{{"x-a", "one"}, {"x-a", "one", "x-a", "two"}, {"x-a", ""}, {}},
			[]string{`{"a":"one"} -`, `{"a":"one,two"} -`, `- -`, `{"m":"none"} -`}},
		"the filter's namespace": {"request_rules: [{header: x-a, on_header_present: {key: a}}]", [][]string{{"x-a", "one"}}, []string{`- {"a":"one"}`}},
		"a value of its own":     {a(", value: fixed"), [][]string{{"x-a", "one"}, {"x-a", ""}, {}}, []string{`{"a":"fixed"} -`, `{"a":"fixed"} -`, `- -`}},
		"numbers": {a(", type: NUMBER"), [][]string{{"x-a", "3"}, {"x-a", "3.50"}, {"x-a", "1e3"}, {"x-a", "3x"}, {"x-a", "0x10"}, {"x-a", "+5"}, {"x-a", ".5"}, {"x-a", "1_0"}, {"x-a", "1e400"}},
			[]string{`{"a":3} -`, `{"a":3.5} -`, `{"a":1000} -`, `- -`, `{"a":16} -`, `{"a":5} -`, `{"a":0.5} -`, `- -`, `{"a":null} -`}},
		"base64": {a(", encode: BASE64"), [][]string{{"x-a", "aGVsbG8="}, {"x-a", "aGVsbG8"}, {"x-a", "aGVsbG8=="}, {"x-a", "!!!"}, {"x-a", "_-8="}},
			[]string{`{"a":"hello"} -`, `{"a":"hello"} -`, `{"a":"hello"} -`, `- -`, `- -`}},
		"messages": {a(", encode: BASE64, type: PROTOBUF_VALUE"), [][]string{{"x-a", b64("\x1a\x02hi")}, {"x-a", b64("\x20\x01")}, {"x-a", b64("\x2a\x0b\x0a\x09\x0a\x01k\x12\x04\x1a\x02hi")},
			{"x-a", b64("\x08\x00")}, {"x-a", "AAAA"}}, []string{`{"a":"hi"} -`, `{"a":true} -`, `{"a":{"k":"hi"}} -`, `{"a":null} -`, `- -`}},
		"rewritten": {a(`, regex_value_rewrite: {pattern: {regex: "^(o.)|l+"}, substitution: "<\\1>"}`), [][]string{{"x-a", "only all"}, {"x-a", "x"}},
			[]string{`{"a":"<on><>y a<>"} -`, `{"a":"x"} -`}},
		"rewritten and decoded": {a(`, encode: BASE64, regex_value_rewrite: {pattern: {regex: "^x"}, substitution: ""}`), [][]string{{"x-a", "xaGVsbG8="}, {"x-a", "x"}}, []string{`{"a":"hello"} -`, `- -`}},
		"at the limit":          {a(""), [][]string{{"x-a", strings.Repeat("y", 8191)}, {"x-a", strings.Repeat("y", 8192)}}, []string{`{"a":"` + strings.Repeat("y", 8191) + `"} -`, `- -`}},
		"cookies": {tier, [][]string{{"cookie", "ck=cv"}, {"cookie", `a=b; ck="q"; c=d`}, {"cookie", "ck="}, {"cookie", "a=b"}, {"cookie", "a=b", "cookie", "ck=two"}, {"cookie", "ck=1; ck=2"}},
			[]string{`{"a":"cv"} -`, `{"a":"q"} -`, `{"m":"none"} -`, `{"m":"none"} -`, `{"a":"two"} -`, `{"a":"1"} -`}},
		"the last rule wins": {"request_rules: [{header: x-a, on_header_present: {metadata_namespace: ns, key: a}}, {header: x-b, on_header_present: {metadata_namespace: ns, key: a}}]",
			[][]string{{"x-a", "1"}, {"x-a", "1", "x-b", "2"}}, []string{`{"a":"1"} -`, `{"a":"2"} -`}},
		"pseudo headers": {"request_rules: [{header: Host, on_header_present: {metadata_namespace: ns, key: a}}, {header: ':method', on_header_present: {metadata_namespace: ns, key: b}}]",
			[][]string{{"host", "h.test"}}, []string{`{"a":"h.test","b":"GET"} -`}},
		"responses": {"response_rules: [{header: x-resp, on_header_present: {metadata_namespace: ns, key: r}}, {header: ':status', on_header_present: {metadata_namespace: ns, key: s, type: NUMBER}}, " +
			"{header: x-none, on_header_missing: {metadata_namespace: ns, key: m, value: none}}]", [][]string{{}}, []string{`{"m":"none","r":"one,two","s":200} -`}},
	} {
		t.Run(name, func(t *testing.T) {
			p, lines := start(t, c.config, answer)
			for _, h := range c.sent {
				if r := p.Get("/", h...); r.Code != 200 {
					t.Fatalf("got %d", r.Code)
				}
			}
			if d := cmp.Diff(c.want, lines()); d != "" {
				t.Error(d)
			}
		})
	}
}

// A header that is removed goes before the next rule looks, whether or not its value was of use.
func TestRemove(t *testing.T) {
	p, lines := start(t, "request_rules: [{header: x-a, on_header_present: {metadata_namespace: ns, key: a, type: NUMBER}, remove: true}, "+
		"{header: x-a, on_header_missing: {metadata_namespace: ns, key: b, value: gone}}], response_rules: [{header: x-resp, on_header_present: {metadata_namespace: ns, key: r}, remove: true}]", answer)
	for _, v := range []string{"1", "x"} {
		if r := p.Get("/", "x-a", v, "x-a", v); r.Header.Get("x-got") != "" || r.Header["X-Resp"] != nil {
			t.Errorf("got %v", r.Header)
		}
	}
	if d := cmp.Diff([]string{`{"b":"gone","r":"one,two"} -`, `{"b":"gone","r":"one,two"} -`}, lines()); d != "" {
		t.Error(d)
	}
}

// A route's configuration stands in place of the filter's.
func TestRoute(t *testing.T) {
	p, lines := start(t, "request_rules: [{header: x-a, on_header_present: {metadata_namespace: ns, key: a}}]", answer)
	p.Get("/own", "x-a", "1", "x-own", "2")
	p.Get("/", "x-a", "1", "x-own", "2")
	if d := cmp.Diff([]string{`{"own":"2"} -`, `{"a":"1"} -`}, lines()); d != "" {
		t.Error(d)
	}
}

func TestStats(t *testing.T) {
	const config = "request_rules: [{header: x-a, on_header_present: {metadata_namespace: ns, key: a, encode: BASE64}, on_header_missing: {metadata_namespace: ns, key: m, value: z}}, " +
		`{header: x-b, on_header_present: {metadata_namespace: ns, key: b, regex_value_rewrite: {pattern: {regex: z}, substitution: ""}}}], response_rules: [{header: x-resp, on_header_present: {metadata_namespace: ns, key: r}}]`
	p, _ := start(t, "stat_prefix: my.p., "+config, answer)
	for _, h := range [][]string{{}, {"x-a", "MTI="}, {"x-a", "!!"}, {"x-b", ""}, {"x-b", strings.Repeat("y", 8193)}, {"x-b", "z"}} {
		p.Get("/", h...)
	}
	p.Await("http_filter_name.my.p.response_metadata_added", "6")
	got := p.Stats()
	for name, want := range map[string]string{"request_rules_processed": "12", "request_metadata_added": "5", "request_header_not_found": "4", "response_rules_processed": "6", "response_header_not_found": "0",
		"header_value_too_long": "1", "base64_decode_failed": "1", "regex_substitution_failed": "1"} {
		if v := got["http_filter_name.my.p."+name]; v != want {
			t.Errorf("%s is %s, want %s", name, v, want)
		}
	}
	q, _ := start(t, config, answer)
	q.Get("/")
	for name := range q.Stats() {
		if strings.HasPrefix(name, "http_filter_name") {
			t.Errorf("there is %s", name)
		}
	}
}
