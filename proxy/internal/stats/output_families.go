package stats

import (
	"container/heap"
	"slices"
	"strconv"
	"strings"

	api "github.com/dragoman-proxy/dragoman/api/stats"
)

// Tags are not taken out of every name: one extraction serves for all plain stats of a group with as many tokens (see
// plainTokens). Groups of a template that are left with the same prefix form a bundle, whose metrics are found once
// for all. The other stats (response codes, ciphers) are taken one by one.

// promEntry is one stat of a metric.
type promEntry struct {
	prefix     string // of the group; the whole name if stat is nil
	labels     string
	stat       *api.Stat
	cell, hist uint32
	value      uint64 // if stat is nil
	again      bool   // the whole name is that of the entry before: its value is added to that one's
}

// family is one metric: a stat of all groups of a bundle, or any mix of stats, sorted.
type family struct {
	name   string
	bundle *bundle
	stat   *api.Stat
	mix    []promEntry
}

func (f *family) size() int {
	if f.bundle != nil {
		return len(f.bundle.groups)
	}
	return len(f.mix)
}

func (f *family) at(i int) promEntry {
	if f.bundle == nil {
		return f.mix[i]
	}
	return f.bundle.entry(i, f.stat)
}

type bundle struct {
	prefix string // what is left of the groups' prefixes
	stats  []*api.Stat
	groups []*labelled
	width  int
	nested bool // one group's prefix begins with another's: their stats do not come in the order of the groups
}

func (b *bundle) entry(i int, st *api.Stat) promEntry {
	g := b.groups[i]
	return promEntry{prefix: g.prefix, labels: g.labels[b.width], stat: st, cell: g.cell, hist: g.hist}
}

type bundleKey struct {
	prefix string
	t      *api.Template
	width  int
}

// familyWalker yields the metrics of one kind in order, after step has said that it is ready.
type familyWalker struct {
	store   *Store
	index   *labelIndex
	kind    api.Kind
	query   Query
	done    int // groups of the index that have been added
	ready   bool
	classes map[*api.Template]*templateClass
	byKey   map[bundleKey]*bundle
	singles map[string][]promEntry
	rares   map[api.CodesID][]rareCode

	bundles []*bundle // sorted, those that have not begun
	names   []string  // of singles, sorted
	heap    familyHeap
}

// templateClass is what a template has of one kind: plain stats by number of tokens, sorted token by token, and the rest.
type templateClass struct {
	plain   [maxPlainTokens][]*api.Stat
	special []*api.Stat
}

func newFamilyWalker(s *Store, index *labelIndex, kind api.Kind, q Query) *familyWalker {
	w := &familyWalker{store: s, index: index, kind: kind, query: q, classes: make(map[*api.Template]*templateClass),
		byKey: make(map[bundleKey]*bundle), singles: make(map[string][]promEntry)}
	switch kind {
	case textKind:
		w.done = len(index.groups)
		w.addTexts()
	case api.KindCounter:
		w.rares = s.rareCodes()
	}
	return w
}

// step adds a number of groups and reports whether all have been added.
func (w *familyWalker) step(n int) bool {
	for end := min(len(w.index.groups), w.done+max(n, 1)); w.done < end; w.done++ {
		w.addGroup(&w.index.groups[w.done])
	}
	if w.done < len(w.index.groups) || w.ready {
		return w.ready
	}
	w.ready = true
	for _, b := range w.byKey {
		w.bundles = append(w.bundles, b)
	}
	slices.SortFunc(w.bundles, func(a, b *bundle) int { return compareTokens(a.prefix, b.prefix) })
	for name := range w.singles {
		w.names = append(w.names, name)
	}
	slices.SortFunc(w.names, compareTokens[string])
	return true
}

// next returns the next metric, nil at the end.
func (w *familyWalker) next() *family {
	for len(w.bundles) > 0 && (len(w.heap) == 0 || compareTokens(w.bundles[0].prefix, w.heap[0].name) <= 0) {
		c := &familyCursor{bundle: w.bundles[0]}
		c.name = c.bundle.prefix + c.bundle.stats[0].Name
		heap.Push(&w.heap, c)
		w.bundles = w.bundles[1:]
	}
	name, fromBundle := "", len(w.heap) > 0
	if fromBundle {
		name = w.heap[0].name
	}
	if len(w.names) > 0 && (!fromBundle || compareTokens(w.names[0], name) <= 0) {
		fromBundle = fromBundle && w.names[0] == name
		name = w.names[0]
	} else if !fromBundle {
		return nil
	}
	f := &family{name: name}
	if len(w.names) > 0 && w.names[0] == name {
		f.mix = w.singles[name]
		w.names = w.names[1:]
	}
	w.join(f)
	if f.bundle == nil {
		sortEntries(f.mix)
	}
	return f
}

// join adds the stats of all bundles that have the metric's name.
func (w *familyWalker) join(f *family) {
	for len(w.heap) > 0 && w.heap[0].name == f.name {
		c := w.heap[0]
		st := c.bundle.stats[c.pos]
		if len(f.mix) == 0 && f.bundle == nil && !c.bundle.nested {
			f.bundle, f.stat = c.bundle, st
		} else {
			if f.bundle != nil {
				f.mix = f.bundle.appendAll(f.mix, f.stat)
				f.bundle = nil
			}
			f.mix = c.bundle.appendAll(f.mix, st)
		}
		if c.pos++; c.pos == len(c.bundle.stats) {
			heap.Pop(&w.heap)
			continue
		}
		c.name = c.bundle.prefix + c.bundle.stats[c.pos].Name
		heap.Fix(&w.heap, 0)
	}
}

func (b *bundle) appendAll(dst []promEntry, st *api.Stat) []promEntry {
	for i := range b.groups {
		dst = append(dst, b.entry(i, st))
	}
	return dst
}

func (w *familyWalker) addGroup(g *labelled) {
	class := w.classOf(g.t)
	for k, stats := range class.plain {
		switch {
		case len(stats) == 0:
		case g.plain[k]:
			w.addBundled(g, bundleKey{g.left[k], g.t, k}, stats)
		default:
			for _, st := range stats {
				w.addSpecial(g, st)
			}
		}
	}
	for _, st := range class.special {
		w.addSpecial(g, st)
	}
	if len(w.rares) == 0 {
		return
	}
	for _, b := range g.t.CodeBlocks() {
		for _, r := range w.rares[api.CodesID(g.cell+uint32(b.At))] {
			w.addValue(g.prefix+b.Name+strconv.Itoa(int(r.code)), r.count)
		}
	}
}

func (w *familyWalker) addBundled(g *labelled, key bundleKey, stats []*api.Stat) {
	b := w.byKey[key]
	if b == nil {
		b = &bundle{prefix: key.prefix, stats: stats, width: key.width}
		w.byKey[key] = b
	}
	if n := len(b.groups); n > 0 && strings.HasPrefix(g.prefix, b.groups[n-1].prefix) {
		b.nested = true
	}
	b.groups = append(b.groups, g)
}

// addSpecial adds a stat that is taken by itself, if it is shown now.
func (w *familyWalker) addSpecial(g *labelled, st *api.Stat) {
	if !w.store.shown(g.cell, g.hist, st, w.query.UsedOnly) {
		return
	}
	name := g.prefix + st.Name
	if (w.query.Filter != nil || w.store.reject != nil) && !w.store.wants([]byte(name), w.query.Filter) {
		return
	}
	left, labels := w.index.of(name)
	w.singles[left] = append(w.singles[left], promEntry{prefix: g.prefix, labels: labels, stat: st, cell: g.cell, hist: g.hist})
}

func (w *familyWalker) addValue(name string, value uint64) {
	if !w.store.wants([]byte(name), w.query.Filter) {
		return
	}
	left, labels := w.index.of(name)
	w.singles[left] = append(w.singles[left], promEntry{prefix: name, labels: labels, value: value})
}

func (w *familyWalker) addTexts() {
	if !w.query.Texts {
		return
	}
	for _, t := range w.store.sortedTexts() {
		if w.query.UsedOnly && !t.set || !w.store.wants([]byte(t.name), w.query.Filter) {
			continue
		}
		left, labels := w.index.of(t.name, Tag{"text_value", t.value})
		w.singles[left] = append(w.singles[left], promEntry{prefix: t.name, labels: labels})
	}
}

func (w *familyWalker) classOf(t *api.Template) *templateClass {
	if c := w.classes[t]; c != nil {
		return c
	}
	c := &templateClass{}
	all := t.Stats()
	for i := range all {
		st := &all[i]
		if st.Kind != w.kind {
			continue
		}
		if k := w.index.extractor.tagger.plainTokens(st.Name); k > 0 {
			c.plain[k-1] = append(c.plain[k-1], st)
		} else {
			c.special = append(c.special, st)
		}
	}
	for _, stats := range c.plain {
		slices.SortFunc(stats, func(a, b *api.Stat) int { return compareTokens(a.Name, b.Name) })
	}
	w.classes[t] = c
	return c
}

type familyCursor struct {
	bundle *bundle
	pos    int
	name   string
}

type familyHeap []*familyCursor

func (h familyHeap) Len() int           { return len(h) }
func (h familyHeap) Less(i, j int) bool { return compareTokens(h[i].name, h[j].name) < 0 }
func (h familyHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *familyHeap) Push(x any)        { *h = append(*h, x.(*familyCursor)) }
func (h *familyHeap) Pop() any {
	old := *h
	c := old[len(old)-1]
	*h = old[:len(old)-1]
	return c
}
