package route

import (
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// Two ways of rewriting one path are refused, in Envoy's words.
func TestOneRewriteOnly(t *testing.T) {
	both := &routev3.RouteAction{PrefixRewrite: "/a", RegexRewrite: &matcherv3.RegexMatchAndSubstitute{
		Pattern: &matcherv3.RegexMatcher{Regex: "a"}, Substitution: "b"}}
	c := &compiler{}
	if err := c.rewrites(&Entry{Extras: &Extras{}}, both); err == nil || !strings.Contains(err.Error(), "only one of prefix_rewrite, regex_rewrite or path_rewrite_policy") {
		t.Errorf("%v", err)
	}
	both.PrefixRewrite = ""
	if err := c.rewrites(&Entry{Extras: &Extras{}}, both); err != nil {
		t.Errorf("one of them: %v", err)
	}
}
