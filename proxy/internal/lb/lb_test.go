package lb_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/api/upstream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func worker(seed byte) *event.Worker { return &event.Worker{Rand: rand.Seeded([32]byte{seed})} }

// hosts makes hosts with these weights; flags, if given, are set on the host of the same place.
func hosts(weights []uint32, flags ...host.Flag) []*host.Host {
	out := make([]*host.Host, len(weights))
	for i, w := range weights {
		out[i] = host.New(network.AddrFrom(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 80)), fmt.Sprint("h", i))
		out[i].SetWeight(w)
		if i < len(flags) {
			out[i].SetFlag(flags[i], flags[i] != 0)
		}
	}
	return out
}

func table(p lb.Policy, hs ...[]*host.Host) *lb.Table {
	var sets []lb.HostSet
	for _, h := range hs {
		sets = append(sets, lb.NewHostSet(h))
	}
	return lb.NewTable(&lb.Options{Policy: p, PanicThreshold: lb.DefaultPanicThreshold}, sets, nil)
}

// picks counts n picks by hostname.
func picks(t *lb.Table, c *lb.Context, n int) map[string]int {
	var l lb.Local
	got := map[string]int{}
	for range n {
		h, _ := t.Pick(&l, c)
		if h == nil {
			got["none"]++
			continue
		}
		got[h.Hostname]++
	}
	return got
}

// near tells whether each share is within a tenth of what is wanted.
func near(t *testing.T, got map[string]int, want map[string]float64, n int) {
	t.Helper()
	for name, share := range want {
		if x := float64(got[name]) / float64(n); x < share*0.9-0.002 || x > share*1.1+0.002 {
			t.Errorf("%s has %.3f, want %.3f (%v)", name, x, share, got)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s was picked", name)
		}
	}
}

func TestRoundRobinIsExact(t *testing.T) {
	tab := table(lb.RoundRobin{}, hosts([]uint32{1, 1, 1}))
	for seed := range byte(5) {
		got := picks(tab, &lb.Context{W: worker(seed)}, 30)
		if d := cmp.Diff(map[string]int{"h0": 10, "h1": 10, "h2": 10}, got); d != "" {
			t.Error(d)
		}
	}
}

// In any stretch as long as the sum of the weights, each host comes about as often as its weight.
func TestWeightedRoundRobin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint32Range(1, 20), 2, 8).Draw(rt, "weights")
		weights[0] = weights[1] + 1 // not all equal
		sum := 0
		for _, w := range weights {
			sum += int(w)
		}
		got := picks(table(lb.RoundRobin{}, hosts(weights)), &lb.Context{W: worker(1)}, sum)
		for i, w := range weights {
			if n := got[fmt.Sprint("h", i)]; n < int(w)-1 || n > int(w)+1 {
				rt.Errorf("h%d has %d of %d, weight %d", i, n, sum, w)
			}
		}
	})
}

func TestRandomIgnoresWeights(t *testing.T) {
	const n = 20000
	got := picks(table(lb.Random{}, hosts([]uint32{1, 9})), &lb.Context{W: worker(1)}, n)
	near(t, got, map[string]float64{"h0": 0.5, "h1": 0.5}, n)
}

func TestLeastRequest(t *testing.T) {
	const n = 20000
	for _, c := range []struct {
		name    string
		policy  lb.LeastRequest
		weights []uint32
		active  []int64
		want    map[string]float64
	}{
		{"idle", lb.LeastRequest{Choices: 2, Bias: 1}, []uint32{1, 1}, []int64{0, 0}, map[string]float64{"h0": 0.5, "h1": 0.5}},
		{"busy", lb.LeastRequest{Choices: 2, Bias: 1}, []uint32{1, 1}, []int64{5, 0}, map[string]float64{"h0": 0.25, "h1": 0.75}},
		{"three choices", lb.LeastRequest{Choices: 3, Bias: 1}, []uint32{1, 1}, []int64{5, 0}, map[string]float64{"h0": 0.125, "h1": 0.875}},
		{"full scan", lb.LeastRequest{Choices: 2, Bias: 1, FullScan: true}, []uint32{1, 1, 1}, []int64{1, 0, 0}, map[string]float64{"h1": 0.5, "h2": 0.5}},
		{"weights", lb.LeastRequest{Choices: 2, Bias: 1}, []uint32{1, 3}, []int64{0, 0}, map[string]float64{"h0": 0.25, "h1": 0.75}},
		{"weights and busy", lb.LeastRequest{Choices: 2, Bias: 1}, []uint32{1, 3}, []int64{0, 5}, map[string]float64{"h0": 1. / 1.5, "h1": 0.5 / 1.5}},
		{"weights, bias 0", lb.LeastRequest{Choices: 2}, []uint32{1, 3}, []int64{0, 5}, map[string]float64{"h0": 0.25, "h1": 0.75}},
		{"weights, bias 2", lb.LeastRequest{Choices: 2, Bias: 2}, []uint32{1, 4}, []int64{0, 1}, map[string]float64{"h0": 0.5, "h1": 0.5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			hs := hosts(c.weights)
			for i, a := range c.active {
				hs[i].RqActive.Store(a)
			}
			near(t, picks(table(c.policy, hs), &lb.Context{W: worker(1)}, n), c.want, n)
		})
	}
}

// The shares are those of Envoy's documentation on priorities and panic.
func TestShares(t *testing.T) {
	const bad, fair = host.FailedEDSHealth, host.DegradedEDSHealth
	ten := []uint32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	some := func(n int, f host.Flag, m int, g host.Flag) []*host.Host {
		flags := make([]host.Flag, 10)
		for i := range n {
			flags[i] = f
		}
		for i := n; i < n+m; i++ {
			flags[i] = g
		}
		return hosts(ten, flags...)
	}
	for _, c := range []struct {
		name              string
		sets              [][]*host.Host
		healthy, degraded []uint32
		panics            bool
	}{
		{"all healthy", [][]*host.Host{some(0, 0, 0, 0), some(0, 0, 0, 0)}, []uint32{100, 0}, []uint32{0, 0}, false},
		{"72% healthy is enough", [][]*host.Host{some(2, bad, 0, 0), some(0, 0, 0, 0)}, []uint32{100, 0}, []uint32{0, 0}, false},
		{"half", [][]*host.Host{some(5, bad, 0, 0), some(0, 0, 0, 0)}, []uint32{70, 30}, []uint32{0, 0}, false},
		{"none of the first", [][]*host.Host{some(10, bad, 0, 0), some(0, 0, 0, 0)}, []uint32{0, 100}, []uint32{0, 0}, false},
		{"three", [][]*host.Host{some(7, bad, 0, 0), some(7, bad, 0, 0), some(0, 0, 0, 0)}, []uint32{42, 42, 16}, []uint32{0, 0, 0}, false},
		{"degraded", [][]*host.Host{some(5, bad, 5, fair)}, []uint32{0}, []uint32{100}, false},
		{"healthy first, then degraded", [][]*host.Host{some(0, 0, 5, fair)}, []uint32{70}, []uint32{30}, false},
		{"panic", [][]*host.Host{some(7, bad, 0, 0)}, []uint32{100}, []uint32{0}, true},
		{"panic everywhere", [][]*host.Host{some(8, bad, 0, 0), some(10, bad, 0, 0)}, []uint32{50, 50}, []uint32{0, 0}, true},
		{"nobody", [][]*host.Host{nil}, []uint32{100}, []uint32{0}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			tab := table(lb.RoundRobin{}, c.sets...)
			want := lb.Loads{Healthy: c.healthy, Degraded: c.degraded}
			if d := cmp.Diff(want, tab.Loads); d != "" {
				t.Error(d)
			}
			var l lb.Local
			panics := 0
			for range 100 {
				if _, o := tab.Pick(&l, &lb.Context{W: worker(1)}); o == lb.Panic {
					panics++
				}
			}
			if c.panics != (panics > 0) {
				t.Errorf("%d of 100 in panic", panics)
			}
		})
	}
}

func TestFailOnPanic(t *testing.T) {
	set := lb.NewHostSet(hosts([]uint32{1, 1, 1}, host.FailedEDSHealth, host.FailedEDSHealth))
	tab := lb.NewTable(&lb.Options{Policy: lb.RoundRobin{}, PanicThreshold: 50, FailOnPanic: true}, []lb.HostSet{set}, nil)
	var l lb.Local
	if h, o := tab.Pick(&l, &lb.Context{W: worker(1)}); h != nil || o != lb.Panic {
		t.Errorf("got %v, %v", h, o)
	}
	tab = lb.NewTable(&lb.Options{Policy: lb.RoundRobin{}}, []lb.HostSet{set}, nil) // threshold 0: no panic
	if h, o := tab.Pick(&l, &lb.Context{W: worker(1)}); h == nil || h.Health() != host.Healthy || o != lb.Normal {
		t.Errorf("got %v, %v", h, o)
	}
}

// A retry avoids hosts as often as it may try, and takes what comes then.
func TestExclude(t *testing.T) {
	hs := hosts([]uint32{1, 1})
	tab := table(lb.RoundRobin{}, hs)
	got := picks(tab, &lb.Context{W: worker(1), Exclude: hs[:1], Attempts: 1}, 100)
	if d := cmp.Diff(map[string]int{"h1": 100}, got); d != "" {
		t.Error(d)
	}
	got = picks(tab, &lb.Context{W: worker(1), Exclude: hs, Attempts: 3}, 100)
	if got["none"] != 0 || got["h0"]+got["h1"] != 100 {
		t.Error(got)
	}
	got = picks(tab, &lb.Context{W: worker(1), Attempts: 1, Reject: func(h *host.Host) bool { return h == hs[1] }}, 100)
	if d := cmp.Diff(map[string]int{"h0": 100}, got); d != "" {
		t.Error(d)
	}
}

func TestLocalityWeights(t *testing.T) {
	a, b := hosts([]uint32{1, 1}), hosts([]uint32{1, 1})
	b[0].Hostname, b[1].Hostname = "far0", "far1"
	build := func() *lb.Table {
		set := lb.NewHostSet(append(append([]*host.Host(nil), a...), b...))
		for i, l := range [][]*host.Host{a, b} {
			s := lb.NewHostSet(l)
			set.Localities = append(set.Localities, lb.LocalitySet{Weight: []uint32{3, 1}[i], Hosts: l, Healthy: s.Healthy, Degraded: s.Degraded})
		}
		return lb.NewTable(&lb.Options{Policy: lb.RoundRobin{}, PanicThreshold: 50, LocalityWeighted: true}, []lb.HostSet{set}, nil)
	}
	const n = 4000
	near(t, picks(build(), &lb.Context{W: worker(1)}, n), map[string]float64{"h0": 0.375, "h1": 0.375, "far0": 0.125, "far1": 0.125}, n)
	// Half of the near place is down: it bears 0.7 of its weight.
	a[0].SetFlag(host.FailedEDSHealth, true)
	near(t, picks(build(), &lb.Context{W: worker(1)}, n), map[string]float64{"h1": 2.1 / 3.1, "far0": 0.5 / 3.1, "far1": 0.5 / 3.1}, n)
}

// picksLast is an extension's balancer.
type picksLast struct{}

func (picksLast) Build(hosts []upstream.Host) upstream.Picker { return last(len(hosts) - 1) }

type last int

func (l last) Pick(p *upstream.Pick) int {
	n, _ := (*p.Local).(int)
	*p.Local = n + 1
	if n == 10 {
		return -1
	}
	return int(l)
}

func TestExtension(t *testing.T) {
	got := picks(table(lb.Extension(picksLast{}), hosts([]uint32{1, 1, 1})), &lb.Context{W: worker(1)}, 12)
	if d := cmp.Diff(map[string]int{"h2": 11, "none": 1}, got); d != "" {
		t.Error(d)
	}
	h := hosts([]uint32{2})[0]
	h.SetLocality(&host.Locality{Region: "r"})
	h.SetMetadata(&host.Metadata{Spaces: map[string]map[string]any{"envoy.lb": {"v": "1"}}})
	v := lb.View(h)
	if x, ok := v.Metadata("envoy.lb", "v"); !ok || x != "1" || v.Weight() != 2 || v.Locality().Region != "r" || v != lb.View(h) {
		t.Error("the view does not show the host")
	}
}

func TestNoAllocs(t *testing.T) {
	for name, p := range map[string]lb.Policy{"rr": lb.RoundRobin{}, "random": lb.Random{}, "lr": lb.LeastRequest{Choices: 2, Bias: 1}, "ext": lb.Extension(picksLast{})} {
		for _, w := range [][]uint32{{1, 1, 1}, {1, 2, 3}} {
			tab := table(p, hosts(w))
			var l lb.Local
			c := &lb.Context{W: worker(1)}
			tab.Pick(&l, c)
			for range 300 { // small integers in an interface are free
				tab.Pick(&l, c)
			}
			n := testing.AllocsPerRun(100, func() { tab.Pick(&l, c) })
			if n != 0 && name != "ext" {
				t.Errorf("%s %v: %v allocations", name, w, n)
			}
		}
	}
}

func BenchmarkPick(b *testing.B) {
	for name, p := range map[string]lb.Policy{"rr": lb.RoundRobin{}, "lr": lb.LeastRequest{Choices: 2, Bias: 1}} {
		for _, w := range [][]uint32{{1}, {1, 1, 1, 1, 1, 1, 1, 1}, {1, 2, 3, 4, 5, 6, 7, 8}} {
			b.Run(fmt.Sprint(name, w), func(b *testing.B) {
				tab := table(p, hosts(w))
				var l lb.Local
				c := &lb.Context{W: worker(1)}
				for b.Loop() {
					tab.Pick(&l, c)
				}
			})
		}
	}
}
