package lb

import "github.com/dragoman-proxy/dragoman/proxy/internal/host"

// schedule is an earliest-deadline-first queue: each host comes up as often as its weight says, evenly spread. It is a binary
// heap of deadlines. owner: worker.
type schedule struct {
	now  float64
	heap []entry
	seq  uint32
}

type entry struct {
	deadline float64
	seq      uint32 // first in, first out among equals
	i        int32
}

func (e *entry) before(o *entry) bool {
	return e.deadline < o.deadline || e.deadline == o.deadline && e.seq < o.seq
}

// newSchedule puts all hosts in, the first deadline of each after 1/weight.
func newSchedule(hosts []*host.Host, weight func(*host.Host) float64) *schedule {
	s := &schedule{heap: make([]entry, len(hosts)), seq: uint32(len(hosts))}
	for i, h := range hosts {
		s.heap[i] = entry{deadline: 1 / weight(h), seq: uint32(i), i: int32(i)}
	}
	for i := len(hosts)/2 - 1; i >= 0; i-- {
		s.down(i)
	}
	return s
}

// next returns the host whose turn it is and puts it back by the weight that it has now.
func (s *schedule) next(hosts []*host.Host, weight func(*host.Host) float64) *host.Host {
	e := &s.heap[0]
	h := hosts[e.i]
	s.now = e.deadline
	e.deadline = s.now + 1/weight(h)
	e.seq = s.seq
	s.seq++
	s.down(0)
	return h
}

func (s *schedule) down(i int) {
	h := s.heap
	e := h[i]
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1].before(&h[c]) {
			c++
		}
		if !h[c].before(&e) {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = e
}

// equalWeights tells whether all hosts have the same weight, so that no schedule is needed.
func equalWeights(hosts []*host.Host) bool {
	for _, h := range hosts {
		if h.Weight() != hosts[0].Weight() {
			return false
		}
	}
	return true
}

func staticWeight(h *host.Host) float64 { return float64(h.Weight()) }
