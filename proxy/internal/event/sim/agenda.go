package sim

// agenda is a heap of things to do by time; what is due at the same time comes in the order of its making.
type agenda struct {
	heap []entry
	seq  uint64
}

type entry struct {
	at  int64
	seq uint64
	do  func()
}

func (a entry) before(b entry) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

func (a *agenda) add(at int64, do func()) {
	a.seq++
	a.heap = append(a.heap, entry{at, a.seq, do})
	for i := len(a.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.heap[i].before(a.heap[up]) {
			break
		}
		a.heap[i], a.heap[up] = a.heap[up], a.heap[i]
		i = up
	}
}

// next returns the time of the first entry if it is before other, or other is negative; otherwise other.
func (a *agenda) next(other int64) int64 {
	if len(a.heap) > 0 && (other < 0 || a.heap[0].at < other) {
		return a.heap[0].at
	}
	return other
}

func (a *agenda) pop() func() {
	do := a.heap[0].do
	last := len(a.heap) - 1
	a.heap[0] = a.heap[last]
	a.heap[last] = entry{}
	a.heap = a.heap[:last]
	for i := 0; ; {
		k := 2*i + 1
		if k >= last {
			return do
		}
		if k+1 < last && a.heap[k+1].before(a.heap[k]) {
			k++
		}
		if !a.heap[k].before(a.heap[i]) {
			return do
		}
		a.heap[i], a.heap[k] = a.heap[k], a.heap[i]
		i = k
	}
}
