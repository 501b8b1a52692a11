package route_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// TestRest checks which routes a stream lets go of when its answer has begun: those of which nothing is left to be done.
func TestRest(t *testing.T) {
	first := func(action, more string) *route.Entry {
		x, err := compile(t, fmt.Sprintf("virtual_hosts: [{name: v, domains: ['*'], %s routes: [{match: {prefix: /}, %s}]}]", more, action))
		if err != nil {
			t.Fatal(err)
		}
		return x.Match(&route.Request{Headers: headers("GET / h")})
	}
	shared := first("route: {cluster: c}", "").Rest()
	for name, x := range map[string]struct {
		route, more string
		keeps       bool
	}{
		"plain":              {route: "route: {cluster: c, timeout: 3s}"},
		"headers, retries":   {route: "route: {cluster: c, retry_policy: {retry_on: 5xx}}, response_headers_to_add: [{header: {key: a, value: b}}]"},
		"high priority":      {route: "route: {cluster: c, priority: HIGH}", keeps: true},
		"metadata":           {route: "route: {cluster: c}, metadata: {filter_metadata: {a: {b: c}}}", keeps: true},
		"the host's":         {route: "route: {cluster: c}", more: "metadata: {filter_metadata: {a: {b: c}}},", keeps: true},
		"time for the flush": {route: "route: {cluster: c, flush_timeout: 3s}", keeps: true},
		"weights":            {route: "route: {weighted_clusters: {clusters: [{name: c, weight: 1}]}}", keeps: true},
	} {
		e := first(x.route, x.more)
		switch rest := e.Rest(); {
		case x.keeps && rest != e:
			t.Errorf("%s: the route is let go of", name)
		case !x.keeps && (rest == e || rest != shared):
			t.Errorf("%s: the route is kept", name)
		}
	}
}

// TestNamesStay checks that the virtual hosts of a new table have the names of the old one in its memory: long streams of each hold them.
func TestNamesStay(t *testing.T) {
	old := rebuild(t, manyRoutes(3, -1), nil, route.Deps{})
	rc := manyRoutes(3, -1)
	rc.RequestHeadersToRemove = []string{"x"} // all are compiled anew
	rc.VirtualHosts[2].Name = "another"
	x := rebuild(t, rc, old, route.Deps{})
	for i, want := range []bool{true, true, false} {
		h := fmt.Sprint("h", i)
		a, b := old.Host(h).Name, x.Host(h).Name
		if b != rc.VirtualHosts[i].Name {
			t.Errorf("%s is of %q", h, b)
		}
		if same := unsafe.StringData(a) == unsafe.StringData(b); same != want {
			t.Errorf("%s: its name is in the old one's memory: %v", h, same)
		}
	}
}
