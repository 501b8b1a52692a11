package route_test

import (
	"crypto/x509"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// What each matcher says of requests was compared with Envoy 1.40.
func TestHeaderMatchers(t *testing.T) {
	for name, c := range map[string]struct {
		match   string
		yes, no [][]string
	}{
		"exact": {"string_match: {exact: a}", [][]string{{"x-a: a"}, {"x-a: a", "x-a: b"}, {"x-a: c", "x-a: a"}},
			[][]string{{}, {"x-a: c"}, {"x-a: a,b"}, {"x-a: A"}, {"x-a:"}}},
		"exact, not": {"string_match: {exact: a}, invert_match: true", [][]string{{"x-a: b"}, {"x-a: b", "x-a: c"}, {"x-a:"}}, [][]string{{"x-a: a", "x-a: b"}, {"x-a: a"}, {}}},
		"exact, not, missing is empty": {"string_match: {exact: a}, invert_match: true, treat_missing_header_as_empty: true", [][]string{{}, {"x-a: b"}},
			[][]string{{"x-a: a"}}},
		"empty, missing is empty":   {"string_match: {exact: ''}, treat_missing_header_as_empty: true", [][]string{{}, {"x-a:"}}, [][]string{{"x-a: a"}}},
		"present":                   {"present_match: true", [][]string{{"x-a:"}, {"x-a: 1"}}, [][]string{{}, {"x-b: 1"}}},
		"absent":                    {"present_match: false", [][]string{{}}, [][]string{{"x-a:"}}},
		"present, not":              {"present_match: true, invert_match: true", [][]string{{}}, [][]string{{"x-a:"}}},
		"present, missing is empty": {"present_match: true, treat_missing_header_as_empty: true", [][]string{{}, {"x-a: 1"}}, nil},
		"nothing asked":             {"", [][]string{{"x-a:"}}, [][]string{{}}},
		"range": {"range_match: {start: -5, end: 5}", [][]string{{"x-a: -5"}, {"x-a: 4"}, {"x-a: +4"}, {"x-a: 03"}, {"x-a: 9", "x-a: 3"}},
			[][]string{{}, {"x-a: 5"}, {"x-a: 4x"}, {"x-a: +-4"}, {"x-a: 4 5"}, {"x-a: -6"}, {"x-a:"}, {"x-a: 99999999999999999999"}}},
		"range, not":    {"range_match: {start: -5, end: 5}, invert_match: true", [][]string{{"x-a: 9"}, {"x-a: x"}}, [][]string{{}, {"x-a: 1"}}},
		"regex":         {"string_match: {safe_regex: {regex: 'a.*b'}}", [][]string{{"x-a: ab"}, {"x-a: axxb"}}, [][]string{{"x-a: abc"}, {"x-a: a", "x-a: b"}}},
		"old regex":     {"safe_regex_match: {regex: 'a+'}", [][]string{{"x-a: aa"}}, [][]string{{"x-a: ab"}}},
		"contains":      {"string_match: {contains: 'A,b', ignore_case: true}", [][]string{{"x-a: xa,Bx"}}, [][]string{{"x-a: xa", "x-a: B"}}},
		"old contains":  {"contains_match: 'a'", [][]string{{"x-a: bab"}}, [][]string{{"x-a: A"}}},
		"prefix":        {"string_match: {prefix: ab}", [][]string{{"x-a: abc"}}, [][]string{{"x-a: a"}, {"x-a: Abc"}}},
		"prefix, fold":  {"string_match: {prefix: ab, ignore_case: true}", [][]string{{"x-a: ABC"}}, [][]string{{"x-a: a"}}},
		"old prefix":    {"prefix_match: ab", [][]string{{"x-a: abc"}}, [][]string{{"x-a: a"}}},
		"suffix":        {"string_match: {suffix: bc}", [][]string{{"x-a: abc"}}, [][]string{{"x-a: c"}, {"x-a: aBc"}}},
		"suffix, fold":  {"string_match: {suffix: bc, ignore_case: true}", [][]string{{"x-a: aBC"}}, [][]string{{"x-a: c"}}},
		"old suffix":    {"suffix_match: bc", [][]string{{"x-a: abc"}}, [][]string{{"x-a: c"}}},
		"old exact":     {"exact_match: a", [][]string{{"x-a: a"}}, [][]string{{"x-a: b"}}},
		"exact, folded": {"string_match: {exact: aB, ignore_case: true}", [][]string{{"x-a: Ab"}}, [][]string{{"x-a: abc"}}},
	} {
		x := table(t, routes(answer("hit", "prefix: /, headers: [{name: X-A, "+c.match+"}]")))
		for _, l := range c.yes {
			if chosen(x, headers("GET / a", l...)) == "" {
				t.Errorf("%s: %q does not match", name, l)
			}
		}
		for _, l := range c.no {
			if chosen(x, headers("GET / a", l...)) != "" {
				t.Errorf("%s: %q matches", name, l)
			}
		}
	}
}

func TestPathsQueriesAndCookies(t *testing.T) {
	for name, c := range map[string]struct {
		match   string
		yes, no []string
	}{
		"prefix":          {"prefix: /a", []string{"/a", "/ab", "/a/b?x"}, []string{"/", "/A", "/?/a"}},
		"prefix, fold":    {"prefix: /Ab, case_sensitive: false", []string{"/aB", "/ABc"}, []string{"/a"}},
		"path":            {"path: /a", []string{"/a", "/a?x"}, []string{"/a/", "/ab", "/"}},
		"path, fold":      {"path: /A, case_sensitive: false", []string{"/a", "/A?"}, []string{"/ab"}},
		"separated":       {"path_separated_prefix: /a", []string{"/a", "/a/", "/a/x", "/a?x"}, []string{"/ax", "/a;x", "/A"}},
		"separated, fold": {"path_separated_prefix: /A, case_sensitive: false", []string{"/a", "/A/x"}, []string{"/ax"}},
		"regex":           {"safe_regex: {regex: '/r/[a-c]+'}", []string{"/r/abc", "/r/abc?x"}, []string{"/r/abcd", "/r/", "x/r/a"}},
		"regex has case":  {"safe_regex: {regex: '/r'}, case_sensitive: false", []string{"/r"}, []string{"/R"}},
		"parameter":       {"prefix: /, query_parameters: [{name: a, string_match: {exact: 'b%20c'}}]", []string{"/?a=b%20c", "/?x&a=b%20c", "/?&&a=b%20c"}, []string{"/?a=x&a=b%20c", "/?a=b+c", "/", "/?A=b%20c"}},
		"present":         {"prefix: /, query_parameters: [{name: a, present_match: true}]", []string{"/?a", "/?a=", "/?b&a"}, []string{"/?b", "/", "/?A=1", "/?%61=1", "/?b=a"}},
		"absent":          {"prefix: /, query_parameters: [{name: a, present_match: false}]", []string{"/?b", "/"}, []string{"/?a", "/?a=1"}},
		"nothing asked":   {"prefix: /, query_parameters: [{name: a}]", []string{"/?a", "/?a=1", "/?b&a=1"}, []string{"/", "/?b=c?a=1", "/?;a"}},
	} {
		x := table(t, routes(answer("hit", c.match)))
		for _, p := range c.yes {
			if chosen(x, headers("GET "+p+" a")) == "" {
				t.Errorf("%s: %s does not match", name, p)
			}
		}
		for _, p := range c.no {
			if chosen(x, headers("GET "+p+" a")) != "" {
				t.Errorf("%s: %s matches", name, p)
			}
		}
	}
	is := table(t, routes(answer("hit", "prefix: /, cookies: [{name: a, string_match: {exact: b}}]")))
	not := table(t, routes(answer("hit", "prefix: /, cookies: [{name: a, string_match: {exact: b}, invert_match: true}]")))
	for cookies, want := range map[string][2]bool{
		"a=b": {true, false}, "x=y; a=b": {true, false}, "x=y;a=b": {true, false}, "a=c; a=b": {false, true}, "a=b; a=c": {true, false},
		`a="b"`: {true, false}, "A=b": {false, true}, "a": {false, true}, "": {false, true}, "xa=b": {false, true}, "a=b,x": {false, true}, `a="b`: {false, true},
	} {
		h := headers("GET / a", "cookie: "+cookies)
		if got := [2]bool{chosen(is, h) != "", chosen(not, h) != ""}; got != want {
			t.Errorf("cookie %s: %v, want %v", cookies, got, want)
		}
	}
	if h := headers("GET / a", "cookie: x=y", "cookie: a=b"); chosen(is, h) == "" {
		t.Error("the second cookie header is not read")
	}
}

func TestOtherMatchers(t *testing.T) {
	grpc := table(t, routes(answer("hit", "prefix: /, grpc: {}")))
	for ct, want := range map[string]bool{"application/grpc": true, "application/grpc+json": true, "application/grpc-web": false, "Application/grpc": false, "": false} {
		if got := chosen(grpc, headers("POST / a", "content-type: "+ct)) != ""; got != want {
			t.Errorf("grpc: %s: %v", ct, got)
		}
	}
	connect := table(t, routes(answer("hit", "connect_matcher: {}")))
	if chosen(connect, headers("CONNECT / a")) == "" || chosen(connect, headers("GET / a")) != "" {
		t.Error("connect_matcher is not about CONNECT")
	}
	for match, want := range map[string][4]bool{ // no TLS, no certificate, one that is not verified, a verified one
		"presented: true": {false, false, true, true}, "presented: false": {false, true, false, false},
		"validated: true": {false, false, false, true}, "validated: false": {false, true, true, false},
		"presented: true, validated: false": {false, false, true, false},
	} {
		x := table(t, routes(answer("hit", "prefix: /, tls_context: {"+match+"}")))
		peer := []*x509.Certificate{{}}
		for i, c := range []*network.TLSInfo{nil, {}, {Peer: peer}, {Peer: peer, Verified: true}} {
			r := &route.Request{Headers: headers("GET / a"), Info: &stream.Info{Conn: &network.ConnInfo{TLS: c}}}
			if got := x.Match(r) != nil; got != want[i] {
				t.Errorf("%s: connection %d: %v", match, i, got)
			}
		}
	}
}

func TestMetadataAndFilterState(t *testing.T) {
	const key = "prefix: /, dynamic_metadata: [{filter: f, path: [{key: a}, {key: b}], "
	const state = "prefix: /, filter_state: [{key: s, "
	for name, c := range map[string]struct {
		match string
		value any
		state string
		want  bool
	}{
		"string":         {key + "value: {string_match: {prefix: x}}}]", "xy", "", true},
		"another":        {key + "value: {string_match: {prefix: x}}}]", "y", "", false},
		"not":            {key + "value: {string_match: {prefix: x}}, invert: true}]", "y", "", true},
		"bool":           {key + "value: {bool_match: true}}]", true, "", true},
		"number":         {key + "value: {double_match: {exact: 2}}}]", 2.0, "", true},
		"number within":  {key + "value: {double_match: {range: {start: 1, end: 2}}}}]", 1.5, "", true},
		"number without": {key + "value: {double_match: {range: {start: 1, end: 2}}}}]", 2.0, "", false},
		"null":           {key + "value: {null_match: {}}}]", nil, "", true},
		"present":        {key + "value: {present_match: true}}]", "z", "", true},
		"list":           {key + "value: {list_match: {one_of: {string_match: {exact: b}}}}}]", []any{"a", "b"}, "", true},
		"either":         {key + "value: {or_match: {value_matchers: [{bool_match: true}, {string_match: {exact: b}}]}}}]", "b", "", true},
		"neither":        {key + "value: {or_match: {value_matchers: [{bool_match: true}, {string_match: {exact: b}}]}}}]", "c", "", false},
		"state":          {state + "string_match: {exact: x}}]", nil, "x", true},
		"another state":  {state + "string_match: {exact: x}}]", nil, "y", false},
		"no state":       {state + "string_match: {exact: ''}}]", nil, "", false},
		"address":        {state + "address_match: {ranges: [{address_prefix: 10.0.0.0, prefix_len: 8}]}}]", nil, "10.1.2.3:80", true},
		"far address":    {state + "address_match: {ranges: [{address_prefix: 10.0.0.0, prefix_len: 8}]}}]", nil, "11.1.2.3", false},
		"not address":    {state + "address_match: {ranges: [{address_prefix: 10.0.0.0, prefix_len: 8}], invert_match: true}}]", nil, "11.1.2.3", true},
	} {
		x := table(t, routes(answer("hit", c.match)))
		r := &route.Request{Headers: headers("GET / a"), Info: &stream.Info{}}
		if c.state == "" {
			r.Info.Metadata().Set("f", "a", map[string]any{"b": c.value})
		} else {
			r.Info.FilterState().Set("s", c.state)
		}
		if got := x.Match(r) != nil; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	x := table(t, routes(answer("hit", key+"value: {present_match: true}}]")))
	if x.Match(&route.Request{Headers: headers("GET / a")}) != nil {
		t.Error("a request without metadata has some")
	}
}
