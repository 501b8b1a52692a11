package conn

import (
	"syscall"

	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// MaxUnread is how many bytes a handler may leave unconsumed before reading pauses, unless SetMaxUnread says more: enough for
// the largest head that a codec allows by default (60 KiB) and a read. A handler that needs more to go on must raise it.
const MaxUnread = 128 << 10

// read takes bytes until the kernel has no more, at most MaxReads times; then the rest waits for the next pass.
func (c *Conn) read() {
	for i := 0; ; i++ {
		if c.pauses > 0 {
			c.rdReady = true
			c.checkPausedHangup()
			return
		}
		if i == event.MaxReads {
			c.rdReady = true
			c.queue()
			return
		}
		if c.moveIn && c.state == open {
			(*c.mover).OnReadable()
			return
		}
		buf := c.w.ReadBuffer
		n, e := c.w.Driver.Recv(c.h, buf)
		if e != 0 {
			if e == syscall.EAGAIN {
				c.rdReady = false
				return
			}
			c.remoteError(e)
			return
		}
		if n == 0 {
			c.eof()
			return
		}
		if c.counter != nil {
			c.counter.OnRead(n)
		}
		c.feed(buf[:n])
		if c.state == closed {
			return
		}
		// A short read means that the kernel had no more; a FIN behind it would have been told by HangUp.
		if n < len(buf) && !c.hangup {
			c.rdReady = false
			return
		}
	}
}

func (c *Conn) feed(b []byte) {
	if c.state != open {
		return // flushing or lingering: the peer's bytes are of no interest any more
	}
	if c.tr != nil {
		c.tr.Feed(c, b)
		return
	}
	c.deliver(b)
}

// Deliver gives decrypted bytes to the handler. Transports call it.
func (c *Conn) Deliver(b []byte) {
	if c.state == open {
		c.deliver(b)
	}
}

func (c *Conn) deliver(b []byte) {
	if len(c.in) > 0 || c.pauses > 0 {
		c.keep(b)
		b = c.in
		if c.pauses > 0 {
			c.redeliver = true
			return
		}
	}
	if len(b) == 0 {
		return
	}
	n := c.handler.OnData(b)
	if c.state != open {
		c.dropIn()
		return
	}
	rest := b[n:]
	if len(rest) == 0 {
		c.dropIn()
		return
	}
	if c.in == nil {
		c.keep(rest)
	} else if n > 0 {
		c.in = c.in[:copy(c.in, rest)]
	}
	if len(c.in) > int(c.maxUnread) && c.pauses == 0 {
		// The handler does not take more for now (an HTTP/1 pipeline): stop reading until it asks for a redelivery.
		c.pauses++
		c.redeliver = true
		c.stuffed()
	}
}

// stuffed marks the pause that MaxUnread made, which Redeliver undoes.
func (c *Conn) stuffed() { c.inRead = true }

func (c *Conn) keep(b []byte) {
	if len(b) == 0 {
		return
	}
	need := len(c.in) + len(b)
	switch {
	case c.in == nil:
		c.in = c.w.Bufs.Raw(need)
	case cap(c.in) < need:
		big := c.w.Bufs.Raw(need * 2)
		big = append(big, c.in...)
		c.w.Bufs.PutRaw(c.in)
		c.in = big
	}
	c.in = append(c.in, b...)
}

func (c *Conn) dropIn() {
	if c.in != nil {
		c.w.Bufs.PutRaw(c.in)
		c.in = nil
	}
}

// Redeliver gives what was not consumed to the handler again, in the next pass.
func (c *Conn) Redeliver() {
	if c.inRead {
		c.inRead = false
		c.pauses--
	}
	if len(c.in) > 0 {
		c.redeliver = true
		c.queue()
	} else if c.rdReady {
		c.queue()
	}
}

// ReadDisable stops reading (true) or lets it go on (false); calls nest. Going on happens in the next pass, never inline.
func (c *Conn) ReadDisable(disable bool) {
	if disable {
		c.pauses++
		return
	}
	c.pauses--
	if c.pauses == 0 && (c.rdReady || len(c.in) > 0 || c.hangup || c.tr != nil) {
		c.redeliver = c.redeliver || len(c.in) > 0
		c.rdReady = true
		c.queue()
	}
}

// Paused tells whether reading is stopped.
func (c *Conn) Paused() bool { return c.pauses > 0 }

// Unread returns how many bytes the handler has left unconsumed.
func (c *Conn) Unread() int { return len(c.in) }

// checkPausedHangup ends a connection whose peer has gone while we do not read from it, as Envoy's early close detection does:
// nobody is left to answer to. With half close the FIN waits until reading goes on.
func (c *Conn) checkPausedHangup() {
	if !c.hangup || c.state != open {
		return
	}
	if e := c.w.Driver.SocketError(c.h); e != 0 {
		c.remoteError(e)
		return
	}
	if !c.halfClose {
		c.why = Closed{Remote: true}
		c.finish()
	}
}

func (c *Conn) eof() {
	c.rdReady = false
	if c.sawEOF {
		// A reset behind the FIN reads as another end of stream; only the socket's error tells.
		if c.hangup && c.state == open {
			if e := c.w.Driver.SocketError(c.h); e != 0 {
				c.remoteError(e)
			}
		}
		return
	}
	c.sawEOF = true
	if c.state == flushing || c.state == leaving {
		return
	}
	if c.state == lingering {
		c.why.Remote = true // it was faster
		c.finish()
		return
	}
	if c.tr != nil {
		c.tr.EOF(c)
		if c.state == closed {
			return
		}
	}
	c.PeerDone()
}

// PeerDone tells the handler that the peer sends no more (its FIN, or a close_notify of the transport).
func (c *Conn) PeerDone() {
	if c.state != open {
		return
	}
	if c.connected {
		c.handler.OnEOF()
	}
	if c.state != open {
		return
	}
	if !c.halfClose || !c.connected {
		c.why = Closed{Remote: true, Failed: !c.connected}
		c.finish()
		return
	}
	if c.finSent {
		c.why.Remote = true // the last to end it
		c.finish()
	}
}

func (c *Conn) remoteError(e syscall.Errno) {
	if c.state == closed {
		return
	}
	switch c.state {
	case open:
		if b, ok := c.tr.(breaker); ok && !c.connected {
			b.Broken(c)
		}
		c.why = Closed{Remote: true, Reset: true, Errno: e, Failed: !c.connected}
	case lingering:
		c.why.Remote = true
	}
	c.finish()
}
