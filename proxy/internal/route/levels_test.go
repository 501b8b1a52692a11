package route_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

func packed(t *testing.T, text string) *anypb.Any {
	t.Helper()
	a, err := anypb.New(wrapperspb.String(text))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestFilterConfigLevels: filters see the configurations of all levels, and whether the last word turned them off or on.
func TestFilterConfigLevels(t *testing.T) {
	off, err := anypb.New(&routev3.FilterConfig{Disabled: true})
	if err != nil {
		t.Fatal(err)
	}
	rc := &routev3.RouteConfiguration{
		TypedPerFilterConfig: map[string]*anypb.Any{"a": packed(t, "rc"), "b": off},
		VirtualHosts: []*routev3.VirtualHost{{
			Name: "v", Domains: []string{"*"},
			TypedPerFilterConfig: map[string]*anypb.Any{"a": packed(t, "vh"), "b": packed(t, "vh")},
			Routes: []*routev3.Route{{
				Match:                &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
				Action:               &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 200}},
				TypedPerFilterConfig: map[string]*anypb.Any{"a": packed(t, "route"), "c": off},
			}},
		}},
	}
	table, err := route.Compile(rc, route.Deps{
		Slot: func(string) *cluster.Slot { return nil }, Exists: func(string) bool { return true }, Format: &format.Options{},
		FilterConfig: func(_ string, a *anypb.Any) (any, error) {
			var v wrapperspb.StringValue
			err := a.UnmarshalTo(&v)
			return v.Value, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var arena http.Arena
	arena.Init(&http.ArenaPool{})
	var h http.HeaderMap
	h.Init(&arena)
	h.Add(http.Method, "GET")
	h.Add(http.Path, "/")
	h.Add(http.Authority, "x")
	e := table.Match(&route.Request{Headers: &h})
	if e == nil {
		t.Fatal("no route")
	}
	if d := cmp.Diff([]any{"route", "vh", "rc"}, e.FilterConfigs(nil, "a")); d != "" {
		t.Error(d)
	}
	if e.FilterConfig("a") != "route" || e.FilterConfig("b") != "vh" || e.FilterConfig("c") != nil || e.FilterConfigs(nil, "c") != nil {
		t.Error("the most specific configuration is another one")
	}
	for filter, want := range map[string][2]bool{"a": {false, true}, "b": {false, true}, "c": {true, true}, "d": {false, false}} {
		if off, set := e.FilterDisabled(filter); off != want[0] || set != want[1] {
			t.Errorf("%s: disabled %v, set %v", filter, off, set)
		}
	}
}
