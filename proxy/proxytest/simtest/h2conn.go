package simtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
)

// h2Conn is one side of an HTTP/2 connection: frames by golang.org/x/net/http2, whose reader is strict, and flow control that is
// checked, so that a proxy that sends more than it was allowed is caught.
type h2Conn struct {
	g    *game
	rnd  *rand.Source
	conn *sim.Conn
	side h2Side
	// server: the far end begins with the preface, and opens the streams.
	server   bool
	prefaced bool

	in   []byte // not a whole frame yet
	read bytes.Buffer
	out  bytes.Buffer
	fr   *http2.Framer
	enc  *hpack.Encoder
	head bytes.Buffer

	streams map[uint32]*h2Stream // looked up only
	last    uint32               // the highest that the far end has opened
	order   []*h2Stream          // open, by age

	window     int // what we may send on the connection
	initial    int // what we may send on a new stream
	frame      int // the largest frame that we may send
	most       int // streams that we may open
	grant      int // what the far end may still send on the connection
	credit     credit
	ourInitial int
	ourMost    int // streams that the far end may open
	acked      bool
	goingAway  bool // the far end takes no more streams
	broken     bool
}

// h2Side is told of what comes.
type h2Side interface {
	onHeaders(s *h2Stream, f *http2.MetaHeadersFrame) error
	onData(s *h2Stream, b []byte) error
	// onEnd: the far end has ended the stream.
	onEnd(s *h2Stream) error
	// onReset: the far end has reset the stream, or refuses it.
	onReset(s *h2Stream, code http2.ErrCode)
	// onRoom: streams may be opened.
	onRoom()
}

// h2Stream is one stream.
type h2Stream struct {
	id      uint32
	r       *request
	window  int // what we may send
	grant   int // what the far end may still send
	credit  credit
	out     []byte
	outEnd  bool
	trail   string // the trailer behind what we send
	came    [][2]string
	outDone bool // our side is ended
	inDone  bool // theirs is
	gone    bool
	got     body
	n       int
	length  int // content-length, -1: none
	headed  bool
	own     bool // the answer is the proxy's own
	status  int  // of that
	begun   bool // the answer has begun
}

// Defaults of HTTP/2 (RFC 9113, sections 6.5.2 and 6.9.2).
const (
	h2Window = 65535
	h2Frame  = 16384
)

func newH2Conn(g *game, rnd *rand.Source, c *sim.Conn, side h2Side, server bool) *h2Conn {
	h := &h2Conn{
		g: g, rnd: rnd, conn: c, side: side, server: server, streams: map[uint32]*h2Stream{},
		window: h2Window, initial: h2Window, frame: h2Frame, most: 100, grant: h2Window,
		ourInitial: []int{1000, h2Frame, h2Window, 1 << 20}[rnd.IntN(4)], ourMost: []int{1, 3, 100}[rnd.IntN(3)],
	}
	h.fr = http2.NewFramer(&h.out, &h.read)
	h.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	h.enc = hpack.NewEncoder(&h.head)
	if !server {
		h.out.WriteString(http2.ClientPreface)
	}
	settings := []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: uint32(h.ourInitial)}}
	if server {
		settings = append(settings, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(h.ourMost)})
	} else {
		settings = append(settings, http2.Setting{ID: http2.SettingEnablePush, Val: 0})
	}
	_ = h.fr.WriteSettings(settings...)
	h.flush()
	return h
}

func (h *h2Conn) flush() {
	if h.out.Len() > 0 {
		h.conn.Write(h.out.Bytes())
		h.out.Reset()
	}
}

// feed reads what came. An error says that the proxy broke the protocol.
func (h *h2Conn) feed(b []byte) error {
	if h.broken {
		return nil
	}
	h.in = append(h.in, b...)
	if h.server && !h.prefaced {
		k := min(len(h.in), len(http2.ClientPreface))
		if string(h.in[:k]) != http2.ClientPreface[:k] {
			return fmt.Errorf("a preface %q", h.in[:k])
		}
		if k < len(http2.ClientPreface) {
			return nil
		}
		h.in, h.prefaced = h.in[k:], true
	}
	for !h.conn.IsClosed() && !h.broken {
		n := h.whole()
		if n == 0 {
			break
		}
		h.read.Write(h.in[:n])
		h.in = h.in[n:]
		f, err := h.fr.ReadFrame()
		if err != nil {
			return fmt.Errorf("a bad frame: %w (%v)", err, h.fr.ErrorDetail())
		}
		if err := h.on(f); err != nil {
			return err
		}
	}
	h.flush()
	return nil
}

// whole returns the length of the first frame, with the continuations of a head; 0 if it has not arrived.
func (h *h2Conn) whole() int {
	n := 0
	for {
		if len(h.in) < n+9 {
			return 0
		}
		length := int(binary.BigEndian.Uint32(h.in[n:]) >> 8)
		kind, flags := http2.FrameType(h.in[n+3]), http2.Flags(h.in[n+4])
		if n += 9 + length; len(h.in) < n {
			return 0
		}
		heads := kind == http2.FrameHeaders || kind == http2.FrameContinuation
		if !heads || flags.Has(http2.FlagHeadersEndHeaders) {
			return n
		}
	}
}

func (h *h2Conn) on(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.SettingsFrame:
		return h.onSettings(f)
	case *http2.PingFrame:
		if !f.IsAck() {
			_ = h.fr.WritePing(true, f.Data)
		}
	case *http2.WindowUpdateFrame:
		h.onWindow(f.StreamID, int(f.Increment))
	case *http2.GoAwayFrame:
		h.goingAway = true
		for _, s := range append([]*h2Stream(nil), h.order...) {
			if !h.server && s.id > f.LastStreamID {
				h.drop(s)
				h.side.onReset(s, http2.ErrCodeRefusedStream)
			}
		}
		h.side.onRoom()
	case *http2.RSTStreamFrame:
		if s := h.streams[f.StreamID]; s != nil {
			h.drop(s)
			h.side.onReset(s, f.ErrCode)
		}
	case *http2.MetaHeadersFrame:
		return h.onHead(f)
	case *http2.DataFrame:
		return h.onData(f)
	case *http2.PushPromiseFrame:
		return fmt.Errorf("a push")
	}
	return nil
}

func (h *h2Conn) onSettings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		h.acked = true
		for _, s := range h.order {
			s.grant += h.ourInitial - h2Window
		}
		return nil
	}
	err := f.ForeachSetting(func(s http2.Setting) error {
		switch s.ID {
		case http2.SettingInitialWindowSize:
			d := int(s.Val) - h.initial
			h.initial += d
			for _, x := range h.order {
				x.window += d
			}
		case http2.SettingMaxFrameSize:
			h.frame = int(s.Val)
		case http2.SettingMaxConcurrentStreams:
			h.most = int(s.Val)
		case http2.SettingHeaderTableSize:
			h.enc.SetMaxDynamicTableSizeLimit(s.Val)
		}
		return s.Valid()
	})
	_ = h.fr.WriteSettingsAck()
	h.pump()
	h.side.onRoom()
	return err
}

func (h *h2Conn) onWindow(id uint32, n int) {
	if id == 0 {
		h.window += n
	} else if s := h.streams[id]; s != nil {
		s.window += n
	}
	h.pump()
}

func (h *h2Conn) onHead(f *http2.MetaHeadersFrame) error {
	s := h.streams[f.StreamID]
	if s == nil && h.server && f.StreamID > h.last {
		h.last = f.StreamID
		if h.acked && len(h.order) >= h.ourMost {
			return fmt.Errorf("stream %d is one more than the %d that are allowed", f.StreamID, h.ourMost)
		}
		s = h.open(f.StreamID)
	}
	if s == nil {
		return nil // of one that we have reset
	}
	if s.inDone {
		return fmt.Errorf("a head on stream %d after its end", s.id)
	}
	if s.headed {
		for _, x := range f.Fields {
			s.came = append(s.came, [2]string{x.Name, x.Value})
		}
	}
	if err := h.side.onHeaders(s, f); err != nil {
		return err
	}
	return h.ended(s, f.StreamEnded())
}

func (h *h2Conn) onData(f *http2.DataFrame) error {
	n := int(f.Length)
	if h.grant -= n; h.grant < 0 {
		return fmt.Errorf("%d bytes more than the connection's window", -h.grant)
	}
	h.giveBack(&h.credit, n, h2Window, func(n int) {
		h.grant += n
		_ = h.fr.WriteWindowUpdate(0, uint32(n))
	})
	s := h.streams[f.StreamID]
	if s == nil {
		return nil // of one that we have reset
	}
	if s.grant -= n; s.grant < 0 {
		return fmt.Errorf("%d bytes more than the window of stream %d", -s.grant, s.id)
	}
	if s.inDone || !s.headed {
		return fmt.Errorf("data on stream %d before its head or after its end", s.id)
	}
	if !f.StreamEnded() {
		h.giveBack(&s.credit, n, h.ourInitial, func(n int) {
			if !s.gone && !s.inDone {
				s.grant += n
				_ = h.fr.WriteWindowUpdate(s.id, uint32(n))
			}
		})
	}
	if err := h.side.onData(s, f.Data()); err != nil {
		return err
	}
	return h.ended(s, f.StreamEnded())
}

// credit is room in a window that the far end has used and will get back. It comes back in half windows, or a while later, so that
// frames do not become ever smaller.
type credit struct {
	owed  int
	timer bool
}

// giveBack returns n bytes of room in a window of a size; add gives them to the far end.
func (h *h2Conn) giveBack(c *credit, n, size int, add func(n int)) {
	give := func() {
		if c.owed > 0 && !h.conn.IsClosed() && !h.broken {
			n := c.owed
			c.owed = 0
			add(n)
			h.flush()
		}
	}
	if c.owed += n; 2*c.owed >= size || percent(h.rnd, 5) {
		give()
		return
	}
	if c.owed > 0 && !c.timer {
		c.timer = true
		h.g.w.After(time.Duration(h.rnd.IntN(5e7)), func() {
			c.timer = false
			give()
		})
	}
}

func (h *h2Conn) ended(s *h2Stream, end bool) error {
	if !end || s.gone {
		return nil
	}
	s.inDone = true
	if s.length >= 0 && s.length != s.n && !s.r.bodiless() {
		return fmt.Errorf("stream %d ends after %d bytes of %d", s.id, s.n, s.length)
	}
	if err := h.side.onEnd(s); err != nil {
		return err
	}
	h.settle(s)
	return nil
}

func (h *h2Conn) open(id uint32) *h2Stream {
	s := &h2Stream{id: id, window: h.initial, grant: h2Window, length: -1}
	if h.acked { // what we have asked for holds from the acknowledgement on
		s.grant = h.ourInitial
	}
	h.streams[id] = s
	h.order = append(h.order, s)
	return s
}

// drop forgets s.
func (h *h2Conn) drop(s *h2Stream) {
	s.gone = true
	delete(h.streams, s.id)
	for i, x := range h.order {
		if x == s {
			h.order = append(h.order[:i:i], h.order[i+1:]...)
			break
		}
	}
}

// settle forgets a stream that is over on both sides.
func (h *h2Conn) settle(s *h2Stream) {
	if s.inDone && s.outDone && !s.gone {
		h.drop(s)
		h.side.onRoom()
	}
}

// reset ends a stream from our side.
func (h *h2Conn) reset(s *h2Stream, code http2.ErrCode) {
	if !s.gone {
		h.drop(s)
		_ = h.fr.WriteRSTStream(s.id, code)
		h.flush()
	}
}

// headers sends a head; nv are names and values.
func (h *h2Conn) headers(s *h2Stream, end bool, nv ...string) {
	h.head.Reset()
	for i := 0; i < len(nv); i += 2 {
		_ = h.enc.WriteField(hpack.HeaderField{Name: nv[i], Value: nv[i+1]})
	}
	_ = h.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: h.head.Bytes(), EndHeaders: true, EndStream: end})
	s.outDone = end
	h.flush()
	h.settle(s)
}

// send sends a body in pieces, some of them late, and ends our side. before, if not nil, is asked before each.
func (h *h2Conn) send(s *h2Stream, pieces [][]byte, before func() bool) {
	var next func()
	next = func() {
		for len(pieces) > 0 {
			if s.gone || h.conn.IsClosed() || before != nil && !before() {
				return
			}
			s.out = append(s.out, pieces[0]...)
			pieces = pieces[1:]
			h.pump()
			if len(pieces) > 0 && percent(h.rnd, percentSlow) {
				h.g.w.After(time.Duration(h.rnd.IntN(5e7)), next)
				return
			}
		}
		s.outEnd = true
		h.pump()
	}
	next()
}

// pump sends what the windows allow, in frames of chance.
func (h *h2Conn) pump() {
	for _, s := range append([]*h2Stream(nil), h.order...) {
		for !s.gone && !s.outDone {
			n := min(len(s.out), s.window, h.window, h.frame)
			if n > 1 && percent(h.rnd, 10) {
				n = 1 + h.rnd.IntN(n)
			}
			end := s.outEnd && n == len(s.out)
			if n <= 0 && !end {
				break
			}
			if last := end && s.trail == ""; n > 0 || last {
				_ = h.fr.WriteData(s.id, last, s.out[:max(n, 0)])
			}
			if end && s.trail != "" {
				h.head.Reset()
				_ = h.enc.WriteField(hpack.HeaderField{Name: trailerName, Value: s.trail})
				_ = h.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: h.head.Bytes(), EndHeaders: true, EndStream: true})
			}
			s.out = s.out[max(n, 0):]
			s.window -= n
			h.window -= n
			s.outDone = end
			h.settle(s)
		}
	}
	h.flush()
}
