// Package invariant is for what cannot happen unless the program itself is wrong.
//
// Must ends the process: use it where going on would corrupt memory or the order of bytes. Bug counts, reports and goes
// on: use it everywhere else. Neither is for input: what a peer, a control plane or a file can cause is an error value.
//
// The package owns the process-wide count of bugs and the list of those who want to hear of them. Both functions may be
// called from any goroutine and cost a branch while the invariant holds; nothing here blocks, and nothing is logged:
// whoever watches has a logger.
package invariant

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Report is one bug that was met.
type Report struct {
	// What is the constant text given to Bug.
	What string
	// KV are the key-value pairs given to Bug.
	KV []any
	// Site is "file:line" of the call.
	Site string
	// Count says how often this site has been met, this time included.
	Count uint64
	// Stack is the stack of the goroutine. It is there at the 1st, 2nd, 4th, 8th ... time only, so that a bug which every
	// request meets does not fill the disk: a watcher logs the reports that have it.
	Stack []byte
}

// String is the report on one line, without the stack.
func (r Report) String() string {
	s := r.What
	for i := 0; i+1 < len(r.KV); i += 2 {
		s += fmt.Sprintf(" %v=%v", r.KV[i], r.KV[i+1])
	}
	return fmt.Sprintf("%s (%s, %d times)", s, r.Site, r.Count)
}

// Must panics if ok is false. The text says what was expected to hold: Must(n <= cap, "read fits the buffer").
func Must(ok bool, what string) {
	if !ok {
		panic("invariant broken: " + what)
	}
}

// Bug reports something that cannot happen and that can be survived, then returns: the caller goes on with its error path.
// It counts as envoy_bug_failures. In tests it panics, unless the test is about it (see Record).
func Bug(what string, kv ...any) { state.bug(what, kv, 2) }

// Check is Bug if ok is false. It returns ok, so that a caller can write: if !invariant.Check(n >= 0, "…") { return }.
func Check(ok bool, what string, kv ...any) bool {
	if !ok {
		state.bug(what, kv, 2)
	}
	return ok
}

// Count is the number of bugs met by this process.
func Count() uint64 { return state.count.Load() }

// Watch has f called at every bug until stop is called. It is called on the goroutine that met the bug, which may be a
// worker in the middle of a request: f must not block, must not call back into the engine, and may run concurrently.
// The server uses it to count into its stats and to log.
func Watch(f func(Report)) (stop func()) { return state.watch(f) }

// Record collects the bugs that are met until stop is called, and keeps them from panicking in tests. It is for tests
// that provoke a bug. Such a test must not run in parallel with others, since the whole process shares one recording.
func Record() (stop func() []Report) { return state.record() }

// monitor is what Bug works on. There is one for the process (state), because a broken invariant is a fault of the
// program and not of one proxy in it, and because the code that meets it has no handle to carry; tests make their own.
type monitor struct {
	count atomic.Uint64
	// sites counts by call site. It is bounded by the number of calls in the source.
	sites sync.Map // uintptr -> *atomic.Uint64

	mu        sync.Mutex
	watchers  atomic.Pointer[[]*watcher] // replaced as a whole, under mu
	recording atomic.Int32
	// fatal says whether a bug panics while nobody records.
	fatal func() bool
}

// watcher is held by pointer, so that each registration has an identity: functions cannot be compared.
type watcher struct{ f func(Report) }

var state = &monitor{fatal: inTest}

// inTest is testing.Testing without linking package testing into the product: a test binary has its flags.
func inTest() bool { return flag.Lookup("test.v") != nil }

func (m *monitor) bug(what string, kv []any, skip int) {
	m.count.Add(1)
	pc, file, line, _ := runtime.Caller(skip)
	c, _ := m.sites.LoadOrStore(pc, new(atomic.Uint64))
	n := c.(*atomic.Uint64).Add(1)
	r := Report{What: what, KV: kv, Site: fmt.Sprintf("%s:%d", file, line), Count: n}
	if n&(n-1) == 0 {
		buf := make([]byte, 16<<10)
		r.Stack = buf[:runtime.Stack(buf, false)]
	}
	if ws := m.watchers.Load(); ws != nil {
		for _, w := range *ws {
			w.f(r)
		}
	}
	if m.recording.Load() == 0 && m.fatal() {
		panic("bug: " + r.String())
	}
}

func (m *monitor) watch(f func(Report)) (stop func()) {
	w := &watcher{f: f}
	m.change(func(ws []*watcher) []*watcher { return append(ws, w) })
	return func() {
		m.change(func(ws []*watcher) []*watcher {
			return slices.DeleteFunc(ws, func(o *watcher) bool { return o == w })
		})
	}
}

// change replaces the list of watchers by one that edit made from a copy.
func (m *monitor) change(edit func([]*watcher) []*watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var old []*watcher
	if p := m.watchers.Load(); p != nil {
		old = *p
	}
	next := edit(slices.Clone(old))
	m.watchers.Store(&next)
}

func (m *monitor) record() (stop func() []Report) {
	var mu sync.Mutex
	var seen []Report
	unwatch := m.watch(func(r Report) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r)
	})
	m.recording.Add(1)
	return sync.OnceValue(func() []Report {
		m.recording.Add(-1)
		unwatch()
		mu.Lock()
		defer mu.Unlock()
		return seen
	})
}
