package h2

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/hpack"
)

// Sending: a body that finds its windows open is written at once. One that does not waits in its stream's buffer, and the stream in
// the ring s.ready while it only lacks the connection's window or room in the write buffer; pump then serves the ring in turn, a
// frame each. A stream that lacks its own window leaves the ring until WINDOW_UPDATE.

// maySend tells whether a new body of st may be sent right now, without passing others by.
func (s *session) maySend(st *stream) bool {
	return st.sendWindow > 0 && s.connSend > 0 && !s.blocked && s.ready == nil
}

// quantum is the size of the next DATA frame of st, for which n bytes are there.
func (s *session) quantum(st *stream, n int) int {
	return int(min(int64(min(n, s.peerFrame, maxFrameSize)), st.sendWindow, s.connSend))
}

// pump sends what waits, as far as it may.
func (s *session) pump() {
	defer s.flushPart()
	for s.ready != nil && !s.blocked && !s.dead && s.err == nil {
		st := s.ready
		body := st.out.Len() - st.trailerLen
		if body > 0 && s.connSend <= 0 {
			return
		}
		if body > 0 {
			n := s.quantum(st, body)
			s.pending(-int64(n))
			s.writeData(st, &st.out, n, n == body && st.trailerLen == 0 && st.localEnd)
		} else if st.trailerLen == 0 && st.localEnd {
			s.writeData(st, &st.out, 0, true)
		}
		trailers := st.out.Len() == st.trailerLen && st.trailerLen > 0
		if s.partFrames == maxPart || trailers || st.localEndSent || st.bufAbove {
			s.flushPart()
		}
		if trailers {
			s.sendTrailers(st)
		}
		if st.ready() {
			s.ready = st.next
		} else {
			s.unlink(st)
		}
		s.afterSend(st)
	}
}

// sendTrailers sends the trailers that waited behind a body.
func (s *session) sendTrailers(st *stream) {
	s.pending(-int64(st.trailerLen))
	b := s.enc.Begin(s.pool.getScratch())
	b = st.out.AppendTo(b)
	st.out.Reset()
	st.trailerLen = 0
	st.localEndSent = true
	st.bytes.HeaderSent += s.writeBlock(st, b, flagEndStream)
	s.pool.putScratch(b)
}

// afterSend follows up on sent bytes: the low watermark, the end of the stream.
func (s *session) afterSend(st *stream) {
	if st.bufAbove && st.out.Len() <= int(s.opts.InitialStreamWindow)/2 {
		st.bufAbove = false
		st.lower()
		if st.closed {
			return
		}
	}
	if !st.localEndSent || st.complete || st.closed {
		return
	}
	st.complete = true
	if st.req != nil {
		st.req.OnEncodeComplete()
		if st.closed {
			return
		}
	}
	if st.deferred != http.ResetNone {
		if !st.remoteEnd {
			s.writeReset(st.id, st.resetCode(st.deferred))
		}
		s.close(st)
		return
	}
	s.maybeDone(st)
}

// link puts st into the ring if it has something that may be sent.
func (s *session) link(st *stream) {
	if st.next != nil || !st.ready() {
		return
	}
	if s.ready == nil {
		st.next, st.prev = st, st
		s.ready = st
		return
	}
	head := s.ready
	st.next, st.prev = head, head.prev
	head.prev.next = st
	head.prev = st
}

func (s *session) unlink(st *stream) {
	if st.next == nil {
		return
	}
	if st.next == st {
		s.ready = nil
	} else {
		st.prev.next, st.next.prev = st.next, st.prev
		if s.ready == st {
			s.ready = st.next
		}
	}
	st.next, st.prev = nil, nil
}

// Receiving: bytes that a decoder has taken are given back to the peer, in lots of half a window, unless reading is disabled.

// giveBack returns n bytes of st to the peer's windows.
func (s *session) giveBack(st *stream, n int64) {
	s.connConsumed += n
	st.consumed += n
	if st.consumed >= int64(s.opts.InitialStreamWindow)/2 && !st.remoteEnd {
		s.writeWindowUpdate(st.id, st.consumed)
		st.recvWindow += st.consumed
		st.consumed = 0
	}
	s.updateConnWindow()
}

func (s *session) updateConnWindow() {
	if n := s.connConsumed; n >= int64(max(s.opts.InitialConnWindow, 65535))/2 {
		s.writeWindowUpdate(0, n)
		if s.connCredit == 0 {
			s.creditAt = s.guard.written
		}
		s.connCredit += n
		s.connConsumed = 0
	}
}

// takeCredit opens the connection's window by what the peer may know of by now. What lies in the write buffer it cannot know: a client that
// sends more all the same does not mind windows.
func (s *session) takeCredit() {
	if s.connCredit == 0 || s.guard.written-min(s.guard.written, uint64(s.out.Buffered())) < s.creditAt {
		return
	}
	s.connRecv += s.connCredit
	s.connCredit = 0
}

// encodeTrailers ends the stream with trailers.
func (st *stream) encodeTrailers(h *http.HeaderMap) {
	s := st.s
	if st.closed || st.localEnd || !st.headSent {
		return
	}
	st.localEnd = true
	if st.out.Len() == 0 {
		st.localEndSent = true
		s.writeHead(st, h, nil, true)
		s.afterSend(st)
		return
	}
	bound := h.Size() + h.Len()*hpack.FieldMax
	b := s.pool.getScratch()
	if cap(b) < bound {
		b = make([]byte, 0, bound)
	}
	b = appendTrailers(b, h)
	st.out.Append(b)
	st.trailerLen = len(b)
	s.pending(int64(len(b)))
	s.pool.putScratch(b)
	s.link(st)
}
