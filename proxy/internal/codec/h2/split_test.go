package h2_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
)

// replay feeds b to a fresh server in pieces that end where cuts say, and returns what was reported and sent. Body bytes of one
// stream that came in several pieces are joined.
func replay(t testing.TB, opts h2.Options, b []byte, cuts ...int) (events, sent string, err string) {
	return replayWith(t, opts, answering, b, cuts...)
}

func replayWith(t testing.TB, opts h2.Options, on func(*serverStream, string), b []byte, cuts ...int) (events, sent string, err string) {
	s := newServer(t, opts)
	s.mem.buffers.Poison = false // it is the input that must not be kept here
	s.on = on
	var rest []byte
	from := 0
	for _, to := range append(cuts, len(b)) {
		rest = append(bytes.Clone(rest), b[from:to]...)
		from = to
		n, e := s.c.Dispatch(rest)
		if e != nil {
			err = e.Error()
			break
		}
		keep := bytes.Clone(rest[n:])
		for i := range rest {
			rest[i] = 0xdb
		}
		rest = keep
	}
	events = joinData(s.drain())
	w := newWire()
	sent = joinData(w.read(t, s.out.take()))
	s.close()
	return events, sent, err
}

// answering answers what is complete, and gives some streams up early.
func answering(x *serverStream, e string) {
	switch {
	case strings.Contains(e, "/reset"):
		x.x.Reset(http.ResetLocal)
	case strings.HasSuffix(e, "END") && strings.HasPrefix(e, "headers"), strings.HasPrefix(e, "trailers"):
		x.respond("200", "ok")
	}
}

// joinData joins consecutive data events of the same stream. The last of them tells whether the stream has ended.
func joinData(s string) string {
	var out []string
	for _, l := range strings.Split(s, "\n") {
		id, rest, _ := strings.Cut(l, " ")
		if d, ok := strings.CutPrefix(rest, "data \""); ok && len(out) > 0 {
			lastID, last, _ := strings.Cut(out[len(out)-1], " ")
			if lastID == id && strings.HasPrefix(last, "data \"") && strings.HasSuffix(last, `"`) {
				out[len(out)-1] = strings.TrimSuffix(out[len(out)-1], `"`) + d
				continue
			}
		}
		out = append(out, l)
	}
	return strings.Join(out, "\n")
}

// conversation is a client's side with everything in it.
func conversation() []byte {
	w := newWire().hello()
	w.get(1, "cookie=a", "cookie=b", "x-a=some value").post(3, "content-length=6").raw(0, 8, 3, "\x02abc\x00\x00")
	w.raw(6, 0, 0, "12345678").raw(2, 0, 9, "\x00\x00\x00\x00\x10").raw(0x55, 1, 3, "unknown").data(3, false, "def").headers(3, true, "x-t=1")
	b := string(w.block(":method=GET", ":scheme=http", ":path=/long", ":authority=a", "x-long="+strings.Repeat("~", 100), "x-b=c"))
	w.raw(1, 0x29, 5, "\x02\x00\x00\x00\x03\x10"+b[:5]+"\x00\x00").raw(9, 0, 5, b[5:30]).raw(9, 0, 5, b[30:31]).raw(9, 4, 5, b[31:])
	w.raw(4, 1, 0, "").raw(4, 0, 0, "\x00\x04\x00\x00\x10\x00").update(0, 1000)
	w.headers(7, false, ":method=POST", ":scheme=http", ":path=/reset", ":authority=a").data(7, true, "late").update(7, 9)
	w.headers(9, false, ":method=POST", ":scheme=http", ":path=/hang", ":authority=a")
	w.headers(11, false, ":method=POST", ":scheme=http", ":path=/x", ":authority=a").data(11, false, "").data(11, true, "").raw(3, 0, 11, "\x00\x00\x00\x08")
	w.raw(7, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00bye")
	return w.bytes()
}

// TestEverySplit: it does not matter how the bytes are cut: once, at each place, and byte by byte.
func TestEverySplit(t *testing.T) {
	b := conversation()
	events, sent, err := replay(t, h2.DefaultOptions(), b)
	if err != "" || !strings.Contains(events, "goaway") {
		t.Fatalf("%q\n%s", err, events)
	}
	check := func(cuts ...int) {
		e, s, err2 := replay(t, h2.DefaultOptions(), b, cuts...)
		if e != events || s != sent || err2 != err {
			t.Fatalf("cut at %v: error %q", cuts, err2)
		}
	}
	var all []int
	for i := 1; i < len(b); i++ {
		check(i)
		all = append(all, i)
	}
	check(all...)
}

// TestEverySplitOfErrors: an error is found with the same byte, or a later one, and with the same words.
func TestEverySplitOfErrors(t *testing.T) {
	for _, in := range []func(w *wire){
		func(w *wire) { w.get(1, "X=1") },
		func(w *wire) { w.get(2) },
		func(w *wire) { hang(w, false).raw(0, 8, 1, "\x09abc") },
		func(w *wire) { w.raw(1, 1, 1, "\x82").raw(9, 4, 3, "\x86") },
		func(w *wire) { w.raw(1, 5, 1, "\x00\x05a") },
		func(w *wire) { w.raw(0x55, 0, 0, strings.Repeat("x", 20)).raw(8, 0, 0, "\x00\x00\x00\x00") },
	} {
		w := newWire().hello()
		in(w)
		b := w.bytes()
		events, sent, err := replay(t, h2.DefaultOptions(), b)
		if err == "" {
			t.Fatal("no error")
		}
		for i := 1; i < len(b); i++ {
			e, s, err2 := replay(t, h2.DefaultOptions(), b, i)
			if e != events || s != sent || err2 != err {
				t.Fatalf("cut at %d: %q, want %q\n%s\n%s", i, err2, err, e, s)
			}
		}
	}
}

// acting returns a handler that does what acts say, one act a head.
func acting(acts []byte) func(x *serverStream, e string) {
	return func(x *serverStream, e string) {
		if !strings.HasPrefix(e, "headers") {
			answering(x, e)
			return
		}
		act := byte(1)
		if len(acts) > 0 {
			act, acts = acts[0], acts[1:]
		}
		switch act % 9 {
		case 1:
			answering(x, e)
		case 2:
			x.respond("200", strings.Repeat("b", 100000))
		case 3:
			x.x.Reset(http.ResetLocal)
		case 4:
			x.x.ReadDisable(true)
		case 5:
			x.start()
			x.body(strings.Repeat("c", 70000), false)
			x.x.Reset(http.ResetProtocolError)
		case 6:
			x.s.c.GoAway(act > 100)
		case 7:
			x.start()
			x.body(strings.Repeat("d", 66000), false)
			x.resp.Init(&x.arena)
			x.resp.AddName("x-t", "1")
			x.x.EncodeTrailers(&x.resp)
		case 8:
			x.s.c.OnHighWatermark()
			x.respond("200", "eee")
			x.s.c.OnLowWatermark()
		}
	}
}

func FuzzServer(f *testing.F) {
	f.Add(conversation()[24:], uint16(7), false, []byte{1, 2, 3, 4, 5, 6, 7, 8})
	for _, in := range []func(w *wire){
		func(w *wire) { w.get(1, "X=1").get(3) },
		func(w *wire) { w.post(1, "content-length=3").data(1, true, "abcd").get(3) },
		func(w *wire) { hang(w, true).update(1, 1<<31-1).raw(8, 0, 1, "\x00\x00\x00\x00") },
		func(w *wire) {
			hang(w, false).raw(4, 0, 0, "\x00\x04\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00").raw(4, 0, 0, "\x00\x04\x7f\xff\xff\xff")
		},
	} {
		w := newWire()
		w.fr.WriteSettings()
		in(w)
		f.Add(w.bytes(), uint16(30), true, []byte{7, 2, 5})
	}
	f.Fuzz(func(t *testing.T, b []byte, cut uint16, streamErrors bool, acts []byte) {
		opts := h2.DefaultOptions()
		opts.StreamErrorOnInvalid, opts.AllowConnect = streamErrors, streamErrors
		opts.MaxConcurrentStreams, opts.MaxHeaders, opts.MaxHeaderBytes = 10, 20, 4000
		b = append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), b...)
		events, sent, err := replayWith(t, opts, acting(acts), b)
		e, s, err2 := replayWith(t, opts, acting(acts), b, int(cut)%(len(b)+1))
		if e != events || s != sent || err2 != err {
			t.Fatalf("cut at %d differs: %q, %q\n%s\n-\n%s\n--\n%s\n-\n%s", int(cut)%(len(b)+1), err, err2, events, e, sent, s)
		}
	})
}

func FuzzClient(f *testing.F) {
	w := newWire()
	w.fr.WriteSettings()
	w.headers(1, false, ":status=103").headers(1, false, ":status=200", "content-length=3").data(1, true, "abc")
	w.headers(3, true, ":status=204").raw(3, 0, 5, "\x00\x00\x00\x07").raw(7, 0, 0, "\x00\x00\x00\x05\x00\x00\x00\x00")
	f.Add(w.bytes(), uint16(20))
	w.fr.WriteSettings()
	w.raw(4, 1, 0, "").headers(1, false, ":status=200").update(3, 9).headers(1, true, "x-t=1").raw(6, 0, 0, "12345678")
	f.Add(w.bytes(), uint16(3))
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		run := func(cuts ...int) string {
			c := newClient(t, h2.DefaultOptions())
			c.mem.buffers.Poison = false
			c.get("/1")
			c.request(false, ":method=POST", ":scheme=http", ":path=/2", ":authority=a").body(strings.Repeat("x", 70000), true)
			c.request(true, ":method=HEAD", ":scheme=http", ":path=/3", ":authority=a")
			var rest []byte
			from := 0
			for _, to := range append(cuts, len(b)) {
				rest = append(bytes.Clone(rest), b[from:to]...)
				from = to
				n, err := c.c.Dispatch(rest)
				if err != nil {
					c.log("%s", err)
					break
				}
				rest = bytes.Clone(rest[n:])
			}
			newWire().read(t, c.out.take())
			e := joinData(c.drain())
			c.close()
			return e
		}
		if a, b := run(), run(int(cut)%(len(b)+1)); a != b {
			t.Fatalf("cut at %d differs:\n%s\n--\n%s", cut, a, b)
		}
	})
}
