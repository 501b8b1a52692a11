package health

import "github.com/dragoman-proxy/dragoman/proxy/internal/event"

// MaxStarts is how many checks begin in one pass, over all clusters: the checks of ten thousand hosts that are due at once must not hold
// up the main loop.
const MaxStarts = 64

// starter begins checks, some in each pass. owner: main loop.
type starter struct {
	w       *event.Worker
	waiting []*session // few are in it twice: those whose host closed the connection meanwhile
	head    int
	queued  bool
}

var starters = event.NewLocal(func(w *event.Worker) *starter { return &starter{w: w} })

// start begins the check of s soon.
func (x *starter) start(s *session) {
	x.waiting = append(x.waiting, s)
	x.later()
}

func (x *starter) later() {
	if !x.queued {
		x.queued = true
		x.w.Again(x)
	}
}

// Run is the worker's call.
func (x *starter) Run() {
	x.queued = false
	for n := 0; x.head < len(x.waiting) && n < MaxStarts; x.head++ {
		s := x.waiting[x.head]
		x.waiting[x.head] = nil
		if !s.over && !s.asking {
			n++
			s.check()
		}
	}
	if x.head < len(x.waiting) {
		x.later()
		return
	}
	x.waiting, x.head = x.waiting[:0], 0
}
