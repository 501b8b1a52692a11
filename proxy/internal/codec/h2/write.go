package h2

import (
	"slices"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/hpack"
	hstats "github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// maxPart bounds the DATA frames that are handed over together: two runs of bytes each, and the connection sends 16 at a time.
const maxPart = 7

// copyLimit is up to which size a body is copied behind its frame header; larger ones are handed over as they are.
const copyLimit = 2048

// start sends our preface, before anything else.
func (s *session) start() {
	if s.started {
		return
	}
	s.started = true
	o := s.opts
	settings := make([]Setting, 0, 8)
	if s.client != nil {
		settings = append(settings, Setting{settingPush, 0})
	}
	connect := uint32(0)
	if o.AllowConnect {
		connect = 1
	}
	settings = append(settings, o.CustomSettings...)
	for _, p := range [...]Setting{{settingTableSize, o.HpackTableSize}, {settingConnectAllowed, connect},
		{settingMaxStreams, o.MaxConcurrentStreams}, {settingWindow, o.InitialStreamWindow}} {
		if !slices.ContainsFunc(o.CustomSettings, func(c Setting) bool { return c.ID == p.ID }) {
			settings = append(settings, p)
		}
	}
	out := s.out.Out()
	b := out.Reserve(len(preface) + 2*frameHeaderLen + 6*len(settings) + 4)
	if s.client != nil {
		b = append(b, preface...)
	}
	b = appendFrame(b, 6*len(settings), frameSettings, 0, 0)
	for _, p := range settings {
		b = append32(append(b, byte(p.ID>>8), byte(p.ID)), p.Value)
	}
	if n := o.InitialConnWindow; n > 65535 {
		b = append32(appendFrame(b, 4, frameWindowUpdate, 0, 0), n-65535)
		s.sentFrames(1)
	}
	out.Commit(b)
	s.inFlight++
	s.sentControl(len(b))
}

// writeHead sends a head or trailers of st.
func (s *session) writeHead(st *stream, h *http.HeaderMap, fix *headFix, end bool) {
	s.start()
	flags := uint8(flagEndHeaders)
	if end {
		flags |= flagEndStream
	}
	bound := hpack.BlockMax + h.Size() + (h.Len()+1)*hpack.FieldMax + fix.size()
	if bound > s.peerFrame {
		s.writeLongHead(st, h, fix, flags, bound)
		return
	}
	out := s.out.Out()
	b := out.Reserve(frameHeaderLen + bound)
	b = s.appendHead(b[:frameHeaderLen], h, fix)
	appendFrame(b[:0], len(b)-frameHeaderLen, frameHeaders, flags, st.id)
	out.Commit(b)
	s.sentFrames(len(b))
	st.bytes.HeaderSent += uint64(len(b))
	st.bytes.Sent += uint64(len(b))
}

// writeLongHead sends a block that may not fit into one frame.
func (s *session) writeLongHead(st *stream, h *http.HeaderMap, fix *headFix, flags uint8, bound int) {
	b := s.pool.getScratch()
	if cap(b) < bound {
		b = make([]byte, 0, bound)
	}
	b = s.appendHead(b, h, fix)
	st.bytes.HeaderSent += s.writeBlock(st, b, flags)
	s.pool.putScratch(b)
}

// writeBlock sends an encoded block in as many frames as it takes. flags are those of HEADERS; END_HEADERS moves to the last frame.
func (s *session) writeBlock(st *stream, b []byte, flags uint8) (wire uint64) {
	typ := uint8(frameHeaders)
	flags &^= flagEndHeaders
	out := s.out.Out()
	for {
		n := min(len(b), s.peerFrame)
		if n == len(b) {
			flags |= flagEndHeaders
		}
		out.Commit(appendFrame(out.Reserve(frameHeaderLen), n, typ, flags, st.id))
		out.Append(b[:n])
		s.sentFrames(n + frameHeaderLen)
		wire += uint64(n + frameHeaderLen)
		b = b[n:]
		if len(b) == 0 {
			st.bytes.Sent += wire
			return wire
		}
		typ, flags = frameContinuation, 0
	}
}

// writeData sends one DATA frame with the first n bytes of data. A small one is copied behind its header. Large ones gather in s.part,
// headers and bodies in turn, and go out together by flushPart: it must be called before anything else is written for the stream.
func (s *session) writeData(st *stream, data *buffer.Buffer, n int, end bool) {
	flags := uint8(0)
	if end {
		flags = flagEndStream
		st.localEndSent = true
	}
	st.bytes.Sent += uint64(frameHeaderLen + n)
	st.sendWindow -= int64(n)
	s.connSend -= int64(n)
	s.sentData(frameHeaderLen + n)
	if n <= copyLimit && s.part.Len() == 0 {
		out := s.out.Out()
		b := appendFrame(out.Reserve(frameHeaderLen+n), n, frameData, flags, st.id)
		for left := n; left > 0; {
			f := data.Front()
			f = f[:min(left, len(f))]
			b = append(b, f...)
			left -= len(f)
			data.Drain(len(f))
		}
		out.Commit(b)
		return
	}
	p := &s.part
	p.Commit(appendFrame(p.Reserve(frameHeaderLen), n, frameData, flags, st.id))
	s.partFrames++
	if !data.Borrowed() {
		p.MoveN(data, n)
		return
	}
	// Views of borrowed memory: moving would copy.
	for n > 0 {
		f := data.Front()
		f = f[:min(n, len(f))]
		p.Borrow(f)
		data.Drain(len(f))
		n -= len(f)
	}
}

// flushPart hands the gathered DATA frames over.
func (s *session) flushPart() {
	if s.partFrames > 0 {
		s.partFrames = 0
		s.out.WriteData(&s.part)
		s.part.Reset()
	}
}

func (s *session) writeReset(id, code uint32) {
	s.start()
	out := s.out.Out()
	out.Commit(append32(appendFrame(out.Reserve(frameHeaderLen+4), 4, frameReset, 0, id), code))
	s.inc(hstats.HTTP2TxReset)
	s.sentControl(frameHeaderLen + 4)
}

func (s *session) writeWindowUpdate(id uint32, n int64) {
	out := s.out.Out()
	out.Commit(append32(appendFrame(out.Reserve(frameHeaderLen+4), 4, frameWindowUpdate, 0, id), uint32(n)))
	s.sentFrames(frameHeaderLen + 4)
}

func (s *session) writePing(flags uint8, data []byte) {
	s.start()
	out := s.out.Out()
	out.Commit(append(appendFrame(out.Reserve(frameHeaderLen+8), 8, framePing, flags, 0), data...))
	s.sentControl(frameHeaderLen + 8)
}

func (s *session) writeSettingsAck() {
	out := s.out.Out()
	out.Commit(appendFrame(out.Reserve(frameHeaderLen), 0, frameSettings, flagAck, 0))
	s.sentControl(frameHeaderLen)
}

func (s *session) writeGoAway(last, code uint32, debug string) {
	s.start()
	out := s.out.Out()
	b := appendFrame(out.Reserve(frameHeaderLen+8+len(debug)), 8+len(debug), frameGoAway, 0, 0)
	out.Commit(append(append32(append32(b, last), code), debug...))
	s.sentFrames(frameHeaderLen + 8 + len(debug))
}

// headFix says how a head differs on the wire from its map.
type headFix struct {
	method   string
	status   string
	protocol string
	connect  bool // leave :scheme and :path out
	noLength bool
}

func (f *headFix) size() int {
	if f == nil {
		return 0
	}
	return len(f.method) + len(f.status) + len(f.protocol) + len(":protocol")
}

// unsent are fields that HTTP/2 does not have (RFC 9113, section 8.2.2).
var unsent = http.MakeSet(http.Connection, http.KeepAlive, http.ProxyConnection, http.TransferEncoding, http.Upgrade, http.Host)

// appendHead encodes all fields of h, pseudo headers first.
func (s *session) appendHead(b []byte, h *http.HeaderMap, fix *headFix) []byte {
	b = s.enc.Begin(b)
	list := h.All()
	first := 0
	for first < len(list) && isPseudo(list[first].ID) {
		first++
	}
	b = s.appendPseudo(b, list[:first], fix)
	for i := first; i < len(list); i++ {
		if isPseudo(list[i].ID) {
			// A filter has added one behind the regular fields.
			b = s.appendPseudo(b, list[i:i+1], fix)
		}
	}
	if fix != nil && fix.protocol != "" {
		b = s.enc.Append(b, http.Protocol, http.Protocol.Name(), fix.protocol)
	}
	for i := first; i < len(list); i++ {
		f := &list[i]
		if isPseudo(f.ID) || unsent.Has(f.ID) || f.ID == http.TE && !equalFold(f.Value, "trailers") ||
			fix != nil && fix.noLength && f.ID == http.ContentLength {
			continue
		}
		b = s.enc.Append(b, f.ID, f.Name, f.Value)
	}
	return b
}

func isPseudo(id http.ID) bool { return id-1 < http.Protocol }

func (s *session) appendPseudo(b []byte, list []http.Header, fix *headFix) []byte {
	for i := range list {
		f := &list[i]
		v := f.Value
		if fix != nil {
			switch {
			case f.ID == http.Method && fix.method != "":
				v = fix.method
			case f.ID == http.Status && fix.status != "":
				v = fix.status
			case fix.connect && (f.ID == http.Scheme || f.ID == http.Path || f.ID == http.Protocol):
				continue
			}
		}
		b = s.enc.Append(b, f.ID, f.Name, v)
	}
	return b
}

// appendTrailers encodes trailers without use of the compression state: they may have to wait behind a body while other blocks go
// first.
func appendTrailers(b []byte, h *http.HeaderMap) []byte {
	for i := range h.All() {
		f := &h.All()[i]
		if !isPseudo(f.ID) && !unsent.Has(f.ID) {
			b = hpack.AppendStateless(b, f.ID, f.Name, f.Value)
		}
	}
	return b
}
