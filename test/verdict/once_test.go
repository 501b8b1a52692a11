package verdict_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/proxy"
)

// One mistake is one problem, wherever else it shows.
func TestOneMistakeIsOneProblem(t *testing.T) {
	const (
		router = `{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}`
		buffer = `{name: b, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: 1}}`
	)
	listeners := func(filters, cluster string) string {
		return `listeners: [{name: l, address: {socket_address: {address: 127.0.0.1, port_value: 0}}, filter_chains: [{filters: [{name: h, typed_config: {` +
			`"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: s, ` +
			`http_filters: [` + filters + `], route_config: {name: rc, virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: ` + cluster + `}}]}]}}}]}]}]`
	}
	for name, c := range map[string]struct{ in, says string }{
		"clusters at the top": {"static_resources: {" + listeners(router, "c") + "}\nclusters: [{name: c}]\n", "static_resources has that field: is the indent wrong?"},
		"a router that is not the last filter": {"static_resources: {clusters: [{name: c}], " + listeners(router+", "+buffer, "c") + "}\n",
			"Error: terminal filter named r of type envoy.filters.http.router must be the last filter in a http filter chain."},
		"a duration below the bound": {"static_resources: {clusters: [{name: c, dns_refresh_rate: 0.1ms}], " + listeners(router, "c") + "}\n",
			"found '0.1ms'; allowed: a duration greater than 0.001s, in seconds with the unit, such as \"1.5s\""},
	} {
		path := filepath.Join(t.TempDir(), "envoy.yaml")
		if err := os.WriteFile(path, []byte(c.in), 0o600); err != nil {
			t.Fatal(err)
		}
		r := proxy.Check(path, proxy.LoadOptions{}, proxy.WithExtensions(standard.All()...))
		if len(r.Problems) != 1 || !strings.HasSuffix(r.Problems[0].Error(), c.says) {
			t.Errorf("%s: %+v, want one problem that ends with %q", name, r.Problems, c.says)
		}
	}
}
