package router

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// tcpStream is the upstream of a request whose body is sent as it is, and whose answer is what comes back: CONNECT that ends here
// (connect_config), or POST for the same. It stands for the codec, and it is its connection's handler. owner: worker.
type tcpStream struct {
	a     *attempt
	t     *pool.TCPConn
	wire  codec.Bytes
	ready bool // connected
	head  bool // the request's head was sent, so to say
	told  bool // the answer's was
	waits bool // bytes have come before that
	eof   bool // and the end
	over  bool // nobody wants to hear of the connection any more
}

var (
	_ codec.ClientStream = (*tcpStream)(nil)
	_ conn.Handler       = (*tcpStream)(nil)
)

// raw tells whether the request's body is for a connection without HTTP.
func (r *Router) raw() bool {
	c := r.rt.Connect
	return c != nil && (r.connect || c.AllowPost && r.head.Get(http.Method) == "POST")
}

// dial connects the attempt to its host.
func (a *attempt) dial() {
	r := a.r
	s := &tcpStream{a: a}
	a.raw, a.waiting, a.tunnel = s, true, false
	t, reason := r.cluster.DialTCP(r.w, a.host, r.priority(), s)
	if t == nil {
		s.over = true
		a.OnPoolFailure(reason, "", a.host)
		return
	}
	s.t = t
	t.NetConn().EnableHalfClose()
}

// OnConnected implements conn.Handler: the connection is as good as an answer.
func (s *tcpStream) OnConnected() {
	s.ready = true
	s.a.ready(s, s.t.Info())
	s.answer()
}

// answer makes the head of the answer, once the request's has passed.
func (s *tcpStream) answer() {
	if s.ready && s.head && !s.told && !s.over {
		s.told = true
		a := s.a
		a.resp.AddConst(http.Status, "200")
		a.DecodeHeaders(&a.resp, false)
		if s.waits && !s.over {
			s.t.NetConn().Redeliver()
		}
		if s.eof {
			s.OnEOF()
		}
	}
}

// OnData implements conn.Handler.
func (s *tcpStream) OnData(b []byte) int {
	if !s.told { // a filter holds the head
		s.waits = true
		return 0
	}
	s.wire.Received += uint64(len(b))
	var data buffer.Buffer
	data.Init(&s.a.r.w.Bufs)
	data.Borrow(b)
	s.a.DecodeData(&data, false)
	data.Reset()
	return len(b)
}

// OnEOF implements conn.Handler: the answer is over.
func (s *tcpStream) OnEOF() {
	if s.over || !s.told {
		s.eof = true
		return
	}
	done := s.a.sentEnd // then the connection is over in both directions
	s.over = done
	if done {
		s.t.Ended()
	}
	var none buffer.Buffer
	none.Init(&s.a.r.w.Bufs)
	s.a.DecodeData(&none, true)
	if !s.over {
		s.over = true
		s.t.NetConn().Close(network.FlushWrite, "")
	}
}

// OnHighWatermark implements conn.Handler.
func (s *tcpStream) OnHighWatermark() {
	if !s.over {
		s.a.OnAboveHighWatermark()
	}
}

// OnLowWatermark implements conn.Handler.
func (s *tcpStream) OnLowWatermark() {
	if !s.over {
		s.a.OnBelowLowWatermark()
	}
}

// OnClose implements conn.Handler.
func (s *tcpStream) OnClose(conn.Closed) {
	if s.over {
		return
	}
	s.over = true
	if !s.ready {
		reason, failure := s.t.Failure()
		s.a.OnPoolFailure(reason, failure, s.t.Host())
		return
	}
	s.a.OnReset(http.ResetConnectionTermination, "")
}

// cancel gives up what is not connected yet.
func (s *tcpStream) cancel() {
	if !s.over {
		s.over = true
		s.t.NetConn().Close(network.NoFlush, "")
	}
}

// EncodeHeaders implements codec.ClientStream.
func (s *tcpStream) EncodeHeaders(_ *http.HeaderMap, end bool) error {
	s.head = true
	if end {
		s.t.NetConn().CloseWrite()
	}
	if s.a.chained {
		s.a.r.w.Post(s.answer) // a filter's callback is on the stack
	}
	return nil
}

// EncodeData implements codec.ClientStream.
func (s *tcpStream) EncodeData(data *buffer.Buffer, end bool) {
	s.wire.Sent += uint64(data.Len())
	c := s.t.NetConn()
	if data.Len() > 0 {
		c.WriteData(data)
	}
	if end {
		c.CloseWrite()
	}
}

// EncodeTrailers implements codec.ClientStream: there is no place for them.
func (s *tcpStream) EncodeTrailers(*http.HeaderMap) { s.t.NetConn().CloseWrite() }

// Reset implements codec.ClientStream.
func (s *tcpStream) Reset(http.ResetReason) { s.cancel() }

// ReadDisable implements codec.ClientStream.
func (s *tcpStream) ReadDisable(disable bool) {
	if !s.over {
		s.t.NetConn().ReadDisable(disable)
	}
}

// ID implements codec.ClientStream.
func (s *tcpStream) ID() uint32 { return 0 }

// WireBytes implements codec.ClientStream.
func (s *tcpStream) WireBytes() *codec.Bytes { return &s.wire }
