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

// router is the user of a client connection in the tests: it logs events.
type router struct {
	w      *world
	out    *output
	c      *h1.Client
	log    []string
	merge  bool
	stream codec.ClientStream
	arena  http.Arena
	h, req http.HeaderMap
	onData func()
	onDone func()
}

func newRouter(t testing.TB, opts *h1.Options) *router {
	u := &router{w: newWorld(t)}
	u.out = newOutput(&u.w.bufs)
	u.c = h1.NewClient(u, u.out, opts, &u.w.pool)
	u.arena.Init(&u.w.arenas)
	t.Cleanup(func() {
		u.c.Destroy()
		u.free()
		u.out.buf.Reset()
	})
	return u
}

func (u *router) free() {
	u.h.Release()
	u.req.Release()
	u.arena.Release()
}

func (u *router) logf(format string, args ...any) {
	u.log = append(u.log, fmt.Sprintf(format, args...))
}

func (u *router) events() string {
	s := strings.Join(u.log, "\n")
	u.log = u.log[:0]
	return s
}

// request starts a request with the fields nv, pseudo headers included, and ends it if end is set.
func (u *router) request(end bool, nv ...string) error {
	u.free()
	u.h.Init(&u.arena)
	u.req.Init(&u.arena)
	for i := 0; i < len(nv); i += 2 {
		u.req.AddName(nv[i], nv[i+1])
	}
	u.stream = u.c.NewStream(u, &u.h)
	return u.stream.EncodeHeaders(&u.req, end)
}

func (u *router) get() {
	if err := u.request(true, ":method", "GET", ":path", "/", ":authority", "h"); err != nil {
		panic(err)
	}
}

func (u *router) feed(b string, n int) (rest string, err error) {
	if n == 0 {
		n = len(b)
	}
	for len(b) > 0 && err == nil {
		k := min(n, len(b))
		p := []byte(rest + b[:k])
		used := 0
		used, err = u.c.Dispatch(p)
		rest = string(p[used:])
		for i := range p {
			p[i] = 0xdb
		}
		b = b[k:]
	}
	return rest, err
}

func (u *router) OnStreamDone(reusable bool) {
	u.logf("done reusable=%v", reusable)
	if u.onDone != nil {
		u.onDone()
	}
}
func (u *router) OnGoAway()        { u.logf("goaway") }
func (u *router) OnMaxStreams(int) { u.logf("max streams") }

func (u *router) Decode1xx(h *http.HeaderMap) { u.logf("1xx %s", fields(h)) }
func (u *router) DecodeHeaders(h *http.HeaderMap, end bool) {
	if h != &u.h {
		panic("another map")
	}
	u.logf("head %s end=%v", fields(h), end)
	if u.onData != nil {
		u.onData()
	}
}
func (u *router) DecodeData(d *buffer.Buffer, end bool) {
	b := string(d.Bytes())
	if k := len(u.log); u.merge && k > 0 && strings.HasPrefix(u.log[k-1], "data ") && strings.HasSuffix(u.log[k-1], " end=false") {
		u.log[k-1] = fmt.Sprintf("%s%s end=%v", strings.TrimSuffix(u.log[k-1], " end=false"), b, end)
	} else {
		u.logf("data %s end=%v", b, end)
	}
	if u.onData != nil {
		u.onData()
	}
}
func (u *router) DecodeTrailers(h *http.HeaderMap) { u.logf("trailers %s", fields(h)) }
func (u *router) OnReset(r http.ResetReason, details string) {
	u.logf("reset %s%s", r, details)
}
func (u *router) OnAboveHighWatermark() { u.logf("above") }
func (u *router) OnBelowLowWatermark()  { u.logf("below") }

func (u *router) data(body string, end bool) {
	var b buffer.Buffer
	b.Init(&u.w.bufs)
	b.AppendString(body)
	u.stream.EncodeData(&b, end)
	if b.Len() != 0 {
		panic("data left")
	}
}
