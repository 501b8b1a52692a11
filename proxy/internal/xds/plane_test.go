package xds_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/internal/xdstest"
	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/proxy/internal/async"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
	"github.com/dragoman-proxy/dragoman/proxy/internal/xds"
)

// plane is a main loop that the test steps, with a cluster whose host is a control plane of the test's.
type plane struct {
	*rig
	server  *xdstest.Server
	streams *xds.Streams
	sources *xds.Sources
	ads     *corev3.ApiConfigSource
	subs    int
	guard   event.Timer
}

func adsSource(delta bool) *corev3.ApiConfigSource {
	a := &corev3.ApiConfigSource{ApiType: corev3.ApiConfigSource_GRPC, GrpcServices: []*corev3.GrpcService{{
		TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: "xds"}}}}}
	if delta {
		a.ApiType = corev3.ApiConfigSource_DELTA_GRPC
	}
	return a
}

// newPlane makes a plane whose ADS is a.
func newPlane(t *testing.T, a *corev3.ApiConfigSource) *plane {
	p := &plane{ads: a, server: xdstest.Start(t)}
	r := &rig{t: t, store: stats.NewStore(), clock: &fakeClock{Clock: clock.System()}}
	p.rig = r
	d, err := event.NewDriver("")
	if err != nil {
		t.Fatal(err)
	}
	r.main = event.New(event.Config{Index: -1, Name: "main_thread", Driver: d, Clock: r.clock, Stats: r.store.Main(), Rand: rand.Seeded([32]byte{1})})
	m := cluster.NewManager(&cluster.Deps{Main: r.main, Store: r.store})
	host, port, _ := strings.Cut(p.server.Addr, ":")
	c := &clusterv3.Cluster{}
	if _, err := config.Parse("c.yaml", fmt.Appendf(nil, `name: xds
load_assignment: {cluster_name: xds, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %s}}}}]}]}
typed_extension_protocol_options:
  envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
    "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
    explicit_http_config: {http2_protocol_options: {}}
`, host, port), c, config.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := m.AddStatic(c); err != nil {
		t.Fatal(err)
	}
	client := async.New(async.Deps{Clusters: m, Root: r.store.Root()})
	p.streams = &xds.Streams{Main: r.main, Store: r.store, Node: []byte("\x0a\x01n"), Client: func() *async.Client { return client },
		Options: config.Options{AllowUnknownFields: true}, Warn: func(s string) { r.warns = append(r.warns, s) }}
	if a != nil {
		p.streams.SetADS(a)
	}
	p.sources = &xds.Sources{Files: &xds.Files{}, Streams: p.streams}
	p.guard.Fn = func() {}
	t.Cleanup(func() {
		p.streams.Close()
		for _, h := range r.main.Handlers() {
			if c, ok := h.(*conn.Conn); ok {
				c.Close(network.NoFlush, "")
			}
		}
		p.streams.Wait()
		r.main.Step(false)
		r.main.Step(false)
		if n := async.Live(r.main); n != 0 {
			t.Errorf("%d streams are left", n)
		}
		d.Close()
	})
	return p
}

func (p *plane) start() *plane {
	p.streams.Start()
	p.streams.Listen()
	return p
}

// until steps the main loop until f holds.
func (p *plane) until(what string, f func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !f() {
		if time.Now().After(deadline) {
			p.t.Fatalf("waited too long: %s; %q", what, p.warns)
		}
		p.main.Arm(&p.guard, time.Millisecond)
		p.main.Step(true)
	}
}

// stream waits for the next stream.
func (p *plane) stream() *xdstest.Stream {
	p.t.Helper()
	var x *xdstest.Stream
	p.until("a stream", func() bool {
		select {
		case x = <-p.server.Streams():
		default:
		}
		return x != nil
	})
	return x
}

func (p *plane) recv(x *xdstest.Stream) []byte {
	p.t.Helper()
	var b []byte
	p.until("a request", func() bool {
		select {
		case got, ok := <-x.Requests():
			if !ok {
				p.t.Fatal("the stream has ended")
			}
			b = got
			return true
		default:
			return false
		}
	})
	return b
}

// request waits for the next request and writes it down: "CDS v=1 n=2 [a b] node NACK text".
func (p *plane) request(x *xdstest.Stream) string {
	p.t.Helper()
	r, err := xdstype.ParseRequest(p.recv(x))
	if err != nil {
		p.t.Fatal(err)
	}
	return fmt.Sprintf("%s v=%s n=%s %s", xdstype.Short(r.TypeURL), r.Version, r.Nonce, r.Names) + extras(r.Node, r.Error)
}

func extras(node []byte, e *xdstype.Status) (s string) {
	if node != nil {
		s += " node"
	}
	if e != nil {
		s += fmt.Sprintf(" NACK %d %s", e.Code, e.Message)
	}
	return s
}

// delta is request for a delta stream: "CDS n=2 +[a] -[b] initial=[{a 1}]".
func (p *plane) delta(x *xdstest.Stream) string {
	p.t.Helper()
	r, err := xdstype.ParseDeltaRequest(p.recv(x))
	if err != nil {
		p.t.Fatal(err)
	}
	s := fmt.Sprintf("%s n=%s +%s -%s", xdstype.Short(r.TypeURL), r.Nonce, r.Subscribe, r.Unsubscribe)
	if len(r.Initial) > 0 {
		s += fmt.Sprintf(" initial=%v", r.Initial)
	}
	return s + extras(r.Node, r.Error)
}

// expect compares requests that come one after the other.
func (p *plane) expect(x *xdstest.Stream, next func(*xdstest.Stream) string, want ...string) {
	p.t.Helper()
	for _, w := range want {
		if got := next(x); got != w {
			p.t.Fatalf("request %q, want %q", got, w)
		}
	}
}

// quiet checks that nothing is asked for now.
func (p *plane) quiet(x *xdstest.Stream) {
	p.t.Helper()
	for range 20 {
		p.main.Arm(&p.guard, time.Millisecond)
		p.main.Step(true)
	}
	select {
	case b := <-x.Requests():
		r, _ := xdstype.ParseRequest(b)
		p.t.Fatalf("a request too many: %+v", r)
	default:
	}
}

func overADS(timeout time.Duration) *corev3.ConfigSource {
	return &corev3.ConfigSource{InitialFetchTimeout: durationpb.New(timeout), ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}
}

func overAPI(a *corev3.ApiConfigSource) *corev3.ConfigSource {
	return &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: a}}
}

// want subscribes, and returns what looks a statistic of the subscription up.
func (p *plane) want(from *corev3.ConfigSource, url string, cb sub.Callbacks, names ...string) (sub.Subscription, func(name string) uint64) {
	p.t.Helper()
	p.subs++
	prefix := fmt.Sprintf("s%d", p.subs)
	st, _ := sub.NewStats(p.store.Root().Scope(prefix))
	s, err := p.sources.Subscribe(from, url, names, st, cb)
	if err != nil {
		p.t.Fatal(err)
	}
	return s, func(name string) uint64 { return p.stat(prefix + "." + name) }
}

// clusterOf is a cluster "name=value" as it stands in a response; "name?" breaks a rule of the fields, "name!" is of another type.
func clusterOf(s string) xdstype.Any {
	name, value, _ := strings.Cut(s, "=")
	c := &clusterv3.Cluster{Name: strings.TrimRight(name, "?!"), AltStatName: value}
	url := xdstype.Cluster
	switch {
	case strings.HasSuffix(name, "?"):
		c.ConnectTimeout = durationpb.New(-time.Second)
	case strings.HasSuffix(name, "!"):
		url = xdstype.Listener
	}
	b, _ := proto.Marshal(c)
	return xdstype.Any{TypeURL: url, Value: b}
}

func endpointOf(name string, localities int) xdstype.Any {
	b, _ := proto.Marshal(&endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: make([]*endpointv3.LocalityLbEndpoints, localities)})
	return xdstype.Any{TypeURL: xdstype.Endpoint, Value: b}
}

func cds(version, nonce string, list ...string) *xdstype.Response {
	r := &xdstype.Response{Version: version, Nonce: nonce, TypeURL: xdstype.Cluster}
	for _, s := range list {
		r.Resources = append(r.Resources, clusterOf(s))
	}
	return r
}

func eds(version, nonce string, list ...xdstype.Any) *xdstype.Response {
	return &xdstype.Response{Version: version, Nonce: nonce, TypeURL: xdstype.Endpoint, Resources: list}
}
