package header_to_metadata_test //nolint:revive // Envoy's name

import (
	"strings"
	"testing"

	metav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_to_metadata/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/dragoman-proxy/dragoman/extensions/filters/http/header_to_metadata"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest/filtertest"
)

func TestErrors(t *testing.T) {
	type pair = metav3.Config_KeyValuePair
	for want, r := range map[string]*metav3.Config_Rule{
		"request_rules[0]: Cannot specify both header and cookie in the same rule": {Header: "a", Cookie: "b", OnHeaderPresent: &pair{Key: "a"}},
		"One of Cookie or Header option needs to be specified":                     {OnHeaderPresent: &pair{Key: "a"}},
		"has neither `on_header_present` nor `on_header_missing` set":              {Header: "a"},
		"Cannot specify remove for cookie":                                         {Cookie: "a", Remove: true, OnHeaderPresent: &pair{Key: "a"}},
		"Cannot specify on_header_missing rule with an empty value":                {Header: "a", OnHeaderMissing: &pair{Key: "a"}},
		"Cannot specify both value and regex_value_rewrite":                        {Header: "a", OnHeaderPresent: &pair{Key: "a", Value: "v", RegexValueRewrite: &matcherv3.RegexMatchAndSubstitute{}}},
	} {
		for _, response := range []bool{false, true} {
			c := &metav3.Config{RequestRules: []*metav3.Config_Rule{r}}
			if response {
				c = &metav3.Config{ResponseRules: []*metav3.Config_Rule{r}}
				want = strings.Replace(want, "request_rules", "response_rules", 1)
			}
			if _, err := header_to_metadata.Extension.New(c, &filtertest.Context{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}

// FuzzValues reads anything as each type of value.
func FuzzValues(f *testing.F) {
	for _, s := range []string{"1", "0x10", "0x1p4", "aGVsbG8=", "\x1a\x02hi", strings.Repeat("\x32\x02", 200), "inf"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d := header_to_metadata.Decode(s)
		if len(d) > len(s) {
			t.Errorf("%q became longer: %q", s, d)
		}
		for k := range metav3.Config_ValueType_name {
			v, ok := header_to_metadata.Parse(k, d)
			if _, is := v.(float64); ok && k == int32(metav3.Config_NUMBER) && !is {
				t.Errorf("%q is %v", d, v)
			}
		}
	})
}
