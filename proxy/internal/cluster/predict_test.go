package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The connections are those that the real Envoy opened.
func TestPredictivePreconnect(t *testing.T) {
	for name, c := range map[string]struct {
		policy string
		hosts  int
		want   [][]int // connections of each host, after each stream
	}{
		"off":                {"predictive_preconnect_ratio: 1", 2, [][]int{{1, 0}, {1, 1}}},
		"half as much again": {"predictive_preconnect_ratio: 1.5", 2, [][]int{{1, 1}, {1, 2}}},
		"three for one":      {"predictive_preconnect_ratio: 3", 4, [][]int{{1, 1, 1, 1}, {2, 2, 1, 1}}},
		"one host":           {"predictive_preconnect_ratio: 2", 1, [][]int{{1}, {2}}},
		"of the host too":    {"predictive_preconnect_ratio: 2, per_upstream_preconnect_ratio: 1.5", 2, [][]int{{2, 1}, {2, 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2)
			var addrs []string
			for range c.hosts {
				addrs = append(addrs, server(t, hello).String())
			}
			cl := r.add("{name: a, preconnect_policy: {" + c.policy + "}, " + static("a", addrs...)[len("{name: a, "):])
			r.m.Start()
			var calls []*call
			first := 0
			for _, want := range c.want {
				x := r.start(cl, 0, true)
				calls = append(calls, x)
				r.run("a stream", func() bool { return x.ready })
				var got []int
				for i := range cl.Hosts() {
					h := cl.Hosts()[i]
					if len(calls) == 1 && h == x.conn.Host() {
						first = i
					}
					got = append(got, int(h.CxActive.Load()))
				}
				got = append(got[first:], got[:first]...) // the first pick may be any host
				if d := cmp.Diff(want, got); d != "" {
					t.Error(d)
				}
			}
			for _, x := range calls {
				x.finish()
			}
			r.run("the answers", func() bool {
				for _, x := range calls {
					if !x.done {
						return false
					}
				}
				return true
			})
			for _, h := range cl.Hosts() {
				cl.Pool(r.workers[0], h, 0, 0).Drain()
			}
		})
	}
}
