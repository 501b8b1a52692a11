package conn

import (
	"syscall"

	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// Mover moves bytes of a connection past its buffers, inside the kernel. It is told what the connection would act on itself
// otherwise. Only plain connections have one.
type Mover interface {
	// OnReadable comes in place of reading, while SetMover's read is on. It must SpliceIn until that says to stop.
	OnReadable()
	// OnWritable: everything that was buffered is out, and the kernel takes more.
	OnWritable()
}

// SetMover sets who moves bytes past the buffers, nil for nobody. With read, what arrives is left to it; nothing may be
// unconsumed then.
func (c *Conn) SetMover(m Mover, read bool) {
	c.mover, c.moveIn = nil, read && m != nil
	if m != nil {
		c.mover = &m
	}
	if c.rdReady {
		c.queue()
	}
}

// SpliceIn moves up to n bytes that have arrived into p, which must be empty. 0: there are none now, or the connection ended; the
// handler was told.
func (c *Conn) SpliceIn(s event.Splicer, p event.Pipe, n int) int {
	n, e := s.SpliceIn(c.h, p, n)
	switch {
	case e == syscall.EAGAIN:
		c.rdReady = false
		return 0
	case e != 0:
		c.remoteError(e)
		return 0
	case n == 0:
		c.eof()
		return 0
	}
	if c.counter != nil {
		c.counter.OnRead(n)
	}
	return n
}

// SpliceOut sends up to n bytes of p. Nothing may be buffered. Fewer than n: the kernel takes no more now, and OnWritable will
// come, or the connection ended.
func (c *Conn) SpliceOut(s event.Splicer, p event.Pipe, n int) int {
	done := 0
	for done < n {
		k, e := s.SpliceOut(p, c.h, n-done, false)
		if e != 0 {
			if e == syscall.EAGAIN {
				c.blocked = true
			} else {
				c.remoteError(e)
			}
			break
		}
		if k == 0 {
			break
		}
		if c.counter != nil {
			c.counter.OnWritten(k)
		}
		done += k
	}
	return done
}

// Clear tells whether bytes may be sent past the buffers: nothing waits in them. It sends what waits, if the kernel takes it.
func (c *Conn) Clear() bool {
	if c.out != nil && c.out.Len() > 0 && !c.blocked {
		c.Flush()
	}
	return c.state == open && !c.blocked && (c.out == nil || c.out.Len() == 0)
}

// ReadLater makes reading go on in the next pass.
func (c *Conn) ReadLater() {
	c.rdReady = true
	c.queue()
}
