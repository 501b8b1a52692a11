package h2

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

// Server is the server side of an HTTP/2 connection. owner: worker.
type Server struct{ s session }

var (
	_ codec.ServerConn   = (*Server)(nil)
	_ codec.ServerStream = (*serverStream)(nil)
)

// NewServer returns a server that waits for the client's preface.
func NewServer(h codec.ServerHandler, out codec.Output, pool *Pool, opts *Options) *Server {
	c := &Server{}
	c.s.server = h
	c.s.init(out, pool, opts)
	return c
}

// Dispatch implements codec.ServerConn. When it returns an error all streams were told so by OnReset; GOAWAY, if the peer shall get
// one, lies in the write buffer.
func (c *Server) Dispatch(b []byte) (int, error) { return c.s.dispatch(b) }

// EOF does nothing: what a client that has closed its side still wants to have is not defined. The handler closes the connection.
func (c *Server) EOF() error { return nil }

// GoAway implements codec.ServerConn.
func (c *Server) GoAway(shutdownNotice bool) { c.s.goAway(shutdownNotice) }

// OnHighWatermark implements codec.ServerConn.
func (c *Server) OnHighWatermark() { c.s.highWatermark() }

// OnLowWatermark implements codec.ServerConn.
func (c *Server) OnLowWatermark() { c.s.lowWatermark() }

// Destroy implements codec.ServerConn.
func (c *Server) Destroy() { c.s.destroy() }

// Protocol implements codec.ServerConn.
func (c *Server) Protocol() http.Proto { return http.HTTP2 }

// Active is how many streams are open.
func (c *Server) Active() int { return c.s.streams.n }

// ResetAll tells all streams that they are over, when the connection is gone. Nothing is sent.
func (c *Server) ResetAll(reason http.ResetReason, details string) { c.s.resetAll(reason, details) }

// SendPing sends a PING. OnPong, which must be set before, is called with the same data when the answer is there.
func (c *Server) SendPing(data uint64) { c.s.sendPing(data) }

// SetOnPong sets who is told of answers to PING.
func (c *Server) SetOnPong(f func(data uint64)) { c.s.onPong = f }

// serverStream is a stream as codec.ServerStream.
type serverStream stream

func (x *serverStream) Encode1xx(h *http.HeaderMap) {
	st := (*stream)(x)
	if !st.closed && !st.headSent {
		st.s.writeHead(st, h, nil, false)
	}
}

func (x *serverStream) EncodeHeaders(h *http.HeaderMap, end bool) {
	st := (*stream)(x)
	if st.closed || st.headSent {
		return
	}
	s := st.s
	st.headSent = true
	s.guard.opened++
	var fix *headFix
	if h.Has(http.Upgrade) {
		fix = responseFix(h, new(headFix))
	}
	st.localEnd, st.localEndSent = end, end
	s.writeHead(st, h, fix, end)
	if end {
		s.afterSend(st)
	}
}

func (x *serverStream) EncodeData(data *buffer.Buffer, end bool) { (*stream)(x).encodeData(data, end) }

func (x *serverStream) EncodeTrailers(h *http.HeaderMap) { (*stream)(x).encodeTrailers(h) }

func (x *serverStream) Reset(reason http.ResetReason) { (*stream)(x).reset(reason) }

func (x *serverStream) ReadDisable(disable bool) { (*stream)(x).readDisable(disable) }

func (x *serverStream) ID() uint32 { return x.id }

func (x *serverStream) CloseAfter() bool { return false }

func (x *serverStream) WireBytes() *codec.Bytes { return &x.bytes }
