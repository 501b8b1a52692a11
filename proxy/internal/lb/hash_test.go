package lb_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/lb"
)

// keyed are three hosts with hash keys.
func keyed(keys ...string) []*host.Host {
	hs := hosts(make([]uint32, len(keys)))
	for i, k := range keys {
		hs[i].Hostname = k[len(k)-1:]
		hs[i].SetMetadata(&host.Metadata{Spaces: map[string]map[string]any{"envoy.lb": {"hash_key": k}}})
	}
	return hs
}

func sequence(t *lb.Table, n int) string {
	var l lb.Local
	var b strings.Builder
	for i := range n {
		h, _ := t.Pick(&l, &lb.Context{W: worker(1), HasHash: true, Hash: xxhash.Sum64String(fmt.Sprint("user-", i))})
		b.WriteString(h.Hostname)
	}
	return b.String()
}

// Where Envoy 1.40 sends the requests of sixty users.
func TestHashingAsEnvoy(t *testing.T) {
	for name, c := range map[string]struct {
		policy lb.Policy
		hosts  []*host.Host
		want   string
	}{
		"ring, xxhash": {lb.RingHash{Min: 1024, Max: lb.DefaultRingMax}, keyed("host-a", "host-b", "host-c"),
			"ccacabccabcabaccbcacbcacacccccbbbcccabcabcaabbcabbabccababbc"},
		"ring, murmur": {lb.RingHash{Min: 512, Max: lb.DefaultRingMax, Murmur: true}, keyed("host-a", "host-b", "host-c"),
			"babacbbbccbaabbbbcbaccbaacaabbbbcbccbbcbbaccaccbbbaaaaabcbac"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, sequence(table(c.policy, c.hosts), len(c.want))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	ring := lb.RingHash{Min: 1024, Max: lb.DefaultRingMax}
	for _, c := range []struct {
		policy  lb.Counter
		weights []uint32
		want    lb.Counts
	}{
		{ring, []uint32{1, 1, 1}, lb.Counts{Size: 1026, Min: 342, Max: 342}},
		{lb.RingHash{Min: 512, Max: lb.DefaultRingMax}, []uint32{1, 1, 1}, lb.Counts{Size: 513, Min: 171, Max: 171}},
		{ring, []uint32{1, 3}, lb.Counts{Size: 1024, Min: 256, Max: 768}},
		{lb.RingHash{Min: 10, Max: 10}, []uint32{1, 99}, lb.Counts{Size: 10, Min: 1, Max: 9}},
		{lb.Maglev{Size: 11}, []uint32{1, 1}, lb.Counts{Size: 11, Min: 5, Max: 6}},
		{lb.Maglev{Size: 65537}, []uint32{1, 3}, lb.Counts{Size: 65537, Min: 16385, Max: 49152}},
	} {
		set := lb.NewHostSet(hosts(c.weights))
		if d := cmp.Diff(c.want, c.policy.Counts(&set, false, false)); d != "" {
			t.Errorf("%+v %v: %s", c.policy, c.weights, d)
		}
	}
}

// A host that leaves takes few keys along but its own.
func TestHashingIsConsistent(t *testing.T) {
	const n = 3000
	for name, p := range map[string]lb.Policy{"ring": lb.RingHash{Min: 1024, Max: lb.DefaultRingMax}, "maglev": lb.Maglev{Size: lb.DefaultMaglevSize}} {
		keys := []string{"host-a", "host-b", "host-c", "host-d", "host-e"}
		before, after := sequence(table(p, keyed(keys...)), n), sequence(table(p, keyed(keys[1:]...)), n)
		moved, share := 0, 0
		for i := range n {
			if before[i] == 'a' {
				share++
			} else if before[i] != after[i] {
				moved++
			}
		}
		if share < n/7 || share > n/3 {
			t.Errorf("%s: one of five hosts has %d of %d keys", name, share, n)
		}
		// The others get more places on the ring, so some of their keys move among them.
		if limit := map[string]int{"ring": n / 6, "maglev": n / 20}[name]; moved > limit {
			t.Errorf("%s: %d keys moved that need not", name, moved)
		}
	}
}

func TestHashingRetries(t *testing.T) {
	for _, p := range []lb.Policy{lb.RingHash{Min: 1024, Max: lb.DefaultRingMax}, lb.Maglev{Size: lb.DefaultMaglevSize}} {
		hs := keyed("host-a", "host-b", "host-c")
		tab := table(p, hs)
		var l lb.Local
		other := 0
		for i := range 100 {
			c := &lb.Context{W: worker(1), HasHash: true, Hash: xxhash.Sum64String(fmt.Sprint(i))}
			first, _ := tab.Pick(&l, c)
			c.Exclude, c.Attempts = []*host.Host{first}, 5
			if h, _ := tab.Pick(&l, c); h != first {
				other++
			}
		}
		if other < 95 {
			t.Errorf("%T: %d of 100 retries went elsewhere", p, other)
		}
	}
}

func TestBoundedLoad(t *testing.T) {
	hs := keyed("host-a", "host-b", "host-c")
	tab := table(lb.RingHash{Min: 1024, Max: lb.DefaultRingMax, Hashing: lb.Hashing{BalanceFactor: 120}}, hs)
	var l lb.Local
	c := &lb.Context{W: worker(1), HasHash: true, Hash: 12345}
	got := map[*host.Host]int{}
	for range 300 { // all of one key, none of them ends
		h, _ := tab.Pick(&l, c)
		h.RqActive.Add(1)
		got[h]++
	}
	for h, n := range got {
		if n > 123 {
			t.Errorf("%s has %d of 300 requests, its bound is 120%% of its share", h.Hostname, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() { tab.Pick(&l, c) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// With weights of places each place has its part of the table, which goes to others only if it is ill as a whole. The numbers are the real
// Envoy's.
func TestHashingByPlace(t *testing.T) {
	place := func(weight uint32, weights []uint32, flags ...host.Flag) lb.LocalitySet {
		hs := hosts(weights, flags...)
		s := lb.NewHostSet(hs)
		return lb.LocalitySet{Weight: weight, Hosts: hs, Healthy: s.Healthy}
	}
	ill := host.FailedEDSHealth
	ring, maglev := lb.RingHash{Min: 1024, Max: lb.DefaultRingMax}, lb.Maglev{Size: lb.DefaultMaglevSize}
	for _, c := range []struct {
		name         string
		places       []lb.LocalitySet
		ring, maglev lb.Counts
		shares       []float64 // of the places, in picks
	}{
		{"two and two", []lb.LocalitySet{place(3, []uint32{1, 1}), place(1, []uint32{1, 1})}, lb.Counts{Size: 1024, Min: 128, Max: 384}, lb.Counts{Size: 65537, Min: 8192, Max: 24576}, []float64{.75, .25}},
		{"uneven", []lb.LocalitySet{place(1, []uint32{1, 3, 1}), place(2, []uint32{1})}, lb.Counts{Size: 1035, Min: 69, Max: 690}, lb.Counts{Size: 65537, Min: 4370, Max: 43690}, []float64{.333, .667}},
		{"no weights", []lb.LocalitySet{place(0, []uint32{1, 1}), place(0, []uint32{1, 1})}, lb.Counts{}, lb.Counts{}, nil},
		{"one without", []lb.LocalitySet{place(2, []uint32{1, 1}), place(0, []uint32{1, 1})}, lb.Counts{Size: 1024, Min: 512, Max: 512}, lb.Counts{Size: 65537, Min: 32768, Max: 32769}, []float64{1, 0}},
		{"one host ill", []lb.LocalitySet{place(3, []uint32{1, 1}, 0, ill), place(1, []uint32{1, 1})}, lb.Counts{Size: 1024, Min: 128, Max: 768}, lb.Counts{Size: 65537, Min: 8192, Max: 49152}, []float64{.75, .25}},
		{"one place ill", []lb.LocalitySet{place(3, []uint32{1}, ill), place(1, []uint32{1, 1}), place(1, []uint32{1})}, lb.Counts{Size: 1030, Min: 103, Max: 206}, lb.Counts{Size: 65537, Min: 16385, Max: 32767}, []float64{0, .5, .5}},
		{"panic", []lb.LocalitySet{place(3, []uint32{1, 1}, ill, ill), place(1, []uint32{1, 1}, 0, ill)}, lb.Counts{Size: 1024, Min: 128, Max: 384}, lb.Counts{Size: 65537, Min: 8192, Max: 24576}, []float64{.75, .25}},
	} {
		for _, p := range []lb.Policy{ring, maglev} {
			var all []*host.Host
			for i, l := range c.places {
				for k, h := range l.Hosts { // each has a name and a key of its own
					h.Hostname = fmt.Sprint(i)
					h.SetMetadata(&host.Metadata{Spaces: map[string]map[string]any{"envoy.lb": {"hash_key": fmt.Sprint(i, k)}}})
				}
				all = append(all, l.Hosts...)
			}
			set := lb.NewHostSet(all)
			set.Localities = c.places
			tab := lb.NewTable(&lb.Options{Policy: p, PanicThreshold: 50, LocalityWeighted: true}, []lb.HostSet{set}, nil)
			want := c.ring
			if p == lb.Policy(maglev) {
				want = c.maglev
			}
			if d := cmp.Diff(want, p.(lb.Counter).Counts(&set, true, tab.InPanic(0))); d != "" {
				t.Errorf("%s, %T: %s", c.name, p, d)
			}
			const n = 4000
			shares := map[string]float64{"none": 1}
			if c.shares != nil {
				shares = map[string]float64{}
			}
			for i, x := range c.shares {
				if x > 0 {
					shares[fmt.Sprint(i)] = x
				}
			}
			near(t, picks(tab, &lb.Context{W: worker(1)}, n), shares, n)
		}
	}
}
