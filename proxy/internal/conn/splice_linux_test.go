package conn_test

import (
	"bytes"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// mover splices what comes from one connection to another.
type mover struct {
	r        *rig
	from, to *end
	pipe     event.Pipe
	n, moved int
	stalls   int
}

func (m *mover) OnReadable() { m.move() }
func (m *mover) OnWritable() { m.move() }

func (m *mover) move() {
	sp := m.r.w.Driver.(event.Splicer)
	for {
		if !m.to.c.Clear() {
			m.stalls++
			return
		}
		if m.n > 0 {
			k := m.to.c.SpliceOut(sp, m.pipe, m.n)
			m.n -= k
			m.moved += k
			if m.n > 0 {
				m.stalls++
				return
			}
		}
		if m.n = m.from.c.SpliceIn(sp, m.pipe, 1<<20); m.n == 0 {
			return
		}
	}
}

// Bytes that were written before go first, and a peer that does not read holds the flow up without losing a byte.
func TestSplice(t *testing.T) {
	r := newRig(t, event.KindEpoll)
	var k counting
	a, b := r.pair(nil)
	c, d := r.pair(func(c, _ *end) { c.c.SetCounter(&k) })
	sp := r.w.Driver.(event.Splicer)
	pipe, e := sp.NewPipe(1 << 20)
	if e != 0 {
		t.Fatal(e)
	}
	defer sp.ClosePipe(pipe)
	m := &mover{r: r, from: b, to: c, pipe: pipe}
	want := pattern(32 << 20)
	head := 100_000
	r.send(c, want[:head]) // the front part is in c's buffers
	b.c.SetMover(m, true)
	c.c.SetMover(m, false)
	var _ conn.Mover = m
	d.c.ReadDisable(true)
	r.send(a, want[head:])
	r.run("the flow stalls", func() bool { return m.stalls > 0 })
	d.c.ReadDisable(false)
	r.run("all has arrived", func() bool { return len(d.got) == len(want) })
	if !bytes.Equal(d.got, want) {
		t.Error("other bytes came than were sent")
	}
	if m.moved != len(want)-head || k.written != len(want) || b.deliveries > 0 {
		t.Errorf("moved %d, counted %d of %d; %d deliveries past the mover", m.moved, k.written, len(want), b.deliveries)
	}
	a.c.CloseWrite()
	r.run("the end was told", func() bool { return b.eof == 1 })
}

// A peer that has sent its FIN and then resets the connection is noticed, although there is nothing to read any more.
func TestResetAfterFIN(t *testing.T) {
	r := newRig(t, event.KindEpoll)
	c, s := r.pair(func(c, s *end) { c.c.EnableHalfClose(); s.c.EnableHalfClose() })
	c.c.CloseWrite()
	r.run("the end came", func() bool { return s.eof == 1 })
	r.settle()
	c.c.Close(network.Abort, "")
	r.run("the reset was noticed", func() bool { return s.closed == 1 })
	if !s.why.Remote || !s.why.Reset {
		t.Errorf("%+v", s.why)
	}
}
