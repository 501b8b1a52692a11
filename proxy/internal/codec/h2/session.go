package h2

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/hpack"
	hstats "github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// session is one HTTP/2 connection, of either side. Server and Client embed it.
//
// Bytes come in by dispatch, which takes one step after the other: the preface, frames, the payload of DATA as it arrives.
// Header blocks go through headers.go to a stream's maps, everything else is handled where frame says. What is sent is written to
// the connection's buffer at once (write.go), but for bodies that wait for a window (flow.go). owner: worker.
type session struct {
	out    codec.Output
	pool   *Pool
	opts   *Options
	server codec.ServerHandler // nil on the client side
	client codec.ClientHandler // nil on the server side

	// Reading.
	state    readState
	dead     bool       // Destroy was called
	err      *codec.Err // the connection is broken
	data     dataFrame  // state stateData: the frame whose payload arrives
	skip     uint32     // state stateSkip: bytes to drop
	in       buffer.Buffer
	block    headerBlock
	dec      hpack.Decoder
	inFlight int8 // SETTINGS that the peer has not acknowledged

	// Streams.
	streams    streamTable
	fresh      []*stream            // a client's streams whose head was not sent yet: ids must go up on the wire
	lastPeer   uint32               // the highest id that the peer has opened
	ended      [endedStreams]uint32 // streams that the peer has ended or reset lately
	endedNext  uint8
	nextID     uint32 // client: the next stream's id
	peerGoAway bool
	lastSent   uint32 // last stream id of our GOAWAY; streams above it are ignored
	sentGoAway bool

	// Sending.
	enc          hpack.Encoder
	started      bool
	blocked      bool // the connection's write buffer is above its high watermark
	ready        *stream
	connSend     int64 // connection window for sending
	connRecv     int64 // connection window for receiving, and what of it waits to be given back
	connConsumed int64
	connCredit   int64         // given back by WINDOW_UPDATE frames that the peer cannot have yet
	creditAt     uint64        // where in what was written the first of them ends
	part         buffer.Buffer // DATA frames on their way out, see writeData
	partFrames   int
	peerWindow   int64 // SETTINGS_INITIAL_WINDOW_SIZE of the peer
	peerFrame    int   // SETTINGS_MAX_FRAME_SIZE of the peer
	peerStreams  uint32
	peerConnect  bool // SETTINGS_ENABLE_CONNECT_PROTOCOL of the peer
	gotSettings  bool

	// answered are streams that were answered while dispatch runs, before their requests had ended. Those that have not by its end are reset.
	answered    []*stream
	dispatching bool

	guard  guard
	onPong func(data uint64)
}

type readState uint8

const (
	statePreface  readState = iota // the client's magic (server side)
	stateSettings                  // the first frame, which must be SETTINGS
	stateFrame
	stateBlock // after HEADERS without END_HEADERS: only CONTINUATION may come
	stateData
	stateSkip
)

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

func (s *session) init(out codec.Output, pool *Pool, opts *Options) {
	s.out, s.pool, s.opts = out, pool, opts
	s.connSend, s.peerWindow = 65535, 65535
	s.connRecv = int64(max(opts.InitialConnWindow, 65535))
	s.peerFrame = maxFrameSize
	s.peerStreams = initialMaxStreams
	s.lastSent = 1<<31 - 1
	s.dec.Init(int(opts.HpackTableSize))
	s.enc.Init(int(opts.HpackTableSize))
	s.in.Init(out.Out().Pool())
	s.part.Init(out.Out().Pool())
	s.inc(hstats.HTTP2InUse)
	if s.client != nil {
		s.inc(hstats.HTTP2Nghttp2UpstreamConnections)
	} else {
		s.inc(hstats.HTTP2Nghttp2DownstreamConnections)
	}
}

// dispatch consumes what it can of b. A frame other than DATA that is not complete stays for the next call.
func (s *session) dispatch(b []byte) (int, error) {
	s.pool.settle()
	if s.err == nil && !s.dead {
		s.checkOutbound()
		s.takeCredit()
	}
	n := 0
	s.dispatching = true
	for s.err == nil && !s.dead {
		k := s.step(b[n:])
		if k == 0 {
			break
		}
		n += k
	}
	s.dispatching = false
	if len(s.answered) > 0 {
		s.endAnswered()
	}
	if s.err != nil {
		return n, s.err
	}
	if !s.dead {
		s.updateConnWindow()
	}
	return n, nil
}

// endAnswered resets the streams of which the rest of the request is not wanted.
func (s *session) endAnswered() {
	for i, st := range s.answered {
		s.answered[i] = nil
		if !st.closed {
			st.reset(http.ResetNone)
		}
	}
	s.answered = s.answered[:0]
}

// step takes one step of the state machine and returns how many bytes it consumed, 0 if it needs more.
func (s *session) step(b []byte) int {
	switch s.state {
	case statePreface:
		return s.readPreface(b)
	case stateData:
		return s.readData(b)
	case stateSkip:
		k := min(int(s.skip), len(b))
		if s.skip -= uint32(k); s.skip == 0 {
			s.state = stateFrame
		}
		return k
	}
	if len(b) < frameHeaderLen {
		return 0
	}
	f := parseFrame(b)
	if f.length > maxFrameSize {
		s.fail(errFrameSize)
		return 0
	}
	if s.state != stateFrame && !s.expected(&f) {
		return 0
	}
	switch f.typ {
	case frameData:
		return s.beginData(&f, b[frameHeaderLen:])
	case frameHeaders, framePriority, frameReset, frameSettings, framePush, framePing, frameGoAway, frameWindowUpdate,
		frameContinuation:
	default:
		// Frames of unknown type are ignored (RFC 9113, section 4.1).
		s.skip = f.length
		if f.length > 0 {
			s.state = stateSkip
		}
		return frameHeaderLen
	}
	end := frameHeaderLen + int(f.length)
	if len(b) < end {
		return 0
	}
	s.frame(&f, b[frameHeaderLen:end])
	return end
}

// readPreface checks the client's magic, as far as it has arrived. Our own preface goes out with the first bytes that are right, so that a
// peer of another protocol gets nothing.
func (s *session) readPreface(b []byte) int {
	n := min(len(b), len(preface))
	if n == 0 {
		return 0
	}
	if string(b[:n]) != preface[:n] {
		s.abort(errPreface)
		return 0
	}
	s.start()
	if n < len(preface) {
		return 0
	}
	s.state = stateSettings
	return n
}

// expected checks a frame in a state that allows only some.
func (s *session) expected(f *frameHeader) bool {
	switch {
	case s.state == stateSettings && (f.typ != frameSettings || f.flags&flagAck != 0):
		s.fail(errNoSettings)
	case s.state == stateBlock && (f.typ != frameContinuation || f.id != s.block.id):
		s.fail(errContinuation)
	default:
		return true
	}
	return false
}

// frame handles a complete frame.
func (s *session) frame(f *frameHeader, p []byte) {
	switch f.typ {
	case frameHeaders:
		s.onHeaders(f, p)
	case frameContinuation:
		s.onContinuation(f, p)
	case frameWindowUpdate:
		s.onWindowUpdate(f, p)
	case frameSettings:
		s.onSettings(f, p)
	case frameReset:
		s.onReset(f, p)
	case framePing:
		s.onPing(f, p)
	case frameGoAway:
		s.onGoAway(f, p)
	case framePriority:
		s.onPriority(f, p)
	case framePush:
		s.fail(errPush)
	}
}

// idle tells whether a stream id was never used.
func (s *session) idle(id uint32) bool {
	if s.client != nil {
		return id&1 == 0 || id >= s.nextID
	}
	return id&1 == 0 || id > s.lastPeer
}

// maybeDone closes a stream that has ended on both sides.
func (s *session) maybeDone(st *stream) {
	switch {
	case st.closed || !st.remoteEnd:
	case st.localEndSent:
		s.close(st)
	case s.client != nil && st.localEnd:
		// The answer is whole while the end of the request waits for windows. Whoever asked has what it wants, and may be gone.
		st.dec, st.res = nopDecoder{}, nil
	}
}

// close takes a stream out of the session. Its decoder hears no more.
func (s *session) close(st *stream) {
	if st.closed {
		return
	}
	st.closed = true
	if st.id != 0 {
		s.streams.remove(st.id)
	} else {
		s.forget(st)
	}
	if s.block.st == st {
		s.block.st = nil
	}
	if st.remoteEnd {
		s.ended[s.endedNext%endedStreams] = st.id
		s.endedNext++
	}
	s.unlink(st)
	s.pending(-int64(st.out.Len()))
	st.out.Reset()
	s.connConsumed += st.withheld
	st.trailers.Release()
	s.active(-1)
	s.pool.put(st)
	if s.client != nil && !st.silent {
		s.client.OnStreamDone(!s.peerGoAway && s.err == nil)
	}
}

// streamError resets one stream because of what the peer did.
func (s *session) streamError(st *stream, err *codec.Err) {
	s.writeReset(st.id, err.H2Code)
	s.fault()
	s.finish(st, err.Reason, err.Details)
}

// finish closes a stream and tells its decoder why.
func (s *session) finish(st *stream, reason http.ResetReason, details string) {
	if st.closed {
		return
	}
	if s.client != nil {
		// Details are for the log of downstream requests; upstream resets go by their reason alone.
		details = ""
	}
	dec := st.dec
	s.close(st)
	dec.OnReset(reason, details)
}

// invalid deals with a message that breaks the rules of HTTP: by the option, the stream is reset or the connection ends.
func (s *session) invalid(st *stream, err *codec.Err) {
	if !s.opts.StreamErrorOnInvalid {
		s.breaks(err, st)
		return
	}
	s.count(err)
	reason := http.ResetLocal
	if s.client != nil {
		reason = http.ResetProtocolError
	}
	s.writeReset(st.id, err.H2Code)
	s.fault()
	s.finish(st, reason, err.Details)
}

// fail ends the connection with a GOAWAY.
func (s *session) fail(err *codec.Err) {
	if s.err != nil {
		return
	}
	s.start()
	s.writeGoAway(min(s.lastPeer, s.lastSent), err.H2Code, err.Text)
	s.breaks(err, nil)
}

// breaks is abort for an error of which one stream at most is to blame: only that has its details.
func (s *session) breaks(err *codec.Err, culprit *stream) {
	details := detailsBroken
	if culprit == nil && (err == errNotStreamZero || err == errPush) {
		details = err.Details
	}
	s.broken(err)
	if culprit != nil {
		s.finish(culprit, err.Reason, err.Details)
	}
	s.resetAll(err.Reason, details)
}

// abort ends the connection: all streams are reset, Dispatch returns err.
func (s *session) abort(err *codec.Err) {
	if s.err == nil {
		s.broken(err)
		s.resetAll(err.Reason, err.Details)
	}
}

// broken notes that the connection is.
func (s *session) broken(err *codec.Err) {
	if s.err != nil {
		return
	}
	s.err = err
	s.count(err)
	if s.client != nil {
		// Streams that end now make no room for others.
		s.client.OnMaxStreams(0)
	}
}

// resetAll resets all streams and tells their decoders.
func (s *session) resetAll(reason http.ResetReason, details string) {
	s.resetAbove(0, reason, details)
}

// resetAbove resets the streams with an id above last, and those that have no id yet.
func (s *session) resetAbove(last uint32, reason http.ResetReason, details string) {
	s.eachStream(func(st *stream) {
		if st.id > last || st.id == 0 {
			s.finish(st, reason, details)
		}
	})
}

// destroy drops everything without callbacks.
func (s *session) destroy() {
	if s.dead {
		return
	}
	s.eachStream(func(st *stream) {
		st.dec = nopDecoder{}
		st.silent = true
		s.close(st)
	})
	s.dead = true
	s.pool.putScratch(s.block.rest)
	s.block.rest = nil
	s.in.Reset()
	s.part.Reset()
}

// highWatermark: bodies are held back from now on, and whoever feeds a stream is told.
func (s *session) highWatermark() {
	s.blocked = true
	s.eachStream(func(st *stream) {
		if !st.connAbove {
			st.connAbove = true
			st.raise()
		}
	})
}

func (s *session) lowWatermark() {
	s.blocked = false
	s.pump()
	s.eachStream(func(st *stream) {
		if st.connAbove {
			st.connAbove = false
			st.lower()
		}
	})
}

// eachStream calls f for all streams that are there now and still are when their turn comes.
func (s *session) eachStream(f func(st *stream)) {
	list := s.pool.getList()
	for _, st := range s.streams.slots {
		if st != nil {
			list = append(list, st)
		}
	}
	list = append(list, s.fresh...)
	for _, st := range list {
		if !st.closed && !s.dead {
			f(st)
		}
	}
	s.pool.putList(list)
}

// Next: proxy/internal/fm/stream.go
