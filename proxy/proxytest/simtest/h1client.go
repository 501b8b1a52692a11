package simtest

import (
	"fmt"
	"strconv"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
)

// h1Client makes requests one after the other, or several at a time (pipelining), on one connection and then the next, and checks
// what it gets.
type h1Client struct {
	g     *game
	name  string
	rnd   *rand.Source
	left  int // requests to make
	depth int

	conn      *sim.Conn
	read      reader
	waiting   []*request // sent, in order, not answered
	uploading bool
	goOn      func() // the upload that waits for a 100
	closing   bool   // nothing more may be sent on this connection
	own       bool   // the answer is the proxy's own
	got       body
	heard     time.Duration // when something came last
}

// connect opens the next connection, or ends the client.
func (c *h1Client) connect() {
	if c.left == 0 {
		c.g.pending--
		return
	}
	c.read = reader{response: true, head: c.onHead, body: c.onBody, done: c.onDone}
	c.uploading, c.goOn, c.closing, c.conn = false, nil, false, nil
	c.conn = c.g.w.Dial(c.g.net.Listen, c)
}

func (c *h1Client) Open(*sim.Conn) {
	c.heard = c.g.w.Elapsed()
	c.watch(c.conn)
	c.pump()
}

// watch gives up on a connection on which nothing comes.
func (c *h1Client) watch(conn *sim.Conn) {
	left := patience - (c.g.w.Elapsed() - c.heard)
	c.g.w.After(max(left, time.Second), func() {
		if conn.IsClosed() {
			return
		}
		if c.g.w.Elapsed()-c.heard < patience {
			c.watch(conn)
			return
		}
		if c.closing && len(c.waiting) == 0 && c.g.clean() {
			c.g.ledger.fail("%s: the connection was to be closed and is not", c.name)
		}
		c.drop("no answer")
		conn.Close()
	})
}

func (c *h1Client) Data(_ *sim.Conn, b []byte) {
	c.heard = c.g.w.Elapsed()
	if err := c.read.feed(b); err != nil {
		c.g.ledger.fail("%s got %v", c.name, err)
		c.conn.Close()
		return
	}
	c.pump()
	if percent(c.rnd, 2) { // a slow reader
		conn := c.conn
		conn.Pause()
		c.g.w.After(time.Duration(c.rnd.IntN(2e8)), conn.Resume)
	}
}

func (c *h1Client) End(conn *sim.Conn) {
	if c.read.m != nil && c.read.m.toClose {
		if err := c.read.eof(); err != nil {
			c.g.ledger.fail("%s got %v", c.name, err)
		}
	}
	conn.Close()
}

// Closed goes on with the next connection. A connection that took no request is paid for with one, so that there is an end.
func (c *h1Client) Closed(_ *sim.Conn, e syscall.Errno) {
	if e != 0 && len(c.waiting) == 0 && c.left > 0 && !c.closing {
		c.left--
		c.waiting = append(c.waiting, c.g.ledger.add(&request{client: c.name, method: "none"}))
	}
	c.drop(c.g.lost(e))
	c.g.w.After(time.Duration(c.rnd.IntN(1e7)), c.connect)
}

// drop gives up what is not answered.
func (c *h1Client) drop(how string) {
	for _, r := range c.waiting {
		c.g.ledger.excuse(r, how)
	}
	c.waiting = nil
}

// pump sends what may be sent.
func (c *h1Client) pump() {
	for !c.conn.IsClosed() && !c.uploading && !c.closing && c.left > 0 && len(c.waiting) < c.depth {
		c.left--
		if c.g.o.Upgrades && len(c.waiting) == 0 && percent(c.rnd, percentUpgrade) {
			c.tunnel()
			return
		}
		r := drawRequest(c.g, c.rnd, c.name)
		r.expect = r.method == "POST" && len(c.waiting) == 0 && percent(c.rnd, percentExpect)
		c.send(r)
	}
	if c.left == 0 && len(c.waiting) == 0 && !c.uploading && !c.closing && !c.conn.IsClosed() {
		c.conn.Close() // all done
	}
}

func (c *h1Client) send(r *request) {
	c.waiting = append(c.waiting, r)
	b := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: sim.test\r\nx-id: %d\r\nX-Want: %d\r\nx-status: %d\r\nx-up: %d\r\n", r.method, r.path, r.id, r.down, r.status, r.up)
	switch {
	case r.chunks:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case r.method == "POST" || r.method == "PUT":
		b = fmt.Appendf(b, "content-length: %d\r\n", r.up)
	}
	if r.expect {
		b = append(b, "Expect: 100-continue\r\n"...)
	}
	if percent(c.rnd, percentClose) {
		b = append(b, "Connection: close\r\n"...)
		c.closing = true
	}
	c.conn.Write(append(b, "\r\n"...))
	if !c.g.o.NoAborts && percent(c.rnd, percentAbort) {
		c.planAbort(c.conn)
	}
	pieces := bodyPieces(c.rnd, newBody(r, upward), r.up, r.chunks)
	if r.upTrail {
		pieces = withTrailer(pieces, r, upward)
	}
	if len(pieces) == 0 {
		return
	}
	c.uploading = true
	upload := c.upload(c.conn, pieces)
	if !r.expect {
		upload()
		return
	}
	started := false
	c.goOn = func() {
		if !started {
			started = true
			upload()
		}
	}
	c.g.w.After(time.Second, c.goOn) // not everybody answers (RFC 9110, 10.1.1)
}

// upload returns what sends the pieces, some of them late.
func (c *h1Client) upload(conn *sim.Conn, pieces [][]byte) func() {
	var next func()
	next = func() {
		for len(pieces) > 0 {
			if conn.IsClosed() {
				return
			}
			conn.Write(pieces[0])
			if pieces = pieces[1:]; len(pieces) > 0 && percent(c.rnd, percentSlow) {
				c.g.w.After(time.Duration(c.rnd.IntN(5e7)), next)
				return
			}
		}
		if conn == c.conn {
			c.uploading = false
			c.pump()
		}
	}
	return next
}

func (c *h1Client) planAbort(conn *sim.Conn) {
	reset := percent(c.rnd, 50)
	c.g.w.After(time.Duration(c.rnd.IntN(5e7)), func() {
		if conn.IsClosed() || conn != c.conn {
			return
		}
		c.drop(aborted)
		c.closing = true
		if reset {
			conn.Reset()
		} else {
			conn.Close()
		}
	})
}

func (c *h1Client) onHead(m *message) error {
	if len(c.waiting) == 0 {
		if m.status != 408 {
			return fmt.Errorf("an answer that it did not ask for: %s", m.first)
		}
		return nil
	}
	r := c.waiting[0]
	m.noBody = r.method == "HEAD"
	if m.status == 101 && r.upgrade {
		return c.through(r, m)
	}
	if m.status < 200 {
		if m.status == 100 && c.goOn != nil {
			c.goOn()
		}
		return nil
	}
	id := m.get("x-id")
	if c.own = id == ""; c.own {
		return nil
	}
	switch {
	case id != strconv.Itoa(r.id):
		return fmt.Errorf("the answer to request %s instead of %d", id, r.id)
	case m.status != r.status:
		return fmt.Errorf("status %d instead of %d for request %d", m.status, r.status, r.id)
	case r.method == "HEAD" && m.get("content-length") != "" && m.number("content-length") != r.down:
		return fmt.Errorf("a length of %s instead of %d for request %d", m.get("content-length"), r.down, r.id)
	}
	c.got = newBody(r, downward)
	return nil
}

func (c *h1Client) onBody(p []byte) error {
	if len(c.waiting) == 0 || c.own {
		return nil
	}
	r := c.waiting[0]
	r.received += len(p)
	if !c.got.check(p) || r.received > r.down {
		return fmt.Errorf("wrong bytes of the answer to request %d, before byte %d of %d", r.id, r.received, r.down)
	}
	if r.upgrade && r.received == r.down {
		c.waiting = nil
		c.g.ledger.finish(r, answered)
		c.conn.Close()
	}
	return nil
}

func (c *h1Client) onDone() error {
	m := c.read.m
	if m.status < 200 || len(c.waiting) == 0 {
		return nil
	}
	r := c.waiting[0]
	c.waiting = c.waiting[1:]
	c.goOn = nil
	if m.get("connection") == "close" {
		c.closing = true
	}
	switch {
	case c.own:
		c.g.ledger.excuse(r, fmt.Sprintf("the proxy said %d", m.status))
	case r.cut && !r.bodiless() && r.received != r.down:
		c.g.ledger.excuse(r, "cut off by the upstream")
	case !r.bodiless() && r.received != r.down:
		return fmt.Errorf("a whole answer to request %d of %d bytes instead of %d", r.id, r.received, r.down)
	default:
		c.g.ledger.finish(r, answered)
		return c.g.ledger.trailer(r, downward, m.trailer)
	}
	return nil
}
