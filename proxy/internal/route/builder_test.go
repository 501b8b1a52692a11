package route_test

import (
	"fmt"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// manyRoutes is a configuration of n virtual hosts of one route each, of which number changed answers otherwise.
func manyRoutes(n, changed int) *routev3.RouteConfiguration {
	rc := &routev3.RouteConfiguration{Name: "r"}
	for i := range n {
		code := uint32(200)
		if i == changed {
			code = 201
		}
		rc.VirtualHosts = append(rc.VirtualHosts, &routev3.VirtualHost{Name: fmt.Sprint("v", i), Domains: []string{fmt.Sprint("h", i), fmt.Sprintf("*.h%d", i),
			fmt.Sprintf("h%d.*", i)}, Routes: []*routev3.Route{{
			Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
			Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: code}}}}})
	}
	rc.VirtualHosts = append(rc.VirtualHosts, &routev3.VirtualHost{Name: "rest", Domains: []string{"*"}})
	return rc
}

func rebuild(t testing.TB, rc *routev3.RouteConfiguration, old *route.Table, d route.Deps) *route.Table {
	t.Helper()
	b, err := route.NewBuilder(rc, d, old)
	for more := err == nil; more; {
		more, err = b.Step()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Table()
}

func TestUnchangedVirtualHostsAreTakenOver(t *testing.T) {
	const n = 50
	first := rebuild(t, manyRoutes(n, -1), nil, route.Deps{})
	hosts := func(i int) []string {
		return []string{fmt.Sprint("h", i), fmt.Sprintf("a.h%d", i), fmt.Sprintf("h%d.a", i)}
	}
	same := func(a, b *route.Table) (n int) {
		for i := range 50 {
			for _, h := range hosts(i) {
				if a.Host(h) != nil && a.Host(h) == b.Host(h) {
					n++
				}
			}
		}
		return n
	}
	otherwise := func(f func(rc *routev3.RouteConfiguration)) *routev3.RouteConfiguration {
		rc := manyRoutes(n, -1)
		f(rc)
		return rc
	}
	for name, x := range map[string]struct {
		rc   *routev3.RouteConfiguration
		deps route.Deps
		same int
	}{
		"nothing":  {rc: manyRoutes(n, -1), same: 3 * n},
		"one":      {rc: manyRoutes(n, 7), same: 3 * (n - 1)},
		"a header": {rc: otherwise(func(rc *routev3.RouteConfiguration) { rc.RequestHeadersToRemove = []string{"x"} })},
		"another order": {rc: otherwise(func(rc *routev3.RouteConfiguration) {
			rc.VirtualHosts[0], rc.VirtualHosts[9] = rc.VirtualHosts[9], rc.VirtualHosts[0]
		}), same: 3 * n},
		"checks": {rc: otherwise(func(rc *routev3.RouteConfiguration) { rc.ValidateClusters = wrapperspb.Bool(true) }),
			deps: route.Deps{Exists: func(string) bool { return true }}},
	} {
		next := rebuild(t, x.rc, first, x.deps)
		if got := same(first, next); got != x.same {
			t.Errorf("%s: %d of %d are the same, want %d", name, got, 3*n, x.same)
		}
		if next.Host("zzz") == nil {
			t.Errorf("%s: the rest is not there", name)
		}
	}
	if changed := rebuild(t, manyRoutes(n, 7), first, route.Deps{}); changed.Host("h7") == first.Host("h7") || changed.Host("h7") == nil {
		t.Error("the one that changed is the old one")
	}
}

// TestClustersAreLookedForAgain: with validate_clusters a virtual host that is the same may be bad now.
func TestClustersAreLookedForAgain(t *testing.T) {
	rc := &routev3.RouteConfiguration{Name: "r", ValidateClusters: wrapperspb.Bool(true), VirtualHosts: []*routev3.VirtualHost{{
		Name: "v", Domains: []string{"*"}, Routes: []*routev3.Route{{
			Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: "c"}}}}}}}}
	exists := true
	d := route.Deps{Exists: func(string) bool { return exists }, Slot: func(string) *cluster.Slot { return &cluster.Slot{} }}
	old := rebuild(t, rc, nil, d)
	exists = false
	b, err := route.NewBuilder(rc, d, old)
	for more := err == nil; more; {
		more, err = b.Step()
	}
	if err == nil {
		t.Error("a cluster is gone, and the routes are taken")
	}
}

// BenchmarkRebuild changes one of 4,521 virtual hosts.
func BenchmarkRebuild(b *testing.B) {
	t := rebuild(b, manyRoutes(4521, -1), nil, route.Deps{})
	rcs := []*routev3.RouteConfiguration{manyRoutes(4521, 1), manyRoutes(4521, 2)}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		t = rebuild(b, rcs[i%2], t, route.Deps{})
		i++
	}
}
