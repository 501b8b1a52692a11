package stats

import (
	api "github.com/dragoman-proxy/dragoman/api/stats"
)

const (
	pageShift = 5
	pageCells = 1 << pageShift // 256 bytes: a small multiple of a cache line, and about what one request touches
	pageMask  = pageCells - 1

	histShift = 4
	histCells = 1 << histShift
	histMask  = histCells - 1

	slabPages    = 16
	maxIdleLater = 256

	// MaxCells and MaxHistograms bound the ids of one store. A registration beyond them gets the zero id, which counts
	// into nothing.
	MaxCells      = 1 << 26
	MaxHistograms = 1 << 22

	// MaxRareCodes bounds the response codes of a shard that have no cell of their own (see api/stats.CodeSlot).
	MaxRareCodes = 1 << 16
)

type page [pageCells]uint64

type histPage [histCells]*Histogram

// Shard holds the values of one thread. Only that thread may use it; the store reads snapshots.
//
// A counter is its value. A gauge is this thread's share of the value, shifted left by one with the lowest bit set, so
// that a gauge that came back to zero still tells that it was used.
type Shard struct {
	pages []*page
	hists []*histPage
	rare  map[rareKey]uint64
	slab  []page
	later []laterOp
	name  string
}

// laterOp is an addition to a cell whose page does not exist yet.
type laterOp struct {
	n     uint64
	id    uint32
	gauge bool
}

// rareKey is a response code that has no cell: the block's id and the code.
type rareKey struct {
	id   api.CodesID
	code uint16
}

var _ api.Recorder = (*Shard)(nil)

// Name returns the name that the shard was made with, "worker_0".
func (s *Shard) Name() string { return s.name }

// Inc adds one to a counter. It is inlined: what it would have to call (making the page on first touch) is put off to Settle.
func (s *Shard) Inc(id api.CounterID) {
	if i := uint(id >> pageShift); i < uint(len(s.pages)) {
		if p := s.pages[i]; p != nil {
			p[id&pageMask]++
			return
		}
	}
	s.later = append(s.later, laterOp{id: uint32(id), n: 1})
}

// Add adds n to a counter.
func (s *Shard) Add(id api.CounterID, n uint64) {
	if i := uint(id >> pageShift); i < uint(len(s.pages)) {
		if p := s.pages[i]; p != nil {
			p[id&pageMask] += n
			return
		}
	}
	s.later = append(s.later, laterOp{id: uint32(id), n: n})
}

// GaugeAdd adds n to this thread's share of a gauge.
func (s *Shard) GaugeAdd(id api.GaugeID, n int64) {
	if i := uint(id >> pageShift); i < uint(len(s.pages)) {
		if p := s.pages[i]; p != nil {
			p[id&pageMask] = (p[id&pageMask] + uint64(n)<<1) | 1
			return
		}
	}
	s.later = append(s.later, laterOp{id: uint32(id), n: uint64(n), gauge: true})
}

// GaugeSub takes n from this thread's share of a gauge.
func (s *Shard) GaugeSub(id api.GaugeID, n int64) { s.GaugeAdd(id, -n) }

// Record adds a value to a histogram.
func (s *Shard) Record(id api.HistogramID, v uint64) {
	s.Settle()
	if i := uint(id >> histShift); i < uint(len(s.hists)) {
		if p := s.hists[i]; p != nil {
			if h := p[id&histMask]; h != nil {
				h.Record(v)
				return
			}
		}
	}
	s.touchHistogram(uint32(id)).Record(v)
}

// IncCode counts a response code and its class.
func (s *Shard) IncCode(id api.CodesID, code int) {
	slot := api.CodeSlot(code)
	if slot != api.CodeUnknown {
		s.Inc(api.CounterID(id) + api.CounterID(code/100-1))
		if slot == 0 {
			s.incRare(id, code)
			return
		}
	}
	s.Inc(api.CounterID(id) + api.CounterID(slot))
	s.Settle()
}

// Settle makes the pages of stats that were counted for the first time. The owner calls it once a pass of its loop; Record,
// IncCode and a snapshot do too. Until then what was counted in pages that do not exist yet waits in a list.
func (s *Shard) Settle() {
	if len(s.later) > 0 {
		s.settle()
	}
}

func (s *Shard) settle() {
	for _, op := range s.later {
		cell := &s.touch(op.id)[op.id&pageMask]
		if op.gauge {
			*cell = (*cell + op.n<<1) | 1
		} else {
			*cell += op.n
		}
	}
	s.later = s.later[:0]
	if cap(s.later) > maxIdleLater {
		s.later = nil
	}
}

// touch returns the page of a cell, making it if need be. A cell past the bound lands on the page that counts into
// nothing.
func (s *Shard) touch(id uint32) *page {
	i := int(id >> pageShift)
	if id >= MaxCells {
		i = 0
	}
	if i >= len(s.pages) {
		s.pages = grow(s.pages, i)
	}
	if s.pages[i] == nil {
		if len(s.slab) == 0 {
			s.slab = make([]page, slabPages)
		}
		s.pages[i] = &s.slab[0]
		s.slab = s.slab[1:]
	}
	return s.pages[i]
}

func (s *Shard) touchHistogram(id uint32) *Histogram {
	if id >= MaxHistograms {
		id = 0
	}
	i := int(id >> histShift)
	if i >= len(s.hists) {
		s.hists = grow(s.hists, i)
	}
	if s.hists[i] == nil {
		s.hists[i] = new(histPage)
	}
	p := &s.hists[i][id&histMask]
	if *p == nil {
		*p = new(Histogram)
	}
	return *p
}

func (s *Shard) incRare(id api.CodesID, code int) {
	k := rareKey{id, uint16(code)}
	if _, ok := s.rare[k]; !ok {
		if len(s.rare) >= MaxRareCodes {
			return
		}
		if s.rare == nil {
			s.rare = make(map[rareKey]uint64)
		}
	}
	s.rare[k]++
}

// grow returns a table that holds index i, at least doubled, so that a shard that meets one id after the other copies its
// table rarely.
func grow[T any](table []*T, i int) []*T {
	n := max(64, 2*len(table))
	for n <= i {
		n *= 2
	}
	out := make([]*T, n)
	copy(out, table)
	return out
}
