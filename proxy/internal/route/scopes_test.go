package route_test

import (
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// scopes makes scopes whose tables answer with the name of the scope.
func scopes(t *testing.T, builder string, keys map[string][]string) *route.Scopes {
	t.Helper()
	s, err := newScopes(t, builder)
	if err != nil {
		t.Fatal(err)
	}
	slots := map[string]*route.Slot{}
	for name, parts := range keys {
		k := &routev3.ScopedRouteConfiguration_Key{}
		for _, p := range parts {
			k.Fragments = append(k.Fragments, &routev3.ScopedRouteConfiguration_Key_Fragment{
				Type: &routev3.ScopedRouteConfiguration_Key_Fragment_StringKey{StringKey: p}})
		}
		slot := &route.Slot{Name: name}
		slot.Store(table(t, "{name: "+name+", virtual_hosts: []}"))
		slots[route.ScopeKey(k)] = slot
	}
	s.Set(slots)
	return s
}

func newScopes(t *testing.T, builder string) (*route.Scopes, error) {
	t.Helper()
	var b hcmv3.ScopedRoutes_ScopeKeyBuilder
	if _, err := config.Parse("s.yaml", []byte(builder), &b, config.Options{SkipValidation: true}); err != nil {
		t.Fatal(err)
	}
	return route.NewScopes(&b)
}

// What each request gets was compared with Envoy 1.40.
func TestScopes(t *testing.T) {
	element := scopes(t, "{fragments: [{header_value_extractor: {name: X-Addr, element_separator: ';', element: {key: x-foo, separator: '='}}}, "+
		"{header_value_extractor: {name: x-t, index: 0}}]}", map[string][]string{"a": {"one", "g"}, "b": {"two", "g"}, "c": {"three"}, "e": {"", "g"}, "f": {"fo", "ur"}})
	index := scopes(t, "{fragments: [{header_value_extractor: {name: X-Addr, element_separator: ',', index: 1}}]}", map[string][]string{"a": {"one"}, "e": {""}})
	host := scopes(t, "{fragments: [{header_value_extractor: {name: Host, index: 0}}]}", map[string][]string{"a": {"x.test"}})
	for _, c := range []struct {
		s     *route.Scopes
		lines []string
		want  string
	}{
		{element, []string{"x-addr: x-foo=one", "x-t: g"}, "a"}, {element, []string{"x-addr: a=b;x-foo=two", "x-t: g"}, "b"},
		{element, []string{"x-addr: x-foo=one"}, ""}, {element, []string{"x-addr: a;x-foo=one=x", "x-t: g"}, ""}, {element, []string{"x-addr: x-foo=three", "x-t: g"}, ""},
		{element, []string{"x-addr: a; x-foo=one", "x-t: g"}, ""}, {element, []string{"x-addr: a=b", "x-addr: x-foo=one", "x-t: g"}, ""},
		{element, []string{"x-addr: x-foo=two;x-foo=one", "x-t: g"}, "b"}, {element, nil, ""}, {element, []string{"x-addr: x-foo=four", "x-t:"}, ""},
		{index, []string{"x-addr: a,one"}, "a"}, {index, []string{"x-addr: one"}, ""}, {index, []string{"x-addr: a,one,b"}, "a"}, {index, []string{"x-addr: a,"}, "e"},
		{index, []string{"x-addr: a, one"}, ""}, {index, []string{"x-addr: a", "x-addr: one"}, ""}, {index, nil, ""}, {host, nil, "a"},
	} {
		got := ""
		if x := c.s.Table(headers("GET / x.test", c.lines...)); x != nil {
			got = x.Name
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.lines, got, c.want)
		}
	}
	h := headers("GET / x.test", "x-addr: a=b;x-foo=two", "x-t: g")
	if n := testing.AllocsPerRun(100, func() {
		if element.Table(h) == nil {
			t.Fatal("not found")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if s, _ := newScopes(t, "{fragments: []}"); s.Table(h) != nil {
		t.Error("scopes without a choice choose")
	}
}

func TestRefusedScopes(t *testing.T) {
	for _, bad := range []string{"{fragments: [{header_value_extractor: {name: a}}]}", "{fragments: [{header_value_extractor: {name: a, index: 1}}]}"} {
		if _, err := newScopes(t, bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
