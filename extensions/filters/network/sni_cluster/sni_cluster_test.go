package sni_cluster_test

import (
	"testing"

	"github.com/dragoman-proxy/dragoman/api/network"
	snicluster "github.com/dragoman-proxy/dragoman/extensions/filters/network/sni_cluster"
)

type link struct {
	network.Connection
	info network.ConnInfo
}

func (l *link) Info() *network.ConnInfo { return &l.info }

type callbacks struct {
	network.ReadCallbacks
	l *link
}

func (c callbacks) Connection() network.Connection { return c.l }

func TestNamesTheCluster(t *testing.T) {
	for _, name := range []string{"a.example.com", ""} {
		mk, err := snicluster.Extension.New(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		l := &link{}
		if name != "" {
			l.info.SetHello().ServerName = name
		}
		if st := mk(nil).OnNewConnection(callbacks{l: l}); st != network.Continue {
			t.Errorf("%q: the chain stopped", name)
		}
		got, ok := l.info.FilterState().Get(network.TCPProxyCluster)
		if ok != (name != "") || ok && got != name {
			t.Errorf("%q: the cluster is %v (%v)", name, got, ok)
		}
	}
}
