package h2_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
)

// limit is a limit that a client may reach (n) but not pass (n+1).
type limit struct {
	name string
	opts func(o *h2.Options)
	n    int
	in   func(w *wire, n int)
	err  string // the error of the connection beyond the limit
	sent string // or what is sent then, as the last line
}

// TestLimits: each limit at the limit and one past it.
func TestLimits(t *testing.T) {
	settings := func(w *wire, n int) {
		for range n {
			w.raw(4, 0, 0, "")
		}
	}
	empty := func(typ uint8) func(w *wire, n int) {
		return func(w *wire, n int) {
			if typ == 9 {
				w.raw(1, 1, 1, "\x82")
			} else {
				hang(w, false)
			}
			for range n {
				w.raw(typ, 0, 1, "")
			}
		}
	}
	for _, l := range []limit{
		{"empty data", nil, 1, empty(0), "Too many consecutive frames with an empty payload", ""},
		{"empty data, other limit", func(o *h2.Options) { o.MaxInboundEmptyFrames = 5 }, 5, empty(0), "Too many consecutive frames with an empty payload", ""},
		{"empty data with padding", nil, 1, func(w *wire, n int) {
			hang(w, false)
			for range n {
				w.raw(0, 8, 1, "\x02\x00\x00")
			}
		}, "Too many consecutive frames with an empty payload", ""},
		{"empty continuation", nil, 1, empty(9), "Too many consecutive frames with an empty payload", ""},
		{"priority", nil, 100, func(w *wire, n int) {
			for range n {
				w.raw(2, 0, 3, "\x00\x00\x00\x00\x10")
			}
		}, "Too many PRIORITY frames", ""},
		{"priority with a stream", nil, 200, func(w *wire, n int) {
			w.get(1)
			for range n {
				w.raw(2, 0, 3, "\x00\x00\x00\x00\x10")
			}
		}, "Too many PRIORITY frames", ""},
		{"window updates", nil, 5, func(w *wire, n int) {
			for range n {
				w.raw(8, 0, 0, "\x00\x00\x00\x01")
			}
		}, "Too many WINDOW_UPDATE frames", ""},
		{"window updates after a response of one DATA frame", nil, 5 + 2*(1+10), func(w *wire, n int) {
			w.get(1)
			for range n {
				w.raw(8, 0, 0, "\x00\x00\x00\x01")
			}
		}, "Too many WINDOW_UPDATE frames", ""},
		// Our own SETTINGS and the first ACK count as well.
		{"control frames", nil, 1000 - 2, settings, "Too many control frames in the outbound queue.", ""},
		{"pings", nil, 1000 - 2, func(w *wire, n int) {
			for range n {
				w.raw(6, 0, 0, "12345678")
			}
		}, "Too many control frames in the outbound queue.", ""},
		{"frames", func(o *h2.Options) { o.MaxOutboundFrames = 103 }, 50, func(w *wire, n int) {
			for i := range n {
				w.get(uint32(1 + 2*i)) // two frames each; SETTINGS, WINDOW_UPDATE and ACK make three
			}
		}, "Too many frames in the outbound queue.", ""},
		{"streams", func(o *h2.Options) { o.MaxConcurrentStreams = 3 }, 3, func(w *wire, n int) {
			for i := range n {
				w.headers(uint32(1+2*i), true, ":method=GET", ":scheme=http", ":path=/hang", ":authority=a")
			}
		}, "", "7 RST_STREAM REFUSED_STREAM"},
		{"settings", nil, 32, func(w *wire, n int) { w.raw(4, 0, 0, strings.Repeat("\x00\x77abcd", n)) }, "SETTINGS: too many setting entries", ""},
		{"fields", nil, 96, func(w *wire, n int) {
			h := []string{":method=GET", ":scheme=http", ":path=/hang", ":authority=a"}
			for range n {
				h = append(h, "x-a=b")
			}
			w.headers(1, true, h...)
		}, "", "1 RST_STREAM INTERNAL_ERROR"},
		{"header bytes", nil, 60<<10 - len(":method"+"GET"+":scheme"+"http"+":path"+"/hang"+":authority"+"a"+"x-a"), func(w *wire, n int) {
			w.enc.SetMaxDynamicTableSize(0)
			b := w.block(":method=GET", ":scheme=http", ":path=/hang", ":authority=a", "x-a="+strings.Repeat("~", n))
			for i := 0; i < len(b); i += 16384 {
				end := min(i+16384, len(b))
				typ, flags := uint8(9), uint8(0)
				if i == 0 {
					typ, flags = 1, 1
				}
				if end == len(b) {
					flags |= 4
				}
				w.raw(typ, flags, 1, string(b[i:end]))
			}
		}, "", "1 RST_STREAM INTERNAL_ERROR"},
		{"trailer bytes", nil, 60<<10 - len("x-t"), func(w *wire, n int) {
			w.enc.SetMaxDynamicTableSize(0)
			hang(w, false)
			b := w.block("x-t=" + strings.Repeat("e", n))
			w.raw(1, 1, 1, string(b[:10000]))
			for b = b[10000:]; len(b) > 10000; b = b[10000:] {
				w.raw(9, 0, 1, string(b[:10000]))
			}
			w.raw(9, 4, 1, string(b))
		}, "", "1 RST_STREAM INTERNAL_ERROR"},
		{"continuations", func(o *h2.Options) { o.MaxHeaderBytes = 1 << 20 }, 1024, func(w *wire, n int) {
			b := w.block(":method=GET", ":scheme=http", ":path=/hang", ":authority=a", "x-a="+strings.Repeat("~", 2000))
			w.raw(1, 1, 1, string(b[:len(b)-n]))
			for i := range n {
				flags := uint8(0)
				if i == n-1 {
					flags = 4
				}
				w.raw(9, flags, 1, string(b[len(b)-n+i]))
			}
		}, "too many CONTINUATION frames", ""},
	} {
		t.Run(l.name, func(t *testing.T) {
			for _, n := range []int{l.n, l.n + 1} {
				opts := h2.DefaultOptions()
				if l.opts != nil {
					l.opts(&opts)
				}
				s := newServer(t, opts)
				s.on = func(x *serverStream, e string) {
					if strings.HasPrefix(e, "headers") && !strings.Contains(e, "/hang") {
						x.respond("200", "ok")
					}
				}
				w := newWire().hello()
				l.in(w, n)
				err := s.feed(w.bytes())
				for i := 0; i < 6 && err == ""; i++ {
					err = s.feed(nil) // nothing is drained meanwhile
				}
				lines := strings.Split(newWire().read(t, s.out.take()), "\n")
				last := lines[len(lines)-1]
				if n == l.n {
					if err != "" || strings.Contains(last, "RST_STREAM") || strings.Contains(last, "GOAWAY") {
						t.Errorf("at the limit: %q, %s", err, last)
					}
				} else if err != l.err || l.sent != "" && last != l.sent {
					t.Errorf("past the limit: %q, %s", err, last)
				}
			}
		})
	}
}

// TestOverflowKeepsCompression: what was refused has still gone through the table.
func TestOverflowKeepsCompression(t *testing.T) {
	opts := h2.DefaultOptions()
	opts.MaxHeaders, opts.MaxConcurrentStreams = 6, 1
	s := newServer(t, opts)
	w := newWire().hello()
	hang(w, true)                      // takes the only place
	w.get(3, "x-new=one", "x-new=two") // refused
	s.feed(w.raw(3, 0, 1, "\x00\x00\x00\x08").bytes())
	w.get(5, "x-new=three", "x-b=1", "x-c=3") // too many
	w.get(7, "x-new=three", "x-c=3")
	s.drain()
	if err := s.feed(w.bytes()); err != "" {
		t.Fatal(err)
	}
	eq(t, "events", s.drain(), `5 reset "remote reset" http2.too_many_headers
		7 headers :method="GET" :scheme="http" :path="/" :authority="a" x-new="three" x-c="3" END`)
}

// TestFaults: small faults are forgiven as often as streams went well, and a thousand times more.
func TestFaults(t *testing.T) {
	s := newServer(t, h2.DefaultOptions())
	w := newWire().hello()
	s.feed(w.bytes())
	for i := range 1001 {
		id := uint32(1 + 2*i)
		w.headers(id, false, ":method=POST", ":scheme=http", ":path=/hang", ":authority=a", "content-length=1").data(id, true, "ab")
		err := s.feed(w.bytes())
		s.out.take()
		if want := i == 1000; (err != "") != want {
			t.Fatalf("fault %d: %q", i+1, err)
		}
	}
}

// TestOutboundBurst: what one pass makes is no flood, unless it is very much.
func TestOutboundBurst(t *testing.T) {
	for n, want := range map[int]string{16000 - 2: "", 16000 - 1: "Too many control frames in the outbound queue."} {
		s := newServer(t, h2.DefaultOptions())
		w := newWire().hello()
		for range n {
			w.raw(6, 0, 0, "12345678")
		}
		s.feed(w.bytes())
		if err := s.feed(w.raw(6, 0, 0, "12345678").bytes()); err != want {
			t.Errorf("%d: %q", n, err)
		}
		if want == "" {
			s.out.take()
			for range 10 {
				if err := s.feed(w.raw(6, 0, 0, "12345678").bytes()); err != "" {
					t.Error(err)
				}
			}
		}
	}
}

// TestOutboundDrains: frames that have left do not count, even if the buffer never runs empty.
func TestOutboundDrains(t *testing.T) {
	s := newServer(t, h2.DefaultOptions())
	w := newWire().hello()
	s.feed(w.bytes())
	for i := range 200 {
		for range 100 {
			w.raw(6, 0, 0, "12345678")
		}
		if err := s.feed(w.bytes()); err != "" {
			t.Fatalf("round %d: %s", i, err)
		}
		// Up to 200 frames stay behind.
		s.out.buf.Drain(max(0, s.out.buf.Len()-200*17))
	}
}

// TestErrorsAreCounted: the counters of the "http2." group.
func TestErrorsAreCounted(t *testing.T) {
	for stat, in := range map[string]func(w *wire){
		"rx_messaging_error":         func(w *wire) { w.get(1, "X=1") },
		"inbound_empty_frames_flood": func(w *wire) { hang(w, false).data(1, false, "").data(1, false, "") },
		"header_overflow tx_reset":   func(w *wire) { w.get(1, strings.Split(strings.Repeat("a=b ", 100), " ")[:100]...) },
		"header_list_size_too_large tx_reset": func(w *wire) {
			w.get(1, slices.Repeat([]string{"a=" + strings.Repeat("0", 3000)}, 25)...)
		},
		"tx_reset": func(w *wire) { w.post(1, "content-length=1").data(1, true, "ab") },
		"rx_reset": func(w *wire) { hang(w, true).raw(3, 0, 1, "1234") },
		"trailers": func(w *wire) { hang(w, false).headers(1, true, "x=y") },
		"inbound_window_update_frames_flood": func(w *wire) {
			w.buf.WriteString(strings.Repeat("\x00\x00\x04\x08\x00\x00\x00\x00\x00\x00\x00\x00\x01", 6))
		},
	} {
		s := newServer(t, h2.DefaultOptions())
		rec := &recorder{}
		s.mem.streams.Stats = rec
		w := newWire().hello()
		in(w)
		s.feed(w.bytes())
		eq(t, "counters", rec.counters(), stat)
		s.c.Destroy()
		if rec.gauge != 0 {
			t.Errorf("%s: gauges are at %d", stat, rec.gauge)
		}
	}
}
