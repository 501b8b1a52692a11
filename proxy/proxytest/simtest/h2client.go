package simtest

import (
	"fmt"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/net/http2"

	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
)

// h2Client makes requests on streams of one HTTP/2 connection, several at a time, and then on the next.
type h2Client struct {
	g     *game
	name  string
	rnd   *rand.Source
	left  int
	depth int

	h     *h2Conn
	conn  *sim.Conn
	next  uint32
	heard time.Duration
}

func (c *h2Client) connect() {
	if c.left == 0 {
		c.g.pending--
		return
	}
	c.h, c.next = nil, 1
	c.conn = c.g.w.Dial(c.g.net.Listen, c)
}

func (c *h2Client) Open(conn *sim.Conn) {
	c.heard = c.g.w.Elapsed()
	c.h = newH2Conn(c.g, c.rnd, conn, c, false)
	c.watch(conn)
	c.onRoom()
}

func (c *h2Client) watch(conn *sim.Conn) {
	c.g.w.After(max(patience-(c.g.w.Elapsed()-c.heard), time.Second), func() {
		switch {
		case conn.IsClosed():
		case c.g.w.Elapsed()-c.heard < patience:
			c.watch(conn)
		default:
			c.drop("no answer")
			conn.Close()
		}
	})
}

func (c *h2Client) Data(conn *sim.Conn, b []byte) {
	c.heard = c.g.w.Elapsed()
	if err := c.h.feed(b); err != nil {
		c.g.ledger.fail("%s got %v", c.name, err)
		conn.Close()
	}
}

func (c *h2Client) End(conn *sim.Conn) { conn.Close() }

func (c *h2Client) Closed(_ *sim.Conn, e syscall.Errno) {
	if c.h == nil || c.next == 1 { // it took no request, and is paid for with one
		c.left--
		c.g.ledger.excuse(c.g.ledger.add(&request{client: c.name, method: "none"}), c.g.lost(e))
	}
	c.drop(c.g.lost(e))
	c.g.w.After(time.Duration(c.rnd.IntN(1e7)), c.connect)
}

// drop gives up what is not answered.
func (c *h2Client) drop(how string) {
	if c.h == nil {
		return
	}
	for len(c.h.order) > 0 {
		s := c.h.order[0]
		c.h.drop(s)
		if s.r.ended == "" {
			c.g.ledger.excuse(s.r, how)
		}
	}
}

// onRoom opens streams, or ends the connection when all is done.
func (c *h2Client) onRoom() {
	for c.h != nil && !c.conn.IsClosed() && !c.h.goingAway && c.left > 0 && len(c.h.order) < min(c.depth, c.h.most) {
		c.left--
		c.send()
	}
	if c.h != nil && len(c.h.order) == 0 && (c.left == 0 || c.h.goingAway) && !c.conn.IsClosed() {
		conn := c.conn
		c.g.w.After(0, conn.Close)
	}
}

func (c *h2Client) send() {
	r := drawRequest(c.g, c.rnd, c.name)
	s := c.h.open(c.next)
	c.next += 2
	s.r = r
	nv := []string{":method", r.method, ":scheme", "http", ":authority", "sim.test", ":path", r.path,
		"x-id", strconv.Itoa(r.id), "x-want", strconv.Itoa(r.down), "x-status", strconv.Itoa(r.status), "x-up", strconv.Itoa(r.up)}
	body := r.method == "POST" || r.method == "PUT"
	if body && !r.chunks {
		nv = append(nv, "content-length", strconv.Itoa(r.up))
	}
	c.h.headers(s, !body, nv...)
	if !c.g.o.NoAborts && percent(c.rnd, percentAbort) {
		c.g.w.After(time.Duration(c.rnd.IntN(5e7)), func() { c.abort(s) })
	}
	if r.upTrail {
		s.trail = trailerOf(r, upward)
	}
	if body {
		c.h.send(s, bodyPieces(c.rnd, newBody(r, upward), r.up, false), nil)
	}
}

// abort resets a stream, or the whole connection.
func (c *h2Client) abort(s *h2Stream) {
	if s.gone || c.conn.IsClosed() || s.r.ended != "" {
		return
	}
	if percent(c.rnd, 20) {
		c.drop(aborted)
		c.conn.Reset()
		return
	}
	c.h.reset(s, http2.ErrCodeCancel)
	c.g.ledger.excuse(s.r, aborted)
	c.onRoom()
}

func (c *h2Client) onHeaders(s *h2Stream, f *http2.MetaHeadersFrame) error {
	if s.headed { // trailers
		if !f.StreamEnded() {
			return fmt.Errorf("trailers that do not end stream %d", s.id)
		}
		return nil
	}
	status, _ := strconv.Atoi(f.PseudoValue("status"))
	if status < 200 {
		return nil
	}
	s.headed = true
	id := ""
	for _, x := range f.RegularFields() {
		switch x.Name {
		case "x-id":
			id = x.Value
		case "content-length":
			s.length, _ = strconv.Atoi(x.Value)
		case "connection", "transfer-encoding", "keep-alive":
			return fmt.Errorf("a field %s on stream %d", x.Name, s.id)
		}
	}
	r := s.r
	if s.own = id == ""; s.own {
		s.status = status
		return nil
	}
	if id != strconv.Itoa(r.id) || status != r.status {
		return fmt.Errorf("on the stream of request %d an answer to %s with status %d instead of %d", r.id, id, status, r.status)
	}
	s.got = newBody(r, downward)
	return nil
}

func (c *h2Client) onData(s *h2Stream, b []byte) error {
	s.n += len(b)
	if s.own {
		return nil
	}
	s.r.received += len(b)
	if !s.got.check(b) || s.r.received > s.r.down {
		return fmt.Errorf("wrong bytes of the answer to request %d, before byte %d of %d", s.r.id, s.r.received, s.r.down)
	}
	return nil
}

func (c *h2Client) onEnd(s *h2Stream) error {
	r := s.r
	switch {
	case !s.headed:
		return fmt.Errorf("the end of stream %d without a head", s.id)
	case s.own:
		c.g.ledger.excuse(r, fmt.Sprintf("the proxy said %d", s.status))
	case !r.bodiless() && r.received != r.down && r.cut:
		c.g.ledger.excuse(r, "cut off by the upstream")
	case !r.bodiless() && r.received != r.down:
		return fmt.Errorf("a whole answer to request %d of %d bytes instead of %d", r.id, r.received, r.down)
	default:
		c.g.ledger.finish(r, answered)
		return c.g.ledger.trailer(r, downward, s.came)
	}
	return nil
}

// onReset: after a whole answer it only says that the rest of the request is not wanted.
func (c *h2Client) onReset(s *h2Stream, code http2.ErrCode) {
	if s.r.ended == "" {
		c.g.ledger.excuse(s.r, "reset with "+code.String())
	}
	c.onRoom()
}
