package stats_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

func TestTagRegex(t *testing.T) {
	for _, tc := range []struct {
		regex, in string
		want      []string // the match and its groups; nil: none
	}{
		{`^x(?=\.).*?(y)`, "x.ay", []string{"x.ay", "y"}},
		{`^x(?=\.).*?(y)`, "xay", nil},
		{`^x(?!\.).*?(y)`, "x.ay", nil},
		{`^x(?!\.).*?(y)`, "xay", []string{"xay", "y"}},
		// What Istio asks for.
		{`^listener(?=\.).*?\.http\.(((?:[_.[:digit:]]*|[_\[\]aAbBcCdDeEfF[:digit:]]*))\.)`, "listener.127.0.0.1_80.http.10.0.0.1_80.rq", []string{"listener.127.0.0.1_80.http.10.0.0.1_80.", "10.0.0.1_80.", "10.0.0.1_80"}},
		{`(a|ab)(?=c)(c|bcd)(d*)`, "zabcd", []string{"abcd", "ab", "c", "d"}},
		{`(?=(?:a|b))(.)(.)?`, "xb", []string{"b", "b", ""}},
		{`a(?=[)\]])(.)`, "a(a]", []string{"a]", "]"}},
		{`a(?=\))(.)`, "a)", []string{"a)", ")"}},
		{`[[:alpha:](?=](.)`, "?x", []string{"?x", "x"}},
		{`\(?(b)`, "(b", []string{"(b", "b"}},
		{`(?:(a)|b)*(?=c)\b(c)?$`, "ab", nil},
		{`(\w+)$(?=)`, "ab.é", nil},
		{`(.)(?=$)`, "ab.é", []string{"é", "é"}},
	} {
		re, err := stats.CompileTagRegex(tc.regex)
		if err != nil {
			t.Errorf("%s: %v", tc.regex, err)
			continue
		}
		var got []string
		m := re.FindStringSubmatchIndex(tc.in)
		for i := 0; i < len(m); i += 2 {
			got = append(got, tc.in[max(m[i], 0):max(m[i+1], 0)])
		}
		if d := cmp.Diff(tc.want, got); d != "" || re.String() != tc.regex {
			t.Errorf("%s in %s: %s", tc.regex, tc.in, d)
		}
	}
	for text, want := range map[string]string{
		`(?P<x>y)`: "not preceded", `(?i)(x)`: "not preceded", `(?<=x)y`: "not preceded", `(x)\1`: "back references", `(?=(x))`: "groups in a lookahead",
		`(?=x`: "not closed", `(?=[)x`: "not closed", `(?=*)`: "missing argument", `(?=x)(`: "missing closing", `(?=(?=x))`: "groups in a lookahead",
	} {
		if _, err := stats.CompileTagRegex(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// FuzzTagRegex compares with Go's own machine: an expression with a lookahead that is always true matches what it matches without.
func FuzzTagRegex(f *testing.F) {
	for _, s := range []string{`^a(b)?`, `(a|ab)(c|bcd)(d*)`, `(a*)*b`, `((a+)|b*)+$`, `[^.]*?(x)\b`, `(?:)|(é)`} {
		f.Add(s, "abcd.éx")
	}
	f.Fuzz(func(t *testing.T, text, in string) {
		if len(text) > 100 || len(in) > 100 {
			return
		}
		plain, err := stats.CompileTagRegex(text)
		if err != nil {
			return
		}
		if _, ok := plain.(*regexp.Regexp); !ok {
			plain.FindStringSubmatchIndex(in)
			return
		}
		with, err := stats.CompileTagRegex(`(?=)(?:` + text + `)`)
		if err != nil {
			return
		}
		if d := cmp.Diff(plain.FindStringSubmatchIndex(in), with.FindStringSubmatchIndex(in)); d != "" {
			t.Errorf("%q in %q: %s", text, in, d)
		}
	})
}
