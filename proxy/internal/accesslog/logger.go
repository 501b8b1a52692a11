package accesslog

import (
	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

// lineLogger writes a line per stream to a file.
type lineLogger struct {
	m      *Manager
	f      *File
	format *format.Format
}

// NewFileLogger returns a logger that writes lines of format f to the file at path. Release it with Release.
func (m *Manager) NewFileLogger(path string, f *format.Format) (accesslog.Logger, error) {
	file, err := m.File(path)
	if err != nil {
		return nil, err
	}
	return &lineLogger{m: m, f: file, format: f}, nil
}

// NewStdoutLogger and NewStderrLogger return loggers that write to the process's output streams.
func (m *Manager) NewStdoutLogger(f *format.Format) (accesslog.Logger, error) {
	return m.NewFileLogger(stdout, f)
}

// NewStderrLogger is NewStdoutLogger for the other stream.
func (m *Manager) NewStderrLogger(f *format.Format) (accesslog.Logger, error) {
	return m.NewFileLogger(stderr, f)
}

// Log appends a line to the worker's batch.
func (g *lineLogger) Log(w network.Dispatcher, info *stream.Info, when accesslog.Type) {
	l := g.m.local(w.WorkerIndex())
	if l == nil {
		return
	}
	b := l.batch(g.f)
	if b == nil {
		return
	}
	c := &l.ctx
	c.Info, c.Now, c.Wall, c.Type = info, w.Now(), w.Wall(), when
	buf := g.format.Evaluate(b.b, c)
	c.Info = nil
	if len(buf) > len(b.b) {
		l.wrote(b, buf)
	}
}

func (g *lineLogger) release() { g.f.Release() }

// filtered is a logger behind a filter.
type filtered struct {
	filter accesslog.Filter
	logger accesslog.Logger
}

// Filtered returns a logger that is called for what filter lets through.
func Filtered(filter accesslog.Filter, logger accesslog.Logger) accesslog.Logger {
	return &filtered{filter, logger}
}

func (g *filtered) Log(w network.Dispatcher, info *stream.Info, when accesslog.Type) {
	if g.filter.Log(w, info, when) {
		g.logger.Log(w, info, when)
	}
}

func (g *filtered) release() { Release(g.logger) }

// Release gives up what a logger of this package holds. Call it on the main loop, once, when no stream logs to it any more.
func Release(g accesslog.Logger) {
	if r, ok := g.(interface{ release() }); ok {
		r.release()
	}
}

// ReleaseAll releases all loggers of a list.
func ReleaseAll(l accesslog.Loggers) {
	for _, g := range l {
		Release(g)
	}
}
