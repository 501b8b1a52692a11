package server

import (
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// formatter is a format for extensions.
type formatter struct{ f *format.Format }

func newFormatter(text string, o *format.Options) (ext.Formatter, error) {
	f, err := format.ParseText(text, o)
	if err != nil {
		return nil, err
	}
	return formatter{f}, nil
}

func (f formatter) Append(dst []byte, cb filter.Callbacks) []byte {
	return append(dst, route.Evaluate(worker(cb), f.f, cb.Info())...)
}

// mutations are header mutations for extensions.
type mutations struct{ m *route.Mutations }

func (m mutations) Apply(h *http.HeaderMap, cb filter.Callbacks) {
	m.m.Apply(worker(cb), h, cb.Info())
}

func worker(cb filter.Callbacks) *event.Worker {
	return cb.(interface{ Worker() *event.Worker }).Worker()
}
