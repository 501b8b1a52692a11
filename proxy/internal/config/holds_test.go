package config_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	udpav1 "github.com/cncf/xds/go/udpa/type/v1"
	xdsv3 "github.com/cncf/xds/go/xds/type/v3"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

func TestInto(t *testing.T) {
	value, err := structpb.NewStruct(map[string]any{"address": "a", "portValue": 7})
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := structpb.NewStruct(map[string]any{"adress": "a"})
	if err != nil {
		t.Fatal(err)
	}
	const url = "type.googleapis.com/envoy.config.core.v3.SocketAddress"
	for name, c := range map[string]struct {
		in           proto.Message
		holds, reads bool
	}{
		"message":            {&corev3.SocketAddress{Address: "a", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 7}}, true, true},
		"udpa":               {&udpav1.TypedStruct{TypeUrl: url, Value: value}, true, true},
		"xds":                {&xdsv3.TypedStruct{TypeUrl: url, Value: value}, true, true},
		"type without host":  {&xdsv3.TypedStruct{TypeUrl: "envoy.config.core.v3.SocketAddress", Value: value}, true, true},
		"unknown field":      {&xdsv3.TypedStruct{TypeUrl: url, Value: wrong}, true, false},
		"another message":    {&corev3.Pipe{Path: "a"}, false, false},
		"a struct of others": {&xdsv3.TypedStruct{TypeUrl: "type.googleapis.com/envoy.config.core.v3.Pipe", Value: value}, false, false},
	} {
		a, err := anypb.New(c.in)
		if err != nil {
			t.Fatal(err)
		}
		var got corev3.SocketAddress
		if got := config.Holds(a, &got); got != c.holds {
			t.Errorf("%s: holds %v", name, got)
		}
		if err := config.Into(a, &got); (err == nil) != c.reads || c.reads && (got.Address != "a" || got.GetPortValue() != 7) {
			t.Errorf("%s: %v, %v", name, &got, err)
		}
	}
	if err := config.Into(nil, &corev3.Pipe{}); err == nil || config.Holds(nil, &corev3.Pipe{}) {
		t.Error("nothing is no message")
	}
}
