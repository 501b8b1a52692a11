package freelist_test

import (
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/freelist"
)

type object struct {
	ready bool
	size  [100]byte
}

func TestTake(t *testing.T) {
	var free []*object
	inits := 0
	prepare := func(o *object) { inits++; o.ready = true }
	seen := map[*object]bool{}
	for i := range freelist.Batch + 1 {
		o := freelist.Take(&free, prepare)
		if !o.ready || seen[o] {
			t.Fatalf("object %d: ready %v, handed out before %v", i, o.ready, seen[o])
		}
		seen[o] = true
		if want := freelist.Batch * (1 + i/freelist.Batch); inits != want {
			t.Fatalf("after object %d %d objects were made, want %d", i, inits, want)
		}
	}
	// What comes back is handed out before anything is made.
	for o := range seen {
		free = append(free, o)
		if got := freelist.Take(&free, prepare); got != o {
			t.Fatal("another object was taken than the one that was put back last")
		}
	}
	if got := freelist.Take(&free, nil); got == nil || len(free) != freelist.Batch-2 {
		t.Fatalf("%d objects are left", len(free))
	}
}

func TestTakeAllocatesNothing(t *testing.T) {
	free := []*object{{}}
	if n := testing.AllocsPerRun(100, func() { free = append(free, freelist.Take(&free, nil)) }); n != 0 {
		t.Errorf("%v allocations for an object that was there", n)
	}
}
