package h2_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
)

// begin opens streams that wait for our answer, under the stream window that the client announces.
func begin(t *testing.T, opts h2.Options, window uint32, e bool, ids ...uint32) (*server, *wire) {
	s := newServer(t, opts)
	w := newWire()
	w.buf.WriteString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	w.raw(4, 0, 0, "\x00\x04"+string([]byte{byte(window >> 24), byte(window >> 16), byte(window >> 8), byte(window)}))
	for _, id := range ids {
		w.headers(id, e, ":method=POST", ":scheme=http", ":path=/hang", ":authority=a")
	}
	if err := s.feed(w.bytes()); err != "" {
		t.Fatal(err)
	}
	s.out.take()
	s.drain()
	return s, w
}

func (x *serverStream) start() {
	x.resp.Init(&x.arena)
	x.resp.Add(http.Status, "200")
	x.x.EncodeHeaders(&x.resp, false)
}

func (w *wire) update(id, n uint32) *wire {
	w.fr.WriteWindowUpdate(id, n)
	return w
}

func sizes(n int, c string) string { return strings.Repeat(c, n) }

// TestStreamWindow: a body stops at the stream's window and goes on with WINDOW_UPDATE or SETTINGS.
func TestStreamWindow(t *testing.T) {
	s, w := begin(t, h2.DefaultOptions(), 100, true, 1)
	x := s.byID[1]
	x.start()
	x.body(sizes(250, "a"), true)
	eq(t, "first", w.read(t, s.out.take()), "1 HEADERS :status=\"200\"\n1 DATA 100")
	s.feed(w.update(1, 60).bytes())
	eq(t, "update", w.read(t, s.out.take()), "1 DATA 60")
	s.feed(w.raw(4, 0, 0, "\x00\x04\x00\x00\x00\x90").bytes()) // 144: 44 more
	eq(t, "settings", w.read(t, s.out.take()), "SETTINGS ACK\n1 DATA 44")
	s.feed(w.raw(4, 0, 0, "\x00\x04\x00\x00\x00\x00").bytes()) // 0: the window is -144
	s.feed(w.update(1, 144).bytes())
	eq(t, "negative", w.read(t, s.out.take()), "SETTINGS ACK")
	eq(t, "events", s.drain(), "")
	s.feed(w.update(1, 46).bytes())
	eq(t, "last", w.read(t, s.out.take()), "1 DATA 46 END")
	eq(t, "events", s.drain(), "1 complete")
}

// TestConnectionWindow: streams share what there is in turns of one frame, and trailers wait behind their bodies.
func TestConnectionWindow(t *testing.T) {
	s, w := begin(t, h2.DefaultOptions(), 1<<20, true, 1, 3, 5)
	for _, id := range []uint32{1, 3, 5} {
		s.byID[id].start()
	}
	w.read(t, s.out.take())
	s.byID[1].body(sizes(65535, "a"), false) // the whole window
	s.byID[1].body(sizes(20000, "a"), false)
	s.byID[3].body(sizes(40000, "b"), false)
	s.byID[5].body(sizes(10000, "c"), true)
	var tr http.HeaderMap
	tr.Init(&s.byID[3].arena)
	tr.AddName("x-t", "1")
	s.byID[3].x.EncodeTrailers(&tr)
	tr.Init(&s.byID[3].arena)
	tr.AddName("x-t", "2")
	s.byID[1].x.EncodeTrailers(&tr)
	eq(t, "first", w.read(t, s.out.take()), "1 DATA 16384\n1 DATA 16384\n1 DATA 16384\n1 DATA 16383")
	s.feed(w.update(0, 40000).bytes())
	eq(t, "turns", w.read(t, s.out.take()), "1 DATA 16384\n3 DATA 16384\n5 DATA 7232")
	s.feed(w.update(0, 1<<20).bytes())
	eq(t, "rest", w.read(t, s.out.take()), `1 DATA 3616
		1 HEADERS x-t="2" END
		3 DATA 16384
		5 DATA 2768 END
		3 DATA 7232
		3 HEADERS x-t="1" END`)
	eq(t, "events", s.drain(), "1 complete\n5 complete\n3 complete")
	if s.c.Active() != 0 {
		t.Error("streams left")
	}
}

// TestWriteBufferWatermark: above the connection's high watermark bodies wait, and everyone is told once.
func TestWriteBufferWatermark(t *testing.T) {
	s, w := begin(t, h2.DefaultOptions(), 1<<20, true, 1, 3)
	s.byID[1].start()
	s.c.OnHighWatermark()
	s.c.OnHighWatermark()
	s.byID[1].body("abc", true)
	eq(t, "blocked", w.read(t, s.out.take()), "1 HEADERS :status=\"200\"")
	s.feed(w.headers(5, true, ":method=GET", ":scheme=http", ":path=/hang", ":authority=a").bytes())
	s.c.OnLowWatermark()
	s.c.OnLowWatermark()
	eq(t, "low", w.read(t, s.out.take()), `1 DATA "abc" END`)
	eq(t, "events", s.drain(), `1 above
		3 above
		5 above
		5 headers :method="GET" :scheme="http" :path="/hang" :authority="a" END
		1 complete
		3 below
		5 below`)
}

// TestStreamBuffer: a stream's send buffer at its limit and one past it.
func TestStreamBuffer(t *testing.T) {
	opts := h2.DefaultOptions()
	opts.InitialStreamWindow = 70000
	s, w := begin(t, opts, 0, true, 1)
	x := s.byID[1]
	x.start()
	x.body(sizes(70000, "a"), false)
	eq(t, "at the limit", s.drain(), "")
	x.body("b", false)
	eq(t, "above", s.drain(), "1 above")
	s.feed(w.update(1, 35000).bytes())
	eq(t, "half and one", s.drain(), "")
	s.feed(w.update(1, 1).bytes())
	eq(t, "half", s.drain(), "1 below")
}

// TestReceiveWindows: windows are given back by halves, and not while reading is disabled.
func TestReceiveWindows(t *testing.T) {
	opts := h2.DefaultOptions()
	opts.InitialStreamWindow, opts.InitialConnWindow = 65536, 100000
	s, w := begin(t, opts, 65535, false, 1, 3)
	s.feed(w.data(1, false, sizes(16384, "a")).data(1, false, sizes(16383, "a")).bytes())
	eq(t, "less than half", w.read(t, s.out.take()), "")
	s.feed(w.data(1, false, "b").bytes())
	eq(t, "half", w.read(t, s.out.take()), "1 WINDOW_UPDATE 32768")
	x := s.byID[1].x
	x.ReadDisable(true)
	x.ReadDisable(true)
	for range 3 {
		w.data(1, false, sizes(16384, "c"))
	}
	s.feed(w.bytes())
	x.ReadDisable(false)
	eq(t, "disabled", w.read(t, s.out.take()), "")
	x.ReadDisable(false)
	eq(t, "enabled", w.read(t, s.out.take()), "1 WINDOW_UPDATE 49152\n0 WINDOW_UPDATE 81920")
	// Padding counts for the windows although nobody sees it.
	s.feed(w.raw(0, 8, 3, "\xff"+sizes(255, "\x00")).bytes())
	for range 250 {
		w.raw(0, 8, 3, "\xffx"+sizes(255, "\x00"))
	}
	s.drain()
	s.feed(w.bytes())
	if got := w.read(t, s.out.take()); !strings.Contains(got, "3 WINDOW_UPDATE") || !strings.Contains(got, "0 WINDOW_UPDATE") {
		t.Errorf("padding: %s", got)
	}
}

// TestReceiveWindowExceeded: at the limit and one past it, for both windows.
func TestReceiveWindowExceeded(t *testing.T) {
	opts := h2.DefaultOptions()
	opts.InitialStreamWindow, opts.InitialConnWindow = 65536, 65536+1000
	fill := func(s *server, w *wire) {
		s.byID[1].x.ReadDisable(true)
		for range 4 {
			w.data(1, false, sizes(16384, "a"))
		}
		if err := s.feed(w.bytes()); err != "" {
			t.Fatal(err)
		}
		s.drain()
	}
	s, w := begin(t, opts, 65535, false, 1, 3)
	fill(s, w)
	if err := s.feed(w.data(1, false, "x").bytes()); err != "" {
		t.Error(err)
	}
	eq(t, "stream", w.read(t, s.out.take()), "1 RST_STREAM FLOW_CONTROL_ERROR\n0 WINDOW_UPDATE 65537")
	eq(t, "events", s.drain(), `1 reset "remote reset" http2.unknown.nghttp2.error`)

	s, w = begin(t, opts, 65535, false, 1, 3)
	fill(s, w)
	s.byID[3].x.ReadDisable(true)
	if err := s.feed(w.data(3, false, sizes(1000, "x")).bytes()); err != "" {
		t.Error(err)
	}
	s.feed(w.data(3, false, "x").bytes())
	eq(t, "connection", w.read(t, s.out.take()), "GOAWAY 3 FLOW_CONTROL_ERROR \"\"")
}

// TestResetWhileWaiting: an answer that is complete but waits for a window is still sent; then the client is asked to stop.
func TestResetWhileWaiting(t *testing.T) {
	s, w := begin(t, h2.DefaultOptions(), 3, false, 1, 3)
	s.byID[1].start()
	s.byID[1].body("abcdef", true)
	s.byID[1].x.Reset(http.ResetLocal)
	s.byID[3].start()
	s.byID[3].body("abcdef", false)
	s.byID[3].x.Reset(http.ResetLocal)
	eq(t, "reset", w.read(t, s.out.take()), `1 HEADERS :status="200"
		1 DATA "abc"
		3 HEADERS :status="200"
		3 DATA "abc"
		3 RST_STREAM INTERNAL_ERROR`)
	s.feed(w.update(1, 10).data(1, true, "late").bytes())
	eq(t, "sent", w.read(t, s.out.take()), "1 DATA \"def\" END\n1 RST_STREAM NO_ERROR")
	eq(t, "events", s.drain(), "")
}

// TestAnswerBeforeTheEnd: a client is asked to stop only if what has been read already does not end its request.
func TestAnswerBeforeTheEnd(t *testing.T) {
	const stop = "\n1 RST_STREAM NO_ERROR"
	for name, tt := range map[string]struct {
		in   func(w *wire)
		want string
	}{
		"goes on":           {func(w *wire) { w.post(1) }, okFrames + stop},
		"has more":          {func(w *wire) { w.post(1).data(1, false, "a") }, okFrames + stop},
		"ends at once":      {func(w *wire) { w.post(1).data(1, false, "a").data(1, true, "b") }, okFrames},
		"ends in trailers":  {func(w *wire) { w.post(1).data(1, false, "a").headers(1, true, "x-t=1") }, okFrames},
		"was reset at once": {func(w *wire) { w.post(1).raw(3, 0, 1, "\x00\x00\x00\x08") }, okFrames},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := begin(t, h2.DefaultOptions(), 65535, false)
			s.on = func(x *serverStream, e string) {
				if strings.HasPrefix(e, "headers") {
					x.respond("200", "ok")
					x.x.Reset(http.ResetNone)
				}
			}
			tt.in(w)
			s.feed(w.bytes())
			eq(t, "frames", w.read(t, s.out.take()), tt.want)
			if n := s.c.Active(); n != 0 {
				t.Errorf("%d streams are left", n)
			}
		})
	}
}

// TestResetOfAnEnd: an ended response that waits for windows can be given up all the same.
func TestResetOfAnEnd(t *testing.T) {
	s, w := begin(t, h2.DefaultOptions(), 3, true, 1)
	s.byID[1].start()
	s.byID[1].body("abcdef", true)
	s.out.take()
	s.byID[1].x.Reset(http.ResetOverload)
	eq(t, "given up", w.read(t, s.out.take()), "1 RST_STREAM INTERNAL_ERROR")
	eq(t, "events", s.drain(), "")
}

func TestGoAway(t *testing.T) {
	s, w := begin(t, h2.DefaultOptions(), 65535, false, 1)
	s.c.GoAway(true)
	s.c.GoAway(true)
	s.feed(w.get(3).bytes())
	s.c.GoAway(false)
	s.c.GoAway(false)
	s.feed(w.get(5, "x-new=1").data(5, true, "x").bytes()) // comes too late: ignored, but for the compression state
	s.feed(w.data(1, true, "rest").bytes())
	eq(t, "frames", w.read(t, s.out.take()), "GOAWAY 2147483647 NO_ERROR \"\"\nGOAWAY 3 NO_ERROR \"\"")
	eq(t, "events", s.drain(), `3 headers :method="GET" :scheme="http" :path="/" :authority="a" END
		1 data "rest" END`)
	s.feed(w.raw(7, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00").raw(7, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00").bytes())
	eq(t, "events", s.drain(), "goaway")
}

func TestPing(t *testing.T) {
	s, w := begin(t, h2.DefaultOptions(), 65535, false, 1)
	var got []uint64
	s.c.SetOnPong(func(data uint64) { got = append(got, data) })
	s.c.SendPing(0x0102030405060708)
	eq(t, "ping", w.read(t, s.out.take()), "PING 0102030405060708")
	s.feed(w.raw(6, 1, 0, "\x01\x02\x03\x04\x05\x06\x07\x08").bytes())
	if fmt.Sprint(got) != "[72623859790382856]" {
		t.Error(got)
	}
}

// TestBorrowedBody: bytes that could not be sent are copied; the lender may reuse them.
func TestBorrowedBody(t *testing.T) {
	for _, window := range []uint32{0, 10, 20000, 1 << 20} {
		s, w := begin(t, h2.DefaultOptions(), window, true, 1)
		x := s.byID[1]
		x.start()
		s.out.take()
		lent := []byte(strings.Repeat("0123456789", 6000))
		var b buffer.Buffer
		b.Init(&s.mem.buffers)
		b.Borrow(lent[:30000])
		b.Borrow(lent[30000:])
		x.x.EncodeData(&b, true)
		first := s.out.take()
		clear(lent)
		s.feed(w.update(1, 1<<20).bytes())
		got := bodyOf(t, append(first, s.out.take()...))
		if got != strings.Repeat("0123456789", 6000) {
			t.Errorf("window %d: got %d bytes, not the same", window, len(got))
		}
	}
}

// bodyOf joins the DATA frames of a capture.
func bodyOf(t *testing.T, b []byte) string {
	var out strings.Builder
	for len(b) > 0 {
		n := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
		if b[3] == 0 {
			out.Write(b[9 : 9+n])
		}
		b = b[9+n:]
	}
	return out.String()
}
