package match_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
)

// What each tree says was compared with Envoy 1.40 where it can be asked.
func TestTrees(t *testing.T) {
	const missing = "{single_predicate: {input: {name: i, typed_config: {'@type': type.googleapis.com/envoy.type.matcher.v3.HttpResponseHeaderMatchInput, " +
		"header_name: x}}, value_match: {exact: a}}}"
	list := func(fields string) string { return "matcher_list: {matchers: [" + fields + "]}" }
	when := func(p, on string) string { return "{predicate: " + p + ", on_match: " + on + "}" }
	for name, c := range map[string]struct {
		yaml string
		want map[string]string // of request headers, separated by semicolons
	}{
		"nothing":     {"{}", map[string]string{"": "-"}},
		"on_no_match": {"{on_no_match: " + to("n") + "}", map[string]string{"": "n"}},
		"list": {"{" + list(when(is("a", "exact: x"), to("1"))+", "+when(is("a", "prefix: x"), to("2"))) + ", on_no_match: " + to("n") + "}",
			map[string]string{"a: x": "1", "a: xy": "2", "a: y": "n", "": "n"}},
		"nested no match goes on": {"{" + list(when(is("a", "exact: x"), "{matcher: {"+list(when(is("b", "exact: x"), to("1")))+"}}")+", "+when(is("a", "exact: x"), to("2"))) + "}",
			map[string]string{"a: x": "2", "a: x;b: x": "1", "b: x": "-"}},
		"keep_matching": {"{" + list(when(is("a", "exact: x"), "{keep_matching: true, "+to("1")[1:])+", "+when(is("a", "exact: x"), to("2"))) + "}",
			map[string]string{"a: x": "2"}},
		"and": {"{" + list(when("{and_matcher: {predicate: ["+is("a", "suffix: x")+", "+is("b", "contains: x")+"]}}", to("1"))) + "}",
			map[string]string{"a: x;b: yxy": "1", "a: x": "-", "b: x": "-"}},
		"or": {"{" + list(when("{or_matcher: {predicate: ["+is("a", "exact: x")+", "+is("b", "exact: x")+"]}}", to("1"))) + "}",
			map[string]string{"a: x": "1", "b: x": "1", "": "-"}},
		"not": {"{" + list(when("{not_matcher: "+is("a", "exact: x")+"}", to("1"))) + "}", map[string]string{"a: x": "-", "a: y": "1", "": "1"}},
		"ignore case": {"{" + list(when(is("a", "exact: xY, ignore_case: true"), to("1"))+", "+when(is("a", "contains: Z, ignore_case: true"), to("2"))) + "}",
			map[string]string{"a: XY": "1", "a: aZb": "2", "a: azb": "2"}},
		"regex":        {"{" + list(when(is("a", "safe_regex: {regex: 'x+'}"), to("1"))) + "}", map[string]string{"a: xx": "1", "a: xxy": "-"}},
		"all values":   {"{" + list(when(is("a", "exact: 'x,y'"), to("1"))) + "}", map[string]string{"a: x;a: y": "1", "a: x": "-"}},
		"host":         {"{" + list(when(is("host", "exact: h"), to("1"))) + "}", map[string]string{"": "1"}},
		"not there":    {"{" + list(when(missing, to("1"))) + ", on_no_match: " + to("n") + "}", map[string]string{"": "?"}},
		"not of it":    {"{" + list(when("{not_matcher: "+missing+"}", to("1"))) + "}", map[string]string{"": "?"}},
		"and of it":    {"{" + list(when("{and_matcher: {predicate: ["+is("a", "exact: x")+", "+missing+"]}}", to("1"))) + "}", map[string]string{"a: x": "?", "": "-"}},
		"or of it":     {"{" + list(when("{or_matcher: {predicate: ["+missing+", "+is("a", "exact: x")+"]}}", to("1"))) + "}", map[string]string{"a: x": "1", "": "?"}},
		"nested in it": {"{" + list(when(is("a", "exact: x"), "{matcher: {"+list(when(missing, to("1")))+"}}")) + ", on_no_match: " + to("n") + "}", map[string]string{"a: x": "?", "": "n"}},
		"exact map": {"{matcher_tree: {" + header("a") + ", exact_match_map: {map: {x: " + to("1") + ", y: {matcher: {}}}}}, on_no_match: " + to("n") + "}",
			map[string]string{"a: x": "1", "a: y": "n", "a: z": "n", "": "n"}},
		"prefix map": {"{matcher_tree: {" + header(":path") + ", prefix_match_map: {map: {/a: " + to("a") + ", /a/b: {matcher: {matcher_tree: {" + header("a") +
			", exact_match_map: {map: {x: " + to("ab") + "}}}}}, /a/bc: " + to("abc") + "}}}, on_no_match: " + to("n") + "}",
			map[string]string{"/a": "a", "/ab": "a", "/a/b": "a", "/a/b;a: x": "ab", "/a/bc;a: x": "abc", "/": "n"}},
		"empty prefix": {"{matcher_tree: {" + header(":path") + ", prefix_match_map: {map: {'': " + to("all") + "}}}}", map[string]string{"/x": "all"}},
		"addresses": {"{matcher_tree: {" + header("a") + ", custom_match: {name: c, typed_config: {" + typeURL + "xds.type.matcher.v3.IPMatcher, range_matchers: [" +
			"{ranges: [{address_prefix: 10.0.0.0, prefix_len: 8}, {address_prefix: '2001:db8::', prefix_len: 32}], on_match: " + to("ten") + "}, " +
			"{ranges: [{address_prefix: 10.1.0.0, prefix_len: 16}], exclusive: true, on_match: {matcher: {matcher_tree: {" + header("b") + ", exact_match_map: {map: {x: " + to("gold") + "}}}}}}, " +
			"{ranges: [{address_prefix: 10.1.1.0, prefix_len: 24}], on_match: {matcher: {}}}]}}}, on_no_match: " + to("n") + "}",
			map[string]string{"a: 10.2.0.1": "ten", "a: 10.1.0.1": "ten", "a: 10.1.0.1;b: x": "gold", "a: 10.1.1.1;b: x": "ten", "a: 11.0.0.0": "n", "a: z": "n", "": "n",
				"a: 2001:db8:1::": "ten", "a: ::ffff:10.2.0.1": "ten"}},
		"server names": {"{matcher_tree: {" + header("a") + ", custom_match: {name: c, typed_config: {" + typeURL + "xds.type.matcher.v3.ServerNameMatcher, domain_matchers: [" +
			"{domains: ['*'], on_match: " + to("star") + "}, {domains: ['*.a.test'], on_match: " + to("wild") + "}, {domains: [x.a.test], on_match: {matcher: {}}}, " +
			"{domains: ['*.b.a.test'], on_match: {matcher: {}}}, {domains: [y.test], on_match: " + to("y") + "}]}}}, on_no_match: " + to("n") + "}",
			map[string]string{"a: q": "star", "a: z.a.test": "wild", "a: x.a.test": "wild", "a: Z.A.test": "star", "a: a.test": "star", "a: q.b.a.test": "wild", "a: y.test": "y", "": "n"}},
	} {
		x := tree(t, c.yaml)
		for request, want := range c.want {
			lines := strings.Split(request, ";")
			path := "/"
			if strings.HasPrefix(lines[0], "/") {
				path, lines = lines[0], lines[1:]
			}
			if len(lines) == 1 && lines[0] == "" {
				lines = nil
			}
			if got := ask(x, &match.Data{Request: headers("GET "+path+" h", lines...)}); got != want {
				t.Errorf("%s: %q: %s, want %s", name, request, got, want)
			}
		}
	}
}

func TestActions(t *testing.T) {
	x := tree(t, "{matcher_tree: {"+header("a")+", exact_match_map: {map: {x: "+to("1")+", y: {matcher: {matcher_list: {matchers: [{predicate: "+is("b", "exact: x")+
		", on_match: "+to("2")+"}]}, on_no_match: "+to("3")+"}}}}}}")
	var got []string
	x.Actions(func(a string) { got = append(got, a) })
	slices.Sort(got)
	if d := cmp.Diff([]string{"1", "2", "3"}, got); d != "" {
		t.Error(d)
	}
}

// Errors say where below the matcher something is wrong.
func TestRefused(t *testing.T) {
	const one = "{matcher_list: {matchers: [{predicate: {single_predicate: {"
	for yaml, want := range map[string]string{
		"{on_no_match: {}}": "on_no_match: on_match is required",
		"{on_no_match: {keep_matching: true, " + to("a")[1:] + "}":                                                        "on_no_match: keep_matching is not supported in this context",
		"{matcher_tree: {" + header("a") + "}}":                                                                           "matcher_tree: tree_type is required",
		"{matcher_tree: {exact_match_map: {map: {}}}}":                                                                    "matcher_tree.input: typed_config is required",
		"{matcher_list: {matchers: [{predicate: {}, on_match: {}}]}}":                                                     "matcher_list.matchers[0].predicate: match_type is required",
		one + header("a") + "}}, on_match: " + to("x") + "}]}}":                                                           "matcher_list.matchers[0].predicate.single_predicate: matcher is required",
		one + header("a") + ", value_match: {safe_regex: {regex: '('}}}}, on_match: {}}]}}":                               "matcher_list.matchers[0].predicate.single_predicate.value_match: missing ): (",
		one + input("google.protobuf.StringValue", "") + ", value_match: {exact: a}}}}]}}":                                "matcher_list.matchers[0].predicate.single_predicate.input: Didn't find a registered implementation for 'i' with type URL: 'google.protobuf.StringValue'",
		one + header("a") + ", value_match: {safe_regex: {regex: x}, ignore_case: true}}}}]}}":                            "matcher_list.matchers[0].predicate.single_predicate.value_match: ignore_case has no effect for safe_regex.",
		one + header("a") + ", custom_match: {name: c, typed_config: {" + typeURL + "google.protobuf.StringValue}}}}}]}}": "matcher_list.matchers[0].predicate.single_predicate.custom_match: Didn't find a registered implementation for 'c' with type URL: 'google.protobuf.StringValue'",
		one + header("a") + ", custom_match: {name: c, typed_config: {" + typeURL + "envoy.extensions.matching.input_matchers.metadata.v3.Metadata, value: {present_match: true}}}}}}]}}":                            "matcher_list.matchers[0].predicate.single_predicate: Unsupported data input type: string, currently supported type: dynamic_metadata",
		"{matcher_tree: {" + input("envoy.extensions.matching.common_inputs.network.v3.DynamicMetadataInput", "filter: f") + ", exact_match_map: {map: {}}}}":                                                        "matcher_tree: Unsupported data input type: dynamic_metadata, currently supported type: string",
		"{matcher_tree: {" + input("envoy.extensions.matching.common_inputs.network.v3.TransportProtocolInput", "") + ", exact_match_map: {map: {}}}}":                                                               "matcher_tree.input: Didn't find a registered implementation for 'i' with type URL: 'envoy.extensions.matching.common_inputs.network.v3.TransportProtocolInput'",
		"{matcher_tree: {" + header("a") + ", custom_match: {name: c, typed_config: {" + typeURL + "xds.type.matcher.v3.IPMatcher, range_matchers: [{ranges: [{address_prefix: x}], on_match: " + to("a") + "}]}}}}": "matcher_tree.custom_match.range_matchers[0].ranges[0].address_prefix: malformed IP address: x",
		"{matcher_tree: {" + header("a") + ", custom_match: {name: c, typed_config: {" + typeURL + "xds.type.matcher.v3.ServerNameMatcher, domain_matchers: [{domains: [a, a], on_match: " + to("a") + "}]}}}}":      "matcher_tree.custom_match.domain_matchers[0]: domain a is there twice or has a wildcard that is not its first label",
	} {
		_, err := compile(t, yaml, match.Options[string]{})
		if err == nil {
			t.Errorf("%s is accepted", yaml)
			continue
		}
		var e *config.Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", yaml, err, want)
		}
	}
	only := match.Options[string]{Input: func(url string) error { return errors.New("not " + url) }}
	if _, err := compile(t, "{matcher_tree: {"+header("a")+", exact_match_map: {map: {}}}}", only); err == nil ||
		!strings.Contains(err.Error(), "not type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput") {
		t.Errorf("%v", err)
	}
}

// All keys of a prefix_match_map that begin with one another may have to be tried: there are at most 64.
func TestNestedPrefixesAreBounded(t *testing.T) {
	keys := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, strings.Repeat("a", i+1)+": {matcher: {}}")
		}
		return "{matcher_tree: {" + header("a") + ", prefix_match_map: {map: {" + strings.Join(list, ", ") + ", b: " + to("b") + "}}}}"
	}
	x := tree(t, keys(64))
	for a, want := range map[string]string{strings.Repeat("a", 99): "-", "b": "b"} {
		if got := ask(x, &match.Data{Request: headers("GET / h", "a: "+a)}); got != want {
			t.Errorf("%s: %s", a, got)
		}
	}
	if _, err := compile(t, keys(65), match.Options[string]{}); err == nil {
		t.Error("65 are accepted")
	}
}

func TestMatchingDoesNotAllocate(t *testing.T) {
	x := tree(t, "{matcher_tree: {"+header("a")+", exact_match_map: {map: {x: {matcher: {matcher_list: {matchers: [{predicate: {and_matcher: {predicate: ["+
		is("b", "prefix: 'y'")+", {not_matcher: "+is("c", "exact: z")+"}]}}, on_match: "+to("1")+"}]}}}}}}}")
	d := &match.Data{Request: headers("GET / h", "a: x", "b: yz")}
	if n := testing.AllocsPerRun(100, func() {
		if _, o := x.Match(d); o != match.Match {
			t.Fatal("no match")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
