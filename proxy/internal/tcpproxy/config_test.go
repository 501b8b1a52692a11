package tcpproxy_test

import (
	"fmt"
	"strings"
	"testing"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/tcpproxy"
)

func TestRefused(t *testing.T) {
	for name, change := range map[string]func(p *tcpv3.TcpProxy){
		"tunneling_config":    func(p *tcpv3.TcpProxy) { p.TunnelingConfig = &tcpv3.TcpProxy_TunnelingConfig{Hostname: "a"} },
		"on_demand":           func(p *tcpv3.TcpProxy) { p.OnDemand = &tcpv3.TcpProxy_OnDemand{} },
		"metadata_match":      func(p *tcpv3.TcpProxy) { p.MetadataMatch = &corev3.Metadata{} },
		"proxy_protocol_tlvs": func(p *tcpv3.TcpProxy) { p.ProxyProtocolTlvs = []*corev3.TlvEntry{{}} },
		"hash_policy": func(p *tcpv3.TcpProxy) {
			p.HashPolicy = []*typev3.HashPolicy{{PolicySpecifier: &typev3.HashPolicy_FilterState_{FilterState: &typev3.HashPolicy_FilterState{}}}}
		},
		"max_early_data_bytes": func(p *tcpv3.TcpProxy) { p.UpstreamConnectMode = tcpv3.UpstreamConnectMode_ON_DOWNSTREAM_DATA },
	} {
		p := &tcpv3.TcpProxy{StatPrefix: "t", ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: "up"}}
		change(p)
		store := stats.NewStore()
		_, err := tcpproxy.New(p, &tcpproxy.Deps{Root: store.Root(), Slot: func(string) *cluster.Slot { return nil },
			AccessLogs: func([]*accesslogv3.AccessLog) (accesslog.Loggers, error) { return nil, nil }})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWeightedClusters(t *testing.T) {
	a, b := upstream(t), upstream(t)
	r := newRig(t, kinds()[0], a.Addr(), options{proxy: func(p *tcpv3.TcpProxy) {
		p.ClusterSpecifier = &tcpv3.TcpProxy_WeightedClusters{WeightedClusters: &tcpv3.TcpProxy_WeightedCluster{
			Clusters: []*tcpv3.TcpProxy_WeightedCluster_ClusterWeight{{Name: "up", Weight: 1}, {Name: "other", Weight: 3}}}}
	}})
	if err := r.clusters.AddStatic(staticCluster("other", b.Addr())); err != nil {
		t.Fatal(err)
	}
	const n = 200
	for i := range n {
		c := r.dial()
		r.run("it was connected", func() bool {
			return r.values()["cluster.up.upstream_cx_total"] != "" && total(r) == i+1
		})
		_ = c.SetLinger(0)
		_ = c.Close()
	}
	got := count(r, "cluster.other.upstream_cx_total")
	if got < n*3/4-25 || got > n*3/4+25 {
		t.Errorf("%d of %d connections went to the cluster with three quarters of the weight", got, n)
	}
}

func count(r *rig, name string) (n int) {
	_, _ = fmt.Sscan(r.values()[name], &n)
	return n
}

func total(r *rig) int {
	return count(r, "cluster.up.upstream_cx_total") + count(r, "cluster.other.upstream_cx_total")
}

// A filter before the proxy may name the cluster.
func TestClusterOfAFilter(t *testing.T) {
	a, b := upstream(t), upstream(t)
	r := newRig(t, kinds()[0], a.Addr(), options{})
	if err := r.clusters.AddStatic(staticCluster("other", b.Addr())); err != nil {
		t.Fatal(err)
	}
	r.prepare = func(c *conn.Conn) { c.Info.FilterState().Set(network.TCPProxyCluster, "other") }
	r.dial()
	r.accept(b)
	r.want(map[string]string{"cluster.other.upstream_cx_total": "1", "cluster.up.upstream_cx_total": "0"})
}
