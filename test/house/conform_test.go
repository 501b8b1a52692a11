package house_test

import (
	"slices"
	"strings"
	"testing"
)

// TestConformanceListIsSorted keeps the list of cases that must pass in an order in which merges do not collide.
func TestConformanceListIsSorted(t *testing.T) {
	const list = "test/conform/passing.txt"
	var names []string
	for line := range strings.Lines(read(t, list)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			names = append(names, line)
		}
	}
	for i := 1; i < len(names); i++ {
		if names[i-1] >= names[i] {
			t.Errorf("%s: %s stands after %s", list, names[i], names[i-1])
		}
	}
	if slices.ContainsFunc(names, func(n string) bool { return strings.Count(n, "/") != 1 }) {
		t.Errorf("%s: a case is named area/name", list)
	}
}
