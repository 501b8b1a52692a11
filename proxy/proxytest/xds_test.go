package proxytest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dragoman-proxy/dragoman/internal/xdstest"
	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

// control answers each first question for a type with one resource, and tells of the answers that come back.
type control struct {
	t     *testing.T
	delta bool

	mu        sync.Mutex
	stream    *xdstest.Stream
	resources map[string]xdstype.Any
	acks      chan string // "RDS 2", "RDS NACK text"
	serial    int
}

func (c *control) set(url, name string, m proto.Message, text string) {
	c.t.Helper()
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		c.t.Fatal(err)
	}
	b, err := proto.Marshal(m)
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resources[url] = xdstype.Any{TypeURL: url, Value: b}
	if c.stream != nil {
		c.send(url, name)
	}
}

// setRuntime sets the runtime layer, in which k is a number.
func (c *control) setRuntime(k float64) {
	layer, err := structpb.NewStruct(map[string]any{"k": k})
	if err != nil {
		c.t.Fatal(err)
	}
	b, err := proto.Marshal(layer)
	if err != nil {
		c.t.Fatal(err)
	}
	value := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "layer")
	value = protowire.AppendBytes(protowire.AppendTag(value, 2, protowire.BytesType), b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resources[xdstype.Runtime] = xdstype.Any{TypeURL: xdstype.Runtime, Value: value}
	if c.stream != nil {
		c.send(xdstype.Runtime, "layer")
	}
}

// send sends the resource of a type. The mutex is held.
func (c *control) send(url, name string) {
	c.serial++
	v := fmt.Sprint(c.serial)
	if c.delta {
		c.stream.SendDelta(&xdstype.DeltaResponse{TypeURL: url, Nonce: v, Resources: []xdstype.Resource{{Name: name, Version: v, HasAny: true, Any: c.resources[url]}}})
		return
	}
	c.stream.Send(&xdstype.Response{TypeURL: url, Version: v, Nonce: v, Resources: []xdstype.Any{c.resources[url]}})
}

var nameOf = map[string]string{xdstype.Runtime: "layer", xdstype.Cluster: "backend", xdstype.Endpoint: "backend", xdstype.Listener: "main", xdstype.Route: "r"}

// serve answers what is asked on the first stream until it ends.
func (c *control) serve(s *xdstest.Server) {
	var x *xdstest.Stream
	select {
	case x = <-s.Streams():
	case <-c.t.Context().Done():
		return
	}
	c.mu.Lock()
	c.stream = x
	c.mu.Unlock()
	asked := map[string]bool{}
	for b := range x.Requests() {
		url, nonce := "", ""
		var e *xdstype.Status
		if c.delta {
			r, _ := xdstype.ParseDeltaRequest(b)
			url, nonce, e = r.TypeURL, r.Nonce, r.Error
		} else {
			r, _ := xdstype.ParseRequest(b)
			url, nonce, e = r.TypeURL, r.Nonce, r.Error
		}
		switch {
		case e != nil:
			c.acks <- xdstype.Short(url) + " NACK " + e.Message
		case nonce != "":
			c.acks <- xdstype.Short(url)
		}
		if !asked[url] {
			asked[url] = true
			c.mu.Lock()
			c.send(url, nameOf[url])
			c.mu.Unlock()
		}
	}
}

// ack waits for the next answer.
func (c *control) ack() string {
	c.t.Helper()
	select {
	case a := <-c.acks:
		return a
	case <-time.After(20 * time.Second):
		c.t.Fatal("no answer came")
		return ""
	}
}

// until waits for an answer, past others that are no NACKs.
func (c *control) until(want string) {
	c.t.Helper()
	for {
		switch a := c.ack(); {
		case a == want:
			return
		case strings.Contains(a, "NACK"):
			c.t.Fatal(a)
		}
	}
}

// Everything comes over ADS, in both of its forms, and changes; what is bad changes nothing.
func TestADS(t *testing.T) {
	for _, kind := range []string{"GRPC", "DELTA_GRPC"} {
		t.Run(kind, func(t *testing.T) {
			s := xdstest.Start(t)
			c := &control{t: t, delta: kind == "DELTA_GRPC", resources: map[string]xdstype.Any{}, acks: make(chan string, 64)}
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				_, _ = fmt.Fprint(w, "backend ", q.Header.Get("x-version"))
			}))
			t.Cleanup(up.Close)
			host, port, _ := strings.Cut(s.Addr, ":")
			const ads = `{"ads": {}, "resource_api_version": "V3"}`
			c.set(xdstype.Cluster, "", &clusterv3.Cluster{}, `{"name": "backend", "type": "EDS", "eds_cluster_config": {"eds_config": `+ads+`}}`)
			listener := func(name, routes string) string {
				return `{"name": "` + name + `", "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
"filter_chains": [{"filters": [{"name": "hcm", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
"stat_prefix": "x", "rds": {"route_config_name": "` + routes + `", "config_source": ` + ads + `},
"http_filters": [{"name": "router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}]}]}`
			}
			c.set(xdstype.Listener, "", &listenerv3.Listener{}, listener("main", "r"))
			routes := func(value, domain string) string {
				return `{"name": "r", "virtual_hosts": [{"name": "v", "domains": ["*"` + domain + `], "request_headers_to_add": [{"header": {"key": "x-version", "value": "` + value + `"}}],
"routes": [{"match": {"prefix": "/"}, "route": {"cluster": "backend"}}]}]}`
			}
			c.set(xdstype.Route, "", &routev3.RouteConfiguration{}, routes("1", ""))
			bhost, bport, _ := strings.Cut(up.Listener.Addr().String(), ":")
			c.set(xdstype.Endpoint, "", &endpointv3.ClusterLoadAssignment{}, `{"cluster_name": "backend", "endpoints": [{"lb_endpoints": [{"endpoint": {"address":
{"socket_address": {"address": "`+bhost+`", "port_value": `+bport+`}}}}]}]}`)
			c.setRuntime(5)
			var serving sync.WaitGroup
			serving.Go(func() { c.serve(s) })
			t.Cleanup(serving.Wait)
			p := proxytest.Start(t, `
node: {id: me, cluster: c}
dynamic_resources:
  ads_config: {api_type: `+kind+`, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}
  cds_config: {ads: {}, resource_api_version: V3}
  lds_config: {ads: {}, resource_api_version: V3}
layered_runtime: {layers: [{name: base, static_layer: {k: 1}}, {name: far, rtds_layer: {name: layer, rtds_config: {ads: {}, resource_api_version: V3}}}]}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  clusters:
  - name: xds
    load_assignment: {cluster_name: xds, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: `+host+`, port_value: `+port+`}}}}]}]}
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
`)
			get := func() string { return p.Get("/").Body }
			if a := c.ack(); a != "RTDS" {
				t.Fatalf("%s came before the runtime", a)
			}
			for range 4 {
				if a := c.ack(); strings.Contains(a, "NACK") {
					t.Fatal(a)
				}
			}
			if b := p.Admin("GET", "/runtime").Body; !strings.Contains(b, `"final_value": "5"`) {
				t.Error(b)
			}
			c.setRuntime(6)
			if a := c.ack(); a != "RTDS" {
				t.Fatal(a)
			}
			if b := p.Admin("GET", "/runtime").Body; !strings.Contains(b, `"final_value": "6"`) {
				t.Error(b)
			}
			if b := get(); b != "backend 1" {
				t.Fatal(b)
			}
			c.set(xdstype.Route, "r", &routev3.RouteConfiguration{}, routes("2", ""))
			if a := c.ack(); a != "RDS" {
				t.Fatal(a)
			}
			if b := get(); b != "backend 2" {
				t.Fatal(b)
			}
			c.set(xdstype.Route, "r", &routev3.RouteConfiguration{}, routes("3", `, "*"`))
			if a := c.ack(); !strings.HasPrefix(a, "RDS NACK ") || !strings.HasSuffix(a, "Only a single wildcard domain is permitted in route r") {
				t.Fatal(a)
			}
			if b := get(); b != "backend 2" {
				t.Fatal(b)
			}
			// A listener whose routes have not come is named as waiting, and not among those that listen.
			c.set(xdstype.Listener, "second", &listenerv3.Listener{}, listener("second", "late"))
			c.until("LDS")
			if b := p.Admin("GET", "/listeners").Body; strings.Contains(b, "second") {
				t.Error(b)
			}
			if b := p.Admin("GET", "/init_dump").Body; !strings.Contains(b, "init manager Listener-local-init-manager second ") ||
				!strings.Contains(b, "shared target RdsRouteConfigSubscription RDS init late") {
				t.Error(b)
			}
			p.Await("listener_manager.total_listeners_warming", "1")
			c.set(xdstype.Route, "late", &routev3.RouteConfiguration{}, strings.Replace(routes("4", ""), `"r"`, `"late"`, 1))
			p.Await("listener_manager.total_listeners_warming", "0")
			if b := p.Admin("GET", "/listeners").Body; !strings.Contains(b, "second") {
				t.Error(b)
			}
		})
	}
}
