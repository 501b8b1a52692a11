package sim

import (
	"cmp"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// Script is what a peer does: a client, an upstream, whatever talks to the workers. All calls come one after the other, from Run.
type Script interface {
	// Open: the connection is up.
	Open(c *Conn)
	// Data: bytes came. b is dead after the call.
	Data(c *Conn, b []byte)
	// End: the far end sends no more. It is for the script to CloseWrite or Close.
	End(c *Conn)
	// Closed is the last call: e is 0 if both sides ended, or the script closed; otherwise what broke it.
	Closed(c *Conn, e syscall.Errno)
}

// Conn is a peer's connection. Write takes any amount and keeps it until the network takes it.
type Conn struct {
	// Script may be changed at any time.
	Script Script

	w      *World
	end    *end
	queued bool
	opened bool
	ended  bool // End was called
	closed bool
	paused bool
	turn   event.Events
	out    queue
	fin    bool
	broken syscall.Errno
}

// Server is a peer that accepts.
type Server struct {
	w      *World
	lst    *listener
	accept func(c *Conn) Script
}

// Dial connects a peer to an address. Closed tells if that fails.
func (w *World) Dial(to network.Address, s Script) *Conn { return w.DialFrom(network.Address{}, to, s) }

// DialFrom is Dial from a certain address.
func (w *World) DialFrom(from, to network.Address, s Script) *Conn {
	c := &Conn{Script: s, w: w, end: w.connect(from, to)}
	c.end.own = c
	return c
}

// Serve accepts connections at an address, whose port may be 0. accept gives each its script.
func (w *World) Serve(at network.Address, accept func(c *Conn) Script) (*Server, error) {
	s := &Server{w: w, accept: accept}
	s.lst = &listener{addr: at, server: s}
	if e := w.listen(s.lst); e != 0 {
		return nil, e
	}
	return s, nil
}

// Address returns where s listens.
func (s *Server) Address() network.Address { return s.lst.addr }

// Close stops accepting.
func (s *Server) Close() { s.lst.close() }

// edge may come within a worker's pass; accept must not.
func (s *Server) edge(event.Events) { s.w.timers.add(s.w.now, s.take) }

func (s *Server) take() {
	for e := s.lst.accept(); e != nil; e = s.lst.accept() {
		c := &Conn{w: s.w, end: e}
		e.own = c
		c.Script = s.accept(c)
		c.edge(e.state() | event.Writable)
	}
}

func (c *Conn) edge(ev event.Events) {
	c.turn |= ev
	if !c.queued && !c.closed {
		c.queued = true
		c.w.peers = append(c.w.peers, c)
	}
}

// runPeers gives every peer that has something to do its turn, and fires their timers.
func (w *World) runPeers() (busy bool) {
	for at := w.timers.next(-1); at >= 0 && at <= w.now; at = w.timers.next(-1) {
		w.timers.pop()()
		busy = true
	}
	for n := len(w.peers); n > 0; n-- {
		i := w.rnd.IntN(n)
		c := w.peers[i]
		w.peers[i] = w.peers[n-1]
		// Those that are added meanwhile have their turn in the next round.
		w.peers = append(w.peers[:n-1], w.peers[n:]...)
		c.queued = false
		c.run()
		busy = true
	}
	return busy || len(w.peers) > 0
}

func (c *Conn) run() {
	ev := c.turn
	c.turn = 0
	if c.closed {
		return
	}
	c.w.record(PeerTurn, c.end.id, int(ev))
	if !c.opened {
		if c.end.broken {
			c.finish(c.end.takeError())
			return
		}
		c.opened = true
		c.Script.Open(c)
	}
	c.read()
	c.flush()
}

func (c *Conn) read() {
	var buf [4096]byte
	for !c.closed && !c.paused && !c.ended {
		n, e := c.end.recv(buf[:])
		switch {
		case e == syscall.EAGAIN:
			return
		case e != 0:
			c.finish(e)
		case n == 0 && c.end.broken:
			c.finish(c.broken)
		case n == 0:
			c.ended = true
			c.Script.End(c)
			c.doneBoth()
		default:
			c.Script.Data(c, buf[:n])
		}
	}
	if c.ended && c.end.broken && !c.closed {
		c.finish(cmp.Or(c.end.takeError(), c.broken))
	}
}

func (c *Conn) flush() {
	if !c.opened {
		return
	}
	for !c.closed && c.out.len() > 0 {
		n, e := c.end.send([][]byte{c.out.b[c.out.at:]})
		if e == syscall.EAGAIN {
			return
		}
		if e != 0 {
			// What has arrived is still read first, as a program would.
			c.broken, c.out = e, queue{}
			c.paused = false
			c.edge(event.Readable)
			return
		}
		c.out.at += n
	}
	if c.fin && !c.closed && !c.end.fin && !c.end.broken {
		_ = c.end.closeWrite()
		c.doneBoth()
	}
}

func (c *Conn) doneBoth() {
	if c.ended && c.end.fin && c.out.len() == 0 && !c.closed {
		c.finish(0)
	}
}

func (c *Conn) finish(e syscall.Errno) {
	c.closed = true
	c.end.close(false)
	c.Script.Closed(c, e)
}

// Write sends b, now or as soon as it can be sent.
func (c *Conn) Write(b []byte) {
	if c.closed || c.fin || c.end.broken {
		return
	}
	c.out.write(b)
	c.flush()
}

// CloseWrite sends the FIN after all that was written. When the far end has ended too, the connection closes.
func (c *Conn) CloseWrite() {
	if !c.fin {
		c.fin = true
		c.flush()
	}
}

// Close closes at once, dropping what could not be sent yet; Closed is called within.
func (c *Conn) Close() {
	if !c.closed {
		c.finish(0)
	}
}

// Reset closes with an RST; Closed is called within.
func (c *Conn) Reset() {
	if !c.closed {
		c.closed = true
		c.end.close(true)
		c.Script.Closed(c, 0)
	}
}

// Pause stops reading; what the far end sends fills the buffers.
func (c *Conn) Pause() { c.paused = true }

// Resume reads on.
func (c *Conn) Resume() {
	c.paused = false
	c.edge(event.Readable)
}

// Unsent returns how many bytes of Write the network has not taken.
func (c *Conn) Unsent() int { return c.out.len() }

// IsClosed tells whether Closed was called.
func (c *Conn) IsClosed() bool { return c.closed }

// ID tells connections of a world apart: both ends of one have the same but for the lowest bit.
func (c *Conn) ID() uint32 { return c.end.id }

// Local and Remote return the addresses of the two ends.
func (c *Conn) Local() network.Address { return c.end.local }

// Remote returns the far end's address.
func (c *Conn) Remote() network.Address { return c.end.remote }

// Timer calls its function once, unless stopped before.
type Timer struct{ stopped bool }

// Stop stops t.
func (t *Timer) Stop() { t.stopped = true }

// After calls f after d of simulated time, from Run.
func (w *World) After(d time.Duration, f func()) *Timer {
	t := &Timer{}
	w.timers.add(w.now+int64(max(d, 0)), func() {
		if !t.stopped {
			w.record(PeerTimer, 0, 0)
			f()
		}
	})
	return t
}
