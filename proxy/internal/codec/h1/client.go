package h1

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

// Client is the client side of an HTTP/1 connection. owner: worker.
//
// It may be destroyed within any of its callbacks, but its memory must not be used for another connection before Dispatch has
// returned.
type Client struct {
	handler codec.ClientHandler
	out     codec.Output
	opts    *Options
	pool    *Pool
	x       *exchange

	count  uint32
	proto  http.Proto
	closed bool // no further request
	dead   bool // nothing is read any more
	notify bool // the last response asked for the close
	above  bool
	busy   bool
}

var _ codec.ClientConn = (*Client)(nil)

// NewClient returns the client side of a connection. opts is not changed and may be shared; pool is the worker's.
func NewClient(handler codec.ClientHandler, out codec.Output, opts *Options, pool *Pool) *Client {
	c := &Client{}
	c.Init(handler, out, opts, pool)
	return c
}

// Init makes c ready for a new connection.
func (c *Client) Init(handler codec.ClientHandler, out codec.Output, opts *Options, pool *Pool) {
	*c = Client{handler: handler, out: out, opts: opts, pool: pool, proto: http.HTTP11}
}

// Protocol returns the version of the last response.
func (c *Client) Protocol() http.Proto { return c.proto }

// MaxStreams is 1.
func (c *Client) MaxStreams() int { return 1 }

// Active is how many requests are under way: 0 or 1.
func (c *Client) Active() int {
	if c.x != nil && !c.x.over {
		return 1
	}
	return 0
}

// CloseNotified reports whether the last response's head asked for the connection's close (upstream_cx_close_notify).
func (c *Client) CloseNotified() bool { return c.notify }

// NewStream starts a request. There must be none under way.
func (c *Client) NewStream(d codec.ResponseDecoder, h *http.HeaderMap) codec.ClientStream {
	x := c.pool.getExchange()
	c.count++
	x.c, x.dec, x.message.h, x.id = c, d, h, c.count
	x.version = http.HTTP11
	x.data.Init(c.out.Out().Pool())
	if c.x != nil {
		// The user broke the contract (one at a time): the new request gets no events and takes no bytes.
		x.over, x.orphan = true, true
		return x
	}
	c.x = x
	if c.above {
		x.above = true
		d.OnAboveHighWatermark()
	}
	return x
}

// Dispatch consumes bytes from the upstream. Bytes that belong to no request are an error.
func (c *Client) Dispatch(b []byte) (n int, err error) {
	if c.busy {
		return 0, nil
	}
	c.busy = true
	n, cerr := c.dispatch(b)
	c.busy = false
	if c.x != nil && c.x.over {
		c.drop()
	}
	if cerr != nil {
		c.closed, c.dead = true, true
		return n, cerr
	}
	return n, nil
}

func (c *Client) dispatch(b []byte) (n int, err *codec.Err) {
	for n < len(b) {
		x := c.x
		if x != nil && x.over {
			c.drop()
			continue
		}
		if x == nil || x.phase == phaseDone {
			if c.dead {
				return len(b), nil
			}
			if x != nil || c.count > 0 {
				return n, ErrExtraneous
			}
			return n, ErrPremature
		}
		k := 0
		if x.phase == phaseHead {
			k, err = c.head(x, b[n:])
		} else {
			k, err = c.body(x, b[n:])
		}
		n += k
		if err != nil {
			c.fail(x)
			return n, err
		}
	}
	return n, nil
}

func (c *Client) maxHead() int {
	if c.opts.MaxHeadBytes > 0 {
		return c.opts.MaxHeadBytes
	}
	return DefaultMaxResponseHeadBytes
}

func (c *Client) head(x *exchange, b []byte) (n int, err *codec.Err) {
	if len(x.message.part) == 0 && b[0] != 'H' {
		return 0, ErrNotHTTP
	}
	had := len(x.message.part)
	if had == 0 && c.opts.NewFormatter == nil {
		if n, code, err := c.opts.fastResponse(x, b, c.maxHead()); n > 0 {
			return n, c.headDone(x, x.message.h, code, b[:n], len(b) > n, err)
		}
	}
	raw, n, err := x.gather(c.pool, b, c.maxHead(), false, ErrHeadTooLarge)
	if err != nil {
		return n, err
	}
	if raw == nil {
		return n, x.checkPartial(had)
	}
	h := x.message.h
	info := informational(raw)
	if info {
		// They go into the stream's arena, so an upstream cannot send them for ever.
		if x.infos+len(raw) > c.maxHead() {
			return n, ErrHeadTooLarge
		}
		h = x.newTrailers()
	}
	code, err := c.opts.parseResponse(x, h, raw, c.pool.lines)
	x.message.part = x.message.part[:0]
	x.looked = false
	if info && err == nil {
		x.infos += len(raw)
		x.bytes.HeaderReceived += headerBytes(raw, h)
		x.bytes.Received += uint64(len(raw))
		x.phase = phaseHead
		x.dec.Decode1xx(h)
		if !x.over {
			h.Release()
		}
		return n, nil
	}
	return n, c.headDone(x, h, code, raw, len(b) > n, err)
}

// headDone reports a final response's head. surplus: something follows it.
func (c *Client) headDone(x *exchange, h *http.HeaderMap, code int, raw []byte, surplus bool, err *codec.Err) *codec.Err {
	x.bytes.Received += uint64(len(raw))
	if err != nil {
		return err
	}
	x.bytes.HeaderReceived += headerBytes(raw, h)
	c.proto = x.version
	if code == 101 || x.phase == phaseTunnel {
		x.closes = true
	}
	x.closes = x.closes || x.notify || x.phase == phaseUntilEOF
	c.notify = x.notify
	end := x.phase == phaseDone
	if end {
		c.responseDone(x, surplus)
	}
	x.dec.DecodeHeaders(h, end)
	if end {
		c.finish(x)
	}
	return nil
}

// informational tells whether a complete head is that of a 1xx response other than 101.
func informational(raw []byte) bool {
	if len(raw) > 9 && raw[8] == ' ' && raw[9] > '1' {
		return false
	}
	s, err := parseStatusLine(firstLine(raw))
	return err == nil && s.code < 200 && s.code != 101
}

func firstLine(b []byte) []byte {
	for i, c := range b {
		if c == '\n' {
			if i > 0 && b[i-1] == '\r' {
				i--
			}
			return b[:i]
		}
	}
	return b
}

// checkPartial looks at the status line of a head that is not complete, once, so that an error in it is seen at once.
func (x *exchange) checkPartial(had int) *codec.Err {
	if x.looked {
		return nil
	}
	for i := had; i < len(x.message.part); i++ {
		if x.message.part[i] == '\n' {
			x.looked = true
			_, err := parseStatusLine(firstLine(x.message.part))
			return err
		}
	}
	return nil
}

func (c *Client) body(x *exchange, b []byte) (n int, err *codec.Err) {
	n, done, err := x.message.body(c.pool, c.opts, b, c.maxHead())
	if err != nil {
		if x.whole() && x.pending() {
			x.dec.DecodeData(x.taken(), false)
		}
		x.drop()
		return n, err
	}
	trailers := done && x.hasTrailers()
	if done {
		x.phase = phaseDone
		c.responseDone(x, len(b) > n)
	}
	if x.pending() || done && !trailers {
		x.dec.DecodeData(x.taken(), done && !trailers)
		x.drop()
	}
	if trailers && !x.over {
		x.dec.DecodeTrailers(x.trailers)
	}
	if done {
		c.finish(x)
	}
	return n, nil
}

// responseDone is called just before the event that ends the response: surplus bytes make the connection useless.
func (c *Client) responseDone(x *exchange, surplus bool) {
	if surplus {
		x.closes = true
	}
	if !x.encoded {
		// The answer is ahead of the request: the rest of the request would have to be sent first, as in Envoy it is not.
		x.closes = true
	}
}

// finish ends the stream if both directions are done.
func (c *Client) finish(x *exchange) {
	if x.over || x.phase != phaseDone || !x.encoded {
		return
	}
	c.end(x)
}

// end gives the stream's state back and tells the handler.
func (c *Client) end(x *exchange) {
	if x.closes {
		c.closed = true
	}
	reusable := !c.closed
	x.over = true
	if !c.busy {
		c.drop()
	} else if c.x == x {
		// A new stream may be started by the handler: make room for it.
		c.x = nil
		c.pool.putExchange(x)
	}
	c.handler.OnStreamDone(reusable)
}

// fail resets the stream after an error in the response.
func (c *Client) fail(x *exchange) {
	c.closed = true
	if x.over {
		return
	}
	d := x.dec
	x.closes = true
	x.over = true
	d.OnReset(http.ResetProtocolError, "")
	c.handler.OnStreamDone(false)
}

// EOF says that the upstream sends no more. A response whose body ends with the connection is complete by it.
func (c *Client) EOF() error {
	x := c.x
	c.closed = true
	if x == nil || x.over {
		return nil
	}
	switch x.phase {
	case phaseUntilEOF, phaseTunnel:
		x.closes = true
		x.phase = phaseDone
		x.dec.DecodeData(x.taken(), true)
		if c.x == x {
			c.finish(x)
		}
		return nil
	case phaseDone:
		return nil
	}
	started := x.phase != phaseHead || len(x.message.part) > 0
	if !started {
		c.breaks(x, http.ResetConnectionTermination)
		return nil
	}
	c.breaks(x, http.ResetProtocolError)
	return ErrUnexpectedEOF
}

// Lost says that the connection broke. Unlike EOF it completes no response: a body that would end with the connection is cut
// short by a reset, and must not look whole. remote: it was the peer's doing, who owes us the rest of a message.
func (c *Client) Lost(remote bool) {
	x := c.x
	c.closed = true
	if x == nil || x.over || x.phase == phaseDone {
		return
	}
	reason := http.ResetConnectionTermination
	if remote && x.phase != phaseUntilEOF && x.phase != phaseTunnel && (x.phase != phaseHead || len(x.message.part) > 0) {
		reason = http.ResetProtocolError
	}
	c.breaks(x, reason)
}

// breaks ends the stream, and tells its user as long as the stream's bytes are known.
func (c *Client) breaks(x *exchange, reason http.ResetReason) {
	x.over = true
	c.closed, c.dead = true, true
	x.dec.OnReset(reason, "")
	if !c.busy && c.x == x {
		c.drop()
	}
	c.handler.OnStreamDone(false)
}

// discard ends the stream without a word.
func (c *Client) discard(x *exchange) {
	x.over = true
	c.closed, c.dead = true, true
	if !c.busy {
		c.drop()
	}
}

// GoAway does nothing.
func (c *Client) GoAway(bool) {}

// OnHighWatermark tells the current response's decoder that the request piles up.
func (c *Client) OnHighWatermark() {
	c.above = true
	if x := c.x; x != nil && !x.over && !x.above {
		x.above = true
		x.dec.OnAboveHighWatermark()
	}
}

// OnLowWatermark is the end of OnHighWatermark.
func (c *Client) OnLowWatermark() {
	c.above = false
	if x := c.x; x != nil && !x.over && x.above {
		x.above = false
		x.dec.OnBelowLowWatermark()
	}
}

// Destroy gives back all memory without callbacks.
func (c *Client) Destroy() {
	c.closed, c.dead = true, true
	if c.x == nil {
		return
	}
	if c.x.over = true; !c.busy {
		c.drop()
	}
}

func (c *Client) drop() {
	x := c.x
	c.x = nil
	c.pool.putExchange(x)
}
