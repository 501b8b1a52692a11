// Package buffer holds the byte containers that move between connections, codecs and filters.
//
// A Pool belongs to one worker and is not safe for concurrent use, and neither are the Buffers and Slabs that come from it:
// a Slab may move between any two owners on the same worker, never to another thread. A Buffer that is empty owns no memory.
package buffer

// SlabSize is the size of a pooled slab in bytes. Larger reservations get a slab of their own that is not kept.
const SlabSize = 16 << 10

// MaxFree bounds the slabs that a pool keeps for reuse (16 MiB); what comes back beyond that is left to the garbage collector.
const MaxFree = 1024

// poison is written over released memory when Pool.Poison is set, so that a view that outlived its owner is seen at once.
const poison = 0xdb

// Slab is a reference-counted block of memory. owner: one worker.
type Slab struct {
	buf  []byte
	refs int32
	pool *Pool
}

// Pool is a worker's free list of slabs. owner: worker.
type Pool struct {
	// Poison makes every release overwrite the memory. Set it in tests, before first use.
	Poison bool

	free  []*Slab
	raw   [][]byte
	pairs []*[pairLen]segment
	live  int
	// idle is what a pass left behind; Trim lets go of half of it, so that a burst does not pin its peak for ever.
	low int
}

// Live returns how many slabs are in use. Tests check that it returns to zero.
func (p *Pool) Live() int { return p.live }

// Free returns how many slabs wait for reuse.
func (p *Pool) Free() int { return len(p.free) }

// Trim gives half of the slabs that were not needed since the last Trim to the garbage collector. The worker calls it every
// few seconds, so memory follows load down.
func (p *Pool) Trim() {
	drop := (p.low + 1) / 2
	if drop > len(p.free) {
		drop = len(p.free)
	}
	for i := 0; i < drop; i++ {
		n := len(p.free) - 1
		p.free[n] = nil
		p.free = p.free[:n]
	}
	p.low = len(p.free)
}

func (p *Pool) get(n int) *Slab {
	p.live++
	if n <= SlabSize {
		if k := len(p.free); k > 0 {
			s := p.free[k-1]
			p.free[k-1] = nil
			p.free = p.free[:k-1]
			if k-1 < p.low {
				p.low = k - 1
			}
			s.refs = 1
			return s
		}
		n = SlabSize
	}
	return &Slab{buf: make([]byte, n), refs: 1, pool: p}
}

func (s *Slab) retain() { s.refs++ }

func (s *Slab) release() {
	s.refs--
	if s.refs > 0 {
		return
	}
	if s.refs < 0 {
		panic("buffer: slab released twice")
	}
	p := s.pool
	p.live--
	if p.Poison {
		for i := range s.buf {
			s.buf[i] = poison
		}
	}
	if len(s.buf) == SlabSize && len(p.free) < MaxFree {
		p.free = append(p.free, s)
	}
}

// pairLen is how many runs a Buffer holds before it needs a list of its own: what arrives in a pass is one run mostly, and what is
// added to it another.
const pairLen = 2

const (
	// pairBatch is how many pairs are made at once, and maxFreePairs bounds those that a pool keeps (256 KiB).
	pairBatch    = 32
	maxFreePairs = 4096
)

// pair returns an empty list for pairLen runs. An empty Buffer has none: most of a stream's Buffers are empty all its life.
func (p *Pool) pair() []segment {
	if p == nil { // of a Buffer that only shows what it borrows
		return make([]segment, 0, pairLen)
	}
	if len(p.pairs) == 0 {
		block := make([][pairLen]segment, pairBatch)
		for i := range block {
			p.pairs = append(p.pairs, &block[i])
		}
	}
	k := len(p.pairs) - 1
	s := p.pairs[k]
	p.pairs[k] = nil
	p.pairs = p.pairs[:k]
	return s[:0]
}

// putPair takes a list of pair back.
func (p *Pool) putPair(s []segment) {
	if p == nil {
		return
	}
	pair := (*[pairLen]segment)(s[:pairLen])
	*pair = [pairLen]segment{}
	if len(p.pairs) < maxFreePairs {
		p.pairs = append(p.pairs, pair)
	}
}

// Raw returns a plain slice of length 0 and capacity of at least n for bytes that must be contiguous; give it back with PutRaw.
func (p *Pool) Raw(n int) []byte {
	p.live++
	if n <= SlabSize {
		if k := len(p.raw); k > 0 {
			b := p.raw[k-1]
			p.raw[k-1] = nil
			p.raw = p.raw[:k-1]
			return b
		}
		n = SlabSize
	}
	return make([]byte, 0, n)
}

// PutRaw gives a slice of Raw back. It may have been re-sliced at its end, not at its front.
func (p *Pool) PutRaw(b []byte) {
	p.live--
	b = b[:cap(b)]
	if p.Poison {
		for i := range b {
			b[i] = poison
		}
	}
	if len(b) == SlabSize && len(p.raw) < MaxFree/16 {
		p.raw = append(p.raw, b[:0])
	}
}
