package route_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// domainOf is the i-th of many domains, and a host of it.
func domainOf(i int) (domain, host string) {
	switch i % 10 {
	case 7, 8:
		d := fmt.Sprintf("svc%d.ns%d.cluster.test", i, i%17)
		return "*." + d, "a." + d
	case 9:
		d := fmt.Sprintf("edge%d.", i)
		return d + "*", d + "example"
	}
	d := fmt.Sprintf("host%d.example.test", i)
	return d, d
}

// routeOf is the i-th of many routes, and a path that it takes.
func routeOf(i int) (match, path string) {
	switch i % 10 {
	case 0, 1, 2:
		p := fmt.Sprintf("/api/v1/things/%03d", i)
		return "path: " + p, p
	case 3:
		p := fmt.Sprintf("/sep/%03d", i)
		return "path_separated_prefix: " + p, p + "/x"
	case 4:
		return fmt.Sprintf("safe_regex: {regex: '/re/%03d/[a-z]+'}", i), fmt.Sprintf("/re/%03d/abc", i)
	case 5:
		return uriTemplate + fmt.Sprintf("/tmpl/%03d/{id}/*'}}", i), fmt.Sprintf("/tmpl/%03d/7/x", i)
	case 6:
		return fmt.Sprintf("prefix: /fold/%03d/, case_sensitive: false", i), fmt.Sprintf("/Fold/%03d/x", i)
	}
	p := fmt.Sprintf("/p/%03d/%s", i, strings.Repeat("deep/", i%5))
	return "prefix: " + p, p + "x?q=1"
}

// crowd is a table of domains with routes each. Those with conditions do not end the lists of an index.
func crowd(t testing.TB, domains, perDomain int) *route.Table {
	t.Helper()
	var list []string
	for i := range perDomain {
		m, _ := routeOf(i)
		if i%3 == 0 {
			m += ", headers: [{name: x-none, present_match: false}]"
		}
		list = append(list, answer(fmt.Sprintf("r%d", i), m))
	}
	var rc routev3.RouteConfiguration
	if _, err := config.Parse("r.yaml", []byte(routes(list...)), &rc, config.Options{SkipValidation: true}); err != nil {
		t.Fatal(err)
	}
	same := rc.VirtualHosts[0].Routes
	rc.VirtualHosts = nil
	for i := range domains {
		d, _ := domainOf(i)
		rc.VirtualHosts = append(rc.VirtualHosts, &routev3.VirtualHost{Name: fmt.Sprint("v", i), Domains: []string{d}, Routes: same})
	}
	x, err := route.Compile(&rc, route.Deps{Slot: func(string) *cluster.Slot { return nil }, Format: &format.Options{}})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// However many domains and routes there are, few routes are tried.
func TestLookupTriesFewRoutes(t *testing.T) {
	const domains, perDomain = 50, 100
	x := crowd(t, domains, perDomain)
	for i := range domains {
		_, host := domainOf(i)
		for k := range perDomain {
			_, path := routeOf(k)
			if got := chosen(x, headers("GET "+path+" "+host)); got != fmt.Sprintf("r%d", k) {
				t.Fatalf("%s%s: %q, want r%d", host, path, got, k)
			}
			p, _, _ := strings.Cut(path, "?")
			if n := route.Tried(x, host, p); n != 1 {
				t.Errorf("%s%s: %d routes may be tried", host, path, n)
			}
		}
	}
}

// A thousand domains with a hundred routes each cost about what one costs: the rest is 5% of what the cheapest request costs in all,
// which is 9 µs. The best of many rounds is taken of both, so that a busy machine does not matter.
func TestLookupCost(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a large table")
	}
	one, many := crowd(t, 1, 1), crowd(t, 1000, 100)
	_, onlyHost := domainOf(0)
	_, onlyPath := routeOf(0)
	_, host := domainOf(778)
	_, path := routeOf(78)
	small, large := &route.Request{Headers: headers("GET " + onlyPath + " " + onlyHost)}, &route.Request{Headers: headers("GET " + path + " " + host)}
	const per = 1000
	best := func(x *route.Table, r *route.Request) time.Duration {
		start := time.Now()
		for range per {
			if x.Match(r) == nil {
				t.Fatal("not found")
			}
		}
		return time.Since(start)
	}
	a, b := time.Hour, time.Hour
	for range 50 {
		a, b = min(a, best(one, small)), min(b, best(many, large))
	}
	t.Logf("one: %v, many: %v", a/per, b/per)
	limit := 450 * time.Nanosecond
	if slow {
		limit *= 20
	}
	if extra := (b - a) / per; extra > limit {
		t.Errorf("%v more than with one route (%v), want at most %v", extra, a/per, limit)
	}
}

func BenchmarkLookup(b *testing.B) {
	for _, c := range []struct{ domains, routes int }{{1, 1}, {1, 100}, {1000, 10}, {1000, 100}} {
		b.Run(fmt.Sprintf("%dx%d", c.domains, c.routes), func(b *testing.B) {
			x := crowd(b, c.domains, c.routes)
			_, host := domainOf(c.domains - 1)
			_, path := routeOf(c.routes - 1)
			r := &route.Request{Headers: headers("GET " + path + " " + host)}
			b.ReportAllocs()
			for b.Loop() {
				if x.Match(r) == nil {
					b.Fatal("not found")
				}
			}
		})
	}
}
