package cluster

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// walkStep is how many places of the index one step looks at, and how many clusters are sorted at a time.
const walkStep = 1024

// Walk goes through the clusters that serve in the order of their names, in steps of bounded length: putting ten thousand of them in
// order at once would hold the main loop up. Clusters that come meanwhile may be missing, those that go are left out. owner: main loop.
type Walk struct {
	main  *event.Worker
	table []atomic.Pointer[Slot]
	at    int
	runs  [][]*Slot // each sorted; merged while walking
}

// Walk begins a walk.
func (m *Manager) Walk() *Walk { return &Walk{main: m.d.Main, table: *m.index.table.Load()} }

// Step prepares the walk; call it until it returns true.
func (w *Walk) Step() (ready bool) {
	var run []*Slot
	for end := min(w.at+walkStep, len(w.table)); w.at < end; w.at++ {
		if s := w.table[w.at].Load(); s != nil && s != grave {
			run = append(run, s)
		}
	}
	if len(run) > 0 {
		slices.SortFunc(run, func(a, b *Slot) int { return strings.Compare(a.name, b.name) })
		w.runs = append(w.runs, run)
	}
	return w.at == len(w.table)
}

// Next returns the next cluster; false: there is none.
func (w *Walk) Next() (Status, bool) {
	for {
		least := -1
		for i, r := range w.runs {
			if len(r) > 0 && (least < 0 || r[0].name < w.runs[least][0].name) {
				least = i
			}
		}
		if least < 0 {
			return Status{}, false
		}
		s := w.runs[least][0]
		w.runs[least] = w.runs[least][1:]
		if s.active != nil {
			return s.active.status(w.main.Now()), true
		}
	}
}
