package verdict_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/cmd/dragoman/internal/verdict"
	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/proxy"
	"github.com/dragoman-proxy/dragoman/proxy/configfile"
)

const tcp = `{"static_resources": {"listeners": [{"name": "a", "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
 "filter_chains": [{"filters": [{"name": "t", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "stat_prefix": "x", "cluster": "c"MORE}}]}]}],
 "clusters": [{"name": "c"}]}}`

const http = `{"static_resources": {"listeners": [{"name": "a", "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
 "filter_chains": [{"filters": [{"name": "h", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "x", "codec_type": "AUTO",
 "route_config": {}, "http_filters": [{"name": "r", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}]}]}]}}`

const lds = `{"node": {"id": "a", "cluster": "b"}, "dynamic_resources": {"lds_config": {"resource_api_version": "V3", "path_config_source": {"path": "/nonexistent/lds.yaml"}}}}`

func TestDifferences(t *testing.T) {
	onData := strings.Replace(tcp, "MORE", `, "upstream_connect_mode": "ON_DOWNSTREAM_DATA", "max_early_data_bytes": 1`, 1)
	for _, c := range []struct {
		name, text, what string
		want             bool
	}{
		{"a value is named, too", onData, "`tcp_proxy` in `ON_DOWNSTREAM_DATA` mode", true},
		{"only the extension is", strings.Replace(tcp, "MORE", "", 1), "`tcp_proxy` in `ON_DOWNSTREAM_DATA` mode", false},
		{"its statistics", strings.Replace(tcp, "MORE", "", 1), "`tcp_proxy`: gauges", true},
		{"the wire", http, "AUTO", false},
		{"a flag", lds, "--mode validate", false},
		{"a source", lds, "`path_config_source`", true},
		{"camel case", strings.ReplaceAll(lds, "path_config_source", "pathConfigSource"), "`path_config_source`", true},
		{"what a node says of itself", `{"node": {"id": "a", "cluster": "b", "extensions": [{"name": "envoy.filters.network.tcp_proxy"}]}}`, "tcp_proxy", false},
		{"what is refused", `{"dynamic_resources": {"ads_config": {"api_type": "GRPC"}}}`, "without `ads_config`", false},
		{"a header that nothing sets", strings.Replace(http, `"AUTO",`, `"AUTO", "request_id_extension": {"name": "upstream"},`, 1), "alt-stat-name", false},
		{"a header", strings.Replace(http, `"route_config": {`, `"route_config": {"request_headers_to_add": [{"header": {"key": "x-envoy-upstream-alt-stat-name", "value": "a"}}]`, 1), "alt-stat-name", true},
		{"metadata", strings.Replace(http, `"route_config": {`, `"route_config": {"metadata": {"filter_metadata": {"dragoman.retry": {}}}`, 1), "route metadata", true},
		{"statistics of a flag", strings.Replace(http, `"route_config": {`, `"route_config": {"metadata": {"filter_metadata": {"dragoman.retry": {}}}`, 1), "server.dragoman", false},
		{"numbers in a log", strings.Replace(http, `"AUTO",`, `"AUTO", "server_name": "%DYNAMIC_METADATA(a:b)%",`, 1), "infinite", false},
	} {
		path := filepath.Join(t.TempDir(), "a.json")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		f := verdict.Of(path, proxy.LoadOptions{}, configfile.Options{}, proxy.WithExtensions(standard.All()...))
		got := false
		for _, d := range f.Differs {
			got = got || strings.Contains(d.What, c.what)
			if strings.Contains(d.Dragoman, "](") {
				t.Errorf("a link: %s", d.Dragoman)
			}
		}
		if got != c.want {
			t.Errorf("%s: %v, %v", c.name, f.Differs, f.Problems)
		}
	}
}
