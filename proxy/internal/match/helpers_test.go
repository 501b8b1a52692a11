package match_test

import (
	"strings"
	"testing"

	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// compile reads a matcher whose actions are texts, without checking its fields by themselves.
func compile(t testing.TB, yaml string, o match.Options[string]) (*match.Tree[string], error) {
	t.Helper()
	var m xdsmatcherv3.Matcher
	if _, err := config.Parse("m.yaml", []byte(yaml), &m, config.Options{SkipValidation: true}); err != nil {
		t.Fatalf("%s: %v", yaml, err)
	}
	o.Action = func(_ string, a *anypb.Any) (string, error) {
		var v wrapperspb.StringValue
		err := a.UnmarshalTo(&v)
		return v.Value, err
	}
	return match.New(&m, o)
}

func tree(t testing.TB, yaml string) *match.Tree[string] {
	t.Helper()
	x, err := compile(t, yaml, match.Options[string]{KeepMatching: true})
	if err != nil {
		t.Fatalf("%s: %v", yaml, err)
	}
	return x
}

const typeURL = "'@type': type.googleapis.com/"

// input is an input by the name of its message and its fields.
func input(message, fields string) string {
	if fields != "" {
		fields = ", " + fields
	}
	return "input: {name: i, typed_config: {" + typeURL + message + fields + "}}"
}

// header is the input of a request header.
func header(name string) string {
	return input("envoy.type.matcher.v3.HttpRequestHeaderMatchInput", "header_name: '"+name+"'")
}

// to leads to an action.
func to(action string) string {
	return "{action: {name: a, typed_config: {" + typeURL + "google.protobuf.StringValue, value: '" + action + "'}}}"
}

// is is a predicate on a request header.
func is(name, value string) string {
	return "{single_predicate: {" + header(name) + ", value_match: {" + value + "}}}"
}

// headers makes headers of lines; the first is method, path and authority.
func headers(first string, lines ...string) *http.HeaderMap {
	var arena http.Arena
	arena.Init(&http.ArenaPool{})
	h := &http.HeaderMap{}
	h.Init(&arena)
	f := strings.SplitN(first, " ", 3)
	h.Add(http.Method, f[0])
	h.Add(http.Path, f[1])
	h.Add(http.Authority, f[2])
	for _, l := range lines {
		k, v, _ := strings.Cut(l, ": ")
		h.AddName(strings.TrimSuffix(k, ":"), v)
	}
	return h
}

// response makes response headers.
func response(code string, lines ...string) *http.HeaderMap {
	h := headers("- - -", lines...)
	h.Set(http.Status, code)
	return h
}

// ask evaluates a tree: the action, "-" for no match, "?" for an input that is not there.
func ask(x *match.Tree[string], d *match.Data) string {
	a, o := x.Match(d)
	switch o {
	case match.NoMatch:
		return "-"
	case match.Insufficient:
		return "?"
	}
	return a
}
