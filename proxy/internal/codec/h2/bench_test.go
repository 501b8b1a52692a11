package h2_test

import (
	"bytes"
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

func (st *echoStream) DecodeTrailers(h *http.HeaderMap)          {}
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
