package xds_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

func TestStateOfTheWorld(t *testing.T) {
	p := newPlane(t, adsSource(false)).start()
	all, one := &stepper{}, &mirror{}
	_, n := p.want(overADS(0), xdstype.Cluster, all)
	x := p.stream()
	if x.Path != "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources" {
		t.Error(x.Path)
	}
	p.expect(x, p.request, "CDS v= n= [] node")
	s, _ := p.want(overADS(0), xdstype.Endpoint, one, "a")
	p.expect(x, p.request, "EDS v= n= [a] node")
	if p.stat("control_plane.connected_state") != 1 {
		t.Error("it is not connected")
	}

	// All that there is; what is the same is not told again; what is missing is gone.
	x.Send(cds("1", "x", "a=1", "b=1", "c"))
	p.expect(x, p.request, "CDS v=1 n=x [] node")
	x.Send(cds("2", "y", "a=1", "b=2"))
	p.expect(x, p.request, "CDS v=2 n=y [] node")
	if d := cmp.Diff(map[string]string{"a": "1", "b": "2"}, all.have); d != "" || !slices.Equal(all.told, []string{"b"}) && len(all.told) != 4 {
		t.Error(d, all.told)
	}
	if n("update_success") != 2 || n("update_attempt") != 3 || n("update_rejected") != 0 {
		t.Error(n("update_success"), n("update_attempt"), n("update_rejected"))
	}

	// The good ones are taken, the bad is named, the version stays.
	x.Send(cds("3", "z", "a=9", "b=bad", "d"))
	p.expect(x, p.request, "CDS v=2 n=z [] node NACK 13 1 refused")
	if d := cmp.Diff(map[string]string{"a": "9", "b": "2", "d": ""}, all.have); d != "" {
		t.Error(d)
	}
	if n("update_success") != 2 || n("update_rejected") != 1 || p.warns[0] != "gRPC config for "+xdstype.Cluster+" rejected: 1 refused" {
		t.Error(n("update_success"), n("update_rejected"), p.warns)
	}
	// What was refused is looked at again, and is removed when it is gone.
	x.Send(cds("4", "w", "a=9", "d"))
	p.expect(x, p.request, "CDS v=4 n=w [] node")
	if d := cmp.Diff(map[string]string{"a": "9", "d": ""}, all.have); d != "" {
		t.Error(d)
	}

	// Of another type: nothing is taken.
	x.Send(cds("5", "v", "a=1", "q!"))
	p.expect(x, p.request, "CDS v=4 n=v [] node NACK 13 "+xdstype.Listener+" does not match the message-wide type URL "+xdstype.Cluster+" in DiscoveryResponse")
	if all.have["a"] != "9" || all.failures != 1 {
		t.Error(all.have, all.failures)
	}

	// Endpoints go to who has named them; a response without stays an answer.
	x.Send(eds("1", "e1", endpointOf("other", 1), endpointOf("a", 2)))
	p.expect(x, p.request, "EDS v=1 n=e1 [a] node")
	x.Send(eds("2", "e2"))
	p.expect(x, p.request, "EDS v=2 n=e2 [a] node")
	if one.have["a"] != "2" || one.updates != 1 {
		t.Error(one.have, one.updates)
	}
	x.Send(eds("3", "e3", endpointOf("a", 2)))
	p.expect(x, p.request, "EDS v=3 n=e3 [a] node")
	if !slices.Equal(one.told, []string{"a="}) {
		t.Error(one.told)
	}
	// Another who wants the same gets it with its body.
	two := &mirror{}
	s2, _ := p.want(overADS(0), xdstype.Endpoint, two, "a")
	p.expect(x, p.request, "EDS v=3 n=e3 [a] node")
	x.Send(eds("3", "e4", endpointOf("a", 2)))
	p.expect(x, p.request, "EDS v=3 n=e4 [a] node")
	if two.have["a"] != "2" {
		t.Error(two.told)
	}
	s.Close()
	p.expect(x, p.request, "EDS v=3 n=e4 [a] node")
	s2.Close()
	p.expect(x, p.request, "EDS v=3 n=e4 [] node")
	// Nobody wants it any more.
	x.Send(eds("9", "e5", endpointOf("a", 1)))
	p.expect(x, p.request, "EDS v=3 n=e5 [] node")
	x.Send(&xdstype.Response{Version: "1", Nonce: "?", TypeURL: xdstype.Route})
	p.quiet(x)
}

func TestDuplicatesAreRefused(t *testing.T) {
	p := newPlane(t, adsSource(false)).start()
	all := &mirror{}
	p.want(overADS(0), xdstype.Cluster, all)
	x := p.stream()
	p.expect(x, p.request, "CDS v= n= [] node")
	x.Send(cds("1", "x", "a=1", "a=2"))
	p.expect(x, p.request, "CDS v= n=x [] node NACK 13 refused: a")
	if all.have["a"] != "1" || all.lastErr == nil || all.lastErr.Error() != "duplicate cluster a found" {
		t.Error(all.have, all.lastErr)
	}
}

// A resource that breaks a rule of the fields is told of with its place; its siblings are told.
func TestRulesOfFields(t *testing.T) {
	p := newPlane(t, adsSource(false)).start()
	all := &mirror{}
	p.want(overADS(0), xdstype.Cluster, all)
	x := p.stream()
	p.expect(x, p.request, "CDS v= n= [] node")
	x.Send(cds("1", "x", "a=1", "b?"))
	p.expect(x, p.request, "CDS v= n=x [] node NACK 13 refused: b")
	if all.have["a"] != "1" || all.lastErr == nil || !strings.Contains(all.lastErr.Error(), "connect_timeout") {
		t.Error(all.have, all.lastErr)
	}
}

func TestPauseGathers(t *testing.T) {
	for _, delta := range []bool{false, true} {
		p := newPlane(t, adsSource(delta)).start()
		x := p.stream()
		resume := p.streams.Pause(xdstype.Endpoint)
		for _, n := range []string{"a", "b", "c"} {
			p.want(overADS(0), xdstype.Endpoint, &mirror{}, n)
		}
		p.want(overADS(0), xdstype.Cluster, &mirror{})
		next, want := p.request, []string{"CDS v= n= [] node", "EDS v= n= [a b c] node"}
		if delta {
			next, want = p.delta, []string{"CDS n= +[] -[] node", "EDS n= +[a b c] -[] node"}
		}
		p.expect(x, next, want[0])
		p.quiet(x)
		resume()
		p.expect(x, next, want[1])
		p.quiet(x)
	}
}

// The answer to an update waits while the type is held back.
func TestPauseHoldsTheAnswer(t *testing.T) {
	p := newPlane(t, adsSource(false)).start()
	all := &mirror{}
	p.want(overADS(0), xdstype.Cluster, all)
	x := p.stream()
	p.expect(x, p.request, "CDS v= n= [] node")
	resume := p.streams.Pause(xdstype.Cluster)
	x.Send(cds("1", "x", "a"))
	p.until("the update", func() bool { return all.updates == 1 })
	p.quiet(x)
	resume()
	p.expect(x, p.request, "CDS v=1 n=x [] node")
}

func TestReconnect(t *testing.T) {
	a := adsSource(false)
	a.SetNodeOnFirstMessageOnly = true
	p := newPlane(t, a).start()
	all, one := &mirror{}, &mirror{}
	_, n := p.want(overADS(0), xdstype.Cluster, all)
	p.want(overADS(0), xdstype.Endpoint, one, "a", "b")
	x := p.stream()
	p.expect(x, p.request, "CDS v= n= [] node", "EDS v= n= [a b]")
	x.Send(cds("1", "x", "a"))
	p.expect(x, p.request, "CDS v=1 n=x []")
	x.End(13, "enough")
	p.until("the end", func() bool { return p.stat("control_plane.connected_state") == 0 })
	if want := "StreamAggregatedResources gRPC config stream to xds closed: 13, enough"; len(p.warns) != 1 || p.warns[0] != want {
		t.Error(p.warns)
	}
	if all.failures != 1 || n("update_failure") != 1 {
		t.Error(all.failures, n("update_failure"))
	}
	p.clock.ahead += 500 * time.Millisecond
	x = p.stream()
	p.expect(x, p.request, "CDS v=1 n= [] node", "EDS v= n= [a b]")
	x.Send(cds("1", "x2", "a"))
	p.expect(x, p.request, "CDS v=1 n=x2 []")
	if all.updates != 2 || len(all.told) != 0 || all.same != 1 {
		t.Error(all.updates, all.told, all.same)
	}
}

// The wait between tries grows up to its bound, chance takes a part of it, and an answer begins it anew.
func TestBackOff(t *testing.T) {
	a := adsSource(false)
	a.GrpcServices[0].RetryPolicy = &corev3.RetryPolicy{RetryBackOff: &corev3.BackoffStrategy{
		BaseInterval: durationpb.New(time.Hour), MaxInterval: durationpb.New(3 * time.Hour)}}
	p := newPlane(t, a).start()
	p.want(overADS(0), xdstype.Cluster, &mirror{})
	for i, most := range []time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour, 3 * time.Hour} {
		x := p.stream()
		x.End(14, "no")
		p.until("the end", func() bool { return p.stat("control_plane.connected_state") == 0 })
		select {
		case <-p.server.Streams():
			t.Fatal("it did not wait")
		default:
		}
		if i == 0 && len(p.warns) != 0 {
			t.Error("once is not worth a warning:", p.warns)
		}
		p.clock.ahead += most
	}
	if last := p.warns[len(p.warns)-1]; !strings.HasPrefix(last, "StreamAggregatedResources gRPC config stream to xds closed since ") || !strings.HasSuffix(last, "s ago: 14, no") {
		t.Error(p.warns)
	}
	x := p.stream()
	p.expect(x, p.request, "CDS v= n= [] node")
	x.Send(cds("1", "x"))
	p.expect(x, p.request, "CDS v=1 n=x [] node")
	x.End(14, "no")
	p.until("the end", func() bool { return p.stat("control_plane.connected_state") == 0 })
	p.clock.ahead += time.Hour
	p.stream()
}

func TestFetchTimeout(t *testing.T) {
	p := newPlane(t, adsSource(false)).start()
	one, never, soon := &mirror{}, &mirror{}, &mirror{}
	_, n := p.want(&corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}}, xdstype.Endpoint, one, "a")
	p.want(overADS(0), xdstype.Endpoint, never, "b")
	p.want(overADS(15*time.Second), xdstype.Endpoint, soon, "c")
	x := p.stream()
	p.expect(x, p.request, "EDS v= n= [a] node", "EDS v= n= [a b] node", "EDS v= n= [a b c] node")
	x.Send(eds("1", "x", endpointOf("c", 1)))
	p.expect(x, p.request, "EDS v=1 n=x [a b c] node")
	p.clock.ahead += 14 * time.Second
	p.quiet(x)
	if one.failures != 0 {
		t.Error("too early")
	}
	p.clock.ahead += 2 * time.Second
	p.until("the end of the wait", func() bool { return one.failures == 1 })
	if n("init_fetch_timeout") != 1 || never.failures != 0 || soon.failures != 0 {
		t.Error(n("init_fetch_timeout"), never.failures, soon.failures)
	}
}

func TestRateLimit(t *testing.T) {
	a := adsSource(false)
	a.RateLimitSettings = &corev3.RateLimitSettings{MaxTokens: wrapperspb.UInt32(2), FillRate: wrapperspb.Double(1)}
	p := newPlane(t, a).start()
	x := p.stream()
	for i := range 4 {
		p.want(overADS(0), xdstype.Endpoint, &mirror{}, fmt.Sprint(i))
	}
	p.expect(x, p.request, "EDS v= n= [0] node", "EDS v= n= [0 1] node")
	p.quiet(x)
	if p.stat("control_plane.rate_limit_enforced") == 0 || p.stat("control_plane.pending_requests") != 2 {
		t.Error(p.stat("control_plane.rate_limit_enforced"), p.stat("control_plane.pending_requests"))
	}
	p.clock.ahead += 1100 * time.Millisecond
	p.expect(x, p.request, "EDS v= n= [0 1 2 3] node")
	p.clock.ahead += 1100 * time.Millisecond
	p.expect(x, p.request, "EDS v= n= [0 1 2 3] node")
	p.until("nothing waits", func() bool { return p.stat("control_plane.pending_requests") == 0 })
}

// What only listeners need is asked for when there are clusters, and not before what was subscribed to later.
func TestRoutesComeAfterClusters(t *testing.T) {
	p := newPlane(t, adsSource(false))
	p.want(overADS(0), xdstype.Route, &mirror{}, "r")
	p.want(overADS(0), xdstype.Cluster, &mirror{})
	p.streams.Start()
	x := p.stream()
	p.expect(x, p.request, "CDS v= n= [] node")
	p.quiet(x)
	p.streams.Listen()
	p.expect(x, p.request, "RDS v= n= [r] node")
	x.End(13, "")
	p.until("the end", func() bool { return p.stat("control_plane.connected_state") == 0 })
	p.clock.ahead += 500 * time.Millisecond
	p.expect(p.stream(), p.request, "CDS v= n= [] node", "RDS v= n= [r] node")
}

// Each subscription by api_config_source has its own stream, to the service of its type.
func TestStreamsOfTheirOwn(t *testing.T) {
	for _, c := range []struct {
		url   string
		delta bool
		path  string
	}{
		{xdstype.Cluster, false, "cluster.v3.ClusterDiscoveryService/StreamClusters"},
		{xdstype.Cluster, true, "cluster.v3.ClusterDiscoveryService/DeltaClusters"},
		{xdstype.Endpoint, false, "endpoint.v3.EndpointDiscoveryService/StreamEndpoints"},
		{xdstype.Listener, true, "listener.v3.ListenerDiscoveryService/DeltaListeners"},
		{xdstype.Route, false, "route.v3.RouteDiscoveryService/StreamRoutes"},
		{xdstype.ScopedRoute, false, "route.v3.ScopedRoutesDiscoveryService/StreamScopedRoutes"},
		{xdstype.Secret, true, "secret.v3.SecretDiscoveryService/DeltaSecrets"},
	} {
		p := newPlane(t, nil).start()
		m := &mirror{}
		s, _ := p.want(overAPI(adsSource(c.delta)), c.url, m)
		x := p.stream()
		if x.Path != "/envoy.service."+c.path {
			t.Error(x.Path)
		}
		next, want := p.request, "v= n= [] node"
		if c.delta {
			next, want = p.delta, "n= +[] -[] node"
		}
		if got := next(x); !strings.HasSuffix(got, want) {
			t.Error(got)
		}
		if p.stat("s1.control_plane.connected_state") != 1 {
			t.Error("it is not connected")
		}
		s.Close()
		p.until("the end at the peer", func() bool {
			select {
			case _, ok := <-x.Requests():
				return !ok
			default:
				return false
			}
		})
		if strings.Contains(p.text(), "s1.control_plane") {
			t.Error("the statistics of the stream stay")
		}
	}
}

// A large update is applied in steps, between which the main loop does other things, and what comes meanwhile waits.
func TestLargeResponsesGiveWay(t *testing.T) {
	p := newPlane(t, adsSource(false)).start()
	all := &stepper{}
	p.want(overADS(0), xdstype.Cluster, all)
	x := p.stream()
	p.expect(x, p.request, "CDS v= n= [] node")
	var list []string
	for i := range 2000 {
		list = append(list, fmt.Sprintf("c%d", i))
	}
	p.clock.tick = 30 * time.Microsecond
	x.Send(cds("1", "x", list...))
	x.Send(cds("2", "y", "c1"))
	p.until("the first step", func() bool { return all.steps > 0 })
	passes := 0
	for last := all.steps; all.steps < 2000; last = all.steps {
		p.main.Step(false)
		if d := all.steps - last; d > 60 {
			t.Fatalf("%d steps in one pass", d)
		} else if d > 0 {
			passes++
		}
	}
	p.clock.tick = 0
	if passes < 5 {
		t.Error("passes:", passes)
	}
	p.expect(x, p.request, "CDS v=1 n=x [] node", "CDS v=2 n=y [] node")
	if len(all.have) != 1 {
		t.Error(len(all.have))
	}
}

func TestCloseInTheMiddleOfAResponse(t *testing.T) {
	p := newPlane(t, adsSource(false)).start()
	subs := map[string]interface{ Close() }{}
	told := ""
	for _, n := range []string{"a", "b", "c"} {
		subs[n], _ = p.want(overADS(0), xdstype.Endpoint, callback(func() {
			told += n
			if n == "a" {
				subs["b"].Close()
				subs["a"].Close()
			}
		}), n)
	}
	x := p.stream()
	p.expect(x, p.request, "EDS v= n= [a] node", "EDS v= n= [a b] node", "EDS v= n= [a b c] node")
	x.Send(eds("1", "x", endpointOf("a", 1), endpointOf("b", 1), endpointOf("c", 1)))
	p.expect(x, p.request, "EDS v=1 n=x [c] node")
	if told != "ac" {
		t.Error(told)
	}
}

// One who refuses its part of a response does not stand in the way of the others.
func TestOthersAreTold(t *testing.T) {
	p := newPlane(t, adsSource(false)).start()
	bad := &refuser{}
	_, n1 := p.want(overADS(0), xdstype.Endpoint, bad, "a")
	good := &mirror{}
	_, n2 := p.want(overADS(0), xdstype.Endpoint, good, "b")
	x := p.stream()
	p.expect(x, p.request, "EDS v= n= [a] node", "EDS v= n= [a b] node")
	x.Send(eds("1", "x", endpointOf("a", 1), endpointOf("b", 1)))
	p.expect(x, p.request, "EDS v= n=x [a b] node NACK 13 it cannot be taken")
	if good.have["b"] != "1" || n1("update_rejected") != 1 || n2("update_rejected") != 0 || n2("update_success") != 1 {
		t.Error(good.have, n1("update_rejected"), n2("update_rejected"), n2("update_success"))
	}
	// The same bytes are shown again to who has refused them, not to who has taken them.
	x.Send(eds("2", "y", endpointOf("a", 1), endpointOf("b", 1)))
	p.expect(x, p.request, "EDS v= n=y [a b] node NACK 13 it cannot be taken")
	if bad.updates != 2 || !slices.Equal(good.told, []string{"b="}) {
		t.Error(bad.updates, good.told)
	}
}

// refuser refuses everything that has a body.
type refuser struct{ updates int }

func (r *refuser) OnUpdate(u *sub.Update) error {
	if len(u.Resources) == 1 && u.Resources[0].Body != nil {
		r.updates++
		return errors.New("it cannot be taken")
	}
	return nil
}

func (r *refuser) OnFailure(sub.Reason, error) {}

func TestNackIsBounded(t *testing.T) {
	p := newPlane(t, adsSource(false)).start()
	p.want(overADS(0), xdstype.Cluster, &verbose{})
	x := p.stream()
	p.expect(x, p.request, "CDS v= n= [] node")
	x.Send(cds("1", "x", "a"))
	r, err := xdstype.ParseRequest(p.recv(x))
	if err != nil || r.Error == nil || len(r.Error.Message) != 4096+len("...(truncated)") {
		t.Errorf("%v, %d bytes", err, len(r.Error.Message))
	}
	x.Send(cds("2", "y"))
	if r, err = xdstype.ParseRequest(p.recv(x)); err != nil || r.Error == nil || len(r.Error.Message) != 4096 {
		t.Errorf("%v, %d bytes", err, len(r.Error.Message))
	}
}

// verbose refuses with a long text: of 4097 bytes for one resource, of 4096 for none.
type verbose struct{}

func (verbose) OnUpdate(u *sub.Update) error {
	return errors.New(strings.Repeat("x", 4096+len(u.Resources)))
}

func (verbose) OnFailure(sub.Reason, error) {}

func TestSourcesThatAreRefused(t *testing.T) {
	p := newPlane(t, nil).start()
	edit := func(f func(a *corev3.ApiConfigSource)) *corev3.ConfigSource {
		a := adsSource(false)
		f(a)
		return overAPI(a)
	}
	p.sources.ADS = func() bool { return false }
	for _, c := range []struct {
		from *corev3.ConfigSource
		want string
	}{
		{overADS(0), "ads: ADS must be configured to support an ADS config source"},
		{&corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Self{Self: &corev3.SelfConfigSource{}}}, "Missing config source specifier in envoy::config::core::v3::ConfigSource"},
		{edit(func(a *corev3.ApiConfigSource) { a.ApiType = corev3.ApiConfigSource_AGGREGATED_GRPC }), "api_config_source.api_type: Unsupported config source AGGREGATED_GRPC"},
		{edit(func(a *corev3.ApiConfigSource) {
			a.ApiType, a.ClusterNames, a.GrpcServices, a.RefreshDelay = corev3.ApiConfigSource_REST, []string{"c"}, nil, durationpb.New(1)
		}), "api_config_source.api_type: not supported yet"},
		{edit(func(a *corev3.ApiConfigSource) {
			a.GrpcServices[0].TargetSpecifier = &corev3.GrpcService_GoogleGrpc_{GoogleGrpc: &corev3.GrpcService_GoogleGrpc{TargetUri: "x"}}
		}), "api_config_source.grpc_services[0].google_grpc: not supported yet"},
		{edit(func(a *corev3.ApiConfigSource) {
			a.GrpcServices[0].InitialMetadata = []*corev3.HeaderValue{{Key: "k", Value: "%ENVIRONMENT(X)%"}}
		}), "api_config_source.grpc_services[0].initial_metadata[0].value: operators are not supported yet"},
		{edit(func(a *corev3.ApiConfigSource) { a.GrpcServices[0].GetEnvoyGrpc().RetryPolicy = &corev3.RetryPolicy{} }), "api_config_source.grpc_services[0].envoy_grpc.retry_policy: not supported yet"},
	} {
		_, err := p.sources.Subscribe(c.from, xdstype.Cluster, nil, sub.Stats{}, &mirror{})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
