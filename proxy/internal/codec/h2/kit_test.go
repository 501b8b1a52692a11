package h2_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	xhpack "golang.org/x/net/http2/hpack"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
	hstats "github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// mem is a worker's memory, which must be whole again at the end of a test.
type mem struct {
	buffers buffer.Pool
	arenas  http.ArenaPool
	streams h2.Pool
}

func newMem(t testing.TB) *mem {
	m := &mem{}
	m.buffers.Poison, m.arenas.Poison = true, true
	t.Cleanup(func() {
		if m.buffers.Live() != 0 || m.arenas.Live() != 0 || m.streams.Live() != 0 {
			t.Errorf("leaked: %d slabs, %d arenas, %d streams", m.buffers.Live(), m.arenas.Live(), m.streams.Live())
		}
	})
	return m
}

// sink is a codec.Output in memory.
type sink struct{ buf buffer.Buffer }

func (o *sink) Out() *buffer.Buffer           { return &o.buf }
func (o *sink) WriteData(data *buffer.Buffer) { o.buf.Move(data) }
func (o *sink) Buffered() int                 { return o.buf.Len() }

// take returns what was written and empties the sink.
func (o *sink) take() []byte {
	b := o.buf.Bytes()
	o.buf.Reset()
	return b
}

// server records what a Server reports.
type server struct {
	t      testing.TB
	mem    *mem
	out    sink
	c      *h2.Server
	events []string
	byID   map[uint32]*serverStream
	closed bool
	// on is called with each new stream; the default does nothing.
	on func(x *serverStream, event string)
}

type serverStream struct {
	s     *server
	x     codec.ServerStream
	id    uint32
	h     http.HeaderMap
	arena http.Arena
	resp  http.HeaderMap
	over  bool
}

func newServer(t testing.TB, opts h2.Options) *server {
	s := &server{t: t, mem: newMem(t), byID: map[uint32]*serverStream{}}
	s.out.buf.Init(&s.mem.buffers)
	s.c = h2.NewServer(s, &s.out, &s.mem.streams, &opts)
	t.Cleanup(s.close)
	return s
}

func (s *server) close() {
	if s.closed {
		return
	}
	s.closed = true
	s.c.Destroy()
	s.out.buf.Reset()
	for _, x := range s.byID {
		x.arena.Release()
	}
}

func (s *server) log(format string, args ...any) {
	s.events = append(s.events, fmt.Sprintf(format, args...))
}

// drain returns the events since the last call.
func (s *server) drain() string {
	e := strings.Join(s.events, "\n")
	s.events = nil
	return e
}

func (s *server) NewStream(x codec.ServerStream) (codec.RequestDecoder, *http.HeaderMap) {
	st := &serverStream{s: s, x: x, id: x.ID()}
	st.arena.Init(&s.mem.arenas)
	st.h.Init(&st.arena)
	st.resp.Init(&st.arena)
	s.byID[st.id] = st
	return st, &st.h
}

func (s *server) OnGoAway() { s.log("goaway") }

func fields(h *http.HeaderMap) string {
	var b strings.Builder
	for _, f := range h.All() {
		if f.ID != http.Lookup(f.Name) {
			panic("wrong id for " + f.Name)
		}
		fmt.Fprintf(&b, " %s=%q", f.Name, f.Value)
	}
	return b.String()
}

func end(e bool) string {
	if e {
		return " END"
	}
	return ""
}

func (x *serverStream) event(format string, args ...any) {
	if x.over {
		x.s.t.Errorf("stream %d: event after the last: "+format, append([]any{x.id}, args...)...)
	}
	e := fmt.Sprintf(format, args...)
	x.s.log("%d %s", x.id, e)
	if x.s.on != nil {
		x.s.on(x, e)
	}
}

func (x *serverStream) DecodeHeaders(h *http.HeaderMap, e bool) {
	x.event("headers%s%s", fields(h), end(e))
}
func (x *serverStream) DecodeData(d *buffer.Buffer, e bool) { x.event("data %q%s", d.Bytes(), end(e)) }
func (x *serverStream) DecodeTrailers(h *http.HeaderMap)    { x.event("trailers%s", fields(h)) }
func (x *serverStream) DecodeError(err *codec.Err)          { x.event("error %s", err.Details) }
func (x *serverStream) OnReset(r http.ResetReason, d string) {
	x.event("reset %q %s", r.String(), d)
	x.over = true
}
func (x *serverStream) OnAboveHighWatermark() { x.event("above") }
func (x *serverStream) OnBelowLowWatermark()  { x.event("below") }
func (x *serverStream) OnEncodeComplete()     { x.event("complete") }

// respond sends a response; body "" sends none.
func (x *serverStream) respond(status, body string) {
	x.resp.Init(&x.arena)
	x.resp.Add(http.Status, status)
	x.x.EncodeHeaders(&x.resp, body == "")
	if body != "" {
		x.body(body, true)
	}
}

func (x *serverStream) body(body string, e bool) {
	var b buffer.Buffer
	b.Init(&x.s.mem.buffers)
	b.Append([]byte(body))
	x.x.EncodeData(&b, e)
	if b.Len() != 0 {
		x.s.t.Error("EncodeData left bytes")
	}
}

// client records what a Client reports.
type client struct {
	t      testing.TB
	mem    *mem
	out    sink
	c      *h2.Client
	events []string
	all    []*clientStream
	closed bool
	quiet  bool // bodies are kept in the streams, not logged
	on     func(x *clientStream, event string)
}

type clientStream struct {
	c     *client
	got   []byte
	x     codec.ClientStream
	h     http.HeaderMap
	arena http.Arena
	over  bool
}

func newClient(t testing.TB, opts h2.Options) *client {
	c := &client{t: t, mem: newMem(t)}
	c.out.buf.Init(&c.mem.buffers)
	c.c = h2.NewClient(c, &c.out, &c.mem.streams, &opts)
	t.Cleanup(c.close)
	return c
}

func (c *client) close() {
	if c.closed {
		return
	}
	c.closed = true
	c.c.Destroy()
	c.out.buf.Reset()
	for _, x := range c.all {
		x.arena.Release()
	}
}

func (c *client) log(format string, args ...any) {
	c.events = append(c.events, fmt.Sprintf(format, args...))
}
func (c *client) drain() string {
	e := strings.Join(c.events, "\n")
	c.events = nil
	return e
}
func (c *client) OnStreamDone(reusable bool) { c.log("done %v", reusable) }
func (c *client) OnGoAway()                  { c.log("goaway") }
func (c *client) OnMaxStreams(n int)         { c.log("max %d", n) }

// request starts a request with the fields of line, "name=value" each.
func (c *client) request(e bool, line ...string) *clientStream {
	x := c.stream()
	var h http.HeaderMap
	h.Init(&x.arena)
	for _, f := range line {
		name, value, _ := strings.Cut(f, "=")
		h.AddName(name, value)
	}
	if err := x.x.EncodeHeaders(&h, e); err != nil {
		c.t.Fatal(err)
	}
	return x
}

func (c *client) stream() *clientStream {
	x := &clientStream{c: c}
	x.arena.Init(&c.mem.arenas)
	x.h.Init(&x.arena)
	c.all = append(c.all, x)
	x.x = c.c.NewStream(x, &x.h)
	return x
}

func (c *client) get(path string) *clientStream {
	return c.request(true, ":method=GET", ":scheme=http", ":path="+path, ":authority=a")
}

func (x *clientStream) event(format string, args ...any) {
	if x.over {
		x.c.t.Errorf("event after the last: "+format, args...)
	}
	e := fmt.Sprintf(format, args...)
	x.c.log("%d %s", x.x.ID(), e)
	if x.c.on != nil {
		x.c.on(x, e)
	}
}

func (x *clientStream) Decode1xx(h *http.HeaderMap) { x.event("1xx%s", fields(h)) }
func (x *clientStream) DecodeHeaders(h *http.HeaderMap, e bool) {
	x.event("headers%s%s", fields(h), end(e))
}
func (x *clientStream) DecodeData(d *buffer.Buffer, e bool) {
	if x.c.quiet {
		x.got = d.AppendTo(x.got)
		return
	}
	x.event("data %q%s", d.Bytes(), end(e))
}
func (x *clientStream) DecodeTrailers(h *http.HeaderMap) { x.event("trailers%s", fields(h)) }
func (x *clientStream) OnReset(r http.ResetReason, d string) {
	x.event("reset %q %s", r.String(), d)
	x.over = true
}
func (x *clientStream) OnAboveHighWatermark() { x.event("above") }
func (x *clientStream) OnBelowLowWatermark()  { x.event("below") }

func (x *clientStream) body(body string, e bool) {
	var b buffer.Buffer
	b.Init(&x.c.mem.buffers)
	b.Append([]byte(body))
	x.x.EncodeData(&b, e)
}

// wire builds frames with x/net's framer and encoder, and reads what comes back.
type wire struct {
	buf bytes.Buffer
	fr  *http2.Framer
	enc *xhpack.Encoder
	hb  bytes.Buffer
	dec *xhpack.Decoder
}

func newWire() *wire {
	w := &wire{}
	w.fr = http2.NewFramer(&w.buf, &w.buf)
	w.fr.AllowIllegalWrites = true
	w.enc = xhpack.NewEncoder(&w.hb)
	w.dec = xhpack.NewDecoder(4096, nil)
	return w
}

// hello is a client's preface with empty SETTINGS.
func (w *wire) hello() *wire {
	w.buf.WriteString(http2.ClientPreface)
	w.fr.WriteSettings()
	return w
}

func (w *wire) bytes() []byte {
	b := bytes.Clone(w.buf.Bytes())
	w.buf.Reset()
	return b
}

// block encodes "name=value" fields; a leading "=" keeps the name empty.
func (w *wire) block(fields ...string) []byte {
	w.hb.Reset()
	for _, f := range fields {
		i := strings.IndexByte(f[min(1, len(f)):], '=') + min(1, len(f))
		if strings.HasPrefix(f, "=") {
			i = 0
		}
		w.enc.WriteField(xhpack.HeaderField{Name: f[:i], Value: f[i+1:]})
	}
	return bytes.Clone(w.hb.Bytes())
}

func (w *wire) headers(id uint32, e bool, fields ...string) *wire {
	w.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: w.block(fields...), EndStream: e, EndHeaders: true})
	return w
}

func (w *wire) get(id uint32, more ...string) *wire {
	return w.headers(id, true, append([]string{":method=GET", ":scheme=http", ":path=/", ":authority=a"}, more...)...)
}

func (w *wire) post(id uint32, more ...string) *wire {
	return w.headers(id, false, append([]string{":method=POST", ":scheme=http", ":path=/", ":authority=a"}, more...)...)
}

func (w *wire) data(id uint32, e bool, p string) *wire {
	w.fr.WriteData(id, e, []byte(p))
	return w
}

// raw writes a frame as given.
func (w *wire) raw(typ, flags uint8, id uint32, p string) *wire {
	w.fr.WriteRawFrame(http2.FrameType(typ), http2.Flags(flags), id, []byte(p))
	return w
}

// read describes the frames in b, one a line.
func (w *wire) read(t testing.TB, b []byte) string {
	t.Helper()
	b = bytes.TrimPrefix(b, []byte(http2.ClientPreface))
	fr := http2.NewFramer(nil, bytes.NewReader(b))
	fr.SetMaxReadFrameSize(1 << 24)
	var lines []string
	var frag []byte
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			if err.Error() != "EOF" {
				t.Fatalf("our frames: %v", err)
			}
			return strings.Join(lines, "\n")
		}
		lines = append(lines, w.describe(t, f, &frag))
	}
}

func (w *wire) describe(t testing.TB, f http2.Frame, frag *[]byte) string {
	id := f.Header().StreamID
	e := end(f.Header().Flags.Has(http2.FlagDataEndStream))
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if f.IsAck() {
			return "SETTINGS ACK"
		}
		s := "SETTINGS"
		f.ForeachSetting(func(p http2.Setting) error { s += fmt.Sprintf(" %d=%d", p.ID, p.Val); return nil })
		return s
	case *http2.HeadersFrame:
		*frag = append([]byte(nil), f.HeaderBlockFragment()...)
		if !f.HeadersEnded() {
			return fmt.Sprintf("%d HEADERS...%s", id, e)
		}
		return fmt.Sprintf("%d HEADERS%s%s", id, w.fields(t, *frag), e)
	case *http2.ContinuationFrame:
		*frag = append(*frag, f.HeaderBlockFragment()...)
		if !f.HeadersEnded() {
			return fmt.Sprintf("%d CONTINUATION...", id)
		}
		return fmt.Sprintf("%d CONTINUATION%s", id, w.fields(t, *frag))
	case *http2.DataFrame:
		if len(f.Data()) > 40 {
			return fmt.Sprintf("%d DATA %d%s", id, len(f.Data()), e)
		}
		return fmt.Sprintf("%d DATA %q%s", id, f.Data(), e)
	case *http2.RSTStreamFrame:
		return fmt.Sprintf("%d RST_STREAM %s", id, f.ErrCode)
	case *http2.GoAwayFrame:
		return fmt.Sprintf("GOAWAY %d %s %q", f.LastStreamID, f.ErrCode, f.DebugData())
	case *http2.WindowUpdateFrame:
		return fmt.Sprintf("%d WINDOW_UPDATE %d", id, f.Increment)
	case *http2.PingFrame:
		return fmt.Sprintf("PING %x%s", f.Data, end(f.IsAck()))
	}
	return fmt.Sprint(f)
}

func (w *wire) fields(t testing.TB, block []byte) string {
	fs, err := w.dec.DecodeFull(block)
	if err != nil {
		t.Fatalf("our header block: %v", err)
	}
	var b strings.Builder
	for _, f := range fs {
		fmt.Fprintf(&b, " %s=%q", f.Name, f.Value)
	}
	return b.String()
}

// feed dispatches b whole and returns the error's text, "" for none.
func (s *server) feed(b []byte) string { return feed(s.t, s.c.Dispatch, b) }
func (c *client) feed(b []byte) string { return feed(c.t, c.c.Dispatch, b) }

func feed(t testing.TB, dispatch func([]byte) (int, error), b []byte) string {
	b = bytes.Clone(b)
	n, err := dispatch(b)
	for i := range b {
		b[i] = 0xdb // a view of the input that was kept is seen at once
	}
	if err != nil {
		return err.Error()
	}
	if n != len(b) {
		t.Errorf("%d of %d bytes consumed", n, len(b))
	}
	return ""
}

// recorder keeps the names of the counters that were counted, and the sum of all gauges.
type recorder struct {
	names []string
	gauge int64
}

var counterNames = map[stats.CounterID]string{
	stats.CounterID(hstats.HTTP2RxMessagingError):               "rx_messaging_error",
	stats.CounterID(hstats.HTTP2InboundEmptyFramesFlood):        "inbound_empty_frames_flood",
	stats.CounterID(hstats.HTTP2HeaderOverflow):                 "header_overflow",
	stats.CounterID(hstats.HTTP2HeaderListSizeTooLarge):         "header_list_size_too_large",
	stats.CounterID(hstats.HTTP2TxReset):                        "tx_reset",
	stats.CounterID(hstats.HTTP2RxReset):                        "rx_reset",
	stats.CounterID(hstats.HTTP2Trailers):                       "trailers",
	stats.CounterID(hstats.HTTP2InboundWindowUpdateFramesFlood): "inbound_window_update_frames_flood",
	stats.CounterID(hstats.HTTP2GoawaySent):                     "goaway_sent",
	stats.CounterID(hstats.HTTP2TxFlushTimeout):                 "tx_flush_timeout",
}

func (r *recorder) Inc(id stats.CounterID) {
	if n, ok := counterNames[id]; ok {
		r.names = append(r.names, n)
	} else {
		r.names = append(r.names, fmt.Sprint(id))
	}
}
func (r *recorder) Add(id stats.CounterID, n uint64)      { r.Inc(id) }
func (r *recorder) GaugeAdd(id stats.GaugeID, n int64)    { r.gauge += n }
func (r *recorder) GaugeSub(id stats.GaugeID, n int64)    { r.gauge -= n }
func (r *recorder) Record(id stats.HistogramID, v uint64) {}
func (r *recorder) IncCode(id stats.CodesID, code int)    {}
func (r *recorder) counters() string                      { return strings.Join(r.names, " ") }
