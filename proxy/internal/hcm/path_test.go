package hcm_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/hcm"
)

// What Envoy 1.40 forwards with normalize_path and merge_slashes.
var normalized = map[string]string{
	"/a/../b": "/b", "/a/./b": "/a/b", "/a/b/..": "/a/", "/a/b/../": "/a/", "/a/b/.": "/a/b/", "/..": "/", "/../..": "/", "/../a": "/a",
	"/a/%2e%2e/b": "/b", "/a/%2E/b": "/a/b", "/%41%7e%2d": "/A~-", "/%2fa": "/%2fa", "/%5ca": "/%5ca", `/a\b`: "/a/b", "/a%zz": "/a%zz",
	"/a%4": "/a%4", "/a%": "/a%", "/a//b": "/a/b", "//a": "/a", "/a///": "/a/", "/a/..//b": "/b", "/a;b/c": "/a;b/c", "/a/..;x/b": "/b",
	"/a/.;x=1/b": "/a/b", "/a/%2e;x/b": "/a/.;x/b", "/;x": "/;x", "/a/..;/c": "/c", "/%c3%a9": "/%c3%a9", "/a%20b": "/a%20b", "/a%3f": "/a%3f",
	"/%61%2f%62": "/a%2fb", "/a/...": "/a/...", "/a/..b": "/a/..b", "/a/.b": "/a/.b", "/a/b..": "/a/b..", "/a%7c|": "/a%7c%7C",
	"/a|b^c`{}": "/a%7Cb%5Ec%60%7B%7D", `/"x"<y>`: "/%22x%22%3Cy%3E", "/a/.%2e/c": "/c", "/a/%2e./c": "/c", "/*": "/*", "/~a": "/~a",
	"/a'b(c)!$&*+,=:@": "/a'b(c)!$&*+,=:@", "/%27%28": "/%27%28", "/%7B%7b": "/%7B%7b", "//..": "/", "/.": "/", "/..;": "/", "/a/%3b/c": "/a/%3b/c",
	"/": "/", "/a/b/;/..": "/a/b/",
}

func normalize(p string) (string, bool) {
	n, ok := hcm.Canonical(p)
	return hcm.MergeSlashes(n), ok
}

func TestNormalizePath(t *testing.T) {
	for in, want := range normalized {
		if got, ok := normalize(in); !ok || got != want {
			t.Errorf("%s: got %q, %v, want %q", in, got, ok, want)
		}
	}
	if got, ok := normalize("/a%00b"); ok {
		t.Errorf("NUL: got %q", got)
	}
}

func FuzzNormalizePath(f *testing.F) {
	for in := range normalized {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if !strings.HasPrefix(in, "/") || strings.ContainsAny(in, "?#") {
			return
		}
		p, ok := hcm.Canonical(in)
		if !ok {
			return
		}
		if !strings.HasPrefix(p, "/") {
			t.Fatalf("%q: %q does not begin with a slash", in, p)
		}
		for _, seg := range strings.Split(p, "/") {
			if seg == "." || seg == ".." {
				t.Fatalf("%q: %q has a dot segment", in, p)
			}
		}
		if strings.ContainsAny(p, " \"<>\\^`{|}\x00\x7f") {
			t.Fatalf("%q: %q has what must be escaped", in, p)
		}
		if u, _ := hcm.Unescape(in); len(u) > len(in) {
			t.Fatalf("%q: grew to %q", in, u)
		}
		if m := hcm.MergeSlashes(p); strings.Contains(m, "//") && m != "//" {
			t.Fatalf("%q: %q has two slashes", in, m)
		}
	})
}

func TestUnescapeSlashes(t *testing.T) {
	for in, want := range map[string]string{
		"/a%2fb": "/a/b", "/a%2Fb": "/a/b", "/a%5cb": `/a\b`, "/a%5Cb": `/a\b`, "/%2": "/%2", "/%": "/%", "/a": "/a", "/%2e": "/%2e", "/%2f%2F%5c%5C%2e": `///\\%2e`,
	} {
		got, found := hcm.Unescape(in)
		if got != want || found != (got != in) {
			t.Errorf("%s: got %q, %v, want %q", in, got, found, want)
		}
	}
}

func TestValidReferer(t *testing.T) {
	for in, want := range map[string]bool{
		"http://ok/": true, "ftp://x/": true, "/rel": true, "android-app://com.x": true, "HTTP://x": true, "https://x/a b": false, "https://x/?q#f": false,
		"http:///x": false, "about:blank": false, "http://x:99999/": false, "http://u:p@x:80/": false, "http://[::1]/": true, "": true,
		"http://x<y/": false, "http://x_y/": false, "bad referer": false, "://x": false, "a/b:c": true, "a:b": false, "http://x:": false, "http://x:80": true,
		"1http://x": false,
	} {
		if got := hcm.ValidReferer(in); got != want {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}

func TestFromXFF(t *testing.T) {
	for _, c := range []struct {
		xff    string
		hops   int
		want   string
		single bool
	}{
		{"1.2.3.4", 0, "1.2.3.4", true}, {"1.2.3.4, 5.6.7.8", 0, "5.6.7.8", false}, {"1.2.3.4, 5.6.7.8", 1, "1.2.3.4", false}, {"1.2.3.4", 1, "", false},
		{"1.2.3.4:99", 0, "", false}, {"bogus", 0, "", false}, {"[2001:db8::1]:80", 0, "", false}, {"2001:db8::1", 0, "2001:db8::1", true},
		{"", 0, "", false}, {"1.2.3.4,", 0, "", false}, {",1.2.3.4", 0, "1.2.3.4", false}, {"::ffff:1.2.3.4", 0, "::ffff:1.2.3.4", true},
		{"fe80::1%eth0", 0, "", false}, {"a, b, 1.1.1.1 ,c", 1, "1.1.1.1", false},
	} {
		a, single, ok := hcm.FromXFF(c.xff, c.hops)
		if ok != (c.want != "") || ok && (a.String() != c.want || single != c.single) {
			t.Errorf("%q, %d hops: got %v, %v, %v", c.xff, c.hops, a, single, ok)
		}
	}
}

func TestLastNotTrusted(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for xff, want := range map[string]string{
		"1.1.1.1, 2.2.2.2, 10.0.0.1": "2.2.2.2", "10.0.0.3, 10.0.0.1": "10.0.0.3", "1.1.1.1, bad, 10.0.0.1": "invalid IP", "bad, 10.0.0.2": "invalid IP",
		"": "invalid IP", "10.0.0.1": "10.0.0.1", "2.2.2.2": "2.2.2.2",
	} {
		if got := hcm.LastNotTrusted(xff, trusted).String(); got != want {
			t.Errorf("%q: got %s, want %s", xff, got, want)
		}
	}
}

func FuzzXFF(f *testing.F) {
	f.Add("1.2.3.4, 5.6.7.8", 1)
	f.Fuzz(func(t *testing.T, xff string, hops int) {
		if hops < 0 || hops > 100 {
			return
		}
		a, single, ok := hcm.FromXFF(xff, hops)
		if ok != a.IsValid() || single && (hops > 0 || strings.Contains(xff, ",")) {
			t.Fatalf("%q, %d: %v %v %v", xff, hops, a, single, ok)
		}
		hcm.LastNotTrusted(xff, nil)
	})
}

func TestSplitPort(t *testing.T) {
	for in, want := range map[string][2]string{
		"a": {"a", ""}, "a:80": {"a", "80"}, "[::1]": {"[::1]", ""}, "[::1]:80": {"[::1]", "80"}, "a:b": {"a:b", ""}, "a:": {"a", ""},
	} {
		name, port := hcm.SplitPort(in)
		if [2]string{name, port} != want {
			t.Errorf("%s: %s %s", in, name, port)
		}
	}
}
