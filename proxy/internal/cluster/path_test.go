package cluster_test

import (
	"testing"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
)

// hot is the path of a request to an idle connection: pick, pool, stream, end. The answer is fed by hand.
type hot struct {
	x   *call
	c   *cluster.Cluster
	ctx lb.Context
}

var answer = []byte("HTTP/1.1 204 No Content\r\n\r\n")

func newHot(t testing.TB) *hot {
	r := newRig(t, 1)
	c := r.add(static("a", server(t, hello).String()))
	r.m.Start()
	x := r.start(c, 0, false)
	r.run("first", func() bool { return x.done })
	h := &hot{x: x, c: c, ctx: lb.Context{W: r.workers[0]}}
	h.once()
	return h
}

func (h *hot) once() {
	x := h.x
	x.head.Init(&x.arena)
	x.resp.Init(&x.arena)
	h.c.Pool(x.w, h.c.Pick(&h.ctx), 0, http.HTTP11).Start(&x.req)
	x.conn.NetConn().Out().Reset()
	x.conn.OnData(answer)
}

// Nothing of the upstream path allocates in steady state.
func TestNoAllocs(t *testing.T) {
	h := newHot(t)
	if n := testing.AllocsPerRun(1000, h.once); n != 0 {
		t.Errorf("%v allocations per request", n)
	}
	if h.x.status != 204 {
		t.Error("nothing was done")
	}
}

// BenchmarkRequest is the whole path with the codec's work; BenchmarkPickAndPool is what of it belongs to this package.
func BenchmarkRequest(b *testing.B) {
	h := newHot(b)
	b.ReportAllocs()
	for b.Loop() {
		h.once()
	}
}

func BenchmarkPickAndPool(b *testing.B) {
	h := newHot(b)
	b.ReportAllocs()
	for b.Loop() {
		if h.c.Pool(h.x.w, h.c.Pick(&h.ctx), 0, http.HTTP11) == nil {
			b.Fatal("no pool")
		}
	}
}
