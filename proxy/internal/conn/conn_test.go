package conn_test

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// pattern is n bytes of which no two far parts are alike.
func pattern(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// send writes b in one call.
func (r *rig) send(e *end, b []byte) {
	r.lend.Borrow(b)
	e.c.WriteData(&r.lend)
}

func TestWhatIsNotConsumedComesAgain(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		// Whole lines only.
		c, s := r.pair(func(_, s *end) {
			s.take = func(b []byte) int { return bytes.LastIndexByte(b, '\n') + 1 }
		})
		for _, part := range []string{"one\ntw", "o", "\n", "three\nfour"} {
			r.send(c, []byte(part))
			r.settle()
		}
		if got, want := string(s.got), "one\ntwo\nthree\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, want := s.c.Unread(), len("four"); got != want {
			t.Errorf("%d bytes are unread, want %d", got, want)
		}
		s.take = nil
		s.c.Redeliver()
		r.run("the rest was delivered again", func() bool { return strings.HasSuffix(string(s.got), "four") })
	})
}

func TestUnreadBytesAreBounded(t *testing.T) {
	for _, size := range []int{conn.MaxUnread, conn.MaxUnread + 1} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			overDrivers(t, func(t *testing.T, r *rig) {
				c, s := r.pair(func(_, s *end) { s.take = func([]byte) int { return 0 } })
				want := pattern(size)
				r.send(c, want)
				r.run("all has arrived", func() bool { return s.c.Unread() == size })
				// At the limit reading goes on, past it it stops.
				if got, want := s.c.Paused(), size > conn.MaxUnread; got != want {
					t.Errorf("paused: %v, want %v", got, want)
				}
				more := pattern(4 << 20)
				r.send(c, more)
				r.settle()
				if got, most := s.c.Unread(), conn.MaxUnread+event.ReadBufferSize; got > most {
					t.Errorf("%d bytes are unread, at most %d may be", got, most)
				}
				s.take = nil
				s.c.Redeliver()
				r.run("all was delivered", func() bool { return len(s.got) == len(want)+len(more) })
				if !bytes.Equal(s.got, append(want, more...)) {
					t.Error("other bytes came than were sent")
				}
			})
		})
	}
}

func TestReadDisableNests(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		c, s := r.pair(nil)
		s.c.ReadDisable(true)
		s.c.ReadDisable(true)
		r.send(c, []byte("hello"))
		r.settle()
		s.c.ReadDisable(false)
		r.settle()
		if len(s.got) > 0 {
			t.Fatalf("got %q while reading was off", s.got)
		}
		s.c.ReadDisable(false)
		if len(s.got) > 0 {
			t.Fatal("ReadDisable delivered inline")
		}
		r.run("the bytes come", func() bool { return string(s.got) == "hello" })
	})
}

func TestWatermarks(t *testing.T) {
	const mark = 64 << 10
	for _, tc := range []struct{ size, high int }{{mark, 0}, {mark + 1, 1}} {
		t.Run(fmt.Sprint(tc.size), func(t *testing.T) {
			overDrivers(t, func(t *testing.T, r *rig) {
				s := &end{}
				at := r.listen(func(h event.Handle) {
					s.c = conn.New(r.w, h, nil)
					_ = s.c.Start(s)
				})
				c := &end{}
				c.c = conn.Dial(r.w, &event.ConnectSpec{Address: at}, nil, c)
				c.c.SetLimit(mark)
				// Before the connection is there, everything that is written waits.
				r.send(c, pattern(tc.size))
				if c.high != tc.high || c.c.Above() != (tc.high > 0) {
					t.Errorf("%d bytes wait: %d calls of OnHighWatermark, want %d", tc.size, c.high, tc.high)
				}
				r.run("all has arrived", func() bool { return len(s.got) == tc.size })
				r.settle()
				if c.low != tc.high || c.c.Above() {
					t.Errorf("drained: %d calls of OnLowWatermark, want %d", c.low, tc.high)
				}
			})
		})
	}
}

func TestBigWrites(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		c, s := r.pair(func(c, s *end) { c.c.SetLimit(1 << 20) })
		s.c.ReadDisable(true)
		want := pattern(48 << 20)
		sent := 0
		// What borrowed memory holds may change after the call: WriteData must have sent or copied it.
		scratch := make([]byte, 1<<20)
		for sent < len(want) && c.high == 0 {
			n := copy(scratch, want[sent:])
			r.send(c, scratch[:n])
			clear(scratch)
			sent += n
			r.w.Step(false)
		}
		if c.high != 1 {
			t.Fatalf("the peer takes nothing: %d calls of OnHighWatermark after %d bytes, want 1", c.high, sent)
		}
		s.c.ReadDisable(false)
		r.run("the peer took it all", func() bool { return len(s.got) == sent })
		r.run("the low watermark was told", func() bool { return c.low == 1 })
		if !bytes.Equal(s.got, want[:sent]) {
			t.Error("other bytes came than were sent")
		}
	})
}

func TestHalfClose(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		c, s := r.pair(func(c, s *end) { c.c.EnableHalfClose(); s.c.EnableHalfClose() })
		r.send(c, []byte("request"))
		c.c.CloseWrite()
		r.run("the end came", func() bool { return s.eof == 1 })
		if got := string(s.got); got != "request" {
			t.Errorf("before the end came %q", got)
		}
		r.settle()
		if s.closed+c.closed > 0 {
			t.Fatal("a half closed connection was closed")
		}
		r.send(s, []byte("answer"))
		s.c.CloseWrite()
		r.run("both are closed", func() bool { return s.closed == 1 && c.closed == 1 })
		if got := string(c.got); got != "answer" || c.eof != 1 {
			t.Errorf("the other way came %q and %d ends", got, c.eof)
		}
		// Who sends the last FIN ends the connection.
		if s.why.Remote || !c.why.Remote || s.why.Reset || c.why.Reset {
			t.Errorf("ended as %+v and %+v", s.why, c.why)
		}
	})
}

func TestEOFClosesWithoutHalfClose(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		c, s := r.pair(func(c, _ *end) { c.c.EnableHalfClose() })
		c.c.CloseWrite()
		r.run("the server's end is closed", func() bool { return s.closed == 1 })
		if s.eof != 1 || !s.why.Remote || s.why.Reset {
			t.Errorf("%d ends, %+v", s.eof, s.why)
		}
	})
}

func TestFlushThenClose(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		c, s := r.pair(nil)
		s.c.ReadDisable(true)
		want := pattern(16 << 20)
		r.send(c, want)
		c.c.Close(network.FlushWrite, "done")
		r.settle()
		if c.closed > 0 {
			t.Fatal("closed before everything was sent")
		}
		s.c.ReadDisable(false)
		r.run("both are closed", func() bool { return s.closed == 1 && c.closed == 1 })
		if !bytes.Equal(s.got, want) {
			t.Errorf("%d bytes came, or other ones; %d were sent", len(s.got), len(want))
		}
		if diff := cmp.Diff(conn.Closed{Reason: "done"}, c.why); diff != "" {
			t.Error(diff)
		}
		if c.c.Info.Ended().CloseReason != "done" || c.c.Info.Ended().CloseType != "Normal" {
			t.Errorf("reason %q, type %q", c.c.Info.Ended().CloseReason, c.c.Info.Ended().CloseType)
		}
	})
}

// A peer that did wrong is told so, but it cannot hold the connection by reading nothing.
func TestLastWords(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		c, s := r.pair(nil)
		r.send(c, []byte("last words"))
		c.c.CloseWithLastWords("done")
		r.run("both are closed", func() bool { return s.closed == 1 && c.closed == 1 })
		if string(s.got) != "last words" {
			t.Errorf("got %q", s.got)
		}
		for _, when := range []string{"before", "then"} {
			c, s := r.pair(nil)
			s.c.ReadDisable(true)
			r.send(c, pattern(16<<20))
			if when == "before" {
				r.settle() // until the kernel takes no more
			}
			c.c.CloseWithLastWords("done")
			r.run("it is closed", func() bool { return c.closed == 1 })
			if c.why.Reason != "done" || c.why.Remote {
				t.Errorf("%s: closed by %+v", when, c.why)
			}
			s.c.Close(network.NoFlush, "")
		}
	})
}

func TestDelayedClose(t *testing.T) {
	const wait = time.Minute
	for _, tc := range []struct {
		name string
		peer bool // the peer closes
	}{{"the peer closes", true}, {"the peer does not", false}} {
		t.Run(tc.name, func(t *testing.T) {
			overDrivers(t, func(t *testing.T, r *rig) {
				c, s := r.pair(func(_, s *end) { s.c.EnableHalfClose() })
				r.send(c, []byte("last words"))
				c.c.CloseDelayed("", wait)
				r.run("the peer got them", func() bool { return string(s.got) == "last words" })
				// What the peer still sends is thrown away and is no reason to close.
				r.send(s, []byte("too late"))
				r.clock.ahead += wait - time.Second
				r.settle()
				if c.closed > 0 || len(c.got) > 0 || s.eof > 0 {
					t.Fatalf("closed %d, got %q, the peer saw %d ends", c.closed, c.got, s.eof)
				}
				if tc.peer {
					s.c.CloseWrite()
				} else {
					r.clock.ahead += 2 * time.Second
				}
				r.run("it is closed", func() bool { return c.closed == 1 && s.eof == 1 })
				if c.why.Remote != tc.peer || c.why.Delayed == tc.peer {
					t.Errorf("closed by %+v", c.why)
				}
			})
		})
	}
}

// A peer that takes a long answer slowly has time for all of it; one that takes nothing does not hold the connection.
func TestDelayedCloseFollowsProgress(t *testing.T) {
	const wait = time.Minute
	overDrivers(t, func(t *testing.T, r *rig) {
		c, s := r.pair(nil)
		want := pattern(24 << 20)
		s.c.ReadDisable(true)
		r.send(c, want)
		c.c.CloseDelayed("", wait)
		r.settle()
		for range 5 {
			before := c.c.Buffered()
			s.c.ReadDisable(false)
			r.run("some of it went out", func() bool { return c.c.Buffered() < before })
			s.c.ReadDisable(true)
			r.clock.ahead += wait - time.Second
			r.settle()
			if c.closed > 0 {
				t.Fatalf("closed although the peer had just taken something; %d bytes were left before", before)
			}
		}
		// The first waits may still see what the kernel's buffers took.
		for i := 0; i < 10 && c.closed == 0; i++ {
			r.clock.ahead += 2 * wait
			r.settle()
		}
		if c.closed != 1 {
			t.Fatal("a peer that takes nothing holds the connection")
		}
	})
}

func TestAbortResets(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		c, s := r.pair(nil)
		c.c.Close(network.Abort, "")
		r.run("the peer knows", func() bool { return s.closed == 1 })
		if !s.why.Remote || !s.why.Reset || s.c.Info.Ended().CloseType != "RemoteReset" {
			t.Errorf("the peer saw %+v, type %q", s.why, s.c.Info.Ended().CloseType)
		}
		if c.closed != 1 || c.why.Remote || c.c.Info.Ended().CloseType != "LocalReset" {
			t.Errorf("our end: %+v, type %q", c.why, c.c.Info.Ended().CloseType)
		}
	})
}

// A client that resets its connection while nobody reads from it is noticed.
func TestResetWhilePaused(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		c, s := r.pair(nil)
		s.c.ReadDisable(true)
		c.c.Close(network.Abort, "")
		r.run("the end was noticed", func() bool { return s.closed == 1 })
		if !s.why.Remote {
			t.Errorf("%+v", s.why)
		}
	})
}

func TestConnectFailure(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		// A port that was free a moment ago.
		h, err := r.w.Driver.Listen(&event.ListenSpec{Address: loopback})
		if err != nil {
			t.Fatal(err)
		}
		at := r.w.Driver.LocalAddress(h)
		r.w.Driver.CloseHandle(h, false)
		r.settle()
		c := &end{}
		c.c = conn.Dial(r.w, &event.ConnectSpec{Address: at}, nil, c)
		if c.closed > 0 {
			t.Fatal("Dial called back inline")
		}
		r.run("it failed", func() bool { return c.closed == 1 })
		want := conn.Closed{Failed: true, Remote: true, Errno: syscall.ECONNREFUSED}
		if diff := cmp.Diff(want, c.why, cmpopts.IgnoreFields(conn.Closed{}, "Reset")); diff != "" || c.connected > 0 {
			t.Errorf("connected %d times; %s", c.connected, diff)
		}
	})
}

// What is written before the connection is there goes out first.
func TestWriteBeforeConnected(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		s := &end{}
		at := r.listen(func(h event.Handle) {
			s.c = conn.New(r.w, h, nil)
			_ = s.c.Start(s)
		})
		c := &end{}
		c.c = conn.Dial(r.w, &event.ConnectSpec{Address: at}, nil, c)
		r.send(c, []byte("early "))
		c.onConnected = func() { r.send(c, []byte("late")) }
		r.run("both parts came", func() bool { return string(s.got) == "early late" })
	})
}

// counting is a conn.Counter.
type counting struct{ read, written int }

func (k *counting) OnRead(n int)    { k.read += n }
func (k *counting) OnWritten(n int) { k.written += n }

func TestCounter(t *testing.T) {
	overDrivers(t, func(t *testing.T, r *rig) {
		var kc, ks counting
		c, s := r.pair(func(c, s *end) { c.c.SetCounter(&kc); s.c.SetCounter(&ks) })
		r.send(c, pattern(100))
		r.send(c, pattern(1<<20))
		r.run("all has arrived", func() bool { return len(s.got) == 100+1<<20 })
		if want := 100 + 1<<20; kc.written != want || ks.read != want {
			t.Errorf("written %d, read %d, want %d", kc.written, ks.read, want)
		}
	})
}

// One message each way costs nothing but the system calls.
func TestRoundTripAllocatesNothing(t *testing.T) {
	r := newRig(t, event.DefaultDriver())
	c, s := r.pair(nil)
	msg := pattern(1000)
	echo := func(to *end) func(b []byte) int {
		return func(b []byte) int {
			r.send(to, b)
			to.got = to.got[:0]
			return len(b)
		}
	}
	got := 0
	s.take = echo(s)
	c.take = func(b []byte) int { got += len(b); return len(b) }
	round := func() {
		got = 0
		r.send(c, msg)
		c.got, s.got = c.got[:0], s.got[:0]
		for got < len(msg) {
			r.w.Step(false)
		}
	}
	for range 100 {
		round()
	}
	if n := testing.AllocsPerRun(1000, round); n != 0 {
		t.Errorf("%v allocations a round trip", n)
	}
}
