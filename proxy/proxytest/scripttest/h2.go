package scripttest

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// h2peer is one side of an HTTP/2 connection, by golang.org/x/net/http2's frames. Its windows are large, those of the proxy are kept.
type h2peer struct {
	l      *link
	on     h2events
	server bool

	in       []byte
	prefaced bool
	read     bytes.Buffer
	out      bytes.Buffer
	fr       *http2.Framer
	enc      *hpack.Encoder
	head     bytes.Buffer

	streams map[uint32]*h2stream
	order   []*h2stream // by age
	next    uint32      // the id of the next stream that is opened
	window  int
	initial int
	frame   int
	leaving bool // the far end takes no more streams
}

// h2stream is one stream; a client's belongs to a response, a server's to a call.
type h2stream struct {
	h        *h2peer
	id       uint32
	window   int
	out      []byte
	trailers []string
	end      bool // of what we send
	sent     bool // the end too
	headed   bool // the far end's head has come
	ended    bool // the far end has ended
	protocol string
	answer   *Response
	call     *Call
}

// h2events are what an h2peer tells.
type h2events interface {
	fields(s *h2stream, nv []string, end bool) error
	body(s *h2stream, b string)
	over(s *h2stream, trailers []string)
	canceled(s *h2stream, code http2.ErrCode)
	goaway(last uint32)
	broke(err error)
}

const (
	h2Window = 1 << 20
	h2Grant  = 1 << 30
)

// begin is called when the connection is up.
func (h *h2peer) begin() {
	h.streams = map[uint32]*h2stream{}
	h.window, h.initial, h.frame, h.next = 65535, 65535, 16384, 1
	h.fr = http2.NewFramer(&h.out, &h.read)
	h.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	h.enc = hpack.NewEncoder(&h.head)
	settings := []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: h2Window}}
	if h.server {
		settings = append(settings, http2.Setting{ID: http2.SettingEnableConnectProtocol, Val: 1})
	} else {
		h.out.WriteString(http2.ClientPreface)
	}
	must(h.fr.WriteSettings(settings...))
	must(h.fr.WriteWindowUpdate(0, h2Grant))
	h.flush()
}

func (h *h2peer) flush() {
	if h.out.Len() > 0 {
		h.l.write(h.out.Bytes())
		h.out.Reset()
	}
}

// feed reads what came.
func (h *h2peer) feed(b []byte) {
	h.in = append(h.in, b...)
	if h.server && !h.prefaced {
		if len(h.in) < len(http2.ClientPreface) {
			return
		}
		h.in, h.prefaced = h.in[len(http2.ClientPreface):], true
	}
	for n := h.whole(); n > 0 && !h.l.c.IsClosed(); n = h.whole() {
		h.read.Write(h.in[:n])
		h.in = h.in[n:]
		f, err := h.fr.ReadFrame()
		if err == nil {
			err = h.frameOf(f)
		}
		if err != nil {
			h.on.broke(fmt.Errorf("%w (%v)", err, h.fr.ErrorDetail()))
			return
		}
	}
	h.flush()
}

// whole returns the length of the first frame, with the continuations of a head; 0 if it has not arrived.
func (h *h2peer) whole() (n int) {
	for {
		if len(h.in) < n+9 {
			return 0
		}
		kind, flags := http2.FrameType(h.in[n+3]), http2.Flags(h.in[n+4])
		if n += 9 + int(binary.BigEndian.Uint32(h.in[n:])>>8); len(h.in) < n {
			return 0
		}
		if kind != http2.FrameHeaders && kind != http2.FrameContinuation || flags.Has(http2.FlagHeadersEndHeaders) {
			return n
		}
	}
}

func (h *h2peer) frameOf(f http2.Frame) error {
	id := f.Header().StreamID
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			h.settings(f)
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			must(h.fr.WritePing(true, f.Data))
		}
	case *http2.WindowUpdateFrame:
		if id == 0 {
			h.window += int(f.Increment)
		} else if s := h.streams[id]; s != nil {
			s.window += int(f.Increment)
		}
		h.pump()
	case *http2.GoAwayFrame:
		h.leaving = true
		h.on.goaway(f.LastStreamID)
	case *http2.RSTStreamFrame:
		if s := h.streams[id]; s != nil {
			h.drop(s)
			h.on.canceled(s, f.ErrCode)
		}
	case *http2.MetaHeadersFrame:
		return h.headers(f)
	case *http2.DataFrame:
		h.data(f)
	}
	return nil
}

func (h *h2peer) settings(f *http2.SettingsFrame) {
	_ = f.ForeachSetting(func(s http2.Setting) error {
		switch s.ID {
		case http2.SettingInitialWindowSize:
			for _, x := range h.order {
				x.window += int(s.Val) - h.initial
			}
			h.initial = int(s.Val)
		case http2.SettingMaxFrameSize:
			h.frame = int(s.Val)
		case http2.SettingHeaderTableSize:
			h.enc.SetMaxDynamicTableSizeLimit(s.Val)
		}
		return nil
	})
	must(h.fr.WriteSettingsAck())
	h.pump()
}

func (h *h2peer) headers(f *http2.MetaHeadersFrame) error {
	s := h.streams[f.StreamID]
	if s == nil {
		if !h.server || f.StreamID < h.next {
			return nil // of one that was reset
		}
		h.next = f.StreamID + 2
		s = h.open(f.StreamID)
	}
	var nv []string
	for _, x := range f.Fields {
		nv = append(nv, x.Name, x.Value)
		if x.Name == ":protocol" {
			s.protocol = x.Value
		}
	}
	if s.headed {
		s.ended = true
		var lines []string
		for i := 0; i < len(nv); i += 2 {
			lines = append(lines, nv[i]+": "+nv[i+1])
		}
		h.on.over(s, lines)
		h.settle(s)
		return nil
	}
	if status := f.PseudoValue("status"); status == "" || status[0] != '1' {
		s.headed = true
	}
	s.ended = f.StreamEnded()
	err := h.on.fields(s, nv, s.ended)
	h.settle(s)
	return err
}

func (h *h2peer) data(f *http2.DataFrame) {
	if n := f.Length; n > 0 {
		must(h.fr.WriteWindowUpdate(0, n))
	}
	s := h.streams[f.StreamID]
	if s == nil {
		return // of one that was reset
	}
	if f.Length > 0 && !f.StreamEnded() {
		must(h.fr.WriteWindowUpdate(s.id, f.Length))
	}
	if len(f.Data()) > 0 {
		h.on.body(s, string(f.Data()))
	}
	if f.StreamEnded() && !s.ended {
		s.ended = true
		h.on.over(s, nil)
		h.settle(s)
	}
}

// open begins a stream.
func (h *h2peer) open(id uint32) *h2stream {
	s := &h2stream{h: h, id: id, window: h.initial}
	h.streams[id] = s
	h.order = append(h.order, s)
	return s
}

func (h *h2peer) drop(s *h2stream) {
	delete(h.streams, s.id)
	for i, x := range h.order {
		if x == s {
			h.order = append(h.order[:i:i], h.order[i+1:]...)
			return
		}
	}
}

func (h *h2peer) settle(s *h2stream) {
	if s.sent && s.ended {
		h.drop(s)
	}
}

// gone tells whether the stream is over or reset.
func (s *h2stream) gone() bool { return s.h.streams[s.id] != s }

// write sends a head; nv are names and values.
func (s *h2stream) write(nv []string, end bool) {
	h := s.h
	if s.gone() || s.sent {
		return
	}
	must(h.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: h.block(nv), EndHeaders: true, EndStream: end}))
	s.sent = end
	h.flush()
	h.settle(s)
}

func (h *h2peer) block(nv []string) []byte {
	h.head.Reset()
	for i := 0; i+1 < len(nv); i += 2 {
		must(h.enc.WriteField(hpack.HeaderField{Name: nv[i], Value: nv[i+1]}))
	}
	return h.head.Bytes()
}

// send sends more of a body, finish its end, with trailers or without.
func (s *h2stream) send(text string) {
	s.out = append(s.out, text...)
	s.h.pump()
}

func (s *h2stream) finish(trailers []string) {
	s.end, s.trailers = true, fields(trailers)
	s.h.pump()
}

// cancel resets the stream.
func (s *h2stream) cancel(code http2.ErrCode) {
	if !s.gone() {
		s.h.drop(s)
		must(s.h.fr.WriteRSTStream(s.id, code))
		s.h.flush()
	}
}

// pump sends what the windows allow.
func (h *h2peer) pump() {
	for _, s := range append([]*h2stream(nil), h.order...) {
		for !s.sent {
			n := max(min(len(s.out), s.window, h.window, h.frame), 0)
			whole := n == len(s.out) && s.end
			if n == 0 && !whole {
				break
			}
			last := whole && len(s.trailers) == 0
			if n > 0 || last {
				must(h.fr.WriteData(s.id, last, s.out[:n]))
			}
			s.out, s.window, h.window = s.out[n:], s.window-n, h.window-n
			if whole && !last {
				must(h.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: h.block(s.trailers), EndHeaders: true, EndStream: true}))
			}
			s.sent = whole
			h.settle(s)
		}
	}
	h.flush()
}
