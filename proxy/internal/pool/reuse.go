package pool

import (
	"syscall"
	"time"

	apistats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// The functions of this file deal with peers that close a connection just when it is used again.

// probeAfter is how long a connection must have been idle to be looked at before it is used again. Servers give up what was idle for
// some seconds at least; for shorter pauses the look would cost more than it is worth.
const probeAfter = time.Second

// usable returns the connection for the next stream, nil if there is none: one that turns out to be closed is left to its fate.
func (p *Pool) usable() *Conn {
	c := p.ready.head
	for c != nil && c.active == 0 && p.w.Now()-c.since >= int64(probeAfter) && c.gonePeer() {
		c = p.ready.head
	}
	return c
}

// gonePeer looks at an idle connection. If it cannot be used, its event comes with the next pass, which ends it.
func (c *Conn) gonePeer() bool {
	n, e, ok := c.nc.Peek()
	switch {
	case !ok || e == syscall.EAGAIN:
		return false
	case n > 0:
		// Something is here that may be the end, in whatever it is wrapped. The connection waits until it has been read.
		c.move(&c.pool.busy)
		c.pool.w.Again(c)
		return true
	case e != 0:
		c.countOwn(stats.OwnReuseReset)
	default:
		c.countOwn(stats.OwnReuseClosed)
	}
	c.unlist()
	return true
}

// Run is the worker's call, in the pass after what had arrived was read.
func (c *Conn) Run() {
	if c.state == open {
		c.settle()
		c.pool.wake()
	}
}

func (c *Conn) countOwn(i apistats.CounterIndex) {
	w, s := c.pool.w, c.pool.s
	w.Stats.Inc(stats.Cluster.Block(s.Stats, stats.ClusterDragoman).Counter(i))
}

// Progress says how far the requests had come that a connection took with it when it broke.
type Progress uint8

// Unknown is also for a connection that served nothing before: what broke it is not that it was idle. Unsent: the peer's system was sent
// nothing. Unacknowledged: it has acknowledged nothing, so that no program has read any of it if a reset was the answer. Acknowledged: it
// has something.
const (
	Unknown Progress = iota
	Unsent
	Unacknowledged
	Acknowledged
)

// begun notes where the bytes of the first stream begin that a connection has after it was idle.
func (c *Conn) begun() {
	c.mark, c.reused = c.written, c.streams > 0
}

// Lost tells, within the reset of its streams, how far they had come when the peer ended the connection. reset is false if it was a
// FIN: then the peer may still read, although it will not answer.
func (c *Conn) Lost() (p Progress, reset bool) { return c.progress, !c.gone }

// OnBroken implements conn.Watcher.
func (c *Conn) OnBroken() {
	if c.active == 0 || !c.reused || c.progress != Unknown {
		return
	}
	if c.written == c.mark {
		c.progress = Unsent
		c.countOwn(stats.OwnLostUnsent)
		return
	}
	switch n, ok := c.nc.Acknowledged(); {
	case ok && n <= c.mark:
		c.progress = Unacknowledged
		c.countOwn(stats.OwnLostUnacknowledged)
	case ok:
		c.progress = Acknowledged
		c.countOwn(stats.OwnLostAcknowledged)
	}
}
