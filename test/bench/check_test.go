package bench_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/proxy"
)

// manyClusters is how many clusters the bootstrap has.
const manyClusters = 10_000

// writeBroken writes a bootstrap of 10 MiB with 10,000 clusters, each of which has a mistake.
func writeBroken(tb testing.TB) string {
	tb.Helper()
	var b strings.Builder
	b.WriteString(`{"static_resources": {"clusters": [` + "\n")
	for i := range manyClusters {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, `{"name": "cluster-%d", "type": "STATIC",`+"\n"+` "load_assignment": {"cluster_name": "cluster-%d", "endpoints": [{"lb_endpoints": [`+"\n", i, i)
		for j := range 9 {
			if j > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, `  {"endpoint": {"address": {"socket_address": {"address": "10.0.%d.%d", "port_value": 8080}}}}`+"\n", i%250, j+1)
		}
		b.WriteString(" ]}]},\n")
		switch i % 4 {
		case 0:
			b.WriteString(` "conect_timeout": "1s"}`)
		case 1:
			b.WriteString(` "connect_timeout": "-1s"}`)
		case 2:
			b.WriteString(` "lb_policy": "RONDROBIN"}`)
		case 3:
			b.WriteString(` "lb_policy": "MAGLEV", "maglev_lb_config": {"table_size": "4"}}`)
		}
	}
	b.WriteString("\n]}}\n")
	path := filepath.Join(tb.TempDir(), "broken.json")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// BenchmarkCheckBroken checks 10 MiB with 10,000 mistakes, all of which are told.
func BenchmarkCheckBroken(b *testing.B) {
	path := writeBroken(b)
	for b.Loop() {
		r := proxy.Check(path, proxy.LoadOptions{MaxProblems: 2 * manyClusters}, proxy.WithExtensions(standard.All()...))
		if len(r.Problems) != manyClusters {
			b.Fatalf("%d problems", len(r.Problems))
		}
	}
}

// TestCheckBroken checks that all mistakes of a large bootstrap are told, each at its place, in a time that a person waits.
func TestCheckBroken(t *testing.T) {
	path := writeBroken(t)
	start := time.Now()
	r := proxy.Check(path, proxy.LoadOptions{MaxProblems: 2 * manyClusters}, proxy.WithExtensions(standard.All()...))
	took := time.Since(start)
	if len(r.Problems) != manyClusters {
		t.Fatalf("%d problems, want %d", len(r.Problems), manyClusters)
	}
	for i, p := range r.Problems {
		if want := fmt.Sprintf("static_resources.clusters[%d].", i); !strings.HasPrefix(p.Path, want) || p.Line != 13*i+14 {
			t.Fatalf("problem %d is %s", i, p.Error())
		}
	}
	t.Logf("%v", took)
	if took > time.Minute { // a second of CPU; the machine may have other things to do
		t.Errorf("it took %v", took)
	}
}
