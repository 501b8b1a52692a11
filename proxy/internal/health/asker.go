package health

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// judge knows what is asked over HTTP, and what the answers mean. Its methods are called one after the other for each request.
type judge interface {
	// two tells whether HTTP/2 is spoken.
	two() bool
	// request fills the head and returns the body.
	request(h *http.HeaderMap, secure bool, inf *stream.Info) []byte
	// head, body and trailers tell whether the outcome is known before the end of the answer.
	head(h *http.HeaderMap, end bool) (known bool)
	body(b *buffer.Buffer) (known bool)
	trailers(h *http.HeaderMap)
	// outcome is the verdict.
	outcome() verdict
}

// Edit changes the head of a request.
type Edit func(w *event.Worker, h *http.HeaderMap, inf *stream.Info)

// verdict is what an answer means.
type verdict struct {
	ok, degraded, retriable bool
	// closes: the connection is not to be used again.
	closes bool
	status int // HTTP's, 0 if it does not count
}

// asker asks over HTTP, one request at a time, on a connection of its own.
type asker struct {
	s    *session
	j    judge
	link *link // nil: no connection

	arena     http.Arena
	req, resp http.HeaderMap
	inf       stream.Info
	stream    codec.ClientStream
	busy      bool // a request is under way, or waits for the connection
	sent      bool
}

// link is one connection; a is nil once nobody cares for it any more.
type link struct {
	nc      conn.Conn
	codec   codec.ClientConn // nil until it is connected
	a       *asker
	secure  bool
	spent   bool // not to be used again
	reading bool
}

func newAsker(s *session, j judge) *asker { return &asker{s: s, j: j} }

func (a *asker) ask() {
	a.busy = true
	if a.link != nil {
		a.send()
		return
	}
	c := a.s.c
	l := &link{a: a}
	a.link = l
	l.secure = pool.DialCheck(&l.nc, c.Worker, c.Pools, a.s.h, a.s.h.HealthAddress(), l)
}

// send sends the request on a connection that is up.
func (a *asker) send() {
	w, l := a.s.c.Worker, a.link
	a.sent = true
	a.arena.Init(&w.Arenas)
	a.req.Init(&a.arena)
	a.resp.Init(&a.arena)
	a.inf.Reset()
	a.inf.Start, a.inf.StartWall = w.Now(), w.Wall()
	a.inf.Protocol = http.HTTP11
	if a.j.two() {
		a.inf.Protocol = http.HTTP2
	}
	a.inf.RequestHeaders = &a.req
	body := a.j.request(&a.req, l.secure, &a.inf)
	a.stream = l.codec.NewStream(a, &a.resp)
	if err := a.stream.EncodeHeaders(&a.req, len(body) == 0); err != nil {
		a.lost()
		return
	}
	if len(body) > 0 {
		var b buffer.Buffer
		b.Init(&w.Bufs)
		b.Append(body)
		a.stream.EncodeData(&b, true)
		b.Reset()
	}
}

// idle gives back what a request took.
func (a *asker) idle() {
	a.busy = false
	if a.sent {
		a.sent, a.stream = false, nil
		a.req.Release()
		a.resp.Release()
		a.arena.Release()
	}
}

func (a *asker) giveUp() { a.close() }

func (a *asker) close() {
	if l := a.link; l != nil {
		a.link, l.a = nil, nil
		l.nc.Close(network.NoFlush, "")
	}
	a.idle()
}

// done ends a check: the answer is complete, or enough of it.
func (a *asker) done(whole bool) {
	v := a.j.outcome()
	switch {
	case v.closes || a.s.c.Options.NoReuse || a.link.spent || !whole && !a.j.two():
		a.close()
	case !whole:
		st := a.stream
		a.idle()
		st.Reset(http.ResetLocal)
	default:
		a.idle()
	}
	if v.ok {
		a.s.succeeded(v.degraded)
		return
	}
	a.s.failedCheck(byAnswer, v)
}

// lost ends a check that gets no answer.
func (a *asker) lost() {
	a.close()
	a.s.failedCheck(noAnswer, verdict{})
}

// Decode1xx implements codec.ResponseDecoder.
func (a *asker) Decode1xx(*http.HeaderMap) {}

// DecodeHeaders implements codec.ResponseDecoder.
func (a *asker) DecodeHeaders(h *http.HeaderMap, end bool) {
	if known := a.j.head(h, end); known || end {
		a.done(end)
	}
}

// DecodeData implements codec.ResponseDecoder.
func (a *asker) DecodeData(b *buffer.Buffer, end bool) {
	if !a.busy {
		b.Reset()
		return
	}
	known := a.j.body(b)
	b.Reset()
	if known || end {
		a.done(end)
	}
}

// DecodeTrailers implements codec.ResponseDecoder.
func (a *asker) DecodeTrailers(h *http.HeaderMap) {
	if a.busy {
		a.j.trailers(h)
		a.done(true)
	}
}

// OnReset implements codec.ResponseDecoder.
func (a *asker) OnReset(http.ResetReason, string) {
	if !a.busy {
		return
	}
	if a.j.two() && a.link != nil && !a.link.spent && !a.s.c.Options.NoReuse { // the connection may carry the next one
		a.idle()
		a.s.failedCheck(noAnswer, verdict{})
		return
	}
	a.lost()
}

// OnAboveHighWatermark implements codec.ResponseDecoder.
func (a *asker) OnAboveHighWatermark() {}

// OnBelowLowWatermark implements codec.ResponseDecoder.
func (a *asker) OnBelowLowWatermark() {}

// drop makes the next check make a connection of its own. One that is reading is closed when it is done with that.
func (l *link) drop() {
	l.spent = true
	if a := l.a; a != nil && !a.busy && !l.reading {
		a.close()
	}
}

// OnStreamDone implements codec.ClientHandler.
func (l *link) OnStreamDone(reusable bool) {
	if !reusable {
		l.drop()
	}
}

// OnGoAway implements codec.ClientHandler.
func (l *link) OnGoAway() { l.drop() }

// OnMaxStreams implements codec.ClientHandler.
func (l *link) OnMaxStreams(int) {}

// OnConnected implements conn.Handler.
func (l *link) OnConnected() {
	a := l.a
	if a == nil {
		return
	}
	l.codec = pool.NewCodec(&l.nc, a.s.c.Worker, a.s.c.Pools, a.j.two(), l)
	if a.busy {
		a.send()
	}
}

// OnData implements conn.Handler.
func (l *link) OnData(b []byte) int {
	l.reading = true
	n, err := l.codec.Dispatch(b)
	l.reading = false
	switch a := l.a; {
	case a == nil: // somebody closed it meanwhile
	case err != nil && a.busy:
		a.lost()
	case err != nil || l.spent && !a.busy:
		a.close()
	}
	return n
}

// OnEOF implements conn.Handler.
func (l *link) OnEOF() {
	l.spent = true
	if l.codec != nil {
		_ = l.codec.EOF() // may complete the answer
	}
	l.nc.Close(network.NoFlush, "")
}

// OnHighWatermark implements conn.Handler.
func (l *link) OnHighWatermark() {
	if l.codec != nil {
		l.codec.OnHighWatermark()
	}
}

// OnLowWatermark implements conn.Handler.
func (l *link) OnLowWatermark() {
	if l.codec != nil {
		l.codec.OnLowWatermark()
	}
}

// OnClose implements conn.Handler.
func (l *link) OnClose(conn.Closed) {
	a := l.a
	l.a = nil
	if l.codec != nil {
		l.codec.Destroy()
	}
	if a == nil {
		return
	}
	a.link = nil
	if a.busy {
		a.lost()
	}
}

// Edits does one after the other; nil ones do nothing.
func Edits(list ...Edit) Edit {
	return func(w *event.Worker, h *http.HeaderMap, inf *stream.Info) {
		for _, e := range list {
			if e != nil {
				e(w, h, inf)
			}
		}
	}
}
