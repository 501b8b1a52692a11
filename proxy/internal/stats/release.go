package stats

import (
	"slices"

	api "github.com/dragoman-proxy/dragoman/api/stats"
)

// A released group goes through these states. A thread may still hold a stream of the old cluster when the group is
// released: as long as it does, one of the group's gauges is not zero. So: wait until all gauges are zero, have every
// shard clear the range, look once more in a later round whether it stayed empty, and only then give the ids out again.
const (
	releaseDraining  = iota // gauges are not zero yet
	releaseClearing         // shards have been told to clear
	releaseVerifying        // all have cleared; a later round must find nothing
)

type release struct {
	clearRange
	t     *api.Template
	state int
	round uint64 // only snapshots asked for later than this count
}

func (s *Store) release(prefix string, t *api.Template) {
	key := groupKey{prefix, t}
	i, ok := s.index[key]
	if !ok {
		return
	}
	g := &s.groups[i]
	if g.refs--; g.refs > 0 {
		return
	}
	r := release{t: t, round: s.round, clearRange: clearRange{
		cell: g.cell, cells: uint32(t.Cells()), hist: g.hist, hists: uint32(t.Histograms())}}
	s.clearOwn(r.clearRange)
	s.releases = append(s.releases, r)
	s.groups[i], s.order = group{}, nil
	s.freeSlots = append(s.freeSlots, i)
	delete(s.index, key)
}

// Released returns the number of groups that were released and whose ids have not come back yet.
func (s *Store) Released() int { return len(s.releases) }

// clearOwn forgets what the store itself keeps of a range.
func (s *Store) clearOwn(c clearRange) {
	for id := c.cell; id < c.cell+c.cells; id++ {
		if bit := uint32(1) << (id & pageMask); s.setGauges[id>>pageShift]&bit != 0 {
			s.setGauges[id>>pageShift] &^= bit
			s.main.touch(id)[id&pageMask] = 0
		}
		if id&pageMask == pageMask || id == c.cell+c.cells-1 {
			if s.setGauges[id>>pageShift] == 0 {
				delete(s.setGauges, id>>pageShift)
			}
		}
		for _, pages := range [][]*page{s.zero, s.latched} {
			if i := int(id >> pageShift); i < len(pages) && pages[i] != nil {
				pages[i][id&pageMask] = 0
			}
		}
		if len(s.wide) > 0 {
			delete(s.wide, api.GaugeID(id))
		}
	}
	for id := c.hist; id < c.hist+c.hists; id++ {
		delete(s.flushed, id)
	}
}

func (s *Store) advanceReleases() {
	if len(s.releases) == 0 {
		return
	}
	oldest, cleared := s.answered()
	s.releases = slices.DeleteFunc(s.releases, func(r release) bool {
		return r.state == releaseVerifying && oldest > r.round && s.empty(r.clearRange) && s.finish(r)
	})
	for i := range s.releases {
		r := &s.releases[i]
		switch {
		case r.state == releaseClearing && cleared >= r.seq:
			r.state, r.round = releaseVerifying, s.round
		case r.state == releaseClearing || oldest <= r.round:
		case s.drained(r):
			// Either all gauges have come to rest, or a verification found late counts: clear (again).
			s.clearSeq++
			r.state, r.seq = releaseClearing, s.clearSeq
		default:
			r.state = releaseDraining
		}
	}
}

// answered returns the round of the oldest snapshot and the sequence that all shards have cleared.
func (s *Store) answered() (oldest, cleared uint64) {
	oldest, cleared = s.round, s.clearSeq
	for _, slot := range s.shards {
		oldest = min(oldest, slot.current.round)
		cleared = min(cleared, slot.current.cleared)
	}
	return oldest, cleared
}

func (s *Store) drained(r *release) bool {
	for _, st := range r.t.Stats() {
		if st.Kind != api.KindGauge {
			continue
		}
		var sum int64
		for _, slot := range s.shards {
			sum += int64(slot.current.cell(r.cell+uint32(st.At))) >> 1
		}
		if sum != 0 {
			return false
		}
	}
	return true
}

func (s *Store) empty(c clearRange) bool {
	return !slices.ContainsFunc(s.shards, func(slot *shardSlot) bool { return !slot.current.empty(c) })
}

func (s *Store) finish(r release) bool {
	s.clearOwn(r.clearRange)
	s.alloc.give(r.clearRange)
	return true
}

// clearsAfter returns the ranges that a shard has not cleared yet.
func (s *Store) clearsAfter(seq uint64) []clearRange {
	var out []clearRange
	for _, r := range s.releases {
		if r.state == releaseClearing && r.seq > seq {
			out = append(out, r.clearRange)
		}
	}
	return out
}
