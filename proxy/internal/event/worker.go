// Package event is the engine's loop: workers that own sockets, timers, buffers and posted closures, and the drivers that do
// their I/O. It knows no protocol.
//
// A Worker's state belongs to its thread; only Post, Stop and Wake may be called from elsewhere. Nothing in a pass blocks: what
// would block goes to a goroutine of its own and comes back by Post.
package event

import (
	"runtime"
	"sync"
	"time"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Limits of one pass, so that no source of work starves the others. What is left over comes in the next pass, which then does
// not wait.
const (
	// MaxEvents is how many ready sockets one pass takes.
	MaxEvents = 256
	// MaxPosts is how many posted closures one pass runs.
	MaxPosts = 1024
	// MaxAccepts is how many connections one pass takes from one listening socket.
	MaxAccepts = 64
	// MaxReads is how many full reads one pass does on one connection.
	MaxReads = 4
)

// Waiting with and without the goroutine's P. A wait that gives it up wakes the runtime's monitor thread, which then looks every
// 20 us, takes the P away, and costs as many context switches as the worker itself. While events come in quick succession the
// P is kept instead, and the monitor falls asleep. Where they are rare, keeping it would only keep the monitor awake.
const (
	// longGap is a time between the starts of two passes that is not quick.
	longGap = time.Millisecond
	// manyShortGaps is how many quick passes in a row make the worker keep its P.
	manyShortGaps = 64
	// holdTime is how long a wait may keep the P. A wait of that length is a long gap: the next one gives it up.
	holdTime = 2 * time.Millisecond
)

// ReadBufferSize is the size in bytes of the worker's read buffer, which all its connections share.
const ReadBufferSize = 64 << 10

// Handler is told of events of a registered socket.
type Handler interface{ OnReady(ev Events) }

// Runner is something that asked to go on in the next pass.
type Runner interface{ Run() }

// Flusher is something that asked to be called at the end of the pass.
type Flusher interface{ Flush() }

// Worker is one event loop. Fields with capitals may be used by everything that runs on it. owner: itself.
type Worker struct {
	// Index counts workers from 0; the main loop has -1. Name is "worker_0" or "main_thread".
	Index int
	Name  string
	// Driver does the I/O.
	Driver Driver
	// Bufs and Arenas are where connections and streams take their memory from.
	Bufs   buffer.Pool
	Arenas http.ArenaPool
	// Rand is the worker's own source of chance.
	Rand *rand.Source
	// Stats is the worker's shard.
	Stats *stats.Shard
	// ReadBuffer is what connections read into; its content is dead after the callback.
	ReadBuffer []byte
	// Locals holds worker-local state of other packages by slot, see NewLocal.
	Locals []any
	// Passes tells how long passes took.
	Passes PassTimes

	clk     clock.Clock
	now     int64
	wall    int64 // nanoseconds since 1970 at now
	wallOff int64 // wall minus mono
	wallAt  int64 // when wallOff was read

	slots []*slotPage // by handle
	gen   uint32
	ready []Ready

	timers wheel
	due    []*Timer

	again, againRun []Runner
	flush           []Flusher
	ends            []func()

	mu       sync.Mutex
	posts    []func()
	postsRun []func()
	postHead int
	signaled bool

	holder    Holder // nil if the P is not to be kept
	shortGaps int    // passes since the last long gap
	pinned    bool   // the goroutine is locked to its thread, but for sleeps and Coros
	sleeper   Sleeper
	rare      rarity

	stopped bool
	trimAt  int64
}

type slot struct {
	h   Handler
	gen uint32
}

// slotPage is a run of slots. The table of ten thousand sockets grows by pages, so that it has neither spare room nor copies.
type slotPage [256]slot

// slot returns the slot of h, nil if there was never one so high.
func (w *Worker) slot(h Handle) *slot {
	if i := int(h) >> 8; uint(i) < uint(len(w.slots)) && w.slots[i] != nil {
		return &w.slots[i][h&255]
	}
	return nil
}

// makeSlot is slot for a handle that gets one.
func (w *Worker) makeSlot(h Handle) *slot {
	for i := int(h) >> 8; i >= len(w.slots); {
		w.slots = append(w.slots, nil)
	}
	p := &w.slots[int(h)>>8]
	if *p == nil {
		*p = &slotPage{}
	}
	return &(*p)[h&255]
}

// Config is what a Worker is made of.
type Config struct {
	Index  int
	Name   string
	Driver Driver
	Clock  clock.Clock
	Rand   *rand.Source
	Stats  *stats.Shard
	// KeepP lets short waits keep the goroutine's P. Set it only where the process has a P for each worker and at least one more.
	KeepP bool
}

// New returns a Worker. It does nothing until Run or Step.
func New(c Config) *Worker {
	w := &Worker{Index: c.Index, Name: c.Name, Driver: c.Driver, Rand: c.Rand, Stats: c.Stats, clk: c.Clock}
	if c.KeepP {
		w.holder, _ = c.Driver.(Holder)
	}
	w.sleeper, _ = c.Driver.(Sleeper)
	w.ReadBuffer = make([]byte, ReadBufferSize)
	w.ready = make([]Ready, MaxEvents)
	w.setNow()
	w.timers.cur = w.now >> tickShift
	return w
}

// Now returns monotonic nanoseconds, read once a pass.
func (w *Worker) Now() int64 { return w.now }

// Wall returns the wall-clock time in nanoseconds since 1970, as of this pass.
func (w *Worker) Wall() int64 { return w.now + w.wallOff }

// Clock returns the clock, for what must know the time more exactly than a pass.
func (w *Worker) Clock() clock.Clock { return w.clk }

func (w *Worker) setNow() {
	w.now = w.clk.Mono()
	// The wall clock may be set; look at it once a second.
	if w.now-w.wallAt > int64(time.Second) || w.wallAt == 0 {
		w.wallOff = w.clk.Now().UnixNano() - w.now
		w.wallAt = w.now
	}
}

// Worker returns w itself: what wraps a worker as a network.Dispatcher answers with the worker below.
func (w *Worker) Worker() *Worker { return w }

// Arm makes t fire after d (at least one tick). What is longer than maxTimer, such as the longest duration that a configuration can
// say, is maxTimer.
func (w *Worker) Arm(t *Timer, d time.Duration) {
	w.timers.arm(t, w.now+min(max(int64(d), 1), maxTimer))
}

// Disarm stops t. It is cheap: the timer's memory stays known to the wheel until its old time has come, so call Remove instead
// when that memory is given up. nil is a timer that was never made.
func (w *Worker) Disarm(t *Timer) {
	if t != nil {
		t.deadline = 0
	}
}

// Remove stops t and forgets it. nil is a timer that was never made.
func (w *Worker) Remove(t *Timer) {
	if t == nil {
		return
	}
	t.deadline = 0
	if t.queued {
		w.timers.unlink(t)
	}
}

// Register begins to report events of h to hd. owner: worker.
func (w *Worker) Register(h Handle, hd Handler) error {
	w.gen++
	if w.gen == 0 {
		w.gen = 1
	}
	s := w.makeSlot(h)
	*s = slot{h: hd, gen: w.gen}
	if e := w.Driver.Add(h, w.gen); e != 0 {
		*s = slot{}
		return e
	}
	return nil
}

// Unregister ends the reporting and closes nothing. Events that are already taken are dropped: generations tell them apart.
func (w *Worker) Unregister(h Handle) {
	w.Driver.Remove(h)
	if s := w.slot(h); s != nil {
		*s = slot{}
	}
}

// Replace makes hd the handler of h, which is registered.
func (w *Worker) Replace(h Handle, hd Handler) {
	if s := w.slot(h); s != nil {
		s.h = hd
	}
}

// Handlers returns what is registered, for ending it all.
func (w *Worker) Handlers() []Handler {
	var out []Handler
	for _, p := range w.slots {
		if p == nil {
			continue
		}
		for i := range p {
			if h := p[i].h; h != nil {
				out = append(out, h)
			}
		}
	}
	return out
}

// Close ends the reporting and closes h.
func (w *Worker) Close(h Handle, reset bool) {
	if s := w.slot(h); s != nil {
		*s = slot{}
	}
	w.Driver.CloseHandle(h, reset)
}

// Again makes r run in the next pass, which will not wait. The caller sees to it that r is queued once.
func (w *Worker) Again(r Runner) { w.again = append(w.again, r) }

// QueueFlush makes f.Flush run at the end of this pass. The caller sees to it that f is queued once.
func (w *Worker) QueueFlush(f Flusher) { w.flush = append(w.flush, f) }

// AtEnd runs f when this pass is over: the place for deleting what is on the stack now.
func (w *Worker) AtEnd(f func()) { w.ends = append(w.ends, f) }

// Post runs f on the worker, in order of posting. Safe from any goroutine.
func (w *Worker) Post(f func()) {
	w.mu.Lock()
	w.posts = append(w.posts, f)
	wake := !w.signaled
	w.signaled = true
	w.mu.Unlock()
	if wake {
		w.Driver.Wake()
	}
}

// Stop makes Run return after the current pass. Safe from any goroutine.
func (w *Worker) Stop() { w.Post(func() { w.stopped = true }) }

// Stopped tells whether Stop was carried out.
func (w *Worker) Stopped() bool { return w.stopped }

// Idle tells whether nothing is to be done before the next event, timer or Post.
func (w *Worker) Idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.again) == 0 && len(w.flush) == 0 && len(w.posts) == 0 && w.postHead == len(w.postsRun)
}

// NextTimer returns how long it is until a timer may be due, negative if none is armed.
func (w *Worker) NextTimer() time.Duration {
	t := w.timers.nextTick()
	if t < 0 {
		return -1
	}
	return time.Duration(max(t<<tickShift-w.clk.Mono(), 0))
}

// RunPinned is Run on a goroutine that is locked to its thread: system calls and caches stay on one core, and the scheduler has no say in
// the order of its work. In sleeps it is not: from them it wakes up on the thread that the event woke, without a switch.
// The bodies of Coros are not either, as the runtime lets a coroutine only be resumed on the thread that it was made on, if that was locked.
func (w *Worker) RunPinned() {
	w.pinned = true
	w.pin()
	defer w.unpin()
	w.Run()
}

func (w *Worker) pin() {
	if w.pinned {
		runtime.LockOSThread()
	}
}

func (w *Worker) unpin() {
	if w.pinned {
		runtime.UnlockOSThread()
	}
}

// Run steps until Stop.
func (w *Worker) Run() {
	for !w.stopped {
		w.Step(true)
	}
}

// Step runs one pass: wait (if wait is set and nothing else is to be done), events, timers, posts, what was left over, flushes,
// deletions. It returns the number of things done.
func (w *Worker) Step(wait bool) int {
	n := w.wait(wait)
	before := w.now
	w.setNow()
	start := w.now
	if start-before < int64(longGap) {
		w.shortGaps++
	} else {
		w.shortGaps = 0
	}
	for i := range w.ready[:n] {
		e := &w.ready[i]
		if s := w.slot(e.H); s != nil && s.gen == e.Gen && s.h != nil {
			s.h.OnReady(e.Ev)
		}
	}
	n += w.runTimers()
	n += w.runPosts()
	n += w.runAgain()
	w.runFlush()
	for i := 0; i < len(w.ends); i++ {
		w.ends[i]()
		w.ends[i] = nil
	}
	w.ends = w.ends[:0]
	if w.Stats != nil {
		w.Stats.Settle()
	}
	if n > 0 {
		w.Passes.record(w.clk.Mono() - start)
		if w.rare.pass(w.now) && w.sleeper != nil {
			w.sleeper.Rouse()
		}
	}
	if w.now-w.trimAt > int64(5*time.Second) {
		w.trimAt = w.now
		w.Bufs.Trim()
	}
	return n
}

// wait takes what is ready; if block is set and nothing else is to be done, it waits for it.
func (w *Worker) wait(block bool) int {
	if block && w.holder != nil && w.shortGaps >= manyShortGaps && w.Idle() {
		timeout := holdTime
		if t := w.timers.nextTick(); t >= 0 {
			timeout = min(timeout, max(time.Duration(t<<tickShift-w.now), 0))
		}
		return w.holder.WaitHeld(w.ready, timeout)
	}
	// A poll that does not wait goes first: under load it saves the scheduler's entry and exit around a blocking call.
	n := w.Driver.Wait(w.ready, 0)
	if n == 0 && block && w.Idle() {
		if timeout := w.NextTimer(); timeout != 0 {
			n = w.waitLong(timeout)
		}
	}
	return n
}

// waitLong waits for events, which may take long.
func (w *Worker) waitLong(timeout time.Duration) int {
	if w.sleeper == nil || !w.rare.is {
		return w.Driver.Wait(w.ready, timeout)
	}
	w.unpin()
	n := w.sleeper.Sleep(w.ready, timeout)
	w.pin()
	return n
}

// rarity tells whether passes with something to do are rare.
type rarity struct {
	is    bool
	n     int   // in this period
	since int64 // ns
}

const (
	// rarePeriod is how long passes are counted for, rarePasses how many of them in it are too many to be rare.
	rarePeriod = 64 * time.Millisecond
	rarePasses = 128
)

// pass counts one that ended now. ended is true if they were rare, and are not any more.
func (r *rarity) pass(now int64) (ended bool) {
	if now-r.since >= int64(rarePeriod) {
		r.is, r.n, r.since = r.n < rarePasses, 0, now
	}
	if r.n++; r.n < rarePasses || !r.is {
		return false
	}
	r.is = false
	return true
}

func (w *Worker) runTimers() int {
	tick := w.now >> tickShift
	if tick <= w.timers.cur {
		return 0
	}
	w.due = w.timers.advance(tick, w.now, w.due)
	for i, t := range w.due {
		w.due[i] = nil
		// An earlier timer of this pass may have disarmed it or put it off.
		if t.deadline != 0 && t.deadline <= w.now {
			t.deadline = 0
			t.Fn()
		} else if t.deadline != 0 && !t.queued {
			w.timers.insert(t, (t.deadline+(1<<tickShift)-1)>>tickShift)
		}
	}
	return len(w.due)
}

func (w *Worker) runPosts() int {
	if w.postHead == len(w.postsRun) {
		w.mu.Lock()
		if len(w.posts) == 0 {
			w.signaled = false
			w.mu.Unlock()
			return 0
		}
		w.postsRun, w.posts, w.postHead = w.posts, w.postsRun[:0], 0
		w.signaled = false
		w.mu.Unlock()
	}
	n := 0
	for ; w.postHead < len(w.postsRun) && n < MaxPosts; n++ {
		f := w.postsRun[w.postHead]
		w.postsRun[w.postHead] = nil
		w.postHead++
		f()
	}
	if w.postHead == len(w.postsRun) && cap(w.postsRun) > 4*MaxPosts {
		w.postsRun, w.postHead = nil, 0
	}
	return n
}

func (w *Worker) runAgain() int {
	if len(w.again) == 0 {
		return 0
	}
	w.again, w.againRun = w.againRun[:0], w.again
	for i, r := range w.againRun {
		w.againRun[i] = nil
		r.Run()
	}
	return len(w.againRun)
}

func (w *Worker) runFlush() {
	// A flush may finish a connection, which may queue another flush.
	for i := 0; i < len(w.flush); i++ {
		f := w.flush[i]
		w.flush[i] = nil
		f.Flush()
	}
	w.flush = w.flush[:0]
}
