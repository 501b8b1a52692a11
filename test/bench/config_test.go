package bench_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// obj and list are JSON.
type (
	obj  map[string]any
	list []any
)

// typed is an obj with its @type.
func typed(name string, o obj) obj {
	o["@type"] = "type.googleapis.com/envoy." + name
	return o
}

func address(hostPort string) obj {
	host, port, _ := net.SplitHostPort(hostPort)
	return obj{"socket_address": obj{"address": host, "port_value": json.Number(port)}}
}

// world is a configuration in files that change: clusters, of which every tenth finds its endpoint by EDS, a route to each, and a
// certificate. It is written in JSON; the proxy watches the files.
type world struct {
	tb       testing.TB
	dir      string
	clusters []cluster
	order    []int // of the virtual hosts
	certs    int
	version  int
	routes   int                // the version of the routes
	header   string             // one that all routes add; "" for none
	routesOf func(cluster) list // of a cluster's virtual host; nil: one to the cluster
}

type cluster struct {
	name     string
	upstream string // host:port
	timeout  int    // connect_timeout in seconds: what a change changes
	eds      bool
}

// upstreams are servers that all answer alike.
type upstreams struct{ list []string }

func newWorld(tb testing.TB, n int, up upstreams) *world {
	w := &world{tb: tb, dir: tb.TempDir()}
	for i := range n {
		w.clusters = append(w.clusters, newCluster(i, up))
		w.order = append(w.order, i)
	}
	w.writeCDS()
	w.writeEDS()
	w.writeRDS()
	w.writeSDS()
	w.write("lds.json", w.listeners())
	file := func(name string) obj { return obj{"path_config_source": obj{"path": w.path(name)}} }
	w.write("boot.json", obj{
		"node": obj{"id": "bench", "cluster": "bench"}, "stats_flush_interval": "1s",
		"dynamic_resources": obj{"cds_config": file("cds.json"), "lds_config": file("lds.json")},
	})
	return w
}

func newCluster(i int, up upstreams) cluster {
	return cluster{name: fmt.Sprintf("outbound|80||service-%d.namespace.svc.cluster.local", i), upstream: up.list[i%len(up.list)],
		timeout: 5, eds: i%10 == 3}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// write replaces a file in one go.
func (w *world) write(name string, content any) {
	b, err := json.Marshal(content)
	if err == nil {
		err = os.WriteFile(w.path("."+name), b, 0o600)
	}
	if err == nil {
		err = os.Rename(w.path("."+name), w.path(name))
	}
	if err != nil {
		w.tb.Fatal(err)
	}
}

// resources writes a discovery response of the next version.
func (w *world) resources(name string, l list) {
	w.version++
	w.write(name, obj{"version_info": fmt.Sprint(w.version), "resources": l})
}

func (w *world) writeCDS() {
	var l list
	for _, c := range w.clusters {
		o := typed("config.cluster.v3.Cluster", obj{"name": c.name, "connect_timeout": fmt.Sprintf("%ds", c.timeout), "type": "STATIC"})
		if c.eds {
			o["type"] = "EDS"
			o["eds_cluster_config"] = obj{"eds_config": obj{"path_config_source": obj{"path": w.path("eds.json")}}}
		} else {
			o["load_assignment"] = assignment(c)
		}
		l = append(l, o)
	}
	w.resources("cds.json", l)
}

func assignment(c cluster) obj {
	return obj{"cluster_name": c.name, "endpoints": list{obj{"lb_endpoints": list{obj{"endpoint": obj{"address": address(c.upstream)}}}}}}
}

func (w *world) writeEDS() {
	var l list
	for _, c := range w.clusters {
		if c.eds {
			l = append(l, typed("config.endpoint.v3.ClusterLoadAssignment", assignment(c)))
		}
	}
	w.resources("eds.json", l)
}

// writeRDS writes a virtual host for each cluster, and one that tells its version.
func (w *world) writeRDS() {
	w.routes = w.version + 1
	hosts := list{obj{"name": "version", "domains": list{"version"}, "routes": list{obj{"match": obj{"prefix": "/"},
		"direct_response": obj{"status": 200, "body": obj{"inline_string": fmt.Sprint(w.routes)}}}}}}
	for _, i := range w.order {
		c := w.clusters[i]
		routes := list{obj{"match": obj{"prefix": "/"}, "route": obj{"cluster": c.name, "timeout": "0s"}}}
		if w.routesOf != nil {
			routes = w.routesOf(c)
		}
		hosts = append(hosts, obj{"name": c.name, "domains": list{fmt.Sprint("h", i)}, "routes": routes})
	}
	rc := typed("config.route.v3.RouteConfiguration", obj{"name": "routes", "virtual_hosts": hosts})
	if w.header != "" {
		rc["response_headers_to_add"] = list{obj{"header": obj{"key": "x-push", "value": w.header}}}
	}
	w.resources("rds.json", list{rc})
}

func (w *world) writeSDS() {
	w.certs++
	cert, key := certificate(w.tb, fmt.Sprint("cert-", w.certs))
	w.resources("sds.json", list{typed("extensions.transport_sockets.tls.v3.Secret", obj{"name": "cert", "tls_certificate": obj{
		"certificate_chain": obj{"inline_string": cert}, "private_key": obj{"inline_string": key}}})})
}

func (w *world) listeners() obj {
	rds := obj{"route_config_name": "routes", "config_source": obj{"path_config_source": obj{"path": w.path("rds.json")}}}
	filters := list{obj{"name": "hcm", "typed_config": typed("extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", obj{
		"stat_prefix": "main", "rds": rds, "stream_idle_timeout": "0s",
		"http_filters": list{obj{"name": "router", "typed_config": typed("extensions.filters.http.router.v3.Router", obj{})}}})}}
	secret := obj{"name": "cert", "sds_config": obj{"path_config_source": obj{"path": w.path("sds.json")}}}
	tls := obj{"name": "tls", "typed_config": typed("extensions.transport_sockets.tls.v3.DownstreamTlsContext", obj{
		"common_tls_context": obj{"alpn_protocols": list{"h2", "http/1.1"}, "tls_certificate_sds_secret_configs": list{secret}}})}
	listener := func(name string, chain obj) obj {
		return typed("config.listener.v3.Listener", obj{"name": name, "address": address("127.0.0.1:0"), "filter_chains": list{chain}})
	}
	return obj{"version_info": "1", "resources": list{
		listener("plain", obj{"filters": filters}), listener("tls", obj{"filters": filters, "transport_socket": tls})}}
}

// swapRoutes puts the virtual hosts into another order.
func (w *world) swapRoutes(step int) {
	n := len(w.order)
	slices.Reverse(w.order[:n/2])
	w.order[step%n], w.order[n-1-step%n] = w.order[n-1-step%n], w.order[step%n]
	w.writeRDS()
}
