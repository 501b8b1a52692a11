package stats

import (
	api "github.com/dragoman-proxy/dragoman/api/stats"
)

// MaxShards bounds the threads that may count into one store at a time.
const MaxShards = 1024

// Store owns names and ids. owner: main loop, all of it; shards excepted, which belong to their threads.
type Store struct {
	main   *Shard
	shards []*shardSlot // the main loop's first
	round  uint64       // counts calls of Begin

	groups    []group
	freeSlots []uint32 // of groups
	order     []uint32 // of groups, by prefix; nil when it has to be made again
	index     map[groupKey]uint32
	alloc     allocator
	overflow  uint64 // registrations past a bound

	setGauges map[uint32]uint32 // page to the cells of it that SetGauge has set in the main loop's shard
	wide      map[api.GaugeID]uint64

	texts     []text
	freeTexts []api.TextID
	textIndex map[string]api.TextID

	reject  func(name []byte) bool
	buckets func(name string) []float64

	releases []release
	clearSeq uint64

	zero    []*page                   // what counters had at the last reset
	latched []*page                   // what counters had at the last flush
	flushed map[uint32]*flushedValues // histograms as of the last flush
}

var _ api.Setter = (*Store)(nil)

// group is a registered template under a prefix: all that an untouched cluster costs.
type group struct {
	prefix string
	t      *api.Template
	cell   uint32
	hist   uint32
	refs   int32 // holders; 0: released or unused
}

type groupKey struct {
	prefix string
	t      *api.Template
}

type text struct {
	name, value string
	set         bool
	refs        int32
}

type shardSlot struct {
	shard   *Shard
	current *ShardSnapshot // last answer
	pending *ShardSnapshot // asked, not answered
}

// NewStore returns an empty store with the main loop's shard.
func NewStore() *Store {
	s := &Store{
		index:     make(map[groupKey]uint32),
		setGauges: make(map[uint32]uint32),
		wide:      make(map[api.GaugeID]uint64),
		textIndex: make(map[string]api.TextID),
		flushed:   make(map[uint32]*flushedValues),
		alloc:     newAllocator(),
	}
	s.main = s.NewShard("main_thread")
	return s
}

// Main returns the main loop's own shard.
func (s *Store) Main() *Shard { return s.main }

// NewShard makes a shard for one thread. It returns nil if there are MaxShards.
func (s *Store) NewShard(name string) *Shard {
	if len(s.shards) >= MaxShards {
		return nil
	}
	sh := &Shard{name: name}
	s.shards = append(s.shards, &shardSlot{shard: sh, current: &ShardSnapshot{shard: sh}})
	return sh
}

// CloseShard folds what a shard has counted into the main loop's and forgets it. Its thread must have ended, or must have handed
// the shard over and never touch it again.
func (s *Store) CloseShard(sh *Shard) {
	for i, slot := range s.shards {
		if slot.shard != sh || sh == s.main {
			continue
		}
		sh.Settle()
		s.main.fold(sh, s.gaugeCells())
		s.shards = append(s.shards[:i:i], s.shards[i+1:]...)
		return
	}
}

// Begin asks for a snapshot of a shard: pass the result to Shard.Snapshot on the shard's thread and bring it back to Collect. It
// returns nil while an earlier request has not come back, or if the shard has been closed.
func (s *Store) Begin(sh *Shard) *ShardSnapshot {
	slot := s.slot(sh)
	if slot == nil || slot.pending != nil {
		return nil
	}
	s.round++
	slot.pending = &ShardSnapshot{
		shard:   sh,
		prev:    slot.current,
		cleared: slot.current.cleared,
		clears:  s.clearsAfter(slot.current.cleared),
		round:   s.round,
	}
	return slot.pending
}

// Collect takes filled snapshots, and the main loop's own shard with them. Shards that have not answered keep their last values.
func (s *Store) Collect(snapshots ...*ShardSnapshot) {
	for _, sn := range snapshots {
		if slot := s.slot(sn.shard); slot != nil && slot.pending == sn {
			slot.current, slot.pending = sn, nil
		}
	}
	s.collectMain()
	s.advanceReleases()
}

// collectMain answers for the main loop's own shard, which is read in place.
func (s *Store) collectMain() {
	slot := s.shards[0]
	s.round++
	next := &ShardSnapshot{shard: s.main, round: s.round, cleared: slot.current.cleared,
		clears: s.clearsAfter(slot.current.cleared)}
	s.main.Settle()
	s.main.clear(next)
	next.clears = nil
	slot.current = next
	s.readMain()
}

// readMain makes what the main loop has counted visible.
func (s *Store) readMain() {
	s.main.Settle()
	own := s.shards[0].current
	own.pages, own.hists, own.rare = s.main.pages, s.main.hists, s.main.rare
}

// Shards returns the open shards, the main loop's first.
func (s *Store) Shards() []*Shard {
	out := make([]*Shard, len(s.shards))
	for i, slot := range s.shards {
		out[i] = slot.shard
	}
	return out
}

// Silent returns the shards that have been asked and have not answered.
func (s *Store) Silent() []*Shard {
	var out []*Shard
	for _, slot := range s.shards {
		if slot.pending != nil {
			out = append(out, slot.shard)
		}
	}
	return out
}

// Overflow returns how many registrations were refused because MaxCells, MaxHistograms or MaxTexts was reached.
func (s *Store) Overflow() uint64 { return s.overflow }

// SetGauge gives a gauge the value that the main loop knows. It takes the place of what the main loop itself has added before, and
// stands beside what other threads add.
func (s *Store) SetGauge(id api.GaugeID, v uint64) {
	if uint32(id) < firstCell || uint32(id) >= MaxCells {
		return
	}
	if v >= 1<<62 {
		s.wide[id] = v
		v = 0
	} else if len(s.wide) > 0 {
		delete(s.wide, id)
	}
	s.main.Settle()
	s.main.touch(uint32(id))[id&pageMask] = v<<1 | 1
	s.setGauges[uint32(id)>>pageShift] |= 1 << (id & pageMask)
}

// SetText gives a text readout its value.
func (s *Store) SetText(id api.TextID, value string) {
	if id == 0 || int(id) > len(s.texts) {
		return
	}
	s.texts[id-1].value, s.texts[id-1].set = value, true
}

// SetMatcher sets what stats_config.stats_matcher says: names for which reject is true are shown nowhere.
func (s *Store) SetMatcher(reject func(name []byte) bool) { s.reject = reject }

// SetBuckets sets what stats_config.histogram_bucket_settings say: the ascending upper bounds for a histogram, nil for the
// default.
func (s *Store) SetBuckets(buckets func(name string) []float64) { s.buckets = buckets }

func (s *Store) bucketsOf(name string) []float64 {
	if s.buckets != nil {
		if b := s.buckets(name); b != nil {
			return b
		}
	}
	return DefaultBuckets
}

// ResetCounters makes all counters start from zero again, as POST /reset_counters does. Values counted since the last
// Collect are lost with the rest.
func (s *Store) ResetCounters() {
	s.Collect()
	s.zero = s.sumPages()
	s.latched = nil
}

func (s *Store) slot(sh *Shard) *shardSlot {
	for _, slot := range s.shards {
		if slot.shard == sh {
			return slot
		}
	}
	return nil
}

// counter returns the value of a counter and whether it was ever used.
func (s *Store) counter(id uint32) (v uint64, used bool) {
	for _, slot := range s.shards {
		v += slot.current.cell(id)
	}
	return v - pagesCell(s.zero, id), v != 0
}

// gauge returns the value of a gauge and whether it was ever used. A sum below zero can only be the trace of snapshots that
// were taken at different moments, and shows as zero.
func (s *Store) gauge(id uint32) (v uint64, used bool) {
	var sum int64
	for _, slot := range s.shards {
		if raw := slot.current.cell(id); raw != 0 {
			sum += int64(raw) >> 1
			used = true
		}
	}
	if used && len(s.wide) > 0 {
		if w, ok := s.wide[api.GaugeID(id)]; ok {
			return w, true
		}
	}
	return uint64(max(sum, 0)), used
}

// histogram returns all values of a histogram so far, nil if there is none.
func (s *Store) histogram(id uint32) *Histogram {
	var one, out *Histogram
	for _, slot := range s.shards {
		h := slot.current.histogram(id)
		switch {
		case h.Count() == 0:
		case one == nil && slot.shard == s.main:
			out = h.clone() // it goes on to change
			one = out
		case one == nil:
			one = h
		default:
			if out == nil {
				out = one.clone()
			}
			out.add(h)
		}
	}
	if out == nil {
		return one
	}
	return out
}

// sumPages adds up the pages of all snapshots. Cells of gauges in it mean nothing.
func (s *Store) sumPages() []*page {
	var out []*page
	for _, slot := range s.shards {
		for i, p := range slot.current.pages {
			if p == nil {
				continue
			}
			if i >= len(out) {
				out = grow(out, i)
			}
			if out[i] == nil {
				out[i] = new(page)
			}
			for j, v := range p {
				out[i][j] += v
			}
		}
	}
	return out
}

// gaugeCells returns a test for cells that hold gauges, needed where shards are added up without names.
func (s *Store) gaugeCells() func(id uint32) bool {
	gauges := make(map[uint32]struct{})
	note := func(t *api.Template, cell uint32) {
		for _, st := range t.Stats() {
			if st.Kind == api.KindGauge {
				gauges[cell+uint32(st.At)] = struct{}{}
			}
		}
	}
	for i := range s.groups {
		if g := &s.groups[i]; g.t != nil {
			note(g.t, g.cell)
		}
	}
	for i := range s.releases {
		note(s.releases[i].t, s.releases[i].cell)
	}
	return func(id uint32) bool { _, ok := gauges[id]; return ok }
}

func pagesCell(pages []*page, id uint32) uint64 {
	if i := int(id >> pageShift); i < len(pages) && pages[i] != nil {
		return pages[i][id&pageMask]
	}
	return 0
}
