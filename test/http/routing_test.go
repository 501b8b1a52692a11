package http_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// tellCluster is a response header with the cluster that a request went to.
const tellCluster = "response_headers_to_add: [{header: {key: x-c, value: \"%UPSTREAM_CLUSTER%\"}}]"

// second is a cluster beside "up", of the second upstream.
const second = "{name: two, load_assignment: {cluster_name: two, endpoints: [{lb_endpoints: [{endpoint: {address: UPSTREAM_1}}]}]}}"

// ask is a request and what is to come of it: the status, and if there is more, the body, or the cluster after a plus sign.
type ask struct {
	path string
	send []string
	want string
}

func (a ask) check(t *testing.T, p *scripttest.Proxy) {
	t.Helper()
	r := p.Ask(scripttest.Request(a.path, a.send...))
	got := strconv.Itoa(r.Status)
	switch {
	case strings.Contains(a.want, "+"):
		got += "+" + r.Get("x-c")
	case strings.Contains(a.want, " "):
		got += " " + r.Body
	}
	if got != a.want {
		t.Errorf("%s %q: %s, want %s", a.path, a.send, got, a.want)
	}
}

func inTree(yaml string) string {
	return strings.NewReplacer(
		"HEADER(", "input: {name: i, typed_config: {'@type': type.googleapis.com/envoy.type.matcher.v3.HttpRequestHeaderMatchInput, header_name: ", ")IN", "}}",
		"ROUTE(", "{action: {name: route, typed_config: {'@type': type.googleapis.com/envoy.config.route.v3.Route, match: {prefix: /}, direct_response: {status: 200, body: {inline_string: ",
		")TO", "}}}}}",
		"LIST(", "{action: {name: route, typed_config: {'@type': type.googleapis.com/envoy.config.route.v3.RouteList, routes: [", ")OF", "]}}}",
		"CLUSTER(", "{action: {name: c, typed_config: {'@type': type.googleapis.com/envoy.extensions.router.cluster_specifiers.matcher.v3.ClusterAction, cluster: ", ")OUT", "}}}",
		"'", `"`).Replace(yaml)
}

// What each request gets was compared with Envoy 1.40.
func TestVirtualHostMatcher(t *testing.T) {
	tree := inTree("matcher: {matcher_tree: {HEADER(':path')IN, prefix_match_map: {map: {/a: ROUTE(a)TO, /a/b: {matcher: {matcher_tree: {HEADER(x-t)IN, exact_match_map: {map: {gold: " +
		"LIST({match: {prefix: /a/b/c}, direct_response: {status: 200, body: {inline_string: abc}}}, {match: {path: /a/b/d}, route: {cluster: up}})OF}}}}}}}}, on_no_match: " +
		"{matcher: {matcher_list: {matchers: [{predicate: {and_matcher: {predicate: [{single_predicate: {HEADER(':method')IN, value_match: {exact: GET}}}, " +
		"{not_matcher: {single_predicate: {HEADER(x-t)IN, value_match: {prefix: 's'}}}}]}}, on_match: ROUTE(get)TO}]}}}}")
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{Routes: []string{}, VirtualHost: []string{tree}}, echo)
		for _, a := range []ask{
			{"/a", nil, "200 a"}, {"/a/b", nil, "200 a"}, {"/a/b/c", []string{"x-t: gold"}, "200 abc"}, {"/a/b/e", []string{"x-t: gold"}, "404"},
			{"/a/b/c", []string{"x-t: gold", "x-t: b"}, "200 a"}, {"/z", nil, "200 get"}, {"/z", []string{"x-t: silver"}, "404"}, {"/a/b/d", []string{"x-t: gold"}, "200"},
		} {
			a.check(t, p)
		}
		p.Stats(map[string]uint64{"http.s.no_route": 2, "cluster.up.upstream_rq_200": 1})
	})
}

func TestClustersByMatcher(t *testing.T) {
	plugin := inTree("extension: {name: mine, typed_config: {'@type': type.googleapis.com/envoy.extensions.router.cluster_specifiers.matcher.v3.MatcherClusterSpecifier, " +
		"cluster_matcher: {matcher_tree: {HEADER(x-t)IN, exact_match_map: {map: {a: CLUSTER(up)OUT, b: CLUSTER(two)OUT, c: CLUSTER(none)OUT}}}}}}")
	for name, c := range map[string]scripttest.Config{
		"by name": {RouteConfig: []string{"cluster_specifier_plugins: [{" + plugin + "}]"}, Routes: []string{"{match: {prefix: /}, " + tellCluster + ", route: {cluster_specifier_plugin: mine}}"}},
		"inline":  {Routes: []string{"{match: {prefix: /}, " + tellCluster + ", route: {inline_cluster_specifier_plugin: {" + plugin + "}}}"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.Clusters = []string{second}
			p := scripttest.Start(t, c.YAML(), echo, echo)
			for _, a := range []ask{{"/", []string{"x-t: a"}, "200+up"}, {"/", []string{"x-t: b"}, "200+two"}, {"/", []string{"x-t: c"}, "503"}, {"/", []string{"x-t: d"}, "503"}} {
				a.check(t, p)
			}
			p.Stats(map[string]uint64{"http.s.no_cluster": 2})
		})
	}
}

func TestWeightedClusters(t *testing.T) {
	for name, c := range map[string]struct {
		weights string
		asks    []ask
	}{
		"by header": {"header_name: x-n, clusters: [{name: up, weight: 50}, {name: two, weight: 50}]", []ask{
			{"/", []string{"x-n: 1"}, "200+up"}, {"/", []string{"x-n: 149"}, "200+up"}, {"/", []string{"x-n: 150"}, "200+two"}, {"/", []string{"x-n: 18446744073709551615"}, "200+up"}}},
		"by hash": {"use_hash_policy: true, clusters: [{name: up, weight: 50}, {name: two, weight: 50}]", []ask{
			{"/", []string{"x-h: 1"}, "200+up"}, {"/", []string{"x-h: 2"}, "200+two"}, {"/", []string{"x-h: 3"}, "200+two"}, {"/", []string{"x-h: 6"}, "200+up"}}},
		"another header": {"clusters: [{cluster_header: x-to, weight: 1}]", []ask{{"/", []string{"x-to: two"}, "200+two"}, {"/", []string{"x-to: up"}, "200+up"}, {"/", nil, "503"}}},
		"none of one":    {"clusters: [{name: up, weight: 0}, {name: two, weight: 3}]", []ask{{"/", nil, "200+two"}, {"/", nil, "200+two"}}},
	} {
		t.Run(name, func(t *testing.T) {
			route := "{match: {prefix: /}, " + tellCluster + ", route: {hash_policy: [{header: {header_name: x-h}}], weighted_clusters: {" + c.weights + "}}}"
			p := scripttest.Start(t, scripttest.Config{Routes: []string{route}, Clusters: []string{second}}.YAML(), echo, echo)
			for _, a := range c.asks {
				a.check(t, p)
			}
		})
	}
}

// Scopes choose the whole route configuration, and its internal-only headers too.
func TestScopedRoutes(t *testing.T) {
	scope := func(name, key, rc string) string {
		return "{name: " + name + ", key: {fragments: [{string_key: " + key + "}]}, route_configuration: {name: rc-" + name + ", " + rc + "}}"
	}
	answer := func(text string) string {
		return "virtual_hosts: [{name: v, domains: [\"*\"], routes: [{match: {prefix: /, headers: [{name: x-secret}]}, direct_response: {status: 200, body: {inline_string: secret}}}, " +
			"{match: {prefix: /}, direct_response: {status: 200, body: {inline_string: " + text + "}}}]}]"
	}
	scoped := "scoped_routes: {name: sc, scope_key_builder: {fragments: [{header_value_extractor: {name: x-a, element_separator: \";\", element: {key: t, separator: \"=\"}}}]}, " +
		"scoped_route_configurations_list: {scoped_route_configurations: [" + scope("a", "one", answer("a")) + ", " + scope("b", "two", "internal_only_headers: [x-secret], "+answer("b")) + "]}}"
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{RouteSpecifier: scoped}, echo)
		for _, a := range []ask{{"/", []string{"x-a: t=one"}, "200 a"}, {"/", []string{"x-a: z=1;t=two"}, "200 b"}, {"/", []string{"x-a: t=three"}, "404"}, {"/", nil, "404"},
			{"/", []string{"x-a: t=one", "x-secret: 1"}, "200 secret"}, {"/", []string{"x-a: t=two", "x-secret: 1"}, "200 b"}} {
			a.check(t, p)
		}
	})
}

// Requests count in their virtual cluster and under their route's stat_prefix: each attempt in the total, the answer once.
func TestVirtualClusters(t *testing.T) {
	scripttest.Each(t, func(t *testing.T, m scripttest.Mode) {
		p := m.Start(t, scripttest.Config{
			VirtualHost: []string{"virtual_clusters: [{name: one, headers: [{name: \":path\", string_match: {prefix: /one}}]}]"},
			Routes: []string{"{match: {prefix: /one}, stat_prefix: sp, route: {cluster: up, prefix_rewrite: /, retry_policy: {retry_on: 5xx, num_retries: 1}}}",
				"{match: {prefix: /d}, direct_response: {status: 204}}", "{match: {prefix: /}, route: {cluster: up}}"},
		}, scripttest.Upstream{Serve: func(r *scripttest.Call) {
			if strings.Contains(r.Head, "x-fail:") {
				r.Reply("500 Internal Server Error", "")
				return
			}
			r.Reply("200 OK", "")
		}})
		for _, a := range []ask{{"/one", nil, "200"}, {"/other", nil, "200"}, {"/d", nil, "204"}} {
			a.check(t, p)
		}
		c := p.Dial().Send(scripttest.Request("/one", "x-fail: 1"))
		p.Pass(200 * time.Millisecond) // the back-off
		if r := c.Response(); r.Status != 500 {
			t.Errorf("the second attempt: %d", r.Status)
		}
		want := map[string]uint64{}
		for name, n := range map[string]uint64{"upstream_rq_total": 3, "upstream_rq_completed": 2, "upstream_rq_200": 1, "upstream_rq_5xx": 1, "upstream_rq_retry": 1,
			"upstream_rq_retry_limit_exceeded": 1} {
			want["vhost.v.vcluster.one."+name], want["vhost.v.route.sp."+name] = n, n
		}
		want["vhost.v.vcluster.other.upstream_rq_total"], want["vhost.v.vcluster.other.upstream_rq_completed"] = 1, 1
		p.Stats(want)
	})
}

// All levels of header changes apply, in the order that the configuration asks for.
func TestHeaderLevels(t *testing.T) {
	add := func(key, value string) string {
		return "request_headers_to_add: [{header: {key: x-l, value: " + value + "}}, {header: {key: x-" + key + ", value: \"%REQ(x-in)%\"}, append_action: OVERWRITE_IF_EXISTS_OR_ADD}], " +
			"response_headers_to_add: [{header: {key: x-r, value: " + value + "}, append_action: ADD_IF_ABSENT}], request_headers_to_remove: [x-rm-" + key + "]"
	}
	for specific, want := range map[bool][2]string{false: {"cluster route host config", "cluster"}, true: {"cluster config host route", "cluster"}} {
		t.Run(fmt.Sprintf("most specific wins: %v", specific), func(t *testing.T) {
			p := scripttest.Start(t, scripttest.Config{
				RouteConfig: []string{fmt.Sprintf("most_specific_header_mutations_wins: %v", specific), add("c", "config")}, VirtualHost: []string{add("v", "host")},
				Routes: []string{"{match: {prefix: /}, " + add("r", "route") + ", route: {weighted_clusters: {clusters: [{name: up, weight: 1, " + add("w", "cluster") + "}]}}}"},
			}.YAML(), echo)
			r := p.Ask(scripttest.Request("/", "x-in: in", "x-rm-c: 1", "x-rm-v: 1", "x-rm-r: 1", "x-rm-w: 1"))
			var levels []string
			for _, l := range headOf(r.Body) {
				if k, v, _ := strings.Cut(l, ": "); k == "x-l" {
					levels = append(levels, v)
				} else if strings.HasPrefix(k, "x-rm-") {
					t.Errorf("%s is there", k)
				}
			}
			if d := cmp.Diff(want[0], strings.Join(levels, " ")); d != "" {
				t.Error(d)
			}
			for _, k := range []string{"x-c: in", "x-v: in", "x-r: in", "x-w: in"} {
				if !strings.Contains(r.Body, k) {
					t.Errorf("%s is missing: %s", k, r.Body)
				}
			}
			if r.Get("x-r") != want[1] {
				t.Errorf("response: %s, want %s", r.Get("x-r"), want[1])
			}
		})
	}
}

// A formatted path keeps the query; that of a redirect may bring its own. Envoy 1.40 does the same.
func TestFormattedPaths(t *testing.T) {
	p := scripttest.Start(t, scripttest.Config{Routes: []string{
		"{match: {prefix: /r}, redirect: {path_rewrite: \"/n%REQ(x-h)%\"}}", "{match: {prefix: /q}, redirect: {path_rewrite: \"/n?k=%REQ(x-h)%\"}}",
		"{match: {prefix: /}, route: {cluster: up, path_rewrite: \"/pre%REQ(x-h)%\"}}",
	}}.YAML(), echo)
	for path, want := range map[string]string{"/r?a": "http://h.test/nh?a", "/q?a": "http://h.test/n?k=h"} {
		if r := p.Ask(scripttest.Request(path, "x-h: h")); r.Get("location") != want {
			t.Errorf("%s: to %s, want %s", path, r.Get("location"), want)
		}
	}
	if r := p.Ask(scripttest.Request("/a?b", "x-h: h")); headOf(r.Body)[0] != "GET /preh?b HTTP/1.1" {
		t.Errorf("the upstream got %s", headOf(r.Body)[0])
	}
}
