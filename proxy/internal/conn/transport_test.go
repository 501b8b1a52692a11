package conn_test

import (
	"testing"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
)

// shift is a transport that adds a number to every byte, says hello with one byte before anything else, and says goodbye with
// another.
type shift struct {
	by        byte
	greeted   bool
	bye       bool
	ended     int
	destroyed int
}

func (x *shift) Start(c *conn.Conn) { c.Wire().Append([]byte{'H'}) }

func (x *shift) Feed(c *conn.Conn, b []byte) {
	if !x.greeted {
		if b[0] != 'H' {
			c.Fail("no hello")
			return
		}
		x.greeted = true
		b = b[1:]
		c.Ready()
	}
	plain := make([]byte, 0, len(b))
	for _, ch := range b {
		if ch == 'B' {
			c.Deliver(plain)
			c.PeerDone()
			return
		}
		plain = append(plain, ch-x.by)
	}
	if len(plain) > 0 {
		c.Deliver(plain)
	}
}

func (x *shift) EOF(*conn.Conn) { x.ended++ }

func (x *shift) Seal(_ *conn.Conn, plain, wire *buffer.Buffer) {
	b := plain.Bytes()
	for i := range b {
		b[i] += x.by
	}
	wire.Append(b)
	plain.Reset()
}

func (x *shift) CloseNotify(c *conn.Conn) bool {
	if x.bye {
		return false
	}
	x.bye = true
	c.Wire().Append([]byte{'B'})
	return true
}

func (x *shift) Destroy() { x.destroyed++ }

// A connection that somebody has looked at goes on with a transport: what has arrived passes through it.
func TestAssignFeedsTheTransport(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		c, s := r.pair(func(_, s *end) { s.take = func([]byte) int { return 0 } })
		r.send(c, []byte("Hbcd"))
		r.run("it has arrived", func() bool { return s.c.Unread() == 4 })
		final, tr := &end{c: s.c}, &shift{by: 1}
		s.c.Assign(tr, final)
		r.run("it went through", func() bool { return string(final.got) == "abc" })
		if final.connected != 1 || s.closed > 0 || len(s.got) > 0 {
			t.Errorf("connected %d times; the first handler got %q", final.connected, s.got)
		}
		r.send(c, []byte("ef"))
		r.run("more goes through", func() bool { return string(final.got) == "abcde" })
		r.send(final, []byte("abc"))
		r.run("the other way too", func() bool { return string(c.got) == "Hbcd" })
		final.c.Close(network.FlushWrite, "")
		r.run("it is closed", func() bool { return final.closed == 1 && c.closed == 1 })
		if got := string(c.got); got != "HbcdB" || tr.destroyed != 1 {
			t.Errorf("the client got %q; destroyed %d times", got, tr.destroyed)
		}
	})
}

func TestAssignPlain(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		c, s := r.pair(func(_, s *end) { s.take = func([]byte) int { return 0 } })
		r.send(c, []byte("hello"))
		r.run("it has arrived", func() bool { return s.c.Unread() == 5 })
		final := &end{c: s.c}
		s.c.Assign(nil, final)
		r.run("the new handler has it", func() bool { return string(final.got) == "hello" })
		if final.connected != 1 {
			t.Errorf("connected %d times", final.connected)
		}
	})
}

// The transport's goodbye ends the peer's half only.
func TestCloseNotifyHalfCloses(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		c, s := r.pair(func(c, s *end) {
			s.c.SetTransport(&shift{by: 1})
			s.c.EnableHalfClose()
			c.c.EnableHalfClose()
			s.connected = 1 // pair waits for it
		})
		r.send(c, []byte("Hbc"))
		r.run("it came", func() bool { return string(s.got) == "ab" })
		r.send(c, []byte("B"))
		r.run("the end came", func() bool { return s.eof == 1 })
		r.send(s, []byte("xyz"))
		s.c.CloseWrite()
		r.run("the client has it all", func() bool { return string(c.got) == "Hyz{B" && c.eof == 1 })
	})
}

func TestTransportFailure(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		tr := &shift{}
		c, s := r.pair(func(_, s *end) {
			s.connected = 1 // pair waits for it
			s.c.SetTransport(tr)
		})
		r.send(c, []byte("nonsense"))
		r.run("it is closed", func() bool { return s.closed == 1 })
		if !s.why.Failed || s.why.Reason != "no hello" || s.c.Info.Ended().TransportFailure != "no hello" || tr.destroyed != 1 {
			t.Errorf("%+v, %q, destroyed %d times", s.why, s.c.Info.Ended().TransportFailure, tr.destroyed)
		}
	})
}
