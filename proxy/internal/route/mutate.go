package route

import (
	"slices"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

// Append says what a header addition does to headers that are there.
type Append uint8

// Envoy's append actions.
const (
	AppendOrAdd Append = iota
	AddIfAbsent
	OverwriteOrAdd
	OverwriteIfExists
)

// Mutations is a list of header changes, compiled from all levels of a route in the order in which they apply: route, virtual
// host, route configuration (or the other way round).
type Mutations struct{ levels []level }

// level is what one level changes: removals, then what replaces, then what adds. Values are those that the level finds; none of its
// changes sees another one.
type level struct {
	steps []mutation
	// plain: the steps can apply one by one, as none could see another.
	plain bool
}

// newLevel puts the steps of a level in order.
func newLevel(steps []mutation) level {
	slices.SortStableFunc(steps, func(a, b mutation) int { return a.rank() - b.rank() })
	l := level{steps: steps, plain: true}
	adds, names := 0, map[string]bool{}
	for i := range steps {
		s := &steps[i]
		if s.remove {
			continue
		}
		adds++
		if names[s.name] {
			l.plain = false
		}
		names[s.name] = true
	}
	for i := range steps {
		if adds > 1 && steps[i].prog != nil {
			l.plain = false
		}
	}
	return l
}

// rank orders the steps of a level.
func (s *mutation) rank() int {
	switch {
	case s.remove:
		return 0
	case s.action == OverwriteOrAdd || s.action == OverwriteIfExists:
		return 1
	}
	return 2
}

type mutation struct {
	name      string
	id        http.ID
	value     string
	prog      *format.Format // nil: value is the text
	match     StringMatch    // of the names to remove; nil: name
	action    Append
	keepEmpty bool
	remove    bool
}

// evaluator is what a worker needs to evaluate formats: it is used by one evaluation after the other.
type evaluator struct {
	ctx    format.Context
	buf    []byte
	values []value // of a level
}

// maxKeptFormat bounds the memory that a worker keeps for the results of formats.
const maxKeptFormat = 16 << 10

var evaluators = event.NewLocal(func(w *event.Worker) *evaluator {
	return &evaluator{ctx: format.Context{Rand: w.Rand}}
})

// Evaluate evaluates f on w. What it returns is valid until the next call on this worker.
func Evaluate(w *event.Worker, f *format.Format, info *stream.Info) []byte {
	e := evaluators.Get(w)
	e.ctx.Info, e.ctx.Now, e.ctx.Wall = info, w.Now(), w.Wall()
	b := f.Evaluate(e.buf[:0], &e.ctx)
	e.ctx.Info = nil
	if cap(b) <= maxKeptFormat {
		e.buf = b
	}
	return b
}

// Apply changes h, on w, for the stream that info describes.
func (m *Mutations) Apply(w *event.Worker, h *http.HeaderMap, info *stream.Info) {
	for i := range m.levels {
		l := &m.levels[i]
		if !l.plain {
			l.apply(w, h, info)
			continue
		}
		for k := range l.steps {
			if s := &l.steps[k]; s.remove {
				s.take(h)
			} else if v := s.text(w, h, info); s.applies(h, v) {
				s.put(h, v)
			}
		}
	}
}

// apply finds out all values before it changes anything but what is removed.
func (l *level) apply(w *event.Worker, h *http.HeaderMap, info *stream.Info) {
	e := evaluators.Get(w)
	values := e.values[:0]
	for k := range l.steps {
		s := &l.steps[k]
		v := value{}
		if s.remove {
			s.take(h)
		} else {
			v.text = s.text(w, h, info)
			v.applies = s.applies(h, v.text)
		}
		values = append(values, v)
	}
	for k := range l.steps {
		if values[k].applies {
			l.steps[k].put(h, values[k].text)
		}
	}
	clear(values)
	e.values = values
}

// value is what a step adds, if it does.
type value struct {
	text    string
	applies bool
}

// text is the value that a step has for a stream.
func (s *mutation) text(w *event.Worker, h *http.HeaderMap, info *stream.Info) string {
	if s.prog == nil {
		return s.value
	}
	return h.Arena().Copy(Evaluate(w, s.prog, info))
}

// take removes what the step names.
func (s *mutation) take(h *http.HeaderMap) {
	switch {
	case s.match != nil:
		h.RemoveFunc(func(f *http.Header) bool { return f.Name[0] != ':' && s.match.Match(f.Name) })
	case s.id != http.None:
		h.Remove(s.id)
	default:
		h.RemoveName(s.name)
	}
}

// applies tells whether a step does anything to these headers.
func (s *mutation) applies(h *http.HeaderMap, v string) bool {
	if v == "" && !s.keepEmpty {
		return false
	}
	if s.action != AddIfAbsent && s.action != OverwriteIfExists {
		return true
	}
	has := false
	if s.id != http.None {
		has = h.Has(s.id)
	} else {
		_, has = h.GetName(s.name)
	}
	return has == (s.action == OverwriteIfExists)
}

func (s *mutation) put(h *http.HeaderMap, v string) {
	switch {
	case s.action == AppendOrAdd || s.action == AddIfAbsent:
		h.AddView(s.id, s.name, v)
	case s.id != http.None:
		h.SetConst(s.id, v)
	default:
		// What is replaced moves to the end.
		h.RemoveName(s.name)
		h.AddView(s.id, s.name, v)
	}
}
