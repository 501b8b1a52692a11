package heap

import "testing"

func TestPercentKeepsHeadroom(t *testing.T) {
	for live, want := range map[uint64]int{0: 3200, 1 << 20: 3200, 8 << 20: 400, 32 << 20: 100, 450 << 20: 100} {
		if got := Percent(live); got != want {
			t.Errorf("Percent(%d MiB) = %d, want %d", live>>20, got, want)
		}
	}
}

// TestMemoryIsGivenBackOnce plays the life of a heap, second by second: at each step what the runtime tells, and whether memory is
// to be given back.
func TestMemoryIsGivenBackOnce(t *testing.T) {
	const mib = 1 << 20
	steps := []struct {
		why    string
		live   uint64
		allocs uint64 // since the step before
		held   uint64
		frees  bool
	}{
		{"small", 8 * mib, quiet - 1, 9 * mib, false},
		{"a burst", 8 * mib, 100 * mib, 40 * mib, false},
		{"a burst goes on", 30 * mib, quiet, 60 * mib, false},
		{"it is over", 30 * mib, quiet - 1, 60 * mib, true},
		{"at rest", 30 * mib, 1000, 30*mib + 1000, false},
		{"some garbage", 30 * mib, 1000, 30*mib + 30*mib/worthShare, false},
		{"enough garbage", 30 * mib, 1000, 30*mib + 30*mib/worthShare + 2000, true},
		{"fragments that cannot be given back", 10 * mib, 1000, 30 * mib, false},
		{"still", 10 * mib, 1000, 30 * mib, false},
		{"a collection found less", 10 * mib, 1000, 12 * mib, false},
		{"the next burst's rest", 10 * mib, 1000, 15 * mib, true},
	}
	var now sample
	freed := false
	k := keeper{percent: Percent(0), set: func(int) {}, floor: 0, read: func() sample { return now }}
	k.free = func() {
		freed = true
		now.held = now.live
	}
	for _, s := range steps {
		now = sample{live: s.live, held: s.held, allocs: now.allocs + s.allocs}
		freed = false
		k.look()
		if freed != s.frees {
			t.Fatalf("%s: memory given back: %v", s.why, freed)
		}
	}
}

func TestPercentFollowsTheHeap(t *testing.T) {
	var set []int
	now := sample{}
	k := keeper{percent: Percent(0), set: func(p int) { set = append(set, p) }, read: func() sample { return now }, free: func() {}}
	for _, live := range []uint64{1 << 20, 8 << 20, 8 << 20, 64 << 20} {
		now.live = live
		k.look()
	}
	if len(set) != 2 || set[0] != 400 || set[1] != 100 {
		t.Errorf("set %v", set)
	}
}
