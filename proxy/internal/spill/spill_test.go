package spill_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/spill"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a worker that the test steps, and what Files have told.
type rig struct {
	t *testing.T
	w *event.Worker
	s *spill.Store

	written int   // answers
	err     error // of the last answer
	back    []byte
	got     []byte
	reads   int
}

func newRig(t *testing.T, cfg spill.Config) *rig {
	d, err := event.NewDriver(event.DefaultDriver())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, s: spill.New(cfg)}
	r.w = event.New(event.Config{Driver: d, Clock: clock.System(), Rand: rand.New()})
	r.w.Bufs.Poison = true
	t.Cleanup(func() {
		r.until(func() bool { _, n := r.s.Used(); return n == 0 })
		if used, _ := r.s.Used(); used != 0 {
			t.Errorf("%d bytes are still counted", used)
		}
		if n := r.w.Bufs.Live(); n != 0 {
			t.Errorf("%d buffers are still in use", n)
		}
		d.Close()
	})
	return r
}

func (r *rig) OnWritten(b *buffer.Buffer, err error) {
	r.written++
	r.err = err
	r.back = b.Bytes()
}

func (r *rig) OnRead(b []byte, err error) {
	r.reads++
	r.err = err
	r.got = append(r.got[:0], b...)
}

// until steps the worker until something holds.
func (r *rig) until(f func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(25 * time.Second)
	for !f() {
		if time.Now().After(deadline) {
			r.t.Fatal("it does not happen")
		}
		r.w.Step(false)
		runtime.Gosched()
	}
}

func (r *rig) write(f *spill.File, p []byte) error {
	r.t.Helper()
	var b buffer.Buffer
	b.Init(&r.w.Bufs)
	b.Append(p)
	n := r.written
	if err := f.Write(&b); err != nil {
		b.Reset()
		return err
	}
	r.until(func() bool { return r.written > n })
	return r.err
}

func (r *rig) read(f *spill.File, off int64, n int) ([]byte, error) {
	r.t.Helper()
	had := r.reads
	f.Read(off, n)
	r.until(func() bool { return r.reads > had })
	return r.got, r.err
}

func pattern(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(i*7 + i>>9)
	}
	return p
}

func TestRoundTrip(t *testing.T) {
	for name, inline := range map[string]bool{"goroutines": false, "inline": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, spill.Config{Inline: inline})
			f := r.s.NewFile(r.w, t.TempDir(), r)
			defer f.Close()
			all := pattern(200_001)
			for _, cut := range [][2]int{{0, 1}, {1, 100_000}, {100_000, 200_001}} {
				if err := r.write(f, all[cut[0]:cut[1]]); err != nil {
					t.Fatal(err)
				}
			}
			if f.Size() != int64(len(all)) {
				t.Errorf("size %d", f.Size())
			}
			if used, files := r.s.Used(); used != int64(len(all)) || files != 1 {
				t.Errorf("used %d in %d files", used, files)
			}
			var back []byte
			for off := 0; off < len(all); off += len(r.got) {
				b, err := r.read(f, int64(off), len(all)-off)
				if err != nil || len(b) == 0 || len(b) > spill.ReadSize {
					t.Fatalf("%d bytes, %v", len(b), err)
				}
				back = append(back, b...)
			}
			if !bytes.Equal(back, all) {
				t.Error("other bytes came back")
			}
		})
	}
}

// Nothing of a file can be seen in its folder, even while it is open.
func TestNoName(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file keeps its name here")
	}
	r := newRig(t, spill.Config{})
	dir := t.TempDir()
	f := r.s.NewFile(r.w, dir, r)
	defer f.Close()
	if err := r.write(f, []byte("secret")); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestTotal(t *testing.T) {
	r := newRig(t, spill.Config{Total: 1000})
	a, b := r.s.NewFile(r.w, t.TempDir(), r), r.s.NewFile(r.w, t.TempDir(), r)
	defer b.Close()
	if err := r.write(a, pattern(600)); err != nil {
		t.Fatal(err)
	}
	if err := r.write(b, pattern(401)); !errors.Is(err, spill.ErrTotal) {
		t.Errorf("one byte too many: %v", err)
	}
	if err := r.write(b, pattern(400)); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	a.Close()
	r.until(func() bool { used, _ := r.s.Used(); return used == 400 })
	if err := r.write(b, pattern(600)); err != nil {
		t.Errorf("after the other is gone: %v", err)
	}
}

func TestFolderThatIsNot(t *testing.T) {
	r := newRig(t, spill.Config{})
	f := r.s.NewFile(r.w, filepath.Join(t.TempDir(), "none"), r)
	defer f.Close()
	if err := r.write(f, []byte("abc")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if string(r.back) != "abc" {
		t.Errorf("what was not written is lost: %q", r.back)
	}
	if used, _ := r.s.Used(); used != 0 {
		t.Errorf("%d bytes are counted", used)
	}
}

// disk is a Backing that can be full, broken and slow.
type disk struct {
	mu     sync.Mutex
	b      []byte
	room   int
	broken bool
	gate   chan struct{}
	closed bool
	inside atomic.Int32 // writers
	most   atomic.Int32
}

func (d *disk) WriteAt(p []byte, off int64) (int, error) {
	if n := d.inside.Add(1); n > d.most.Load() {
		d.most.Store(n)
	}
	defer d.inside.Add(-1)
	if d.gate != nil {
		<-d.gate
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if int(off)+len(p) > d.room {
		n := d.room - int(off)
		d.b = append(d.b[:off], p[:n]...)
		return n, syscall.ENOSPC
	}
	d.b = append(d.b[:off], p...)
	return len(p), nil
}

func (d *disk) ReadAt(p []byte, off int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken {
		return 0, syscall.EIO
	}
	n := copy(p, d.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (d *disk) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	return nil
}

func (d *disk) open(string) (spill.Backing, error) { return d, nil }

func (d *disk) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// A full disk costs nothing: what was not written comes back, what was written can be read.
func TestDiskFull(t *testing.T) {
	d := &disk{room: 10}
	r := newRig(t, spill.Config{Open: d.open})
	f := r.s.NewFile(r.w, "", r)
	defer f.Close()
	if err := r.write(f, []byte("0123456")); err != nil {
		t.Fatal(err)
	}
	if err := r.write(f, []byte("789abc")); !errors.Is(err, syscall.ENOSPC) || string(r.back) != "789abc" {
		t.Errorf("%v, %q", err, r.back)
	}
	if used, _ := r.s.Used(); used != 7 || f.Size() != 7 {
		t.Errorf("%d bytes are counted, size %d", used, f.Size())
	}
	if b, err := r.read(f, 0, 7); err != nil || string(b) != "0123456" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestReadErrors(t *testing.T) {
	d := &disk{room: 100}
	r := newRig(t, spill.Config{Open: d.open})
	f := r.s.NewFile(r.w, "", r)
	defer f.Close()
	if err := r.write(f, []byte("0123456")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.read(f, 3, 9); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("past the end: %v", err)
	}
	d.mu.Lock()
	d.broken = true
	d.mu.Unlock()
	if _, err := r.read(f, 0, 7); !errors.Is(err, syscall.EIO) {
		t.Errorf("broken: %v", err)
	}
}

// A file that is given up while the disk is busy is closed afterwards, and its user hears nothing.
func TestCloseWhileBusy(t *testing.T) {
	d := &disk{room: 100, gate: make(chan struct{})}
	r := newRig(t, spill.Config{Open: d.open})
	f := r.s.NewFile(r.w, "", r)
	var b buffer.Buffer
	b.Init(&r.w.Bufs)
	b.Append([]byte("abc"))
	if err := f.Write(&b); err != nil || !f.Busy() || b.Len() != 0 {
		t.Fatalf("%v, busy %v, %d bytes left", err, f.Busy(), b.Len())
	}
	if got := string(f.Pending().Bytes()); got != "abc" {
		t.Errorf("being written: %q", got)
	}
	f.Close()
	f.Close()
	if d.isClosed() {
		t.Error("closed under the writer")
	}
	close(d.gate)
	r.until(d.isClosed)
	if r.written != 0 {
		t.Error("the user was told")
	}
}

// Many files share few goroutines.
func TestGoroutinesAreFew(t *testing.T) {
	d := &disk{room: 1 << 20, gate: make(chan struct{})}
	r := newRig(t, spill.Config{Open: d.open})
	files := make([]*spill.File, 10*spill.MaxRunning)
	for i := range files {
		files[i] = r.s.NewFile(r.w, "", r)
		var b buffer.Buffer
		b.Init(&r.w.Bufs)
		b.Append([]byte("abc"))
		if err := files[i].Write(&b); err != nil {
			t.Fatal(err)
		}
	}
	r.until(func() bool { return d.inside.Load() == spill.MaxRunning })
	close(d.gate)
	r.until(func() bool { return r.written == len(files) })
	if n := d.most.Load(); n > spill.MaxRunning {
		t.Errorf("%d at a time", n)
	}
	for _, f := range files {
		f.Close()
	}
}
