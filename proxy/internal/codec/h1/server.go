package h1

import (
	"bytes"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

// Server is the server side of an HTTP/1 connection. owner: worker.
//
// It may be destroyed within any of its callbacks, but its memory must not be used for another connection before Dispatch has
// returned.
type Server struct {
	handler codec.ServerHandler
	out     codec.Output
	opts    *Options
	pool    *Pool
	req     *request

	sent   uint64                              // bytes handed to out in all
	queued [DefaultMaxOutboundResponses]uint64 // where in sent the last responses end
	count  uint32
	nqueue uint8
	proto  http.Proto
	closed bool // nothing is read any more
	above  bool // the connection's write buffer is over its limit
	secure bool // the connection has TLS
	busy   bool // within Dispatch
}

var _ codec.ServerConn = (*Server)(nil)

// NewServer returns the server side of a connection. opts is not changed and may be shared; pool is the worker's.
func NewServer(handler codec.ServerHandler, out codec.Output, opts *Options, pool *Pool) *Server {
	s := &Server{}
	s.Init(handler, out, opts, pool)
	return s
}

// Init makes s ready for a new connection.
func (s *Server) Init(handler codec.ServerHandler, out codec.Output, opts *Options, pool *Pool) {
	*s = Server{handler: handler, out: out, opts: opts, pool: pool, proto: http.HTTP11}
}

// SetSecure says that the connection has TLS. Call it before the first Dispatch.
func (s *Server) SetSecure() { s.secure = true }

// Protocol returns the version of the current or last request; HTTP/1.0 stands for all but HTTP/1.1.
func (s *Server) Protocol() http.Proto { return s.proto }

// Dispatch consumes bytes from the client. It stops after a complete request until its response is encoded completely: the
// user calls it again then, at the latest from RequestDecoder.OnEncodeComplete's caller, with the bytes that are left.
func (s *Server) Dispatch(b []byte) (n int, err error) {
	if s.busy {
		return 0, nil
	}
	s.busy = true
	n, cerr := s.dispatch(b)
	s.busy = false
	if s.req != nil && s.req.over {
		s.drop()
	}
	if cerr != nil {
		s.closed = true
		return n, cerr
	}
	return n, nil
}

func (s *Server) dispatch(b []byte) (n int, err *codec.Err) {
	for {
		if s.closed {
			return len(b), nil
		}
		r := s.req
		if r != nil && r.over {
			s.drop()
			continue
		}
		if r == nil {
			for n < len(b) && (b[n] == '\r' || b[n] == '\n') {
				n++
			}
			if n == len(b) {
				return n, nil
			}
			if r, err = s.begin(b[n]); err != nil {
				return n, err
			}
			continue
		}
		if r.phase == phaseDone || n == len(b) {
			return n, nil
		}
		k := 0
		if r.phase == phaseHead {
			k, err = s.head(r, b[n:])
		} else {
			k, err = s.body(r, b[n:])
		}
		n += k
		if err != nil {
			return n, err
		}
	}
}

// begin starts a request.
func (s *Server) begin(first byte) (*request, *codec.Err) {
	r := s.pool.getRequest()
	s.count++
	s.proto = http.HTTP11
	s.req = r
	r.s, r.id = s, s.count
	r.version, r.action = http.HTTP11, s.opts.Underscores
	r.data.Init(s.out.Out().Pool())
	r.dec, r.h = s.handler.NewStream(r)
	if s.flooded() {
		return r, ErrFlood
	}
	if s.above && !r.over {
		r.above = true
		r.dec.OnAboveHighWatermark()
	}
	if first <= ' ' && !r.over {
		return r, s.failHead(r, ErrMethod)
	}
	return r, nil
}

// flooded tells whether too many responses wait to be sent as another request begins.
func (s *Server) flooded() bool {
	max := min(s.opts.maxOutbound(), len(s.queued))
	if int(s.nqueue) < max {
		return false
	}
	drained := s.sent - min(s.sent, uint64(s.out.Buffered()))
	waiting := 0
	for _, end := range s.queued[:s.nqueue] {
		if end > drained {
			waiting++
		}
	}
	return waiting >= max
}

func (s *Server) head(r *request, b []byte) (n int, err *codec.Err) {
	had := len(r.message.part)
	if had == 0 && s.opts.plain() {
		r.phase = phaseDone
		n, err := s.opts.fastRequest(r, b, s.maxHead())
		if n > 0 {
			return n, s.headDone(r, b[:n], err)
		}
		r.phase = phaseHead
	}
	var first *codec.Err // what is wrong with the first line
	if !r.looked {
		var done bool
		if done, n, first = s.firstLine(r, b); done {
			return n, first
		}
	}
	raw, n, err := r.gather(s.pool, b, s.maxHead(), false, ErrHeadTooLarge)
	switch {
	case err != nil:
		if first != nil && s.maxHead() >= sliceBytes {
			err = first
		}
		return n, s.failHead(r, err)
	case first != nil && (raw == nil || len(raw) > sliceBytes):
		return n, s.failHead(r, first)
	case raw == nil:
		return n, nil
	}
	r.phase = phaseDone
	err = s.opts.parseRequest(r, raw, s.pool.lines)
	r.message.part = r.message.part[:0]
	return n, s.headDone(r, raw, err)
}

// sliceBytes is how much Envoy's parser is given at a time: a fault in the first line is the one that counts unless a worse one is in the same
// slice.
const sliceBytes = 16 << 10

// firstLine looks at the request line as soon as it is there. A request without version (HTTP/0.9) ends with it, whatever comes after: it is
// done then, and took n bytes. For others err is what is wrong with the line.
func (s *Server) firstLine(r *request, b []byte) (done bool, n int, err *codec.Err) {
	had := len(r.message.part)
	b = b[:min(len(b), s.maxHead()-had)]
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return false, 0, nil
	}
	r.looked = true
	raw := b[:i+1]
	if had > 0 {
		raw = append(r.message.part, raw...)
		r.message.part = raw[:had]
	}
	text := firstLine(raw)
	first, err := s.opts.parseRequestLine(text)
	if !first.simple {
		return false, 0, err
	}
	r.phase = phaseDone
	s.pool.lines = append(s.pool.lines[:0], line{0, int32(len(text))})
	err = s.opts.parseRequest(r, raw, s.pool.lines)
	r.message.part = r.message.part[:0]
	return true, i + 1, s.headDone(r, raw, err)
}

// headDone reports a head.
func (s *Server) headDone(r *request, raw []byte, err *codec.Err) *codec.Err {
	s.countDropped(r)
	r.bytes.Received += uint64(len(raw))
	if err != nil {
		return s.failHead(r, err)
	}
	r.bytes.HeaderReceived = headerBytes(raw, r.h)
	s.proto = r.version
	r.dec.DecodeHeaders(r.h, r.phase == phaseDone)
	return nil
}

func (s *Server) body(r *request, b []byte) (n int, err *codec.Err) {
	n, done, err := r.message.body(s.pool, s.opts, b, s.maxHead())
	s.countDropped(r)
	if err != nil {
		if r.whole() && r.pending() {
			r.dec.DecodeData(r.taken(), false)
		}
		r.drop()
		return n, s.fail(r, err)
	}
	trailers := done && r.hasTrailers()
	if done {
		r.phase = phaseDone
	}
	if r.pending() || done && !trailers {
		r.dec.DecodeData(r.taken(), done && !trailers)
		r.drop()
	}
	if trailers && !r.over {
		r.dec.DecodeTrailers(r.trailers)
	}
	return n, nil
}

func (s *Server) countDropped(r *request) {
	if r.dropped == 0 {
		return
	}
	if c, ok := s.handler.(Counter); ok {
		c.OnDroppedUnderscores(r.dropped)
	}
	r.dropped = 0
}

func (s *Server) maxHead() int {
	if s.opts.MaxHeadBytes > 0 {
		return s.opts.MaxHeadBytes
	}
	return DefaultMaxRequestHeadBytes
}

// fail reports a broken request to its decoder, which answers it.
func (s *Server) fail(r *request, err *codec.Err) *codec.Err {
	r.closes, r.failed = true, true
	if !r.over {
		r.dec.DecodeError(err)
	}
	return err
}

// failHead is fail for an error in the head, of which nothing counts then but the version, if it was seen.
func (s *Server) failHead(r *request, err *codec.Err) *codec.Err {
	r.h.Init(r.h.Arena())
	return s.fail(r, err)
}

// EOF says that the client sends no more. A tunnel ends in this direction. For any other request there is no event: HTTP/1 knows
// no half-closed clients, so the user closes the connection, ends its stream and destroys the codec.
func (s *Server) EOF() error {
	r := s.req
	s.closed = true
	if r != nil && !r.over && r.phase == phaseTunnel {
		r.phase = phaseDone
		r.dec.DecodeData(r.taken(), true)
	}
	return nil
}

// GoAway does nothing: the user adds "connection: close" to the next response.
func (s *Server) GoAway(bool) {}

// OnHighWatermark tells the current request's decoder that its response piles up.
func (s *Server) OnHighWatermark() {
	s.above = true
	if r := s.req; r != nil && !r.over && !r.above {
		r.above = true
		r.dec.OnAboveHighWatermark()
	}
}

// OnLowWatermark is the end of OnHighWatermark.
func (s *Server) OnLowWatermark() {
	s.above = false
	if r := s.req; r != nil && !r.over && r.above {
		r.above = false
		r.dec.OnBelowLowWatermark()
	}
}

// Destroy gives back all memory without callbacks.
func (s *Server) Destroy() {
	s.closed = true
	if s.req == nil {
		return
	}
	if s.req.over = true; !s.busy {
		s.drop()
	}
}

// drop gives the current request's state back.
func (s *Server) drop() {
	r := s.req
	s.req = nil
	s.pool.putRequest(r)
}

// drop forgets body bytes that the user left.
func (m *message) drop() {
	m.run = nil
	m.data.Reset()
}
