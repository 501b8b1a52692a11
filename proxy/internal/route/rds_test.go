package route_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

type fakeSource struct{ open []*fakeSub }

type fakeSub struct {
	s  *fakeSource
	cb sub.Callbacks
}

func (s *fakeSource) Subscribe(_ *corev3.ConfigSource, _ string, _ []string, _ sub.Stats, cb sub.Callbacks) (sub.Subscription, error) {
	x := &fakeSub{s, cb}
	s.open = append(s.open, x)
	return x, nil
}

func (x *fakeSub) SetNames([]string) {}
func (x *fakeSub) Close() {
	for i := range x.s.open {
		if x.s.open[i] == x {
			x.s.open = append(x.s.open[:i], x.s.open[i+1:]...)
			return
		}
	}
}

func newRDS(t *testing.T, log *slog.Logger) (*route.RDS, *fakeSource, *stats.Store) {
	store, src := stats.NewStore(), &fakeSource{}
	d, err := event.NewDriver("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	main := event.New(event.Config{Index: -1, Name: "main_thread", Driver: d, Clock: clock.System(), Stats: store.Main()})
	return &route.RDS{Main: main, Store: store, Source: src, Log: log}, src, store
}

func TestRoutesAreSharedAndReleased(t *testing.T) {
	r, src, store := newRDS(t, nil)
	var gone []string
	r.Changed = func(name, _ string, rc *routev3.RouteConfiguration, _ []byte) {
		if rc == nil {
			gone = append(gone, name)
		}
	}
	ready := 0
	scope := store.Root().Scope("http.x")
	one, releaseOne, err := r.Get(&corev3.ConfigSource{}, "r", scope, func() { ready++ })
	if err != nil {
		t.Fatal(err)
	}
	two, releaseTwo, err := r.Get(&corev3.ConfigSource{}, "r", scope, nil)
	if err != nil || one != two || len(src.open) != 1 {
		t.Fatalf("%v; the same slot: %v; %d subscriptions", err, one == two, len(src.open))
	}
	if err := src.open[0].cb.OnUpdate(&sub.Update{Version: "1", Resources: []sub.Resource{{Name: "r", Body: &routev3.RouteConfiguration{Name: "r"}}}}); err != nil {
		t.Fatal(err)
	}
	if ready != 1 || one.Load() == nil {
		t.Errorf("ready %d times, routes %v", ready, one.Load())
	}
	releaseOne()
	releaseOne()
	if len(src.open) != 1 {
		t.Error("the other one is left, and the subscription is closed")
	}
	releaseTwo()
	if len(src.open) != 0 || len(gone) != 1 {
		t.Errorf("nobody is left: %d subscriptions, gone %q", len(src.open), gone)
	}
	if n := store.Released(); n != 2 {
		t.Errorf("%d groups of stats are released, want 2", n)
	}
}

func TestBadRoutesLeaveTheOld(t *testing.T) {
	var text strings.Builder
	r, src, store := newRDS(t, slog.New(slog.NewTextHandler(&text, nil)))
	slot, _, err := r.Get(&corev3.ConfigSource{}, "r", store.Root().Scope("http.x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	cb := src.open[0].cb
	if err := cb.OnUpdate(&sub.Update{Resources: []sub.Resource{{Name: "r", Body: &routev3.RouteConfiguration{Name: "r"}}}}); err != nil {
		t.Fatal(err)
	}
	old := slot.Load()
	twice := []*routev3.VirtualHost{{Name: "a", Domains: []string{"x"}}, {Name: "b", Domains: []string{"x"}}}
	for want, x := range map[string]sub.Resource{
		"name: Unexpected RDS configuration (expecting r): other": {Name: "other", Body: &routev3.RouteConfiguration{Name: "other"}},
		`resources["r"]: cannot be read`:                          {Name: "r", Err: errors.New("cannot be read")},
		"nobody knows which":                                      {Err: errors.New("nobody knows which")},
		"RDS resource r is no RouteConfiguration":                 {Name: "r", Body: &corev3.Node{}},
		`resources["r"].virtual_hosts[1].domains[0]: Only unique values for domains are permitted`: {Name: "r", Body: &routev3.RouteConfiguration{Name: "r", VirtualHosts: twice}},
	} {
		if err := cb.OnUpdate(&sub.Update{Resources: []sub.Resource{x}}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for name, u := range map[string]*sub.Update{"nothing": {}, "the same": {Resources: []sub.Resource{{Name: "r", Unchanged: true}}}} {
		if err := cb.OnUpdate(u); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if slot.Load() != old {
		t.Error("the old routes are gone")
	}
	if n := strings.Count(text.String(), "rds: route config 'r' rejected: "); n != 5 {
		t.Errorf("%d of 5 are logged:\n%s", n, text.String())
	}
}

// A first configuration that is bad does not hold the listener up: requests get 404.
func TestBadRoutesAreNotWaitedFor(t *testing.T) {
	r, src, store := newRDS(t, nil)
	ready := 0
	slot, release, err := r.Get(&corev3.ConfigSource{}, "r", store.Root().Scope("http.x"), func() { ready++ })
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := src.open[0].cb.OnUpdate(&sub.Update{Resources: []sub.Resource{{Name: "other"}}}); err == nil {
		t.Error("no error")
	}
	if ready != 1 || slot.Load() != nil {
		t.Errorf("ready %d times, routes %v", ready, slot.Load())
	}
}
