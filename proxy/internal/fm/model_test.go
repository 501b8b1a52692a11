package fm_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/filter"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/internal/invariant"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// This file holds the manager against a model: a filter as a box that gets items and gives items, as the contract in api/filter
// describes it, without borrowed memory, limits or a way back.

// item is a part of a message on its way.
type item struct {
	kind byte // h, d, t
	text string
	end  bool
}

// decision is what a filter does in one callback: first it adds, then it injects, then it makes trailers (at the end), then it
// returns a status.
type decision struct {
	status   int
	add      string
	inject   string
	finish   bool // the injected bytes end the message
	trailers bool
}

func (d decision) String() string {
	return fmt.Sprintf("{%d add=%q inject=%q,%v trailers=%v}", d.status, d.add, d.inject, d.finish, d.trailers)
}

// box is the model of a filter in one direction.
type box struct {
	script script
	next   *box
	got    seen

	open, sawHead, sawEnd           bool
	headHeld, endHeld, trailersHeld bool
	kept                            string
	ahead                           []item
	made                            *bool // trailers exist
	over                            *bool // the stream is: a response ends it
}

// script is what a filter does, callback by callback. After its end it continues.
type script struct {
	head     decision
	data     []decision
	trailers decision
	used     int
}

func (s *script) nextData() decision {
	if s.used == len(s.data) {
		return decision{}
	}
	s.used++
	return s.data[s.used-1]
}

func (b *box) feed(it item) {
	switch {
	case b.sawEnd || *b.over:
	case it.kind != 'h' && !b.open:
		if n := len(b.ahead); n > 0 {
			last := &b.ahead[n-1]
			if last.end || last.kind == 't' {
				return
			}
			if last.kind == 'd' && it.kind == 'd' {
				last.text, last.end = last.text+it.text, it.end
				return
			}
		}
		b.ahead = append(b.ahead, it)
	default:
		b.deliver(it)
	}
}

func (b *box) deliver(it item) {
	switch it.kind {
	case 'h':
		b.sawHead, b.headHeld = true, true
		b.sawEnd, b.endHeld = it.end, it.end
		b.got.head(it.end)
	case 'd':
		b.got.data([]byte(it.text), it.end)
		if it.end {
			b.sawEnd, b.endHeld = true, true
		}
	case 't':
		b.got.note('t', true)
		b.sawEnd, b.trailersHeld = true, true
	}
	if b.next == nil {
		*b.over = b.script.used < 0 && b.got.ends > 0
		return
	}
	var d decision
	switch it.kind {
	case 'h':
		d = b.script.head
	case 'd':
		d = b.script.nextData()
	case 't':
		d = b.script.trailers
	}
	b.act(d)
	b.apply(it, d)
}

// act does what is done within a callback, or outside.
func (b *box) act(d decision) {
	b.add(d.add)
	if d.inject != "" {
		b.inject(d.inject, d.finish)
	}
	if d.trailers && b.endHeld && !*b.made && !*b.over {
		b.endHeld, b.trailersHeld, *b.made = false, true, true
	}
}

func (b *box) takes() bool {
	return !*b.over && b.sawHead && (!b.sawEnd || b.endHeld || b.trailersHeld)
}

func (b *box) add(text string) {
	if b.takes() {
		b.kept += text
	}
}

func (b *box) inject(text string, end bool) {
	if !b.takes() {
		return
	}
	trailers := end && b.trailersHeld
	if end {
		b.endHeld, b.trailersHeld = false, false
	}
	if b.headHeld {
		b.headHeld = false
		b.next.feed(item{'h', "", false})
	}
	b.next.feed(item{'d', text, end && !trailers})
	if trailers {
		b.next.feed(item{'t', "", true})
	}
}

func (b *box) apply(it item, d decision) {
	if *b.over {
		return
	}
	switch it.kind {
	case 'h':
		switch filter.HeadersStatus(d.status) {
		case filter.HeadersContinue:
			b.open = true
			b.letGo()
		case filter.HeadersContinueAndDontEndStream:
			b.open = true
			end, trailers := b.endHeld, b.trailersHeld
			b.endHeld, b.trailersHeld = false, false
			b.letGo()
			b.endHeld, b.trailersHeld = end, trailers
		case filter.HeadersStopIteration:
			b.open = true
		}
	case 'd':
		switch filter.DataStatus(d.status) {
		case filter.DataContinue:
			b.kept += it.text
			b.letGo()
		case filter.DataStopIterationAndBuffer, filter.DataStopIterationAndWatermark:
			b.kept += it.text
		}
	case 't':
		if d.status == 0 {
			b.letGo()
		}
	}
}

func (b *box) letGo() {
	head, body, end, trailers := b.headHeld, b.kept, b.endHeld, b.trailersHeld
	b.headHeld, b.kept, b.endHeld, b.trailersHeld = false, "", false, false
	only := end && body == ""
	if head {
		b.next.feed(item{'h', "", only})
	}
	if body != "" || end && !(head && only) {
		b.next.feed(item{'d', body, end})
	}
	if trailers {
		b.next.feed(item{'t', "", true})
	}
	list := b.ahead
	b.ahead = nil
	for _, it := range list {
		b.feed(it)
	}
}

func (b *box) resume() {
	if b.sawHead && !*b.over {
		b.open = true
		b.letGo()
	}
}

// scripted makes p do what a script says, in one direction.
func scripted(p *probe, r **rig, decode bool, s script) {
	act := func(d decision) {
		w := &(*r).w.Bufs
		buf := func(text string) *buffer.Buffer {
			b := &buffer.Buffer{}
			b.Init(w)
			b.AppendString(text)
			return b
		}
		perform(p, decode, d, buf)
	}
	p.onHeaders = func(dec bool, _ *http.HeaderMap, end bool) filter.HeadersStatus {
		if dec != decode {
			return filter.HeadersContinue
		}
		act(s.head)
		return filter.HeadersStatus(s.head.status)
	}
	p.onData = func(dec bool, _ *buffer.Buffer, _ bool) filter.DataStatus {
		if dec != decode {
			return filter.DataContinue
		}
		d := s.nextData()
		act(d)
		return filter.DataStatus(d.status)
	}
	p.onTrailers = func(dec bool, _ *http.HeaderMap) filter.TrailersStatus {
		if dec != decode {
			return filter.TrailersContinue
		}
		act(s.trailers)
		return filter.TrailersStatus(s.trailers.status)
	}
}

// perform is act of the real thing.
func perform(p *probe, decode bool, d decision, buf func(string) *buffer.Buffer) {
	add, inject, trailers := p.CB.AddDecodedData, p.CB.InjectDecodedData, p.CB.AddDecodedTrailers
	if !decode {
		add, inject, trailers = p.CB.AddEncodedData, p.CB.InjectEncodedData, p.CB.AddEncodedTrailers
	}
	if d.add != "" {
		add(buf(d.add), false)
	}
	if d.inject != "" {
		inject(buf(d.inject), d.finish)
	}
	if d.trailers {
		trailers()
	}
}

func drawDecision(t *rapid.T, kind byte, mayEnd bool) decision {
	d := decision{}
	statuses := map[byte]int{'h': 4, 'd': 3, 't': 1}[kind]
	if rapid.IntRange(0, 2).Draw(t, "acts") > 0 {
		d.status = rapid.IntRange(0, statuses).Draw(t, "status")
	}
	if kind == 'h' && filter.HeadersStatus(d.status) == filter.HeadersContinueAndDontEndStream && !mayEnd {
		d.status = 0
	}
	d.add = rapid.SampledFrom([]string{"", "", "+", "++"}).Draw(t, "add")
	d.inject = rapid.SampledFrom([]string{"", "", "!", "!!"}).Draw(t, "inject")
	d.finish = d.inject != "" && rapid.IntRange(0, 5).Draw(t, "finish") == 0
	return d
}

// operation is something that happens from outside: the next part enters, or a filter goes on or does something on its own.
type operation struct {
	enter  bool
	filter int
	resume bool
	act    decision
}

// TestAgainstModel compares random chains, messages and orders of events with the model: what the far end sees, and what each
// filter sees.
func TestAgainstModel(t *testing.T) {
	w := newWorker()
	defer invariant.Record()() // filters that make trailers after their end
	rapid.Check(t, func(t *rapid.T) { compareWithModel(t, w) })
}

func compareWithModel(t *rapid.T, w *event.Worker) {
	decode := rapid.Bool().Draw(t, "decode")
	n := rapid.IntRange(1, 4).Draw(t, "filters")
	var message []item
	chunks := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "bc", "def"}), 0, 3).Draw(t, "chunks")
	trailers := rapid.Bool().Draw(t, "trailers")
	message = append(message, item{'h', "", len(chunks) == 0 && !trailers})
	for i, c := range chunks {
		message = append(message, item{'d', c, i == len(chunks)-1 && !trailers})
	}
	if trailers {
		message = append(message, item{'t', "", true})
	}

	// The model's chain ends in a box that only looks.
	made := trailers
	boxes := make([]*box, n+1)
	over := false
	boxes[n] = &box{open: true, over: &over}
	if !decode {
		boxes[n].script.used = -1 // its end is the stream's
	}
	probes := make([]*probe, n)
	var r *rig
	for i := n - 1; i >= 0; i-- {
		s := script{head: drawDecision(t, 'h', message[0].end && i == 0), trailers: drawDecision(t, 't', true)}
		s.head.trailers = message[0].end && i == 0 && rapid.Bool().Draw(t, "makes trailers")
		for range rapid.IntRange(0, 3).Draw(t, "decisions") {
			s.data = append(s.data, drawDecision(t, 'd', true))
		}
		boxes[i] = &box{script: s, next: boxes[i+1], made: &made, over: &over}
		k := i
		if !decode {
			k = n - 1 - i
		}
		probes[k] = &probe{}
		scripted(probes[k], &r, decode, s)
	}
	r = newRig(t, w, 0, probes...)
	at := func(i int) *probe {
		if decode {
			return probes[i]
		}
		return probes[n-1-i]
	}
	if !decode {
		r.send(true, shape{})
	}
	defer r.close()
	enter := func() {
		it := message[0]
		message = message[1:]
		boxes[0].feed(it)
		switch it.kind {
		case 'h':
			r.sendHead(decode, it.end)
		case 'd':
			r.sendData(decode, it.text, it.end)
		case 't':
			r.sendTrailers(decode)
		}
	}
	resume := func(i int) {
		boxes[i].resume()
		if p := at(i); !p.destroyed && decode {
			p.CB.ContinueDecoding()
		} else if !p.destroyed {
			p.CB.ContinueEncoding()
		}
	}
	for range rapid.IntRange(0, 12).Draw(t, "events") {
		i := rapid.IntRange(0, n-1).Draw(t, "filter")
		switch rapid.IntRange(0, 3).Draw(t, "event") {
		case 0, 1:
			if len(message) > 0 {
				enter()
			}
		case 2:
			resume(i)
		case 3:
			d := drawDecision(t, 'd', false)
			boxes[i].act(d)
			if p := at(i); !p.destroyed && p.CB != nil {
				perform(p, decode, d, r.owned)
			}
		}
	}
	for len(message) > 0 {
		enter()
	}
	for range n + 1 {
		for i := range n {
			resume(i)
		}
	}
	for i, b := range boxes {
		var got *seen
		if i < n {
			got = at(i).side(decode)
		} else {
			got = r.arrived(decode)
		}
		if got.order != b.got.order || got.body.String() != b.got.body.String() || got.ends != b.got.ends {
			t.Errorf("place %d of %d saw %s, the model %s", i, n, got, &b.got)
		}
	}
	if end := boxes[n].got.ends; end != 1 && boxes[n].got.heads > 0 && len(chunks) >= 0 && !dropped(boxes) {
		t.Errorf("the end came %d times", end)
	}
}

// dropped tells whether a filter still holds something.
func dropped(boxes []*box) bool {
	for _, b := range boxes[:len(boxes)-1] {
		if b.endHeld || b.trailersHeld || b.headHeld || len(b.ahead) > 0 {
			return true
		}
	}
	return false
}

// TestRandomEnds has random filters reply and reset in random callbacks. There is no model: what every filter and every client is
// promised must hold (the probes check it), nothing may leak, and nothing may be called after the end.
func TestRandomEnds(t *testing.T) {
	w := newWorker()
	stop := invariant.Record()
	defer stop()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "filters")
		probes := make([]*probe, n)
		var r *rig
		for i := range probes {
			probes[i] = &probe{}
			randomEnds(t, probes[i], &r)
		}
		r = newRig(t, w, rapid.SampledFrom([]int{0, 4, 64}).Draw(t, "limit"), probes...)
		x := shape{rapid.SliceOfN(rapid.SampledFrom([]string{"a", "bc", "defdef"}), 0, 3).Draw(t, "chunks"), rapid.Bool().Draw(t, "trailers")}
		for _, decode := range []bool{true, false} {
			r.sendHead(decode, len(x.chunks) == 0 && !x.trailers)
			for i, c := range x.chunks {
				if rapid.Bool().Draw(t, "pause") {
					r.run()
				}
				r.sendData(decode, c, i == len(x.chunks)-1 && !x.trailers)
			}
			if x.trailers {
				r.sendTrailers(decode)
			}
			r.run()
		}
		if r.got.heads > 1 || r.got.ends > 1 {
			t.Errorf("the client saw %s", &r.got)
		}
		for _, p := range append(probes, r.term.probe) {
			if p.dec.heads > 1 || p.enc.heads > 1 || p.dec.ends > 1 || p.enc.ends > 1 {
				t.Errorf("%s saw %s and %s", p.name, &p.dec, &p.enc)
			}
		}
		r.close()
		if r.reads != 0 && r.maxReads == 0 {
			t.Errorf("%d reads are held back", r.reads)
		}
	})
}

// randomEnds makes p do anything at any time.
func randomEnds(t *rapid.T, p *probe, r **rig) {
	act := func() {
		do := func() {
			if p.destroyed {
				return
			}
			switch rapid.IntRange(0, 9).Draw(t, "act") {
			case 0:
				body := rapid.SampledFrom([]string{"", "no", "no such thing"}).Draw(t, "body")
				p.CB.SendLocalReply(&filter.LocalReply{Code: 403, Body: body, GRPCStatus: -1})
			case 1:
				p.CB.ResetStream(http.ResetLocal)
			case 2:
				p.CB.ContinueDecoding()
			case 3:
				p.CB.ContinueEncoding()
			case 4:
				p.CB.AddDecodedData((*r).owned("+"), rapid.Bool().Draw(t, "streaming"))
			case 5:
				p.CB.InjectEncodedData((*r).owned("!"), rapid.Bool().Draw(t, "end"))
			case 6:
				p.CB.SetBufferLimit(rapid.IntRange(0, 5).Draw(t, "limit"))
			}
		}
		if rapid.Bool().Draw(t, "later") {
			(*r).w.Post(do)
			return
		}
		do()
	}
	p.onHeaders = func(_ bool, _ *http.HeaderMap, end bool) filter.HeadersStatus {
		act()
		st := rapid.IntRange(0, 4).Draw(t, "status")
		if !end && st == int(filter.HeadersContinueAndDontEndStream) {
			st = 0
		}
		return filter.HeadersStatus(st)
	}
	p.onData = func(bool, *buffer.Buffer, bool) filter.DataStatus {
		act()
		return filter.DataStatus(rapid.IntRange(0, 3).Draw(t, "status"))
	}
	p.onTrailers = func(bool, *http.HeaderMap) filter.TrailersStatus {
		act()
		return filter.TrailersStatus(rapid.IntRange(0, 1).Draw(t, "status"))
	}
	p.onComplete = func(bool) { act() }
	p.onReply = func(*filter.LocalReply) filter.LocalReplyStatus {
		return filter.LocalReplyStatus(rapid.IntRange(0, 4).Draw(t, "reset") / 4)
	}
}
