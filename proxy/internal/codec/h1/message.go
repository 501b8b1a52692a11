package h1

import (
	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
)

// phase is where the reading of a message stands.
type phase uint8

const (
	phaseHead     phase = iota
	phaseLength         // body of known length
	phaseChunked        // chunked body and trailers
	phaseUntilEOF       // body that ends with the connection
	phaseTunnel         // bytes after an upgrade or CONNECT
	phaseDone
)

// message is what reading a request and reading a response have in common. owner: worker.
type message struct {
	h        *http.HeaderMap // the head, owned by the user
	part     []byte          // a head or trailers that have come in part
	run      []byte          // the first run of body bytes of this pass, borrowed
	data     buffer.Buffer
	trailers *http.HeaderMap // made by the first message that has some
	messageState
}

// messageState is what is plain about a message, and zero at its start.
type messageState struct {
	bytes       codec.Bytes
	left        uint64 // bytes to come of the body or of the chunk
	chunk       chunkState
	phase       phase
	looked      bool        // the start line of a partial head was checked
	lastChunked bool        // see fieldRules
	action      Underscores // for trailers
	scanned     int         // how much of head has been searched for its end
	line        int         // bytes of the chunk-size line
	term        uint32      // the last line ends behind the last chunk, 0 when something else has come
	dropped     int         // fields that the last header block lost, see Counter
}

// reset gives back what the message holds of pooled memory and makes it ready for the next.
func (m *message) reset() {
	m.drop()
	if m.trailers != nil {
		m.trailers.Release()
	}
	m.h = nil
	m.messageState = messageState{}
	if cap(m.part) > keptHead {
		m.part = nil
	}
	m.part = m.part[:0]
}

// newTrailers returns an empty map for trailers.
func (m *message) newTrailers() *http.HeaderMap {
	if m.trailers == nil {
		m.trailers = &http.HeaderMap{}
	}
	m.trailers.Init(m.h.Arena())
	return m.trailers
}

func (m *message) hasTrailers() bool { return m.trailers != nil && m.trailers.Len() > 0 }

// keptHead is how much memory for partial heads a pooled message keeps.
const keptHead = 4 << 10

// take collects body bytes of this pass. The first run is borrowed, as most passes have only one.
func (m *message) take(b []byte) {
	switch {
	case len(b) == 0:
	case m.run == nil && m.data.Len() == 0:
		m.run = b
	default:
		m.own()
		m.data.Append(b)
	}
}

func (m *message) own() {
	if m.run != nil {
		m.data.Append(m.run)
		m.run = nil
	}
}

// taken returns the body bytes of this pass as one buffer.
func (m *message) taken() *buffer.Buffer {
	if m.run != nil {
		m.data.Borrow(m.run)
		m.run = nil
	}
	return &m.data
}

func (m *message) pending() bool { return m.run != nil || m.data.Len() > 0 }

// body consumes bytes of the body. done: it is complete, and so are the trailers.
func (m *message) body(p *Pool, o *Options, b []byte, max int) (n int, done bool, err *codec.Err) {
	switch m.phase {
	case phaseLength:
		n = len(b)
		if uint64(n) >= m.left {
			n, done = int(m.left), true
		}
		m.left -= uint64(n)
		m.take(b[:n])
	case phaseChunked:
		n, done, err = m.dechunk(p, o, b, max)
	default:
		n = len(b)
		m.take(b)
	}
	m.bytes.Received += uint64(n)
	return n, done, err
}
