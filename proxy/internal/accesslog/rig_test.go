package accesslog_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/accesslog"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeClock is moved by the test.
type fakeClock struct {
	mu  sync.Mutex
	now time.Duration
}

var epoch = time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC)

func (c *fakeClock) Now() time.Time { return epoch.Add(time.Duration(c.Mono())) }

func (c *fakeClock) Mono() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(c.now)
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += d
}

// rig is a main loop, workers that the test steps, and a manager.
type rig struct {
	t       testing.TB
	clock   *fakeClock
	store   *stats.Store
	home    *event.Worker
	workers []*event.Worker
	m       *accesslog.Manager
}

func newRig(t testing.TB, workers int, cfg accesslog.Config) *rig {
	r := &rig{t: t, clock: &fakeClock{now: time.Hour}, store: stats.NewStore()}
	mk := func(index int, shard *stats.Shard) *event.Worker {
		d := event.NewStd()
		t.Cleanup(d.Close)
		return event.New(event.Config{Index: index, Name: "w", Driver: d, Clock: r.clock, Rand: rand.New(), Stats: shard})
	}
	r.home = mk(-1, r.store.Main())
	cfg.Home, cfg.Scope = r.home, r.store.Root()
	cfg.Written = func() { r.home.Post(func() {}) }
	r.m = accesslog.NewManager(cfg)
	for i := range workers {
		w := mk(i, r.store.NewShard("w"))
		r.m.Attach(w)
		r.workers = append(r.workers, w)
	}
	t.Cleanup(r.close)
	return r
}

func (r *rig) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := r.m.Close(ctx); err != nil {
		r.t.Error(err)
	}
}

// step runs a pass of all loops.
func (r *rig) step() {
	for _, w := range r.workers {
		w.Step(false)
	}
	r.home.Step(false)
}

// until steps the main loop, waiting for what writers report, until the condition holds. The loop's clock is the test's, so what
// ends a wait for a report that never comes is a post.
func (r *rig) until(what string, cond func() bool) {
	r.t.Helper()
	late := false
	guard := time.AfterFunc(20*time.Second, func() { r.home.Post(func() { late = true }) })
	defer guard.Stop()
	for !cond() {
		if late {
			r.t.Fatalf("waited too long for %s; stats:\n%s", what, r.all())
		}
		for _, w := range r.workers {
			w.Step(false)
		}
		r.home.Step(true)
	}
	r.home.Step(false) // what was reported before it
}

// all returns the text of all stats.
func (r *rig) all() string {
	for _, s := range r.store.Shards() {
		s.Settle()
		if sn := r.store.Begin(s); sn != nil {
			s.Snapshot(sn)
			r.store.Collect(sn)
		}
	}
	r.m.Count()
	r.store.Collect()
	out := r.store.Text(stats.Query{})
	var b []byte
	for more := true; more; {
		b, more = out.Next(b, 1<<20)
	}
	return string(b)
}

// stat returns the value of filesystem.name, -1 if it is not shown.
func (r *rig) stat(name string) int {
	for _, l := range strings.Split(r.all(), "\n") {
		if v, ok := strings.CutPrefix(l, "filesystem."+name+": "); ok {
			n, _ := strconv.Atoi(v)
			return n
		}
	}
	return -1
}

func (r *rig) wantStats(want map[string]int) {
	r.t.Helper()
	for name, v := range want {
		if got := r.stat(name); got != v {
			r.t.Errorf("filesystem.%s is %d, want %d", name, got, v)
		}
	}
}

func text(t testing.TB, f string) *format.Format {
	t.Helper()
	p, err := format.ParseText(f, &format.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func code(n int) *stream.Info { return &stream.Info{Code: n} }

// memory is a file in memory. A gate, if set, holds writes up until it is closed.
type memory struct {
	mu     sync.Mutex
	buf    bytes.Buffer
	writes int
	closed int
	fail   bool
	gate   chan struct{}
}

var errFull = errors.New("no space left on device")

func (f *memory) Write(p []byte) (int, error) {
	if f.gate != nil {
		<-f.gate
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail {
		return 0, errFull
	}
	f.writes++
	return f.buf.Write(p)
}

func (f *memory) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	return nil
}

func (f *memory) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.buf.String()
}

// disk opens memory files by name.
type disk struct {
	mu     sync.Mutex
	files  map[string]*memory
	opened []string
	refuse bool
}

func newDisk() *disk { return &disk{files: map[string]*memory{}} }

func (d *disk) open(path string) (io.WriteCloser, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened = append(d.opened, path)
	if d.refuse {
		return nil, errors.New("refused")
	}
	f, ok := d.files[path]
	if !ok {
		f = &memory{}
		d.files[path] = f
	}
	return f, nil
}

// place puts a file at path.
func (d *disk) place(path string, f *memory) *memory {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[path] = f
	return f
}
