package h2

// dataFrame is the DATA frame that is being received.
type dataFrame struct {
	id   uint32
	left uint32 // body bytes to come
	pad  uint32 // padding to come
	end  bool
}

// beginData checks a DATA frame by its header (and pad length), and accounts for it: flow control counts the whole payload.
func (s *session) beginData(f *frameHeader, p []byte) int {
	n, pad := frameHeaderLen, uint32(0)
	left := f.length
	if f.flags&flagPadded != 0 {
		if left == 0 {
			s.fail(errPadding)
			return 0
		}
		if len(p) == 0 {
			return 0
		}
		pad = uint32(p[0])
		left--
		n++
		if pad > left {
			s.fail(errPadding)
			return 0
		}
		left -= pad
	}
	if f.id == 0 {
		s.fail(errDataZero)
		return 0
	}
	if !s.guardEmpty(left, f.flags&flagEndStream != 0) {
		return 0
	}
	if int64(f.length) > s.connRecv {
		s.fail(errConnWindow)
		return 0
	}
	s.connRecv -= int64(f.length)
	if !s.acceptData(f, left) {
		// The stream is gone: its bytes still count for the connection.
		s.connConsumed += int64(f.length)
		s.skip = f.length - uint32(n-frameHeaderLen)
		s.state = stateFrame
		if s.skip > 0 {
			s.state = stateSkip
		}
		return n
	}
	st := s.streams.get(f.id)
	st.recvWindow -= int64(f.length)
	st.bytes.Received += uint64(frameHeaderLen + f.length)
	// Padding is never seen by anyone who could hold it back.
	s.giveBack(st, int64(f.length-left))
	s.data = dataFrame{id: f.id, left: left, pad: pad, end: f.flags&flagEndStream != 0}
	s.state = stateData
	if left == 0 {
		s.deliver(st, nil)
		s.endData()
	}
	return n
}

// acceptData tells whether the body may be delivered; if not, it has dealt with the stream.
func (s *session) acceptData(f *frameHeader, body uint32) bool {
	st := s.streams.get(f.id)
	switch {
	case st == nil:
		if s.idle(f.id) {
			s.fail(errDataIdle)
		}
		return false
	case st.remoteEnd:
		s.streamError(st, errHalfClosed)
		return false
	case int64(f.length) > st.recvWindow:
		s.streamError(st, errStreamWindow)
		return false
	case !st.headDone:
		s.invalid(st, errEarlyData)
		return false
	}
	st.received += int64(body)
	if st.contentLength >= 0 && (st.received > st.contentLength || f.flags&flagEndStream != 0 && st.received != st.contentLength) {
		// Envoy's library resets the stream here, whatever is configured.
		s.streamError(st, errBodyLength)
		return false
	}
	return true
}

// readData delivers the part of a DATA frame's payload that is there.
func (s *session) readData(b []byte) int {
	d := &s.data
	if d.left == 0 {
		k := min(int(d.pad), len(b))
		d.pad -= uint32(k)
		s.endData()
		return k
	}
	k := min(int(d.left), len(b))
	if k == 0 {
		return 0
	}
	d.left -= uint32(k)
	if st := s.streams.get(d.id); st != nil {
		s.deliver(st, b[:k])
	} else {
		s.connConsumed += int64(k)
	}
	s.endData()
	return k
}

// endData leaves the DATA frame when its last byte was read.
func (s *session) endData() {
	if s.data.left == 0 && s.data.pad == 0 && s.state == stateData {
		s.state = stateFrame
	}
}

// deliver hands body bytes to the stream's decoder, and END_STREAM with the last of them.
func (s *session) deliver(st *stream, p []byte) {
	end := s.data.end && s.data.left == 0
	st.remoteEnd = end
	n := int64(len(p))
	if n == 0 && !end {
		return
	}
	s.in.Borrow(p)
	st.dec.DecodeData(&s.in, end)
	s.in.Reset()
	if s.dead {
		return
	}
	switch {
	case st.closed:
		s.connConsumed += n
	case st.readDisabled > 0:
		st.withheld += n
	default:
		s.giveBack(st, n)
	}
	if end {
		s.maybeDone(st)
	}
}
