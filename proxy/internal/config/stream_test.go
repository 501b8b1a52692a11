package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

// reassemble reads a Stream back into one bootstrap.
func reassemble(t *testing.T, path string, opts config.Options) (*bootstrapv3.Bootstrap, error) {
	t.Helper()
	s, err := config.Open(path, opts)
	if err != nil {
		return nil, err
	}
	b, err := s.Skeleton()
	if err != nil {
		return nil, err
	}
	if b.StaticResources == nil {
		b.StaticResources = &bootstrapv3.Bootstrap_StaticResources{}
	}
	errC := s.Clusters(func(it config.Item[*clusterv3.Cluster]) error {
		if want := fmt.Sprintf("static_resources.clusters[%d]", len(b.StaticResources.Clusters)); it.Path != want {
			t.Errorf("path %s, want %s", it.Path, want)
		}
		var again clusterv3.Cluster
		if err := proto.Unmarshal(it.Raw, &again); err != nil || !proto.Equal(&again, it.Message) {
			t.Errorf("%s: the raw bytes are not the message's (%v)", it.Path, err)
		}
		b.StaticResources.Clusters = append(b.StaticResources.Clusters, it.Message)
		return nil
	})
	errL := s.Listeners(func(it config.Item[*listenerv3.Listener]) error {
		b.StaticResources.Listeners = append(b.StaticResources.Listeners, it.Message)
		return nil
	})
	return b, errors.Join(errC, errL)
}

func TestStreamEqualsLoad(t *testing.T) {
	data := scaled(50)
	var b bootstrapv3.Bootstrap
	if _, err := config.Parse("b.json", data, &b, config.Options{}); err != nil {
		t.Fatal(err)
	}
	binary, err := proto.Marshal(&b)
	if err != nil {
		t.Fatal(err)
	}
	overlay := "static_resources: {clusters: [{name: last, connect_timeout: 1s}], listeners: [{name: more}]}\nnode: {id: x}"
	for _, c := range []struct {
		name    string
		data    []byte
		overlay string
	}{
		{"b.json", data, ""}, {"b.yaml", data, ""}, {"b.pb", binary, ""},
		{"b.json", data, overlay}, {"b.pb", binary, overlay},
		{"camel.json", []byte(`{"staticResources": {"clusters": [{"name": "a"}, [{"name": "b"}, null], {"name": "c"}]}, "static_resources": {"clusters": {"name": "d"}}}`), ""},
		{"none.json", []byte(`{}`), ""},
	} {
		path := write(t, c.name, c.data)
		opts := config.Options{ConfigYAML: c.overlay, SkipValidation: strings.HasPrefix(c.name, "camel")}
		want, _, err := config.Load(path, opts)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got, err := reassemble(t, path, opts)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if want.StaticResources == nil {
			want.StaticResources = &bootstrapv3.Bootstrap_StaticResources{}
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s overlay %q: %s", c.name, c.overlay, diff)
		}
	}
}

func TestStreamCollectsErrors(t *testing.T) {
	path := write(t, "b.json", []byte(`{"static_resources": {"clusters": [
  {"name": "a", "lb_policy": "NOPE"},
  {"name": "b"},
  {"name": ""},
  {"name": "d", "connect_timeout": "-1s"}
]}}`))
	s, err := config.Open(path, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Skeleton(); err != nil {
		t.Error(err)
	}
	var seen []string
	err = s.Clusters(func(it config.Item[*clusterv3.Cluster]) error {
		seen = append(seen, it.Message.Name)
		return s.Positions().Error(it.Path+".name", config.Error{Msg: "duplicate cluster 'b'"})
	})
	if diff := cmp.Diff([]string{"b"}, seen); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{
		":2:30: static_resources.clusters[0].lb_policy: unknown enum value: 'NOPE'",
		":3:12: static_resources.clusters[1].name: duplicate cluster 'b'",
		":4:12: static_resources.clusters[2].name: Proto constraint validation failed (ClusterValidationError.Name: value length must be at least 1 characters); found ''",
		":5:36: static_resources.clusters[3].connect_timeout: Invalid duration: Expected positive duration; found '-1s'; allowed: a duration greater than 0s, in seconds with the unit, such as \"1.5s\"",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
	stop := errors.New("stop")
	if err := s.Clusters(func(config.Item[*clusterv3.Cluster]) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("err = %v", err)
	}
}

func TestStreamSyntaxErrors(t *testing.T) {
	for text, want := range map[string]string{
		`{"static_resources": {"clusters": [{"name": "a"}, {"name" "b"}]}}`: "b.json:1:59: unexpected character",
		`{"static_resources": {"clusters": [{"name": "a"]}}`:                "b.json:1:49: unexpected",
		`{"static_resources": {"clusters": [{"name": "a"} x]}}`:             "b.json:1:50: unexpected",
		`{"static_resources": {"clusters": [{"name": "a}]}}`:                "b.json:1:36: the value is not closed",
		`{"static_resources": {"clusters": [{"name": "a"}, ,]}}`:            "b.json:1:51: unexpected",
	} {
		path := write(t, "b.json", []byte(text))
		_, err := reassemble(t, path, config.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if _, _, err := config.Load(path, config.Options{}); err == nil {
			t.Errorf("%s: Load takes it", text)
		}
	}
}

// A static cluster costs 31 allocations, of which its message takes 25; the limit leaves room for the library.
func TestStreamAllocations(t *testing.T) {
	const n = 2000
	path := write(t, "b.json", scaled(n))
	allocs := testing.AllocsPerRun(3, func() {
		s, err := config.Open(path, config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Clusters(func(config.Item[*clusterv3.Cluster]) error { return nil }); err != nil {
			t.Fatal(err)
		}
	})
	if per := allocs / n; per > 36 {
		t.Errorf("%.1f allocations a cluster", per)
	}
}
