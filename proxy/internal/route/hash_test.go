package route_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

func address(s string) network.Address { return network.AddrFrom(netip.MustParseAddrPort(s)) }

// request is one from 192.0.2.1:1000 to 10.0.0.1:80.
func request(path string, lines ...string) *route.Request {
	return &route.Request{Headers: headers("GET "+path+" a", lines...),
		Info: &stream.Info{Conn: &network.ConnInfo{Remote: address("192.0.2.1:1000"), Local: address("10.0.0.1:80")}}}
}

func hashing(t *testing.T, policies string) *route.HashPolicy {
	t.Helper()
	return table(t, routes("{match: {prefix: /}, route: {cluster: up, hash_policy: ["+policies+"]}}")).Match(&route.Request{Headers: headers("GET / a")}).HashPolicy
}

func TestHash(t *testing.T) {
	h := xxhash.Sum64String
	turn := func(x uint64) uint64 { return x<<1 | x>>63 }
	withState := request("/")
	withState.Info.FilterState().Set("k", "v")
	elsewhere := request("/")
	elsewhere.Info.Remote = address("198.51.100.9:7")
	for name, c := range map[string]struct {
		policies string
		r        *route.Request
		want     uint64
		ok       bool
	}{
		"header":            {"{header: {header_name: X-A}}", request("/", "x-a: v"), h("v"), true},
		"no header":         {"{header: {header_name: X-A}}", request("/"), 0, false},
		"known header":      {"{header: {header_name: referer}}", request("/", "referer: v"), h("v"), true},
		"header, rewritten": {"{header: {header_name: x-a, regex_rewrite: {pattern: {regex: '^v(.)'}, substitution: '\\1'}}}", request("/", "x-a: vw"), h("w"), true},
		"cookie":            {"{cookie: {name: c}}", request("/", "cookie: a=b; c=v"), h("v"), true},
		"no cookie":         {"{cookie: {name: c}}", request("/"), 0, false},
		"address":           {"{connection_properties: {source_ip: true}}", request("/"), h("192.0.2.1"), true},
		"address, proxied":  {"{connection_properties: {source_ip: true}}", elsewhere, h("198.51.100.9"), true},
		"parameter":         {"{query_parameter: {name: q}}", request("/?a&q=v%20w&q=z"), h("v%20w"), true},
		"no parameter":      {"{query_parameter: {name: q}}", request("/?Q=v"), 0, false},
		"state":             {"{filter_state: {key: k}}", withState, h("v"), true},
		"no state":          {"{filter_state: {key: k}}", request("/"), 0, false},
		"two":               {"{header: {header_name: x-a}}, {header: {header_name: x-b}}", request("/", "x-a: v", "x-b: w"), turn(h("v")) ^ h("w"), true},
		"two the same":      {"{header: {header_name: x-a}}, {header: {header_name: x-a}}", request("/", "x-a: v"), turn(h("v")) ^ h("v"), true},
		"terminal":          {"{header: {header_name: x-a}, terminal: true}, {header: {header_name: x-b}}", request("/", "x-a: v", "x-b: w"), h("v"), true},
		"terminal, absent":  {"{header: {header_name: x-a}, terminal: true}, {header: {header_name: x-b}}", request("/", "x-b: w"), h("w"), true},
	} {
		got, ok := hashing(t, c.policies).Hash(c.r)
		if got != c.want || ok != c.ok {
			t.Errorf("%s: %x, %v, want %x, %v", name, got, ok, c.want, c.ok)
		}
	}
	p := hashing(t, "{header: {header_name: x-a}}")
	one, _ := p.Hash(request("/", "x-a: v", "x-a: w"))
	other, _ := p.Hash(request("/", "x-a: w", "x-a: v"))
	if one != other || one == h("v") || one == h("w") {
		t.Errorf("several values: %x and %x in another order", one, other)
	}
	if hashing(t, "") != nil {
		t.Error("no policies are one")
	}
}

// A cookie that is made is the same for all requests of a connection, and another one for another client.
func TestHashCookies(t *testing.T) {
	p := hashing(t, "{cookie: {name: c, ttl: 90s, path: /x, attributes: [{name: SameSite, value: Lax}, {name: Secure}]}}")
	r, again, far := request("/"), request("/other", "cookie: d=e"), request("/")
	far.Info.Conn.Remote = address("192.0.2.2:1000")
	one, ok := p.Hash(r)
	two, _ := p.Hash(again)
	three, _ := p.Hash(far)
	if !ok || one != two || one == three {
		t.Errorf("%x, %x and for another client %x", one, two, three)
	}
	if len(r.SetCookies) != 1 || !strings.HasPrefix(r.SetCookies[0], `c="`) || !strings.HasSuffix(r.SetCookies[0], `"; Max-Age=90; Path=/x; SameSite=Lax; Secure; HttpOnly`) {
		t.Fatalf("cookies: %q", r.SetCookies)
	}
	value := strings.SplitN(r.SetCookies[0], `"`, 3)[1]
	back, _ := p.Hash(request("/", "cookie: c="+value))
	if back != one {
		t.Errorf("with the cookie that was made: %x, want %x", back, one)
	}
	if r := request("/"); true {
		if _, ok := hashing(t, "{cookie: {name: c, ttl: 0s}}").Hash(r); !ok || strings.Contains(r.SetCookies[0], "Max-Age") {
			t.Errorf("a cookie of the session: %v, %q", ok, r.SetCookies)
		}
	}
}

func FuzzQueryParam(f *testing.F) {
	f.Add("/a?b=c&d", "b")
	f.Fuzz(func(t *testing.T, path, name string) {
		v, ok := route.QueryParam(path, name)
		if strings.Contains(v, "&") || ok && !strings.Contains(path, "?") {
			t.Fatalf("%q: %s is %q", path, name, v)
		}
	})
}

func TestTemplates(t *testing.T) {
	for _, c := range []struct {
		template, path string
		want           map[string]string // nil: no match
	}{
		{"/a/{x}/*/z", "/a/1/2/z", map[string]string{"x": "1"}}, {"/a/{x}/*/z", "/a/1/2/3/z", nil}, {"/a/{x}/*/z", "/a//2/z", nil},
		{"/a/{x}/*/z", "/a/1/2/zz", nil}, {"/a/{x}", "/a/%2f", map[string]string{"x": "%2f"}}, {"/a/{x}", "/a/1:2@3", map[string]string{"x": "1:2@3"}}, {"/a/{x}", "/a/|", nil},
		{"/{x=b/*}/**.m3u8", "/b/c/d.m3u8", map[string]string{"x": "b/c"}}, {"/{x=b/*}/**.m3u8", "/b/c/d/e/f.m3u8", map[string]string{"x": "b/c"}},
		{"/{x=b/*}/**.m3u8", "/b/c/.m3u8", map[string]string{"x": "b/c"}}, {"/{x=b/*}/**.m3u8", "/b/c/d.m3u", nil}, {"/t/**", "/t", nil}, {"/t/**", "/t/", map[string]string{}},
		{"/t/**", "/t/a/b/", map[string]string{}}, {"/{x=**}", "/a/b", map[string]string{"x": "a/b"}}, {"/a.b", "/aXb", nil},
	} {
		match, err := route.ParseTemplate(c.template)
		if err != nil {
			t.Errorf("%s: %v", c.template, err)
			continue
		}
		got, ok := match(c.path)
		if ok != (c.want != nil) || ok && !cmp.Equal(c.want, got) {
			t.Errorf("%s: %s: %v, %v, want %v", c.template, c.path, got, ok, c.want)
		}
	}
	for _, bad := range []string{"", "a", "/", "//", "/a/", "/{}", "/{x", "/{x}}", "/{x}/{x}", "/{1x}", "/{_x}", "/{x=}", "/{x=/}", "/{x=a/}", "/{x={y}}", "/**/a", "/**/**", "/***",
		"/a*", "/*a/b", "/a?b", "/a#", "/{x=**}/y", "/{aaaaaaaaaaaaaaaaa}", "/{a}/{b}/{c}/{d}/{e}/{f}", "/a b", "/ä"} {
		if _, err := route.ParseTemplate(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if _, err := route.ParseTemplate("/{aaaaaaaaaaaaaaaa}/{b}/{c}/{d}/{e}"); err != nil {
		t.Errorf("at the limits: %v", err)
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add("/a/{x=b/*}/**.y", "/a/b/c/d.y")
	f.Fuzz(func(t *testing.T, template, path string) {
		match, err := route.ParseTemplate(template)
		if err != nil {
			return
		}
		vars, ok := match(path)
		for n, v := range vars {
			if !strings.Contains(path, v) {
				t.Fatalf("%s: %s: %s is %q", template, path, n, v)
			}
		}
		if ok && !strings.HasPrefix(path, "/") {
			t.Fatalf("%s matches %q", template, path)
		}
	})
}

// What would silently do something else is refused, by name.
func TestRefusedRoutes(t *testing.T) {
	big := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(big, make([]byte, 4097), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"route: {cluster: up, request_mirror_policies: [{}]}":                                   "Exactly one of cluster or cluster_header",
		"route: {cluster: up, request_mirror_policies: [{cluster: x, cluster_header: z}]}":      "Only one of cluster 'x' or cluster_header 'z'",
		"route: {cluster: up, internal_redirect_policy: {response_headers_to_copy: [':path']}}": "may not be specified here",
		"route: {cluster: up, internal_redirect_policy: {predicates: [{name: x}]}}":             "Didn't find a registered implementation for 'x'",
		"route: {cluster: up, retry_policy: {retry_priority: {name: x}}}":                       "Didn't find a registered implementation for 'x'",
		"route: {cluster: up, retry_policy: {retry_options_predicates: [{name: x}]}}":           "Didn't find a registered implementation for 'x'",
		"route: {cluster: up, early_data_policy: {name: x}}":                                    "Didn't find a registered implementation for 'x'",
		"route: {cluster_specifier_plugin: x}":                                                  "Unknown cluster specifier plugin name: x is used in the route",
		"route_specifiers: [{name: x}], route: {cluster: up}":                                   "route_specifiers",
		"filter_action: {}": "filter_action",
		"direct_response: {status: 200, body: {inline_string: " + strings.Repeat("x", 4097) + "}}":  "response body size is 4097 bytes; maximum is 4096",
		"direct_response: {status: 200, body: {filename: " + big + "}}":                             "file " + big + " size is 4097 bytes; maximum is 4096",
		"direct_response: {status: 200, body: {filename: /proc/none}}":                              "file /proc/none does not exist",
		"direct_response: {status: 200, body: {environment_variable: DRAGOMAN_NONE}}":               "environment variable doesn't exist: DRAGOMAN_NONE",
		"direct_response: {status: 200, body_format: {text_format_source: {filename: /proc/none}}}": "Invalid path: /proc/none",
		"route: {cluster: up, regex_rewrite: {pattern: {regex: '('}, substitution: x}}":             "",
		"route: {cluster: up, " + uriRewrite + "/x'}}}":                                             "path_match_policy",
	} {
		_, err := compile(t, routes("{match: {prefix: /}, "+text+"}"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for i, bad := range []string{"vhds: {}", "request_mirror_policies: [{}], virtual_hosts: [{name: v, domains: [a], routes: [{match: {prefix: /}, route: {cluster: x}}]}]", "route_specifiers: [{name: x}]"} {
		if _, err := compile(t, "{"+bad+"}"); err == nil {
			t.Errorf("%d: %s is accepted", i, bad)
		}
	}
	for _, m := range []string{"safe_regex: {regex: '('}", uriTemplate + "x'}}", "", "prefix: /, headers: [{name: a, string_match: {safe_regex: {regex: 'a', google_re2: {}}, ignore_case: true}}]",
		"prefix: /, cookies: [{name: a, string_match: {safe_regex: {regex: '('}}}]", "prefix: /, query_parameters: [{name: a, string_match: {safe_regex: {regex: '('}}}]",
		"prefix: /, filter_state: [{key: a}]", "prefix: /, dynamic_metadata: [{filter: f, value: {}}]"} {
		if _, err := compile(t, routes(fmt.Sprintf("{match: {%s}, direct_response: {status: 200}}", m))); err == nil {
			t.Errorf("%s is accepted", m)
		}
	}
}
