package route_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

const uriTemplate = "path_match_policy: {name: t, typed_config: {'@type': type.googleapis.com/envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig, path_template: '"
const uriRewrite = "path_rewrite_policy: {name: t, typed_config: {'@type': type.googleapis.com/envoy.extensions.path.rewrite.uri_template.v3.UriTemplateRewriteConfig, path_template_rewrite: '"

func TestRewritePath(t *testing.T) {
	for _, c := range []struct{ match, rewrite, path, want string }{
		{"prefix: /a", "prefix_rewrite: /z", "/a/x?q", "/z/x?q"},
		{"prefix: /a", "prefix_rewrite: /z", "/a", "/z"},
		{"prefix: /a/", "prefix_rewrite: /", "/a/x", "/x"},
		{"prefix: /A, case_sensitive: false", "prefix_rewrite: /z", "/ax?/a", "/zx?/a"},
		{"path_separated_prefix: /a", "prefix_rewrite: /", "/a/x", "//x"},
		{"path: /a", "prefix_rewrite: '/f?g'", "/a?h", "/f?g?h"},
		{"safe_regex: {regex: '/f.*'}", "prefix_rewrite: /g", "/foo?q", "/g?q"},
		{"prefix: /", `regex_rewrite: {pattern: {regex: "^/g/(a*)(b*)"}, substitution: '/\2\1\\x'}`, "/g/aabb?/g/ab", `/bbaa\x?/g/ab`},
		{"prefix: /", `regex_rewrite: {pattern: {regex: "[aeo]"}, substitution: "<\\0>"}`, "/aeiou?aeo", "/<a><e>i<o>u?aeo"},
		{"prefix: /", `regex_rewrite: {pattern: {regex: "x"}, substitution: "$1"}`, "/x", "/$1"},
		{"prefix: /", `regex_rewrite: {pattern: {regex: "x"}, substitution: "y"}`, "/a", "/a"},
		{uriTemplate + "/a/{x}/{y=b/*}/**'}}", uriRewrite + "/{y}/{x}.z'}}", "/a/1/b/2/c/d?q", "/b/2/1.z?q"},
	} {
		e := table(t, routes("{match: {"+c.match+"}, route: {cluster: up, "+c.rewrite+"}}")).Match(&route.Request{Headers: headers("GET " + c.path + " a")})
		if e == nil {
			t.Errorf("%s: %s does not match", c.match, c.path)
			continue
		}
		h := headers("GET / a")
		if got, ok := e.RewritePath(c.path, h.Arena()); !ok || got != c.want {
			t.Errorf("%s, %s: %s, %v, want %s", c.match, c.rewrite, got, ok, c.want)
		}
	}
	e := table(t, routes("{match: {prefix: /}, route: {cluster: up}}")).Match(&route.Request{Headers: headers("GET /a a")})
	if _, ok := e.RewritePath("/a", headers("GET / a").Arena()); ok {
		t.Error("a route without a rewrite has one")
	}
}

func TestLocation(t *testing.T) {
	for _, c := range []struct{ match, redirect, path, host, want string }{
		{"prefix: /", "path_redirect: /new", "/p?x", "h", "http://h/new?x"},
		{"prefix: /", "path_redirect: '/new?z=1'", "/p?x", "h", "http://h/new?z=1"},
		{"prefix: /", "path_redirect: /new, strip_query: true", "/p?x", "h", "http://h/new"},
		{"prefix: /pf", "prefix_rewrite: /z", "/pf/y?x", "h", "http://h/z/y?x"},
		{"prefix: /", `regex_rewrite: {pattern: {regex: "^/rx/(.*)$"}, substitution: "/\\1"}`, "/rx/a?b", "h", "http://h/a?b"},
		{"prefix: /", "https_redirect: true", "/a?x", "h", "https://h/a?x"},
		{"prefix: /", "https_redirect: true", "/a", "h:80", "https://h/a"},
		{"prefix: /", "https_redirect: true", "/a", "h:443", "https://h:443/a"},
		{"prefix: /", "https_redirect: true", "/a", "h:8080", "https://h:8080/a"},
		{"prefix: /", "https_redirect: true", "/a", "[::1]:80", "https://[::1]/a"},
		{"prefix: /", "https_redirect: true", "/a", "[::1]", "https://[::1]/a"},
		{"prefix: /", "scheme_redirect: foo, host_redirect: bar, port_redirect: 99", "/s?x", "h", "foo://bar:99/s?x"},
		{"prefix: /", "port_redirect: 99", "/s", "h:80", "http://h:99/s"},
		{"prefix: /", "host_redirect: bar, strip_query: true", "/q?a=b", "h", "http://bar/q"},
	} {
		h := headers("GET " + c.path + " " + c.host)
		e := table(t, routes("{match: {"+c.match+"}, redirect: {"+c.redirect+"}}")).Match(&route.Request{Headers: h})
		if got := e.RedirectTo.Location(h, h.Arena(), ""); got != c.want {
			t.Errorf("%s: %s, want %s", c.redirect, got, c.want)
		}
	}
	h := headers("GET /p?x h")
	e := table(t, routes("{match: {prefix: /}, redirect: {path_rewrite: '%PROTOCOL%'}}")).Match(&route.Request{Headers: h})
	for formatted, want := range map[string]string{"/n": "http://h/n?x", "/n?y": "http://h/n?y", "": "http://h/p?x"} {
		if got := e.RedirectTo.Location(h, h.Arena(), formatted); got != want {
			t.Errorf("formatted %q: %s, want %s", formatted, got, want)
		}
	}
	for name, want := range map[string]int{"MOVED_PERMANENTLY": 301, "FOUND": 302, "SEE_OTHER": 303, "TEMPORARY_REDIRECT": 307, "PERMANENT_REDIRECT": 308} {
		e := table(t, routes("{match: {prefix: /}, redirect: {response_code: "+name+"}}")).Match(&route.Request{Headers: headers("GET / a")})
		if e.RedirectTo.Code != want {
			t.Errorf("%s: %d", name, e.RedirectTo.Code)
		}
	}
}

// weights is a runtime with other weights.
type weights map[string]uint64

func (w weights) Uint(key string, def uint64) uint64 {
	if v, ok := w[key]; ok {
		return v
	}
	return def
}

func (w weights) Fraction(key string, n, d uint64) (uint64, uint64) {
	if v, ok := w[key]; ok {
		return v, 100
	}
	return n, d
}

func (w weights) Bool(string, bool) bool { return false }

func TestWeightedClusters(t *testing.T) {
	const three = "{match: {prefix: /}, route: {weighted_clusters: {header_name: x-n, runtime_key_prefix: rt, clusters: [{name: a, weight: 3}, {name: b, weight: 0}, " +
		"{name: c, weight: 2}, {cluster_header: X-C, weight: 5}]}}}"
	x := table(t, "{virtual_hosts: [{name: v, domains: ['*'], routes: [{name: r, "+three[1:]+"]}]}")
	pick := func(random uint64, rt route.RuntimeReader, lines ...string) string {
		e := x.Match(&route.Request{Headers: headers("GET / a", lines...), Random: random, Runtime: rt})
		if e == nil {
			return "none"
		}
		if e.ClusterHeader != "" {
			return "by header"
		}
		return e.Cluster()
	}
	// The table of this test binds no clusters; what is chosen shows in who has a header.
	counts := map[string]int{}
	for i := range uint64(1000) {
		counts[pick(i, nil)]++
	}
	if d := cmp.Diff(map[string]int{"": 500, "by header": 500}, counts); d != "" {
		t.Error(d)
	}
	for random, want := range map[string]string{"0": "", "4": "", "5": "by header", "9": "by header", "10": "", "x": "by header", "": "by header", "-1": "by header"} {
		if got := pick(7, nil, "x-n: "+random); got != want {
			t.Errorf("the header says %s: %q, want %q", random, got, want)
		}
	}
	if got := pick(9, weights{"rt.": 0, "rt.a": 10}); got != "" {
		t.Errorf("other weights: %q", got)
	}
	if got := pick(9, weights{"rt.": 0, "rt.a": 0, "rt.b": 0, "rt.c": 0}); got != "none" {
		t.Errorf("no weight at all: %q", got)
	}
	for _, bad := range []string{"{name: a, weight: 0}", "{name: a, weight: 4294967295}, {name: b, weight: 1}", "{name: none, weight: 1}"} {
		if _, err := compile(t, "{validate_clusters: true, virtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {weighted_clusters: {clusters: ["+bad+"]}}}]}]}"); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestRuntimeFraction(t *testing.T) {
	x := table(t, routes(answer("hit", "prefix: /, runtime_fraction: {runtime_key: k, default_value: {numerator: 25, denominator: TEN_THOUSAND}}")))
	hits := func(rt route.RuntimeReader) (n int) {
		for i := range uint64(10000) {
			if x.Match(&route.Request{Headers: headers("GET / a"), Random: i, Runtime: rt}) != nil {
				n++
			}
		}
		return n
	}
	if n := hits(nil); n != 25 {
		t.Errorf("%d of 10,000 by default, want 25", n)
	}
	if n := hits(weights{"k": 25}); n != 2500 {
		t.Errorf("%d of 10,000 by the runtime, want 2,500", n)
	}
}

func TestGRPCTimeout(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"1H": time.Hour, "2M": 2 * time.Minute, "3S": 3 * time.Second, "4m": 4 * time.Millisecond, "5u": time.Millisecond, "6n": time.Millisecond,
		"1000u": time.Millisecond, "1001u": 2 * time.Millisecond, "0S": 0, "0n": 0, "99999999H": route.Forever, "99999999M": route.Forever, "9999999S": 9999999 * time.Second, "00000001S": time.Second,
	} {
		if got, ok := route.GRPCTimeout(s); !ok || got != want {
			t.Errorf("%s: %v, %v, want %v", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "S", "1", "1s", "1h", "-1S", "+1S", "1.5S", " 1S", "1S ", "123456789S", "1SS", "xS"} {
		if got, ok := route.GRPCTimeout(s); ok {
			t.Errorf("%q: %v", s, got)
		}
	}
	var pool http.ArenaPool
	var a http.Arena
	a.Init(&pool)
	for want, d := range map[string]time.Duration{
		"0m": 0, "1m": 1999 * time.Microsecond, "99999999m": 99999999 * time.Millisecond, "100000S": 100000000 * time.Millisecond, "2500000M": 2500000 * time.Minute,
	} {
		if got := route.FormatGRPCTimeout(&a, d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestTimeouts(t *testing.T) {
	type timeouts struct {
		Route, Idle, Max, GRPC, Offset        time.Duration
		HasIdle, HasMax, HasGRPC, NewTimeouts bool
	}
	for action, want := range map[string]timeouts{
		"":                 {Route: 15 * time.Second},
		"timeout: 0s":      {},
		"timeout: 3s":      {Route: 3 * time.Second},
		"idle_timeout: 4s": {Route: 15 * time.Second, Idle: 4 * time.Second, HasIdle: true},
		"idle_timeout: 0s": {Route: 15 * time.Second, HasIdle: true},
		"max_grpc_timeout: 2s, grpc_timeout_offset: 1s": {Route: 15 * time.Second, GRPC: 2 * time.Second, HasGRPC: true, Offset: time.Second},
		"max_stream_duration: {}":                       {Route: 15 * time.Second, NewTimeouts: true},
		"max_stream_duration: {max_stream_duration: 5s, grpc_timeout_header_max: 6s, grpc_timeout_header_offset: 1s}": {Route: 15 * time.Second, NewTimeouts: true,
			Max: 5 * time.Second, HasMax: true, GRPC: 6 * time.Second, HasGRPC: true, Offset: time.Second},
	} {
		e := table(t, routes("{match: {prefix: /}, route: {cluster: up, "+action+"}}")).Match(&route.Request{Headers: headers("GET / a")})
		of := func(e *route.Entry) timeouts {
			return timeouts{e.RouteTimeout, e.IdleTimeout, e.MaxStreamDuration, e.GRPCTimeoutMax, e.GRPCTimeoutOffset, e.HasIdleTimeout, e.HasMaxStreamDuration,
				e.HasGRPCTimeoutMax, e.NewTimeouts}
		}
		if d := cmp.Diff(want, of(e)); d != "" {
			t.Errorf("%s: %s", action, d)
		}
	}
}
