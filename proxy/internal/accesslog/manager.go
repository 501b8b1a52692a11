// Package accesslog writes access logs: files and the process's output streams, with Envoy's filters and formats.
//
// Workers append formatted lines to a batch of their own per file, without a lock; full batches, and those that have waited
// for the flush interval, go to the file's writer goroutine through a bounded queue. A file that is too slow loses lines, which
// are counted; it never holds a worker up. Files are opened, released and reopened on the main loop.
package accesslog

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

// Bounds and defaults.
const (
	// DefaultFlushSize is how many bytes a worker collects for a file before they are written (--file-flush-min-size-kb).
	DefaultFlushSize = 64 << 10
	// DefaultFlushInterval is how long a line waits at most before it is written (--file-flush-interval-msec).
	DefaultFlushInterval = 10 * time.Second
	// MaxQueued is how many bytes may wait for the writer of one file. Batches beyond it are dropped.
	MaxQueued = 16 << 20
	// maxFree is how many written batches a file keeps for reuse.
	maxFree = 8
	// maxKept is the largest buffer that is kept for reuse, in flush sizes.
	maxKept = 4
)

// Config is what a Manager is made of.
type Config struct {
	// Home is the main loop.
	Home *event.Worker
	// Scope is the root of the stats.
	Scope         stats.Scope
	FlushSize     int
	FlushInterval time.Duration
	// Stdout and Stderr are what the stream loggers write to; nil means the process's.
	Stdout, Stderr io.Writer
	// Open opens a file for appending; nil means the file system.
	Open func(path string) (io.WriteCloser, error)
	// Inline makes workers write their batches themselves, for the simulation, whose files are memory.
	Inline bool
	// Written is called whenever a writer has something new for Count, by its goroutine; nil: nobody waits for that.
	Written func()
}

// The stats of Envoy's file system. The last is ours, and shows once it has happened.
const (
	flushedByTimer stats.CounterIndex = iota
	reopenFailed
	writeBuffered
	writeCompleted
	writeFailed
	linesDropped
	writeTotalBuffered stats.GaugeIndex = iota
)

var fileStats = stats.MustTemplate("filesystem",
	stats.Counter(flushedByTimer, "flushed_by_timer"),
	stats.Counter(reopenFailed, "reopen_failed"),
	stats.Counter(writeBuffered, "write_buffered"),
	stats.Counter(writeCompleted, "write_completed"),
	stats.Counter(writeFailed, "write_failed"),
	stats.LazyCounter(linesDropped, "lines_dropped"),
	stats.Gauge(writeTotalBuffered, "write_total_buffered"),
)

// Manager owns the files. owner: main loop, unless a method says otherwise.
type Manager struct {
	cfg    Config
	base   stats.GroupBase
	files  map[string]*File
	byID   []*File // free places are nil
	locals []*local
	done   results
	closed bool
}

// results are what writers have done and Count has not counted yet.
type results struct {
	completed atomic.Uint64
	failed    atomic.Uint64
	reopens   atomic.Uint64 // that failed
	written   atomic.Uint64 // bytes, written or not
}

// NewManager returns a Manager without files.
func NewManager(cfg Config) *Manager {
	if cfg.FlushSize <= 0 {
		cfg.FlushSize = DefaultFlushSize
	}
	if cfg.FlushInterval <= 0 {
		cfg.FlushInterval = DefaultFlushInterval
	}
	if cfg.Stdout == nil {
		cfg.Stdout = os.Stdout
	}
	if cfg.Stderr == nil {
		cfg.Stderr = os.Stderr
	}
	if cfg.Open == nil {
		cfg.Open = openFile
	}
	m := &Manager{cfg: cfg, files: map[string]*File{}, base: cfg.Scope.Scope("filesystem").Group(fileStats)}
	m.Attach(cfg.Home)
	return m
}

func openFile(path string) (io.WriteCloser, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Attach makes w one of the workers that log. Call it before w runs.
func (m *Manager) Attach(w *event.Worker) {
	l := &local{m: m, w: w, ctx: format.Context{Rand: w.Rand}}
	l.timer.Fn = l.onTimer
	for len(m.locals) <= w.Index+1 {
		m.locals = append(m.locals, nil)
	}
	m.locals[w.Index+1] = l
}

// local returns what the worker with this index has, nil if it was never attached.
func (m *Manager) local(index int) *local {
	if i := index + 1; uint(i) < uint(len(m.locals)) {
		return m.locals[i]
	}
	return nil
}

// Names of files that are the process's output streams.
const (
	stdout = "\x00stdout"
	stderr = "\x00stderr"
)

// File returns the file at path, opened for appending and shared by all who ask for it. Release it when it is no longer logged to.
func (m *Manager) File(path string) (*File, error) {
	if f, ok := m.files[path]; ok {
		f.refs++
		return f, nil
	}
	w, err := m.open(path)
	if err != nil {
		return nil, err
	}
	f := newFile(m, path, w)
	for i, other := range m.byID {
		if other == nil {
			f.id = i
			m.byID[i] = f
			break
		}
	}
	if f.id < 0 {
		f.id = len(m.byID)
		m.byID = append(m.byID, f)
	}
	m.files[path] = f
	if !m.cfg.Inline {
		go f.run()
	}
	return f, nil
}

func (m *Manager) open(path string) (io.WriteCloser, error) {
	switch path {
	case stdout:
		return keepOpen{m.cfg.Stdout}, nil
	case stderr:
		return keepOpen{m.cfg.Stderr}, nil
	}
	w, err := m.cfg.Open(path)
	if err != nil {
		return nil, fmt.Errorf("unable to open file '%s': %w", path, cause(err))
	}
	return w, nil
}

// keepOpen is a writer that is not ours to close.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// cause is the system's word for an error, capitalised as strerror has it.
func cause(err error) error {
	for {
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			break
		}
		err = u.Unwrap()
	}
	if e, ok := err.(syscall.Errno); ok {
		return errno(e)
	}
	return err
}

// errno prints like strerror: "No such file or directory".
type errno syscall.Errno

func (e errno) Error() string {
	s := syscall.Errno(e).Error()
	if s != "" && s[0] >= 'a' && s[0] <= 'z' {
		s = string(s[0]-'a'+'A') + s[1:]
	}
	return s
}

func (e errno) Unwrap() error { return syscall.Errno(e) }

// Reopen closes all files and opens them again by their names, so that they can be rotated. What was not written yet goes to the
// new file. If a file cannot be opened, the old one stays until it can be.
func (m *Manager) Reopen() {
	for _, f := range m.byID {
		if f != nil {
			f.reopen()
		}
	}
}

// Close writes everything and closes all files. Workers must have ended; lines that are logged later are lost. It waits for the
// writers until ctx ends.
func (m *Manager) Close(ctx context.Context) error {
	if m.closed {
		return nil
	}
	m.closed = true
	for _, l := range m.locals {
		if l != nil {
			l.flush()
		}
	}
	var wait []*File
	for _, f := range m.byID {
		if f != nil {
			f.gone.Store(true)
			f.close()
			wait = append(wait, f)
		}
	}
	for _, f := range wait {
		select {
		case <-f.done:
		case <-ctx.Done():
			return fmt.Errorf("access log %s: %w", f.Name(), ctx.Err())
		}
	}
	m.Count()
	return nil
}

// report tells whoever waits that writers have done something. Safe from any goroutine.
func (m *Manager) report() {
	if m.cfg.Written != nil {
		m.cfg.Written()
	}
}

// Count adds what the writers have done since the last time to the stats of the main loop. It is for whoever is about to collect
// them: a writer that told the main loop of each write would wake it up for that, and with it the runtime's monitor, which then
// looks every 20 us for a while and costs the worker more than the lines do. owner: main loop.
func (m *Manager) Count() {
	s := m.cfg.Home.Stats
	s.Add(m.base.Counter(writeCompleted), m.done.completed.Swap(0))
	s.Add(m.base.Counter(writeFailed), m.done.failed.Swap(0))
	s.Add(m.base.Counter(reopenFailed), m.done.reopens.Swap(0))
	if n := m.done.written.Swap(0); n > 0 {
		s.GaugeSub(m.base.Gauge(writeTotalBuffered), int64(n))
	}
}

// release gives one hold of f up; with the last one the workers hand over what they have, and the file is closed.
func (m *Manager) release(f *File) {
	if f.refs--; f.refs > 0 || m.closed {
		return
	}
	delete(m.files, f.path)
	f.gone.Store(true)
	var left atomic.Int32
	for _, l := range m.locals {
		if l != nil {
			left.Add(1)
		}
	}
	for _, l := range m.locals {
		if l == nil {
			continue
		}
		l.w.Post(func() {
			l.forget(f)
			if left.Add(-1) == 0 {
				m.cfg.Home.Post(func() {
					f.close()
					m.byID[f.id] = nil
				})
			}
		})
	}
}
