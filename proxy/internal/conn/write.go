package conn

import (
	"syscall"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// sendNow is the size from which WriteData sends straight from borrowed memory instead of copying. Below it, one copy costs less
// than a system call of its own.
const sendNow = 8 << 10

// maxRuns is how many runs of bytes one send takes.
const maxRuns = 16

// local is what conn keeps per worker: write buffers for reuse.
type local struct {
	free  []*buffer.Buffer
	iov   [maxRuns][]byte
	freeT []*event.Timer
	races map[*Conn]*race // of connections to hosts with several addresses, until one has answered
}

var locals = event.NewLocal(func(*event.Worker) *local { return &local{races: map[*Conn]*race{}} })

// maxFreeBuffers bounds the empty Buffers (not their slabs) that a worker keeps.
const maxFreeBuffers = 4096

func (c *Conn) getBuffer() *buffer.Buffer {
	l := c.l
	if k := len(l.free); k > 0 {
		b := l.free[k-1]
		l.free = l.free[:k-1]
		return b
	}
	b := &buffer.Buffer{}
	b.Init(&c.w.Bufs)
	return b
}

func (c *Conn) putBuffer(b *buffer.Buffer) {
	b.Reset()
	l := c.l
	if len(l.free) < maxFreeBuffers {
		l.free = append(l.free, b)
	}
}

func (c *Conn) markDirty() {
	if !c.dirty {
		c.dirty = true
		c.w.QueueFlush(c)
	}
}

// Out returns the write buffer to append to. What is in it is sent at the end of the pass, in one piece.
func (c *Conn) Out() *buffer.Buffer {
	if c.out == nil {
		c.out = c.getBuffer()
	}
	c.markDirty()
	return c.out
}

// WriteData writes data after what is in Out and leaves it empty. Large data goes out at once, straight from borrowed memory.
func (c *Conn) WriteData(data *buffer.Buffer) {
	if c.state > open {
		data.Reset()
		return
	}
	if data.Len() >= sendNow && c.tr == nil && !c.blocked && c.state == open {
		c.sendThrough(data)
		if data.Len() == 0 {
			return
		}
	}
	c.Out().Move(data)
	if c.limit > 0 && !c.above && c.Buffered() > int(c.limit) {
		c.aboveLimit()
	}
}

func (c *Conn) sendThrough(data *buffer.Buffer) {
	l := c.l
	iov := l.iov[:0]
	pending := 0
	if c.out != nil {
		iov = c.out.Slices(iov, maxRuns-1)
		for _, run := range iov {
			pending += len(run)
		}
		if pending < c.out.Len() {
			clear(l.iov[:])
			return // data's place is behind all that waits
		}
	}
	iov = data.Slices(iov, maxRuns)
	n, e := c.w.Driver.Send(c.h, iov)
	clear(l.iov[:])
	if e != 0 {
		if e == syscall.EAGAIN {
			c.blocked = true
		}
		return // other errors come back at the flush
	}
	if c.counter != nil {
		c.counter.OnWritten(n)
	}
	if pending > 0 {
		k := min(n, pending)
		c.out.Drain(k)
		n -= k
	}
	data.Drain(n)
}

// Buffered returns the bytes that wait to be sent.
func (c *Conn) Buffered() int {
	n := 0
	if c.out != nil {
		n = c.out.Len()
	}
	if c.wire != nil {
		n += c.wire.Len()
	}
	return n
}

// Wire returns the buffer of what the Transport has made, to append to; it is sent at the end of the pass.
func (c *Conn) Wire() *buffer.Buffer {
	if c.wire == nil {
		c.wire = c.getBuffer()
	}
	c.markDirty()
	return c.wire
}

// CloseWrite sends our FIN after everything that was written.
func (c *Conn) CloseWrite() {
	if c.state > open || c.finQueued {
		return
	}
	c.finQueued = true
	c.markDirty()
}

// Flush is the worker's call at the end of the pass.
func (c *Conn) Flush() {
	c.dirty = false
	if c.state == closed || c.state == connecting || c.blocked {
		return
	}
	if c.tr != nil {
		if c.out != nil && c.connected && (c.wire == nil || c.wire.Len() == 0) {
			if c.wire == nil {
				c.wire = c.getBuffer()
			}
			c.tr.Seal(c, c.out, c.wire)
			if c.state == closed {
				return
			}
		}
		if !c.send(c.wire) {
			return
		}
		if c.out != nil && c.out.Len() > 0 {
			if c.connected { // more than one batch of records: go on in the next round of flushes
				c.markDirty()
			}
			return
		}
	} else if !c.send(c.out) {
		return
	}
	c.drained()
}

// send writes b until it is empty. false: the kernel takes no more for now, or the connection is gone.
func (c *Conn) send(b *buffer.Buffer) bool {
	if b == nil {
		return true
	}
	l := c.l
	for b.Len() > 0 {
		n, e := c.w.Driver.Send(c.h, b.Slices(l.iov[:0], maxRuns))
		if e != 0 {
			clear(l.iov[:])
			if e == syscall.EAGAIN {
				c.blocked = true
				if c.limit > 0 && !c.above && c.Buffered() > int(c.limit) && c.state == open {
					c.aboveLimit()
				}
				c.checkLow()
				if c.state == leaving {
					c.finish()
				}
				return false
			}
			c.remoteError(e)
			return false
		}
		if c.counter != nil {
			c.counter.OnWritten(n)
		}
		b.Drain(n)
	}
	clear(l.iov[:])
	return true
}

// drained is called when everything is out.
func (c *Conn) drained() {
	if c.out != nil {
		c.putBuffer(c.out)
		c.out = nil
	}
	if c.wire != nil {
		c.putBuffer(c.wire)
		c.wire = nil
	}
	c.checkLow()
	switch {
	case c.state == flushing || c.state == leaving:
		c.flushed()
	case c.finQueued && !c.finSent && c.state == open:
		c.sendFin()
	}
}

func (c *Conn) sendFin() {
	if c.tr != nil && c.tr.CloseNotify(c) {
		// The close_notify goes out first; drained comes again.
		return
	}
	c.finSent = true
	_ = c.w.Driver.CloseWrite(c.h)
	if c.sawEOF {
		c.finish()
	}
}

func (c *Conn) aboveLimit() {
	c.above = true
	c.handler.OnHighWatermark()
}

func (c *Conn) checkLow() {
	if c.above && c.Buffered() <= int(c.limit/2) {
		c.above = false
		if c.state == open {
			c.handler.OnLowWatermark()
		}
	}
}
