package cluster_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3" // the configuration has it
)

// named is a factory that fails with its name.
type named string

func (n named) New(*event.Worker, *host.Host, []string) (conn.Transport, string) {
	return nil, string(n)
}

func TestTransportSocketMatches(t *testing.T) {
	r := newRig(t, 1)
	r.deps.Transport = func(_ string, ts *corev3.TransportSocket, _ apistats.Scope) (pool.TransportFactory, error) {
		return named(ts.GetName()), nil
	}
	ep := func(i int, labels string) string {
		return fmt.Sprintf("{endpoint: {address: {socket_address: {address: 10.0.0.%d, port_value: 80}}}, metadata: {filter_metadata: {envoy.transport_socket_match: {%s}}}}", i, labels)
	}
	c := r.add("{name: a, transport_socket: {name: other}, transport_socket_matches: [" +
		"{name: both, match: {x: '1', y: '2'}, transport_socket: {name: both}}, {name: one, match: {x: '1'}, transport_socket: {name: one}}, " +
		"{name: plain, match: {p: true}, transport_socket: {name: envoy.transport_sockets.raw_buffer, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer}}}], " +
		"load_assignment: {cluster_name: a, endpoints: [{lb_endpoints: [" + ep(1, "x: '1', y: '2', z: '3'") + ", " + ep(2, "x: '1'") + ", " +
		ep(3, "x: '2'") + ", " + ep(4, "p: true") + "]}, " +
		"{metadata: {filter_metadata: {envoy.transport_socket_match: {x: '1'}}}, lb_endpoints: [" + ep(5, "q: '1'") + ", " + ep(6, "p: true") + "]}]}}")
	var got []string
	for _, h := range c.Hosts() {
		_, name := c.Pools().Transport.New(r.workers[0], h, nil)
		got = append(got, name)
	}
	if d := cmp.Diff([]string{"both", "one", "other", "", "one", ""}, got); d != "" {
		t.Error(d)
	}
	r.want(map[string]string{"cluster.a.both.total_match_count": "1", "cluster.a.one.total_match_count": "2",
		"cluster.a.plain.total_match_count": "2", "cluster.a.default.total_match_count": "1"})
	c = r.add("{name: b, transport_socket_matches: [{name: any, match: {}, transport_socket: {name: any}}], " + static("b", "10.0.0.1:80")[len("{name: b, "):])
	if _, name := c.Pools().Transport.New(r.workers[0], c.Hosts()[0], nil); name != "any" {
		t.Errorf("an empty match does not fit: %q", name)
	}
}
