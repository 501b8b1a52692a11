package h2

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

// Client is the client side of an HTTP/2 connection. owner: worker.
type Client struct{ s session }

var (
	_ codec.ClientConn   = (*Client)(nil)
	_ codec.ClientStream = (*clientStream)(nil)
)

// NewClient returns a client. Its preface is sent with the first request or PING.
func NewClient(h codec.ClientHandler, out codec.Output, pool *Pool, opts *Options) *Client {
	c := &Client{}
	c.s.client = h
	c.s.state = stateSettings
	c.s.nextID = 1
	c.s.init(out, pool, opts)
	return c
}

// Dispatch implements codec.ClientConn. When it returns an error all streams were told so by OnReset.
func (c *Client) Dispatch(b []byte) (int, error) { return c.s.dispatch(b) }

// EOF resets all streams: their responses cannot be complete.
func (c *Client) EOF() error {
	c.s.peerGoAway = true
	c.s.resetAll(http.ResetConnectionTermination, "")
	return nil
}

// NewStream implements codec.ClientConn. The stream gets its id with EncodeHeaders, because ids must go up on the wire.
func (c *Client) NewStream(d codec.ResponseDecoder, h *http.HeaderMap) codec.ClientStream {
	s := &c.s
	st := s.pool.get()
	st.init(s)
	st.dec, st.res, st.h, st.arena = d, d, h, h.Arena()
	s.fresh = append(s.fresh, st)
	s.active(1)
	if s.blocked {
		st.connAbove = true
		st.raise()
	}
	return (*clientStream)(st)
}

// forget drops a stream that has no id yet.
func (s *session) forget(st *stream) {
	for i := len(s.fresh) - 1; i >= 0; i-- {
		if s.fresh[i] == st {
			last := len(s.fresh) - 1
			copy(s.fresh[i:], s.fresh[i+1:])
			s.fresh[last] = nil
			s.fresh = s.fresh[:last]
			return
		}
	}
}

// MaxStreams implements codec.ClientConn.
func (c *Client) MaxStreams() int { return c.s.maxStreams() }

// Active implements codec.ClientConn.
func (c *Client) Active() int { return c.s.streams.n + len(c.s.fresh) }

// PeerAllowsConnect tells whether the server has announced extended CONNECT (RFC 8441).
func (c *Client) PeerAllowsConnect() bool { return c.s.peerConnect }

// GoAway implements codec.ClientConn.
func (c *Client) GoAway(shutdownNotice bool) { c.s.goAway(shutdownNotice) }

// OnHighWatermark implements codec.ClientConn.
func (c *Client) OnHighWatermark() { c.s.highWatermark() }

// OnLowWatermark implements codec.ClientConn.
func (c *Client) OnLowWatermark() { c.s.lowWatermark() }

// Destroy implements codec.ClientConn.
func (c *Client) Destroy() { c.s.destroy() }

// Protocol implements codec.ClientConn.
func (c *Client) Protocol() http.Proto { return http.HTTP2 }

// ResetAll tells all streams that they are over, when the connection is gone. Nothing is sent.
func (c *Client) ResetAll(reason http.ResetReason, details string) { c.s.resetAll(reason, details) }

// SendPing sends a PING. OnPong, which must be set before, is called with the same data when the answer is there.
func (c *Client) SendPing(data uint64) { c.s.sendPing(data) }

// SetOnPong sets who is told of answers to PING.
func (c *Client) SetOnPong(f func(data uint64)) { c.s.onPong = f }

// clientStream is a stream as codec.ClientStream.
type clientStream stream

func (x *clientStream) EncodeHeaders(h *http.HeaderMap, end bool) error {
	st := (*stream)(x)
	s := st.s
	if st.closed || st.headSent {
		return nil
	}
	connect := h.Get(http.Method) == "CONNECT"
	switch {
	case !h.Has(http.Method):
		return ErrMissingMethod
	case connect && !h.Has(http.Authority):
		return ErrMissingAuthority
	case !connect && !h.Has(http.Path):
		return ErrMissingPath
	}
	s.start()
	s.forget(st)
	st.id = s.nextID
	s.nextID += 2
	s.streams.put(st)
	st.headSent = true
	s.guard.opened++
	st.localEnd, st.localEndSent = end, end
	s.writeHead(st, h, requestFix(st, h, &headFix{}), end)
	if end {
		s.afterSend(st)
	}
	return nil
}

func (x *clientStream) EncodeData(data *buffer.Buffer, end bool) { (*stream)(x).encodeData(data, end) }

func (x *clientStream) EncodeTrailers(h *http.HeaderMap) { (*stream)(x).encodeTrailers(h) }

func (x *clientStream) Reset(reason http.ResetReason) { (*stream)(x).reset(reason) }

func (x *clientStream) ReadDisable(disable bool) { (*stream)(x).readDisable(disable) }

func (x *clientStream) ID() uint32 { return x.id }

func (x *clientStream) WireBytes() *codec.Bytes { return &x.bytes }
