package h2

import (
	"slices"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/hpack"
	hstats "github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// headerBlock is the header block that is being received: one HEADERS frame and what CONTINUATION frames follow it. The compression
// state needs every block to be decoded to its end; when nobody wants the fields any more, st is nil.
type headerBlock struct {
	id       uint32
	st       *stream
	m        *http.HeaderMap
	rest     []byte // the start of a field that goes on in the next frame
	bytes    uint64 // on the wire
	frames   int
	cookies  int
	trailers bool
	end      bool // END_STREAM
	regular  bool // a field other than a pseudo header was seen
	host     bool // a host field was seen
}

// onHeaders begins a header block: a new request, a response, or trailers.
func (s *session) onHeaders(f *frameHeader, p []byte) {
	if f.id == 0 {
		s.fail(errStreamZero)
		return
	}
	p, ok := s.unpad(f, p)
	if !ok {
		return
	}
	if f.flags&flagPriority != 0 {
		if len(p) < 5 {
			s.fail(errPayloadSize)
			return
		}
		if be32(p)&0x7fffffff == f.id {
			s.fail(errPriorityDepends)
			return
		}
		p = p[5:]
	}
	if !s.guardEmpty(uint32(len(p)), f.flags&flagEndStream != 0) {
		return
	}
	b := &s.block
	*b = headerBlock{id: f.id, rest: b.rest, end: f.flags&flagEndStream != 0}
	s.dec.Begin()
	if !s.beginBlock(f.id) {
		return
	}
	s.fragment(f, p)
}

// unpad takes the padding off a HEADERS frame's payload.
func (s *session) unpad(f *frameHeader, p []byte) ([]byte, bool) {
	if f.flags&flagPadded == 0 {
		return p, true
	}
	if len(p) == 0 || int(p[0]) > len(p)-1 {
		s.fail(errHeadersPadding)
		return nil, false
	}
	return p[1 : len(p)-int(p[0])], true
}

// beginBlock finds or makes the stream of a header block. It returns false if the connection is broken.
func (s *session) beginBlock(id uint32) bool {
	b := &s.block
	st := s.streams.get(id)
	if st == nil && s.client == nil && id > s.lastPeer {
		return s.beginRequest(id)
	}
	if st == nil {
		// A stream that is gone, or was never there.
		if s.idle(id) {
			s.fail(errStreamID)
			return false
		}
		if slices.Contains(s.ended[:], id) {
			s.fail(errEnded)
			return false
		}
		s.fault()
		return s.err == nil
	}
	switch {
	case st.remoteEnd:
		s.streamError(st, errHalfClosed)
		return s.err == nil
	case st.headDone:
		if s.client == nil {
			s.inc(hstats.HTTP2Trailers)
		}
		st.trailers.Init(st.arena)
		b.st, b.m, b.trailers = st, &st.trailers, true
	default:
		b.st, b.m = st, st.h
	}
	return true
}

func (s *session) beginRequest(id uint32) bool {
	if id&1 == 0 {
		s.fail(errStreamID)
		return false
	}
	s.lastPeer = id
	if id > s.lastSent {
		// After GOAWAY: the client will send it again elsewhere.
		return true
	}
	if s.streams.n >= int(s.opts.MaxConcurrentStreams) {
		s.count(errRefused)
		s.writeReset(id, codeRefused)
		return true
	}
	st := s.pool.get()
	st.init(s)
	st.id = id
	s.streams.put(st)
	s.active(1)
	st.dec = nopDecoder{}
	d, h := s.server.NewStream((*serverStream)(st))
	if st.closed || s.dead {
		return !s.dead
	}
	st.dec, st.req, st.h, st.arena = d, d, h, h.Arena()
	s.block.st, s.block.m = st, h
	if s.blocked {
		st.connAbove = true
		st.raise()
	}
	return true
}

func (s *session) onContinuation(f *frameHeader, p []byte) {
	if s.state != stateBlock {
		s.fail(errNoHeaders)
		return
	}
	s.block.frames++
	if s.block.frames > maxContinuations {
		s.fail(errContinuations)
		return
	}
	if s.guardEmpty(f.length, false) {
		s.fragment(f, p)
	}
}

// fragment decodes what has arrived of a header block.
func (s *session) fragment(f *frameHeader, p []byte) {
	b := &s.block
	last := f.flags&flagEndHeaders != 0
	s.state = stateBlock
	if last {
		s.state = stateFrame
	}
	b.bytes += uint64(frameHeaderLen + f.length)
	carried := len(b.rest) > 0
	if carried {
		b.rest = append(b.rest, p...)
		p = b.rest
	}
	n, ok := s.decode(p)
	if !ok {
		return
	}
	if n < len(p) {
		if last {
			s.fail(errCompression)
			return
		}
		if b.rest == nil {
			b.rest = s.pool.getScratch()
		}
		b.rest = append(b.rest[:0], p[n:]...)
		return
	}
	if b.rest != nil {
		s.pool.putScratch(b.rest)
		b.rest = nil
	}
	if last {
		s.endBlock()
	}
}

// decode decodes the fields at the front of p and returns how far it came.
func (s *session) decode(p []byte) (n int, ok bool) {
	b := &s.block
	var f hpack.Field
	var arena *http.Arena
	if b.st != nil {
		arena = b.st.arena
	}
	for n < len(p) {
		k, err := s.dec.Next(p[n:], arena, &f)
		if err != nil {
			if err == hpack.ErrShort {
				return n, true
			}
			s.fail(errCompression)
			return n, false
		}
		n += k
		if b.st == nil || len(f.Name) == 0 && f.Bad == 0 {
			continue
		}
		if err := s.field(&f); err != nil {
			st := b.st
			b.st, arena = nil, nil
			if err == errTooMany || err == errTooLarge || err == errUnderscore {
				s.count(err)
				s.streamError(st, err)
			} else {
				s.invalid(st, err)
			}
			if s.err != nil || s.dead {
				return n, false
			}
		}
	}
	return n, true
}

// field checks one field and adds it to the map.
func (s *session) field(f *hpack.Field) *codec.Err {
	b := &s.block
	if f.Bad != 0 {
		if f.Bad&hpack.BadName != 0 {
			return errName
		}
		return errValue
	}
	m := b.m
	switch {
	case f.ID != http.None && f.ID <= http.Protocol:
		if b.regular {
			return errPseudoOrder
		}
		if b.trailers || m.Has(f.ID) || !s.pseudo(f.ID, f.Value) {
			return errPseudo
		}
	case f.Name[0] == ':':
		return errPseudo
	default:
		b.regular = true
		if special.Has(f.ID) {
			if err, drop := s.special(f); err != nil || drop {
				return err
			}
		}
		if f.ID == http.None && s.opts.Underscores != UnderscoresAllow && s.client == nil && hasUnderscore(f.Name) {
			if s.opts.Underscores == UnderscoresReject {
				return errUnderscore
			}
			s.inc(hstats.HTTP2DroppedHeadersWithUnderscores)
			return nil
		}
	}
	m.AddView(f.ID, f.Name, f.Value)
	if m.Size() > int(s.opts.MaxHeaderBytes) {
		return errTooLarge
	}
	if m.Len() > int(s.opts.MaxHeaders) {
		return errTooMany
	}
	return nil
}

func hasUnderscore(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == '_' {
			return true
		}
	}
	return false
}

// special are the regular fields that need more than a look at their characters.
var special = http.MakeSet(http.Connection, http.KeepAlive, http.ProxyConnection, http.TransferEncoding, http.Upgrade, http.TE,
	http.ContentLength, http.Host, http.Cookie)

// special checks a field of the set above. drop says that it is valid but goes no further.
func (s *session) special(f *hpack.Field) (err *codec.Err, drop bool) {
	b := &s.block
	switch f.ID {
	case http.Cookie:
		b.cookies++
	case http.TE:
		if !equalFold(f.Value, "trailers") {
			return errTE, false
		}
	case http.Host:
		if s.client != nil || b.trailers {
			return nil, false
		}
		if b.host || !validAuthority(f.Value) {
			return errValue, false
		}
		b.host = true
		if !b.m.Has(http.Authority) {
			// It takes the place of :authority, among the pseudo headers (RFC 9113, section 8.3.1).
			insertAuthority(b.m, f.Value)
		}
		return nil, true
	case http.ContentLength:
		if b.trailers {
			return nil, false
		}
		n, ok := parseLength(f.Value)
		if !ok || b.st.contentLength >= 0 {
			return errContentLength, false
		}
		b.st.contentLength = n
	default:
		return errConnHeader, false
	}
	return nil, false
}

// insertAuthority adds :authority after the pseudo headers.
func insertAuthority(m *http.HeaderMap, value string) {
	m.AddView(http.Authority, http.Authority.Name(), value)
	list := m.All()
	for i := len(list) - 1; i > 0 && (list[i-1].ID == http.None || list[i-1].ID > http.Protocol); i-- {
		list[i], list[i-1] = list[i-1], list[i]
	}
}

func parseLength(v string) (n int64, ok bool) {
	if len(v) == 0 || len(v) > 18 {
		return 0, false
	}
	for i := 0; i < len(v); i++ {
		if v[i] < '0' || v[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(v[i]-'0')
	}
	return n, true
}

func equalFold(s, lower string) bool {
	if len(s) != len(lower) {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] != lower[i] && (s[i]|0x20 != lower[i] || s[i] < 'A' || s[i] > 'Z') {
			return false
		}
	}
	return true
}

// endBlock acts on a complete header block.
func (s *session) endBlock() {
	b := &s.block
	st := b.st
	if st == nil || st.closed {
		return
	}
	b.st = nil
	st.bytes.Received += b.bytes
	if b.trailers {
		st.bytes.HeaderReceived += b.bytes
		s.endTrailers(st)
		return
	}
	if b.cookies > 1 {
		joinCookies(b.m)
	}
	if s.client == nil {
		s.endRequest(st)
	} else {
		s.endResponse(st)
	}
}

func (s *session) endTrailers(st *stream) {
	b := &s.block
	switch {
	case !b.end:
		s.invalid(st, errTrailers)
		return
	case st.contentLength >= 0 && st.received != st.contentLength:
		s.invalid(st, errLengthMismatch)
		return
	}
	st.remoteEnd = true
	st.dec.DecodeTrailers(&st.trailers)
	s.maybeDone(st)
}

func (s *session) endRequest(st *stream) {
	m, end := st.h, s.block.end
	if err := s.checkRequest(st, m, end); err != nil {
		s.invalid(st, err)
		return
	}
	st.bytes.HeaderReceived += s.block.bytes
	st.headDone = true
	st.remoteEnd = end
	if m.Has(http.Protocol) {
		upgradeFromH2(st, m)
	}
	st.dec.DecodeHeaders(m, end)
	s.maybeDone(st)
}

func (s *session) endResponse(st *stream) {
	m, end := st.h, s.block.end
	if err := s.checkResponse(st, m, end); err != nil {
		s.invalid(st, err)
		return
	}
	st.bytes.HeaderReceived += s.block.bytes
	if st.h.Get(http.Status)[0] == '1' {
		st.informational++
		st.contentLength = -1
		if st.res != nil {
			st.res.Decode1xx(m)
		}
		if !st.closed {
			m.Init(st.arena)
		}
		return
	}
	st.headDone = true
	st.remoteEnd = end
	if st.upgrade != "" {
		upgradeResponseFromH2(st, m)
	}
	st.dec.DecodeHeaders(m, end)
	s.maybeDone(st)
}

// joinCookies makes one field of several (RFC 9113, section 8.2.3). It goes to the end.
func joinCookies(m *http.HeaderMap) {
	n := 0
	for i := range m.All() {
		if h := &m.All()[i]; h.ID == http.Cookie {
			n += len(h.Value) + 2
		}
	}
	b := m.Arena().Room(n)
	for i := range m.All() {
		if h := &m.All()[i]; h.ID == http.Cookie {
			if len(b) > 0 {
				b = append(b, "; "...)
			}
			b = append(b, h.Value...)
		}
	}
	v := m.Arena().Take(b)
	m.Remove(http.Cookie)
	m.AddConst(http.Cookie, v)
}
