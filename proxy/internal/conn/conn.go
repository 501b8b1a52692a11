// Package conn is a connection on a worker: it moves bytes between a socket and a Handler, through a Transport if there is one
// (TLS), with watermarks, half close and bounded passes.
//
// A Conn belongs to its worker. It owns no buffer while it is idle. It knows nothing of protocols.
package conn

import (
	"math"
	"sync/atomic"
	"syscall"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// Handler is what a connection serves: an HTTP connection, a TCP proxy, a filter chain. All calls come on the worker.
type Handler interface {
	// OnConnected: an outgoing connection is established, or the transport's handshake is done. It comes at most once, before
	// any data; for an accepted plain connection it comes at Start.
	OnConnected()
	// OnData consumes bytes from b and returns how many; the rest comes again in front of what arrives later, or after
	// Redeliver. b is dead after the call.
	OnData(b []byte) int
	// OnEOF: the peer sends no more. Without EnableHalfClose the connection closes right after it.
	OnEOF()
	// OnHighWatermark and OnLowWatermark: the write buffer passed its limit, or is drained to half of it.
	OnHighWatermark()
	OnLowWatermark()
	// OnClose is the last call, exactly once, also for a Close of our own.
	OnClose(why Closed)
}

// Watcher is a Handler that wants to look at the socket of a connection that the peer has ended, before it is closed.
type Watcher interface{ OnBroken() }

// Closed says how a connection ended.
type Closed struct {
	// Remote: the peer ended it. Local closes have it false.
	Remote bool
	// Reset: it ended by RST, or an error of the socket.
	Reset bool
	// Failed: an outgoing connection never came up, or the transport's handshake failed.
	Failed bool
	// Delayed: a delayed close came to its end before the peer closed.
	Delayed bool
	// Errno is the socket's error, 0 if there is none.
	Errno syscall.Errno
	// Reason is the local close reason, or the transport's failure.
	Reason string
}

// state of a Conn.
const (
	connecting uint8 = iota
	open
	// flushing: closed for the handler's purposes, what is buffered is being sent, then the socket goes.
	flushing
	// leaving is flushing of what the kernel takes at once.
	leaving
	// lingering: our FIN is out, waiting for the peer's.
	lingering
	closed
)

// Conn is one connection. owner: its worker.
type Conn struct {
	// Info is shared with the streams of the connection.
	Info    network.ConnInfo
	w       *event.Worker
	l       *local
	handler Handler
	tr      Transport
	in      []byte         // bytes that the handler has not consumed
	out     *buffer.Buffer // what waits to be sent (plain bytes, if there is a Transport)
	wire    *buffer.Buffer // what a Transport made of out
	linger  *delay         // of a delayed close, else nil
	why     Closed
	h       event.Handle
	limit   int32 // high watermark in bytes, 0: none
	pauses  int32
	// maxUnread bounds in.
	maxUnread int32

	state     uint8
	dirty     bool // in the worker's flush list
	queued    bool // in the worker's again list
	rdReady   bool // bytes may wait in the kernel
	hangup    bool // the peer has closed its side, or an error is pending
	redeliver bool
	blocked   bool // the kernel takes no more for now
	above     bool
	halfClose bool
	sawEOF    bool
	finQueued bool // send FIN when everything is out
	finSent   bool
	inRead    bool
	connected bool // OnConnected was called
	moveIn    bool // reading is the mover's
	keepBytes bool // nobody may move bytes past the handler
	counter   Counter
	mover     *Mover       // nil mostly; with an interface in its place Conn would not fit its size class (TestSize)
	stream    *stream.Info // nil until somebody asks
}

// Counter is told of bytes as they cross the socket, if set.
type Counter interface {
	OnRead(n int)
	OnWritten(n int)
}

var nextID atomic.Uint64

// New returns a Conn on an accepted socket, or on one that is connecting. Nothing happens before Start.
func New(w *event.Worker, h event.Handle, tr Transport) *Conn {
	c := &Conn{}
	c.Init(w, h, tr)
	return c
}

// Init is New for a Conn that lies in its owner's own object, as most do: a connection is one object of the heap then instead of two.
// c must be zero.
func (c *Conn) Init(w *event.Worker, h event.Handle, tr Transport) {
	c.w, c.l, c.h, c.tr = w, locals.Get(w), h, tr
	c.state, c.maxUnread = open, MaxUnread
	c.Info.ID = nextID.Add(1) - 1
	c.Info.Start = w.Now()
}

// Dial starts a connection. An error that the kernel reports at once is told by OnClose in a later pass, so that callers see
// one order of events.
func Dial(w *event.Worker, spec *event.ConnectSpec, tr Transport, hd Handler) *Conn {
	c := &Conn{}
	c.Dial(w, spec, tr, hd)
	return c
}

// Dial is Init for a connection that is to be made.
func (c *Conn) Dial(w *event.Worker, spec *event.ConnectSpec, tr Transport, hd Handler) {
	h, e := w.Driver.Connect(spec)
	c.Init(w, h, tr)
	c.handler = hd
	c.state = connecting
	c.Info.Remote = spec.Address
	if h == event.NoHandle {
		c.why = Closed{Failed: true, Errno: e}
		c.queue()
		return
	}
	if err := w.Register(h, c); err != nil {
		c.why = Closed{Failed: true, Errno: syscall.ENOMEM}
		c.queue()
	}
}

// Start registers an accepted connection and begins to read.
func (c *Conn) Start(hd Handler) error {
	c.handler = hd
	if err := c.w.Register(c.h, c); err != nil {
		c.why = Closed{Failed: true, Errno: syscall.ENOMEM}
		c.finish()
		return err
	}
	c.begin()
	return nil
}

// SetTransport sets the transport of a connection that has not started.
func (c *Conn) SetTransport(tr Transport) { c.tr = tr }

// Assign gives a connection that was looked at so far (by listener filters, which consumed nothing) its transport and its real
// handler. Bytes that have arrived go through the transport.
func (c *Conn) Assign(tr Transport, hd Handler) {
	c.handler, c.tr, c.connected = hd, tr, false
	if c.state != open {
		return
	}
	if tr == nil {
		c.Ready()
		c.Redeliver()
		return
	}
	early := c.in
	c.in = nil
	if c.inRead {
		c.inRead = false
		c.pauses--
	}
	tr.Start(c)
	if len(early) > 0 && c.state == open {
		tr.Feed(c, early)
	}
	if early != nil {
		c.w.Bufs.PutRaw(early)
	}
	if c.state != closed {
		c.rdReady = true
		c.queue()
	}
}

// SetHandler changes what the connection serves: protocol detection, upgrades, CONNECT. Bytes that were not consumed go to the
// new handler after Redeliver.
func (c *Conn) SetHandler(hd Handler) { c.handler = hd }

// Worker returns the connection's worker.
func (c *Conn) Worker() *event.Worker { return c.w }

// Handle returns the socket, for splicing and socket options.
func (c *Conn) Handle() event.Handle { return c.h }

// Transport returns the transport socket, nil on a plain connection.
func (c *Conn) Transport() Transport { return c.tr }

// SetCounter sets who is told of bytes.
func (c *Conn) SetCounter(k Counter) { c.counter = k }

// KeepBytes says whether somebody between the connection and what serves it wants to see the bytes; then nobody may splice them.
func (c *Conn) KeepBytes(keep bool) { c.keepBytes = keep }

// MaySplice tells whether bytes may be moved past the handlers.
func (c *Conn) MaySplice() bool { return c.tr == nil && !c.keepBytes }

// StreamInfo returns what is known of the connection as a stream of its own, for TCP proxying and the listener's access log.
func (c *Conn) StreamInfo() *stream.Info {
	if c.stream == nil {
		c.stream = &stream.Info{Start: c.Info.Start, StartWall: c.w.Wall(), Conn: &c.Info}
	}
	return c.stream
}

// Watched returns what StreamInfo has made, nil if nobody has asked for it.
func (c *Conn) Watched() *stream.Info { return c.stream }

// SetLimit sets the high watermark of the write buffer in bytes; the low one is half of it. 0: none.
func (c *Conn) SetLimit(bytes int) { c.limit = int32(min(bytes, math.MaxInt32)) }

// SetMaxUnread raises how many bytes the handler may leave unconsumed before reading pauses (codecs with large head limits).
func (c *Conn) SetMaxUnread(bytes int) { c.maxUnread = int32(max(bytes, MaxUnread)) }

// EnableHalfClose keeps the connection open for writing when the peer has sent its FIN.
func (c *Conn) EnableHalfClose() { c.halfClose = true }

// IsOpen tells whether the handler may still read and write.
func (c *Conn) IsOpen() bool { return c.state <= open }

// Connected tells whether an outgoing connection, or the transport's handshake, is done.
func (c *Conn) Connected() bool { return c.connected }

// Peek looks at what the peer has sent and nobody has read: something (1), its end (0 without an error), nothing (EAGAIN), or an error.
// ok is false where the driver cannot tell.
func (c *Conn) Peek() (n int, e syscall.Errno, ok bool) {
	p, ok := c.w.Driver.(event.Prober)
	if !ok || c.h == event.NoHandle || c.state != open {
		return 0, 0, false
	}
	n, e = p.Peek(c.h)
	return n, e, true
}

// Acknowledged returns how many bytes of those that went out the peer's system has acknowledged, if that is known.
func (c *Conn) Acknowledged() (n uint64, ok bool) {
	p, ok := c.w.Driver.(event.Prober)
	if !ok || c.h == event.NoHandle {
		return 0, false
	}
	return p.Acknowledged(c.h)
}

// Above tells whether the write buffer is over its limit.
func (c *Conn) Above() bool { return c.above }

// OnReady is the driver's call.
func (c *Conn) OnReady(ev event.Events) {
	if ev&event.HangUp != 0 {
		c.hangup = true
	}
	if c.state == connecting {
		if ev&(event.Writable|event.HangUp) == 0 {
			return
		}
		if e := c.w.Driver.SocketError(c.h); e != 0 {
			c.why = Closed{Failed: true, Remote: true, Errno: e}
			c.finish()
			return
		}
		if ev&event.Writable == 0 {
			return
		}
		c.state = open
		c.begin()
		if c.state == closed {
			return
		}
	}
	if ev&event.Writable != 0 && c.blocked {
		c.blocked = false
		c.Flush()
		if c.mover != nil && !c.blocked && c.state != closed {
			(*c.mover).OnWritable()
		}
		if c.state == closed {
			return
		}
	}
	if ev&(event.Readable|event.HangUp) != 0 {
		c.read()
	}
}

// begin is called once the socket can carry bytes.
func (c *Conn) begin() {
	if c.tr != nil {
		c.tr.Start(c)
		return
	}
	c.Ready()
}

// Ready is called by the Transport when its handshake is done (and by the Conn itself if there is none).
func (c *Conn) Ready() {
	if c.connected || c.state != open {
		return
	}
	c.connected = true
	c.handler.OnConnected()
	if c.out != nil && c.state <= flushing {
		c.markDirty()
	}
}

// Run is the worker's call for what was queued with Again.
func (c *Conn) Run() {
	c.queued = false
	if c.state == closed {
		return
	}
	if c.why.Failed && c.state == connecting {
		c.finish()
		return
	}
	if c.pauses > 0 {
		return
	}
	if c.redeliver {
		c.redeliver = false
		if len(c.in) > 0 && c.state == open {
			c.deliver(nil)
		}
	}
	if c.rdReady && c.state != closed && c.pauses == 0 {
		c.read()
	}
}

func (c *Conn) queue() {
	if !c.queued {
		c.queued = true
		c.w.Again(c)
	}
}

// Next: proxy/internal/hcm/conn.go
