package event_test

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// echo answers all it gets, and the FIN.
func echo(p *peer) {
	p.send(p.got)
	p.got = p.got[:0]
	if p.eof {
		p.fin = true
		p.write()
	}
}

func TestEcho(t *testing.T) {
	for _, unix := range []bool{false, true} {
		t.Run(fmt.Sprint("unix=", unix), func(t *testing.T) {
			overDrivers(t, 2, func(r *rig) {
				if unix {
					r.addr = r.unix()
				}
				var from network.Address
				l := r.listen(r.workers[1], &event.ListenSpec{Address: r.addr, Mode: 0o600}, func(h event.Handle, a network.Address) {
					from = a
					r.serve(r.workers[1], h).onData = echo
				})
				if unix {
					if st, err := os.Stat(r.addr.Path); err == nil && st.Mode().Perm() != 0o600 {
						t.Errorf("mode %v", st.Mode())
					}
				}
				c := r.dial(r.workers[0], l.address())
				r.run(func() bool { return c.connected && from.Valid() })
				d := c.w.Driver
				if got := d.PeerAddress(c.h); got != l.address() {
					t.Errorf("peer address %v, want %v", got, l.address())
				}
				if got := d.LocalAddress(c.h); !unix && (got != from || !got.Valid()) {
					t.Errorf("the client is %v, the server saw %v", got, from)
				}
				want := pattern(3 << 20)
				c.fin = true
				c.send(want)
				r.run(func() bool { return c.eof || c.err != 0 })
				if c.err != 0 || !bytes.Equal(c.got, want) {
					t.Fatalf("%v after %d of %d bytes", c.err, len(c.got), len(want))
				}
			})
		})
	}
}

// A connection whose one direction has ended carries bytes in the other.
func TestHalfClose(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		c, s := r.pair(r.workers[0], r.workers[0])
		c.fin = true
		c.send([]byte("question"))
		r.run(func() bool { return s.eof })
		if string(s.got) != "question" || s.events&event.HangUp == 0 {
			t.Errorf("got %q, events %b", s.got, s.events)
		}
		if _, e := c.w.Driver.Send(c.h, [][]byte{[]byte("more")}); e != syscall.EPIPE {
			t.Errorf("sending after the FIN: %v", e)
		}
		s.fin = true
		s.send(pattern(1 << 20))
		r.run(func() bool { return c.eof })
		if len(c.got) != 1<<20 {
			t.Errorf("%d bytes of the answer", len(c.got))
		}
	})
}

func TestReset(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		c, s := r.pair(r.workers[0], r.workers[0])
		s.close(true)
		r.run(func() bool { return c.err != 0 || c.eof })
		if c.err != syscall.ECONNRESET || c.events&event.HangUp == 0 {
			t.Errorf("error %v, eof %v, events %b", c.err, c.eof, c.events)
		}
		// The error is told once.
		if e := c.w.Driver.SocketError(c.h); e != 0 {
			t.Errorf("again: %v", e)
		}
		if _, e := c.w.Driver.Send(c.h, [][]byte{[]byte("x")}); e != syscall.EPIPE {
			t.Errorf("send: %v", e)
		}
		if n, e := c.w.Driver.Recv(c.h, c.w.ReadBuffer); n != 0 || e != 0 {
			t.Errorf("recv: %d, %v", n, e)
		}
	})
}

// What arrived before a reset can still be read.
func TestResetAfterData(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		c, s := r.pair(r.workers[0], r.workers[0])
		s.send([]byte("last words"))
		r.run(func() bool { return len(c.got) > 0 })
		s.close(true)
		r.run(func() bool { return c.err != 0 || c.eof })
		if string(c.got) != "last words" || c.err != syscall.ECONNRESET {
			t.Errorf("got %q, error %v", c.got, c.err)
		}
	})
}

func TestConnectRefused(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		l := r.listen(r.workers[0], &event.ListenSpec{Address: r.addr}, nil)
		a := l.address()
		l.close()
		c := r.dial(r.workers[0], a)
		r.run(func() bool { return c.err != 0 || c.connected })
		if c.err != syscall.ECONNREFUSED {
			t.Errorf("error %v, connected %v", c.err, c.connected)
		}
	})
}

// A handle that is closed while it connects tells nobody anything.
func TestCloseWhileConnecting(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		accepted := 0
		l := r.listen(r.workers[0], &event.ListenSpec{Address: r.addr}, func(h event.Handle, _ network.Address) {
			accepted++
			r.serve(r.workers[0], h)
		})
		c := r.dial(r.workers[0], l.address())
		c.close(false)
		d := r.dial(r.workers[0], l.address())
		r.run(func() bool { return d.connected })
		if c.calls != 0 {
			t.Errorf("%d events after the close", c.calls)
		}
	})
}

// A sender that is told EAGAIN gets one edge once there is room, and none before.
func TestWritableEdge(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		c, s := r.pair(r.workers[0], r.workers[0])
		s.deaf = true
		want := pattern(32 << 20)
		c.send(want)
		if !c.blocked {
			r.run(func() bool { return c.blocked })
		}
		// What the kernel buffers may move still: on a busy machine it may stand for a while and go on, and a little room may come that
		// is no edge yet. It has come to rest when nothing is taken after such a while.
		for {
			r.settle(func() int { return c.sent })
			n, e := c.w.Driver.Send(c.h, [][]byte{want[c.sent:]})
			if e == syscall.EAGAIN {
				break
			}
			if e != 0 {
				t.Fatalf("sending into full buffers: %v", e)
			}
			if c.sent += n; c.sent == len(want) {
				t.Fatal("everything was taken although nobody reads")
			}
			c.blocked = false
			c.write() // up to EAGAIN: an edge is owed again
		}
		edges := c.edges
		s.deaf = false
		s.read()
		r.run(func() bool { return len(s.got) == len(want) })
		if c.edges == edges {
			t.Error("no edge")
		}
		if !bytes.Equal(s.got, want) {
			t.Error("the bytes differ")
		}
	})
}

// settle runs until a value has not changed for a while, and returns it.
func (r *rig) settle(value func() int) int {
	for {
		v, fired := value(), false
		timer := event.Timer{Fn: func() { fired = true }}
		r.workers[0].Arm(&timer, 100e6)
		r.run(func() bool { return fired })
		if value() == v {
			return v
		}
	}
}

// The peer's FIN is told to one who does not read.
func TestHangUpUnread(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		c, s := r.pair(r.workers[0], r.workers[0])
		c.deaf = true
		s.send([]byte("unread"))
		s.close(false)
		r.run(func() bool { return c.events&event.HangUp != 0 })
		c.deaf = false
		c.read()
		if string(c.got) != "unread" || !c.eof {
			t.Errorf("got %q, eof %v", c.got, c.eof)
		}
	})
}

// Add reports what is true already.
func TestAddReportsState(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		w := r.workers[0]
		accepted := event.NoHandle
		l := r.listen(w, &event.ListenSpec{Address: r.addr}, func(h event.Handle, _ network.Address) { accepted = h })
		c := r.dial(w, l.address())
		c.send([]byte("early"))
		r.run(func() bool { return accepted != event.NoHandle && c.sent == 5 })
		n, e := 0, syscall.EAGAIN
		r.run(func() bool { // until the first byte has arrived
			n, e = w.Driver.Recv(accepted, w.ReadBuffer[:1])
			return e != syscall.EAGAIN
		})
		if n != 1 || e != 0 {
			t.Fatalf("%d, %v", n, e)
		}
		s := r.serve(w, accepted)
		r.run(func() bool { return string(s.got) == "arly" })
		if s.events&event.Writable == 0 {
			t.Error("not writable")
		}
		// After Remove nothing comes; after another Add the state again.
		w.Unregister(s.h)
		s.calls = 0
		c.send([]byte("x"))
		r.settle(func() int { return s.calls })
		if s.calls != 0 {
			t.Error("an event after Remove")
		}
		if err := w.Register(s.h, s); err != nil {
			t.Fatal(err)
		}
		r.run(func() bool { return string(s.got) == "arlyx" })
	})
}

// Workers that listen on one address share it: every connection is accepted once, and goes on when one of them stops.
func TestSharedAddress(t *testing.T) {
	overDrivers(t, 3, func(r *rig) {
		servers := r.workers[:2]
		count := make([]int, 2)
		spec := &event.ListenSpec{Address: r.addr, ReusePort: true}
		var ls []*listener
		for i, w := range servers {
			ls = append(ls, r.listen(w, spec, func(h event.Handle, _ network.Address) {
				count[i]++
				r.serve(w, h).onData = echo
			}))
			spec = &event.ListenSpec{Address: ls[0].address(), ReusePort: true}
		}
		exchange := func(n int) {
			t.Helper()
			var cs []*peer
			for range n {
				c := r.dial(r.workers[2], ls[0].address())
				c.send([]byte("hello"))
				cs = append(cs, c)
			}
			r.run(func() bool {
				for _, c := range cs {
					if c.err != 0 {
						t.Fatal(c.err)
					}
					if len(c.got) < 5 {
						return false
					}
				}
				return true
			})
		}
		exchange(64)
		if count[0]+count[1] != 64 || count[0] == 0 || count[1] == 0 {
			t.Errorf("accepted %v of 64", count)
		}
		before := count[0]
		ls[1].closed = true
		r.workers[1].Close(ls[1].h, false)
		exchange(8)
		if count[0] != before+8 {
			t.Errorf("%d of 8 went to the worker that is left", count[0]-before)
		}
	})
}

func TestListenErrors(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		w := r.workers[0]
		l := r.listen(w, &event.ListenSpec{Address: r.addr}, nil)
		if h, err := w.Driver.Listen(&event.ListenSpec{Address: l.address()}); !isErrno(err, syscall.EADDRINUSE) {
			t.Errorf("handle %d, error %v", h, err)
		}
		a := l.address()
		l.close()
		r.listen(w, &event.ListenSpec{Address: a}, nil)
	})
}

// Closing a handle is no reset: what Send took arrives, then the FIN.
func TestCloseSendsWhatWasTaken(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		c, s := r.pair(r.workers[0], r.workers[0])
		s.deaf = true
		c.out = pattern(1 << 20)
		c.write()
		taken := c.sent
		c.close(false)
		s.deaf = false
		s.read()
		r.run(func() bool { return s.eof || s.err != 0 })
		if s.err != 0 || !bytes.Equal(s.got, c.out[:taken]) {
			t.Errorf("%d of %d bytes, error %v", len(s.got), taken, s.err)
		}
	})
}

// A listening socket that goes takes along what waited in it; clients see a reset, or the end.
func TestCloseListenerWithBacklog(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		w := r.workers[0]
		h, err := w.Driver.Listen(&event.ListenSpec{Address: r.addr})
		if err != nil {
			t.Fatal(err)
		}
		c := r.dial(w, w.Driver.LocalAddress(h))
		r.run(func() bool { return c.connected })
		r.settle(func() int { return c.calls })
		w.Driver.CloseHandle(h, false)
		r.run(func() bool { return c.eof || c.err != 0 })
	})
}

// An event that was taken for a handle must not reach who got the same handle in the meantime.
func TestStaleEvent(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		w := r.workers[0]
		a, sa := r.pair(w, w)
		b, sb := r.pair(w, w)
		r.settle(func() int { return a.calls + b.calls })
		l := r.listen(w, &event.ListenSpec{Address: r.addr}, func(h event.Handle, _ network.Address) { r.serve(w, h) })
		var c *peer
		// Whoever of a and b comes first closes the other, whose event is in the same batch, and connects: the handle comes back.
		swap := func(other *peer) func(*peer, event.Events) {
			return func(p *peer, ev event.Events) {
				if c != nil || ev&event.Readable == 0 {
					return
				}
				old := other.h
				other.close(false)
				c = r.dial(w, l.address())
				if c.h != old {
					t.Errorf("handle %d, want %d again", c.h, old)
				}
				c.onReady = func(c *peer, ev event.Events) {
					if ev&event.Readable != 0 {
						t.Errorf("events %b are not the new handle's", ev)
					}
				}
			}
		}
		a.onReady, b.onReady = swap(b), swap(a)
		sa.send([]byte("1"))
		sb.send([]byte("2"))
		r.run(func() bool { return c != nil && c.connected })
		if a.closed == b.closed {
			t.Error("both or none closed")
		}
	})
}

func TestBadHandle(t *testing.T) {
	overDrivers(t, 1, func(r *rig) {
		d := r.workers[0].Driver
		c, _ := r.pair(r.workers[0], r.workers[0])
		h := c.h
		c.close(false)
		if _, e := d.Recv(h, make([]byte, 1)); e != syscall.EBADF {
			t.Errorf("recv: %v", e)
		}
		if _, e := d.Send(h, [][]byte{{1}}); e != syscall.EBADF {
			t.Errorf("send: %v", e)
		}
		if e := d.Add(h, 1); e != syscall.EBADF {
			t.Errorf("add: %v", e)
		}
		if a := d.LocalAddress(h); a.Valid() {
			t.Errorf("address %v", a)
		}
	})
}

func TestNewDriver(t *testing.T) {
	d, err := event.NewDriver("")
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	if _, err := event.NewDriver("kqueue"); err == nil {
		t.Error("no error for a driver that does not exist")
	}
}
