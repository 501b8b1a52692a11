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
	batch := freelist.Batch[object]()
	inits := 0
	prepare := func(o *object) { inits++; o.ready = true }
	seen := map[*object]bool{}
	for i := range batch + 1 {
		o := freelist.Take(&free, prepare)
		if !o.ready || seen[o] {
			t.Fatalf("object %d: ready %v, handed out before %v", i, o.ready, seen[o])
		}
		seen[o] = true
		if want := batch * (1 + i/batch); inits != want {
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
	if got := freelist.Take(&free, nil); got == nil || len(free) != batch-2 {
		t.Fatalf("%d objects are left", len(free))
	}
}

// TestBatch checks that blocks are full, and of a size class of their own.
func TestBatch(t *testing.T) {
	for name, x := range map[string]struct{ got, want int }{
		"80 bytes":       {freelist.Batch[[10]*int](), 102},
		"1 KiB":          {freelist.Batch[[128]*int](), 7},
		"more":           {freelist.Batch[[129]*int](), 15},
		"a whole block":  {freelist.Batch[[2047]*int](), 1},
		"than any block": {freelist.Batch[[4096]*int](), 1},
		"nothing":        {freelist.Batch[struct{}](), 8184},
	} {
		if x.got != x.want {
			t.Errorf("%s: %d objects, want %d", name, x.got, x.want)
		}
	}
}

func TestTakeAllocatesNothing(t *testing.T) {
	free := []*object{{}}
	if n := testing.AllocsPerRun(100, func() { free = append(free, freelist.Take(&free, nil)) }); n != 0 {
		t.Errorf("%v allocations for an object that was there", n)
	}
}
