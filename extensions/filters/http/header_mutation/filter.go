package header_mutation //nolint:revive // Envoy's name

import (
	"strings"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
)

// level is what the filter's configuration, or one level of a route, says. It is immutable; nil fields change nothing.
type level struct {
	request, response, requestTrailers, responseTrailers ext.HeaderMutations
	query                                                []query
}

// action says what adding a query parameter does to those that are there, in Envoy's order.
type action int32

const (
	appendOrAdd action = iota
	addIfAbsent
	overwriteOrAdd
	overwriteIfExists
)

// query is one change of the query.
type query struct {
	name   string
	value  ext.Formatter
	action action
	remove bool
}

type factory struct {
	own          *level
	specificWins bool
}

// New returns the filter of one stream.
func (f *factory) New(network.Dispatcher) filter.Filter { return &mutator{f: f} }

// Sides says that the filter looks at requests and responses.
func (f *factory) Sides() filter.Sides { return filter.Both }

// mutator is one stream's.
type mutator struct {
	filter.PassThrough
	f      *factory
	routes []any
	room   [4]any
	asked  bool
}

// each calls do for all levels: the filter's own, then the route's. The one that comes last wins; by default that is the least
// specific one.
func (m *mutator) each(do func(l *level)) {
	if !m.asked {
		m.asked = true
		m.routes = m.CB.RouteConfigs(m.room[:0])
	}
	do(m.f.own)
	n := len(m.routes)
	for i := range m.routes {
		r := m.routes[i]
		if m.f.specificWins {
			r = m.routes[n-1-i]
		}
		if l, ok := r.(*level); ok {
			do(l)
		}
	}
}

// DecodeHeaders changes the request.
func (m *mutator) DecodeHeaders(h *http.HeaderMap, _ bool) filter.HeadersStatus {
	m.each(func(l *level) {
		if l.request != nil {
			l.request.Apply(h, m.CB)
		}
		if len(l.query) > 0 {
			m.changeQuery(h, l.query)
		}
	})
	return filter.HeadersContinue
}

// DecodeTrailers changes the request's trailers.
func (m *mutator) DecodeTrailers(t *http.HeaderMap) filter.TrailersStatus {
	m.each(func(l *level) {
		if l.requestTrailers != nil {
			l.requestTrailers.Apply(t, m.CB)
		}
	})
	return filter.TrailersContinue
}

// EncodeHeaders changes the response, a local reply too.
func (m *mutator) EncodeHeaders(h *http.HeaderMap, _ bool) filter.HeadersStatus {
	m.each(func(l *level) {
		if l.response != nil {
			l.response.Apply(h, m.CB)
		}
	})
	return filter.HeadersContinue
}

// EncodeTrailers changes the response's trailers.
func (m *mutator) EncodeTrailers(t *http.HeaderMap) filter.TrailersStatus {
	m.each(func(l *level) {
		if l.responseTrailers != nil {
			l.responseTrailers.Apply(t, m.CB)
		}
	})
	return filter.TrailersContinue
}

// parameter is one "name=value" of a query.
type parameter struct {
	name, value string
	bare        bool // without "="
}

// changeQuery applies changes to the query of :path.
func (m *mutator) changeQuery(h *http.HeaderMap, list []query) {
	path, text, _ := strings.Cut(h.Get(http.Path), "?")
	var all []parameter
	for text != "" {
		var one string
		one, text, _ = strings.Cut(text, "&")
		name, value, has := strings.Cut(one, "=")
		all = append(all, parameter{name, value, !has})
	}
	for i := range list {
		all = m.change(all, &list[i])
	}
	var b strings.Builder
	b.WriteString(path)
	for i, p := range all {
		b.WriteByte("?&"[min(i, 1)])
		b.WriteString(p.name)
		if !p.bare {
			b.WriteByte('=')
			b.WriteString(p.value)
		}
	}
	h.Set(http.Path, b.String())
}

func (m *mutator) change(all []parameter, q *query) []parameter {
	found := false
	for _, p := range all {
		found = found || p.name == q.name
	}
	if q.remove || found && (q.action == overwriteOrAdd || q.action == overwriteIfExists) {
		kept := all[:0]
		for _, p := range all {
			if p.name != q.name {
				kept = append(kept, p)
			}
		}
		all = kept
	}
	if q.remove || q.action == addIfAbsent && found || q.action == overwriteIfExists && !found {
		return all
	}
	return append(all, parameter{name: q.name, value: escape(string(q.value.Append(nil, m.CB)))})
}

// escape writes what a query's value may not have as %XX (RFC 3986, section 3.4).
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}
