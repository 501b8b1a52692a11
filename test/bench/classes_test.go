package bench_test

import (
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/bench"
)

// class is how many objects of one size class of the heap have been made.
type class struct {
	Size uintptr
	Made uint64
}

// TestHeldStreamsLieApart looks at which size classes a change of routes and clusters makes its objects in, and whether the objects of
// connections are of others. Where a change makes thousands, one that stays keeps its page of the heap when they are gone. Those made in
// blocks lie together whatever their size.
func TestHeldStreamsLieApart(t *testing.T) {
	const n, pushes = 150, 10
	up := startUpstreams(t, 2, held)
	w := newWorld(t, n, up)
	p := startProxy(t, w.path("boot.json"))
	admin := http1Client(p.Addrs["plain"])
	awaitVersion(t, admin, w)
	before := p.ask("classes").Classes
	for i := range pushes {
		w.push(i, up)
		awaitVersion(t, admin, w)
	}
	after := p.ask("classes").Classes
	noisy := map[uintptr]uint64{}
	for i, c := range after {
		if made := (c.Made - before[i].Made) / pushes; made >= n/2 {
			noisy[c.Size] = made
		}
	}
	if len(noisy) < 5 {
		t.Fatalf("objects are made in few classes (%v): did anything change?", noisy)
	}
	for name, size := range bench.Held() {
		if size > 512 {
			size += 8 // the runtime's header of objects with pointers
		}
		for i := 0; i < len(after); i++ {
			if c := after[i].Size; c >= size {
				if made := noisy[c]; made > 0 {
					t.Errorf("%s has %d bytes, and each change of %d routes makes %d objects of its class, %d bytes", name, size, n, made, c)
				}
				break
			}
		}
	}
}
