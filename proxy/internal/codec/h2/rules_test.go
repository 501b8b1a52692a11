package h2_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h2"
)

// rule is one input to a server, after the preface, and what must come of it. The handler answers each request's head with 200 and
// "ok", but those for /hang.
type rule struct {
	name   string
	in     func(w *wire)
	frames string // what is sent, one frame a line, without SETTINGS
	err    string // "": the connection goes on
	events string // "*": not compared
}

const okFrames = "1 HEADERS :status=\"200\"\n1 DATA \"ok\" END"

func runRules(t *testing.T, opts h2.Options, rules []rule) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			s := newServer(t, opts)
			s.on = func(x *serverStream, e string) {
				if strings.HasPrefix(e, "headers") && !strings.Contains(e, "/hang") {
					x.respond("200", "ok")
				}
			}
			w := newWire().hello()
			r.in(w)
			if got := s.feed(w.bytes()); got != r.err {
				t.Errorf("error %q, want %q", got, r.err)
			}
			var kept []string
			for _, l := range strings.Split(newWire().read(t, s.out.take()), "\n") {
				if !strings.HasPrefix(l, "SETTINGS") && !strings.HasSuffix(l, "WINDOW_UPDATE 25100289") {
					kept = append(kept, l)
				}
			}
			eq(t, "frames", strings.Join(kept, "\n"), r.frames)
			if r.events != "*" {
				eq(t, "events", s.drain(), r.events)
			}
			if r.err != "" && s.c.Active() != 0 {
				t.Errorf("%d streams survive the error", s.c.Active())
			}
		})
	}
}

func head(more ...string) func(w *wire) { return func(w *wire) { w.get(1, more...) } }

func reqHead(e bool, fields ...string) func(w *wire) {
	return func(w *wire) { w.headers(1, e, fields...) }
}

func hang(w *wire, e bool) *wire {
	return w.headers(1, e, ":method=POST", ":scheme=http", ":path=/hang", ":authority=a")
}

const (
	badHeader  = `1 reset "protocol error" http2.invalid.header.field`
	badMessage = `1 reset "protocol error" http2.violation.of.messaging.rule`
	badBody    = `1 reset "protocol error" http2.remote_reset`
)

// TestRequestHead: what a request's head may look like (RFC 9113, section 8). By default a bad one ends the connection without GOAWAY.
func TestRequestHead(t *testing.T) {
	get := []string{":method=GET", ":scheme=http", ":path=/", ":authority=a"}
	with := func(i int, f string) func(w *wire) {
		fields := append([]string{}, get...)
		fields[i] = f
		return reqHead(true, fields...)
	}
	bad := func(name string, in func(w *wire), err string) rule { return rule{name, in, "", err, badHeader} }
	wrong := func(name string, in func(w *wire), err string) rule { return rule{name, in, "", err, badMessage} }
	good := func(name string, in func(w *wire)) rule { return rule{name, in, okFrames, "", "*"} }
	runRules(t, h2.DefaultOptions(), []rule{
		good("plain", head()),
		good("value with blanks", head("x-a= a ")),
		good("underscore", head("x_a=b")),
		good("te trailers", head("te=trailers")),
		good("te in capitals", head("te=Trailers")),
		good("path with odd characters", with(2, ":path=/\xff\"<")),
		good("scheme ftp", with(1, ":scheme=ftp")),
		good("odd method", with(0, ":method=foo~")),
		good("OPTIONS *", reqHead(true, ":method=OPTIONS", ":scheme=http", ":path=*", ":authority=a")),
		good("relative path of another scheme", reqHead(true, ":method=GET", ":scheme=ftp", ":path=x", ":authority=a")),
		good("content-length 0", head("content-length=0")),
		{"host instead of authority", reqHead(true, ":method=GET", ":scheme=http", ":path=/", "x-a=1", "host=h"), okFrames, "",
			"1 headers :method=\"GET\" :scheme=\"http\" :path=\"/\" :authority=\"h\" x-a=\"1\" END\n1 complete"},
		{"host beside authority", head("host=h"), okFrames, "",
			"1 headers :method=\"GET\" :scheme=\"http\" :path=\"/\" :authority=\"a\" END\n1 complete"},
		{"cookies", head("cookie=a", "x-a=1", "cookie=b", "cookie=c"), okFrames, "",
			"1 headers :method=\"GET\" :scheme=\"http\" :path=\"/\" :authority=\"a\" x-a=\"1\" cookie=\"a; b; c\" END\n1 complete"},

		bad("upper-case name", head("X-A=1"), "invalid header name"),
		bad("empty name", head("=1"), "invalid header name"),
		bad("name with a blank", head("x a=1"), "invalid header name"),
		bad("NUL", head("x-a=a\x00"), "invalid header value"),
		bad("CR", head("x-a=a\r"), "invalid header value"),
		bad("LF", head("x-a=a\n"), "invalid header value"),
		bad("connection", head("connection=close"), "connection-specific header"),
		bad("keep-alive", head("keep-alive=1"), "connection-specific header"),
		bad("proxy-connection", head("proxy-connection=close"), "connection-specific header"),
		bad("transfer-encoding", head("transfer-encoding=chunked"), "connection-specific header"),
		bad("upgrade", head("upgrade=h2c"), "connection-specific header"),
		bad("te gzip", head("te=gzip"), "te other than trailers"),
		bad("content-length words", head("content-length=1a"), "invalid content-length"),
		bad("content-length empty", head("content-length="), "invalid content-length"),
		bad("content-length huge", head("content-length=9999999999999999999"), "invalid content-length"),
		bad("content-length twice", head("content-length=0", "content-length=0"), "invalid content-length"),
		bad("authority empty", with(3, ":authority="), "invalid pseudo header"),
		bad("authority with path", with(3, ":authority=a/b"), "invalid pseudo header"),
		bad("authority with a user", with(3, ":authority=u@a"), "invalid pseudo header"),
		bad("authority above ASCII", with(3, ":authority=a\x80"), "invalid pseudo header"),
		bad("host empty", reqHead(true, ":method=GET", ":scheme=http", ":path=/", "host="), "invalid header value"),
		bad("host with a user", head("host=u@a"), "invalid header value"),
		bad("host bad", head("host=a/b"), "invalid header value"),
		bad("host twice", reqHead(true, ":method=GET", ":scheme=http", ":path=/", "host=b", "host=c"), "invalid header value"),
		bad("path twice", reqHead(true, ":method=GET", ":scheme=http", ":path=/", ":path=/", ":authority=a"), "invalid pseudo header"),
		bad("path empty", with(2, ":path="), "invalid pseudo header"),
		bad("path with blank", with(2, ":path=/a b"), "invalid pseudo header"),
		bad("method empty", with(0, ":method="), "invalid pseudo header"),
		bad("method with blank", with(0, ":method=G T"), "invalid pseudo header"),
		bad("scheme empty", with(1, ":scheme="), "invalid pseudo header"),
		bad("scheme with slash", with(1, ":scheme=h/p"), "invalid pseudo header"),
		bad("scheme with digit first", with(1, ":scheme=1a"), "invalid pseudo header"),
		bad("pseudo after regular", reqHead(true, ":method=GET", ":scheme=http", ":authority=a", "x-a=b", ":path=/"), "pseudo header after regular header"),
		bad("unknown pseudo", head(":x=y"), "invalid pseudo header"),
		bad("status", head(":status=200"), "invalid pseudo header"),
		bad("extended CONNECT is off", reqHead(false, ":method=CONNECT", ":protocol=websocket", ":scheme=http", ":path=/", ":authority=a"), "invalid pseudo header"),

		wrong("no method", reqHead(true, ":scheme=http", ":path=/", ":authority=a"), "missing pseudo header"),
		wrong("no scheme", reqHead(true, ":method=GET", ":path=/", ":authority=a"), "missing pseudo header"),
		wrong("no path", reqHead(true, ":method=GET", ":scheme=http", ":authority=a"), "missing pseudo header"),
		wrong("no authority", reqHead(true, ":method=GET", ":scheme=http", ":path=/"), "missing pseudo header"),
		wrong("nothing", func(w *wire) { w.raw(1, 5, 1, "") }, "missing pseudo header"),
		wrong("CONNECT with path", reqHead(false, ":method=CONNECT", ":scheme=http", ":path=/", ":authority=a"), "missing pseudo header"),
		wrong("CONNECT without authority", reqHead(false, ":method=CONNECT"), "missing pseudo header"),
		wrong("relative path", with(2, ":path=abc"), ":path is neither absolute nor *"),
		wrong("GET *", with(2, ":path=*"), ":path is neither absolute nor *"),
		wrong("content-length without body", head("content-length=5"), "content-length does not match the body"),
	})
}

// TestBody: DATA and trailers against what was announced.
func TestBody(t *testing.T) {
	post := "1 headers :method=\"POST\" :scheme=\"http\" :path=\"/hang\" :authority=\"a\"\n"
	hangPost := func(w *wire, more ...string) *wire {
		return w.headers(1, false, append([]string{":method=POST", ":scheme=http", ":path=/hang", ":authority=a"}, more...)...)
	}
	long := "1 headers :method=\"POST\" :scheme=\"http\" :path=\"/hang\" :authority=\"a\" content-length=\"5\"\n"
	runRules(t, h2.DefaultOptions(), []rule{
		{"body and trailers", func(w *wire) { hangPost(w).data(1, false, "ab").data(1, false, "c").headers(1, true, "x-t=1") }, "", "",
			post + "1 data \"ab\"\n1 data \"c\"\n1 trailers x-t=\"1\""},
		{"padding", func(w *wire) { hangPost(w).raw(0, 9, 1, "\x03abc\x00\x00\x00") }, "", "", post + `1 data "abc" END`},
		{"only padding", func(w *wire) { hangPost(w).raw(0, 9, 1, "\x03\x00\x00\x00") }, "", "", post + `1 data "" END`},
		{"empty end", func(w *wire) { hangPost(w).data(1, false, "a").data(1, true, "") }, "", "", post + "1 data \"a\"\n1 data \"\" END"},
		{"right length", func(w *wire) { hangPost(w, "content-length=5").data(1, false, "ab").data(1, true, "cde") }, "", "",
			long + "1 data \"ab\"\n1 data \"cde\" END"},
		{"too short", func(w *wire) { hangPost(w, "content-length=5").data(1, true, "ab") }, "1 RST_STREAM PROTOCOL_ERROR", "",
			long + badBody},
		{"too long", func(w *wire) { hangPost(w, "content-length=5").data(1, false, "abcdef") }, "1 RST_STREAM PROTOCOL_ERROR", "",
			long + badBody},
		{"too short with trailers", func(w *wire) { hangPost(w, "content-length=5").data(1, false, "ab").headers(1, true, "x-t=1") }, "",
			"content-length does not match the body", long + "1 data \"ab\"\n" + badMessage},
		{"trailers do not end", func(w *wire) { hangPost(w).headers(1, false, "x-t=1") }, "", "trailers without END_STREAM", post + badMessage},
		{"pseudo in trailers", func(w *wire) { hangPost(w).headers(1, true, ":path=/") }, "", "invalid pseudo header", post + badHeader},
		{"connection in trailers", func(w *wire) { hangPost(w).headers(1, true, "connection=x") }, "", "connection-specific header", post + badHeader},
		{"window update of 0", func(w *wire) { hang(w, false).raw(8, 0, 1, "\x00\x00\x00\x00") }, "1 RST_STREAM PROTOCOL_ERROR", "", "*"},
		{"data after end", func(w *wire) { hang(w, true).data(1, false, "x") }, "1 RST_STREAM STREAM_CLOSED", "", "*"},
		{"trailers after end", func(w *wire) { hang(w, true).headers(1, true, "x-t=1") }, "1 RST_STREAM STREAM_CLOSED", "", "*"},
		{"data on a closed stream", func(w *wire) { w.get(1).data(1, false, "x").get(3) }, okFrames + "\n" + strings.ReplaceAll(okFrames, "1 ", "3 "), "", "*"},
		{"headers on a stream that the client has ended", func(w *wire) { w.get(1).headers(1, true, "x-new=entry") },
			okFrames + "\nGOAWAY 1 STREAM_CLOSED \"HEADERS: stream closed\"", "HEADERS: stream closed", "*"},
		{"headers on a stream that the client has reset", func(w *wire) { hang(w, false).raw(3, 0, 1, "\x00\x00\x00\x08").headers(1, true, "x-new=entry") },
			"GOAWAY 1 STREAM_CLOSED \"HEADERS: stream closed\"", "HEADERS: stream closed", "*"},
		{"headers on a stream that we have reset", func(w *wire) {
			w.headers(1, false, ":method=POST", ":scheme=http", ":path=/hang", ":authority=a", "content-length=1").data(1, false, "ab").headers(1, true, "x-new=entry").get(3, "x-new=entry")
		}, "1 RST_STREAM PROTOCOL_ERROR\n" + strings.ReplaceAll(okFrames, "1 ", "3 "), "", "*"},
		{"lower stream id", func(w *wire) { w.get(5).get(3) }, strings.ReplaceAll(okFrames, "1 ", "5 "), "", "*"},
	})
}

// TestFrames: the rules of each frame type (RFC 9113, section 6), all of them errors of the connection with a GOAWAY.
func TestFrames(t *testing.T) {
	type fr = struct {
		name string
		in   func(w *wire)
		last int
		code string
		text string
	}
	raw := func(typ, flags uint8, id uint32, p string) func(w *wire) {
		return func(w *wire) { w.raw(typ, flags, id, p) }
	}
	setting := func(id byte, v string) func(w *wire) { return raw(4, 0, 0, "\x00"+string(id)+v) }
	var rules []rule
	for _, f := range []fr{
		{"data on stream 0", raw(0, 0, 0, "x"), 0, "PROTOCOL_ERROR", "DATA: stream_id == 0"},
		{"data on an idle stream", raw(0, 0, 1, "x"), 0, "PROTOCOL_ERROR", "DATA: stream in idle"},
		{"data with too much padding", func(w *wire) { hang(w, false).raw(0, 8, 1, "\x04abc") }, 1, "PROTOCOL_ERROR", "DATA: invalid padding"},
		{"data with no room for padding", func(w *wire) { hang(w, false).raw(0, 8, 1, "") }, 1, "PROTOCOL_ERROR", "DATA: invalid padding"},
		{"headers on stream 0", raw(1, 5, 0, "\x82"), 0, "PROTOCOL_ERROR", "frame needs a stream"},
		{"headers on an even stream", func(w *wire) { w.get(2) }, 0, "PROTOCOL_ERROR", "invalid stream_id"},
		{"headers with too much padding", raw(1, 0xd, 1, "\x04abc"), 0, "PROTOCOL_ERROR", "HEADERS: invalid padding"},
		{"headers with half a priority", raw(1, 0x25, 1, "abcd"), 0, "FRAME_SIZE_ERROR", "wrong payload length"},
		{"headers that depend on themselves", raw(1, 0x25, 1, "\x00\x00\x00\x01\x00\x82"), 0, "PROTOCOL_ERROR", "depend on itself"},
		{"invalid index", raw(1, 5, 1, "\x80"), 1, "COMPRESSION_ERROR", "header compression error"},
		{"half a field", raw(1, 5, 1, "\x00\x05a"), 1, "COMPRESSION_ERROR", "header compression error"},
		{"table size update too large", raw(1, 5, 1, "\x3f\xe2\x1f"), 1, "COMPRESSION_ERROR", "header compression error"},
		{"priority on stream 0", raw(2, 0, 0, "12345"), 0, "PROTOCOL_ERROR", "frame needs a stream"},
		{"priority too short", raw(2, 0, 1, "1234"), 0, "FRAME_SIZE_ERROR", "wrong payload length"},
		{"rst on stream 0", raw(3, 0, 0, "1234"), 0, "PROTOCOL_ERROR", "frame needs a stream"},
		{"rst on an idle stream", raw(3, 0, 1, "1234"), 0, "PROTOCOL_ERROR", "frame on an idle stream"},
		{"rst too short", func(w *wire) { hang(w, false).raw(3, 0, 1, "123") }, 1, "FRAME_SIZE_ERROR", "wrong payload length"},
		{"settings on a stream", raw(4, 0, 1, ""), 0, "PROTOCOL_ERROR", "frame must not have a stream"},
		{"settings of odd length", raw(4, 0, 0, "12345"), 0, "FRAME_SIZE_ERROR", "wrong payload length"},
		{"settings ack with payload", raw(4, 1, 0, "123456"), 0, "FRAME_SIZE_ERROR", "wrong payload length"},
		{"settings ack too many", func(w *wire) { w.raw(4, 1, 0, "").raw(4, 1, 0, "") }, 0, "PROTOCOL_ERROR", "unexpected SETTINGS ACK"},
		{"push 2", setting(2, "\x00\x00\x00\x02"), 0, "PROTOCOL_ERROR", "SETTINGS: invalid value"},
		{"window too large", setting(4, "\x80\x00\x00\x00"), 0, "FLOW_CONTROL_ERROR", "SETTINGS: invalid SETTINGS_INITIAL_WINDOW_SIZE"},
		{"frame size too small", setting(5, "\x00\x00\x3f\xff"), 0, "PROTOCOL_ERROR", "SETTINGS: invalid value"},
		{"frame size too large", setting(5, "\x01\x00\x00\x00"), 0, "PROTOCOL_ERROR", "SETTINGS: invalid value"},
		{"connect 2", setting(8, "\x00\x00\x00\x02"), 0, "PROTOCOL_ERROR", "SETTINGS: invalid value"},
		{"push promise", raw(5, 4, 1, "\x00\x00\x00\x02\x82"), 0, "PROTOCOL_ERROR", "PUSH_PROMISE: not allowed"},
		{"ping on a stream", raw(6, 0, 1, "12345678"), 0, "PROTOCOL_ERROR", "frame must not have a stream"},
		{"ping too long", raw(6, 0, 0, "123456789"), 0, "FRAME_SIZE_ERROR", "wrong payload length"},
		{"goaway on a stream", raw(7, 0, 1, "12345678"), 0, "PROTOCOL_ERROR", "frame must not have a stream"},
		{"goaway too short", raw(7, 0, 0, "1234567"), 0, "FRAME_SIZE_ERROR", "wrong payload length"},
		{"window update of 0", raw(8, 0, 0, "\x00\x00\x00\x00"), 0, "PROTOCOL_ERROR", "WINDOW_UPDATE: window_size_increment == 0"},
		{"window update too short", raw(8, 0, 0, "\x00\x00\x01"), 0, "FRAME_SIZE_ERROR", "wrong payload length"},
		{"window update on an idle stream", raw(8, 0, 1, "\x00\x00\x00\x01"), 0, "PROTOCOL_ERROR", "frame on an idle stream"},
		{"window above its limit", raw(8, 0, 0, "\x7f\xff\x00\x01"), 0, "FLOW_CONTROL_ERROR", "WINDOW_UPDATE: connection window overflow"},
		{"continuation alone", raw(9, 4, 1, "\x82"), 0, "PROTOCOL_ERROR", "CONTINUATION: unexpected"},
		{"continuation of another stream", func(w *wire) { w.raw(1, 1, 1, "\x82").raw(9, 4, 3, "\x86") }, 1, "PROTOCOL_ERROR",
			"unexpected non-CONTINUATION frame or stream_id is invalid"},
		{"unknown frame within headers", func(w *wire) { w.raw(1, 1, 1, "\x82").raw(0x55, 4, 1, "\x86") }, 1, "PROTOCOL_ERROR",
			"unexpected non-CONTINUATION frame or stream_id is invalid"},
		{"data frame above the limit", func(w *wire) { hang(w, false).raw(0, 0, 1, strings.Repeat("x", 16385)) }, 1, "FRAME_SIZE_ERROR", "too large frame size"},
		{"unknown frame above the limit", raw(0x55, 0, 0, strings.Repeat("x", 16385)), 0, "FRAME_SIZE_ERROR", "too large frame size"},
	} {
		rules = append(rules, rule{f.name, f.in, fmt.Sprintf("GOAWAY %d %s %q", f.last, f.code, f.text), f.text, "*"})
	}
	runRules(t, h2.DefaultOptions(), rules)
	runRules(t, h2.DefaultOptions(), []rule{
		{"data frame at the limit", func(w *wire) { hang(w, false).raw(0, 0, 1, strings.Repeat("x", 16384)) }, "", "", "*"},
		{"unknown frames", func(w *wire) { w.raw(0x55, 0xff, 0, "abc").raw(0xff, 0, 7, "").get(1) }, okFrames, "", "*"},
		{"unknown setting", setting(0x77, "abcd"), "", "", ""},
		{"ping", raw(6, 0, 0, "12345678"), "PING 3132333435363738 END", "", ""},
		{"ping ack", raw(6, 1, 0, "12345678"), "", "", ""},
		{"priority", raw(2, 0, 7, "\x00\x00\x00\x07\x00"), "", "", ""},
		{"goaway, then a request", func(w *wire) { w.raw(7, 0, 0, "\x00\x00\x00\x00\x00\x00\x00\x00debug").get(1) }, okFrames, "", "*"},
		{"continuation", func(w *wire) {
			b := string(w.block(":method=GET", ":scheme=http", ":path=/", ":authority=a", "x-a=abcdefgh"))
			w.raw(1, 1, 1, b[:2]).raw(9, 0xfb, 1, b[2:7]).raw(9, 0, 1, b[7:8]).raw(9, 4, 1, b[8:])
		}, okFrames, "", "1 headers :method=\"GET\" :scheme=\"http\" :path=\"/\" :authority=\"a\" x-a=\"abcdefgh\" END\n1 complete"},
		{"stream window update of 0", func(w *wire) { hang(w, true).raw(8, 0, 1, "\x00\x00\x00\x00") }, "1 RST_STREAM PROTOCOL_ERROR", "", "*"},
		{"stream window above its limit", func(w *wire) { hang(w, true).raw(8, 0, 1, "\x7f\xff\x00\x01") }, "1 RST_STREAM FLOW_CONTROL_ERROR", "", "*"},
		{"stream window at its limit", func(w *wire) { hang(w, true).raw(8, 0, 1, "\x7f\xff\x00\x00") }, "", "", "*"},
	})
}

// TestStreamErrorOnInvalid: with the option only the stream is reset.
func TestStreamErrorOnInvalid(t *testing.T) {
	opts := h2.DefaultOptions()
	opts.StreamErrorOnInvalid = true
	next := "1 RST_STREAM PROTOCOL_ERROR\n3 HEADERS :status=\"200\"\n3 DATA \"ok\" END"
	runRules(t, opts, []rule{
		{"bad name", func(w *wire) { w.get(1, "X-A=1", "x-b=2").get(3, "x-b=2") }, next, "",
			"1 reset \"local reset\" http2.invalid.header.field\n3 headers :method=\"GET\" :scheme=\"http\" :path=\"/\" :authority=\"a\" x-b=\"2\" END\n3 complete"},
		{"missing", func(w *wire) { w.headers(1, true, ":method=GET").get(3) }, next, "",
			"1 reset \"local reset\" http2.violation.of.messaging.rule\n3 headers :method=\"GET\" :scheme=\"http\" :path=\"/\" :authority=\"a\" END\n3 complete"},
	})
}

// TestOthersOfTheConnection: streams that an error of the connection, or of another stream, takes along have the codec's details.
func TestOthersOfTheConnection(t *testing.T) {
	const broken = "1 reset \"protocol error\" codec_error:The_user_callback_function_failed"
	for name, tt := range map[string]struct {
		in     func(w *wire)
		events []string
	}{
		"another's head": {func(w *wire) { w.get(3, "X-A=1") }, []string{"3 reset \"protocol error\" http2.invalid.header.field", broken}},
		"frame size":     {func(w *wire) { w.raw(6, 0, 0, "1234567") }, []string{broken}},
		"compression":    {func(w *wire) { w.raw(1, 5, 3, "\xff") }, []string{"3 reset \"protocol error\" codec_error:The_user_callback_function_failed", broken}},
		"push":           {func(w *wire) { w.raw(5, 4, 1, "\x00\x00\x00\x02") }, []string{"1 reset \"protocol error\" http2.unknown.nghttp2.error"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, h2.DefaultOptions())
			w := newWire().hello()
			hang(w, true)
			s.feed(w.bytes())
			s.drain()
			tt.in(w)
			s.feed(w.bytes())
			got := strings.Split(s.drain(), "\n")
			slices.Sort(got)
			slices.Sort(tt.events)
			eq(t, "events", strings.Join(got, "\n"), strings.Join(tt.events, "\n"))
		})
	}
}

func TestUnderscores(t *testing.T) {
	opts := h2.DefaultOptions()
	opts.Underscores = h2.UnderscoresReject
	runRules(t, opts, []rule{{"reject", head("x_a=1"), "1 RST_STREAM INTERNAL_ERROR", "", `1 reset "remote reset" http2.unexpected_underscore`}})
	opts.Underscores = h2.UnderscoresDrop
	runRules(t, opts, []rule{{"drop", head("x_a=1", "x-b=2"), okFrames, "",
		"1 headers :method=\"GET\" :scheme=\"http\" :path=\"/\" :authority=\"a\" x-b=\"2\" END\n1 complete"}})
}

func TestResetByPeer(t *testing.T) {
	for code, want := range map[string]string{
		"\x00": `1 reset "remote reset" `, "\x01": `1 reset "protocol error" http2.remote_reset`,
		"\x07": `1 reset "remote refused stream reset" http2.remote_refuse`, "\x08": `1 reset "remote reset" http2.remote_reset`,
		"\x0a": `1 reset "remote error with CONNECT request" http2.remote_reset`,
	} {
		s := newServer(t, h2.DefaultOptions())
		w := newWire().hello()
		hang(w, true)
		s.feed(w.bytes())
		s.drain()
		s.feed(w.raw(3, 0, 1, "\x00\x00\x00"+code).bytes())
		eq(t, fmt.Sprintf("code %q", code), s.drain(), want)
	}
}

func TestPreface(t *testing.T) {
	for _, in := range []string{"GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"} {
		s := newServer(t, h2.DefaultOptions())
		if err := s.feed([]byte(in)); err != "bad client magic byte string" {
			t.Errorf("%q: %q", in, err)
		}
		if b := s.out.take(); len(b) != 0 {
			t.Errorf("%q: %d bytes were sent", in, len(b))
		}
	}
	s := newServer(t, h2.DefaultOptions())
	w := newWire()
	w.buf.WriteString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	if err := s.feed(w.raw(6, 0, 0, "12345678").bytes()); err != "SETTINGS expected" {
		t.Error(err)
	}
	eq(t, "frames", w.read(t, s.out.take()), "SETTINGS 1=4096 8=0 3=1024 4=16777216\n0 WINDOW_UPDATE 25100289\nGOAWAY 0 PROTOCOL_ERROR \"SETTINGS expected\"")
}

func TestSettingsOfOptions(t *testing.T) {
	opts := h2.DefaultOptions()
	opts.MaxConcurrentStreams, opts.InitialStreamWindow, opts.InitialConnWindow = 7, 70000, 90000
	opts.HpackTableSize, opts.AllowConnect = 1000, true
	opts.CustomSettings = []h2.Setting{{ID: 6, Value: 5}}
	s := newServer(t, opts)
	w := newWire()
	s.feed(w.hello().bytes())
	eq(t, "frames", w.read(t, s.out.take()), "SETTINGS 6=5 1=1000 8=1 3=7 4=70000\n0 WINDOW_UPDATE 24465\nSETTINGS ACK")
}
