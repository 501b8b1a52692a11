package invariant

import (
	"strings"
	"sync"
	"testing"
)

func panics(f func()) (what string) {
	defer func() {
		if r := recover(); r != nil {
			what = r.(string)
		}
	}()
	f()
	return ""
}

func TestMust(t *testing.T) {
	if got := panics(func() { Must(true, "holds") }); got != "" {
		t.Errorf("an invariant that holds panicked: %s", got)
	}
	if got := panics(func() { Must(false, "read fits") }); got != "invariant broken: read fits" {
		t.Errorf("panicked with %q", got)
	}
}

func TestBugIsFatalInTests(t *testing.T) {
	before := Count()
	got := panics(func() { Bug("stream ended twice", "id", 7) })
	if !strings.HasPrefix(got, "bug: stream ended twice id=7 (") || !strings.Contains(got, "invariant_test.go:") {
		t.Errorf("panicked with %q", got)
	}
	if Count() != before+1 {
		t.Errorf("count went from %d to %d", before, Count())
	}
}

func TestCheck(t *testing.T) {
	stop := Record()
	if !Check(true, "holds") {
		t.Error("Check(true) is false")
	}
	if Check(false, "does not hold") {
		t.Error("Check(false) is true")
	}
	if got := stop(); len(got) != 1 || got[0].What != "does not hold" {
		t.Errorf("recorded %v", got)
	}
}

func TestRecordEnds(t *testing.T) {
	stop := Record()
	Bug("one")
	if got := stop(); len(got) != 1 {
		t.Fatalf("recorded %v", got)
	}
	if panics(func() { Bug("two") }) == "" {
		t.Error("a bug after the recording did not panic")
	}
	if got := stop(); len(got) != 1 {
		t.Errorf("a second stop returned %v", got)
	}
}

func TestBugGoesOnInProduction(t *testing.T) {
	m := &monitor{fatal: func() bool { return false }}
	var heard []Report
	stop := m.watch(func(r Report) { heard = append(heard, r) })
	for range 5 {
		m.bug("again", []any{"k", "v"}, 1)
	}
	stop()
	m.bug("unheard", nil, 1)

	if len(heard) != 5 || m.count.Load() != 6 {
		t.Fatalf("heard %d, counted %d", len(heard), m.count.Load())
	}
	// The stack comes at powers of two, so that it can be logged without flooding.
	for i, want := range []bool{true, true, false, true, false} {
		if got := len(heard[i].Stack) > 0; got != want {
			t.Errorf("time %d: stack there is %v, want %v", i+1, got, want)
		}
		if heard[i].Count != uint64(i+1) {
			t.Errorf("time %d: count %d", i+1, heard[i].Count)
		}
	}
}

func TestWatchersAreIndependent(t *testing.T) {
	m := &monitor{fatal: func() bool { return false }}
	var a, b int
	stopA := m.watch(func(Report) { a++ })
	stopB := m.watch(func(Report) { b++ })
	m.bug("x", nil, 1)
	stopA()
	m.bug("x", nil, 1)
	stopB()
	m.bug("x", nil, 1)
	if a != 1 || b != 2 {
		t.Errorf("a heard %d, want 1; b heard %d, want 2", a, b)
	}
}

func TestConcurrentUse(t *testing.T) {
	m := &monitor{fatal: func() bool { return false }}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			stop := m.watch(func(Report) {})
			for range 100 {
				m.bug("x", nil, 1)
			}
			stop()
		})
	}
	wg.Wait()
	if m.count.Load() != 800 {
		t.Errorf("counted %d, want 800", m.count.Load())
	}
	if ws := m.watchers.Load(); len(*ws) != 0 {
		t.Errorf("%d watchers are left", len(*ws))
	}
}

func TestHoldingInvariantsCostNothing(t *testing.T) {
	n := 3
	if got := testing.AllocsPerRun(100, func() {
		Must(n > 0, "positive")
		Check(n > 0, "positive")
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
