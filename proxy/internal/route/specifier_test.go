package route_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// bound compiles routes whose clusters have slots.
func bound(t *testing.T, yaml string) (*route.Table, error) {
	t.Helper()
	m := cluster.NewManager(&cluster.Deps{Store: stats.NewStore()})
	return compileWith(t, yaml, route.Deps{Slot: m.Slot, Exists: func(name string) bool { return name != "none" }, Format: &format.Options{}})
}

const (
	matcherPlugin = "extension: {name: mine, typed_config: {'@type': type.googleapis.com/envoy.extensions.router.cluster_specifiers.matcher.v3.MatcherClusterSpecifier, " +
		"cluster_matcher: {matcher_tree: {input: {name: i, typed_config: {'@type': type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput, header_name: x-t}}, " +
		"exact_match_map: {map: {a: {action: {name: x, typed_config: {'@type': type.googleapis.com/envoy.extensions.router.cluster_specifiers.matcher.v3.ClusterAction, cluster: ca}}}, " +
		"none: {action: {name: x, typed_config: {'@type': type.googleapis.com/envoy.extensions.router.cluster_specifiers.matcher.v3.ClusterAction, cluster: none}}}}}}}}}"
	strangePlugin = "extension: {name: strange, typed_config: {'@type': type.googleapis.com/google.protobuf.StringValue, value: x}}"
)

func TestClusterSpecifiers(t *testing.T) {
	byName := "{cluster_specifier_plugins: [{" + matcherPlugin + "}], virtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster_specifier_plugin: mine}}]}]}"
	for _, yaml := range []string{byName, routes("{match: {prefix: /}, route: {inline_cluster_specifier_plugin: {" + matcherPlugin + "}}}")} {
		x, err := bound(t, yaml)
		if err != nil {
			t.Fatal(err)
		}
		for value, want := range map[string]string{"a": "ca", "none": "none", "b": ""} {
			e := x.Match(&route.Request{Headers: headers("GET / a", "x-t: "+value)})
			if e == nil || e.Cluster() != want {
				t.Errorf("%s: %v", value, e)
			}
		}
	}
	for _, yaml := range []string{
		"{cluster_specifier_plugins: [{is_optional: true, " + strangePlugin + "}], virtual_hosts: [{name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster_specifier_plugin: strange}}]}]}",
		routes("{match: {prefix: /}, route: {inline_cluster_specifier_plugin: {is_optional: true, " + strangePlugin + "}}}"),
	} {
		x, err := bound(t, yaml)
		if err != nil {
			t.Fatal(err)
		}
		if e := x.Match(&route.Request{Headers: headers("GET / a")}); e != nil {
			t.Errorf("%s: there is a route", yaml)
		}
	}
	for _, bad := range []string{
		"{cluster_specifier_plugins: [{" + strangePlugin + "}]}", routes("{match: {prefix: /}, route: {inline_cluster_specifier_plugin: {" + strangePlugin + "}}}"),
		routes("{match: {prefix: /}, route: {cluster_specifier_plugin: mine}}"), routes("{match: {prefix: /}, route: {}}"),
		routes("{match: {prefix: /}, route: {inline_cluster_specifier_plugin: {extension: {name: mine, typed_config: " +
			"{'@type': type.googleapis.com/envoy.extensions.router.cluster_specifiers.matcher.v3.MatcherClusterSpecifier, cluster_matcher: {on_no_match: {action: {name: x, typed_config: " +
			"{'@type': type.googleapis.com/google.protobuf.StringValue}}}}}}}}}"),
	} {
		if _, err := bound(t, bad); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

// The hash policy may choose the cluster; the cookie that it makes is made once.
func TestWeightsByHash(t *testing.T) {
	x, err := bound(t, routes("{match: {prefix: /}, route: {hash_policy: [{header: {header_name: x-h}}, {cookie: {name: c, ttl: 1s}}], "+
		"weighted_clusters: {use_hash_policy: true, clusters: [{name: a, weight: 50}, {name: b, weight: 50}]}}}"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, h := range []string{"1", "2", "3", "4", "5", "6"} {
		// Without a connection the cookie does not apply.
		got[h] = x.Match(&route.Request{Headers: headers("GET / a", "x-h: "+h), Random: 7}).Cluster()
	}
	// Envoy 1.40 chooses these.
	if d := cmp.Diff(map[string]string{"1": "a", "2": "b", "3": "b", "4": "b", "5": "b", "6": "a"}, got); d != "" {
		t.Error(d)
	}
	for random, want := range map[uint64]string{7: "a", 57: "b"} {
		if c := x.Match(&route.Request{Headers: headers("GET / a"), Random: random}).Cluster(); c != want {
			t.Errorf("without a hash: %s, want %s", c, want)
		}
	}
	r := &route.Request{Headers: headers("GET / a"), Info: &stream.Info{Conn: &network.ConnInfo{}}, SetCookies: []string{"x"}}
	if x.Match(r); len(r.SetCookies) != 1 {
		t.Errorf("cookies %q", r.SetCookies)
	}
}

func TestWeightHeaderNumbers(t *testing.T) {
	x, err := bound(t, routes("{match: {prefix: /}, route: {weighted_clusters: {header_name: x-h, clusters: [{name: a, weight: 50}, {name: b, weight: 50}]}}}"))
	if err != nil {
		t.Fatal(err)
	}
	for v, want := range map[string]string{"1": "a", "149": "a", "150": "b", "018": "a", "18446744073709551615": "a", "18446744073709551616": "b", "99999999999999999999": "b", "-1": "b", "": "b"} {
		if c := x.Match(&route.Request{Headers: headers("GET / a", "x-h: "+v), Random: 60}).Cluster(); c != want {
			t.Errorf("%q: %s, want %s", v, c, want)
		}
	}
}

func TestVirtualClusters(t *testing.T) {
	store := stats.NewStore()
	x, err := compileWith(t, "{virtual_hosts: [{name: v, domains: ['*'], virtual_clusters: [{name: one, headers: [{name: ':path', string_match: {prefix: /1}}]}, "+
		"{name: two, headers: [{name: ':method', string_match: {exact: POST}}, {name: x-a}]}], routes: [{match: {prefix: /p}, stat_prefix: sp, route: {cluster: up}}, "+
		"{match: {prefix: /d}, stat_prefix: dp, direct_response: {status: 200}}, {match: {prefix: /}, route: {cluster: up}}]}]}",
		route.Deps{Slot: func(string) *cluster.Slot { return nil }, Format: &format.Options{}, Scope: store.Root()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line  string
		lines []string
		want  string
	}{{"GET /1 a", nil, "one"}, {"POST / a", []string{"x-a: 1"}, "two"}, {"POST / a", nil, ""}, {"GET / a", []string{"x-a: 1"}, ""}} {
		h := headers(c.line, c.lines...)
		if v := x.Match(&route.Request{Headers: h}).VirtualCluster(h); v == nil || v.Name != c.want {
			t.Errorf("%s %q: %v, want %s", c.line, c.lines, v, c.want)
		}
	}
	for path, want := range map[string]bool{"/p": true, "/d": false, "/": false} {
		if e := x.Match(&route.Request{Headers: headers("GET " + path + " a")}); (e.RouteCounters != nil) != want {
			t.Errorf("%s: counters of the route: %v", path, e.RouteCounters)
		}
	}
	x.Release()
	x.Release()
	if n := store.Released(); n != 4 { // one, two, other, sp
		t.Errorf("%d groups of stats are released, want 4", n)
	}
	plain := table(t, routes(answer("a", "prefix: /"))).Match(&route.Request{Headers: headers("GET / a")})
	if plain.HasCounters() || plain.VirtualCluster(headers("GET / a")) != nil {
		t.Error("a plain route counts somewhere")
	}
	if _, err := compile(t, "{virtual_hosts: [{name: v, domains: ['*'], virtual_clusters: [{name: one}]}]}"); err == nil {
		t.Error("a virtual cluster without headers is accepted")
	}
	// What a refused configuration has registered is given up.
	before := store.Released()
	if _, err := compileWith(t, "{virtual_hosts: [{name: v, domains: ['*'], virtual_clusters: [{name: one, headers: [{name: a}]}], routes: [{match: {}, route: {cluster: up}}]}]}",
		route.Deps{Slot: func(string) *cluster.Slot { return nil }, Format: &format.Options{}, Scope: store.Root()}); err == nil || store.Released() != before+2 {
		t.Errorf("%v, %d groups of stats are released, want 2", err, store.Released()-before)
	}
}
