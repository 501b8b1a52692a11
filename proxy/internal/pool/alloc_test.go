package pool_test

import (
	"testing"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// fast is the cheapest user of a pool: its requests are encoded to nothing and its answers are fed by the test.
type fast struct {
	req  pool.Request
	resp http.HeaderMap
	s    codec.ClientStream
	c    *pool.Conn
	head http.HeaderMap
	done bool
}

func (f *fast) OnPoolReady(s codec.ClientStream, c *pool.Conn)     { f.s, f.c = s, c }
func (f *fast) OnPoolFailure(http.ResetReason, string, *host.Host) {}
func (f *fast) Decode1xx(*http.HeaderMap)                          {}
func (f *fast) DecodeHeaders(_ *http.HeaderMap, end bool)          { f.done = end }
func (f *fast) DecodeData(*buffer.Buffer, bool)                    {}
func (f *fast) DecodeTrailers(*http.HeaderMap)                     {}
func (f *fast) OnReset(http.ResetReason, string)                   {}
func (f *fast) OnAboveHighWatermark()                              {}
func (f *fast) OnBelowLowWatermark()                               {}

// idle returns a pool with one idle HTTP/1 connection, whose handler is fed by hand, and a user with its memory.
func idle(t testing.TB) (p *pool.Pool, c *pool.Conn, f *fast, arena *http.Arena) {
	r := newRig(t, event.KindEpoll)
	if tt, ok := t.(*testing.T); ok {
		r.t = tt
	} else {
		r.t = &testing.T{}
	}
	h := hostOf(server(t, text("")).Listener.Addr())
	p = r.pool(h, pool.HTTP1)
	first := r.call(p, "/")
	r.run("first", allDone(first))
	t.Cleanup(func() { p.Drain(); r.w.Step(false) })
	f = &fast{}
	arena = &http.Arena{}
	arena.Init(&r.w.Arenas)
	f.req.Decoder, f.req.Headers, f.req.CB = f, &f.resp, f
	return p, first.conn, f, arena
}

var answer = []byte("HTTP/1.1 204 No Content\r\n\r\n")

func (f *fast) exchange(p *pool.Pool, c conn.Handler, a *http.Arena) {
	f.resp.Init(a)
	f.head.Init(a)
	p.Start(&f.req)
	f.head.AddConst(http.Method, "GET")
	f.head.AddConst(http.Path, "/")
	f.head.AddConst(http.Authority, "u")
	_ = f.s.EncodeHeaders(&f.head, true)
	f.c.NetConn().Out().Reset()
	c.OnData(answer)
	a.Release()
}

// A request on an idle connection allocates nothing, from Start to the end of its stream.
func TestNoAllocs(t *testing.T) {
	p, c, f, a := idle(t)
	f.exchange(p, c, a)
	if n := testing.AllocsPerRun(1000, func() { f.exchange(p, c, a) }); n != 0 {
		t.Errorf("%v allocations per request", n)
	}
	if !f.done || c.Streams() < 1000 {
		t.Error("nothing was done")
	}
}

// BenchmarkExchange is a whole exchange, encoding and parsing included.
func BenchmarkExchange(b *testing.B) {
	p, c, f, a := idle(b)
	b.ReportAllocs()
	for b.Loop() {
		f.exchange(p, c, a)
	}
}

// BenchmarkStart is the pool's part of it: a stream is given out, and ended by a codec that does nothing.
func BenchmarkStart(b *testing.B) {
	p, c, f, a := idle(b)
	f.resp.Init(a)
	pool.SetCodec(c, nopCodec{c})
	b.ReportAllocs()
	for b.Loop() {
		p.Start(&f.req)
		c.OnStreamDone(true)
	}
}

type nopCodec struct{ codec.ClientHandler }

func (nopCodec) Dispatch(b []byte) (int, error)                                      { return len(b), nil }
func (nopCodec) EOF() error                                                          { return nil }
func (nopCodec) NewStream(codec.ResponseDecoder, *http.HeaderMap) codec.ClientStream { return nil }
func (nopCodec) MaxStreams() int                                                     { return 1 }
func (nopCodec) Active() int                                                         { return 0 }
func (nopCodec) GoAway(bool)                                                         {}
func (nopCodec) OnHighWatermark()                                                    {}
func (nopCodec) OnLowWatermark()                                                     {}
func (nopCodec) Destroy()                                                            {}
func (nopCodec) Protocol() http.Proto                                                { return http.HTTP11 }
