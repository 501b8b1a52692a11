package guard

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func two() []Guard {
	return []Guard{
		{Name: PrefixEnvoy + "new_way", Default: true, Added: "2026-01-01", Remove: "2026-07-01", Why: "on: a; off: b"},
		{Name: PrefixOwn + "other", Default: false, Added: "2026-01-01", Remove: "2027-01-01", Why: "on: a; off: b"},
	}
}

func TestBuiltinIsValid(t *testing.T) {
	table, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	if got := len(table.All()); got != int(count) {
		t.Errorf("%d guards for %d constants", got, count)
	}
	// Not an error: a build of an old tree must not fail because time went by.
	if names := table.Overdue(time.Now()); len(names) > 0 {
		t.Logf("guards to be removed: %s", strings.Join(names, ", "))
	}
}

func TestNewTableRefuses(t *testing.T) {
	for what, edit := range map[string]func(*Guard){
		"must begin with":  func(g *Guard) { g.Name = "new_way" },
		"listed twice":     func(g *Guard) { g.Name = PrefixOwn + "other" },
		"no reason":        func(g *Guard) { g.Why = "" },
		"added: ":          func(g *Guard) { g.Added = "soon" },
		"remove: ":         func(g *Guard) { g.Remove = "" },
		"is not a life of": func(g *Guard) { g.Remove = "2028-01-01" },
		"at most 540 days": func(g *Guard) { g.Remove = g.Added },
	} {
		guards := two()
		edit(&guards[0])
		if _, err := NewTable(guards...); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want an error with %q, got %v", what, err)
		}
	}
}

func TestSetFollowsRuntime(t *testing.T) {
	table, err := NewTable(two()...)
	if err != nil {
		t.Fatal(err)
	}
	s := table.NewSet()
	want := func(what string, a, b bool) {
		t.Helper()
		if got := []bool{s.On(0), s.On(1)}; !slices.Equal(got, []bool{a, b}) {
			t.Errorf("%s: %v, want %v", what, got, []bool{a, b})
		}
	}
	want("defaults", true, false)
	unknown := s.Update(map[string]bool{
		PrefixEnvoy + "new_way": false,
		PrefixOwn + "other":     true,
		PrefixOwn + "othre":     true,
		PrefixEnvoy + "foreign": true,
		"some.key":              true,
	})
	want("overridden", false, true)
	if diff := cmp.Diff([]string{PrefixOwn + "othre"}, unknown); diff != "" {
		t.Error(diff)
	}
	s.Update(nil)
	want("a layer that went away", true, false)
}

func TestSetsAreIndependent(t *testing.T) {
	table, err := NewTable(two()...)
	if err != nil {
		t.Fatal(err)
	}
	a, b := table.NewSet(), table.NewSet()
	a.Update(map[string]bool{PrefixEnvoy + "new_way": false})
	if a.On(0) || !b.On(0) {
		t.Error("two proxies of one process share a setting")
	}
}

func TestOverdue(t *testing.T) {
	table, err := NewTable(two()...)
	if err != nil {
		t.Fatal(err)
	}
	day := func(s string) time.Time {
		d, err := time.Parse(dateFormat, s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if got := table.Overdue(day("2026-07-01")); got != nil {
		t.Errorf("on the day itself: %v", got)
	}
	if diff := cmp.Diff([]string{PrefixEnvoy + "new_way"}, table.Overdue(day("2026-07-02"))); diff != "" {
		t.Error(diff)
	}
}

func TestOnDoesNotAllocate(t *testing.T) {
	table, err := NewTable(two()...)
	if err != nil {
		t.Fatal(err)
	}
	s := table.NewSet()
	if got := testing.AllocsPerRun(100, func() { s.On(1) }); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
