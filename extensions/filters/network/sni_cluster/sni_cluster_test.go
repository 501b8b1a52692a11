package sni_cluster_test

import (
	"testing"

	sniv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/sni_cluster/v3"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/extensions/filters/network/sni_cluster"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest/filtertest"
)

func TestNameBecomesCluster(t *testing.T) {
	for _, name := range []string{"", "a.example.com"} {
		var info network.ConnInfo
		if name != "" {
			info.SetHello().ServerName = name
		}
		n := filtertest.NewContext().Connect(t, &sni_cluster.Extension, &sniv3.SniCluster{}, info)
		got := ""
		if n.Info().HasFilterState() {
			v, _ := n.Info().FilterState().Get(network.TCPProxyCluster)
			got, _ = v.(string)
		}
		n.Receive("bytes", false)
		if got != name || n.Passed != "bytes" || n.Status != network.Continue {
			t.Errorf("name %q: cluster %q, passed %q", name, got, n.Passed)
		}
	}
}
