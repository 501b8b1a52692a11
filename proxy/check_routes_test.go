package proxy_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy"
)

// routesAmiss has a mistake in each part of a route, and on each level above it.
const routesAmiss = `
static_resources:
  clusters: [{name: c}]
  listeners:
  - name: l
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: x
          http_filters:
          - {name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
          route_config:
            request_headers_to_remove: [":path"]
            virtual_hosts:
            - name: v
              domains: ["*"]
              retry_policy: {retry_on: 5xx, retry_back_off: {base_interval: 2s, max_interval: 1s}}
              response_headers_to_add: [{header: {key: a, value: "%BOGUS%"}}]
              typed_per_filter_config: {bogus: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
              virtual_clusters: [{name: x}, {name: z, headers: [{name: a, string_match: {safe_regex: {regex: "("}}}]}]
              routes:
              - {match: {prefix: /}, route: {cluster: c}}
              - {match: {prefix: /}, route: {cluster: c}}
              - match:
                  safe_regex: {regex: "("}
                  headers: [{name: a, present_match: true}, {name: b, string_match: {safe_regex: {regex: "["}}}]
                  query_parameters: [{name: a, string_match: {safe_regex: {regex: "["}}}]
                request_headers_to_add: [{header: {key: host, value: x}}, {header: {key: b, value: "%BOGUS%"}}]
                route:
                  weighted_clusters: {clusters: [{name: c}, {name: nope, weight: 1}]}
                  regex_rewrite: {pattern: {regex: "("}, substitution: x}
                  host_rewrite_path_regex: {pattern: {regex: "("}, substitution: x}
                  hash_policy: [{header: {header_name: a, regex_rewrite: {pattern: {regex: "("}, substitution: x}}}]
                  retry_policy: {retry_on: 5xx, retriable_headers: [{name: a, string_match: {safe_regex: {regex: "["}}}], retry_host_predicate: [{name: a, typed_config: {"@type": type.googleapis.com/google.protobuf.Struct}}]}
                  request_mirror_policies: [{cluster: c}, {cluster: nope}, {cluster: a, cluster_header: b}]
                  upgrade_configs: [{upgrade_type: websocket}, {upgrade_type: WebSocket}]
                  internal_redirect_policy: {response_headers_to_copy: [":path"]}
              - match: {prefix: /}
                direct_response: {status: 200, body: {filename: /proc/nowhere}, body_format: {text_format: "%BOGUS%"}}
`

func TestCheckTellsAllOfARoute(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(path, []byte(routesAmiss), 0o600); err != nil {
		t.Fatal(err)
	}
	const rc = "static_resources.listeners[0].filter_chains[0].filters[0].typed_config.route_config."
	var got []string
	for _, p := range proxy.Check(path, proxy.LoadOptions{}).Problems {
		if p.Line == 0 {
			t.Errorf("no place in %s", p.Error())
		}
		got = append(got, strings.TrimPrefix(p.Path, rc))
	}
	slices.Sort(got)
	const vh, r2 = "virtual_hosts[0].", "virtual_hosts[0].routes[2]."
	want := []string{
		"request_headers_to_remove[0]",
		vh + "response_headers_to_add[0].header.value",
		vh + "retry_policy.retry_back_off.max_interval",
		vh + `typed_per_filter_config["bogus"]`,
		vh + "virtual_clusters[0]",
		vh + "virtual_clusters[1].headers[0].string_match",
		r2 + "match.safe_regex.regex",
		r2 + "match.headers[1].string_match",
		r2 + "match.query_parameters[0].string_match",
		r2 + "request_headers_to_add[0].header.key",
		r2 + "request_headers_to_add[1].header.value",
		r2 + "route.weighted_clusters.clusters[0].weight",
		r2 + "route.weighted_clusters.clusters[1].name",
		r2 + "route.regex_rewrite.pattern.regex",
		r2 + "route.host_rewrite_path_regex.pattern.regex",
		r2 + "route.hash_policy[0].header.regex_rewrite.pattern.regex",
		r2 + "route.retry_policy.retriable_headers[0].string_match",
		r2 + "route.retry_policy.retry_host_predicate[0]",
		r2 + "route.request_mirror_policies[1].cluster",
		r2 + "route.request_mirror_policies[2]",
		r2 + "route.upgrade_configs[1]",
		r2 + "route.internal_redirect_policy.response_headers_to_copy[0]",
		vh + "routes[3].direct_response.body",
		vh + "routes[3].direct_response.body_format.text_format",
	}
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A cluster that is not there is most often one whose name was misspelt, be that one right or wrong itself.
func TestCheckSuggestsClusters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "envoy.yaml")
	text := `{static_resources: {clusters: [{name: service1-envoy}, {name: service2-envoy, lb_policy: MAGLEV, maglev_lb_config: {table_size: 4}}], listeners: [{name: l,
address: {socket_address: {address: 127.0.0.1, port_value: 0}}, filter_chains: [{filters: [{name: hcm, typed_config: {
"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: x,
http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}],
route_config: {virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {path: /1}, route: {cluster: service1-envy}},
{match: {path: /2}, route: {cluster: service2envoy}}, {match: {path: /3}, route: {cluster: bogus}}]}]}}}]}]}]}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range proxy.Check(path, proxy.LoadOptions{}).Problems {
		if name, ok := strings.CutPrefix(p.Msg, "route: unknown cluster "); ok {
			got[name] = p.Suggestion
		}
	}
	if d := cmp.Diff(map[string]string{"'service1-envy'": "service1-envoy", "'service2envoy'": "service2-envoy", "'bogus'": ""}, got); d != "" {
		t.Error(d)
	}
}
