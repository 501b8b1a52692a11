package lb

import (
	"math"
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
	make   func(hosts []*host.Host) table
	table  atomic.Pointer[table]
	total  float64 // of the weights
	bounds Hashing
}

func newHashed(hosts []*host.Host, b Hashing, mk func([]*host.Host) table) *hashed {
	return &hashed{hosts: hosts, make: mk, bounds: b, total: float64(weights(hosts))}
}

// Pick implements Balancer. A request without a hash goes anywhere.
func (b *hashed) Pick(c *Context) *host.Host {
	hash := c.Hash
	if !c.HasHash {
		hash = c.W.Rand.Uint64()
	}
	t := b.table.Load()
	if t == nil {
		x := b.make(b.hosts)
		t = &x
		b.table.Store(t)
	}
	h := b.hosts[(*t).find(hash, c.attempt)]
	// A host with at most one request is never at its bound.
	if b.bounds.BalanceFactor > 0 && h.RqActive.Load() > 1 {
		return b.bounded(h, hash)
	}
	return h
}

// bounded returns h if it may have one more request, or another host, or the one that is least above its bound.
func (b *hashed) bounded(h *host.Host, hash uint64) *host.Host {
	active := int64(0)
	for _, x := range b.hosts {
		active += x.RqActive.Load()
	}
	slots := float64(((active+1)*int64(b.bounds.BalanceFactor) + 99) / 100)
	load := func(x *host.Host) float64 {
		return float64(x.RqActive.Load()) / max(math.Ceil(slots*float64(x.Weight())/b.total), 1)
	}
	best, least := h, load(h)
	if least <= 1 {
		return h
	}
	// All hosts in an order that the hash decides: a walk with a step that has no factor in common with their number.
	n := uint64(len(b.hosts))
	at, step := hash%n, hash/n%n
	for gcd(step, n) != 1 {
		step++
	}
	for range n {
		at = (at + step) % n
		x := b.hosts[at]
		l := load(x)
		if l <= 1 {
			return x
		}
		if l < least {
			best, least = x, l
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
	Counts(hosts []*host.Host) Counts
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
func (p Maglev) Build(hosts []*host.Host, _ int) Balancer {
	return newHashed(hosts, p.Hashing, func(hosts []*host.Host) table { return p.table(hosts) })
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
func (p Maglev) table(hosts []*host.Host) maglev {
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
	p.turns(hosts, func(i int) {
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
func (p Maglev) turns(hosts []*host.Host, take func(i int)) {
	total := float64(weights(hosts))
	weight, target := make([]float64, len(hosts)), make([]float64, len(hosts))
	top := 0.0
	for i, h := range hosts {
		weight[i] = float64(h.Weight()) / total
		top = max(top, weight[i])
	}
	for n, turn := uint64(0), 1; n < p.Size; turn++ {
		for i := 0; i < len(hosts) && n < p.Size; i++ {
			if float64(turn)*weight[i] < target[i] {
				continue
			}
			target[i] += top
			take(i)
			n++
		}
	}
}

// Counts implements Counter.
func (p Maglev) Counts(hosts []*host.Host) Counts {
	n := make([]uint64, len(hosts))
	p.turns(hosts, func(i int) { n[i]++ })
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
