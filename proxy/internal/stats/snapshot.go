package stats

// ShardSnapshot is an immutable copy of a shard. The store makes one with Begin, the shard fills it on its own thread, and the
// store takes it back with Collect.
type ShardSnapshot struct {
	shard   *Shard
	prev    *ShardSnapshot // read while filling, then dropped
	pages   []*page
	hists   []*histPage
	rare    map[rareKey]uint64
	clears  []clearRange // to be cleared before copying
	cleared uint64       // sequence of the last range that this shard has cleared
	round   uint64       // the store's round in which it was asked for
	cursor  int
}

// clearRange is a released group that no longer counts.
type clearRange struct {
	seq         uint64
	cell, cells uint32
	hist, hists uint32
}

// Snapshot copies the shard into a snapshot. It must run on the shard's thread.
func (s *Shard) Snapshot(into *ShardSnapshot) {
	for !s.SnapshotSome(into, 1<<30) {
	}
}

// SnapshotSome is Snapshot in steps of about limit pages, for threads that serve traffic in between. It returns true when the
// snapshot is complete.
func (s *Shard) SnapshotSome(into *ShardSnapshot, limit int) bool {
	s.Settle()
	if into.cursor == 0 {
		s.clear(into)
		into.pages = make([]*page, len(s.pages))
		into.hists = make([]*histPage, len(s.hists))
		into.copyRare(s.rare)
	}
	n := len(into.pages)
	for ; into.cursor < n; into.cursor++ {
		if s.pages[into.cursor] == nil {
			continue
		}
		if limit--; limit < 0 {
			return false
		}
		into.copyPage(into.cursor, s.pages[into.cursor])
	}
	for ; into.cursor < n+len(into.hists); into.cursor++ {
		i := into.cursor - n
		if s.hists[i] == nil {
			continue
		}
		if limit--; limit < 0 {
			return false
		}
		into.copyHistograms(i, s.hists[i])
	}
	into.prev, into.clears = nil, nil
	return true
}

func (sn *ShardSnapshot) copyPage(i int, p *page) {
	if sn.prev != nil && i < len(sn.prev.pages) {
		if old := sn.prev.pages[i]; old != nil && *old == *p {
			sn.pages[i] = old
			return
		}
	}
	// One by one: a page that does not change is shared by all later snapshots, and would keep what lies around it.
	sn.pages[i] = new(page)
	*sn.pages[i] = *p
}

func (sn *ShardSnapshot) copyHistograms(i int, p *histPage) {
	var old *histPage
	if sn.prev != nil && i < len(sn.prev.hists) {
		old = sn.prev.hists[i]
	}
	if old != nil && sameCounts(old, p) {
		sn.hists[i] = old
		return
	}
	out := new(histPage)
	for j, h := range p {
		switch {
		case h == nil:
		case old != nil && old[j] != nil && old[j].n == h.n:
			out[j] = old[j]
		default:
			out[j] = h.clone()
		}
	}
	sn.hists[i] = out
}

func sameCounts(a, b *histPage) bool {
	for j := range a {
		if a[j].Count() != b[j].Count() {
			return false
		}
	}
	return true
}

func (sn *ShardSnapshot) copyRare(rare map[rareKey]uint64) {
	if len(rare) == 0 {
		return
	}
	sn.rare = make(map[rareKey]uint64, len(rare))
	for k, v := range rare {
		sn.rare[k] = v
	}
}

// clear zeroes the ranges that the store has asked for. Late increments may still come (a stream that outlived its cluster);
// the store looks again in a later round before it gives the ids out.
func (s *Shard) clear(into *ShardSnapshot) {
	for _, c := range into.clears {
		for id := c.cell; id < c.cell+c.cells; id++ {
			i := id >> pageShift
			if int(i) >= len(s.pages) || s.pages[i] == nil {
				id |= pageMask
				continue
			}
			if id&pageMask == 0 && id+pageCells <= c.cell+c.cells {
				s.pages[i] = nil
				id |= pageMask
				continue
			}
			s.pages[i][id&pageMask] = 0
		}
		for id := c.hist; id < c.hist+c.hists; id++ {
			if i := id >> histShift; int(i) < len(s.hists) && s.hists[i] != nil {
				s.hists[i][id&histMask] = nil
			}
		}
		for k := range s.rare {
			if uint32(k.id) >= c.cell && uint32(k.id) < c.cell+c.cells {
				delete(s.rare, k)
			}
		}
		into.cleared = max(into.cleared, c.seq)
	}
}

// cell returns the raw value of a cell.
func (sn *ShardSnapshot) cell(id uint32) uint64 {
	if i := id >> pageShift; int(i) < len(sn.pages) {
		if p := sn.pages[i]; p != nil {
			return p[id&pageMask]
		}
	}
	return 0
}

func (sn *ShardSnapshot) histogram(id uint32) *Histogram {
	if i := id >> histShift; int(i) < len(sn.hists) {
		if p := sn.hists[i]; p != nil {
			return p[id&histMask]
		}
	}
	return nil
}

// empty tells whether nothing in a range has been used.
func (sn *ShardSnapshot) empty(c clearRange) bool {
	for id := c.cell; id < c.cell+c.cells; id++ {
		if int(id>>pageShift) >= len(sn.pages) || sn.pages[id>>pageShift] == nil {
			id |= pageMask
			continue
		}
		if sn.cell(id) != 0 {
			return false
		}
	}
	for id := c.hist; id < c.hist+c.hists; id++ {
		if sn.histogram(id).Count() != 0 {
			return false
		}
	}
	for k := range sn.rare {
		if uint32(k.id) >= c.cell && uint32(k.id) < c.cell+c.cells {
			return false
		}
	}
	return true
}
