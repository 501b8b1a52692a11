package fm_test

import (
	"fmt"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/internal/invariant"
)

var shapes = []shape{
	{},
	{chunks: []string{"abc"}},
	{chunks: []string{"abc", "", "def", ""}},
	{trailers: true},
	{chunks: []string{"abc", "def"}, trailers: true},
}

// positions of the filter that does something among those that do not.
const positions = 3

// walk runs f for each side, position and shape of message.
func walk(t *testing.T, f func(t *testing.T, decode bool, pos int, x shape)) {
	for _, decode := range []bool{true, false} {
		for pos := range positions {
			for _, x := range shapes {
				side := map[bool]string{true: "decode", false: "encode"}[decode]
				t.Run(fmt.Sprintf("%s/%d/%d_chunks_%v", side, pos, len(x.chunks), x.trailers), func(t *testing.T) { f(t, decode, pos, x) })
			}
		}
	}
}

// actor is a filter that answers one callback with one status, and continues later if it must.
type actor struct {
	*probe
	r      *rig
	decode bool
	rule   filter.Rule
	used   bool
	// taking: the filter moves the body away (NoBuffer), into stash, until it goes on.
	taking, sawEnd, sawTrailers bool
	stash                       buffer.Buffer
}

// act tells whether the rule is about this callback.
func (a *actor) act(c filter.Callback, decode, end bool) bool {
	if a.used || decode != a.decode || c != a.rule.Callback || end != a.rule.End {
		return false
	}
	a.used = true
	return true
}

func newActor(decode bool, rule filter.Rule, w *rig) *actor {
	a := &actor{probe: &probe{}, decode: decode, rule: rule}
	a.onHeaders = func(d bool, _ *http.HeaderMap, end bool) filter.HeadersStatus {
		if a.act(filter.CallbackHeaders, d, end) {
			return filter.HeadersStatus(rule.Status)
		}
		return filter.HeadersContinue
	}
	a.onData = func(d bool, b *buffer.Buffer, end bool) filter.DataStatus {
		if acts := a.act(filter.CallbackData, d, end); !acts && !(a.taking && d == decode) {
			return filter.DataContinue
		}
		if filter.DataStatus(rule.Status) == filter.DataStopIterationNoBuffer {
			a.taking, a.sawEnd = true, end
			a.stash.Init(&a.r.w.Bufs)
			a.stash.Move(b)
		}
		return filter.DataStatus(rule.Status)
	}
	a.onTrailers = func(d bool, _ *http.HeaderMap) filter.TrailersStatus {
		if a.taking && d == decode {
			a.sawTrailers = true
			return filter.TrailersStopIteration
		}
		if a.act(filter.CallbackTrailers, d, true) {
			return filter.TrailersStatus(rule.Status)
		}
		return filter.TrailersContinue
	}
	return a
}

func (a *actor) resume() {
	if a.decode {
		a.CB.ContinueDecoding()
	} else {
		a.CB.ContinueEncoding()
	}
}

func (a *actor) inject(b *buffer.Buffer, end bool) {
	if a.decode {
		a.CB.InjectDecodedData(b, end)
	} else {
		a.CB.InjectEncodedData(b, end)
	}
}

// goOn lets go of what the status held.
func (a *actor) goOn() {
	if a.destroyed || !a.used {
		return
	}
	switch {
	case a.taking:
		a.inject(&a.stash, a.sawEnd)
		a.taking = false
		if a.sawTrailers {
			a.resume()
		}
	case a.rule.Callback == filter.CallbackHeaders && filter.HeadersStatus(a.rule.Status) == filter.HeadersContinueAndDontEndStream:
		a.inject(a.r.owned(""), true)
	default:
		a.resume()
	}
}

// TestLegalityTable does what each row of the table says, on both sides, at each place of a chain, with each shape of message,
// going on after the whole message, or as soon as the callback has returned.
func TestLegalityTable(t *testing.T) {
	for _, rule := range filter.Legality {
		if rule.Callback == filter.Callback1xx {
			continue // TestInformational
		}
		t.Run(fmt.Sprintf("%d_%d_%v", rule.Callback, rule.Status, rule.End), func(t *testing.T) {
			for _, early := range []bool{false, true} {
				walk(t, func(t *testing.T, decode bool, pos int, x shape) { runRule(t, rule, early, decode, pos, x) })
			}
		})
	}
}

func runRule(t *testing.T, rule filter.Rule, early, decode bool, pos int, x shape) {
	probes := []*probe{{}, {}, {}}
	a := newActor(decode, rule, nil)
	probes[pos] = a.probe
	r := newRig(t, newWorker(), 0, probes...)
	a.r = r
	if !decode {
		r.send(true, shape{})
	}
	stop := invariant.Record()
	if early {
		step := func(f func()) { f(); a.r.w.Post(a.goOn); r.run() }
		step(func() { r.sendHead(decode, len(x.chunks) == 0 && !x.trailers) })
		for i, c := range x.chunks {
			step(func() { r.sendData(decode, c, i == len(x.chunks)-1 && !x.trailers) })
		}
		if x.trailers {
			step(func() { r.sendTrailers(decode) })
		}
	} else {
		r.send(decode, x)
		r.w.Post(a.goOn)
		r.run()
	}
	bugs := stop()
	if filter.Judge(rule.Callback, rule.Status, rule.End) == filter.IllegalReset && a.used {
		if len(bugs) != 1 || r.resets != 1 || r.arrived(decode).ends > 0 {
			t.Errorf("an illegal status: %d bugs counted, %d resets, arrived: %s", len(bugs), r.resets, r.arrived(decode))
		}
		r.close()
		return
	}
	if len(bugs) != 0 || r.resets != 0 {
		t.Errorf("%d bugs, %d resets", len(bugs), r.resets)
	}
	r.arrived(decode).whole(t, "the far end", x.body(), x.tail()...)
	for i, p := range probes {
		p.side(decode).whole(t, fmt.Sprint("filter ", i), x.body(), x.tail()...)
		if p.completes[index(decode)] != 1 {
			t.Errorf("filter %d was told %d times that the message is complete", i, p.completes[index(decode)])
		}
	}
	r.close()
}

// TestJudge: what is not in the table is illegal, and every row is found.
func TestJudge(t *testing.T) {
	for _, rule := range filter.Legality {
		if got := filter.Judge(rule.Callback, rule.Status, rule.End); got != rule.Verdict {
			t.Errorf("%+v: %d", rule, got)
		}
	}
	if filter.Judge(filter.CallbackData, 99, false) != filter.IllegalReset {
		t.Error("an unknown status is legal")
	}
	for _, c := range []struct {
		callback filter.Callback
		statuses uint8
		ends     []bool
	}{{filter.CallbackHeaders, 5, []bool{false, true}}, {filter.Callback1xx, 5, []bool{false}}, {filter.CallbackData, 4, []bool{false, true}},
		{filter.CallbackTrailers, 2, []bool{true}}} {
		for st := range c.statuses {
			for _, end := range c.ends {
				n := 0
				for _, rule := range filter.Legality {
					if rule.Callback == c.callback && rule.Status == st && rule.End == end {
						n++
					}
				}
				if n != 1 {
					t.Errorf("callback %d, status %d, end %v has %d rows", c.callback, st, end, n)
				}
			}
		}
	}
}

// TestUnknownStatuses: a number that is no status is a bug of the filter, not the proxy's end.
func TestUnknownStatuses(t *testing.T) {
	for _, c := range []filter.Callback{filter.CallbackHeaders, filter.CallbackData, filter.CallbackTrailers} {
		for _, decode := range []bool{true, false} {
			a := newActor(decode, filter.Rule{Callback: c, Status: 99, End: c == filter.CallbackTrailers}, nil)
			r := newRig(t, newWorker(), 0, a.probe)
			a.r = r
			if !decode {
				r.send(true, shape{})
			}
			stop := invariant.Record()
			r.send(decode, shape{chunks: []string{"abc", "def"}, trailers: true})
			if n := len(stop()); n != 1 || r.resets != 1 {
				t.Errorf("callback %d, decode %v: %d bugs, %d resets", c, decode, n, r.resets)
			}
			r.close()
		}
	}
}
