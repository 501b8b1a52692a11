package stats

// fold adds all that another shard holds to s.
func (s *Shard) fold(o *Shard, isGauge func(id uint32) bool) {
	for i, p := range o.pages {
		if p == nil {
			continue
		}
		for j, v := range p {
			if v == 0 {
				continue
			}
			id := uint32(i)<<pageShift | uint32(j)
			cell := &s.touch(id)[j]
			if isGauge(id) {
				*cell = (*cell + v&^1) | 1
			} else {
				*cell += v
			}
		}
	}
	for i, p := range o.hists {
		if p == nil {
			continue
		}
		for j, h := range p {
			if h != nil {
				s.touchHistogram(uint32(i)<<histShift | uint32(j)).add(h)
			}
		}
	}
	for k, v := range o.rare {
		if s.rare == nil {
			s.rare = make(map[rareKey]uint64)
		}
		s.rare[k] += v
	}
}
