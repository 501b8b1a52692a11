package fm_test

import (
	"fmt"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/internal/invariant"
)

// moments are the callbacks of a filter.
var moments = []string{"decode headers", "decode data", "decode trailers", "decode complete", "encode headers", "encode data", "encode trailers",
	"encode complete"}

// at makes p call f in one of its callbacks, once, and stop there.
func at(p *probe, moment string, f func()) {
	done := false
	hit := func(what string, decode bool) bool {
		if done || moment != map[bool]string{true: "decode ", false: "encode "}[decode]+what {
			return false
		}
		done = true
		f()
		return true
	}
	p.onHeaders = func(decode bool, _ *http.HeaderMap, _ bool) filter.HeadersStatus {
		if hit("headers", decode) {
			return filter.HeadersStopIteration
		}
		return filter.HeadersContinue
	}
	p.onData = func(decode bool, _ *buffer.Buffer, _ bool) filter.DataStatus {
		if hit("data", decode) {
			return filter.DataStopIterationAndBuffer
		}
		return filter.DataContinue
	}
	p.onTrailers = func(decode bool, _ *http.HeaderMap) filter.TrailersStatus {
		if hit("trailers", decode) {
			return filter.TrailersStopIteration
		}
		return filter.TrailersContinue
	}
	p.onComplete = func(decode bool) { hit("complete", decode) }
}

// everyMoment runs f for a filter at each place that acts in each callback.
func everyMoment(t *testing.T, f func(t *testing.T, moment string, pos int)) {
	for _, m := range moments {
		for pos := range positions {
			t.Run(fmt.Sprintf("%s/%d", m, pos), func(t *testing.T) { f(t, m, pos) })
		}
	}
}

var full = shape{chunks: []string{"abc", "def"}, trailers: true}

// TestLocalReplies: a reply in any callback. Before the response it goes through all encoding filters; when filters have seen a
// response that the client has not, past them; when the client has its head, the stream is reset.
func TestLocalReplies(t *testing.T) {
	everyMoment(t, func(t *testing.T, moment string, pos int) {
		probes := []*probe{{}, {}, {}}
		var r *rig
		inside := true
		at(probes[pos], moment, func() {
			before := r.got.heads
			probes[pos].CB.SendLocalReply(&filter.LocalReply{Code: 403, Body: "no", Details: "why", GRPCStatus: -1})
			probes[pos].CB.ContinueDecoding() // of no use any more
			probes[pos].CB.SendLocalReply(&filter.LocalReply{Code: 500, GRPCStatus: -1})
			if r.got.heads != before || r.resets > 0 {
				t.Error("the reply was made within the callback")
			}
			inside = false
		})
		r = newRig(t, newWorker(), 0, probes...)
		r.send(true, full)
		r.send(false, full)
		if inside {
			t.Fatal("the callback did not come")
		}
		checkReply(t, r, moment, pos, probes)
		r.close()
	})
}

func checkReply(t *testing.T, r *rig, moment string, pos int, probes []*probe) {
	t.Helper()
	for _, p := range probes {
		if p.replies != 1 {
			t.Errorf("%s heard of %d replies", p.name, p.replies)
		}
	}
	if r.info.Details != "why" {
		t.Errorf("details %q", r.info.Details)
	}
	switch {
	case moment[:6] == "decode":
		r.got.whole(t, "the client", "no")
		for _, p := range probes {
			p.enc.whole(t, p.name, "no")
		}
		if r.resp.Get(http.Status) != "200" || r.reply.Get(http.Status) != "403" || r.resets > 0 {
			t.Errorf("%d resets", r.resets)
		}
	case moment == "encode headers":
		r.got.whole(t, "the client", "no")
		for i, p := range probes {
			if i <= pos && p.enc.body.Len() > 0 || p.enc.heads > 1 {
				t.Errorf("%s saw %s of a reply that goes past it", p.name, &p.enc)
			}
		}
	default:
		if r.resets != 1 || r.got.ends > 0 {
			t.Errorf("%d resets; the client saw %s", r.resets, &r.got)
		}
	}
}

// TestResets: a reset in any callback ends the stream there, once, and nothing is called afterwards (the probes look).
func TestResets(t *testing.T) {
	everyMoment(t, func(t *testing.T, moment string, pos int) {
		probes := []*probe{{}, {}, {}}
		p := probes[pos]
		at(p, moment, func() {
			p.CB.ResetStream(http.ResetLocal)
			if !p.destroyed {
				t.Error("the stream lives on")
			}
			// All of it is without effect now.
			p.CB.ResetStream(http.ResetLocal)
			p.CB.ContinueDecoding()
			p.CB.ContinueEncoding()
			p.CB.SendLocalReply(&filter.LocalReply{Code: 403, GRPCStatus: -1})
			p.CB.ReadDisable(true)
			p.CB.SubscribeWatermarks(func(bool) { t.Error("called") })
		})
		r := newRig(t, newWorker(), 0, probes...)
		p.onEnd = func() {
			b := r.owned("late")
			p.CB.AddDecodedData(b, false)
			p.CB.InjectEncodedData(r.owned("late"), true)
		}
		r.send(true, full)
		r.send(false, full)
		if r.resets != 1 || r.got.ends > 0 {
			t.Errorf("%d resets; the client saw %s", r.resets, &r.got)
		}
		r.close()
	})
}

// TestRepliesFromOutside: a reply from a timer or a post is made at once.
func TestRepliesFromOutside(t *testing.T) {
	p := &probe{}
	at(p, "decode headers", func() {})
	r := newRig(t, newWorker(), 0, p)
	r.send(true, shape{})
	p.CB.SendLocalReply(&filter.LocalReply{Code: 504, Body: "late", GRPCStatus: -1})
	r.got.whole(t, "the client", "late")
	if r.term.dec.heads != 0 {
		t.Error("the request was passed on")
	}
	r.close()
}

// TestReplyHeldByFilter: encoding filters may hold a reply, and its bytes, as they may hold any response.
func TestReplyHeldByFilter(t *testing.T) {
	for _, st := range []filter.HeadersStatus{filter.HeadersStopIteration, filter.HeadersStopAllIterationAndBuffer, filter.HeadersStopAllIterationAndWatermark} {
		a, b := &probe{}, &probe{}
		a.onHeaders = func(decode bool, _ *http.HeaderMap, _ bool) filter.HeadersStatus {
			if decode {
				return filter.HeadersContinue
			}
			return st
		}
		a.onData = func(bool, *buffer.Buffer, bool) filter.DataStatus { return filter.DataStopIterationAndBuffer }
		r := newRig(t, newWorker(), 0, a, b)
		r.send(true, shape{})
		b.CB.SendLocalReply(&filter.LocalReply{Code: 403, Body: "no", GRPCStatus: -1})
		if r.got.heads != 0 {
			t.Error("the filter did not hold the reply")
		}
		a.CB.ContinueEncoding()
		a.CB.ContinueEncoding()
		r.got.whole(t, "the client", "no")
		r.close()
	}
}

// TestReplyAndReset: a filter may ask for a reset instead.
func TestReplyAndReset(t *testing.T) {
	a, b := &probe{}, &probe{}
	a.onReply = func(*filter.LocalReply) filter.LocalReplyStatus { return filter.LocalReplyContinueAndReset }
	at(b, "decode headers", func() { b.CB.SendLocalReply(&filter.LocalReply{Code: 403, GRPCStatus: -1}) })
	r := newRig(t, newWorker(), 0, a, b)
	r.send(true, full)
	if r.resets != 1 || r.got.heads != 0 || b.replies != 1 {
		t.Errorf("%d resets, the client saw %s, %d replies told", r.resets, &r.got, b.replies)
	}
	r.close()
}

// TestReplyTwice: a filter that replies while it is told of a reply is not heard.
func TestReplyTwice(t *testing.T) {
	a := &probe{}
	a.onReply = func(*filter.LocalReply) filter.LocalReplyStatus {
		a.CB.SendLocalReply(&filter.LocalReply{Code: 500, Body: "again", GRPCStatus: -1})
		return filter.LocalReplyContinue
	}
	at(a, "decode headers", func() { a.CB.SendLocalReply(&filter.LocalReply{Code: 403, Body: "no", GRPCStatus: -1}) })
	r := newRig(t, newWorker(), 0, a)
	r.send(true, full)
	r.got.whole(t, "the client", "no")
	r.close()
}

// TestTerminalIsNotHeardAfterReply: what an upstream still says is no part of the reply.
func TestTerminalIsNotHeardAfterReply(t *testing.T) {
	a := &probe{}
	a.onHeaders = func(decode bool, _ *http.HeaderMap, _ bool) filter.HeadersStatus {
		if decode {
			return filter.HeadersContinue
		}
		return filter.HeadersStopAllIterationAndBuffer
	}
	r := newRig(t, newWorker(), 0, a)
	r.send(true, full)
	a.CB.SendLocalReply(&filter.LocalReply{Code: 403, Body: "no", GRPCStatus: -1})
	r.send(false, full)
	a.CB.ContinueEncoding()
	r.got.whole(t, "the client", "no")
	r.close()
}

// TestInformational walks the rows of 1xx heads.
func TestInformational(t *testing.T) {
	for _, rule := range filter.Legality {
		if rule.Callback != filter.Callback1xx {
			continue
		}
		for pos := range positions {
			probes := []*probe{{}, {}, {}}
			calls := 0
			for i, p := range probes {
				p.on1xx = func(*http.HeaderMap) filter.HeadersStatus {
					calls++
					if i == pos {
						return filter.HeadersStatus(rule.Status)
					}
					return filter.HeadersContinue
				}
			}
			r := newRig(t, newWorker(), 0, probes...)
			r.send(true, shape{})
			stop := invariant.Record()
			var h http.HeaderMap
			h.Init(&r.arena)
			h.Add(http.Status, "103")
			r.s.Encode1xx(&h)
			bugs := len(stop())
			h.Release()
			switch {
			case rule.Verdict == filter.IllegalReset:
				if bugs != 1 || r.resets != 1 || r.infos != 0 {
					t.Errorf("%+v: %d bugs, %d resets, %d heads", rule, bugs, r.resets, r.infos)
				}
			case filter.HeadersStatus(rule.Status) == filter.HeadersContinue:
				if r.infos != 1 || calls != positions {
					t.Errorf("%+v: %d heads, %d calls", rule, r.infos, calls)
				}
			default:
				if r.infos != 0 || calls != positions-pos || r.resets != 0 {
					t.Errorf("%+v: %d heads, %d calls", rule, r.infos, calls)
				}
			}
			if r.resets == 0 {
				r.send(false, full)
				r.got.whole(t, "the client", full.body(), full.tail()...)
				r.s.Encode1xx(&h) // too late
			}
			r.close()
		}
	}
}

// TestReplyToInformational: a reply within a 1xx callback goes through the filters; the informational head goes nowhere.
func TestReplyToInformational(t *testing.T) {
	a, b := &probe{}, &probe{}
	b.on1xx = func(*http.HeaderMap) filter.HeadersStatus {
		b.CB.SendLocalReply(&filter.LocalReply{Code: 403, Body: "no", GRPCStatus: -1})
		return filter.HeadersContinue
	}
	r := newRig(t, newWorker(), 0, a, b)
	r.send(true, full)
	r.s.Encode1xx(&r.resp)
	r.got.whole(t, "the client", "no")
	a.enc.whole(t, "the filter", "no")
	if r.infos != 0 {
		t.Error("the informational head was sent")
	}
	r.close()
}
