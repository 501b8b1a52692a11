package fm_test

import (
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
)

const limit = 10

// keeper is a filter that keeps a direction's body in one of the ways there are.
type keeper struct {
	name string
	// headers and data are its statuses.
	headers filter.HeadersStatus
	data    filter.DataStatus
	flows   bool // flow control instead of an error
}

var keepers = []keeper{
	{"data buffered", filter.HeadersContinue, filter.DataStopIterationAndBuffer, false},
	{"headers and data buffered", filter.HeadersStopIteration, filter.DataStopIterationAndBuffer, false},
	{"all buffered", filter.HeadersStopAllIterationAndBuffer, filter.DataContinue, false},
	{"data flows", filter.HeadersContinue, filter.DataStopIterationAndWatermark, true},
	{"headers held, data flows", filter.HeadersStopIteration, filter.DataStopIterationAndWatermark, true},
	{"all flows", filter.HeadersStopAllIterationAndWatermark, filter.DataContinue, true},
}

// keeping makes p keep a direction.
func keeping(p *probe, k keeper, decode bool) {
	p.onHeaders = func(dec bool, _ *http.HeaderMap, _ bool) filter.HeadersStatus {
		if dec != decode {
			return filter.HeadersContinue
		}
		return k.headers
	}
	p.onData = func(dec bool, _ *buffer.Buffer, _ bool) filter.DataStatus {
		if dec != decode {
			return filter.DataContinue
		}
		return k.data
	}
}

// TestBufferLimit: what fits is kept; one byte more is answered with 413, or 500 for a response, or holds the sender back.
func TestBufferLimit(t *testing.T) {
	for _, k := range keepers {
		for _, decode := range []bool{true, false} {
			for _, over := range []int{0, 1} {
				p := &probe{}
				keeping(p, k, decode)
				r := newRig(t, newWorker(), limit, &probe{}, p, &probe{})
				if !decode {
					r.send(true, shape{})
				}
				var held []bool
				r.term.CB.SubscribeWatermarks(func(above bool) { held = append(held, above) })
				body := strings.Repeat("x", limit+over)
				r.sendHead(decode, false)
				r.sendData(decode, body[:4], false)
				r.sendData(decode, body[4:], false)
				paused := r.reads > 0 || len(held) > 0
				if want := k.flows && over > 0; paused != want {
					t.Errorf("%s, decode %v, %d over: the sender is held back: %v", k.name, decode, over, paused)
				}
				if !k.flows && over > 0 {
					checkTooLarge(t, r, k, decode)
					r.close()
					continue
				}
				if r.got.heads > 0 && !strings.HasPrefix(k.name, "data") || r.resets > 0 {
					t.Errorf("%s, decode %v, %d over: the client saw %s", k.name, decode, over, &r.got)
				}
				p.onHeaders, p.onData = nil, nil
				resume(p, decode)
				if r.reads != 0 || len(held) > 0 && held[len(held)-1] {
					t.Errorf("%s, decode %v: the sender is still held back", k.name, decode)
				}
				r.sendData(decode, "", true)
				r.arrived(decode).whole(t, k.name, body)
				r.close()
			}
		}
	}
}

func resume(p *probe, decode bool) {
	if decode {
		p.CB.ContinueDecoding()
	} else {
		p.CB.ContinueEncoding()
	}
}

func checkTooLarge(t *testing.T, r *rig, k keeper, decode bool) {
	t.Helper()
	code, body := "413", "Payload Too Large"
	if !decode {
		code, body = "500", "Internal Server Error"
	}
	if r.tooLarge[index(decode)] != 1 || r.tooLarge[index(!decode)] != 0 {
		t.Errorf("%s, decode %v: counted %v", k.name, decode, r.tooLarge)
	}
	if !decode && k.headers == filter.HeadersContinue {
		// The client has the head already.
		if r.resets != 1 {
			t.Errorf("%s: %d resets", k.name, r.resets)
		}
		return
	}
	if r.reply.Get(http.Status) != code {
		t.Errorf("%s, decode %v: %s", k.name, decode, r.reply.Get(http.Status))
	}
	r.got.whole(t, k.name, body)
	if !decode && r.filters[0].enc.heads != 0 {
		t.Errorf("%s: a reply went through filters that wait for the response", k.name)
	}
}

// TestNoLimit: 0 is none.
func TestNoLimit(t *testing.T) {
	p := &probe{}
	keeping(p, keepers[0], true)
	r := newRig(t, newWorker(), 0, p)
	x := shape{chunks: []string{strings.Repeat("x", 1<<20)}}
	r.send(true, x)
	p.CB.ContinueDecoding()
	r.term.dec.whole(t, "the far end", x.body())
	r.close()
}

// TestLimitOfAdded: what filters add counts, inside of callbacks (when they stop) and outside.
func TestLimitOfAdded(t *testing.T) {
	for over := range 2 {
		p := &probe{}
		keeping(p, keepers[0], true)
		r := newRig(t, newWorker(), limit, p)
		r.sendHead(true, false)
		r.sendData(true, "abcd", false)
		p.CB.AddDecodedData(r.owned(strings.Repeat("x", limit-4+over)), false)
		if replied := r.got.heads > 0; replied != (over > 0) {
			t.Errorf("%d over, outside: replied %v", over, replied)
		}
		r.close()

		p = &probe{}
		r = newRig(t, newWorker(), limit, p)
		at(p, "decode headers", func() { p.CB.AddDecodedData(r.owned(strings.Repeat("x", limit+over)), false) })
		r.sendHead(true, false)
		if replied := r.got.heads > 0; replied != (over > 0) {
			t.Errorf("%d over, inside: replied %v", over, replied)
		}
		r.close()

		// What is passed on at once is not buffered.
		p = &probe{}
		r = newRig(t, newWorker(), limit, p)
		p.onHeaders = func(bool, *http.HeaderMap, bool) filter.HeadersStatus {
			p.CB.AddDecodedData(r.owned(strings.Repeat("x", limit+over)), false)
			return filter.HeadersContinue
		}
		r.sendHead(true, true)
		r.term.dec.whole(t, "the far end", strings.Repeat("x", limit+over))
		r.close()
	}
}

// TestSetBufferLimit holds for what is kept already: a higher limit lets the sender go, a lower one holds it back or is an error.
func TestSetBufferLimit(t *testing.T) {
	p := &probe{}
	keeping(p, keepers[3], true)
	r := newRig(t, newWorker(), limit, p)
	r.sendHead(true, false)
	r.sendData(true, strings.Repeat("x", limit+1), false)
	if r.reads != 1 || p.CB.BufferLimit() != limit {
		t.Fatalf("held back %d times, limit %d", r.reads, p.CB.BufferLimit())
	}
	p.CB.SetBufferLimit(2*limit + 1) // more than half of it is still kept
	if r.reads != 1 {
		t.Error("let go above the low watermark")
	}
	p.CB.SetBufferLimit(2*limit + 2)
	if r.reads != 0 {
		t.Error("still held back")
	}
	p.CB.SetBufferLimit(limit)
	if r.reads != 1 {
		t.Error("not held back again")
	}
	p.CB.SetBufferLimit(0)
	if r.reads != 0 {
		t.Error("held back without a limit")
	}
	r.close()

	p = &probe{}
	keeping(p, keepers[0], true)
	r = newRig(t, newWorker(), limit, p)
	r.sendHead(true, false)
	r.sendData(true, strings.Repeat("x", limit), false)
	p.CB.SetBufferLimit(limit - 1)
	r.got.whole(t, "the client", "Payload Too Large")
	r.close()
}

// TestDrainedByFilter: a filter that takes bytes out of what it holds lets the sender go.
func TestDrainedByFilter(t *testing.T) {
	p := &probe{}
	keeping(p, keepers[3], true)
	r := newRig(t, newWorker(), limit, p)
	r.sendHead(true, false)
	r.sendData(true, strings.Repeat("x", limit+1), false)
	part := r.owned("")
	part.MoveN(p.CB.BufferedDecodeData(), 5)
	p.CB.InjectDecodedData(part, false)
	if r.reads != 1 {
		t.Error("let go above the low watermark")
	}
	part.MoveN(p.CB.BufferedDecodeData(), 1)
	p.CB.InjectDecodedData(part, false)
	if r.reads != 0 {
		t.Error("still held back at the low watermark")
	}
	p.CB.ContinueDecoding()
	p.onData = nil
	r.sendData(true, "", true)
	r.term.dec.whole(t, "the far end", strings.Repeat("x", limit+1))
	r.close()
}

// TestNoPauseAtTheEnd: nobody is held back who has nothing more to send.
func TestNoPauseAtTheEnd(t *testing.T) {
	for _, k := range keepers[3:] {
		p := &probe{}
		keeping(p, k, true)
		r := newRig(t, newWorker(), limit, p)
		r.send(true, shape{chunks: []string{strings.Repeat("x", limit+1)}})
		if r.maxReads != 0 {
			t.Errorf("%s: the client was held back at its end", k.name)
		}
		p.onData = nil
		p.CB.ContinueDecoding()
		r.term.dec.whole(t, "the far end", strings.Repeat("x", limit+1))
		r.close()
	}
}

// TestWatermarkSubscription: who subscribes late is told of what holds; the client's and filters' reasons count together.
func TestWatermarkSubscription(t *testing.T) {
	r := newRig(t, newWorker(), 0, &probe{})
	r.send(true, shape{})
	var told []bool
	r.s.OnBelowLowWatermark() // one too many changes nothing
	r.s.OnAboveHighWatermark()
	r.term.CB.SubscribeWatermarks(func(above bool) { told = append(told, above) })
	r.s.OnAboveHighWatermark()
	r.s.OnBelowLowWatermark()
	r.s.OnBelowLowWatermark()
	if len(told) != 2 || !told[0] || told[1] {
		t.Errorf("told %v", told)
	}
	r.close()
}

// TestReplyLetsGo: a reply forgets what filters hold, in both directions, and holds nobody back any more.
func TestReplyLetsGo(t *testing.T) {
	p := &probe{}
	k := keepers[5]
	p.onHeaders = func(bool, *http.HeaderMap, bool) filter.HeadersStatus { return k.headers }
	r := newRig(t, newWorker(), limit, p)
	r.sendHead(true, false)
	var above bool
	r.term.CB.SubscribeWatermarks(func(a bool) { above = a })
	r.s.EncodeHeaders(&r.resp, false)
	for _, decode := range []bool{true, false} {
		r.sendData(decode, strings.Repeat("x", limit+1), false)
	}
	if r.reads != 1 || !above || r.w.Bufs.Live() == 0 {
		t.Fatal("nobody is held back")
	}
	r.stay = true
	p.CB.SendLocalReply(&filter.LocalReply{Code: 403, GRPCStatus: -1})
	if r.reads != 0 || above || r.w.Bufs.Live() != 0 {
		t.Errorf("held back %d times, above %v, %d slabs", r.reads, above, r.w.Bufs.Live())
	}
	r.stay = false
	r.close()
}

// TestLimitAtTheEnd: the piece with which a filter goes on that has waited for the whole body counts too.
func TestLimitAtTheEnd(t *testing.T) {
	for _, decode := range []bool{true, false} {
		for _, pieces := range []int{1, 2} {
			for over := range 2 {
				p := &probe{}
				p.onHeaders = func(dec bool, _ *http.HeaderMap, _ bool) filter.HeadersStatus {
					if dec != decode {
						return filter.HeadersContinue
					}
					return filter.HeadersStopIteration
				}
				p.onData = func(_ bool, _ *buffer.Buffer, end bool) filter.DataStatus {
					if end {
						return filter.DataContinue
					}
					return filter.DataStopIterationAndBuffer
				}
				r := newRig(t, newWorker(), limit, &probe{}, p)
				if !decode {
					r.send(true, shape{})
				}
				x := shape{chunks: []string{strings.Repeat("x", limit+over)}}
				if pieces == 2 {
					x.chunks = []string{"xxxx", strings.Repeat("x", limit-4+over)}
				}
				r.send(decode, x)
				if over > 0 {
					checkTooLarge(t, r, keeper{"at the end", filter.HeadersStopIteration, 0, false}, decode)
				} else {
					r.arrived(decode).whole(t, "the far end", x.body())
				}
				r.close()
			}
		}
	}
}
