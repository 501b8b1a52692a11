package xdstype_test

import (
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

func marshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// check reads the generated message's bytes, and has the generated code read what was written from that.
func check[T any](t *testing.T, generated, again proto.Message, want *T, parse func([]byte) (*T, error), write func(*T) []byte) {
	t.Helper()
	got, err := parse(marshal(t, generated))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("read:", diff)
	}
	if err := proto.Unmarshal(write(want), again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(generated, again, protocmp.Transform()); diff != "" {
		t.Error("written:", diff)
	}
}

func TestAgainstGenerated(t *testing.T) {
	node := &corev3.Node{Id: "n", Cluster: "c"}
	nodeBytes := marshal(t, node)
	check(t, &discoveryv3.DiscoveryRequest{
		VersionInfo: "1", Node: node, ResourceNames: []string{"a", "", "b"}, TypeUrl: xdstype.Cluster, ResponseNonce: "x",
		ErrorDetail: &status.Status{Code: 3, Message: "no"},
	}, &discoveryv3.DiscoveryRequest{}, &xdstype.Request{
		Version: "1", Node: nodeBytes, Names: []string{"a", "", "b"}, TypeURL: xdstype.Cluster, Nonce: "x",
		Error: &xdstype.Status{Code: 3, Message: "no"},
	}, xdstype.ParseRequest, func(r *xdstype.Request) []byte { return r.Append(nil) })

	check(t, &discoveryv3.DiscoveryResponse{
		VersionInfo: "1", Resources: []*anypb.Any{{TypeUrl: "a/b", Value: []byte("xyz")}, {TypeUrl: "c/d"}}, TypeUrl: xdstype.Listener,
		Nonce: "n", ControlPlane: &corev3.ControlPlane{Identifier: "me"},
	}, &discoveryv3.DiscoveryResponse{}, &xdstype.Response{
		Version: "1", Resources: []xdstype.Any{{TypeURL: "a/b", Value: []byte("xyz")}, {TypeURL: "c/d"}}, TypeURL: xdstype.Listener,
		Nonce: "n", ControlPlane: "me",
	}, xdstype.ParseResponse, func(r *xdstype.Response) []byte { return r.Append(nil) })

	check(t, &discoveryv3.DeltaDiscoveryRequest{
		Node: node, TypeUrl: xdstype.Endpoint, ResourceNamesSubscribe: []string{"a"}, ResourceNamesUnsubscribe: []string{"b", "*"},
		InitialResourceVersions: map[string]string{"k": "v"}, ResponseNonce: "x", ErrorDetail: &status.Status{Code: 13, Message: "no"},
	}, &discoveryv3.DeltaDiscoveryRequest{}, &xdstype.DeltaRequest{
		Node: nodeBytes, TypeURL: xdstype.Endpoint, Subscribe: []string{"a"}, Unsubscribe: []string{"b", "*"},
		Initial: []xdstype.Versioned{{Name: "k", Version: "v"}}, Nonce: "x", Error: &xdstype.Status{Code: 13, Message: "no"},
	}, xdstype.ParseDeltaRequest, func(r *xdstype.DeltaRequest) []byte { return r.Append(nil) })

	check(t, &discoveryv3.DeltaDiscoveryResponse{
		SystemVersionInfo: "1", TypeUrl: xdstype.Route, Nonce: "n", RemovedResources: []string{"x"}, ControlPlane: &corev3.ControlPlane{Identifier: "me"},
		Resources: []*discoveryv3.Resource{
			{Name: "a", Aliases: []string{"b"}, Version: "2", Resource: &anypb.Any{TypeUrl: "a/b", Value: []byte("v")}},
			{Name: "c", Ttl: durationpb.New(1500 * time.Millisecond), CacheControl: &discoveryv3.Resource_CacheControl{DoNotCache: true}},
		},
	}, &discoveryv3.DeltaDiscoveryResponse{}, &xdstype.DeltaResponse{
		Version: "1", TypeURL: xdstype.Route, Nonce: "n", Removed: []string{"x"}, ControlPlane: "me",
		Resources: []xdstype.Resource{
			{Name: "a", Aliases: []string{"b"}, Version: "2", Any: xdstype.Any{TypeURL: "a/b", Value: []byte("v")}, HasAny: true},
			{Name: "c", TTL: 1500 * time.Millisecond, HasTTL: true, DoNotCache: true},
		},
	}, xdstype.ParseDeltaResponse, func(r *xdstype.DeltaResponse) []byte { return r.Append(nil) })
}

func TestMalformed(t *testing.T) {
	good := (&xdstype.Response{Version: "1", Resources: []xdstype.Any{{TypeURL: "a/b", Value: []byte("xyz")}}}).Append(nil)
	for n := range good {
		if n == 0 || n == 3 {
			continue // nothing, or just the version
		}
		if _, err := xdstype.ParseResponse(good[:n]); err == nil {
			t.Errorf("%d of %d bytes are taken", n, len(good))
		}
	}
	if _, err := xdstype.ParseResponse([]byte{0x0a, 1, 0xff}); err == nil {
		t.Error("a string that is not UTF-8 is taken")
	}
}

func TestNames(t *testing.T) {
	if got := xdstype.Short(xdstype.ScopedRoute); got != "SRDS" {
		t.Error(got)
	}
	if got := xdstype.Short("x/y"); got != "x/y" {
		t.Error(got)
	}
	if got := xdstype.Name(xdstype.Cluster); got != "envoy.config.cluster.v3.Cluster" {
		t.Error(got)
	}
	if xdstype.Rank(xdstype.Cluster) >= xdstype.Rank(xdstype.Endpoint) || xdstype.Rank(xdstype.Listener) >= xdstype.Rank(xdstype.Route) || xdstype.Rank("x") <= xdstype.Rank(xdstype.Runtime) {
		t.Error("wrong order")
	}
	if !xdstype.Wildcard(xdstype.Listener) || xdstype.Wildcard(xdstype.Route) {
		t.Error("wrong wildcards")
	}
}

func FuzzParse(f *testing.F) {
	f.Add((&xdstype.Response{Version: "1", Resources: []xdstype.Any{{TypeURL: "a/b", Value: []byte("xyz")}}, TypeURL: "t", Nonce: "n"}).Append(nil))
	f.Add((&xdstype.DeltaResponse{Resources: []xdstype.Resource{{Name: "a", HasTTL: true, TTL: time.Second}}, Removed: []string{"b"}}).Append(nil))
	f.Add((&xdstype.DeltaRequest{Initial: []xdstype.Versioned{{Name: "a"}}, Error: &xdstype.Status{Code: 1}}).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := xdstype.ParseResponse(b)
		if again, err2 := xdstype.ParseResponse(r.Append(nil)); err == nil && (err2 != nil || !cmp.Equal(r, again)) {
			t.Errorf("Response: %v %v", err2, cmp.Diff(r, again))
		}
		d, err := xdstype.ParseDeltaResponse(b)
		if again, err2 := xdstype.ParseDeltaResponse(d.Append(nil)); err == nil && (err2 != nil || !cmp.Equal(d, again)) {
			t.Errorf("DeltaResponse: %v %v", err2, cmp.Diff(d, again))
		}
		q, err := xdstype.ParseDeltaRequest(b)
		if again, err2 := xdstype.ParseDeltaRequest(q.Append(nil)); err == nil && (err2 != nil || !cmp.Equal(q, again)) {
			t.Errorf("DeltaRequest: %v %v", err2, cmp.Diff(q, again))
		}
		s, err := xdstype.ParseRequest(b)
		if again, err2 := xdstype.ParseRequest(s.Append(nil)); err == nil && (err2 != nil || !cmp.Equal(s, again)) {
			t.Errorf("Request: %v %v", err2, cmp.Diff(s, again))
		}
	})
}
