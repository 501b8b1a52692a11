package main

import "testing"

func TestGCPercentKeepsHeadroom(t *testing.T) {
	for live, want := range map[uint64]int{0: 3200, 1 << 20: 3200, 8 << 20: 400, 32 << 20: 100, 450 << 20: 100} {
		if got := gcPercent(live); got != want {
			t.Errorf("gcPercent(%d MiB) = %d, want %d", live>>20, got, want)
		}
	}
}
