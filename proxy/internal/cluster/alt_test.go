package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
)

// Names that requests bring are counted from the first time on, within a bound, and go with their cluster.
func TestAltNames(t *testing.T) {
	r := newRig(t, 2)
	r.m.Start()
	r.update(static("c", "10.0.0.1:80"))
	c := r.m.Lookup("c").Load()
	count := func(worker int, name string, x cluster.AltCount) { r.m.CountAlt(r.workers[worker], c, name, x) }
	count(0, "a.b", cluster.AltCount{Code: 200})
	r.step()
	count(1, "a.b", cluster.AltCount{Code: 503, Internal: true, Canary: true})
	count(0, "", cluster.AltCount{Code: 204})
	count(0, strings.Repeat("n", cluster.MaxAltNameBytes), cluster.AltCount{Code: 200})
	count(0, strings.Repeat("m", cluster.MaxAltNameBytes+1), cluster.AltCount{Code: 200})
	r.step()
	r.want(map[string]string{
		"cluster.c.a.b.upstream_rq_200": "1", "cluster.c.a.b.upstream_rq_5xx": "1", "cluster.c.a.b.upstream_rq_completed": "2",
		"cluster.c.a.b.external.upstream_rq_2xx": "1", "cluster.c.a.b.internal.upstream_rq_503": "1", "cluster.c.a.b.canary.upstream_rq_503": "1",
		"cluster.c..upstream_rq_204": "1", "cluster.c." + strings.Repeat("n", cluster.MaxAltNameBytes) + ".upstream_rq_200": "1",
	})
	for i := range cluster.MaxAltNames - 2 { // one more than there is room for
		count(0, fmt.Sprint("x", i), cluster.AltCount{Code: 200})
	}
	r.step()
	count(0, "a.b", cluster.AltCount{Code: 200})
	count(0, "y", cluster.AltCount{Code: 200})
	r.step()
	r.want(map[string]string{"cluster.c.a.b.upstream_rq_200": "2", "cluster.c.x0.upstream_rq_200": "1"})
	if n := r.altNames(); n != cluster.MaxAltNames {
		t.Errorf("%d names, want %d", n, cluster.MaxAltNames)
	}
	r.m.Remove("c")
	if n := r.altNames(); n != 0 {
		t.Errorf("%d names are left of a cluster that is gone", n)
	}
}

// altNames counts the names that there are statistics of.
func (r *rig) altNames() (n int) {
	for name := range r.values() {
		if strings.HasSuffix(name, ".upstream_rq_completed") && strings.Count(name, ".") > 2 && !strings.Contains(name, "ternal.") && !strings.Contains(name, "canary.") {
			n++
		}
	}
	return n
}
