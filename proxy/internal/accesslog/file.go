package accesslog

import (
	"io"
	"sync"
	"sync/atomic"
)

// File is the writing end of one path. Its writer goroutine owns the open file.
type File struct {
	m    *Manager
	path string
	id   int         // place in Manager.byID and local.batches
	refs int         // owner: main loop
	gone atomic.Bool // released: lines are dropped
	done chan struct{}

	mu      sync.Mutex
	wake    *sync.Cond
	queue   []lines
	spare   []lines
	free    [][]byte
	queued  int // bytes that wait or are being written
	again   bool
	closing bool

	out   io.WriteCloser // owner: writer
	stale bool           // owner: writer. Reopening failed, and is tried again before the next lines.
}

// lines are formatted lines on their way to a file.
type lines struct {
	b []byte
	n uint64
}

func newFile(m *Manager, path string, out io.WriteCloser) *File {
	f := &File{m: m, path: path, id: -1, refs: 1, out: out, done: make(chan struct{})}
	f.wake = sync.NewCond(&f.mu)
	return f
}

// Release gives the file up. owner: main loop.
func (f *File) Release() { f.m.release(f) }

// Line appends a line that is no stream's, with its newline. owner: the main loop.
func (f *File) Line(line []byte) {
	l := f.m.local(f.m.cfg.Home.Index)
	if b := l.batch(f); b != nil {
		l.wrote(b, append(b.b, line...))
	}
}

// Name returns the path, or the name of the output stream.
func (f *File) Name() string {
	switch f.path {
	case stdout:
		return "stdout"
	case stderr:
		return "stderr"
	}
	return f.path
}

// push hands lines to the writer and returns an empty buffer for the next ones, nil if there is none; ok is false if there was
// no room for them. Safe from any goroutine.
func (f *File) push(l lines) (next []byte, ok bool) {
	f.mu.Lock()
	if f.closing || f.queued > 0 && f.queued+len(l.b) > MaxQueued {
		f.mu.Unlock()
		return l.b[:0], false
	}
	f.queued += len(l.b)
	if f.m.cfg.Inline {
		f.mu.Unlock()
		if f.stale {
			f.swap()
		}
		f.write(l)
		f.mu.Lock()
		f.queued -= len(l.b)
		f.mu.Unlock()
		f.m.report()
		return l.b[:0], true
	}
	f.queue = append(f.queue, l)
	if n := len(f.free); n > 0 {
		next, f.free[n-1] = f.free[n-1], nil
		f.free = f.free[:n-1]
	}
	f.mu.Unlock()
	f.wake.Signal()
	return next, true
}

func (f *File) reopen() {
	f.mu.Lock()
	f.again = true
	f.mu.Unlock()
	if f.m.cfg.Inline {
		f.swap()
		return
	}
	f.wake.Signal()
}

func (f *File) close() {
	f.mu.Lock()
	closing := f.closing
	f.closing = true
	f.mu.Unlock()
	if f.m.cfg.Inline && !closing {
		f.end()
		return
	}
	f.wake.Signal()
}

// run is the writer.
func (f *File) run() {
	for {
		f.mu.Lock()
		for len(f.queue) == 0 && !f.again && !f.closing {
			f.wake.Wait()
		}
		work := f.queue
		f.queue, f.spare = f.spare[:0], nil
		again, closing := f.again, f.closing
		f.again = false
		f.mu.Unlock()

		// First, so that whoever rotates files gets no line in the old one after this.
		if again || f.stale {
			f.swap()
		}
		for i := range work {
			f.write(work[i])
			f.recycle(work[i].b)
			work[i] = lines{}
		}
		f.spare = work
		f.m.report()
		// Nothing is queued after closing was set.
		if closing {
			f.end()
			return
		}
	}
}

// write writes lines. An error costs them: there is nowhere else to put them, and the next ones may fare better.
func (f *File) write(l lines) {
	if _, err := f.out.Write(l.b); err != nil {
		f.m.done.failed.Add(1)
	} else {
		f.m.done.completed.Add(1)
	}
	f.m.done.written.Add(uint64(len(l.b)))
}

// recycle keeps a written buffer for the workers.
func (f *File) recycle(b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queued -= len(b)
	if len(f.free) < maxFree && cap(b) <= maxKept*f.m.cfg.FlushSize {
		f.free = append(f.free, b[:0])
	}
}

// swap opens the path anew. owner: writer.
func (f *File) swap() {
	f.mu.Lock()
	f.again = false
	f.mu.Unlock()
	out, err := f.m.open(f.path)
	f.stale = err != nil
	if err != nil {
		f.m.done.reopens.Add(1)
		f.m.report()
		return
	}
	f.closeOut()
	f.out = out
}

func (f *File) end() {
	f.closeOut()
	f.m.report()
	close(f.done)
}

// closeOut closes the open file. An error that comes only now (NFS) means that something was not written.
func (f *File) closeOut() {
	if err := f.out.Close(); err != nil {
		f.m.done.failed.Add(1)
	}
}
