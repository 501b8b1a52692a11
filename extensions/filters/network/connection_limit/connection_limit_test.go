package connection_limit_test

import (
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	limitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/connection_limit/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/extensions/filters/network/connection_limit"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest/filtertest"
)

// rig makes connections of one chain.
type rig struct {
	ctx *filtertest.Context
	mk  func(d network.Dispatcher) network.ReadFilter
}

func newRig(t *testing.T, cfg *limitv3.ConnectionLimit) *rig {
	t.Helper()
	r := &rig{ctx: filtertest.NewContext()}
	cfg.StatPrefix = "p"
	var err error
	if r.mk, err = connection_limit.Extension.New(cfg, r.ctx); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) connect() *filtertest.Network { return r.ctx.ConnectWith(r.mk, network.ConnInfo{}) }

func (r *rig) want(t *testing.T, active, limited uint64) {
	t.Helper()
	want := map[string]uint64{}
	if active > 0 {
		want["connection_limit.p.active_connections"] = active
	}
	if limited > 0 {
		want["connection_limit.p.limited_connections"] = limited
	}
	if d := cmp.Diff(want, r.ctx.Stats()); d != "" {
		t.Errorf("stats (-want +got):\n%s", d)
	}
}

func TestLimit(t *testing.T) {
	const most = 3
	r := newRig(t, &limitv3.ConnectionLimit{MaxConnections: wrapperspb.UInt64(most)})
	var last *filtertest.Network
	for range most {
		last = r.connect()
		if last.Receive("x", false); last.Passed != "x" || last.Closed != "" {
			t.Fatalf("refused at the limit: %q", last.Closed)
		}
	}
	over := r.connect()
	if over.Receive("x", false); over.Passed != "" || over.Closed != "no flush: over_connection_limit" {
		t.Errorf("past the limit: passed %q, closed %q", over.Passed, over.Closed)
	}
	r.want(t, most+1, 1)
	over.Event(network.LocalClose)
	r.want(t, most, 1)
	// The refused one did not take a place; one that leaves gives its place back.
	if again := r.connect(); again.Closed == "" {
		t.Error("the end of a refused connection made room")
	} else {
		again.Event(network.LocalClose)
	}
	last.Event(network.RemoteClose)
	if c := r.connect(); c.Closed != "" {
		t.Errorf("there was room: %q", c.Closed)
	}
	r.want(t, most, 2)
}

func TestDelay(t *testing.T) {
	r := newRig(t, &limitv3.ConnectionLimit{MaxConnections: wrapperspb.UInt64(1), Delay: durationpb.New(time.Second)})
	r.connect()
	over := r.connect()
	r.ctx.Advance(time.Second - time.Millisecond)
	if over.Closed != "" {
		t.Fatal("closed before the delay")
	}
	r.ctx.Advance(2 * time.Millisecond)
	if over.Closed == "" {
		t.Error("not closed after the delay")
	}
	// One that leaves by itself is not closed again.
	gone := r.connect()
	gone.Event(network.RemoteClose)
	r.ctx.Advance(2 * time.Second)
	if gone.Closed != "" {
		t.Errorf("closed after its end: %q", gone.Closed)
	}
}

func TestDisabled(t *testing.T) {
	r := newRig(t, &limitv3.ConnectionLimit{MaxConnections: wrapperspb.UInt64(1),
		RuntimeEnabled: &corev3.RuntimeFeatureFlag{DefaultValue: wrapperspb.Bool(false)}})
	for range 3 {
		if c := r.connect(); c.Closed != "" || c.Status != network.Continue {
			t.Errorf("closed %q", c.Closed)
		}
	}
	r.want(t, 0, 0)
}
