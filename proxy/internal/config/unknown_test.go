package config_test

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

func TestUnknown(t *testing.T) {
	odd := func(m proto.Message, numbers ...protowire.Number) {
		var b []byte
		for _, n := range numbers {
			b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), 7)
		}
		m.ProtoReflect().SetUnknown(b)
	}
	inner := wrapperspb.UInt32(1)
	odd(inner, 77)
	payload, err := anypb.New(inner)
	if err != nil {
		t.Fatal(err)
	}
	meta := &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{"k": payload}}
	c := &clusterv3.Cluster{Name: "a", Metadata: meta, TransportSocketMatches: []*clusterv3.Cluster_TransportSocketMatch{{}, {}}}
	if list := config.Unknown(&clusterv3.Cluster{Name: "a", Metadata: &corev3.Metadata{}}, nil); len(list) != 0 {
		t.Error(list)
	}
	odd(c, 9001, 9000, 9001)
	odd(c.TransportSocketMatches[1], 99)
	got := map[string]string{}
	for _, e := range config.Unknown(c, nil) {
		got[e.Path] = e.Msg
	}
	has := func(typ, set string) string {
		return "Protobuf message (type " + typ + " with unknown field set {" + set + "}) has unknown fields"
	}
	if d := cmp.Diff(map[string]string{
		"":                                    has("envoy.config.cluster.v3.Cluster", "9000, 9001"),
		"transport_socket_matches[1]":         has("envoy.config.cluster.v3.Cluster.TransportSocketMatch", "99"),
		`metadata.typed_filter_metadata["k"]`: has("google.protobuf.UInt32Value", "77"),
	}, got); d != "" {
		t.Error(d)
	}
}
