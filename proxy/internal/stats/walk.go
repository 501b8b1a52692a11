package stats

import (
	"container/heap"
	"math"
	"slices"
	"strconv"
	"strings"

	api "github.com/dragoman-proxy/dragoman/api/stats"
)

// Query says which stats an output has.
type Query struct {
	UsedOnly bool
	Filter   Filter // nil: all
	Types    Types
	Buckets  Buckets
	Texts    bool // Prometheus: with text readouts
}

// Filter chooses stats by their names; a *regexp.Regexp is one.
type Filter interface {
	// Match tells whether the stat of this name, which is only valid during the call, is shown.
	Match(name []byte) bool
}

// Types is the type= parameter of /stats.
type Types uint8

// Values of Types.
const (
	AllTypes Types = iota
	CountersOnly
	GaugesOnly
	HistogramsOnly
	TextsOnly
)

// ParseTypes reads a type= parameter; the empty one means all.
func ParseTypes(s string) (Types, bool) {
	i := slices.Index([]string{"All", "Counters", "Gauges", "Histograms", "TextReadouts"}, s)
	if s == "" {
		i = 0
	}
	return Types(max(i, 0)), i >= 0
}

// kindSet is a set of api.Kind.
type kindSet uint8

const (
	countersAndGauges kindSet = 1<<api.KindCounter | 1<<api.KindGauge
	counters          kindSet = 1 << api.KindCounter
	gauges            kindSet = 1 << api.KindGauge
	histograms        kindSet = 1 << api.KindHistogram
)

func (k kindSet) has(kind api.Kind) bool { return k>>kind&1 == 1 }

// sample is one stat that is shown.
type sample struct {
	name  []byte // valid until the next one
	kind  api.Kind
	unit  api.Unit
	rare  bool
	used  bool
	id    uint32 // cell or histogram
	value uint64
	hist  *flushedValues // nil for a histogram without values
}

// walker yields the stats of a store in the order of their names, without building the names of those that are not shown.
// Groups are sorted by prefix, their templates are sorted already; only groups whose prefixes are prefixes of one another
// have to be merged.
type walker struct {
	store  *Store
	kinds  kindSet
	query  Query
	groups []group // sorted by prefix, those that have not begun
	heap   cursorHeap
	rares  map[api.CodesID][]rareCode
	out    sample
	name   []byte
	work   int // stats looked at since the last resume
	limit  int // of work; next pauses beyond it
}

// cursor is one group that is being walked.
type cursor struct {
	prefix string
	t      *api.Template // nil: rare
	rare   []rareStat
	cell   uint32
	hist   uint32
	pages  uint64 // which pages of the group exist
	pos    int    // in t.Sorted() or in rare
	suffix string
}

type rareCode struct {
	code  uint16
	count uint64
}

type rareStat struct {
	name  string
	count uint64
}

func newWalker(s *Store, kinds kindSet, q Query) *walker {
	w := &walker{store: s, kinds: kinds, query: q, groups: s.sortedGroups(), limit: math.MaxInt}
	if kinds.has(api.KindCounter) {
		w.rares = s.rareCodes()
	}
	return w
}

// resume lets next look at about so many stats before it pauses.
func (w *walker) resume(limit int) { w.work, w.limit = 0, limit }

// next returns the next stat, nil at the end or after a pause, which paused tells apart.
func (w *walker) next() *sample {
	for {
		if w.admit(false); w.paused() || len(w.heap) == 0 {
			return nil
		}
		c := w.heap[0]
		w.name = append(append(w.name[:0], c.prefix...), c.suffix...)
		w.out = sample{name: w.name}
		w.take(c)
		// Two groups may hold the same name (a scope's single stat and a template's): it is shown once.
		for w.admit(true); len(w.heap) > 0 && w.heap[0].is(w.name); w.admit(true) {
			w.take(w.heap[0])
		}
		if w.store.wants(w.name, w.query.Filter) {
			return &w.out
		}
	}
}

func (w *walker) paused() bool { return w.work > w.limit }

// admit starts all groups that can come before what is at the top of the heap, or, unless all of them are needed, as many as the
// limit of work lets it.
func (w *walker) admit(needed bool) {
	for len(w.groups) > 0 && (len(w.heap) == 0 || w.heap[0].notBefore(w.groups[0].prefix)) && (needed || !w.paused()) {
		g := &w.groups[0]
		w.groups = w.groups[1:]
		c := &cursor{prefix: g.prefix, t: g.t, cell: g.cell, hist: g.hist, pages: w.store.pagesOf(g), pos: -1}
		if w.advance(c) {
			heap.Push(&w.heap, c)
		}
		if len(w.rares) > 0 {
			if rare := w.rareStats(g); len(rare) > 0 {
				heap.Push(&w.heap, &cursor{prefix: g.prefix, rare: rare, suffix: rare[0].name})
			}
		}
	}
}

// take adds the stat that a cursor stands on to the output and moves the cursor on.
func (w *walker) take(c *cursor) {
	if c.t == nil {
		w.out.kind, w.out.rare, w.out.used = api.KindCounter, true, true
		w.out.value += c.rare[c.pos].count
	} else {
		st := &c.t.Stats()[c.t.Sorted()[c.pos]]
		w.out.kind, w.out.unit = st.Kind, st.Unit
		v, used, id := w.store.read(c.cell, c.hist, st)
		w.out.value, w.out.id, w.out.used = w.out.value+v, id, w.out.used || used
		if st.Kind == api.KindHistogram && w.out.hist == nil {
			w.out.hist = w.store.flushed[id]
		}
	}
	if w.advance(c) {
		heap.Fix(&w.heap, 0)
	} else {
		heap.Pop(&w.heap)
	}
}

// advance moves a cursor to its next stat that is shown.
func (w *walker) advance(c *cursor) bool {
	c.pos++
	if c.t == nil {
		if c.pos < len(c.rare) {
			c.suffix = c.rare[c.pos].name
		}
		return c.pos < len(c.rare)
	}
	order, all, from := c.t.Sorted(), c.t.Stats(), c.pos
	defer func() { w.work += c.pos - from + 1 }()
	for ; c.pos < len(order); c.pos++ {
		st := &all[order[c.pos]]
		if !w.kinds.has(st.Kind) || (st.Lazy || w.query.UsedOnly) && st.Kind != api.KindHistogram && !c.exists(st) {
			continue
		}
		if w.store.shown(c.cell, c.hist, st, w.query.UsedOnly) {
			c.suffix = st.Name
			return true
		}
	}
	return false
}

// exists tells whether the page of a counter or gauge exists in some shard; if not, it was never used.
func (c *cursor) exists(st *api.Stat) bool {
	return c.pages>>((c.cell+uint32(st.At))>>pageShift-c.cell>>pageShift)&1 == 1
}

// pagesOf returns which pages of a group exist anywhere, the first in the lowest bit. A template has at most
// MaxTemplateCells cells and begins on a page or stays inside one, so that they fit.
func (s *Store) pagesOf(g *group) (set uint64) {
	first := g.cell >> pageShift
	n := (g.cell+uint32(g.t.Cells()))>>pageShift - first + 1
	for i := range n {
		at := int(first + i)
		exists := false
		for _, slot := range s.shards {
			exists = exists || at < len(slot.current.pages) && slot.current.pages[at] != nil
		}
		if exists {
			set |= 1 << i
		}
	}
	return set
}

// shown tells whether a stat of a group is part of the output.
func (s *Store) shown(cell, hist uint32, st *api.Stat, usedOnly bool) bool {
	if st.Kind == api.KindMarker {
		return false
	}
	if st.Marker >= 0 {
		if _, used := s.counter(cell + uint32(st.Marker)); !used {
			return false
		}
	}
	if !usedOnly && !st.Lazy {
		return true
	}
	if st.Kind == api.KindHistogram && !usedOnly {
		return s.recorded(hist + uint32(st.At))
	}
	_, used, _ := s.read(cell, hist, st)
	return used
}

// recorded tells whether a histogram has values, flushed or not.
func (s *Store) recorded(id uint32) bool {
	return slices.ContainsFunc(s.shards, func(slot *shardSlot) bool { return slot.current.histogram(id).Count() > 0 })
}

// read returns the value of a stat of a group, whether it was used, and its id.
func (s *Store) read(cell, hist uint32, st *api.Stat) (v uint64, used bool, id uint32) {
	switch st.Kind {
	case api.KindHistogram:
		id = hist + uint32(st.At)
		return 0, s.flushed[id] != nil, id
	case api.KindGauge:
		id = cell + uint32(st.At)
		v, used = s.gauge(id)
		return v, used, id
	}
	id = cell + uint32(st.At)
	v, used = s.counter(id)
	return v, used, id
}

// wants tells whether a stat that is shown passes the filter of an output and the store's own.
func (s *Store) wants(name []byte, filter Filter) bool {
	return (filter == nil || filter.Match(name)) && (s.reject == nil || !s.reject(name))
}

// sortedGroups returns a copy of all registered groups in the order of their prefixes.
func (s *Store) sortedGroups() []group {
	s.readMain()
	if s.order == nil {
		s.order = make([]uint32, 0, len(s.index))
		for i := range s.groups {
			if s.groups[i].refs > 0 {
				s.order = append(s.order, uint32(i))
			}
		}
		slices.SortFunc(s.order, func(a, b uint32) int { return strings.Compare(s.groups[a].prefix, s.groups[b].prefix) })
	}
	out := make([]group, len(s.order))
	for i, g := range s.order {
		out[i] = s.groups[g]
	}
	return out
}

// rareCodes adds up the codes without a cell of all shards.
func (s *Store) rareCodes() map[api.CodesID][]rareCode {
	sums := make(map[rareKey]uint64)
	for _, slot := range s.shards {
		for k, n := range slot.current.rare {
			sums[k] += n
		}
	}
	out := make(map[api.CodesID][]rareCode)
	for k, n := range sums {
		out[k.id] = append(out[k.id], rareCode{k.code, n})
	}
	return out
}

func (w *walker) rareStats(g *group) []rareStat {
	var out []rareStat
	for _, b := range g.t.CodeBlocks() {
		for _, r := range w.rares[api.CodesID(g.cell+uint32(b.At))] {
			out = append(out, rareStat{b.Name + strconv.Itoa(int(r.code)), r.count})
		}
	}
	slices.SortFunc(out, func(a, b rareStat) int { return strings.Compare(a.name, b.name) })
	return out
}

// is tells whether a cursor stands on a name.
func (c *cursor) is(name []byte) bool {
	return len(name) == len(c.prefix)+len(c.suffix) && string(name[:len(c.prefix)]) == c.prefix &&
		string(name[len(c.prefix):]) == c.suffix
}

// notBefore tells whether the name that a cursor stands on is not before s.
func (c *cursor) notBefore(s string) bool { return compareParts(c.prefix, c.suffix, s, "") >= 0 }

// compareParts compares a1+a2 with b1+b2 without joining them.
func compareParts(a1, a2, b1, b2 string) int {
	n := min(len(a1), len(b1))
	if r := strings.Compare(a1[:n], b1[:n]); r != 0 {
		return r
	}
	switch a1, b1 = a1[n:], b1[n:]; {
	case a1 != "":
		return -compareParts(b2, "", a1, a2)
	case b1 == "":
		return strings.Compare(a2, b2)
	}
	n = min(len(a2), len(b1))
	if r := strings.Compare(a2[:n], b1[:n]); r != 0 {
		return r
	}
	if n < len(b1) {
		return -1
	}
	return strings.Compare(a2[n:], b2)
}

type cursorHeap []*cursor

func (h cursorHeap) Len() int { return len(h) }
func (h cursorHeap) Less(i, j int) bool {
	return compareParts(h[i].prefix, h[i].suffix, h[j].prefix, h[j].suffix) < 0
}
func (h cursorHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *cursorHeap) Push(x any)   { *h = append(*h, x.(*cursor)) }
func (h *cursorHeap) Pop() any {
	old := *h
	c := old[len(old)-1]
	*h = old[:len(old)-1]
	return c
}
