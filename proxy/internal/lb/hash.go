package lb

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
)

// Hashing is what consistent hashing policies have in common.
type Hashing struct {
	// UseHostname hashes hosts by their hostname instead of their address. The metadata envoy.lb hash_key goes before both.
	UseHostname bool
	// BalanceFactor bounds the active requests of a host to this percentage of its share, 0: not at all. A host at its bound is
	// passed over for another one, which the hash decides.
	BalanceFactor uint32
}

// table maps hashes to places in a list of hosts.
type table interface {
	find(hash uint64, attempt int) int
}

// hashed is the balancer of a consistent hashing policy. Its table is built with the first pick, by whoever comes first.
type hashed struct {
	hosts  []*host.Host
	make   func(hosts []*host.Host, shares []float64) table
	table  atomic.Pointer[table]
	total  float64   // of the weights
	shares []float64 // of the hosts in all, if not by their weights
	bounds Hashing
}

func newHashed(hosts []*host.Host, shares []float64, b Hashing, mk func([]*host.Host, []float64) table) *hashed {
	return &hashed{hosts: hosts, shares: shares, make: mk, bounds: b, total: float64(weights(hosts))}
}

// sharer is a Policy that can be told which share each host has of the whole: it takes all places at once.
type sharer interface {
	// buildShared is Build with a share for each host. It keeps both.
	buildShared(hosts []*host.Host, shares []float64) Balancer
}

// byWeight are the shares of hosts by their weights.
func byWeight(hosts []*host.Host) []float64 {
	total := float64(weights(hosts))
	shares := make([]float64, len(hosts))
	for i, h := range hosts {
		shares[i] = float64(h.Weight()) / total
	}
	return shares
}

// byPlace are the hosts of a set that which names, with their shares: each place has its part of the weights of all, whoever is ill there,
// and divides it by the hosts' weights. Without weights of places there are no hosts, as in Envoy.
func (s *HostSet) byPlace(which func(*LocalitySet) []*host.Host) (hosts []*host.Host, shares []float64) {
	sum := 0.0
	for i := range s.Localities {
		sum += float64(s.Localities[i].Weight)
	}
	for i := range s.Localities {
		l := &s.Localities[i]
		if l.Weight == 0 {
			continue
		}
		list := which(l)
		hosts = append(hosts, list...)
		for _, x := range byWeight(list) {
			shares = append(shares, x*float64(l.Weight)/sum)
		}
	}
	return hosts, shares
}

// Pick implements Balancer. A request without a hash goes anywhere.
func (b *hashed) Pick(c *Context) *host.Host {
	hash := c.Hash
	if !c.HasHash {
		hash = c.W.Rand.Uint64()
	}
	t := b.table.Load()
	if t == nil {
		x := b.make(b.hosts, b.shares)
		t = &x
		b.table.Store(t)
	}
	i := (*t).find(hash, c.attempt)
	h := b.hosts[i]
	// A host with at most one request is never at its bound.
	if b.bounds.BalanceFactor > 0 && h.RqActive.Load() > 1 {
		return b.bounded(i, hash)
	}
	return h
}

// bounded returns the first host if it may have one more request, or another host, or the one that is least above its bound.
func (b *hashed) bounded(first int, hash uint64) *host.Host {
	active := int64(0)
	for _, x := range b.hosts {
		active += x.RqActive.Load()
	}
	slots := float64(((active+1)*int64(b.bounds.BalanceFactor) + 99) / 100)
	load := func(i int) float64 {
		share := float64(b.hosts[i].Weight()) / b.total
		if b.shares != nil {
			share = b.shares[i]
		}
		return float64(b.hosts[i].RqActive.Load()) / max(math.Ceil(slots*share), 1)
	}
	best, least := b.hosts[first], load(first)
	if least <= 1 {
		return best
	}
	// All hosts in an order that the hash decides: a walk with a step that has no factor in common with their number.
	n := uint64(len(b.hosts))
	at, step := hash%n, hash/n%n
	for gcd(step, n) != 1 {
		step++
	}
	for range n {
		at = (at + step) % n
		l := load(int(at))
		if l <= 1 {
			return b.hosts[at]
		}
		if l < least {
			best, least = b.hosts[at], l
		}
	}
	return best
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// key is what of a host is hashed.
func (o *Hashing) key(h *host.Host) string {
	if v, ok := h.Metadata().Get("envoy.lb", "hash_key"); ok {
		if s, isString := v.(string); isString && s != "" {
			return s
		}
	}
	if o.UseHostname && h.Hostname != "" {
		return h.Hostname
	}
	return h.Address.String()
}

// Counts says how a table is shared by hosts, for stats.
type Counts struct{ Size, Min, Max uint64 }

// Counter is a Policy whose tables have sizes to show.
type Counter interface {
	// Counts is for the hosts of a set that are used: all of them in panic; placed: places have weights.
	Counts(s *HostSet, placed, panics bool) Counts
}

// counted are the shares of the hosts that a table of s is of.
func counted(s *HostSet, placed, panics bool) (shares []float64) {
	if placed {
		_, shares = s.byPlace(func(l *LocalitySet) []*host.Host {
			if panics {
				return l.Hosts
			}
			return l.Healthy
		})
		return shares
	}
	if panics {
		return byWeight(s.Hosts)
	}
	return byWeight(s.Healthy)
}

// Maglev is the MAGLEV policy.
type Maglev struct {
	Hashing
	// Size is table_size, a prime.
	Size uint64
}

// DefaultMaglevSize is table_size.
const DefaultMaglevSize = 65537

// Build implements Policy.
func (p Maglev) Build(hosts []*host.Host, _ int) Balancer { return p.buildShared(hosts, nil) }

func (p Maglev) buildShared(hosts []*host.Host, shares []float64) Balancer {
	return newHashed(hosts, shares, p.Hashing, func(hosts []*host.Host, shares []float64) table { return p.table(hosts, shares) })
}

type maglev []uint32

func (t maglev) find(hash uint64, attempt int) int {
	if attempt > 0 {
		hash ^= ^uint64(0) - uint64(attempt) + 1
	}
	return int(t[hash%uint64(len(t))])
}

// table fills the slots: in turn each host takes the next free one of its own permutation, hosts of less weight in fewer turns
// (the algorithm of the Maglev paper, section 3.4, with weights as Envoy has them).
func (p Maglev) table(hosts []*host.Host, shares []float64) maglev {
	if shares == nil {
		shares = byWeight(hosts)
	}
	const free = math.MaxUint32
	t := make(maglev, p.Size)
	for i := range t {
		t[i] = free
	}
	type entry struct{ offset, skip, next uint64 }
	entries := make([]entry, len(hosts))
	seeded := xxhash.NewWithSeed(1)
	for i, h := range hosts {
		key := p.key(h)
		seeded.ResetWithSeed(1)
		_, _ = seeded.WriteString(key)
		entries[i] = entry{offset: xxhash.Sum64String(key) % p.Size, skip: seeded.Sum64()%(p.Size-1) + 1}
	}
	p.turns(shares, func(i int) {
		e := &entries[i]
		for {
			c := (e.offset + e.skip*e.next) % p.Size
			e.next++
			if t[c] == free {
				t[c] = uint32(i)
				return
			}
		}
	})
	return t
}

// turns calls take for the host whose turn it is, once for each slot.
func (p Maglev) turns(shares []float64, take func(i int)) {
	target := make([]float64, len(shares))
	top := slices.Max(shares)
	for n, turn := uint64(0), 1; n < p.Size; turn++ {
		for i := 0; i < len(shares) && n < p.Size; i++ {
			if float64(turn)*shares[i] < target[i] {
				continue
			}
			target[i] += top
			take(i)
			n++
		}
	}
}

// Counts implements Counter.
func (p Maglev) Counts(s *HostSet, placed, panics bool) Counts {
	shares := counted(s, placed, panics)
	if len(shares) == 0 {
		return Counts{}
	}
	n := make([]uint64, len(shares))
	p.turns(shares, func(i int) { n[i]++ })
	return count(n)
}

func count(n []uint64) Counts {
	c := Counts{Min: math.MaxUint64}
	for _, x := range n {
		c.Size += x
		c.Min, c.Max = min(c.Min, x), max(c.Max, x)
	}
	return c
}
