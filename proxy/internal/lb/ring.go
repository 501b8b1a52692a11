package lb

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/cespare/xxhash/v2"

	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
)

// RingHash is the RING_HASH policy.
type RingHash struct {
	Hashing
	// Min and Max bound the number of places on the ring.
	Min, Max uint64
	// Murmur uses MurmurHash2 (64 bits) instead of xxHash.
	Murmur bool
}

// The defaults of RingHash, and the most that can be configured.
const (
	DefaultRingMin = 1024
	DefaultRingMax = 8 << 20
)

// Build implements Policy.
func (p RingHash) Build(hosts []*host.Host, _ int) Balancer { return p.buildShared(hosts, nil) }

func (p RingHash) buildShared(hosts []*host.Host, shares []float64) Balancer {
	return newHashed(hosts, shares, p.Hashing, func(hosts []*host.Host, shares []float64) table { return p.table(hosts, shares) })
}

// ring is places in the order of their hashes.
type ring struct {
	hashes []uint64
	hosts  []uint32
}

// find returns the host of the first place that is not before hash.
func (r *ring) find(hash uint64, attempt int) int {
	i, _ := slices.BinarySearch(r.hashes, hash)
	if i == len(r.hashes) {
		i = 0
	}
	return int(r.hosts[(i+attempt)%len(r.hosts)])
}

func (p RingHash) table(hosts []*host.Host, shares []float64) *ring {
	if shares == nil {
		shares = byWeight(hosts)
	}
	type place struct {
		hash uint64
		host uint32
	}
	var places []place
	var key []byte
	p.places(shares, func(i int, n uint64) {
		key = append(append(key[:0], p.key(hosts[i])...), '_')
		base := len(key)
		for k := range n {
			key = strconv.AppendUint(key[:base], k, 10)
			hash := xxhash.Sum64(key)
			if p.Murmur {
				hash = murmur2(key)
			}
			places = append(places, place{hash, uint32(i)})
		}
	})
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.hash, b.hash) })
	r := &ring{hashes: make([]uint64, len(places)), hosts: make([]uint32, len(places))}
	for i, x := range places {
		r.hashes[i], r.hosts[i] = x.hash, x.host
	}
	return r
}

// scale is how many places hosts would have that have all shares.
func (p RingHash) scale(shares []float64) float64 {
	least := min(1, slices.Min(shares))
	return min(math.Ceil(least*float64(p.Min))/least, float64(p.Max))
}

// places calls f with the number of places of each host: so many that the one with the least share has a whole number of them,
// and all of them are at least Min.
func (p RingHash) places(shares []float64, f func(i int, n uint64)) {
	scale := p.scale(shares)
	have, want := 0.0, 0.0
	for i, share := range shares {
		want += scale * share
		n := uint64(0)
		for have < want {
			have++
			n++
		}
		f(i, n)
	}
}

// Counts implements Counter.
func (p RingHash) Counts(s *HostSet, placed, panics bool) Counts {
	shares := counted(s, placed, panics)
	if len(shares) == 0 {
		return Counts{}
	}
	n := make([]uint64, len(shares))
	p.places(shares, func(i int, k uint64) { n[i] = k })
	c := count(n)
	c.Size = uint64(math.Ceil(p.scale(shares))) // with the places of who is ill, as Envoy has it
	return c
}

// murmur2 is MurmurHash2 for 64 bits with the seed of the C++ library.
func murmur2(b []byte) uint64 {
	const mul, seed = 0xc6a4a7935bd1e995, 0xc70f6907
	mix := func(v uint64) uint64 { return v ^ v>>47 }
	h := uint64(seed) ^ uint64(len(b))*mul
	for ; len(b) >= 8; b = b[8:] {
		h = (h ^ mix(binary.LittleEndian.Uint64(b)*mul)*mul) * mul
	}
	if len(b) > 0 {
		var rest [8]byte
		copy(rest[:], b)
		h = (h ^ binary.LittleEndian.Uint64(rest[:])) * mul
	}
	return mix(mix(h) * mul)
}
