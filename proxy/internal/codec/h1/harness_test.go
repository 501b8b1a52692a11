package h1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
)

// output collects what a codec writes.
type output struct {
	buf     buffer.Buffer
	written strings.Builder
	stuck   bool // nothing is sent: Buffered counts
}

func newOutput(p *buffer.Pool) *output {
	o := &output{}
	o.buf.Init(p)
	return o
}

func (o *output) Out() *buffer.Buffer { return &o.buf }
func (o *output) WriteData(d *buffer.Buffer) {
	o.buf.Move(d)
}
func (o *output) Buffered() int { return o.buf.Len() }
func (o *output) flush() string {
	s := string(o.buf.Bytes())
	o.buf.Reset()
	return s
}

// world is the memory of a worker, all poisoned when it is given back.
type world struct {
	bufs   buffer.Pool
	arenas http.ArenaPool
	pool   h1.Pool
}

func newWorld(t testing.TB) *world {
	w := &world{}
	w.bufs.Poison, w.arenas.Poison = true, true
	t.Cleanup(func() {
		if n := w.bufs.Live(); n != 0 {
			t.Errorf("%d slabs leaked", n)
		}
		if n := w.arenas.Live(); n != 0 {
			t.Errorf("%d arena chunks leaked", n)
		}
		if n := w.pool.Live(); n != 0 {
			t.Errorf("%d messages leaked", n)
		}
	})
	return w
}

func fields(h *http.HeaderMap) string {
	var b strings.Builder
	for i, f := range h.All() {
		if i > 0 {
			b.WriteByte('|')
		}
		fmt.Fprintf(&b, "%s=%s", f.Name, f.Value)
		if f.ID != http.Lookup(f.Name) {
			panic("wrong id of " + f.Name)
		}
	}
	return b.String()
}

// user is the HTTP connection manager of the tests: it logs events and may answer requests at once.
type user struct {
	w       *world
	out     *output
	s       *h1.Server
	opts    *h1.Options
	log     []string
	dropped int
	reqs    []*userStream
	onHead  func(r *userStream, end bool)
	onEnd   func(r *userStream)
	onAny   func(r *userStream) // within every callback
	// onComplete is the last chance to look at a stream
	onComplete func(r *userStream)
	relay      *relay // gets the first request, if set
	merge      bool   // log neighbouring data events as one
}

type userStream struct {
	u      *user
	s      codec.ServerStream
	h      http.HeaderMap
	resp   http.HeaderMap
	arena  http.Arena
	proto  http.Proto
	closes bool
	done   bool
}

func newUser(t testing.TB, opts *h1.Options) *user {
	u := &user{w: newWorld(t), opts: opts}
	u.out = newOutput(&u.w.bufs)
	u.s = h1.NewServer(u, u.out, opts, &u.w.pool)
	t.Cleanup(u.close)
	return u
}

func (u *user) close() {
	u.s.Destroy()
	for _, r := range u.reqs {
		r.free()
	}
	u.out.buf.Reset()
}

func (r *userStream) free() {
	r.h.Release()
	r.resp.Release()
	r.arena.Release()
}

func (u *user) logf(format string, args ...any) { u.log = append(u.log, fmt.Sprintf(format, args...)) }

func (u *user) events() string {
	s := strings.Join(u.log, "\n")
	u.log = u.log[:0]
	return s
}

// feed gives the server b in pieces of n bytes (0: all at once), with what was not consumed before.
func (u *user) feed(b string, n int) (rest string, err error) {
	if n == 0 {
		n = len(b)
	}
	for len(b) > 0 && err == nil {
		k := min(n, len(b))
		// A private copy that is overwritten: whoever keeps a view is found out.
		p := []byte(rest + b[:k])
		used := 0
		used, err = u.s.Dispatch(p)
		rest = string(p[used:])
		for i := range p {
			p[i] = 0xdb
		}
		b = b[k:]
	}
	return rest, err
}

func (u *user) NewStream(s codec.ServerStream) (codec.RequestDecoder, *http.HeaderMap) {
	r := &userStream{u: u, s: s}
	r.arena.Init(&u.w.arenas)
	r.h.Init(&r.arena)
	r.resp.Init(&r.arena)
	u.reqs = append(u.reqs, r)
	u.logf("new %d", s.ID())
	r.any()
	if u.relay != nil && u.relay.userStream == nil {
		u.relay.userStream = r
		return u.relay, &r.h
	}
	return r, &r.h
}

func (r *userStream) any() {
	if r.u.onAny != nil {
		r.u.onAny(r)
	}
}

func (u *user) OnDroppedUnderscores(n int) { u.dropped += n }

func (u *user) OnGoAway() { u.logf("goaway") }

func (r *userStream) DecodeHeaders(h *http.HeaderMap, end bool) {
	if h != &r.h {
		panic("another map")
	}
	r.proto = r.u.s.Protocol()
	r.u.logf("head %s end=%v", fields(h), end)
	r.any()
	if r.u.onHead != nil {
		r.u.onHead(r, end)
	}
	if end && r.u.onEnd != nil && !r.done {
		r.u.onEnd(r)
	}
}

func (r *userStream) DecodeData(d *buffer.Buffer, end bool) {
	b := string(d.Bytes())
	if k := len(r.u.log); r.u.merge && k > 0 && strings.HasPrefix(r.u.log[k-1], "data ") && strings.HasSuffix(r.u.log[k-1], " end=false") {
		r.u.log[k-1] = fmt.Sprintf("%s%s end=%v", strings.TrimSuffix(r.u.log[k-1], " end=false"), b, end)
	} else {
		r.u.logf("data %s end=%v", b, end)
	}
	r.any()
	if end && r.u.onEnd != nil && !r.done {
		r.u.onEnd(r)
	}
}

func (r *userStream) DecodeTrailers(h *http.HeaderMap) {
	r.u.logf("trailers %s", fields(h))
	r.any()
	if r.u.onEnd != nil && !r.done {
		r.u.onEnd(r)
	}
}

func (r *userStream) DecodeError(e *codec.Err) {
	r.u.logf("error %d %s", e.Status, e.Details)
	r.any()
	if r.done {
		return
	}
	r.respond(fmt.Sprint(e.Status), e.Body, "connection", "close")
}

func (r *userStream) OnReset(reason http.ResetReason, details string) {
	r.u.logf("reset %s", reason)
}
func (r *userStream) OnAboveHighWatermark() { r.u.logf("above") }
func (r *userStream) OnBelowLowWatermark()  { r.u.logf("below") }
func (r *userStream) OnEncodeComplete() {
	r.done = true
	r.closes = r.s.CloseAfter()
	r.u.logf("complete close=%v", r.closes)
	if r.u.onComplete != nil {
		r.u.onComplete(r)
	}
}

// respond sends a whole response with a content-length.
func (r *userStream) respond(status, body string, nv ...string) {
	h := &r.resp
	h.Init(&r.arena)
	h.Add(http.Status, status)
	for i := 0; i < len(nv); i += 2 {
		h.AddName(nv[i], nv[i+1])
	}
	if body != "" {
		h.Add(http.ContentLength, fmt.Sprint(len(body)))
	}
	r.s.EncodeHeaders(h, body == "")
	if body != "" {
		r.data(body, true)
	}
}

func (r *userStream) data(body string, end bool) {
	var b buffer.Buffer
	b.Init(&r.u.w.bufs)
	b.AppendString(body)
	r.s.EncodeData(&b, end)
	if b.Len() != 0 {
		panic("data left")
	}
}
