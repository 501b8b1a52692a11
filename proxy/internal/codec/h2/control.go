package h2

import (
	"encoding/binary"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	hstats "github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// onSettings takes the peer's parameters over and acknowledges them.
func (s *session) onSettings(f *frameHeader, p []byte) {
	switch {
	case f.id != 0:
		s.fail(errNotStreamZero)
		return
	case f.flags&flagAck != 0:
		s.onSettingsAck(p)
		return
	case len(p)%6 != 0:
		s.fail(errPayloadSize)
		return
	case len(p) > 6*maxSettings:
		s.fail(errSettingsCount)
		return
	}
	first := !s.gotSettings
	if s.state == stateSettings {
		s.state = stateFrame
	}
	streams := s.maxStreams()
	if first {
		s.peerStreams = 1<<31 - 1
	}
	window := uint32(s.peerWindow)
	for ; len(p) > 0; p = p[6:] {
		if err := s.setting(binary.BigEndian.Uint16(p), be32(p[2:]), &window); err != nil {
			s.fail(err)
			return
		}
	}
	if int64(window) != s.peerWindow {
		if err := s.setPeerWindow(window); err != nil {
			s.fail(err)
			return
		}
	}
	s.gotSettings = true
	s.start()
	s.writeSettingsAck()
	s.pump()
	if n := s.maxStreams(); s.client != nil && n != streams && s.err == nil {
		s.client.OnMaxStreams(n)
	}
}

func (s *session) onSettingsAck(p []byte) {
	switch {
	case len(p) != 0:
		s.fail(errPayloadSize)
	case s.inFlight == 0:
		s.fail(errSettingsAck)
	default:
		s.inFlight--
		s.dec.SetLimit(int(s.opts.HpackTableSize))
	}
}

// setting takes one parameter over. The window is left to the caller, so that a frame that names it often walks the streams once.
func (s *session) setting(id uint16, v uint32, window *uint32) *codec.Err {
	switch id {
	case settingTableSize:
		s.enc.SetLimit(int(min(v, 1<<30)))
	case settingPush:
		// A server must not enable what only a client may want (RFC 9113, section 6.5.2).
		if v > 1 || v == 1 && s.client != nil {
			return errSettingValue
		}
	case settingMaxStreams:
		s.peerStreams = min(v, 1<<31-1)
	case settingWindow:
		if v > 1<<31-1 {
			return errSettingWindow
		}
		*window = v
	case settingMaxFrame:
		if v < maxFrameSize || v > 1<<24-1 {
			return errSettingValue
		}
		s.peerFrame = maxFrameSize
	case settingConnectAllowed:
		if v > 1 || v == 0 && s.peerConnect && s.client != nil {
			return errSettingValue
		}
		s.peerConnect = v == 1
	}
	return nil
}

// setPeerWindow changes the windows of all streams by the difference (RFC 9113, section 6.9.2). They may become negative.
func (s *session) setPeerWindow(v uint32) *codec.Err {
	diff := int64(v) - s.peerWindow
	s.peerWindow = int64(v)
	for _, st := range s.streams.slots {
		if st == nil {
			continue
		}
		st.sendWindow += diff
		if st.sendWindow > 1<<31-1 {
			return errSettingWindow
		}
		if st.ready() {
			s.link(st)
		} else {
			s.unlink(st)
		}
	}
	for _, st := range s.fresh {
		st.sendWindow = s.peerWindow
	}
	return nil
}

func (s *session) onWindowUpdate(f *frameHeader, p []byte) {
	if len(p) != 4 {
		s.fail(errPayloadSize)
		return
	}
	if !s.guardUpdate() {
		return
	}
	n := int64(be32(p) & 0x7fffffff)
	if f.id == 0 {
		switch s.connSend += n; {
		case n == 0:
			s.fail(errConnIncrement)
		case s.connSend > 1<<31-1:
			s.fail(errConnOverflow)
		default:
			s.pump()
		}
		return
	}
	st := s.streams.get(f.id)
	if st == nil {
		if s.idle(f.id) {
			s.fail(errIdle)
		}
		return
	}
	switch st.sendWindow += n; {
	case n == 0:
		s.streamError(st, errStreamIncrement)
	case st.sendWindow > 1<<31-1:
		s.streamError(st, errStreamOverflow)
	default:
		s.link(st)
		s.pump()
	}
}

func (s *session) onReset(f *frameHeader, p []byte) {
	switch {
	case f.id == 0:
		s.fail(errStreamZero)
		return
	case len(p) != 4:
		s.fail(errPayloadSize)
		return
	}
	st := s.streams.get(f.id)
	if st == nil {
		if s.idle(f.id) {
			s.fail(errIdle)
		} else {
			s.fault()
		}
		return
	}
	s.inc(hstats.HTTP2RxReset)
	st.bytes.Received += uint64(frameHeaderLen + 4)
	reason, details := resetReason(be32(p))
	if details == "" && !st.remoteEnd {
		details = detailsReset // it has asked for nothing that it could have enough of
	}
	st.remoteEnd = true
	s.finish(st, reason, details)
}

func (s *session) onPing(f *frameHeader, p []byte) {
	switch {
	case f.id != 0:
		s.fail(errNotStreamZero)
	case len(p) != 8:
		s.fail(errPayloadSize)
	case f.flags&flagAck == 0:
		s.writePing(flagAck, p)
	case s.onPong != nil:
		s.onPong(binary.BigEndian.Uint64(p))
	}
}

func (s *session) onGoAway(f *frameHeader, p []byte) {
	switch {
	case f.id != 0:
		s.fail(errNotStreamZero)
		return
	case len(p) < 8:
		s.fail(errPayloadSize)
		return
	}
	last := be32(p) & 0x7fffffff
	again := s.peerGoAway
	s.peerGoAway = true
	if s.client == nil {
		if !again {
			s.server.OnGoAway()
		}
		return
	}
	if !again {
		s.client.OnGoAway()
	}
	// The peer has not seen these: they may be sent again elsewhere.
	s.resetAbove(last, http.ResetRemoteRefused, detailsRefused)
}

// onPriority ignores the frame, as RFC 9113 allows, but counts it.
func (s *session) onPriority(f *frameHeader, p []byte) {
	switch {
	case f.id == 0:
		s.fail(errStreamZero)
	case len(p) != 5:
		s.fail(errPayloadSize)
	default:
		s.guardPriority()
	}
}

// goAway begins a graceful shutdown. After the first, which names the largest id there is, new streams are still taken; after the
// second only those that were seen.
func (s *session) goAway(notice bool) {
	if s.dead || s.err != nil {
		return
	}
	last := s.lastPeer
	if notice {
		last = 1<<31 - 1
	}
	if s.sentGoAway && last >= s.lastSent {
		return
	}
	s.sentGoAway = true
	s.lastSent = last
	if !notice {
		s.inc(hstats.HTTP2GoawaySent)
	}
	s.writeGoAway(last, codeNo, "")
}

// sendPing sends a PING; the answer comes by OnPong.
func (s *session) sendPing(data uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], data)
	s.writePing(0, b[:])
}

// maxStreams is how many streams a client may have open.
func (s *session) maxStreams() int {
	if s.peerGoAway || s.err != nil || s.nextID > 1<<31-1 {
		return 0
	}
	return int(min(s.peerStreams, s.opts.MaxConcurrentStreams))
}
