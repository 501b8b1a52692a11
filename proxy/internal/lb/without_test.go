package lb_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
)

func TestWithout(t *testing.T) {
	set := func(healthy, ill int) lb.HostSet {
		hs := hosts(make([]uint32, healthy+ill))
		for _, h := range hs[healthy:] {
			h.SetFlag(host.FailedActiveHC, true)
		}
		return lb.NewHostSet(hs)
	}
	for name, c := range map[string]struct {
		sets []lb.HostSet
		skip []bool
		want []uint32 // nil: nothing is left
	}{
		"the next one":     {[]lb.HostSet{set(1, 0), set(1, 0)}, []bool{true, false}, []uint32{0, 100}},
		"none is skipped":  {[]lb.HostSet{set(1, 0), set(1, 0)}, []bool{false, false}, []uint32{100, 0}},
		"all are skipped":  {[]lb.HostSet{set(1, 0), set(1, 0)}, []bool{true, true}, nil},
		"the rest is ill":  {[]lb.HostSet{set(1, 0), set(0, 3)}, []bool{true, false}, nil},
		"half of two":      {[]lb.HostSet{set(1, 0), set(1, 1), set(1, 0)}, []bool{true, false, false}, []uint32{0, 70, 30}},
		"rounding":         {[]lb.HostSet{set(1, 0), set(1, 3), set(1, 5)}, []bool{true, false, false}, []uint32{0, 61, 39}},
		"nobody has hosts": {[]lb.HostSet{set(0, 0)}, []bool{false}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tab := lb.NewTable(&lb.Options{Policy: lb.RoundRobin{}, PanicThreshold: 50}, c.sets, nil)
			var l lb.Loads
			if ok := tab.Without(&l, c.skip); ok != (c.want != nil) {
				t.Fatalf("got %v", ok)
			}
			if d := cmp.Diff(c.want, l.Healthy); d != "" {
				t.Error(d)
			}
		})
	}
}
