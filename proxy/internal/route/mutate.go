package route

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
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
	action    Append
	keepEmpty bool
	remove    bool
}

// Apply changes h.
func (m *Mutations) Apply(h *http.HeaderMap, info *stream.Info) {
	for i := range m.steps {
		s := &m.steps[i]
		if s.remove {
			if s.id != http.None {
				h.Remove(s.id)
			} else {
				h.RemoveName(s.name)
			}
			continue
		}
		v := s.value
		if s.prog != nil {
			var b [256]byte
			v = h.Arena().Copy(s.prog.Evaluate(b[:0], &format.Context{Info: info}))
		}
		if v == "" && !s.keepEmpty {
			continue
		}
		s.apply(h, v)
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
