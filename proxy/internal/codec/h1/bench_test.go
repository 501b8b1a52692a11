package h1_test

import (
	"testing"
	"unsafe"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
)

// proxy joins a server and a client as the thinnest of proxies would.
type proxy struct {
	bufs     buffer.Pool
	arenas   http.ArenaPool
	pool     h1.Pool
	down, up output
	s        *h1.Server
	c        *h1.Client
	ss       codec.ServerStream
	cs       codec.ClientStream
	arena    http.Arena
	req, res http.HeaderMap
	done     int
}

func newProxy() *proxy {
	p := &proxy{}
	p.down.buf.Init(&p.bufs)
	p.up.buf.Init(&p.bufs)
	p.arena.Init(&p.arenas)
	p.s = h1.NewServer(p, &p.down, &h1.Options{AllowAbsoluteURL: true}, &p.pool)
	p.c = h1.NewClient((*upstream)(p), &p.up, &h1.Options{}, &p.pool)
	return p
}

func (p *proxy) NewStream(s codec.ServerStream) (codec.RequestDecoder, *http.HeaderMap) {
	p.ss = s
	p.req.Init(&p.arena)
	p.res.Init(&p.arena)
	return p, &p.req
}
func (p *proxy) OnGoAway() {}
func (p *proxy) DecodeHeaders(h *http.HeaderMap, end bool) {
	p.cs = p.c.NewStream((*upstream)(p), &p.res)
	if err := p.cs.EncodeHeaders(h, end); err != nil {
		panic(err)
	}
}
func (p *proxy) DecodeData(d *buffer.Buffer, end bool) { p.cs.EncodeData(d, end) }
func (p *proxy) DecodeTrailers(h *http.HeaderMap)      { p.cs.EncodeTrailers(h) }
func (p *proxy) DecodeError(e *codec.Err)              { panic(e.Text) }
func (p *proxy) OnReset(r http.ResetReason, d string)  { panic(r) }
func (p *proxy) OnAboveHighWatermark()                 {}
func (p *proxy) OnBelowLowWatermark()                  {}
func (p *proxy) OnEncodeComplete() {
	p.done++
	p.req.Release()
	p.res.Release()
	p.arena.Release()
}

type upstream proxy

func (p *upstream) OnStreamDone(reusable bool) {
	if !reusable {
		panic("not reusable")
	}
}
func (p *upstream) OnGoAway()                                  {}
func (p *upstream) OnMaxStreams(int)                           {}
func (p *upstream) Decode1xx(h *http.HeaderMap)                {}
func (p *upstream) DecodeHeaders(h *http.HeaderMap, end bool)  { p.ss.EncodeHeaders(h, end) }
func (p *upstream) DecodeData(d *buffer.Buffer, end bool)      { p.ss.EncodeData(d, end) }
func (p *upstream) DecodeTrailers(h *http.HeaderMap)           { p.ss.EncodeTrailers(h) }
func (p *upstream) OnReset(r http.ResetReason, details string) { panic(r) }
func (p *upstream) OnAboveHighWatermark()                      {}
func (p *upstream) OnBelowLowWatermark()                       {}

const (
	benchRequest = "GET /v1/items?id=12345 HTTP/1.1\r\nHost: bench.example:18080\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n" +
		"Accept: */*\r\nAccept-Encoding: gzip, deflate\r\nCookie: session=0123456789abcdef\r\nX-Custom: some value\r\n\r\n"
	benchResponse = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nServer: backend\r\n" +
		"Date: Sun, 29 Nov 2026 23:18:25 GMT\r\nX-Trace: abcdef\r\n\r\nok"
	benchChunked = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nServer: backend\r\n" +
		"Date: Sun, 29 Nov 2026 23:18:25 GMT\r\nX-Trace: abcdef\r\n\r\n2\r\nok\r\n0\r\n\r\n"
)

func (p *proxy) round(req, res []byte) {
	if n, err := p.s.Dispatch(req); err != nil || n != len(req) {
		panic(err)
	}
	p.up.buf.Reset()
	if n, err := p.c.Dispatch(res); err != nil || n != len(res) {
		panic(err)
	}
	p.down.buf.Reset()
}

func BenchmarkProxy(b *testing.B) {
	for _, c := range []struct{ name, res string }{{"length", benchResponse}, {"chunked", benchChunked}} {
		b.Run(c.name, func(b *testing.B) {
			p := newProxy()
			req, res := []byte(benchRequest), []byte(c.res)
			b.ReportAllocs()
			for b.Loop() {
				p.round(req, res)
			}
		})
	}
}

func BenchmarkPost64K(b *testing.B) {
	p := newProxy()
	req := append([]byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 65536\r\n\r\n"), make([]byte, 65536)...)
	res := []byte(benchResponse)
	b.SetBytes(65536)
	b.ReportAllocs()
	for b.Loop() {
		p.round(req, res)
	}
}

func TestNothingIsAllocatedPerMessage(t *testing.T) {
	p := newProxy()
	for _, c := range []struct{ name, req, res string }{
		{"get", benchRequest, benchResponse},
		{"chunked", benchRequest, benchChunked},
		{"post", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", benchResponse},
		{"post chunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3\r\nabc\r\n0\r\n\r\n", benchChunked},
		{"close tokens", "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, X-A\r\nX-A: 1\r\nTE: trailers\r\n\r\n", benchResponse},
		{"absolute", "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", benchResponse},
		{"merged", "GET / HTTP/1.1\r\nHost: a\r\nAccept: a\r\nAccept: b\r\n\r\n", benchResponse},
	} {
		req, res := []byte(c.req), []byte(c.res)
		p.round(req, res)
		if n := testing.AllocsPerRun(100, func() { p.round(req, res) }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
		// A request that comes in two parts.
		half := len(req) / 2
		if n := testing.AllocsPerRun(100, func() {
			if _, err := p.s.Dispatch(req[:half]); err != nil {
				panic(err)
			}
			p.round(req[half:], res)
		}); n != 0 {
			t.Errorf("%s in parts: %v allocations", c.name, n)
		}
	}
}

// An idle connection costs its codec and nothing else.
func TestIdleSize(t *testing.T) {
	const limit = 150
	if n := unsafe.Sizeof(h1.Server{}); n > limit {
		t.Errorf("a server takes %d bytes", n)
	}
	if n := unsafe.Sizeof(h1.Client{}); n > limit {
		t.Errorf("a client takes %d bytes", n)
	}
	p := newProxy()
	p.round([]byte(benchRequest), []byte(benchResponse))
	if p.pool.Live() != 0 || p.bufs.Live() != 0 || p.arenas.Live() != 0 {
		t.Error("an idle connection holds memory")
	}
}
