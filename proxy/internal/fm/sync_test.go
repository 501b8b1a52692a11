package fm_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// straight is straight-line code under the test's control.
type straight func(s filter.SyncStream, h *http.HeaderMap) *filter.LocalReply

func (f straight) Decode(s filter.SyncStream, h *http.HeaderMap) *filter.LocalReply { return f(s, h) }

// fakeClock goes with real time, and jumps where a test says so.
type fakeClock struct {
	clock.Clock
	ahead time.Duration
}

func (c *fakeClock) Mono() int64 { return c.Clock.Mono() + int64(c.ahead) }

// syncRig is a worker with stats, and a factory.
type syncRig struct {
	t     *testing.T
	w     *event.Worker
	store *stats.Store
	clock *fakeClock
	f     *fm.SyncFactory
	code  straight
}

func newSyncRig(t *testing.T, code straight) *syncRig {
	x := &syncRig{t: t, store: stats.NewStore(), code: code, clock: &fakeClock{Clock: sim.NewSteady()}}
	x.w = event.New(event.Config{Name: "worker_0", Driver: noIO{}, Clock: x.clock, Stats: x.store.NewShard("worker_0")})
	x.w.Bufs.Poison, x.w.Arenas.Poison = true, true
	x.f = fm.NewSyncFactory(func(network.Dispatcher) filter.Sync { return x.code }, x.store.Root().Scope("http.x"))
	return x
}

// stream begins one whose first filter is the code.
func (x *syncRig) stream() *rig {
	r := &rig{t: x.t, w: x.w, term: newTerminal(x.t)}
	r.begin(&fm.Chain{Entries: []fm.Entry{{Name: "sync", Factory: x.f}, {Name: "terminal", Factory: factory{r.term, filter.Decoder}}}}, 64)
	return r
}

// value is a counter's or gauge's.
func (x *syncRig) value(name string) string {
	if snap := x.store.Begin(x.w.Stats); snap != nil {
		x.w.Stats.Snapshot(snap)
		x.store.Collect(snap)
	}
	for _, l := range strings.Split(string(stats.WriteAll(x.store.Text(stats.Query{}))), "\n") {
		if n, v, _ := strings.Cut(l, ": "); n == name {
			return v
		}
	}
	return ""
}

func (x *syncRig) none() {
	x.t.Helper()
	if n, g := fm.Suspended(x.w), x.value("http.x.suspended_filters"); n != 0 || g != "0" {
		x.t.Errorf("%d filters wait, the gauge says %s", n, g)
	}
}

func TestSyncWithoutWaiting(t *testing.T) {
	x := newSyncRig(t, func(s filter.SyncStream, h *http.HeaderMap) *filter.LocalReply {
		h.AddName("x-seen", "1")
		if s.Callbacks().Info() == nil {
			t.Error("no callbacks")
		}
		return nil
	})
	r := x.stream()
	r.send(true, full)
	r.term.dec.whole(t, "the far end", full.body(), full.tail()...)
	if v, _ := r.req.GetName("x-seen"); v != "1" {
		t.Error("the code did not run")
	}
	r.close()
	x.none()
}

func TestSyncCall(t *testing.T) {
	var answers []string
	x := newSyncRig(t, func(s filter.SyncStream, h *http.HeaderMap) *filter.LocalReply {
		for _, c := range []string{"first", "second"} {
			a, err := s.Call(&filter.Call{Cluster: c})
			if err != nil {
				answers = append(answers, err.Error())
				continue
			}
			answers = append(answers, string(a.Body))
		}
		return nil
	})
	r := x.stream()
	r.sendHead(true, false)
	r.sendData(true, "abc", false)
	if len(r.calls) != 1 || r.calls[0].call.Cluster != "first" || r.term.dec.heads != 0 {
		t.Fatalf("%d calls, the far end saw %s", len(r.calls), &r.term.dec)
	}
	if fm.Suspended(x.w) != 1 || x.value("http.x.suspended_filters") != "1" {
		t.Error("not counted")
	}
	r.calls[0].done(&filter.Answer{Body: []byte("one")}, nil)
	r.sendData(true, "def", true)
	r.calls[1].done(nil, filter.ErrTimeout)
	if len(answers) != 2 || answers[0] != "one" || answers[1] != filter.ErrTimeout.Error() {
		t.Errorf("answers %q", answers)
	}
	r.term.dec.whole(t, "the far end", "abcdef")
	x.none()
	r.close()
}

// TestSyncHoldsTheBodyBack: the body waits by flow control.
func TestSyncHoldsTheBodyBack(t *testing.T) {
	x := newSyncRig(t, func(s filter.SyncStream, _ *http.HeaderMap) *filter.LocalReply {
		_, _ = s.Call(&filter.Call{})
		return nil
	})
	r := x.stream()
	r.sendHead(true, false)
	r.sendData(true, string(make([]byte, 65)), false)
	if r.reads != 1 || r.got.heads != 0 {
		t.Errorf("held back %d times", r.reads)
	}
	r.calls[0].done(&filter.Answer{}, nil)
	if r.reads != 0 {
		t.Error("still held back")
	}
	r.sendData(true, "", true)
	r.term.dec.whole(t, "the far end", string(make([]byte, 65)))
	r.close()
}

func TestSyncReplies(t *testing.T) {
	for _, wait := range []bool{false, true} {
		x := newSyncRig(t, func(s filter.SyncStream, _ *http.HeaderMap) *filter.LocalReply {
			if wait {
				if err := s.Sleep(time.Second); err != nil {
					t.Error(err)
				}
			}
			return &filter.LocalReply{Code: 403, Body: "no", GRPCStatus: -1}
		})
		r := x.stream()
		r.send(true, full)
		if wait {
			if r.got.heads != 0 {
				t.Error("did not sleep")
			}
			x.clock.ahead += 2 * time.Second
			x.w.Step(false)
		}
		r.got.whole(t, "the client", "no")
		if r.term.dec.heads != 0 {
			t.Error("the request went on")
		}
		r.close()
		x.none()
	}
}

// TestSyncStreamEnds: a stream's end ends the code that waits, and its call.
func TestSyncStreamEnds(t *testing.T) {
	for _, sleep := range []bool{false, true} {
		var err, again error
		x := newSyncRig(t, func(s filter.SyncStream, _ *http.HeaderMap) *filter.LocalReply {
			if sleep {
				err = s.Sleep(time.Hour)
			} else {
				_, err = s.Call(&filter.Call{})
			}
			_, again = s.Call(&filter.Call{})
			return &filter.LocalReply{Code: 500, GRPCStatus: -1}
		})
		r := x.stream()
		r.send(true, full)
		r.end()
		if !errors.Is(err, filter.ErrStreamReset) || !errors.Is(again, filter.ErrStreamReset) {
			t.Errorf("%v, then %v", err, again)
		}
		if !sleep && !r.calls[0].canceled {
			t.Error("the call goes on")
		}
		if r.got.heads != 0 {
			t.Error("a reply was sent")
		}
		r.close()
		x.none()
	}
}

// TestSyncEndsItsOwnStream: what the code does may end its stream under it.
func TestSyncEndsItsOwnStream(t *testing.T) {
	for _, wait := range []bool{false, true} {
		for _, reset := range []bool{false, true} {
			var err error
			x := newSyncRig(t, func(s filter.SyncStream, _ *http.HeaderMap) *filter.LocalReply {
				if wait {
					_, _ = s.Call(&filter.Call{})
				}
				if reset {
					s.Callbacks().ResetStream(http.ResetLocal)
				} else {
					s.Callbacks().SendLocalReply(&filter.LocalReply{Code: 403, Body: "no", GRPCStatus: -1})
				}
				if wait || reset {
					err = s.Sleep(time.Second)
				}
				return nil
			})
			r := x.stream()
			r.send(true, shape{})
			if wait {
				r.calls[0].done(&filter.Answer{}, nil)
			}
			switch {
			case reset && r.resets != 1, !reset && r.got.ends != 1:
				t.Errorf("wait %v: %d resets, the client saw %s", wait, r.resets, &r.got)
			case (wait || reset) && !errors.Is(err, filter.ErrStreamReset):
				t.Errorf("wait %v, reset %v: %v", wait, reset, err)
			}
			r.close()
			x.none()
		}
	}
}

// TestSyncLimit: as many as may wait do; one more is refused, without a call.
func TestSyncLimit(t *testing.T) {
	own := false
	x := newSyncRig(t, func(s filter.SyncStream, _ *http.HeaderMap) *filter.LocalReply {
		_, err := s.Call(&filter.Call{})
		if errors.Is(err, filter.ErrTooMany) && own {
			return &filter.LocalReply{Code: 429, Body: "own", GRPCStatus: -1}
		}
		return nil
	})
	x.f.Max = 3
	var rigs []*rig
	for range x.f.Max {
		r := x.stream()
		r.send(true, shape{})
		if len(r.calls) != 1 || r.got.heads != 0 {
			t.Fatal("a filter within the limit does not wait")
		}
		rigs = append(rigs, r)
	}
	for _, own = range []bool{false, true} {
		r := x.stream()
		r.send(true, shape{})
		want := map[bool]string{false: "too many suspended filters", true: "own"}[own]
		r.got.whole(t, "the client", want)
		if len(r.calls) != 0 || !r.info.Flags.Has(stream.OverloadManager) {
			t.Error("it was no overload")
		}
		r.end()
		r.arena.Release()
	}
	if v := x.value("http.x.suspended_filters_overflow"); v != "2" {
		t.Errorf("counted %s", v)
	}
	// A place that becomes free is given again.
	rigs[0].calls[0].done(&filter.Answer{}, nil)
	r := x.stream()
	r.send(true, shape{})
	if len(r.calls) != 1 {
		t.Error("the place was not given again")
	}
	for _, r := range append(rigs, r) {
		r.end()
		r.arena.Release()
	}
	x.none()
}

// TestSyncNoFilter: a stream may need none.
func TestSyncNoFilter(t *testing.T) {
	x := newSyncRig(t, nil)
	x.f.Make = func(network.Dispatcher) filter.Sync { return nil }
	r := x.stream()
	r.send(true, full)
	r.term.dec.whole(t, "the far end", full.body(), full.tail()...)
	r.close()
}
