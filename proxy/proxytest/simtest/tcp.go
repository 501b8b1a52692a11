package simtest

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
)

// tcpClient opens one connection after the other. On each it sends a line that says what it wants, then its bytes, while the
// upstream sends others; each side ends its direction when it has sent all.
type tcpClient struct {
	g    *game
	name string
	rnd  *rand.Source
	left int
}

func (c *tcpClient) next() {
	if c.left == 0 {
		c.g.pending--
		return
	}
	c.left--
	r := c.g.ledger.add(&request{client: c.name, method: "TCP", up: size(c.rnd), down: size(c.rnd)})
	t := &tcpCall{c: c, r: r, got: newBody(r, downward), late: percent(c.rnd, 30)}
	t.conn = c.g.w.Dial(c.g.net.Listen, t)
}

// tcpCall is one connection of a tcpClient.
type tcpCall struct {
	c     *tcpClient
	r     *request
	conn  *sim.Conn
	got   body
	late  bool // end our side only when the other side has ended
	sent  bool
	ended bool
	gone  bool // given up by ourselves
	heard time.Duration
}

func (t *tcpCall) Open(c *sim.Conn) {
	g, rnd := t.c.g, t.c.rnd
	c.Write(fmt.Appendf(nil, "%d %d\n", t.r.id, t.r.down))
	pieces := bodyPieces(rnd, newBody(t.r, upward), t.r.up, false)
	var next func()
	next = func() {
		for len(pieces) > 0 && !c.IsClosed() {
			c.Write(pieces[0])
			if pieces = pieces[1:]; percent(rnd, percentSlow) {
				g.w.After(time.Duration(rnd.IntN(5e7)), next)
				return
			}
		}
		t.sent = true
		if !t.late || t.ended {
			c.CloseWrite()
		}
	}
	next()
	if !g.o.NoAborts && percent(rnd, percentAbort) {
		g.w.After(time.Duration(rnd.IntN(5e7)), func() { t.giveUp(aborted) })
	}
	t.watch()
}

func (t *tcpCall) watch() {
	g := t.c.g
	t.heard = max(t.heard, g.w.Elapsed()-patience)
	g.w.After(patience/2, func() {
		if t.conn.IsClosed() {
			return
		}
		if g.w.Elapsed()-t.heard > patience {
			t.giveUp("no answer")
			return
		}
		t.watch()
	})
}

func (t *tcpCall) giveUp(how string) {
	if t.conn.IsClosed() {
		return
	}
	t.gone = true
	t.c.g.ledger.excuse(t.r, how)
	t.conn.Reset()
}

func (t *tcpCall) Data(_ *sim.Conn, b []byte) {
	t.heard = t.c.g.w.Elapsed()
	t.r.received += len(b)
	if !t.got.check(b) || t.r.received > t.r.down {
		t.c.g.ledger.fail("connection %d: wrong bytes before byte %d of %d", t.r.id, t.r.received, t.r.down)
		t.conn.Close()
	}
}

func (t *tcpCall) End(c *sim.Conn) {
	t.ended = true
	if t.sent {
		c.CloseWrite()
	}
	if t.r.received != t.r.down && t.c.g.clean() {
		t.c.g.ledger.fail("connection %d: the end after %d of %d bytes", t.r.id, t.r.received, t.r.down)
	}
}

func (t *tcpCall) Closed(_ *sim.Conn, e syscall.Errno) {
	l := &t.c.g.ledger
	switch {
	case t.gone:
	case e == 0 && t.ended && t.r.received == t.r.down:
		l.finish(t.r, answered)
	default:
		l.excuse(t.r, t.c.g.lost(e))
	}
	t.c.g.w.After(time.Duration(t.c.rnd.IntN(1e7)), t.c.next)
}

// tcpUpstream is the far side.
type tcpUpstream struct {
	g    *game
	rnd  *rand.Source
	line []byte
	r    *request
	got  body
	n    int
}

func (u *tcpUpstream) Open(*sim.Conn) {}

func (u *tcpUpstream) Data(c *sim.Conn, b []byte) {
	if u.r == nil {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			u.line = append(u.line, b...)
			return
		}
		u.line = append(u.line, b[:i]...)
		b = b[i+1:]
		if u.begin(c); u.r == nil {
			c.Close()
			return
		}
	}
	u.n += len(b)
	if !u.got.check(b) || u.n > u.r.up {
		u.g.ledger.fail("connection %d: the upstream got wrong bytes before byte %d of %d", u.r.id, u.n, u.r.up)
		c.Close()
	}
}

// begin answers the line.
func (u *tcpUpstream) begin(c *sim.Conn) {
	first, want, _ := strings.Cut(string(u.line), " ")
	id, _ := strconv.Atoi(first)
	if u.r = u.g.ledger.find(id); u.r == nil {
		return
	}
	u.g.ledger.saw(u.r)
	u.got = newBody(u.r, upward)
	if want != strconv.Itoa(u.r.down) {
		u.g.ledger.fail("connection %d: the upstream got %q", u.r.id, u.line)
	}
	pieces := bodyPieces(u.rnd, newBody(u.r, downward), u.r.down, false)
	cut := -1
	if percent(u.rnd, u.g.cut) {
		cut = u.rnd.IntN(len(pieces) + 1)
	}
	var next func()
	next = func() {
		for len(pieces) > 0 && !c.IsClosed() {
			if cut == 0 {
				c.Reset()
				return
			}
			cut--
			c.Write(pieces[0])
			if pieces = pieces[1:]; percent(u.rnd, percentSlow) {
				u.g.w.After(time.Duration(u.rnd.IntN(5e7)), next)
				return
			}
		}
		c.CloseWrite()
	}
	next()
}

// End is the client's. Under clean rules it must not come before all bytes.
func (u *tcpUpstream) End(c *sim.Conn) {
	if u.r == nil {
		c.Close()
		return
	}
	if u.n == u.r.up {
		u.r.arrived++
	} else if u.g.clean() && u.r.ended == "" {
		u.g.ledger.fail("connection %d: the upstream got the end after %d of %d bytes", u.r.id, u.n, u.r.up)
	}
}

func (u *tcpUpstream) Closed(*sim.Conn, syscall.Errno) {}
