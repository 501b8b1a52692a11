package route_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// hosts is a route configuration of virtual hosts that have the name of their route, each with some domains.
func hosts(more string, domains ...string) string {
	var list []string
	for i, d := range domains {
		list = append(list, fmt.Sprintf("{name: v%d, domains: [%s], routes: [%s]}", i, d, answer(fmt.Sprintf("v%d", i), "prefix: /")))
	}
	return "{name: r, " + more + "virtual_hosts: [" + strings.Join(list, ", ") + "]}"
}

// What each host is for was compared with Envoy 1.40.
func TestDomains(t *testing.T) {
	plain := table(t, hosts("", `"a.test", "a.test:80"`, `"*.test"`, `"*-x.test"`, `"a.*"`, `"a.b.*", "[::1]"`, `"UPPER.com", "*.Suf.com"`))
	for host, want := range map[string]string{
		"a.test": "v0", "a.test:80": "v0", "a.test:81": "v3", "A.TEST": "v0", "b.test": "v1", ".test": "", "test": "", "b-x.test": "v2", "-x.test": "v1",
		"a.b.c": "v4", "a.b.": "v3", "a.": "", "[::1]": "v4", "[::1]:80": "", "upper.com": "v5", "UPPER.com": "v5", "x.suf.com": "v5", "x.SUF.com": "v5", "zzz": "",
	} {
		if got := chosen(plain, headers("GET / "+host)); got != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
	noPort := table(t, hosts("ignore_port_in_host_matching: true, ", `"a.test"`, `"*.test"`, `"a.b.*", "[::1]"`, `"*"`))
	for host, want := range map[string]string{
		"a.test": "v0", "a.test:80": "v0", "a.test:": "v0", "a.test:x": "v0", "a.test:8:8": "v3", "b.test:1": "v1", "[::1]": "v2", "[::1]:80": "v2", "::1": "v3",
		"a.b.c:99": "v2", ":80": "v3", "zzz": "v3", "a.test:-1": "v0", "": "v3",
	} {
		if got := chosen(noPort, headers("GET / "+host)); got != want {
			t.Errorf("%s without its port: %q, want %q", host, got, want)
		}
	}
	byHeader := table(t, hosts("vhost_header: X-Host, ", `"a.test"`, `"*"`))
	for host, want := range map[string]string{"a.test": "v0", "A.Test": "v0", "b": "v1"} {
		if got := chosen(byHeader, headers("GET / zzz", "x-host: "+host)); got != want {
			t.Errorf("%s in a header: %q, want %q", host, got, want)
		}
	}
	if got := chosen(byHeader, headers("GET / a.test")); got != "" {
		t.Errorf("without the header: %q", got)
	}
	if got := chosen(table(t, hosts("vhost_header: X-Host, ", `"*"`)), headers("GET / a.test")); got != "v0" {
		t.Errorf("without the header, and a single virtual host: %q", got)
	}
}

func TestBadDomains(t *testing.T) {
	for _, c := range [][]string{{`"a", "A"`}, {`"a"`, `"a"`}, {`"*"`, `"*"`}} {
		if _, err := compile(t, hosts("", c...)); err == nil {
			t.Errorf("%v is accepted", c)
		}
	}
}

func TestRequireTLS(t *testing.T) {
	for kind, want := range map[string][4]bool{ // http from outside and inside, https from outside and inside
		"NONE": {}, "ALL": {true, true}, "EXTERNAL_ONLY": {true, false},
	} {
		x := table(t, "{virtual_hosts: [{name: v, require_tls: "+kind+", domains: ['*'], routes: ["+answer("in", "prefix: /")+"]}]}")
		for i, l := range [][]string{{"x-forwarded-proto: http"}, {"x-forwarded-proto: http", "x-envoy-internal: true"}, {"x-forwarded-proto: https"},
			{"x-forwarded-proto: https", "x-envoy-internal: true"}} {
			h := headers("GET /a?b h:80", l...)
			e := x.Match(&route.Request{Headers: h})
			away := e.Kind == route.Redirect
			if away != want[i] {
				t.Errorf("%s, %v: sent away: %v", kind, l, away)
			}
			if away && (e.RedirectTo.Code != 301 || e.RedirectTo.Location(h, h.Arena(), "") != "https://h:80/a?b") {
				t.Errorf("%s, %v: to %s", kind, l, e.RedirectTo.Location(h, h.Arena(), ""))
			}
		}
	}
}

func TestIgnorePathParameters(t *testing.T) {
	list := answer("a", "path: /a/b") + ", " + answer("c", "prefix: /c")
	with := table(t, "{ignore_path_parameters_in_path_matching: true, virtual_hosts: [{name: v, domains: ['*'], routes: ["+list+"]}]}")
	for p, want := range map[string][2]string{"/a;x/b;y=1": {"", "a"}, "/a/b?;z": {"a", "a"}, "/c;x": {"c", "c"}, "/;x/c": {"", ""}, "/a;/b": {"", "a"}} {
		h := headers("GET " + p + " a")
		if got := [2]string{chosen(table(t, routes(list)), h), chosen(with, h)}; got != want {
			t.Errorf("%s: %q, want %q", p, got, want)
		}
	}
}

// An index finds what trying every route finds.
func TestIndexIsLinearSearch(t *testing.T) {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("ab/")), 0, 4, -1)
	kinds := []string{"path", "prefix", "path_separated_prefix"}
	regexes := []string{"/a.*", "^/a(b|/).*", "/(a|b)/?", "/ab?", ".*b", "(?i)/AB.*"}
	rapid.Check(t, func(rt *rapid.T) {
		var list []string
		for i := range rapid.IntRange(8, 40).Draw(rt, "routes") {
			m := fmt.Sprintf("%s: '/%s'", rapid.SampledFrom(kinds).Draw(rt, "kind"), text.Draw(rt, "path"))
			if rapid.IntRange(0, 9).Draw(rt, "regex") == 0 {
				m = "safe_regex: {regex: '" + rapid.SampledFrom(regexes).Draw(rt, "expression") + "'}"
			}
			if rapid.IntRange(0, 9).Draw(rt, "template") == 0 {
				m = uriTemplate + rapid.SampledFrom([]string{"/a/*", "/{x}", "/a/**", "/*/b"}).Draw(rt, "text") + "'}}"
			}
			if rapid.Bool().Draw(rt, "header") {
				m += ", headers: [{name: x-a, string_match: {exact: " + rapid.SampledFrom([]string{"x", "z"}).Draw(rt, "value") + "}}]"
			}
			if rapid.IntRange(0, 4).Draw(rt, "fold") == 0 {
				m += ", case_sensitive: false"
			}
			list = append(list, answer(fmt.Sprintf("r%d", i), m))
		}
		yaml := routes(list...)
		indexed, linear := table(t, yaml), route.Linear(table(t, yaml))
		if !route.Indexed(indexed) || route.Indexed(linear) {
			rt.Fatal("there is no index to compare")
		}
		for range 20 {
			p := "/" + rapid.StringOfN(rapid.RuneFrom([]rune("abAB/?")), 0, 6, -1).Draw(rt, "asked")
			h := headers("GET "+p+" a", "x-a: "+rapid.SampledFrom([]string{"x", "z"}).Draw(rt, "sent"))
			if got, want := chosen(indexed, h), chosen(linear, h); got != want {
				rt.Fatalf("%s: %q, want %q", p, got, want)
			}
		}
	})
}

// Few routes need no index, and prefixes of each other that are all candidates have none when they are many.
func TestWhenThereIsAnIndex(t *testing.T) {
	many := func(n int, length func(i int) int, more string) *route.Table {
		var list []string
		for i := range n {
			list = append(list, answer(fmt.Sprint("r", i), "prefix: /"+strings.Repeat("a", length(i))+more))
		}
		return table(t, routes(list...))
	}
	each := func(i int) int { return i }
	const header = ", headers: [{name: x-a}]"
	for _, c := range []struct {
		n      int
		length func(int) int
		more   string
		want   bool
	}{{7, each, "", false}, {8, each, "", true}, {1000, each, "", true}, {120, each, header, true}, {300, each, header, false}} {
		x := many(c.n, c.length, c.more)
		if route.Indexed(x) != c.want {
			t.Errorf("%d routes%s: %v", c.n, c.more, route.Indexed(x))
		}
		if got := chosen(x, headers("GET /"+strings.Repeat("a", c.n)+" a", "x-a: 1")); got != "r0" {
			t.Errorf("%d routes%s: found %q", c.n, c.more, got)
		}
	}
}

func TestMatchingDoesNotAllocate(t *testing.T) {
	var list []string
	for i := range 100 {
		list = append(list, answer(fmt.Sprint("r", i), fmt.Sprintf("prefix: /p%d/", i)))
	}
	x := table(t, hosts("", `"A.test"`, `"*.test"`)+"")
	y := table(t, routes(list...))
	r := &route.Request{Headers: headers("GET /p77/x?y B.test")}
	if n := testing.AllocsPerRun(100, func() {
		if x.Match(r) == nil || y.Match(r) == nil {
			t.Fatal("not found")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
