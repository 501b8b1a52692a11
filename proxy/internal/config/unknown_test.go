package config_test

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
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
	if list := config.Unknown(&clusterv3.Cluster{Name: "a", Metadata: &corev3.Metadata{}}, nil, false); len(list) != 0 {
		t.Error(list)
	}
	odd(c, 9001, 9000, 9001)
	odd(c.TransportSocketMatches[1], 99)
	got := map[string]string{}
	for _, e := range config.Unknown(c, nil, false) {
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

func TestDeprecatedInMessages(t *testing.T) {
	inner, err := anypb.New(&clusterv3.Cluster{DnsRefreshRate: durationpb.New(1e9)})
	if err != nil {
		t.Fatal(err)
	}
	c := &clusterv3.Cluster{Name: "a", UseTcpForDnsLookups: true, Metadata: &corev3.Metadata{TypedFilterMetadata: map[string]*anypb.Any{"k": inner}}}
	if list := config.Unknown(c, nil, false); len(list) != 0 {
		t.Error(list)
	}
	got := map[string]string{}
	for _, e := range config.Unknown(c, nil, true) {
		if got[e.Path] = e.Msg; e.Kind != config.Deprecated {
			t.Error(e)
		}
	}
	has := func(field string) string {
		return "Deprecated field: type envoy.config.cluster.v3.Cluster Using deprecated option 'envoy.config.cluster.v3.Cluster." + field +
			"' from file cluster.proto. This configuration will be removed from Envoy soon."
	}
	if d := cmp.Diff(map[string]string{
		"use_tcp_for_dns_lookups":                              has("use_tcp_for_dns_lookups"),
		`metadata.typed_filter_metadata["k"].dns_refresh_rate`: has("dns_refresh_rate"),
	}, got); d != "" {
		t.Error(d)
	}
}
