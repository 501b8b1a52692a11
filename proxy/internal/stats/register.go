package stats

import (
	"slices"
	"strings"

	api "github.com/dragoman-proxy/dragoman/api/stats"
)

const (
	// MaxTexts bounds the text readouts of a store.
	MaxTexts = 1 << 16

	// firstCell and firstHistogram are the first ids that are given out: what is below counts into nothing.
	firstCell      = api.MaxTemplateCells
	firstHistogram = api.MaxTemplateHistograms
)

// Root returns the scope without a prefix.
func (s *Store) Root() api.Scope { return scope{store: s} }

// scope implements api.Scope.
type scope struct {
	store  *Store
	prefix string
}

// Single stats are groups of one whose prefix is the whole name.
var (
	singleCounter    = api.MustTemplate("counter", api.Counter(0, ""))
	singleGauge      = api.MustTemplate("gauge", api.Gauge(0, ""))
	singleHistograms = [...]*api.Template{
		api.Unspecified:  api.MustTemplate("histogram", api.Histogram(0, "", api.Unspecified)),
		api.Bytes:        api.MustTemplate("histogram", api.Histogram(0, "", api.Bytes)),
		api.Microseconds: api.MustTemplate("histogram", api.Histogram(0, "", api.Microseconds)),
		api.Milliseconds: api.MustTemplate("histogram", api.Histogram(0, "", api.Milliseconds)),
		api.Percent:      api.MustTemplate("histogram", api.Histogram(0, "", api.Percent)),
	}
)

func (sc scope) Prefix() string { return sc.prefix }

func (sc scope) Scope(name string) api.Scope {
	if name = sanitize(name); name == "" {
		return sc
	}
	if !strings.HasSuffix(name, ".") {
		name += "."
	}
	return scope{store: sc.store, prefix: sc.prefix + name}
}

// Literal is Scope for a name that stays as it is.
func (sc scope) Literal(name string) api.Scope {
	return scope{store: sc.store, prefix: sc.prefix + name + "."}
}

func (sc scope) Counter(name string) api.CounterID {
	return sc.store.register(sc.prefix+sanitize(name), singleCounter).Counter(0)
}

func (sc scope) Gauge(name string) api.GaugeID {
	return sc.store.register(sc.prefix+sanitize(name), singleGauge).Gauge(0)
}

func (sc scope) Histogram(name string, unit api.Unit) api.HistogramID {
	if int(unit) >= len(singleHistograms) {
		unit = api.Unspecified
	}
	return sc.store.register(sc.prefix+sanitize(name), singleHistograms[unit]).Histogram(0)
}

func (sc scope) Text(name string) api.TextID {
	return sc.store.registerText(sc.prefix + sanitize(name))
}

func (sc scope) ReleaseText(name string) { sc.store.releaseText(sc.prefix + sanitize(name)) }

func (sc scope) Group(t *api.Template) api.GroupBase { return sc.store.register(sc.prefix, t) }

func (sc scope) Release(t *api.Template) { sc.store.release(sc.prefix, t) }

// sanitize replaces what Envoy replaces in names that come from configuration.
func sanitize(name string) string {
	if !strings.ContainsAny(name, ":\x00") {
		return name
	}
	return nameReplacer.Replace(name)
}

var nameReplacer = strings.NewReplacer("://", "_", ":/", "_", ":", "_", "\x00", "_")

func (s *Store) register(prefix string, t *api.Template) api.GroupBase {
	key := groupKey{prefix, t}
	if i, ok := s.index[key]; ok {
		g := &s.groups[i]
		g.refs++
		return api.GroupBase{Cell: g.cell, Hist: g.hist}
	}
	cell, hist, ok := s.alloc.take(t)
	if !ok {
		s.overflow++
		return api.GroupBase{}
	}
	g := group{prefix: prefix, t: t, cell: cell, hist: hist, refs: 1}
	var i uint32
	if n := len(s.freeSlots); n > 0 {
		i, s.freeSlots = s.freeSlots[n-1], s.freeSlots[:n-1]
		s.groups[i] = g
	} else {
		i = uint32(len(s.groups))
		s.groups = append(s.groups, g)
	}
	s.index[key], s.order = i, nil
	return api.GroupBase{Cell: cell, Hist: hist}
}

func (s *Store) registerText(name string) api.TextID {
	if id, ok := s.textIndex[name]; ok {
		s.texts[id-1].refs++
		return id
	}
	var id api.TextID
	switch n := len(s.freeTexts); {
	case n > 0:
		id, s.freeTexts = s.freeTexts[n-1], s.freeTexts[:n-1]
		s.texts[id-1] = text{name: name, refs: 1}
	case len(s.texts) >= MaxTexts:
		s.overflow++
		return 0
	default:
		s.texts = append(s.texts, text{name: name, refs: 1})
		id = api.TextID(len(s.texts))
	}
	s.textIndex[name] = id
	return id
}

func (s *Store) releaseText(name string) {
	id, ok := s.textIndex[name]
	if !ok {
		return
	}
	if t := &s.texts[id-1]; t.refs > 1 {
		t.refs--
		return
	}
	s.dropText(name, id)
}

func (s *Store) dropText(name string, id api.TextID) {
	s.texts[id-1] = text{}
	delete(s.textIndex, name)
	s.freeTexts = append(s.freeTexts, id)
}

// DropPrefix releases all groups and single stats, and removes all text readouts, whose names begin with prefix, however many
// holders they have. It looks at every group.
func (s *Store) DropPrefix(prefix string) {
	for i := range s.groups {
		if g := &s.groups[i]; g.refs > 0 && strings.HasPrefix(g.prefix, prefix) {
			g.refs = 1
			s.release(g.prefix, g.t)
		}
	}
	for name, id := range s.textIndex {
		if strings.HasPrefix(name, prefix) {
			s.dropText(name, id)
		}
	}
}

// allocator gives ranges of ids out. A range that is larger than a page begins on a page, a smaller one never straddles two: a
// group's hot cells are together, and a whole page can be dropped when its group goes.
type allocator struct {
	cells, hists         uint32 // next unused
	small, smallEnd      uint32 // page that is being filled with small ranges
	freeCells, freeHists map[uint32][]uint32
}

func newAllocator() allocator {
	return allocator{cells: firstCell, hists: firstHistogram,
		freeCells: make(map[uint32][]uint32), freeHists: make(map[uint32][]uint32)}
}

func (a *allocator) take(t *api.Template) (cell, hist uint32, ok bool) {
	cells, hists := uint32(t.Cells()), uint32(t.Histograms())
	if a.cells+cells+pageCells > MaxCells || a.hists+hists > MaxHistograms {
		return 0, 0, false
	}
	if cells > 0 {
		cell = a.takeCells(cells)
	}
	if hists > 0 {
		hist = a.takeHists(hists)
	}
	return cell, hist, true
}

func (a *allocator) takeCells(n uint32) uint32 {
	if free := a.freeCells[n]; len(free) > 0 {
		a.freeCells[n] = free[:len(free)-1]
		return free[len(free)-1]
	}
	if n > pageCells/2 {
		at := a.cells
		a.cells += (n + pageMask) &^ pageMask
		return at
	}
	if a.small+n > a.smallEnd {
		a.small, a.smallEnd = a.cells, a.cells+pageCells
		a.cells += pageCells
	}
	at := a.small
	a.small += n
	return at
}

func (a *allocator) takeHists(n uint32) uint32 {
	if free := a.freeHists[n]; len(free) > 0 {
		a.freeHists[n] = free[:len(free)-1]
		return free[len(free)-1]
	}
	at := a.hists
	a.hists += n
	return at
}

func (a *allocator) give(c clearRange) {
	if c.cells > 0 {
		a.freeCells[c.cells] = append(a.freeCells[c.cells], c.cell)
	}
	if c.hists > 0 {
		a.freeHists[c.hists] = append(a.freeHists[c.hists], c.hist)
	}
}

// sortedTexts returns the text readouts in the order of their names.
func (s *Store) sortedTexts() []text {
	out := make([]text, 0, len(s.textIndex))
	for _, id := range s.textIndex {
		out = append(out, s.texts[id-1])
	}
	slices.SortFunc(out, func(a, b text) int { return strings.Compare(a.name, b.name) })
	return out
}
