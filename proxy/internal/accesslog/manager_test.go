package accesslog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	api "github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/proxy/internal/accesslog"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

func (r *rig) logger(path, f string) api.Logger {
	r.t.Helper()
	l, err := r.m.NewFileLogger(path, text(r.t, f))
	if err != nil {
		r.t.Fatal(err)
	}
	return l
}

// Lines wait for the flush interval, then all of a worker are written in one go.
func TestFlushByTimer(t *testing.T) {
	d := newDisk()
	r := newRig(t, 1, accesslog.Config{Open: d.open, FlushInterval: 10 * time.Second})
	l := r.logger("/log", "%RESPONSE_CODE% %ACCESS_LOG_TYPE%\n")
	l.Log(r.workers[0], code(200), api.DownstreamEnd)
	l.Log(r.workers[0], code(404), api.DownstreamStart)
	r.clock.advance(9 * time.Second)
	r.step()
	r.wantStats(map[string]int{"write_buffered": 2, "write_completed": 0, "flushed_by_timer": 0, "write_total_buffered": 38, "lines_dropped": -1})
	r.clock.advance(2 * time.Second)
	r.until("the line", func() bool { return r.stat("write_completed") == 1 })
	if got, want := d.files["/log"].String(), "200 DownstreamEnd\n404 DownstreamStart\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	r.wantStats(map[string]int{"write_buffered": 2, "flushed_by_timer": 1, "write_total_buffered": 0, "write_failed": 0, "reopen_failed": 0})
	// Nothing new: the timer rests.
	r.clock.advance(time.Minute)
	r.step()
	r.wantStats(map[string]int{"flushed_by_timer": 1})
}

// Lines that are no stream's come from the main loop, among the others.
func TestLine(t *testing.T) {
	d := newDisk()
	r := newRig(t, 1, accesslog.Config{Open: d.open, FlushInterval: 10 * time.Second})
	f, err := r.m.File("/log")
	if err != nil {
		t.Fatal(err)
	}
	f.Line([]byte("one\n"))
	f.Line([]byte("two\n"))
	r.clock.advance(11 * time.Second)
	r.until("the lines", func() bool { return r.stat("write_completed") == 1 })
	if got, want := d.files["/log"].String(), "one\ntwo\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f.Release()
	f.Line([]byte("late\n"))
	r.wantStats(map[string]int{"write_buffered": 2, "lines_dropped": 1})
}

// A batch goes out when it is larger than the flush size, not when it has just that size.
func TestFlushBySize(t *testing.T) {
	d := newDisk()
	r := newRig(t, 1, accesslog.Config{Open: d.open, FlushSize: 40})
	l := r.logger("/log", "123456789\n")
	for range 4 {
		l.Log(r.workers[0], code(200), api.DownstreamEnd)
	}
	r.step()
	r.wantStats(map[string]int{"write_buffered": 4, "write_total_buffered": 40})
	l.Log(r.workers[0], code(200), api.DownstreamEnd)
	r.until("the batch", func() bool { return r.stat("write_completed") == 1 })
	if got := d.files["/log"].String(); got != strings.Repeat("123456789\n", 5) {
		t.Errorf("got %q", got)
	}
	r.wantStats(map[string]int{"flushed_by_timer": 0, "write_total_buffered": 0})
}

// Loggers of one path share its file; it is closed with the last of them.
func TestShareAndRelease(t *testing.T) {
	d := newDisk()
	r := newRig(t, 2, accesslog.Config{Open: d.open})
	a, b := r.logger("/log", "a\n"), r.logger("/log", "b\n")
	a.Log(r.workers[0], code(200), api.DownstreamEnd)
	b.Log(r.workers[1], code(200), api.DownstreamEnd)
	if len(d.opened) != 1 {
		t.Fatalf("opened %q", d.opened)
	}
	accesslog.Release(a)
	r.step()
	b.Log(r.workers[0], code(200), api.DownstreamEnd)
	accesslog.Release(b)
	f := d.files["/log"]
	r.until("the end of the file", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.closed == 1
	})
	if got := f.String(); got != "a\nb\nb\n" && got != "b\na\nb\n" {
		t.Errorf("got %q", got)
	}
	// A late stream of a dead configuration loses its line, and nothing else happens.
	b.Log(r.workers[0], code(200), api.DownstreamEnd)
	r.wantStats(map[string]int{"lines_dropped": 1, "write_total_buffered": 0})
	// The place is free for another file.
	c := r.logger("/other", "c\n")
	c.Log(r.workers[0], code(200), api.DownstreamEnd)
	b.Log(r.workers[0], code(200), api.DownstreamEnd)
	r.close()
	if got := d.files["/other"].String(); got != "c\n" {
		t.Errorf("got %q", got)
	}
	r.wantStats(map[string]int{"lines_dropped": 2})
}

// Close writes what all workers hold.
func TestClose(t *testing.T) {
	d := newDisk()
	r := newRig(t, 3, accesslog.Config{Open: d.open})
	l := r.logger("/log", "%RESPONSE_CODE%\n")
	for i, w := range r.workers {
		l.Log(w, code(200+i), api.DownstreamEnd)
	}
	r.close()
	if got := d.files["/log"].String(); got != "200\n201\n202\n" {
		t.Errorf("got %q", got)
	}
	if d.files["/log"].closed != 1 {
		t.Error("the file was not closed")
	}
	r.wantStats(map[string]int{"write_buffered": 3, "write_completed": 3, "write_total_buffered": 0})
}

// A file that cannot keep up loses the batches that would pass MaxQueued, and no others.
func TestQueueLimit(t *testing.T) {
	const size = accesslog.MaxQueued / 4
	for _, tc := range []struct {
		name    string
		last    int // length of the batch that comes when MaxQueued/4*3 bytes wait
		dropped int
	}{{"at the limit", size, -1}, {"one more", size + 1, 1}} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDisk()
			f := d.place("/log", &memory{gate: make(chan struct{})})
			r := newRig(t, 1, accesslog.Config{Open: d.open, FlushSize: 1 << 10})
			l := r.logger("/log", "%RESPONSE_CODE_DETAILS(ALLOW_WHITESPACES)%\n")
			log := func(n int) {
				i := code(200)
				i.Details = strings.Repeat("x", n-1)
				l.Log(r.workers[0], i, api.DownstreamEnd)
			}
			log(size)
			log(size)
			log(size)
			log(tc.last)
			r.step()
			r.wantStats(map[string]int{"lines_dropped": tc.dropped, "write_buffered": 4})
			close(f.gate)
			want := 3 * size
			if tc.dropped < 0 {
				want += tc.last
			}
			r.close()
			if got := len(f.String()); got != want {
				t.Errorf("%d bytes were written, want %d", got, want)
			}
			r.wantStats(map[string]int{"write_total_buffered": 0})
		})
	}
}

// Write errors are counted, and later lines are tried again.
func TestWriteErrors(t *testing.T) {
	d := newDisk()
	f := d.place("/log", &memory{fail: true})
	r := newRig(t, 1, accesslog.Config{Open: d.open, FlushSize: 1})
	l := r.logger("/log", "%RESPONSE_CODE%\n")
	l.Log(r.workers[0], code(200), api.DownstreamEnd)
	r.until("the failure", func() bool { return r.stat("write_failed") == 1 })
	f.mu.Lock()
	f.fail = false
	f.mu.Unlock()
	l.Log(r.workers[0], code(201), api.DownstreamEnd)
	r.until("the line", func() bool { return r.stat("write_completed") == 1 })
	if got := f.String(); got != "201\n" {
		t.Errorf("got %q", got)
	}
	r.wantStats(map[string]int{"write_total_buffered": 0, "write_buffered": 2})
}

func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	r := newRig(t, 1, accesslog.Config{FlushSize: 1})
	l := r.logger("/dev/full", "%RESPONSE_CODE%\n")
	for range 3 {
		l.Log(r.workers[0], code(200), api.DownstreamEnd)
	}
	r.until("the failures", func() bool { return r.stat("write_failed") == 3 })
	r.wantStats(map[string]int{"write_completed": 0, "write_total_buffered": 0})
}

// After Reopen lines go to a new file of the same name.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "access.log")
	r := newRig(t, 1, accesslog.Config{FlushSize: 1})
	l := r.logger(path, "%RESPONSE_CODE%\n")
	l.Log(r.workers[0], code(1), api.DownstreamEnd)
	r.until("the first line", func() bool { return r.stat("write_completed") == 1 })
	if err := os.Rename(path, filepath.Join(dir, "old.log")); err != nil {
		t.Fatal(err)
	}
	r.m.Reopen()
	l.Log(r.workers[0], code(2), api.DownstreamEnd)
	r.close()
	for name, want := range map[string]string{"old.log": "1\n", "access.log": "2\n"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
}

// If a file cannot be reopened, the old one is kept, and opening is tried again with the next lines.
func TestReopenFails(t *testing.T) {
	for _, inline := range []bool{false, true} {
		d := newDisk()
		r := newRig(t, 1, accesslog.Config{Open: d.open, FlushSize: 1, Inline: inline})
		l := r.logger("/log", "%RESPONSE_CODE%\n")
		old := d.files["/log"]
		d.mu.Lock()
		d.refuse = true
		d.mu.Unlock()
		r.m.Reopen()
		r.until("the failure", func() bool { return r.stat("reopen_failed") == 1 })
		l.Log(r.workers[0], code(200), api.DownstreamEnd)
		r.until("the first line", func() bool { return r.stat("write_completed") == 1 })
		r.wantStats(map[string]int{"reopen_failed": 2})
		d.mu.Lock()
		d.refuse = false
		d.mu.Unlock()
		fresh := d.place("/log", &memory{})
		l.Log(r.workers[0], code(201), api.DownstreamEnd)
		r.until("the second line", func() bool { return r.stat("write_completed") == 2 })
		if old.String() != "200\n" || fresh.String() != "201\n" || old.closed != 1 {
			t.Errorf("inline %v: got %q, then %q", inline, old, fresh)
		}
		r.wantStats(map[string]int{"reopen_failed": 2})
	}
}

func TestOpenErrors(t *testing.T) {
	r := newRig(t, 1, accesslog.Config{})
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir + "/nope/x": "unable to open file '" + dir + "/nope/x': No such file or directory",
		dir:             "unable to open file '" + dir + "': Is a directory",
	} {
		if _, err := r.m.NewFileLogger(path, text(t, "x")); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestStreams(t *testing.T) {
	var out, errs bytes.Buffer
	r := newRig(t, 1, accesslog.Config{Stdout: &out, Stderr: &errs})
	o, err := r.m.NewStdoutLogger(text(t, "OUT %RESPONSE_CODE%\n"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := r.m.NewStderrLogger(text(t, "ERR\n"))
	if err != nil {
		t.Fatal(err)
	}
	o.Log(r.workers[0], code(200), api.DownstreamEnd)
	e.Log(r.workers[0], code(200), api.DownstreamEnd)
	r.close()
	if out.String() != "OUT 200\n" || errs.String() != "ERR\n" {
		t.Errorf("got %q and %q", out.String(), errs.String())
	}
}

// Inline managers write on the worker, in order, with no goroutine.
func TestInline(t *testing.T) {
	d := newDisk()
	r := newRig(t, 1, accesslog.Config{Open: d.open, FlushSize: 1, Inline: true})
	l := r.logger("/log", "%RESPONSE_CODE%\n")
	l.Log(r.workers[0], code(200), api.DownstreamEnd)
	if got := d.files["/log"].String(); got != "200\n" {
		t.Errorf("got %q", got)
	}
	r.m.Reopen()
	accesslog.Release(l)
	r.step()
	r.step()
	if f := d.files["/log"]; f.closed != 2 {
		t.Errorf("closed %d times", f.closed)
	}
	r.wantStats(map[string]int{"write_completed": 1, "write_total_buffered": 0})
}

// Workers on their own threads, a writer, reopening and statistics, under the race detector.
func TestThreads(t *testing.T) {
	d := newDisk()
	r := newRig(t, 4, accesslog.Config{Open: d.open, FlushSize: 256})
	l := r.logger("/log", "%RESPONSE_CODE%\n")
	const lines = 2000
	var wg sync.WaitGroup
	for i, w := range r.workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range lines {
				l.Log(w, code(1000*(i+1)+n%1000), api.DownstreamEnd)
				if n%100 == 0 {
					w.Step(false)
				}
			}
		}()
	}
	for range 20 {
		r.m.Reopen()
		r.home.Step(false)
	}
	wg.Wait()
	r.close()
	seen := map[int]int{}
	for _, line := range strings.Fields(d.files["/log"].String()) {
		n, err := strconv.Atoi(line)
		if err != nil {
			t.Fatalf("a torn line: %q", line)
		}
		worker := n / 1000
		if n%1000 != seen[worker]%1000 {
			t.Fatalf("worker %d: %d came after %d lines", worker, n, seen[worker])
		}
		seen[worker]++
	}
	for i := range r.workers {
		if seen[i+1] != lines {
			t.Errorf("worker %d: %d lines", i, seen[i+1])
		}
	}
	r.wantStats(map[string]int{"write_buffered": 4 * lines, "write_total_buffered": 0, "lines_dropped": -1})
}

// stranger is a worker that was never attached.
type stranger struct{ *event.Worker }

func (stranger) WorkerIndex() int { return 7 }

func TestStranger(t *testing.T) {
	d := newDisk()
	r := newRig(t, 1, accesslog.Config{Open: d.open})
	r.logger("/log", "x\n").Log(stranger{r.workers[0]}, code(200), api.DownstreamEnd)
	r.close()
	if got := d.files["/log"].String(); got != "" {
		t.Errorf("got %q", got)
	}
}
