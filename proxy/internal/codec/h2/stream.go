package h2

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

// decoder is what RequestDecoder and ResponseDecoder have in common.
type decoder interface {
	DecodeHeaders(h *http.HeaderMap, end bool)
	DecodeData(data *buffer.Buffer, end bool)
	DecodeTrailers(h *http.HeaderMap)
	OnReset(reason http.ResetReason, details string)
	OnAboveHighWatermark()
	OnBelowLowWatermark()
}

// stream is one request and its answer. It comes from the Pool and goes back there. owner: worker.
type stream struct {
	s   *session
	id  uint32 // 0: a client's stream whose head was not sent yet
	dec decoder
	req codec.RequestDecoder  // the same as dec, on the server side
	res codec.ResponseDecoder // the same as dec, on the client side

	h        *http.HeaderMap // the caller's map for the head
	arena    *http.Arena     // of h
	trailers http.HeaderMap  // for received trailers

	// Receiving. recvWindow is what the peer may still send; consumed was read and not given back yet, withheld is to be given
	// back when reading is enabled again.
	recvWindow    int64
	consumed      int64
	withheld      int64
	contentLength int64 // announced, -1 for none
	received      int64 // body bytes
	readDisabled  int32
	informational int32

	// Sending. out waits for windows; the last trailerLen bytes of it are an encoded header block.
	sendWindow int64
	out        buffer.Buffer
	trailerLen int
	above      int8 // open OnAboveHighWatermark calls
	deferred   http.ResetReason
	next, prev *stream // ring of streams that could send

	upgrade string // the protocol of an upgrade that was turned into extended CONNECT
	bytes   codec.Bytes

	closed       bool // over: nothing more goes in or out
	silent       bool // its end is nobody's business
	headDone     bool // the (final) head was received
	remoteEnd    bool // END_STREAM was received
	localEnd     bool // the user has ended the stream
	localEndSent bool
	complete     bool // OnEncodeComplete was called
	headSent     bool
	isHead       bool // the request's method is HEAD
	isConnect    bool // CONNECT: bodies have no length
	connAbove    bool // the connection's high watermark was passed on
	bufAbove     bool // the send buffer's high watermark was passed on
}

// init readies a recycled stream.
func (st *stream) init(s *session) {
	st.s = s
	st.contentLength = -1
	st.recvWindow = int64(s.opts.InitialStreamWindow)
	st.sendWindow = s.peerWindow
	st.out.Init(s.in.Pool())
}

// recycle forgets everything but memory that is worth keeping.
func (st *stream) recycle() {
	t := st.trailers
	*st = stream{}
	st.trailers = t
}

// ready tells whether st has something that could be sent now.
func (st *stream) ready() bool {
	return st.out.Len() > st.trailerLen && st.sendWindow > 0 || st.out.Len() == st.trailerLen && (st.trailerLen > 0 || st.localEnd && !st.localEndSent)
}

// encodeData sends body bytes, as far as the windows allow, and queues the rest.
func (st *stream) encodeData(data *buffer.Buffer, end bool) {
	s := st.s
	if st.closed || st.localEnd || !st.headSent {
		data.Reset()
		return
	}
	st.localEnd = end
	if st.out.Len() == 0 {
		if data.Len() == 0 {
			if end {
				s.writeData(st, data, 0, true)
				s.afterSend(st)
			}
			return
		}
		for data.Len() > 0 && s.maySend(st) {
			n := s.quantum(st, data.Len())
			s.writeData(st, data, n, end && n == data.Len())
			if s.partFrames == maxPart {
				s.flushPart()
			}
		}
		s.flushPart()
		if data.Len() == 0 {
			s.afterSend(st)
			return
		}
	}
	st.queue(data)
}

// queue keeps what cannot be sent yet.
func (st *stream) queue(data *buffer.Buffer) {
	s := st.s
	s.pending(int64(data.Len()))
	st.out.Move(data)
	s.link(st)
	if !st.bufAbove && st.out.Len() > int(s.opts.InitialStreamWindow) {
		st.bufAbove = true
		st.raise()
	}
}

func (st *stream) raise() {
	st.above++
	st.dec.OnAboveHighWatermark()
}

func (st *stream) lower() {
	st.above--
	st.dec.OnBelowLowWatermark()
}

// reset gives the stream up; the decoder hears no more of it. A response that has ended but waits for windows is still sent.
func (st *stream) reset(reason http.ResetReason) {
	if st.closed {
		return
	}
	s := st.s
	if reason == http.ResetNone && s.dispatching && st.localEndSent && s.server != nil {
		// The end of the request may lie in what has been read already: then there is nothing to say.
		st.dec, st.req = nopDecoder{}, nil
		s.answered = append(s.answered, st)
		return
	}
	if st.localEnd && !st.localEndSent && st.deferred == http.ResetNone && reason != http.ResetOverload && st.id != 0 {
		st.deferred = reason
		st.dec, st.req, st.res = nopDecoder{}, nil, nil
		return
	}
	if st.id != 0 && !(s.client != nil && s.peerGoAway && s.streams.n == 1) { // then the connection ends with it
		s.writeReset(st.id, st.resetCode(reason))
	}
	s.close(st)
}

// resetCode is the code of the RST_STREAM for a reason of our own. A server that has answered completely only asks the client to stop
// sending (RFC 9113, section 8.1).
func (st *stream) resetCode(reason http.ResetReason) uint32 {
	switch reason {
	case http.ResetLocalRefused, http.ResetRemoteRefused:
		return codeRefused
	case http.ResetConnectError:
		return codeConnect
	case http.ResetProtocolError:
		return codeProtocol
	}
	if st.localEndSent && st.s.client == nil {
		return codeNo
	}
	return codeInternal
}

// resetReason is the reason for a code that the peer sent.
func resetReason(code uint32) (http.ResetReason, string) {
	switch code {
	case codeRefused:
		return http.ResetRemoteRefused, detailsRefused
	case codeConnect:
		return http.ResetConnectError, detailsReset
	case codeProtocol:
		return http.ResetProtocolError, detailsReset
	case codeNo:
		return http.ResetRemote, ""
	}
	return http.ResetRemote, detailsReset
}

// readDisable stops and resumes the flow of received bytes; calls nest.
func (st *stream) readDisable(disable bool) {
	if st.closed {
		return
	}
	if disable {
		st.readDisabled++
		return
	}
	if st.readDisabled == 0 {
		return
	}
	st.readDisabled--
	if st.readDisabled == 0 && st.withheld > 0 {
		n := st.withheld
		st.withheld = 0
		st.s.giveBack(st, n)
	}
}

// nopDecoder hears the rest of a stream that its user has left.
type nopDecoder struct{}

func (nopDecoder) DecodeHeaders(*http.HeaderMap, bool) {}
func (nopDecoder) DecodeData(*buffer.Buffer, bool)     {}
func (nopDecoder) DecodeTrailers(*http.HeaderMap)      {}
func (nopDecoder) OnReset(http.ResetReason, string)    {}
func (nopDecoder) OnAboveHighWatermark()               {}
func (nopDecoder) OnBelowLowWatermark()                {}
