package cluster_test

import (
	"fmt"
	"testing"
)

// A walk is in the order of names, and knows what came, went and is still to come.
func TestWalk(t *testing.T) {
	for _, n := range []int{0, 1, 3000} {
		r := newRig(t, 1)
		r.m.Start()
		for i := range n {
			r.update(static(fmt.Sprintf("c%05d", i*7919%10007), "10.0.0.1:80"))
		}
		w := r.m.Walk()
		steps := 1
		for ; !w.Step(); steps++ {
		}
		if n == 3000 && steps < 4 {
			t.Errorf("%d clusters were put in order in %d steps", n, steps)
		}
		gone := ""
		if n > 1 {
			gone = fmt.Sprintf("c%05d", 7919)
			r.m.Remove(gone)
		}
		last, seen := "", 0
		for c, ok := w.Next(); ok; c, ok = w.Next() {
			name := c.Cluster.Name()
			if name <= last || name == gone {
				t.Fatalf("%s after %s", name, last)
			}
			last = name
			seen++
		}
		if want := n - min(n/2, 1); seen != want {
			t.Errorf("%d of %d clusters", seen, want)
		}
	}
}
