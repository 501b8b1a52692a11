package xds_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/xds"
)

func TestTTL(t *testing.T) {
	wrap := func(ttl time.Duration, a *xdstype.Any) xdstype.Any {
		r := xdstype.Resource{Name: "a", TTL: ttl, HasTTL: true}
		if a != nil {
			r.Any, r.HasAny = *a, true
		}
		return xdstype.Any{TypeURL: xdstype.DeltaResource, Value: r.Append(nil)}
	}
	p := newPlane(t, adsSource(false)).start()
	all := &mirror{}
	p.want(overADS(0), xdstype.Cluster, all)
	x := p.stream()
	p.expect(x, p.request, "CDS v= n= [] node")
	a := clusterOf("a=1")
	x.Send(&xdstype.Response{Version: "1", Nonce: "1", TypeURL: xdstype.Cluster, Resources: []xdstype.Any{wrap(10*time.Second, &a), clusterOf("b")}})
	p.expect(x, p.request, "CDS v=1 n=1 [] node")
	p.clock.ahead += 9 * time.Second
	p.quiet(x)
	x.Send(&xdstype.Response{Version: "1", Nonce: "2", TypeURL: xdstype.Cluster, Resources: []xdstype.Any{wrap(10*time.Second, nil), clusterOf("b")}})
	p.expect(x, p.request, "CDS v=1 n=2 [] node")
	p.clock.ahead += 9 * time.Second
	p.quiet(x)
	if all.have["a"] != "1" {
		t.Fatal("a sign of life does not count")
	}
	p.clock.ahead += 2 * time.Second
	p.until("the end", func() bool { _, ok := all.have["a"]; return !ok })
	if _, ok := all.have["b"]; !ok {
		t.Error("b is gone")
	}
	p.quiet(x)
	// It may come again.
	x.Send(cds("2", "3", "a=1", "b"))
	p.expect(x, p.request, "CDS v=2 n=3 [] node")
	p.clock.ahead += time.Hour
	p.quiet(x)
	if all.have["a"] != "1" {
		t.Error(all.have)
	}
}

func TestDelta(t *testing.T) {
	p := newPlane(t, adsSource(true)).start()
	all, one, two := &stepper{}, &mirror{}, &mirror{}
	p.want(overADS(0), xdstype.Cluster, all)
	x := p.stream()
	if x.Path != "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources" {
		t.Error(x.Path)
	}
	send := func(url, version, nonce string, removed []string, list ...string) {
		r := &xdstype.DeltaResponse{Version: version, Nonce: nonce, TypeURL: url, Removed: removed}
		for _, s := range list {
			a := clusterOf(s)
			name, _, _ := strings.Cut(s, "=")
			if url == xdstype.Endpoint {
				a = endpointOf(s, 1)
			}
			r.Resources = append(r.Resources, xdstype.Resource{Name: strings.TrimRight(name, "?!"), Version: version, HasAny: true, Any: a})
		}
		x.SendDelta(r)
	}
	p.expect(x, p.delta, "CDS n= +[] -[] node")
	s1, _ := p.want(overADS(0), xdstype.Endpoint, one, "a")
	s2, _ := p.want(overADS(0), xdstype.Endpoint, two, "b")
	p.expect(x, p.delta, "EDS n= +[a] -[] node", "EDS n= +[b] -[] node")
	send(xdstype.Cluster, "1", "x", nil, "a=1", "b=1", "c=1")
	p.expect(x, p.delta, "CDS n=x +[] -[] node")
	send(xdstype.Cluster, "2", "y", []string{"b", "nobody"}, "a=2")
	p.expect(x, p.delta, "CDS n=y +[] -[] node")
	send(xdstype.Cluster, "3", "z", nil, "a=bad", "d=1")
	p.expect(x, p.delta, "CDS n=z +[] -[] node NACK 13 1 refused")
	if d := cmp.Diff(map[string]string{"a": "2", "c": "1", "d": "1"}, all.have); d != "" {
		t.Error(d)
	}
	send(xdstype.Cluster, "4", "w", nil, "e=1", "e=2")
	p.expect(x, p.delta, "CDS n=w +[] -[] node NACK 13 duplicate name e found among added/updated resources")
	send(xdstype.Endpoint, "1", "e1", nil, "a", "b")
	p.expect(x, p.delta, "EDS n=e1 +[] -[] node")
	if one.have["a"] != "1" || two.have["b"] != "1" {
		t.Error(one.have, two.have)
	}
	s2.Close()
	p.expect(x, p.delta, "EDS n= +[] -[b] node")
	// Who wants what somebody has already asks again, and so gets it.
	three := &mirror{}
	p.want(overADS(0), xdstype.Endpoint, three, "a")
	p.expect(x, p.delta, "EDS n= +[a] -[] node")
	send(xdstype.Endpoint, "1", "e2", nil, "a")
	p.expect(x, p.delta, "EDS n=e2 +[] -[] node")
	if three.have["a"] != "1" {
		t.Error(three.have)
	}
	s1.Close()
	p.quiet(x)

	// A new stream is told what is there: what was refused is not.
	x.End(14, "")
	p.until("the end", func() bool { return p.stat("control_plane.connected_state") == 0 })
	p.clock.ahead += 500 * time.Millisecond
	x = p.stream()
	p.expect(x, p.delta, "CDS n= +[] -[] initial=[{c 1} {d 3}] node", "EDS n= +[a] -[] initial=[{a 1}] node")
	send(xdstype.Cluster, "5", "v", []string{"c"}, "a=5")
	p.expect(x, p.delta, "CDS n=v +[] -[] node")
	if d := cmp.Diff(map[string]string{"a": "5", "d": "1"}, all.have); d != "" {
		t.Error(d)
	}
}

// Fields that are unknown are told of, wherever they stand, or refused.
func TestUnknownFieldsInResponses(t *testing.T) {
	for _, strict := range []bool{false, true} {
		p := newPlane(t, adsSource(false))
		var unknown []string
		p.streams.Options = config.Options{AllowUnknownFields: !strict, OnUnknownField: func(e *config.Error) { unknown = append(unknown, e.Error()) }}
		if !strict {
			p.streams.Options.OnDeprecated = func(e *config.Error, _ string) { unknown = append(unknown, e.Path) }
		}
		p.start()
		all := &mirror{}
		p.want(overADS(0), xdstype.Cluster, all)
		x := p.stream()
		p.expect(x, p.request, "CDS v= n= [] node")
		odd := clusterOf("a=1")
		odd.Value = protowire.AppendVarint(protowire.AppendTag(odd.Value, 9999, protowire.VarintType), 1)
		odd.Value = protowire.AppendBytes(protowire.AppendTag(odd.Value, 14, protowire.BytesType), nil) // http2_protocol_options
		x.Send(&xdstype.Response{Version: "1", Nonce: "x", TypeURL: xdstype.Cluster, Resources: []xdstype.Any{clusterOf("b"), odd}})
		want := "CDS v=1 n=x [] node"
		if strict {
			want = "CDS v= n=x [] node NACK 13 refused: a"
		}
		p.expect(x, p.request, want)
		const text = "Protobuf message (type envoy.config.cluster.v3.Cluster with unknown field set {9999}) has unknown fields"
		switch _, ok := all.have["a"]; {
		case strict && (ok || all.lastErr == nil || all.lastErr.Error() != text):
			t.Error(all.have, all.lastErr)
		case !strict && (!ok || !slices.Equal(unknown, []string{`resources["a"]: ` + text, `resources["a"].http2_protocol_options`})):
			t.Error(all.have, unknown)
		}
	}
}

// Whatever comes, nothing breaks; what is told as fresh, same or gone holds together.
func FuzzResponse(f *testing.F) {
	a := clusterOf("a=1")
	f.Add(cds("1", "x", "a", "a", "b?", "c!").Append(nil), false, true)
	f.Add((&xdstype.DeltaResponse{Version: "1", Nonce: "n", TypeURL: xdstype.Cluster, Removed: []string{"b"},
		Resources: []xdstype.Resource{{Name: "a", HasAny: true, Any: a, HasTTL: true, TTL: time.Second}, {Name: "c", HasTTL: true}}}).Append(nil), true, true)
	f.Add(eds("1", "x", endpointOf("a", 1)).Append(nil), false, false)
	f.Fuzz(func(t *testing.T, b []byte, delta, wildcard bool) {
		x := xds.ReadResponse(b, xdstype.Cluster, delta, wildcard, []string{"a", "b"})
		if x.Err != nil {
			return
		}
		if x.Fresh > x.Items || x.Told > x.Fresh || !wildcard && x.Told != 0 {
			t.Errorf("%+v", x)
		}
		if !delta && (!wildcard && len(x.Gone) > 0 || !slices.IsSorted(x.Gone)) {
			t.Errorf("gone: %q", x.Gone)
		}
	})
}
