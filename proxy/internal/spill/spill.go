// Package spill keeps bytes of streams in files when they are too many for memory.
//
// A Store bounds the files of a process; a File belongs to one worker. The worker asks, a goroutine of the Store does the reading and
// writing, and the answer comes back by Post: a worker never waits for a disk. The goroutines are few (MaxRunning), exist only while
// there is work, and touch nothing of a worker but the bytes that were handed to them. A file has no name: it is unlinked as soon as
// it is open, so that nothing is left behind however the process ends.
package spill

import (
	"errors"
	"io"
	"os"
	"sync"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// MaxRunning bounds the goroutines of a Store, and so the threads that may stand in a system call. Further work waits in the order
// in which it came.
const MaxRunning = 4

// DefaultTotal is how many bytes all files of a process may hold together.
const DefaultTotal = 1 << 30

// ReadSize is the most that one Read gives.
const ReadSize = 64 << 10

// ErrTotal: the files of the process hold all that they may.
var ErrTotal = errors.New("all spill files together are at their limit")

// Backing is what a File's bytes are kept in. Its methods are called from one goroutine at a time, not always the same.
type Backing interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
}

// Config is what a Store is made of. The zero value is that of a real process.
type Config struct {
	// Total bounds all files together, in bytes; 0: DefaultTotal.
	Total int64
	// Open makes the place for a file in a folder; nil: a file without a name.
	Open func(folder string) (Backing, error)
	// Inline does all work at once on the worker, for the simulation, which has no goroutines. Without Open, bytes stay in memory.
	Inline bool
}

// Store is a process's spill files. Safe from any worker.
type Store struct {
	cfg Config

	mu      sync.Mutex
	queue   []*File // with work to do
	running int
	used    int64
	files   int
}

// New returns a Store without files.
func New(cfg Config) *Store {
	if cfg.Total == 0 {
		cfg.Total = DefaultTotal
	}
	if cfg.Open == nil {
		cfg.Open = unnamed
		if cfg.Inline {
			cfg.Open = func(string) (Backing, error) { return &inMemory{}, nil }
		}
	}
	return &Store{cfg: cfg}
}

// Used returns how many bytes the files hold, and how many files there are.
func (s *Store) Used() (bytes int64, files int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used, s.files
}

// reserve takes room for n bytes.
func (s *Store) reserve(n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used+n > s.cfg.Total {
		return false
	}
	s.used += n
	return true
}

// submit gets the work of f done.
func (s *Store) submit(f *File) {
	if s.cfg.Inline {
		f.work()
		return
	}
	s.mu.Lock()
	s.queue = append(s.queue, f)
	start := s.running < MaxRunning
	if start {
		s.running++
	}
	s.mu.Unlock()
	if start {
		go s.run()
	}
}

// run is one goroutine's: it ends when nothing is left to do.
func (s *Store) run() {
	for {
		s.mu.Lock()
		if len(s.queue) == 0 {
			s.queue = nil
			s.running--
			s.mu.Unlock()
			return
		}
		f := s.queue[0]
		s.queue[0] = nil
		s.queue = s.queue[1:]
		s.mu.Unlock()
		f.work()
	}
}

// gone forgets a file that is closed.
func (s *Store) gone(held int64) {
	s.mu.Lock()
	s.used -= held
	s.files--
	s.mu.Unlock()
}

// unnamed opens a file that has no name any more.
func unnamed(folder string) (Backing, error) {
	f, err := os.CreateTemp(folder, "dragoman-spill-*")
	if err != nil {
		return nil, err
	}
	if err = os.Remove(f.Name()); err != nil {
		// Some systems do not unlink what is open.
		return &named{f}, nil
	}
	return f, nil
}

// named is a file that is removed when it is closed.
type named struct{ *os.File }

func (f *named) Close() error { return errors.Join(f.File.Close(), os.Remove(f.Name())) }

// inMemory is a Backing of the simulation.
type inMemory struct{ b []byte }

func (m *inMemory) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(m.b)) {
		return 0, io.EOF
	}
	n := copy(p, m.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m *inMemory) WriteAt(p []byte, off int64) (int, error) {
	m.b = append(m.b[:off], p...)
	return len(p), nil
}

func (m *inMemory) Close() error { m.b = nil; return nil }

// User is told how a File's work went, on its worker.
type User interface {
	// OnWritten: what Write took is in the file, or err says why not; then b has it all, to be moved elsewhere. Without an error b is
	// of no use.
	OnWritten(b *buffer.Buffer, err error)
	// OnRead: b is what was asked for, valid until the call returns; all of it, or err says why not.
	OnRead(b []byte, err error)
}

// kinds of work.
const (
	nothing uint8 = iota
	writing
	reading
	closing
)

// File is bytes in a file: appended at its end, read anywhere. One thing is done at a time. owner: its worker, except for what work
// uses while there is some.
type File struct {
	s      *Store
	w      *event.Worker
	user   User // nil after Close
	folder string
	posted func()

	size int64 // bytes that are in the file
	held int64 // bytes of the Store's total

	// The work under way, and what it needs.
	kind    uint8
	out     buffer.Buffer
	runs    [][]byte
	in      []byte // where Read reads to, kept for the next one
	n       int    // of in that the read under way wants
	telling bool   // the user has in
	at      int64
	err     error

	back Backing
}

// NewFile returns an empty file. Nothing is opened before the first Write, so nothing can fail. folder is where to keep it, "" for
// the system's folder of temporary files.
func (s *Store) NewFile(w *event.Worker, folder string, u User) *File {
	f := &File{s: s, w: w, user: u, folder: folder}
	f.out.Init(&w.Bufs)
	f.posted = f.done
	s.mu.Lock()
	s.files++
	s.mu.Unlock()
	return f
}

// Size returns how many bytes are in the file. What is being written does not count yet.
func (f *File) Size() int64 { return f.size }

// Busy tells whether something is under way; then neither Write nor Read may be called.
func (f *File) Busy() bool { return f.kind != nothing }

// Write appends b, which it takes. The answer is OnWritten, never from within. ErrTotal comes at once, and b keeps its bytes.
func (f *File) Write(b *buffer.Buffer) error {
	n := int64(b.Len())
	if !f.s.reserve(n) {
		return ErrTotal
	}
	f.held += n
	f.out.Move(b)
	f.kind, f.at = writing, f.size
	f.runs = f.out.Slices(f.runs[:0], maxRuns)
	f.s.submit(f)
	return nil
}

// maxRuns is more than a buffer has: each run is at least a few hundred bytes.
const maxRuns = 1 << 20

// Pending is what is being written.
func (f *File) Pending() *buffer.Buffer { return &f.out }

// Read reads n bytes at off, which the file has; at most ReadSize. The answer is OnRead, never from within.
func (f *File) Read(off int64, n int) {
	if f.in == nil {
		f.in = f.w.Bufs.Raw(ReadSize)[:ReadSize]
	}
	f.kind, f.at, f.n = reading, off, min(n, ReadSize)
	f.s.submit(f)
}

// Close gives the file up; the User hears no more. What is under way comes to its end first.
func (f *File) Close() {
	if f.user == nil {
		return
	}
	f.user = nil
	if f.kind == nothing {
		f.close()
	}
}

func (f *File) close() {
	if !f.telling {
		f.dropIn()
	}
	if f.back == nil {
		f.s.gone(f.held)
		return
	}
	f.kind = closing
	f.s.submit(f)
}

func (f *File) dropIn() {
	if f.in != nil {
		f.w.Bufs.PutRaw(f.in)
		f.in = nil
	}
}

// work does what is to be done, wherever it is called, and posts the answer.
func (f *File) work() {
	switch f.kind {
	case writing:
		f.err = f.write()
	case reading:
		_, f.err = f.back.ReadAt(f.in[:f.n], f.at)
		if errors.Is(f.err, io.EOF) {
			f.err = io.ErrUnexpectedEOF // somebody has cut the file short
		}
	case closing:
		_ = f.back.Close() // its content is of no interest any more
		f.s.gone(f.held)
		return
	}
	f.w.Post(f.posted)
}

func (f *File) write() (err error) {
	if f.back == nil {
		if f.back, err = f.s.cfg.Open(f.folder); err != nil {
			f.back = nil
			return err
		}
	}
	at := f.at
	for _, run := range f.runs {
		if _, err := f.back.WriteAt(run, at); err != nil {
			return err
		}
		at += int64(len(run))
	}
	return nil
}

// done is the answer, on the worker.
func (f *File) done() {
	kind, err, u := f.kind, f.err, f.user
	f.kind, f.err = nothing, nil
	clear(f.runs)
	switch kind {
	case writing:
		f.written(u, err)
	case reading:
		if u != nil {
			f.telling = true
			u.OnRead(f.in[:f.n], err)
			f.telling = false
			if f.user == nil {
				f.dropIn()
			}
		}
	}
	if f.user == nil && f.kind == nothing && u == nil {
		f.close()
	}
}

func (f *File) written(u User, err error) {
	n := int64(f.out.Len())
	if err == nil {
		f.size += n
		f.out.Reset()
		if u != nil {
			u.OnWritten(&f.out, nil)
		}
		return
	}
	f.held -= n
	f.s.mu.Lock()
	f.s.used -= n
	f.s.mu.Unlock()
	var back buffer.Buffer
	back.Init(&f.w.Bufs)
	back.Move(&f.out)
	if u != nil {
		u.OnWritten(&back, err)
	}
	back.Reset()
}
