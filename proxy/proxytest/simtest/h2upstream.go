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

// h2Upstream is one HTTP/2 connection of an upstream.
type h2Upstream struct {
	g    *game
	rnd  *rand.Source
	conn *sim.Conn
	h    *h2Conn
	last uint32
}

func (u *h2Upstream) Open(c *sim.Conn) {
	u.conn = c
	u.h = newH2Conn(u.g, u.rnd, c, u, true)
}

func (u *h2Upstream) Data(c *sim.Conn, b []byte) {
	if err := u.h.feed(b); err != nil {
		u.g.ledger.fail("an upstream got %v", err)
		c.Close()
	}
}

func (u *h2Upstream) End(c *sim.Conn)                  { c.Close() }
func (u *h2Upstream) Closed(*sim.Conn, syscall.Errno)  {}
func (u *h2Upstream) onRoom()                          {}
func (u *h2Upstream) onReset(*h2Stream, http2.ErrCode) {}

func (u *h2Upstream) onHeaders(s *h2Stream, f *http2.MetaHeadersFrame) error {
	if s.headed { // trailers
		return nil
	}
	s.headed = true
	u.last = max(u.last, s.id)
	field := map[string]int{}
	for _, x := range f.RegularFields() {
		if n, err := strconv.Atoi(x.Value); err == nil {
			field[x.Name] = n
		}
	}
	r := u.g.ledger.find(field["x-id"])
	if r == nil {
		return fmt.Errorf("a request that nobody sent: %v", f.Fields)
	}
	s.r = r
	u.g.ledger.saw(r)
	method, path := f.PseudoValue("method"), f.PseudoValue("path")
	if method != r.method || path != r.path || field["x-want"] != r.down || field["x-up"] != r.up || field["x-status"] != r.status {
		return fmt.Errorf("request %d changed: %v", r.id, f.Fields)
	}
	if n, ok := field["content-length"]; ok && r.method != "HEAD" {
		s.length = n
	}
	s.got = newBody(r, upward)
	u.misbehave(s)
	return nil
}

func (u *h2Upstream) misbehave(s *h2Stream) {
	k := &u.g.mischief
	switch {
	case percent(u.rnd, k.reset):
		code := []http2.ErrCode{http2.ErrCodeInternal, http2.ErrCodeRefusedStream, http2.ErrCodeCancel}[u.rnd.IntN(3)]
		u.later(func() { u.h.reset(s, code) })
	case percent(u.rnd, k.closeEarly):
		u.later(func() { u.bye(0); u.conn.Close() })
	case percent(u.rnd, k.closeAfter):
		u.later(func() { u.conn.Reset() })
	case percent(u.rnd, k.early):
		u.later(func() { u.answer(s) })
	case percent(u.rnd, k.garbage):
		u.later(func() {
			u.h.broken = true
			u.conn.Write([]byte("\x00\x00\x01\x00\x00\x00\x00\x00\x00x")) // data on stream 0
			u.later(u.conn.Close)
		})
	}
}

// bye sends a GOAWAY that refuses what is above last.
func (u *h2Upstream) bye(last uint32) {
	_ = u.h.fr.WriteGoAway(last, http2.ErrCodeNo, nil)
	u.h.flush()
}

func (u *h2Upstream) onData(s *h2Stream, b []byte) error {
	s.n += len(b)
	if !s.got.check(b) || s.n > s.r.up {
		return fmt.Errorf("wrong bytes of request %d, before byte %d of %d", s.r.id, s.n, s.r.up)
	}
	return nil
}

func (u *h2Upstream) onEnd(s *h2Stream) error {
	if s.n != s.r.up {
		return fmt.Errorf("request %d as if it were whole, with %d of %d bytes", s.r.id, s.n, s.r.up)
	}
	if err := u.g.ledger.trailer(s.r, upward, s.came); err != nil {
		return err
	}
	s.r.arrived++
	if !percent(u.rnd, u.g.silent) {
		u.later(func() { u.answer(s) })
	}
	return nil
}

func (u *h2Upstream) later(f func()) {
	d := time.Duration(u.rnd.IntN(2e6))
	if percent(u.rnd, 10) {
		d = time.Duration(u.rnd.IntN(1e9))
	}
	u.g.w.After(d, func() {
		if !u.conn.IsClosed() && !u.h.broken {
			f()
		}
	})
}

func (u *h2Upstream) answer(s *h2Stream) {
	if s.gone || s.begun {
		return
	}
	s.begun = true
	r, k := s.r, &u.g.mischief
	nv := []string{":status", strconv.Itoa(r.status), "x-id", strconv.Itoa(r.id), "server", "upstream"}
	if !r.downTrail && percent(u.rnd, 50) && r.status != 204 && r.status != 304 {
		nv = append(nv, "content-length", strconv.Itoa(r.down))
	}
	if percent(u.rnd, k.sayClose) {
		u.bye(u.last)
	}
	if r.bodiless() {
		u.h.headers(s, true, nv...)
		return
	}
	u.h.headers(s, false, nv...)
	if r.downTrail {
		s.trail = trailerOf(r, downward)
	}
	pieces := bodyPieces(u.rnd, newBody(r, downward), r.down, false)
	cut := -1
	if percent(u.rnd, k.cut) {
		cut = u.rnd.IntN(len(pieces) + 1)
	}
	u.h.send(s, pieces, func() bool {
		if cut != 0 {
			cut--
			return true
		}
		u.h.reset(s, http2.ErrCodeInternal)
		return false
	})
}
