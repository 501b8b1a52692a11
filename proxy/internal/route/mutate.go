package route

import (
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
type Mutations struct{ steps []mutation }

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
	ctx format.Context
	buf []byte
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
	for i := range m.steps {
		s := &m.steps[i]
		if s.remove {
			s.take(h)
			continue
		}
		v := s.value
		if s.prog != nil {
			v = h.Arena().Copy(Evaluate(w, s.prog, info))
		}
		if v == "" && !s.keepEmpty {
			continue
		}
		s.apply(h, v)
	}
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

func (s *mutation) apply(h *http.HeaderMap, v string) {
	has := false
	if s.id != http.None {
		has = h.Has(s.id)
	} else {
		_, has = h.GetName(s.name)
	}
	switch s.action {
	case AddIfAbsent:
		if has {
			return
		}
	case OverwriteIfExists:
		if !has {
			return
		}
		s.set(h, v)
		return
	case OverwriteOrAdd:
		s.set(h, v)
		return
	}
	h.AddView(s.id, s.name, v)
}

func (s *mutation) set(h *http.HeaderMap, v string) {
	if s.id != http.None {
		h.SetConst(s.id, v)
		return
	}
	h.SetName(s.name, v)
}
