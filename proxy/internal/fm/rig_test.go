package fm_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/clock"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/route"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/fm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noIO is a driver for workers that only run posts and timers.
type noIO struct{ event.Driver }

func (noIO) Wake()                                 {}
func (noIO) Wait([]event.Ready, time.Duration) int { return 0 }
func newWorker() *event.Worker {
	w := event.New(event.Config{Name: "worker_0", Driver: noIO{}, Clock: clock.System()})
	w.Bufs.Poison, w.Arenas.Poison = true, true
	return w
}

// failer is what fails: a test, or a drawing of rapid.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// seen is one side's message as somebody saw it.
type seen struct {
	heads, ends int
	headEnd     bool
	body        strings.Builder
	trailers    []string
	order       string // h, d, t, in order, runs of d once
}

func (s *seen) String() string {
	return fmt.Sprintf("%s heads=%d ends=%d body=%q trailers=%q", s.order, s.heads, s.ends, s.body.String(), s.trailers)
}

func (s *seen) head(end bool) {
	s.heads++
	s.headEnd = end
	s.note('h', end)
}

func (s *seen) data(b []byte, end bool) {
	s.body.Write(b)
	s.note('d', end)
}

func (s *seen) trailer(h *http.HeaderMap) {
	for _, x := range h.All() {
		s.trailers = append(s.trailers, x.Name+"="+x.Value)
	}
	s.note('t', true)
}

func (s *seen) note(c byte, end bool) {
	if !strings.HasSuffix(s.order, string(c)) || c != 'd' {
		s.order += string(c)
	}
	if end {
		s.ends++
	}
}

// whole checks that a message came once, in order, with these bytes and trailers.
func (s *seen) whole(t failer, who, body string, trailers ...string) {
	t.Helper()
	want := "h"
	if strings.Contains(s.order, "d") {
		want += "d"
	}
	if len(trailers) > 0 {
		want += "t"
	}
	if s.order != want || s.heads != 1 || s.ends != 1 || s.body.String() != body || strings.Join(s.trailers, ",") != strings.Join(trailers, ",") {
		t.Errorf("%s saw %s; want body %q, trailers %q, each once", who, s, body, trailers)
	}
}

// probe is a filter under the test's control. It checks what every filter is promised.
type probe struct {
	filter.PassThrough
	t               failer
	name            string
	dec, enc        seen
	completes       [2]int
	destroyed, done bool
	replies         int

	onHeaders  func(decode bool, h *http.HeaderMap, end bool) filter.HeadersStatus
	onData     func(decode bool, b *buffer.Buffer, end bool) filter.DataStatus
	onTrailers func(decode bool, h *http.HeaderMap) filter.TrailersStatus
	on1xx      func(h *http.HeaderMap) filter.HeadersStatus
	onReply    func(r *filter.LocalReply) filter.LocalReplyStatus
	onComplete func(decode bool)
	onEnd      func()
	inCall     [2]bool
}

func (p *probe) side(decode bool) *seen {
	if decode {
		return &p.dec
	}
	return &p.enc
}

func index(decode bool) int {
	if decode {
		return 0
	}
	return 1
}

// enter checks that a callback comes at a time when it may.
func (p *probe) enter(decode bool, what string) (leave func()) {
	k := index(decode)
	if p.destroyed {
		p.t.Errorf("%s: %s after OnDestroy", p.name, what)
	}
	if p.inCall[k] {
		p.t.Errorf("%s: %s within a callback of the same direction", p.name, what)
	}
	if s := p.side(decode); s.ends > 0 || (what == "headers") != (s.heads == 0) {
		p.t.Errorf("%s: %s out of order: %s", p.name, what, s)
	}
	p.inCall[k] = true
	return func() { p.inCall[k] = false }
}

func (p *probe) headers(decode bool, h *http.HeaderMap, end bool) filter.HeadersStatus {
	defer p.enter(decode, "headers")()
	p.side(decode).head(end)
	if p.onHeaders != nil {
		return p.onHeaders(decode, h, end)
	}
	return filter.HeadersContinue
}

func (p *probe) data(decode bool, b *buffer.Buffer, end bool) filter.DataStatus {
	defer p.enter(decode, "data")()
	p.side(decode).data(b.Bytes(), end)
	if p.onData != nil {
		return p.onData(decode, b, end)
	}
	return filter.DataContinue
}

func (p *probe) trailers(decode bool, h *http.HeaderMap) filter.TrailersStatus {
	defer p.enter(decode, "trailers")()
	p.side(decode).trailer(h)
	if p.onTrailers != nil {
		return p.onTrailers(decode, h)
	}
	return filter.TrailersContinue
}

func (p *probe) complete(decode bool) {
	p.completes[index(decode)]++
	if p.completes[index(decode)] != p.side(decode).ends || p.destroyed {
		p.t.Errorf("%s: complete at the wrong time: %s", p.name, p.side(decode))
	}
	if p.onComplete != nil {
		p.onComplete(decode)
	}
}

func (p *probe) DecodeHeaders(h *http.HeaderMap, end bool) filter.HeadersStatus {
	return p.headers(true, h, end)
}
func (p *probe) DecodeData(b *buffer.Buffer, end bool) filter.DataStatus { return p.data(true, b, end) }
func (p *probe) DecodeTrailers(h *http.HeaderMap) filter.TrailersStatus  { return p.trailers(true, h) }
func (p *probe) DecodeComplete()                                         { p.complete(true) }
func (p *probe) EncodeHeaders(h *http.HeaderMap, end bool) filter.HeadersStatus {
	return p.headers(false, h, end)
}
func (p *probe) EncodeData(b *buffer.Buffer, end bool) filter.DataStatus {
	return p.data(false, b, end)
}
func (p *probe) EncodeTrailers(h *http.HeaderMap) filter.TrailersStatus { return p.trailers(false, h) }
func (p *probe) EncodeComplete()                                        { p.complete(false) }

func (p *probe) Encode1xx(h *http.HeaderMap) filter.HeadersStatus {
	if p.on1xx != nil {
		return p.on1xx(h)
	}
	return filter.HeadersContinue
}

func (p *probe) OnLocalReply(r *filter.LocalReply) filter.LocalReplyStatus {
	p.replies++
	if p.inCall[0] || p.inCall[1] {
		p.t.Errorf("%s: OnLocalReply within a callback", p.name)
	}
	if p.onReply != nil {
		return p.onReply(r)
	}
	return filter.LocalReplyContinue
}

func (p *probe) OnStreamComplete() {
	if p.done || p.destroyed {
		p.t.Errorf("%s: OnStreamComplete twice or after OnDestroy", p.name)
	}
	p.done = true
}

func (p *probe) OnDestroy() {
	if p.destroyed {
		p.t.Errorf("%s: OnDestroy twice", p.name)
	}
	p.destroyed = true
	if p.onEnd != nil {
		p.onEnd()
	}
}

// sides chooses what a factory says of its filters.
type factory struct {
	f     filter.Filter
	sides filter.Sides
}

func (f factory) New(network.Dispatcher) filter.Filter { return f.f }
func (f factory) Sides() filter.Sides                  { return f.sides }

// terminal is the last filter: it keeps the request, and makes the response when the test says so.
type terminal struct {
	*probe
	cb fm.Terminal
}

func newTerminal(t failer) *terminal {
	x := &terminal{probe: &probe{t: t, name: "terminal"}}
	x.onHeaders = func(bool, *http.HeaderMap, bool) filter.HeadersStatus {
		x.cb = x.CB.(fm.Terminal)
		return filter.HeadersStopIteration
	}
	x.onData = func(_ bool, b *buffer.Buffer, _ bool) filter.DataStatus { return filter.DataStopIterationNoBuffer }
	x.onTrailers = func(bool, *http.HeaderMap) filter.TrailersStatus { return filter.TrailersStopIteration }
	return x
}

// rig is a stream, its owner, and what came out at both ends.
type rig struct {
	t                                           failer
	w                                           *event.Worker
	s                                           fm.Stream
	term                                        *terminal
	arena                                       http.Arena
	info                                        stream.Info
	req, resp, reqTrailers, respTrailers, reply http.HeaderMap

	got      seen // by the client
	infos    int  // informational heads
	resets   int
	reads    int // how often the client is held back
	maxReads int
	tooLarge [2]int
	rt       route.Entry
	recreate func(body *buffer.Buffer) bool
	calls    []*sending
	over     bool
	stay     bool // the response's end does not end the stream
	filters  []*probe
	scratch  []byte
}

// newRig begins a stream whose chain is the probes and a terminal filter.
func newRig(t failer, w *event.Worker, limit int, probes ...*probe) *rig {
	r := &rig{t: t, w: w, filters: probes}
	chain := &fm.Chain{}
	for i, p := range probes {
		p.t, p.name = t, fmt.Sprint("filter ", i)
		chain.Entries = append(chain.Entries, fm.Entry{Name: p.name, Factory: factory{p, filter.Both}})
	}
	r.term = newTerminal(t)
	chain.Entries = append(chain.Entries, fm.Entry{Name: "terminal", Factory: factory{r.term, filter.Decoder}})
	r.begin(chain, limit)
	return r
}

func (r *rig) begin(chain *fm.Chain, limit int) {
	r.arena.Init(&r.w.Arenas)
	for _, h := range []*http.HeaderMap{&r.req, &r.resp, &r.reqTrailers, &r.respTrailers, &r.reply} {
		h.Init(&r.arena)
	}
	r.req.Add(http.Method, "GET")
	r.reqTrailers.AddName("a", "1")
	r.resp.Add(http.Status, "200")
	r.respTrailers.AddName("a", "1")
	r.s.Init(r, chain, limit)
}

// end is what hcm does at a stream's end.
func (r *rig) end() {
	if r.over || r.stay {
		return
	}
	r.over = true
	r.s.Complete()
	r.s.Destroy()
}

// close ends the stream and checks that everything came back.
func (r *rig) close() {
	r.t.Helper()
	r.end()
	r.run()
	r.arena.Release()
	if n := r.w.Bufs.Live(); n != 0 {
		r.t.Errorf("%d slabs are still in use", n)
	}
	if n := r.w.Arenas.Live(); n != 0 {
		r.t.Errorf("%d chunks of arenas are still in use", n)
	}
	for _, p := range append(r.filters, r.term.probe) {
		if !p.destroyed || !p.done {
			r.t.Errorf("%s was not told of the end", p.name)
		}
	}
}

// run runs posts until there are none.
func (r *rig) run() {
	for !r.w.Idle() {
		r.w.Step(false)
	}
}

// borrow returns a buffer of borrowed memory, which drop overwrites: who kept a view of it shows.
func (r *rig) borrow(text string) (b *buffer.Buffer, drop func()) {
	r.scratch = append(r.scratch[:0], text...)
	b = &buffer.Buffer{}
	b.Init(&r.w.Bufs)
	b.Borrow(r.scratch)
	return b, func() {
		if b.Len() > 0 && !r.over {
			r.t.Errorf("%d bytes were left over", b.Len())
		}
		b.Reset()
		for i := range r.scratch {
			r.scratch[i] = '#'
		}
	}
}

// owned returns a buffer with a copy of text.
func (r *rig) owned(text string) *buffer.Buffer {
	b := &buffer.Buffer{}
	b.Init(&r.w.Bufs)
	b.AppendString(text)
	return b
}

// shape is a message to send.
type shape struct {
	chunks   []string
	trailers bool
}

func (x shape) body() string { return strings.Join(x.chunks, "") }
func (x shape) tail() []string {
	if x.trailers {
		return []string{"a=1"}
	}
	return nil
}

// send lets a message enter on one side.
func (r *rig) send(decode bool, x shape) {
	n := len(x.chunks)
	r.sendHead(decode, n == 0 && !x.trailers)
	for i, c := range x.chunks {
		r.sendData(decode, c, i == n-1 && !x.trailers)
	}
	if x.trailers {
		r.sendTrailers(decode)
	}
}

func (r *rig) sendHead(decode, end bool) {
	switch {
	case r.over:
	case decode:
		r.s.DecodeHeaders(&r.req, end)
	default:
		r.s.EncodeHeaders(&r.resp, end)
	}
}

func (r *rig) sendData(decode bool, text string, end bool) {
	if r.over {
		return
	}
	b, drop := r.borrow(text)
	if decode {
		r.s.DecodeData(b, end)
	} else {
		r.s.EncodeData(b, end)
	}
	drop()
}

func (r *rig) sendTrailers(decode bool) {
	switch {
	case r.over:
	case decode:
		r.s.DecodeTrailers(&r.reqTrailers)
	default:
		r.s.EncodeTrailers(&r.respTrailers)
	}
}

// arrived is what came out at the far end of a side.
func (r *rig) arrived(decode bool) *seen {
	if decode {
		return &r.term.dec
	}
	return &r.got
}

// The methods below make rig an fm.Owner.

func (r *rig) Worker() *event.Worker          { return r.w }
func (r *rig) Info() *stream.Info             { return &r.info }
func (r *rig) Connection() network.Connection { return nil }
func (r *rig) Arena() *http.Arena             { return &r.arena }
func (r *rig) Route() route.Entry             { return r.rt }
func (r *rig) ClearRouteCache()               {}
func (r *rig) Send1xx(*http.HeaderMap)        { r.infos++ }

func (r *rig) SendHeaders(h *http.HeaderMap, end bool) {
	r.got.head(end)
	if end {
		r.end()
	}
}

func (r *rig) SendData(data *buffer.Buffer, end bool) {
	r.got.data(data.Bytes(), end)
	data.Reset()
	if end {
		r.end()
	}
}

func (r *rig) SendTrailers(h *http.HeaderMap) {
	r.got.trailer(h)
	r.end()
}

func (r *rig) PrepareLocalReply(l *filter.LocalReply) (*http.HeaderMap, string) {
	r.reply.Init(&r.arena)
	r.reply.Add(http.Status, fmt.Sprint(l.Code))
	if l.Modify != nil {
		l.Modify(&r.reply)
	}
	return &r.reply, l.Body
}

func (r *rig) TooLarge(request bool) { r.tooLarge[index(request)]++ }

func (r *rig) ReadDisable(disable bool) {
	if disable {
		r.reads++
		r.maxReads = max(r.maxReads, r.reads)
		return
	}
	if r.reads--; r.reads < 0 {
		r.t.Errorf("reading was let go more often than held")
	}
}

func (r *rig) Recreate(body *buffer.Buffer, _ *http.HeaderMap) bool {
	return r.recreate != nil && r.recreate(body)
}

func (r *rig) Reset(http.ResetReason) {
	if r.over {
		r.t.Errorf("reset after the end")
	}
	r.resets++
	r.end()
}

func (r *rig) Send(c *filter.Call, done func(*filter.Answer, error)) filter.Canceler {
	k := &sending{call: c, done: done}
	r.calls = append(r.calls, k)
	return k
}

// sending is a call that a filter has started; the test answers it.
type sending struct {
	call     *filter.Call
	done     func(*filter.Answer, error)
	canceled bool
}

func (k *sending) Cancel() { k.canceled = true }
