package server

import (
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
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
	return f.f.Evaluate(dst, &format.Context{Info: cb.Info(), Now: cb.Now(), Wall: cb.Wall()})
}
