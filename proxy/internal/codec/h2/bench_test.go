package h2_test

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
)

const benchStreams = 32

var body1k = bytes.Repeat([]byte("x"), 1024)

// worker is the memory of a worker without the checks of the other tests.
type worker struct {
	buffers buffer.Pool
	arenas  http.ArenaPool
	streams h2.Pool
	wire    []byte
}

// echo is the least server: it answers each request with a fixed head and 1 KiB.
type echo struct {
	w    *worker
	out  sink
	c    *h2.Server
	free []*echoStream
	done int
	date string
}

type echoStream struct {
	e         *echo
	x         codec.ServerStream
	req, resp http.HeaderMap
	arena     http.Arena
	body      buffer.Buffer
}

func newEcho(w *worker) *echo {
	e := &echo{w: w, date: "Tue, 01 Sep 2026 10:00:00 GMT"}
	e.out.buf.Init(&w.buffers)
	opts := h2.DefaultOptions()
	e.c = h2.NewServer(e, &e.out, &w.streams, &opts)
	return e
}

func (e *echo) NewStream(x codec.ServerStream) (codec.RequestDecoder, *http.HeaderMap) {
	var st *echoStream
	if k := len(e.free); k > 0 {
		st = e.free[k-1]
		e.free = e.free[:k-1]
	} else {
		st = &echoStream{e: e}
		st.arena.Init(&e.w.arenas)
		st.body.Init(&e.w.buffers)
	}
	st.x = x
	st.req.Init(&st.arena)
	st.resp.Init(&st.arena)
	return st, &st.req
}

func (e *echo) OnGoAway() {}

func (st *echoStream) DecodeHeaders(h *http.HeaderMap, end bool) {
	if end {
		st.answer()
	}
}

func (st *echoStream) DecodeData(d *buffer.Buffer, end bool) {
	if end {
		st.answer()
	}
}

func (st *echoStream) answer() {
	r := &st.resp
	r.AddConst(http.Status, "200")
	r.AddConst(http.ContentType, "text/plain")
	r.AddConst(http.ContentLength, "1024")
	r.AddConst(http.Date, st.e.date)
	r.AddConst(http.Server, "envoy")
	r.AddConst(http.EnvoyUpstreamServiceTime, "3")
	st.x.EncodeHeaders(r, false)
	st.body.Borrow(body1k)
	st.x.EncodeData(&st.body, true)
}

func (st *echoStream) DecodeTrailers(h *http.HeaderMap)          { st.answer() }
func (st *echoStream) DecodeError(err *codec.Err)                {}
func (st *echoStream) OnReset(reason http.ResetReason, d string) {}
func (st *echoStream) OnAboveHighWatermark()                     {}
func (st *echoStream) OnBelowLowWatermark()                      {}
func (st *echoStream) OnEncodeComplete() {
	st.e.done++
	st.req.Release()
	st.resp.Release()
	st.arena.Release()
	st.e.free = append(st.e.free, st)
}

// batches returns a preface and then batches of requests, all to be replayed: ids go up.
func request(w *wire) []string {
	return []string{":method=GET", ":scheme=https", ":path=/1k", ":authority=www.example.com",
		"user-agent=Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", "accept=text/html,application/xhtml+xml",
		"accept-encoding=gzip, deflate, br", "cookie=session=0123456789abcdef0123456789abcdef", "x-custom=abc"}
}

// patch sets the stream ids of a batch of equal HEADERS frames.
func patch(b []byte, frame int, id uint32) uint32 {
	for ; len(b) > 0; b = b[frame:] {
		b[5], b[6], b[7], b[8] = byte(id>>24), byte(id>>16), byte(id>>8), byte(id)
		id += 2
	}
	return id
}

// updates are the WINDOW_UPDATE frames that make up for a batch.
func updates() []byte {
	w := newWire()
	w.fr.WriteWindowUpdate(0, benchStreams*1024)
	return w.bytes()
}

func BenchmarkServer(b *testing.B) {
	for _, indexed := range []bool{true, false} {
		name := "literal"
		if indexed {
			name = "indexed"
		}
		b.Run(name, func(b *testing.B) { benchServer(b, indexed) })
	}
}

// caller is the least client.
type caller struct {
	w     *worker
	out   sink
	c     *h2.Client
	req   http.HeaderMap
	resp  http.HeaderMap
	trail http.HeaderMap
	arena http.Arena // of all responses of a round
	own   http.Arena // of what is sent
	body  buffer.Buffer
	done  int
}

func newCaller(w *worker) *caller {
	c := &caller{w: w}
	c.out.buf.Init(&w.buffers)
	opts := h2.DefaultOptions()
	c.c = h2.NewClient(c, &c.out, &w.streams, &opts)
	c.arena.Init(&w.arenas)
	c.body.Init(&w.buffers)
	c.own.Init(&w.arenas)
	c.req.Init(&c.own)
	for _, f := range request(nil) {
		i := 1 + strings.IndexByte(f[1:], '=')
		c.req.AddName(f[:i], f[i+1:])
	}
	c.trail.Init(&c.own)
	c.trail.AddName("x-t", "1")
	return c
}

func (c *caller) OnStreamDone(bool)                         { c.done++ }
func (c *caller) OnGoAway()                                 {}
func (c *caller) OnMaxStreams(int)                          {}
func (c *caller) Decode1xx(h *http.HeaderMap)               {}
func (c *caller) DecodeHeaders(h *http.HeaderMap, end bool) { h.Init(&c.arena) }
func (c *caller) DecodeData(d *buffer.Buffer, end bool)     {}
func (c *caller) DecodeTrailers(h *http.HeaderMap)          {}
func (c *caller) OnReset(reason http.ResetReason, d string) { panic(d) }
func (c *caller) OnAboveHighWatermark()                     {}
func (c *caller) OnBelowLowWatermark()                      {}

// send starts one request, with a body and trailers if post is set.
func (c *caller) send(post bool) {
	c.resp.Init(&c.arena)
	x := c.c.NewStream(c, &c.resp)
	if err := x.EncodeHeaders(&c.req, !post); err != nil {
		panic(err)
	}
	if post {
		c.body.Borrow(body1k)
		x.EncodeData(&c.body, false)
		x.EncodeTrailers(&c.trail)
	}
}

// pass moves what was written from one sink to the other side.
func (w *worker) pass(o *sink, dispatch func([]byte) (int, error)) {
	w.wire = o.buf.AppendTo(w.wire[:0])
	o.buf.Reset()
	if n, err := dispatch(w.wire); err != nil || n != len(w.wire) {
		panic(err)
	}
}

// TestNoAllocations: in the steady state a request allocates nothing on either side, with bodies, trailers and window updates.
func TestNoAllocations(t *testing.T) {
	w := &worker{}
	e, c := newEcho(w), newCaller(w)
	round := func() {
		for i := range 4 {
			c.send(i == 0)
		}
		w.pass(&c.out, e.c.Dispatch)
		w.pass(&e.out, c.c.Dispatch)
		c.arena.Release()
		c.arena.Init(&w.arenas)
	}
	for range 3000 {
		round()
	}
	if n := testing.AllocsPerRun(2000, round); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if c.done != 4*5001 || e.done != c.done {
		t.Errorf("%d and %d done", c.done, e.done)
	}
}

// TestIdleSize: what a connection between requests costs, compression tables included.
func TestIdleSize(t *testing.T) {
	w := &worker{}
	const n = 200
	var conns [n]*echo
	var before, after runtime.MemStats
	warm := newWire().hello().bytes()
	head := newWire().headers(1, true, request(nil)...).headers(3, true, request(nil)...).bytes()
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range conns {
		conns[i] = newEcho(w)
		conns[i].c.Dispatch(warm)
		conns[i].c.Dispatch(head)
		conns[i].out.buf.Reset()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	size := int(after.HeapAlloc-before.HeapAlloc) / n
	t.Logf("%d bytes, of which the test's own handler is part", size)
	if size > 5000 {
		t.Errorf("an idle connection takes %d bytes", size)
	}
	runtime.KeepAlive(conns)
}

func BenchmarkClient(b *testing.B) {
	w := &worker{}
	e, c := newEcho(w), newCaller(w)
	b.ReportAllocs()
	for i := 0; i < b.N; i += benchStreams {
		for range benchStreams {
			c.send(false)
		}
		w.pass(&c.out, e.c.Dispatch)
		w.pass(&e.out, c.c.Dispatch)
		c.arena.Release()
		c.arena.Init(&w.arenas)
	}
}

// BenchmarkBody sends 64 KiB bodies from borrowed memory.
func BenchmarkBody(b *testing.B) {
	s := newServer(b, h2.DefaultOptions())
	w := newWire().hello()
	w.headers(1, true, request(nil)...).update(0, 1<<30)
	s.feed(w.bytes())
	x := s.byID[1]
	x.start()
	s.feed(w.update(1, 1<<30).bytes())
	lent := make([]byte, 64<<10)
	var d buffer.Buffer
	d.Init(&s.mem.buffers)
	s.mem.buffers.Poison = false
	up := w.update(0, 64<<10).update(1, 64<<10).bytes()
	b.SetBytes(64 << 10)
	b.ReportAllocs()
	for b.Loop() {
		d.Borrow(lent)
		x.x.EncodeData(&d, false)
		s.out.buf.Reset()
		s.c.Dispatch(up)
	}
}

func benchServer(b *testing.B, indexed bool) {
	e := newEcho(&worker{})
	w := newWire().hello()
	if !indexed {
		w.enc.SetMaxDynamicTableSize(0)
	}
	w.headers(1, true, request(w)...)
	w.fr.WriteWindowUpdate(0, 1<<30)
	if _, err := e.c.Dispatch(w.bytes()); err != nil {
		b.Fatal(err)
	}
	e.out.buf.Reset()
	batch := bytes.Repeat(w.headers(3, true, request(w)...).bytes(), benchStreams)
	frame := len(batch) / benchStreams
	up := updates()
	id := uint32(3)
	b.ReportAllocs()
	b.SetBytes(int64(frame))
	for i := 0; i < b.N; i += benchStreams {
		if id > 1<<30 {
			b.Skip("out of ids")
		}
		id = patch(batch, frame, id)
		if _, err := e.c.Dispatch(batch); err != nil {
			b.Fatal(err)
		}
		if _, err := e.c.Dispatch(up); err != nil {
			b.Fatal(err)
		}
		e.out.buf.Reset()
	}
	if e.done < b.N {
		b.Fatalf("%d answers", e.done)
	}
}
