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
	} {
		path := filepath.Join(t.TempDir(), "a.json")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		f := verdict.Of(path, proxy.LoadOptions{}, configfile.Options{}, proxy.WithExtensions(standard.All()...))
		got := false
		for _, d := range f.Differs {
			got = got || strings.Contains(d.What, c.what)
		}
		if got != c.want {
			t.Errorf("%s: %v, %v", c.name, f.Differs, f.Problems)
		}
	}
}
