package simtest

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
)

// mischief is what upstreams do wrong, in a hundred.
type mischief struct {
	reset, closeEarly int // instead of an answer
	silent            int // no answer at all
	cut               int // end the answer in its middle
	early             int // answer before the request is whole
	closeAfter        int // close without having said so
	sayClose          int // close, and say so
	untilClose        int // an answer that the end of the connection ends
	garbage           int // an answer that is no HTTP
}

func someMischief() mischief {
	return mischief{reset: 2, closeEarly: 2, silent: 3, cut: 3, early: 3, closeAfter: 3, sayClose: 5, untilClose: 3, garbage: 1}
}

// h1Upstream is one connection of an upstream. It checks requests and answers them in order.
type h1Upstream struct {
	g   *game
	rnd *rand.Source

	conn    *sim.Conn
	read    reader
	r       *request
	got     body
	n       int // bytes of the body so far
	replies []*reply
	sending bool
	closing bool // nothing more will be answered

	tunneled, open bool     // it is a tunnel, and was answered
	held           [][]byte // what is still to be sent through it
}

type reply struct {
	r     *request
	m     *message
	hop   int // that the answer sends the request to, 0: it is the answer
	ready bool
	// toClose: the end of the connection ends it, so that nobody can tell a FIN too early.
	toClose bool
}

func (u *h1Upstream) Open(c *sim.Conn) {
	u.conn = c
	u.read = reader{head: u.onHead, body: u.onBody, done: u.onDone}
}

func (u *h1Upstream) Data(_ *sim.Conn, b []byte) {
	if u.closing {
		return
	}
	if err := u.read.feed(b); err != nil {
		u.g.ledger.fail("an upstream got %v", err)
		u.conn.Close()
	}
}

// End closes: a client that has ended its side wants no answer any more, as far as proxies go. Answers under way still go out.
func (u *h1Upstream) End(c *sim.Conn) {
	if len(u.replies) == 0 {
		c.Close()
		return
	}
	u.closing = true
	c.CloseWrite()
}

func (u *h1Upstream) Closed(*sim.Conn, syscall.Errno) {}

func (u *h1Upstream) onHead(m *message) error {
	r := u.g.ledger.find(m.number("x-id"))
	if r == nil {
		return fmt.Errorf("a request that nobody sent: %s", m.first)
	}
	u.g.ledger.saw(r)
	hop, path := hopOf(m.path)
	if m.method != r.method || path != r.path || hop > r.hops || m.number("x-want") != r.down || m.number("x-up") != r.up || m.number("x-status") != r.status {
		return fmt.Errorf("request %d changed: %s, %v", r.id, m.first, m.fields)
	}
	u.r, u.got, u.n = r, newBody(r, upward), 0
	if r.upgrade {
		if m.get("upgrade") != "sim" || !strings.EqualFold(m.get("connection"), "upgrade") {
			return fmt.Errorf("request %d asks for no tunnel any more: %v", r.id, m.fields)
		}
		if !percent(u.rnd, u.g.silent) {
			u.accept(r)
		}
		return nil
	}
	if m.get("expect") != "" && len(u.replies) == 0 {
		u.conn.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
	a := &reply{r: r, m: m}
	if hop < r.hops {
		a.hop = hop + 1
	}
	u.replies = append(u.replies, a)
	k := &u.g.mischief
	switch {
	case percent(u.rnd, k.reset):
		u.later(func() { u.conn.Reset() })
	case percent(u.rnd, k.closeEarly):
		u.later(func() {
			if u.sending && u.replies[0].toClose {
				u.replies[0].r.cut = true // its answer has begun meanwhile
			}
			u.conn.Close()
		})
	case a.hop == 0 && percent(u.rnd, k.early):
		u.later(func() { a.ready = true; u.answer() })
	}
	return nil
}

// hopOf tells how often a request with this path was redirected, and its own path.
func hopOf(path string) (n int, own string) {
	if rest, ok := strings.CutPrefix(path, "/hop"); ok && len(rest) > 0 {
		return int(rest[0] - '0'), rest[1:]
	}
	return 0, path
}

func (u *h1Upstream) onBody(p []byte) error {
	u.n += len(p)
	if !u.got.check(p) || u.n > u.r.up {
		return fmt.Errorf("wrong bytes of request %d, before byte %d of %d", u.r.id, u.n, u.r.up)
	}
	if u.tunneled {
		u.send()
	}
	return nil
}

func (u *h1Upstream) onDone() error {
	if u.n != u.r.up {
		return fmt.Errorf("request %d as if it were whole, with %d of %d bytes", u.r.id, u.n, u.r.up)
	}
	if err := u.g.ledger.trailer(u.r, upward, u.read.m.trailer); err != nil {
		return err
	}
	u.r.arrived++
	if percent(u.rnd, u.g.silent) {
		return nil
	}
	if len(u.replies) == 0 {
		return nil // answered early
	}
	if a := u.replies[len(u.replies)-1]; a.r == u.r {
		u.later(func() { a.ready = true; u.answer() })
	}
	return nil
}

// later does something after a while, if the connection is still there: mostly soon.
func (u *h1Upstream) later(f func()) {
	d := time.Duration(u.rnd.IntN(2e6))
	if percent(u.rnd, 10) {
		d = time.Duration(u.rnd.IntN(1e9))
	}
	u.g.w.After(d, func() {
		if !u.conn.IsClosed() {
			f()
		}
	})
}

// answer sends the answers that are ready, one after the other.
func (u *h1Upstream) answer() {
	if u.sending || len(u.replies) == 0 || !u.replies[0].ready {
		return
	}
	a := u.replies[0]
	k := &u.g.mischief
	if percent(u.rnd, k.garbage) {
		u.conn.Write([]byte("no such protocol\r\n\r\n"))
		u.later(u.conn.Close)
		return
	}
	pieces, end := u.render(a)
	cut := -1
	if percent(u.rnd, k.cut) {
		cut = u.rnd.IntN(len(pieces))
	}
	u.sending = true
	var next func()
	next = func() {
		for len(pieces) > 0 {
			if cut == 0 {
				reset := percent(u.rnd, 50)
				a.r.cut = !reset && a.toClose
				u.later(func() { u.end(reset) })
				return
			}
			cut--
			u.conn.Write(pieces[0])
			if pieces = pieces[1:]; len(pieces) > 0 && percent(u.rnd, percentSlow) {
				u.later(next)
				return
			}
		}
		u.sending = false
		u.replies = u.replies[1:]
		if end || percent(u.rnd, k.closeAfter) {
			u.end(false)
			return
		}
		u.answer()
	}
	next()
}

// end closes the connection: with a reset, or a FIN after all that was written.
func (u *h1Upstream) end(reset bool) {
	u.closing = true
	if reset {
		u.conn.Reset()
	} else {
		u.conn.CloseWrite()
	}
}

// render returns an answer in pieces, and whether the connection ends with it.
func (u *h1Upstream) render(a *reply) (pieces [][]byte, end bool) {
	r, k := a.r, &u.g.mischief
	if a.hop > 0 {
		b := fmt.Appendf(nil, "HTTP/1.1 302 Elsewhere\r\nx-id: %d\r\nlocation: http://sim.test/hop%d%s\r\ncontent-length: 3\r\n\r\n", r.id, a.hop, r.path)
		if r.method != "HEAD" {
			b = append(b, "hop"...)
		}
		return [][]byte{b}, false
	}
	b := fmt.Appendf(nil, "HTTP/1.1 %d Whatever\r\nX-Id: %d\r\nserver: upstream\r\n", r.status, r.id)
	end = a.m.get("connection") == "close" || percent(u.rnd, k.sayClose)
	if end {
		b = append(b, "Connection: close\r\n"...)
	}
	chunked := false
	switch {
	case r.bodiless():
		if r.method == "HEAD" && percent(u.rnd, 50) {
			b = fmt.Appendf(b, "Content-Length: %d\r\n", r.down)
		}
		return append(pieces, append(b, "\r\n"...)), end
	case !r.downTrail && percent(u.rnd, k.untilClose):
		end, a.toClose = true, true
	case r.downTrail || percent(u.rnd, 50):
		chunked = true
		b = append(b, "transfer-encoding: chunked\r\n"...)
	default:
		b = fmt.Appendf(b, "Content-Length: %d\r\n", r.down)
	}
	pieces = append(pieces, append(b, "\r\n"...))
	content := bodyPieces(u.rnd, newBody(r, downward), r.down, chunked)
	if r.downTrail {
		content = withTrailer(content, r, downward)
	}
	return append(pieces, content...), end
}
