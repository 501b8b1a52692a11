package xds_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
	"github.com/dragoman-proxy/dragoman/proxy/internal/xds"
)

// real is a main loop and the file system.
type real struct {
	*testing.T
	main  *event.Worker
	files *xds.Files
	dir   string
	guard event.Timer
}

func newReal(t *testing.T) *real {
	d, err := event.NewDriver("")
	if err != nil {
		t.Fatal(err)
	}
	store, n := stats.NewStore(), xds.NewNotify()
	r := &real{T: t, dir: t.TempDir()}
	r.main = event.New(event.Config{Index: -1, Name: "main_thread", Driver: d, Clock: clock.System(), Stats: store.Main()})
	r.files = &xds.Files{Main: r.main, Store: store, Watcher: n}
	r.guard.Fn = func() {}
	t.Cleanup(func() {
		n.Close()
		r.files.Close()
		d.Close()
	})
	return r
}

// until runs the main loop until something is true.
func (r *real) until(what string, f func() bool) {
	r.Helper()
	for end := r.main.Clock().Mono() + int64(20*time.Second); !f(); {
		if r.main.Clock().Mono() > end {
			r.Fatalf("it did not come true that %s", what)
		}
		r.main.Arm(&r.guard, 10*time.Millisecond)
		r.main.Step(true)
	}
}

func (r *real) path(name string) string { return filepath.Join(r.dir, name) }

func (r *real) write(name, text string) {
	r.Helper()
	if err := os.WriteFile(r.path(name), []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
}

// move replaces a file in one go.
func (r *real) move(name, text string) {
	r.Helper()
	r.write(name+".new", text)
	if err := os.Rename(r.path(name+".new"), r.path(name)); err != nil {
		r.Fatal(err)
	}
}

func (r *real) subscribe(from *corev3.PathConfigSource) *mirror {
	r.Helper()
	m := &mirror{}
	s, err := r.files.Subscribe(&corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: from}},
		clusterType, nil, sub.Stats{}, m)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(s.Close)
	return m
}

func (r *real) shows(m *mirror, value string) {
	r.Helper()
	r.until("a is "+value, func() bool { return m.have["a"] == value })
}

func TestFilesThatAreMovedAndWritten(t *testing.T) {
	r := newReal(t)
	r.write("c.json", clusters("1", "a=1"))
	m := r.subscribe(&corev3.PathConfigSource{Path: r.path("c.json")})
	r.shows(m, "1")
	r.move("c.json", clusters("2", "a=2"))
	r.shows(m, "2")
	r.write("c.json", clusters("3", "a=3")) // in place
	r.shows(m, "3")
	if err := os.Remove(r.path("c.json")); err != nil {
		t.Fatal(err)
	}
	r.move("c.json", clusters("4", "a=4"))
	r.shows(m, "4")
	if m.failures != 0 {
		t.Errorf("%d failures, the last: %v", m.failures, m.lastErr)
	}
}

func TestWritingBitByBit(t *testing.T) {
	r := newReal(t)
	r.write("c.json", clusters("1", "a=1"))
	m := r.subscribe(&corev3.PathConfigSource{Path: r.path("c.json")})
	r.shows(m, "1")
	f, err := os.Create(r.path("c.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := clusters("2", "a=2")
	if _, err := f.WriteString(text[:len(text)/2]); err != nil {
		t.Fatal(err)
	}
	r.until("half a file fails", func() bool { return m.failures > 0 })
	if m.have["a"] != "1" {
		t.Errorf("half a file: %v", m.have)
	}
	if _, err := f.WriteString(text[len(text)/2:]); err != nil {
		t.Fatal(err)
	}
	r.shows(m, "2")
}

// TestSwappedSymlinks is how Kubernetes changes the files of a config map: the file is a link into ..data, which is a link that is
// replaced.
func TestSwappedSymlinks(t *testing.T) {
	r := newReal(t)
	link := func(to, name string) {
		t.Helper()
		if err := errors.Join(os.Symlink(to, r.path("..tmp")), os.Rename(r.path("..tmp"), r.path(name))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		if err := os.Mkdir(r.path(fmt.Sprint("..", i)), 0o700); err != nil {
			t.Fatal(err)
		}
		r.write(fmt.Sprintf("..%d/c.json", i), clusters("", fmt.Sprint("a=", i)))
	}
	link("..0", "..data")
	link("..data/c.json", "c.json")
	m := r.subscribe(&corev3.PathConfigSource{Path: r.path("c.json"), WatchedDirectory: &corev3.WatchedDirectory{Path: r.dir}})
	r.shows(m, "0")
	for i := 1; i < 5; i++ {
		link(fmt.Sprint("..", i), "..data")
		r.shows(m, fmt.Sprint(i))
	}
	before := m.updates
	r.write("log", "a log file grows in the same folder")
	f, err := os.OpenFile(r.path("log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 100 {
		_, _ = f.WriteString("a line\n")
	}
	link("..0", "..data")
	r.shows(m, "0")
	if n := m.updates - before; n > 3 {
		t.Errorf("%d updates because of a log", n)
	}
}

func TestRapidRenames(t *testing.T) {
	r := newReal(t)
	r.write("c.json", clusters("0", "a=0"))
	m := r.subscribe(&corev3.PathConfigSource{Path: r.path("c.json")})
	r.shows(m, "0")
	for i := 1; i <= 1000; i++ {
		r.move("c.json", clusters(fmt.Sprint(i), fmt.Sprint("a=", i)))
		r.main.Step(false)
	}
	r.shows(m, "1000")
	if m.failures != 0 {
		t.Errorf("%d failures, the last: %v", m.failures, m.lastErr)
	}
}

func TestSourcesThatCannotBe(t *testing.T) {
	r := newReal(t)
	r.write("c.json", clusters("1"))
	for name, from := range map[string]*corev3.ConfigSource{
		"no file":   {ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}},
		"not there": source(r.path("none.json")),
		"no folder": {ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{
			Path: r.path("c.json"), WatchedDirectory: &corev3.WatchedDirectory{Path: r.path("none")}}}},
	} {
		if _, err := r.files.Subscribe(from, clusterType, nil, sub.Stats{}, &mirror{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestNotifyLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	before := openFiles(t)
	for range 20 {
		n := xds.NewNotify()
		var stops []func()
		for i := range 10 {
			stop, err := n.Watch(filepath.Join(dir, fmt.Sprint(i%3)), false, func(bool) {})
			if err != nil {
				t.Fatal(err)
			}
			stops = append(stops, stop)
		}
		for _, stop := range stops[:5] {
			stop()
		}
		n.Close()
		n.Close()
		for _, stop := range stops[5:] {
			stop()
		}
		if _, err := n.Watch(dir, true, func(bool) {}); !errors.Is(err, xds.ErrClosed) {
			t.Errorf("a watch after the end: %v", err)
		}
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d open files, %d before", after, before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(list)
}
