package sim

import (
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// end is one end of a connection: a socket's two buffers and what is on its way to the far end.
//
// It follows Linux where that can be seen: what was received can be read after a reset, whose error is told once; closing with
// unread bytes resets and drops what was not sent; bytes that arrive at a closed socket are answered with a reset; a full buffer
// is writable again when a third of it is free.
type end struct {
	w             *World
	id            uint32 // even: who connected; odd: who accepted
	far           *end
	local, remote network.Address
	own           owner // nil: nobody has it (not accepted yet, or closed)

	connecting bool
	closed     bool // its owner let it go
	broken     bool // reset, or never connected
	err        syscall.Errno

	in     queue
	inSize int
	finIn  bool

	out     queue
	outSize int
	flying  int    // bytes of out that are on their way: they take room until they have arrived
	arrived uint64 // bytes of out that have arrived where somebody may read them
	busy    int64  // when what was sent last arrives: nothing may come before it
	full    bool   // the owner was told EAGAIN or less than all: an edge is owed
	fin     bool   // the owner has ended its side
	finSent bool
}

// owner is told when an end becomes readable, writable or is hung up.
type owner interface{ edge(ev event.Events) }

// Sizes of socket buffers in bytes.
const (
	bufferSize  = 128 << 10
	smallBuffer = 1 << 10 // at least; at most twice that
)

func (w *World) newEnd(id uint32) *end {
	e := &end{w: w, id: id, inSize: bufferSize, outSize: bufferSize}
	if w.chance(w.faults.SmallBuffers) {
		e.inSize = smallBuffer + w.rnd.IntN(smallBuffer)
		e.outSize = smallBuffer + w.rnd.IntN(smallBuffer)
	}
	return e
}

func (e *end) tell(ev event.Events) {
	if e.own != nil {
		e.own.edge(ev)
	}
}

// state is what is true now, as epoll reports it.
func (e *end) state() (ev event.Events) {
	if e.broken {
		return event.Readable | event.Writable | event.HangUp
	}
	if e.connecting {
		return 0
	}
	if e.in.len() > 0 || e.finIn {
		ev |= event.Readable
	}
	if e.finIn {
		ev |= event.HangUp
	}
	if e.room() > 0 {
		ev |= event.Writable
	}
	return ev
}

func (e *end) room() int { return e.outSize - e.out.len() - e.flying }

func (e *end) recv(p []byte) (int, syscall.Errno) {
	switch {
	case len(p) == 0:
		return 0, 0
	case e.in.len() > 0:
		n := e.in.read(p)
		e.w.record(Received, e.id, n)
		e.far.pump() // the window has opened
		return n, 0
	case e.err != 0:
		return 0, e.takeError()
	case e.broken || e.finIn:
		return 0, 0
	}
	return 0, syscall.EAGAIN
}

func (e *end) peek() (int, syscall.Errno) {
	switch {
	case e.in.len() > 0:
		return 1, 0
	case e.broken || e.finIn:
		return 0, e.err
	}
	return 0, syscall.EAGAIN
}

func (e *end) takeError() syscall.Errno {
	err := e.err
	e.err = 0
	return err
}

func (e *end) send(p [][]byte) (int, syscall.Errno) {
	if e.broken || e.fin {
		if err := e.takeError(); err != 0 {
			return 0, err
		}
		return 0, syscall.EPIPE
	}
	room := e.room()
	if e.connecting || room == 0 {
		e.full = true
		return 0, syscall.EAGAIN
	}
	short := e.w.chance(e.w.faults.ShortSend)
	if short {
		room = 1 + e.w.rnd.IntN(room)
	}
	n := 0
	for _, b := range p {
		k := min(len(b), room-n)
		e.out.write(b[:k])
		if n += k; k < len(b) {
			e.full = true
		}
	}
	e.w.record(Sent, e.id, n)
	e.pump()
	if e.full && short && e.room() >= e.outSize/3 {
		// Nothing may be left that makes room, so the edge comes by itself.
		e.w.wire.add(e.w.now+int64(e.w.between(1, time.Millisecond)), e.acked)
	}
	return n, 0
}

// acked is called when room was made.
func (e *end) acked() {
	if e.full && !e.broken && e.room() >= e.outSize/3 {
		e.full = false
		e.tell(event.Writable)
	}
}

// pump puts on the wire what the far end has room for.
func (e *end) pump() {
	if e.broken || e.connecting || e.far == nil {
		return
	}
	for e.out.len() > 0 {
		window := e.far.inSize - e.far.in.len() - e.flying
		if e.far.closed {
			window = bufferSize
		}
		if window <= 0 {
			return
		}
		b := make([]byte, min(window, e.out.len(), e.segment()))
		e.out.read(b)
		e.flying += len(b)
		e.w.wire.add(e.arrival(), func() { e.deliver(b) })
	}
	if e.fin && !e.finSent {
		e.finSent = true
		e.w.record(Fin, e.id, 0)
		e.w.wire.add(e.arrival(), e.deliverFIN)
	}
}

func (e *end) segment() int {
	f := &e.w.faults
	if e.w.chance(f.Tiny) {
		return 1 + e.w.rnd.IntN(16)
	}
	if f.Segment > 0 {
		return f.Segment
	}
	return 64 << 10
}

// arrival returns when what is sent now arrives, after all that was sent before.
func (e *end) arrival() int64 {
	f := &e.w.faults
	at := e.w.now + int64(e.w.between(f.LatencyMin, f.LatencyMax))
	if e.w.chance(f.Stall) {
		d := e.w.between(0, f.StallMax)
		e.w.record(Stalled, e.id, int(d))
		at += int64(d)
	}
	e.busy = max(e.busy, at)
	return e.busy
}

func (e *end) deliver(b []byte) {
	e.flying -= len(b)
	if e.w.chance(e.w.faults.Reset) {
		e.w.record(Rst, e.id, len(b))
		e.breakWith(syscall.ECONNRESET)
		e.far.breakWith(syscall.ECONNRESET)
		return
	}
	far := e.far
	e.w.record(Delivered, far.id, len(b))
	if e.w.TraceBytes != nil {
		e.w.TraceBytes(far.id, b)
	}
	switch {
	case far.broken:
		return
	case far.closed: // nobody will ever read it
		far.sendRST()
		return
	}
	e.arrived += uint64(len(b))
	far.in.write(b)
	far.tell(event.Readable)
	e.acked()
	e.pump()
}

func (e *end) deliverFIN() {
	if far := e.far; !far.broken {
		e.w.record(FinDelivered, far.id, 0)
		far.finIn = true
		far.tell(event.Readable | event.HangUp)
	}
}

// breakWith ends this side: err is told once.
func (e *end) breakWith(err syscall.Errno) {
	if e.broken {
		return
	}
	e.w.record(RstDelivered, e.id, int(err))
	e.broken, e.connecting, e.err = true, false, err
	e.out = queue{}
	e.tell(event.Readable | event.Writable | event.HangUp)
}

// sendRST breaks this side and, after the latency, the far one.
func (e *end) sendRST() {
	if e.broken {
		return
	}
	e.w.record(Rst, e.id, 0)
	e.broken, e.out = true, queue{}
	if far := e.far; far != nil {
		e.w.wire.add(e.arrival(), func() { far.breakWith(syscall.ECONNRESET) })
	}
}

func (e *end) closeWrite() syscall.Errno {
	if e.broken || e.connecting {
		return syscall.ENOTCONN
	}
	e.fin = true
	e.pump()
	return 0
}

// close lets e go. What was taken is still sent, unless it is a reset, or bytes are unread.
func (e *end) close(reset bool) {
	e.w.record(Closed, e.id, e.in.len())
	e.own, e.closed = nil, true
	if e.connecting {
		e.broken = true
		return
	}
	if reset || e.in.len() > 0 {
		e.sendRST()
		return
	}
	e.fin = true
	e.pump()
	if !e.broken {
		e.far.pump() // its window does not matter any more
	}
}

// queue is bytes, first in, first out.
type queue struct {
	b  []byte
	at int
}

func (q *queue) len() int { return len(q.b) - q.at }

func (q *queue) write(p []byte) {
	if q.at > 0 && q.at >= len(q.b)/2 {
		q.b = q.b[:copy(q.b, q.b[q.at:])]
		q.at = 0
	}
	q.b = append(q.b, p...)
}

func (q *queue) read(p []byte) int {
	n := copy(p, q.b[q.at:])
	q.at += n
	return n
}
