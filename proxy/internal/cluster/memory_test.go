package cluster_test

import (
	"fmt"
	"runtime"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

// bytesPerCluster is a golden number: what a static cluster of one host takes on the main loop, with its slot, its host, its
// table and its stats, before anybody uses it. The configuration's bytes are not ours.
const bytesPerCluster = 1536

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestMemory(t *testing.T) {
	const n = 10000
	r := newRig(t, 16)
	c := parse(t, static("x", "10.0.0.1:80"))
	names := make([]string, n) // what the configuration holds anyway
	for i := range names {
		names[i] = fmt.Sprintf("outbound|80||service-%d.namespace.svc.cluster.local", i)
	}
	add := func(name string) {
		x := proto.Clone(c).(*clusterv3.Cluster)
		x.Name = name
		if err := r.m.AddStatic(x); err != nil {
			t.Fatal(err)
		}
	}
	before := heap()
	for _, name := range names {
		add(name)
	}
	per := (heap() - before) / n
	t.Logf("%d bytes per cluster", per)
	if per > bytesPerCluster {
		t.Errorf("%d bytes per cluster, want at most %d", per, bytesPerCluster)
	}
	// A pick on one of 16 workers makes what that worker needs, no more.
	before = heap()
	for _, name := range names {
		if r.m.Lookup(name).Load().Pick(&lb.Context{W: r.workers[3]}) == nil {
			t.Fatal("no host")
		}
	}
	if used := (heap() - before) / n; used > 512 {
		t.Errorf("%d bytes per cluster and worker that picks", used)
	} else {
		t.Logf("%d bytes per cluster and worker that picks", used)
	}
	runtime.KeepAlive(r)
	runtime.KeepAlive(names)
}

func BenchmarkAddStatic(b *testing.B) {
	r := newRig(b, 16)
	c := parse(b, static("x", "10.0.0.1:80"))
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		x := proto.Clone(c).(*clusterv3.Cluster)
		x.Name = fmt.Sprint("c", i)
		i++
		if err := r.m.AddStatic(x); err != nil {
			b.Fatal(err)
		}
	}
}
