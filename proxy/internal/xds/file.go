package xds

import (
	"slices"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// fileKey is what subscriptions must have in common to share a file.
type fileKey struct{ path, folder, typeURL string }

// state says what a file's content is in use for.
type state uint8

const (
	idle     state = iota
	loading        // a goroutine reads the file and has the content
	applying       // the main loop shows it to the subscriptions, step by step
)

// file is one resource file and those who want something of it. owner: main loop, and the content the goroutine that reads while it
// does.
type file struct {
	f     *Files
	key   fileKey
	stop  func()
	timer event.Timer
	rest  event.Timer // until scratch goes
	subs  []*fileSub
	content
	pass   pass
	state  state
	again  bool  // it is to be read again when it is idle
	anew   bool  // what is known is to be forgotten before
	asked  bool  // catchUp is posted
	soon   bool  // the reading that is under way follows soon upon another one
	loaded int64 // when that began, 0: never
	since  int64 // when the changes began for which the timer waits, 0: none
	goOn   func()
	closed bool // nobody wants it any more
}

// add takes a subscription in.
func (x *file) add(s *fileSub) {
	x.subs = append(x.subs, s)
	x.want(s)
}

// want sees to it that s gets what the file holds, in a later pass of the main loop.
func (x *file) want(s *fileSub) {
	s.due = true
	if !x.asked {
		x.asked = true
		x.f.Main.Post(x.catchUp)
	}
}

// catchUp looks after those who are due: with what was read, if that will do. While something is under way, its end comes back here.
func (x *file) catchUp() {
	x.asked = false
	if x.closed || x.state != idle || !slices.ContainsFunc(x.subs, func(s *fileSub) bool { return s.due }) {
		return
	}
	if !x.read || slices.ContainsFunc(x.subs, func(s *fileSub) bool { return s.due && x.needsAll(s) }) {
		x.anew = true
		x.load()
		return
	}
	x.begin(result{}, true)
}

// needsAll tells whether s needs more than what is kept of the file, which is then read anew.
func (x *file) needsAll(s *fileSub) bool {
	if len(s.names) > 0 {
		return x.bare
	}
	return !s.seen
}

// forgetScratch gives memory back.
func (x *file) forgetScratch() {
	if x.state == idle {
		x.scratch = scratch{}
	}
}

// remove takes a subscription out. While the content is being applied its place stays, so that no other is missed.
func (x *file) remove(s *fileSub) {
	i := slices.Index(x.subs, s)
	if i < 0 {
		return
	}
	if x.state == applying {
		x.subs[i] = nil // the end of the pass takes it away
	} else {
		x.subs = slices.Delete(x.subs, i, i+1)
	}
	x.release()
}

// release gives the file up if nobody wants it.
func (x *file) release() {
	if x.closed || slices.ContainsFunc(x.subs, func(s *fileSub) bool { return s != nil }) {
		return
	}
	x.closed = true
	x.f.Main.Remove(&x.timer)
	x.f.Main.Remove(&x.rest)
	x.stop()
	delete(x.f.open, x.key)
}

// changed is the watcher's call, on the main loop.
func (x *file) changed(whole bool) {
	if x.closed {
		return
	}
	if whole {
		x.load()
		return
	}
	now := x.f.Main.Now()
	if x.since == 0 {
		x.since = now
	}
	x.f.Main.Arm(&x.timer, min(settle, maxSettle-min(time.Duration(now-x.since), maxSettle)))
}

// load reads and decodes the file, away from the main loop, and applies what it says. One load is under way at a time; changes that
// come meanwhile cause one more.
func (x *file) load() {
	if x.closed {
		return
	}
	x.since = 0
	if x.state != idle {
		x.again = true
		return
	}
	x.f.Main.Disarm(&x.timer)
	x.state = loading
	now := x.f.Main.Now()
	x.soon = x.loaded != 0 && now-x.loaded < int64(echo) && x.key.folder == ""
	x.loaded = now
	if x.anew {
		x.anew = false
		x.forgetAll()
	}
	if x.f.Inline {
		x.apply(x.reload())
		return
	}
	x.f.loads.Go(func() {
		r := x.reload()
		x.f.Main.Post(func() { x.apply(r) })
	})
}

// apply shows what was read to all subscriptions.
func (x *file) apply(r result) {
	if x.closed {
		return
	}
	for _, e := range r.notes {
		x.f.Options.Tell(e)
	}
	if r.same {
		x.rested()
		return
	}
	x.begin(r, false)
}
