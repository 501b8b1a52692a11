package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"
)

// scaled is a bootstrap of n static clusters in the style that control planes write.
func scaled(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"static_resources": {"listeners": [{"name": "h1", "address": {"socket_address": {"address": "127.0.0.1", "port_value": 18100}}, "filter_chains": [{"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "h1", "codec_type": "AUTO", "use_remote_address": true, "route_config": {"name": "r", "virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "c00000", "timeout": "0s"}}]}]}, "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}]}]}], "clusters": [`)
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, `{"name": "c%05d", "type": "STATIC", "connect_timeout": "5s", "circuit_breakers": {"thresholds": [{"max_connections": 100000, "max_pending_requests": 100000, "max_requests": 100000}]}, "load_assignment": {"cluster_name": "c%05d", "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": %d}}}}]}]}}`, i, i, 20000+i%10000)
	}
	b.WriteString(`]}, "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 18101}}}, "layered_runtime": {"layers": [{"name": "s", "static_layer": {"overload": {"global_downstream_max_connections": 100000}}}]}}`)
	return []byte(b.String())
}

func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadEqualsProtoJSON(t *testing.T) {
	data := scaled(20)
	var want bootstrapv3.Bootstrap
	if err := protojson.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b.json", "b.yaml"} {
		got, pos, err := config.Load(write(t, name, data), config.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(&want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if p, ok := pos.Lookup("static_resources.clusters[3].connect_timeout"); !ok || p.Line != 1 || p.Col < 1000 {
			t.Errorf("%s: Lookup = %v, %v", name, p, ok)
		}
	}
}

func TestErrorsHavePlaces(t *testing.T) {
	path := write(t, "envoy.yaml", []byte(`static_resources:
  clusters:
  - name: a
    conect_timeout: 1s
    lb_policy: ROUND_ROBBIN
    connect_timeout: 5
`))
	_, _, err := config.Load(path, config.Options{})
	var errs *config.Errors
	if !errors.As(err, &errs) {
		t.Fatalf("err = %v", err)
	}
	for _, want := range []string{":4:5: ", "no such field: 'conect_timeout'", "has unknown fields", "did you mean 'connect_timeout'?", ":5:16: static_resources.clusters[0].lb_policy: unknown enum value: 'ROUND_ROBBIN'", "did you mean 'ROUND_ROBIN'", ":6:22: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
	if errs.Len() != 3 {
		t.Errorf("%d errors, want 3:\n%v", errs.Len(), err)
	}
}

func BenchmarkLoad(b *testing.B) {
	data := scaled(10000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var m bootstrapv3.Bootstrap
		if _, err := config.Parse("b.json", data, &m, config.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkProtoJSON is the library's way, without places and field rules, to compare with.
func BenchmarkProtoJSON(b *testing.B) {
	data := scaled(10000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var m bootstrapv3.Bootstrap
		if err := protojson.Unmarshal(data, &m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStream(b *testing.B) {
	path := write(b, "b.json", scaled(10000))
	b.ReportAllocs()
	for b.Loop() {
		s, err := config.Open(path, config.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Clusters(func(config.Item[*clusterv3.Cluster]) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPrint writes a cluster of a dump.
func BenchmarkPrint(b *testing.B) {
	var m bootstrapv3.Bootstrap
	if _, err := config.Parse("b.json", scaled(1), &m, config.Options{}); err != nil {
		b.Fatal(err)
	}
	p := config.NewPrinter(nil)
	p.Redact = true
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = p.Append(buf[:0], m.StaticResources.Clusters[0], 3)
	}
}
