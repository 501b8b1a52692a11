package conn

import (
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// Close ends the connection. reason is DOWNSTREAM_LOCAL_CLOSE_REASON or its like. After it the handler gets only OnClose: at
// once for NoFlush and Abort, otherwise when the buffered bytes are out.
func (c *Conn) Close(t network.CloseType, reason string) { c.close(t, reason, 0) }

// CloseDelayed is Close with FlushWriteAndDelay and a limit for the wait; 0 closes right after the flush.
func (c *Conn) CloseDelayed(reason string, wait time.Duration) {
	c.close(network.FlushWriteAndDelay, reason, wait)
}

// CloseWithLastWords is Close with FlushWrite for a peer that did wrong: it gets what the kernel takes at the end of the pass, and no time
// to take more.
func (c *Conn) CloseWithLastWords(reason string) {
	if c.state != open || c.blocked {
		c.close(network.NoFlush, reason, 0)
		return
	}
	c.close(network.FlushWrite, reason, 0)
	c.state = leaving
}

func (c *Conn) close(t network.CloseType, reason string, wait time.Duration) {
	if c.state > open {
		if c.state != closed && (t == network.NoFlush || t == network.Abort) {
			c.why.Reset = t == network.Abort
			c.finish()
		}
		return
	}
	c.why = Closed{Reason: reason}
	if reason != "" {
		c.Info.SetEnd().CloseReason = reason
	}
	if t == network.NoFlush || t == network.Abort || c.state == connecting || !c.connected && c.tr != nil && c.wire == nil {
		c.why.Reset = t == network.Abort
		c.finish()
		return
	}
	c.state = flushing
	if t == network.FlushWriteAndDelay && wait > 0 {
		c.linger = &delay{wait: wait}
		c.linger.timer.Fn = c.lingerEnds
		c.armLinger()
	}
	c.markDirty()
}

// flushed is called when a closing connection has sent everything.
func (c *Conn) flushed() {
	if c.linger != nil && !c.sawEOF {
		// A socket that is closed with unread bytes sends a reset, which may overtake what we sent last. So the peer may close first,
		// and what it still sends is read and dropped. As Envoy's delayed close, this sends no FIN of its own before the wait is over.
		c.state = lingering
		c.armLinger()
		c.pauses = 0
		c.dropIn()
		c.rdReady = true
		c.queue()
		return
	}
	if c.tr != nil && c.connected && c.tr.CloseNotify(c) {
		return
	}
	c.finish()
}

// delay is a delayed close. It bounds the flush and the wait for the peer: one that takes nothing must not hold the connection.
// Progress begins the wait anew (Envoy's delayed_close_timeout), so that a slow peer gets all of a long answer.
type delay struct {
	timer event.Timer
	wait  time.Duration
	left  int // what was buffered when the timer was armed
}

func (c *Conn) armLinger() {
	c.linger.left = c.Buffered()
	c.w.Arm(&c.linger.timer, c.linger.wait)
}

func (c *Conn) lingerEnds() {
	if c.Buffered() < c.linger.left {
		c.armLinger()
		return
	}
	if c.state == lingering && c.tr != nil && c.connected && c.tr.CloseNotify(c) {
		c.send(c.wire) // the alert that ends our side, if the kernel takes it at once
	}
	if c.state != closed {
		c.why.Delayed = true
		c.finish()
	}
}

// finish closes the socket and tells the handler, once.
func (c *Conn) finish() {
	if c.state == closed {
		return
	}
	c.state = closed
	if c.why.Reset && c.why.Remote {
		c.Info.SetEnd().CloseType = "RemoteReset"
	} else if c.why.Reset {
		c.Info.SetEnd().CloseType = "LocalReset"
	}
	if c.h != event.NoHandle {
		if w, ok := c.handler.(Watcher); ok && c.connected && c.why.Remote {
			w.OnBroken()
		}
		c.w.Close(c.h, c.why.Reset && !c.why.Remote)
		c.h = event.NoHandle
	} else {
		c.endRace()
	}
	if c.linger != nil {
		c.w.Remove(&c.linger.timer)
		c.linger = nil
	}
	c.dropIn()
	if c.out != nil {
		c.putBuffer(c.out)
		c.out = nil
	}
	if c.wire != nil {
		c.putBuffer(c.wire)
		c.wire = nil
	}
	if c.tr != nil {
		c.tr.Destroy()
	}
	c.handler.OnClose(c.why)
}

// Fail ends a connection whose transport broke. reason is the transport's failure; what is in Wire (an alert) is sent if the
// kernel takes it at once. It counts as the peer's end, as in Envoy.
func (c *Conn) Fail(reason string) {
	if c.state == closed {
		return
	}
	c.Info.SetEnd().TransportFailure = reason
	if c.wire != nil && !c.blocked {
		c.send(c.wire)
		if c.state == closed {
			return
		}
	}
	c.why = Closed{Remote: true, Failed: !c.connected, Reason: reason}
	c.finish()
}
