package route_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

// rig is a subscription to scopes. The first of src.open is that of the scopes.
type rig struct {
	t       *testing.T
	src     *fakeSource
	scopes  *route.Scopes
	release func()
	ready   int
	log     strings.Builder
}

func newRig(t *testing.T) *rig {
	t.Helper()
	g := &rig{t: t}
	r, src, store := newRDS(t, nil)
	r.Log = slog.New(slog.NewTextHandler(&g.log, nil))
	g.src = src
	var p hcmv3.ScopedRoutes
	if _, err := config.Parse("s.yaml", []byte("{name: s, scope_key_builder: {fragments: [{header_value_extractor: {name: x-s, index: 0}}]}, scoped_rds: {}}"), &p,
		config.Options{SkipValidation: true}); err != nil {
		t.Fatal(err)
	}
	var err error
	if g.scopes, g.release, err = r.Scoped(&p, store.Root().Scope("http.x"), func() { g.ready++ }); err != nil {
		t.Fatal(err)
	}
	return g
}

// scope is a resource: NAME KEY, and the name of a route configuration to subscribe to, or "-" for one within.
func scope(t *testing.T, name, key, routes string) sub.Resource {
	t.Helper()
	x := &routev3.ScopedRouteConfiguration{Name: name, Key: &routev3.ScopedRouteConfiguration_Key{Fragments: []*routev3.ScopedRouteConfiguration_Key_Fragment{
		{Type: &routev3.ScopedRouteConfiguration_Key_Fragment_StringKey{StringKey: key}}}}}
	if routes == "-" {
		x.RouteConfiguration = &routev3.RouteConfiguration{Name: "in " + name}
	} else {
		x.RouteConfigurationName = routes
	}
	return sub.Resource{Name: name, Body: x}
}

func (g *rig) update(u *sub.Update) error { return g.src.open[0].cb.OnUpdate(u) }

func (g *rig) mustUpdate(u *sub.Update) {
	g.t.Helper()
	if err := g.update(u); err != nil {
		g.t.Fatal(err)
	}
}

// table is the name of the table for a key, "" if there is none.
func (g *rig) table(key string) string {
	if x := g.scopes.Table(headers("GET / a", "x-s: "+key)); x != nil {
		return x.Name
	}
	return ""
}

func TestScopesFromOutside(t *testing.T) {
	g := newRig(t)
	g.mustUpdate(&sub.Update{Full: true, Resources: []sub.Resource{scope(t, "a", "1", "r"), scope(t, "b", "2", "-")}})
	if g.ready != 0 || len(g.src.open) != 2 || g.table("1") != "" || g.table("2") != "in b" {
		t.Fatalf("before the routes: ready %d times, %d subscriptions, tables %q %q", g.ready, len(g.src.open), g.table("1"), g.table("2"))
	}
	if err := g.src.open[1].cb.OnUpdate(&sub.Update{Resources: []sub.Resource{{Name: "r", Body: &routev3.RouteConfiguration{Name: "r"}}}}); err != nil {
		t.Fatal(err)
	}
	if g.ready != 1 || g.table("1") != "r" || g.table("3") != "" {
		t.Errorf("with the routes: ready %d times, tables %q %q", g.ready, g.table("1"), g.table("3"))
	}
	// A change moves one scope, another one stays.
	g.mustUpdate(&sub.Update{Resources: []sub.Resource{scope(t, "b", "3", "-")}})
	if g.table("1") != "r" || g.table("2") != "" || g.table("3") != "in b" {
		t.Errorf("after a change: tables %q %q %q", g.table("1"), g.table("2"), g.table("3"))
	}
	g.mustUpdate(&sub.Update{Full: true, Resources: []sub.Resource{{Name: "b", Unchanged: true}}})
	if len(g.src.open) != 1 || g.table("1") != "" || g.table("3") != "in b" {
		t.Errorf("after a removal: %d subscriptions, tables %q %q", len(g.src.open), g.table("1"), g.table("3"))
	}
	g.mustUpdate(&sub.Update{Removed: []string{"b"}})
	if g.table("3") != "" {
		t.Errorf("after another one: table %q", g.table("3"))
	}
	g.mustUpdate(&sub.Update{Resources: []sub.Resource{scope(t, "c", "4", "r")}})
	g.release()
	if len(g.src.open) != 0 || g.table("4") != "" || g.ready != 1 {
		t.Errorf("after the release: %d subscriptions, table %q, ready %d times", len(g.src.open), g.table("4"), g.ready)
	}
}

// A bad update changes nothing, and is not waited for.
func TestBadScopes(t *testing.T) {
	demand := scope(t, "d", "9", "r")
	demand.Body.(*routev3.ScopedRouteConfiguration).OnDemand = true
	for name, u := range map[string]*sub.Update{
		"conflict":   {Full: true, Resources: []sub.Resource{scope(t, "a", "1", "r"), scope(t, "b", "1", "r")}},
		"unreadable": {Full: true, Resources: []sub.Resource{scope(t, "a", "1", "r"), {Name: "x", Err: errors.New("cannot be read")}}},
		"no scope":   {Full: true, Resources: []sub.Resource{{Name: "x", Body: &corev3.Node{}}}},
		"no routes":  {Full: true, Resources: []sub.Resource{scope(t, "a", "1", "")}},
		"on demand":  {Full: true, Resources: []sub.Resource{demand}},
	} {
		g := newRig(t)
		if err := g.update(u); err == nil {
			t.Errorf("%s: no error", name)
		}
		if g.ready != 1 || len(g.src.open) != 1 || g.table("1") != "" {
			t.Errorf("%s: ready %d times, %d subscriptions, table %q", name, g.ready, len(g.src.open), g.table("1"))
		}
		if !strings.Contains(g.log.String(), "srds: scoped route config 's' rejected: ") {
			t.Errorf("%s: logged %q", name, g.log.String())
		}
		g.mustUpdate(&sub.Update{Full: true, Resources: []sub.Resource{scope(t, "a", "1", "-")}})
		if g.table("1") != "in a" {
			t.Errorf("%s: then a good one: table %q", name, g.table("1"))
		}
		if err := g.update(u); err == nil || g.table("1") != "in a" {
			t.Errorf("%s: then the bad one: %v, table %q", name, err, g.table("1"))
		}
		g.src.open[0].cb.OnFailure(sub.FetchTimeout, nil)
		g.release()
		if g.ready != 1 || len(g.src.open) != 0 {
			t.Errorf("%s: in the end: ready %d times, %d subscriptions", name, g.ready, len(g.src.open))
		}
	}
}

func TestScopesThatDoNotCome(t *testing.T) {
	g := newRig(t)
	cb := g.src.open[0].cb
	cb.OnFailure(sub.ConnectionFailure, nil)
	if g.ready != 0 {
		t.Error("a source that cannot be reached is not waited for")
	}
	cb.OnFailure(sub.FetchTimeout, nil)
	if g.ready != 1 {
		t.Errorf("ready %d times", g.ready)
	}
	g.release()
}
