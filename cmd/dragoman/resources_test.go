package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy"
)

// TestCheckResources: check judges the files of resources that a bootstrap names, and those that these name, with their own places.
func TestCheckResources(t *testing.T) {
	const (
		boot = `node: {id: a, cluster: b}
dynamic_resources:
  lds_config: {resource_api_version: V3, path_config_source: {path: DIR/lds.yaml}}
  cds_config: {resource_api_version: V3, path_config_source: {path: DIR/cds.json}}
`
		listener = `version_info: "1"
resources:
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: l
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  filter_chains:
  - filters:
    - name: envoy.filters.network.http_connection_manager
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
        stat_prefix: p
        http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
        ROUTES
`
		inline = `route_config: {name: r, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {weighted_clusters: {clusters: [{name: c, weight: 1}]}}}]}]}`
		rds    = `rds: {route_config_name: r, config_source: {resource_api_version: V3, path_config_source: {path: DIR/rds.yaml}}}`
		routes = `resources:
- "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
  name: r
  virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: elsewhere}}]}]
`
		clusters = `{"resources": [{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster", "name": "c", "type": "EDS",
  "eds_cluster_config": {"eds_config": {"resource_api_version": "V3", "path_config_source": {"path": "DIR/eds.yaml"}}}}]}`
		endpoints = `resources:
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: c
  endpoints: [{load_balancing_weight: 1, lb_endpoints: []}]
`
	)
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	swap := strings.NewReplacer
	for _, c := range []struct{ name, lds, rds, cds, eds, want string }{
		{name: "all right"},
		{name: "a sum of weights", lds: swap("weight: 1", "weight: 0").Replace(strings.Replace(listener, "ROUTES", inline, 1)),
			want: "lds.yaml:13:"},
		{name: "an unknown field's value", lds: strings.Replace(strings.Replace(listener, "ROUTES", inline, 1), "port_value: 0", "port_value: 70000", 1), want: "lds.yaml:5:"},
		{name: "an unknown cluster", lds: strings.Replace(strings.Replace(listener, "ROUTES", inline, 1), "name: c,", "name: nope,", 1), want: "unknown cluster 'nope'"},
		{name: "nested routes", lds: strings.Replace(listener, "ROUTES", rds, 1), rds: strings.Replace(routes, `"*"`, `"*", "*"`, 1), want: "rds.yaml:4:"},
		{name: "a cluster", cds: strings.Replace(clusters, `"EDS"`, `"EDS", "connect_timeout": "x"`, 1), want: "cds.json:1:"},
		{name: "endpoints", eds: strings.Replace(endpoints, "load_balancing_weight: 1", "load_balancing_weight: 0", 1), want: "eds.yaml:4:"},
		{name: "no YAML", eds: "a: [", want: "eds.yaml:2:1: invalid YAML"},
	} {
		or := func(text, otherwise string) string {
			if text == "" {
				return otherwise
			}
			return text
		}
		path := write("boot.yaml", boot)
		write("lds.yaml", or(c.lds, strings.Replace(listener, "ROUTES", rds, 1)))
		write("rds.yaml", or(c.rds, routes))
		write("cds.json", or(c.cds, clusters))
		write("eds.yaml", or(c.eds, endpoints))
		code, out, problem := command(t, "", "check", path)
		if c.want == "" && (code != exitOK || !strings.Contains(out, "runs as it is")) || c.want != "" && (code != exitNo || !strings.Contains(out, c.want) || strings.Contains(out, "boot.yaml:1")) {
			t.Errorf("%s: %d %s%s", c.name, code, out, problem)
		}
		// Envoy's own verdict is about the bootstrap only.
		if r := proxy.Check(path, proxy.LoadOptions{}); !r.OK() {
			t.Errorf("%s: --mode validate: %v", c.name, r.Problems)
		}
	}

	// A file of resources by itself, as a control plane's JSON is written, too.
	for _, c := range []struct{ name, text, want string }{
		{"one.yaml", strings.Replace(listener, "ROUTES", inline, 1), "holds resources of xDS, no bootstrap; nothing is wrong"},
		{"none.json", `{"versionInfo": "1", "typeUrl": "x", "resources": []}`, "holds resources of xDS, no bootstrap; nothing is wrong"},
		{"two.yaml", strings.Replace(strings.Replace(listener, "ROUTES", inline, 1), "prefix: /", "prefx: /", 1), "prefx"},
		{"three.yaml", strings.Replace(strings.Replace(listener, "ROUTES", inline, 1), "weight: 1", "weight: 0", 1), "three.yaml:13:"},
	} {
		code, out, problem := command(t, "", "check", write(c.name, c.text))
		if !strings.Contains(out, c.want) || strings.Contains(out, "version_info") || (code == exitOK) != (c.name != "three.yaml") && c.name != "two.yaml" {
			t.Errorf("%s: %d %s%s", c.name, code, out, problem)
		}
	}

	// A file that is not there is a problem of who names it.
	if err := os.Remove(filepath.Join(dir, "lds.yaml")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "boot.yaml")
	write("eds.yaml", endpoints)
	if code, out, _ := command(t, "", "check", path); code != exitNo || !strings.Contains(out, "does not run on this machine") {
		t.Errorf("%d %s", code, out)
	}
	if code, out, _ := command(t, "", "check", "--allow-missing-files", path); code != exitOK || !strings.Contains(out, "lds.yaml' does not exist") {
		t.Errorf("%d %s", code, out)
	}
}
