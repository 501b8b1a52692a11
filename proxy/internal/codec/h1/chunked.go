package h1

import (
	"bytes"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

// chunkState is where the reading of a chunked body stands (RFC 9112, section 7.1).
type chunkState uint8

const (
	chunkSize    chunkState = iota // before the first digit
	chunkDigits                    // within the size
	chunkExt                       // between the size and CR
	chunkLF                        // after CR
	chunkData                      // within the data
	chunkEnd                       // between the data and LF
	chunkTrailer                   // after the last chunk
)

// dechunk consumes a chunked body and its trailers. The data is collected, see take; trailers are put into m.trailers.
//
// As Envoy, it is lenient where no other parser can be fooled about the data: extensions may hold anything but a bare CR or LF,
// and what follows the data up to its LF is read over, unless StrictChunks is set.
func (m *message) dechunk(p *Pool, o *Options, b []byte, max int) (n int, done bool, err *codec.Err) {
	for n < len(b) {
		c := b[n]
		switch m.chunk {
		case chunkSize, chunkDigits, chunkExt:
			if m.line++; m.line > MaxChunkLineBytes {
				return n, false, ErrChunkExtension
			}
			if err := m.sizeByte(c); err != nil {
				return n, false, err
			}
			n++
		case chunkLF:
			if c != '\n' {
				return n, false, ErrChunkExtension
			}
			n++
			m.line = 0
			if m.chunk = chunkData; m.left == 0 {
				m.chunk, m.term = chunkTrailer, '\n'
			}
		case chunkData:
			k := len(b) - n
			if uint64(k) >= m.left {
				k = int(m.left)
				m.chunk = chunkEnd
			}
			m.left -= uint64(k)
			m.take(b[n : n+k])
			n += k
		case chunkEnd:
			k, err := m.endOfData(o, b[n:])
			n += k
			if err != nil {
				return n, false, err
			}
		case chunkTrailer:
			k, done, err := m.trailer(p, o, b[n:], max)
			return n + k, done, err
		}
	}
	return n, false, nil
}

// sizeByte reads a byte of the size line before its LF.
func (m *message) sizeByte(c byte) *codec.Err {
	if m.chunk == chunkExt {
		switch c {
		case '\r':
			m.chunk = chunkLF
		case '\n':
			return ErrChunkExtension
		}
		return nil
	}
	if d := hexDigit(c); d >= 0 {
		if m.left>>60 != 0 {
			return ErrChunkSize
		}
		m.left = m.left<<4 | uint64(d)
		m.chunk = chunkDigits
		return nil
	}
	if m.chunk == chunkSize {
		return ErrChunkSize
	}
	switch c {
	case '\r':
		m.chunk = chunkLF
	case ';', ' ', '\t':
		m.chunk = chunkExt
	case '\n':
		m.chunk = chunkExt
		return ErrChunkExtension
	default:
		return ErrChunkSize
	}
	return nil
}

// endOfData reads the line end after a chunk's data.
func (m *message) endOfData(o *Options, b []byte) (n int, err *codec.Err) {
	if !o.StrictChunks {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			n, m.line = len(b), m.line+len(b)
		} else {
			n, m.line = i+1, m.line+i
		}
		if m.line > MaxChunkLineBytes {
			return 0, ErrChunkEnd
		}
		if i >= 0 {
			m.line, m.chunk = 0, chunkSize
		}
		return n, nil
	}
	switch {
	case b[0] == '\r' && m.line == 0:
		m.line = 1
	case b[0] == '\n' && m.line == 1:
		m.line, m.chunk = 0, chunkSize
	default:
		return 0, ErrChunkEnd
	}
	return 1, nil
}

// whole tells whether the last chunk was seen: what is wrong then is no longer the body's fault.
func (m *message) whole() bool {
	return m.phase == phaseChunked && (m.chunk == chunkTrailer || m.left == 0 && (m.chunk == chunkExt || m.chunk == chunkLF))
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// trailerInline are the trailers that are held once.
var trailerInline = http.MakeSet(http.GRPCStatus, http.GRPCMessage)

// trailer reads what follows the last chunk up to the empty line.
func (m *message) trailer(p *Pool, o *Options, b []byte, max int) (n int, done bool, err *codec.Err) {
	if len(m.part) == 0 && len(b) >= 2 && b[0] == '\r' && b[1] == '\n' {
		return 2, true, nil
	}
	skipped, done := m.lineEnds(b)
	if done || skipped == len(b) {
		return skipped, done, nil
	}
	raw, n, err := m.gather(p, b[skipped:], max, true, ErrTrailerTooLarge)
	n += skipped
	if raw == nil {
		return n, false, err
	}
	if len(p.lines) == 0 {
		return n, true, nil
	}
	if controls(raw) {
		return n, false, ErrFieldValue
	}
	trailers := m.newTrailers()
	buf := m.h.Arena().Bytes(len(raw))
	copy(buf, raw)
	rules := fieldRules{merge: &trailerInline, tooMany: ErrTooManyTrailers}
	if o.EnableTrailers {
		rules.max, rules.action = o.maxHeaders(), m.action
	}
	err = o.fields(trailers, buf, p.lines, &rules)
	if m.dropped = rules.dropped; err != nil {
		return n, false, err
	}
	if rules.late != nil {
		return n, false, rules.late
	}
	if !o.EnableTrailers {
		m.trailers.Init(m.h.Arena())
	} else {
		m.bytes.HeaderReceived += fieldBytes(len(raw), len(p.lines))
	}
	return n, true, nil
}

// lineEnds reads over what of line ends is behind the last chunk. As for Envoy's parser an empty line ends the message, and CRs that end no
// line are nothing.
func (m *message) lineEnds(b []byte) (n int, done bool) {
	if m.term == 0 {
		return 0, false // a trailer has begun
	}
	for ; n < len(b); n++ {
		if b[n] != '\r' && b[n] != '\n' {
			m.term = 0
			return n, false
		}
		m.term = m.term<<8 | uint32(b[n])
		if m.term&0xffff == '\n'<<8|'\n' || m.term&0xffffff == '\n'<<16|'\r'<<8|'\n' {
			return n + 1, true
		}
	}
	return n, false
}
