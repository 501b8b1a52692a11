package tcpproxy

import (
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// When a flow is handed to the kernel, and when it is taken back.
const (
	// bigRead is what makes a read count as part of a bulk transfer, and spliceAfter the bytes of such reads in a row after which
	// splicing pays. Below that, two calls and a copy are cheaper than what the pipe costs.
	bigRead     = 16 << 10
	spliceAfter = 64 << 10
	// smallMove and maxSmallMoves: so many moves in a row below that size end it.
	smallMove     = 4 << 10
	maxSmallMoves = 4
	// minSpliceLimit is the buffer limit below which flows are not spliced: a pipe holds what it holds.
	minSpliceLimit = 64 << 10
)

// side is one end of a session, and the flow of bytes from it to the other end. It is its connection's Mover.
type side struct {
	c    *conn.Conn // nil when it is not there, or gone
	peer *side
	s    *session
	// in counts the bytes that came from this side.
	in uint64
	// hot is the size of the transfer that is under way.
	hot int
	// n bytes of this side wait in pipe, which is held only as long as there are some.
	n    int
	pipe event.Pipe

	gone     bool // the connection was there and is closed
	eof      bool // it sends no more
	splice   bool // it could be spliced from
	splicing bool
	small    uint8
}

// data passes on what was read.
func (d *side) data(b []byte) int {
	s := d.s
	n := len(b)
	d.came(n)
	if d.peer.c == nil {
		return n
	}
	lend := &s.l.lend
	lend.Borrow(b)
	d.peer.c.WriteData(lend)
	if !d.splice {
		return n
	}
	if n < bigRead {
		d.hot = 0
	} else if d.hot += n; d.hot >= spliceAfter {
		d.startSplice()
	}
	return n
}

func (d *side) startSplice() {
	if d.c == nil || d.peer.c == nil || d.c.Unread() > 0 {
		return
	}
	d.splicing, d.small, d.hot = true, 0, 0
	d.c.SetMover(d, true)
	d.peer.c.SetMover(d.peer, d.peer.splicing)
}

func (d *side) stopSplice() {
	d.splicing, d.hot = false, 0
	if d.c != nil {
		d.c.SetMover(d, false)
	}
}

// OnReadable implements conn.Mover.
func (d *side) OnReadable() { d.move() }

// OnWritable implements conn.Mover: the other side's flow may go on.
func (d *side) OnWritable() {
	if p := d.peer; p.splicing || p.n > 0 {
		p.move()
	}
}

// move moves bytes through the pipe until there are none, the peer takes no more, or the pass has done enough.
func (d *side) move() {
	s := d.s
	for range event.MaxReads {
		if d.n > 0 && !d.drain() {
			return
		}
		if !d.splicing || d.c == nil || d.eof || d.peer.c == nil || d.c.Paused() {
			return
		}
		if d.small >= maxSmallMoves {
			// Only now: what is read must not overtake what is in the pipe. What has arrived, if only the end, was told already.
			d.stopSplice()
			d.c.ReadLater()
			return
		}
		if !d.peer.c.Clear() {
			return // OnWritable comes
		}
		p, ok := s.l.get()
		if !ok {
			d.stopSplice()
			d.c.ReadLater()
			return
		}
		n := d.c.SpliceIn(s.l.splicer, p, pipeSize)
		if n == 0 {
			s.l.put(p, true)
			return
		}
		d.pipe, d.n = p, n
		d.came(n)
		if d.small++; n >= smallMove {
			d.small = 0
		}
	}
	if d.n > 0 && !d.drain() {
		return
	}
	if d.c != nil && d.c.IsOpen() {
		d.c.ReadLater()
	}
}

// drain sends what is in the pipe and tells whether all of it is out.
func (d *side) drain() bool {
	s, to := d.s, d.peer.c
	if to == nil || !to.Clear() {
		return false
	}
	sent := to.SpliceOut(s.l.splicer, d.pipe, d.n)
	if d.n -= min(sent, d.n); d.n > 0 || d.peer.c == nil {
		return false // the rest later; or the peer is gone, and drop was called
	}
	s.l.put(d.pipe, true)
	if d.eof {
		to.CloseWrite()
	}
	if d.gone {
		s.passClose(d)
	}
	return true
}

// onEOF passes the end on, behind everything that came before it.
func (d *side) onEOF() {
	d.eof = true
	if d.n == 0 && d.peer.c != nil {
		d.peer.c.CloseWrite()
	}
}

// drop gives up what is in the pipe.
func (d *side) drop() {
	if d.n > 0 {
		d.n = 0
		d.s.l.put(d.pipe, false)
	}
}
