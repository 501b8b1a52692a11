package stats

import api "github.com/dragoman-proxy/dragoman/api/stats"

// flushedValues are a histogram as of the last flush: what the admin pages show and what sinks get.
type flushedValues struct {
	cumulative, interval *Histogram
}

// Flush ends an interval: histograms show what was collected up to now, and their intervals what came since the last flush. The
// caller collects first and calls it every stats_flush_interval.
func (s *Store) Flush() {
	pages := 0
	for _, slot := range s.shards {
		pages = max(pages, len(slot.current.hists))
	}
	for id := uint32(firstHistogram); int(id>>histShift) < pages; id++ {
		if id&histMask == 0 && !s.anyHistogram(int(id>>histShift)) {
			id |= histMask
			continue
		}
		var n uint64
		for _, slot := range s.shards {
			n += slot.current.histogram(id).Count()
		}
		f := s.flushed[id]
		switch {
		case n == 0:
		case f == nil:
			now := s.histogram(id)
			s.flushed[id] = &flushedValues{cumulative: now, interval: now}
		case f.cumulative.Count() == n:
			f.interval = nil
		default:
			now := s.histogram(id)
			f.cumulative, f.interval = now, now.minus(f.cumulative)
		}
	}
}

func (s *Store) anyHistogram(page int) bool {
	for _, slot := range s.shards {
		if page < len(slot.current.hists) && slot.current.hists[page] != nil {
			return true
		}
	}
	return false
}

// Sample is one stat with its values, as sinks get it.
type Sample struct {
	Name                 []byte // valid during the call
	Kind                 api.Kind
	Unit                 api.Unit
	Used                 bool
	Value                uint64 // of a counter or gauge
	Delta                uint64 // of a counter: since the last Latch
	Cumulative, Interval *Histogram
}

// Latch calls fn for every stat that has been used, in the order of names, histograms last, and begins a new interval for the deltas of
// counters.
func (s *Store) Latch(fn func(*Sample)) {
	for _, kinds := range []kindSet{countersAndGauges, histograms} {
		w := newWalker(s, kinds, Query{UsedOnly: true})
		for sm := w.next(); sm != nil; sm = w.next() {
			out := Sample{Name: sm.name, Kind: sm.kind, Unit: sm.unit, Used: true, Value: sm.value}
			if sm.hist != nil {
				out.Cumulative, out.Interval = sm.hist.cumulative, sm.hist.interval
			}
			if sm.kind == api.KindCounter && !sm.rare {
				out.Delta = sm.value - min(sm.value, s.latch(sm.id, sm.value))
			}
			fn(&out)
		}
	}
}

// latch notes the value of a counter and returns the one before.
func (s *Store) latch(id uint32, v uint64) (before uint64) {
	i := int(id >> pageShift)
	if i >= len(s.latched) {
		s.latched = grow(s.latched, i)
	}
	if s.latched[i] == nil {
		s.latched[i] = new(page)
	}
	before, s.latched[i][id&pageMask] = s.latched[i][id&pageMask], v
	return before
}
