package config_test

import (
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// What the real Envoy says of the size of programs: ours is never above it, and is not far below.
func TestRegexSize(t *testing.T) {
	for _, c := range []struct {
		regex string
		size  int
	}{
		{`abc.*def`, 12},
		{`/api/v[0-9]+/users/[^/]+/posts/(\d+)`, 33},
		{`^/foo/(bar|baz|qux)/.*$`, 16},
		{`(?i)^https?://[a-z0-9.-]+(:[0-9]+)?$`, 19},
		{`.*\.(jpg|jpeg|png|gif|css|js|ico|svg|woff2?)$`, 37},
		{`/v1/(?P<id>[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12})`, 78},
		{`[a-zA-Z0-9_]{1,20}`, 83},
		{`(a|b|c|d|e|f)(g|h|i)`, 10},
		{`(foo|foobar|foobaz)`, 14},
		{`(?:foo|bar)*baz`, 13},
		{`a*a*b`, 6},
		{`(a*)*`, 11},
		{`(a+)+`, 9},
		{`\w+@\w+\.\w+`, 18},
		{`[[:alpha:]]+`, 6},
		{`\p{L}+`, 12},
		{`[^a-z]`, 6},
		{`[^a-zA-Z]`, 7},
		{`(?s).`, 5},
		{`(?s).*`, 6},
		{`a.b.c`, 11},
		{`(?:(?:a))`, 5},
		{`|a`, 6},
		{`a|`, 6},
		{`()`, 6},
		{`\s\S\D\W`, 18},
		{`x{0}`, 4},
		{`x{0,3}`, 10},
		{`x{3,}`, 8},
		{`(abc){2,3}`, 20},
		{`[abc]`, 5},
		{`[a-cx-z]`, 6},
		{`[\d\s]`, 8},
		{`abc|abd|abe|xyz`, 10},
		{`foobar|foobaz|fooqux|quux`, 18},
		{`(?i)abc`, 7},
		{`(?i)[a-c]`, 5},
		{`(?i)k`, 5},
		{`Bearer (.+)`, 16},
		{`^$`, 2},
		{`\A\z`, 2},
		{`\bfoo\b`, 9},
		{`a?b?c?`, 10},
		{`(a?)+`, 9},
		{`.+`, 7},
		{`.?`, 7},
		{`.*.*`, 6},
		{`.*a.*b.*c.*d`, 16},
		{`[^/]*[^/]*`, 6},
		{`a+a*`, 6},
		{`ü+`, 7},
		{`[à-ü]`, 5},
		{`(?:a|ab|abc)`, 9},
		{`(x|y)?z`, 9},
		{`((a)(b))(c)`, 15},
		{`http(s)?`, 12},
		{`([^.]+)\.example\.com`, 21},
		{`GET|POST|PUT|DELETE|PATCH|HEAD|OPTIONS`, 35},
		{`.*\b\.+?xzxbxa((?:/+(?:c_yb){1,3})(^c^c-)+|((?:--x0z)*?-c11/aaa{2}(?:y2)*?)){2,}\w$`, 111},
		{`.*(?P<n364792>(b2b(0--10_b__z/c0c)+?c*?|[A-F]?x-dybx|(?:y0z-){3}(?P<n37701>[A-F]-cc__)*)|y-c/|((?:0xxcx9){3}a(?:(?:c{1,3}))a+)x_ay2)12.*`, 103},
		{`d9|c(?:aa//){1,3}(?:x0/z){1,3}y_2-y1|(?:(?:cczy__acb){2}(b+?0b|(?:9ydd(?:9x/){2})))*(?P<n88038>\b(?:920x9){0,4})c1`, 106},
		{`1{0,4}y(?:(ca*)(?:a+ab9xb|(?:dcy){2}.?[^.]*)[^/])((c(?:-2)+?_\D|aa(?:/y-d9)*.){1,3})?a{3}.*`, 102},
		{`(?i:bdy/_)c0-(?:abx1x-)+?/d/a|(?:^\d[a-zA-Z0-9_-]{2}(?:(?:a2)bb_dc+?)|1zy^)|yc1cz/(?:(cb(?:z9-y)+|a{2}){1,3})*?(?:_x)*?`, 94},
		{`(?:((?:-22/)*)[0-9a-f]+?)?yyc1xadb(?:.{1,3}b+?1z2yx-|a99abxd1(?:a){3}(?:abz(?:d9xbz)?|(?:ax0x2)*a|d_dx-){2})/?`, 94},
		{`[^a-z](?P<n980129>(?i:(?:2(?P<n425338>\b)9bza2yca)){2}1?){0,4}$`, 122},
		{`\b|by2b((^a?|c?c+|[0-9a-f]{2}[^/](x29c0a{3}zzcd^z-)(?:_0z){3}a)){2,}|(?:/d-c){0,4}(?:[0-9a-f]c)/?`, 124},
		{`^/api/.(?:(?i:cb[A-F].)|a(?:ccba+y0y--2b){1,3})bba_1|z_xzaa(?:(_cc12_y/zca1/y1)(b(?:dca_9){2}b{3})+|z1_)(?:dz)+?(?:_b)?.*`, 114},
		{`^/api/^/((?:[^/]{1,3})[^a-z])(?:(?:0azy11)?(?:az_0_c){2}(1|(?i:(?:dbc/){0,4}a{2,})1[A-F]*)a2d(ab_yb))(b_1zc0b)|(((?:_x/)*b)+?)1-xcc_c+(?:--/zb0)*/?`, 117},
		{`\.\d\b(?:(/x02cx[a-z]+(?P<n401953>c/b[a-z]{1,3}a{3}[A-F]{0,4})(?:a_9)+?2b)/b_--x/ca{3}|_9b|(?:y1yz2x){0,4}(?:b02z){2}(?i:cbb0b2|acy0-b)+).*`, 110},
		{`2(?:ay-){0,4}-{0,4}(?:c91c){3}((?:-bd9)?(b/xz-cy/-b^)c)|(?:/9ab)*0xc_[a-zA-Z0-9_-]?(?:b1-){0,4}a`, 93},
	} {
		if got := config.RegexSize(c.regex); got > c.size || got < c.size*3/5-4 {
			t.Errorf("%s: %d, Envoy has %d", c.regex, got, c.size)
		}
	}
	if got := config.RegexSize("("); got != 0 {
		t.Errorf("no regular expression: %d", got)
	}
}

func FuzzRegexSize(f *testing.F) {
	f.Add("(a|b{2,3})*[^/]+$")
	f.Fuzz(func(t *testing.T, text string) {
		if n := config.RegexSize(text); n < 0 {
			t.Errorf("%q: %d", text, n)
		}
	})
}
