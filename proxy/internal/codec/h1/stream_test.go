package h1_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
)

const ok2 = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

func TestPipeline(t *testing.T) {
	u := newUser(t, &std)
	in := get() + post("hi", "Content-Length: 2") + get()
	rest, err := u.feed(in, 0)
	if err != nil || rest != in[len(get()):] {
		t.Fatal(rest, err)
	}
	// Nothing of the second request is looked at before the first response is complete.
	if rest, err = u.feed(rest, 0); err != nil || rest != in[len(get()):] || len(u.reqs) != 1 {
		t.Fatal(rest, err, len(u.reqs))
	}
	u.reqs[0].respond("200", "ok")
	u.out.flush()
	if rest, err = u.feed(rest, 0); err != nil || rest != get() {
		t.Fatal(rest, err)
	}
	u.reqs[1].respond("200", "ok")
	u.out.flush()
	if rest, err = u.feed(rest, 0); err != nil || rest != "" {
		t.Fatal(rest, err)
	}
	u.reqs[2].respond("404", "")
	if d := cmp.Diff("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", u.out.flush()); d != "" {
		t.Error(d)
	}
	for i, r := range u.reqs {
		if r.closes {
			t.Errorf("request %d closes", i)
		}
	}
}

// A pipeline that is answered within the callbacks is worked off in one Dispatch.
func TestPipelineAnsweredAtOnce(t *testing.T) {
	u := newUser(t, &std)
	u.onEnd = func(r *userStream) { r.respond("200", "ok") }
	if rest, err := u.feed(get()+post("hi", "Content-Length: 2"), 0); err != nil || rest != "" {
		t.Fatal(rest, err)
	}
	if d := cmp.Diff(ok2+ok2, u.out.flush()); d != "" {
		t.Error(d)
	}
}

// A client that pipelines without reading is cut off when the third request begins before the first two responses are sent.
func TestResponseFlood(t *testing.T) {
	u := newUser(t, &std)
	u.onEnd = func(r *userStream) { r.respond("200", "ok") }
	_, err := u.feed(strings.Repeat(get(), h1.DefaultMaxOutboundResponses), 0)
	if err != nil {
		t.Fatal("at the limit:", err)
	}
	_, err = u.feed(get(), 0)
	var e *codec.Err
	if !errors.As(err, &e) || e != h1.ErrFlood || !e.Flood || e.Stat != "response_flood" {
		t.Fatal("over the limit:", err)
	}
	if d := cmp.Diff(ok2+ok2, u.out.flush()); d != "" {
		t.Error(d)
	}
	// Had they been sent, all would be well.
	u = newUser(t, &std)
	u.onEnd = func(r *userStream) { r.respond("200", "ok") }
	for range 10 {
		if _, err := u.feed(get()+get(), 0); err != nil {
			t.Fatal(err)
		}
		u.out.flush()
	}
	// One sent, one not.
	u = newUser(t, &std)
	u.onEnd = func(r *userStream) { r.respond("200", "ok") }
	if _, err := u.feed(get()+get(), 0); err != nil {
		t.Fatal(err)
	}
	u.out.buf.Drain(len(ok2))
	if _, err := u.feed(get(), 0); err != nil {
		t.Fatal(err)
	}
}

func TestBadSecondRequest(t *testing.T) {
	u := newUser(t, &std)
	u.onEnd = func(r *userStream) { r.respond("200", "ok") }
	if _, err := u.feed(get()+"BAD\r\n\r\n", 0); err == nil {
		t.Fatal("no error")
	}
	want := ok2 + "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 11\r\n\r\nBad Request"
	if d := cmp.Diff(want, u.out.flush()); d != "" {
		t.Error(d)
	}
	// What comes after an error is swallowed.
	if n, err := u.s.Dispatch([]byte(get())); n != len(get()) || err != nil {
		t.Error(n, err)
	}
}

// A response that is complete before its request ends the connection, and the rest of the request is swallowed.
func TestEarlyResponse(t *testing.T) {
	for _, body := range []string{"", "he", "hello"} {
		u := newUser(t, &std)
		u.onHead = func(r *userStream, end bool) { r.respond("403", "no") }
		if rest, err := u.feed(post(body, "Content-Length: 5"), 0); err != nil || rest != "" {
			t.Fatal(rest, err)
		}
		if !u.reqs[0].closes {
			t.Error("connection is kept")
		}
		want := lines("new 1", "head :method=POST|:path=/|:authority=a|content-length=5 end=false", "complete close=true")
		if d := cmp.Diff(want, u.events()); d != "" {
			t.Error(d)
		}
		if _, err := u.feed("llo"+get(), 0); err != nil || len(u.reqs) != 1 {
			t.Error("the connection is still read:", err)
		}
	}
}

func TestCloseAfter(t *testing.T) {
	ten := &h1.Options{AcceptHTTP10: true}
	for _, tt := range []struct {
		in   string
		want bool
	}{
		{get(), false},
		{get("Connection: close"), true},
		{get("Connection: keep-alive, CLOSE"), true},
		{get("Connection: keep-alive", "Connection: close"), true},
		{get("Proxy-Connection: close"), true},
		{get("Connection: closed"), false},
		{"GET / HTTP/1.0\r\n\r\n", true},
		{"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", false},
		{"GET / HTTP/1.2\r\nConnection: Keep-Alive\r\n\r\n", false},
		{"GET / HTTP/1.2\r\n\r\n", true},
		{"GET /\r\n", true},
	} {
		u := newUser(t, ten)
		if _, err := u.feed(tt.in, 0); err != nil {
			t.Fatal(err)
		}
		if got := u.reqs[0].s.CloseAfter(); got != tt.want {
			t.Errorf("%q: %v", tt.in, got)
		}
		u.reqs[0].respond("200", "ok")
		if u.reqs[0].closes != tt.want {
			t.Errorf("%q: response: %v", tt.in, u.reqs[0].closes)
		}
		u.feed(get(), 0)
		if got := len(u.reqs) == 1; got != tt.want {
			t.Errorf("%q: another request is taken: %v", tt.in, !got)
		}
	}
}

func TestProtocol(t *testing.T) {
	u := newUser(t, &h1.Options{AcceptHTTP10: true})
	u.onEnd = func(r *userStream) { r.respond("200", "ok") }
	u.feed("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"+get(), 0)
	if u.reqs[0].proto != http.HTTP10 || u.reqs[1].proto != http.HTTP11 {
		t.Error(u.reqs[0].proto, u.reqs[1].proto)
	}
	if d := cmp.Diff("HTTP/1.0"+ok2[8:]+ok2, u.out.flush()); d != "" {
		t.Error(d)
	}
}

// The answer to a head that could not be parsed is HTTP/1.1.
func TestErrorAnswerIsHTTP11(t *testing.T) {
	u := newUser(t, &h1.Options{AcceptHTTP10: true})
	if _, err := u.feed("GET / HTTP/1.0\r\nX Y: 1\r\n\r\n", 0); err == nil {
		t.Fatal("no error")
	}
	if s := u.out.flush(); !strings.HasPrefix(s, "HTTP/1.1 400") {
		t.Error(s)
	}
}

func TestServerTunnel(t *testing.T) {
	u := newUser(t, &std)
	u.merge = true
	if _, err := u.feed(get("Connection: Upgrade", "Upgrade: x")+"early", 0); err != nil {
		t.Fatal(err)
	}
	r := u.reqs[0]
	r.resp.AddConst(http.Status, "101")
	r.s.EncodeHeaders(&r.resp, false)
	r.data("down", false)
	u.feed("GET / HTTP/1.1\r\n", 0)
	if err := u.s.EOF(); err != nil {
		t.Fatal(err)
	}
	r.data("last", true)
	want := lines("new 1", "head :method=GET|:path=/|:authority=a|connection=Upgrade|upgrade=x end=false",
		"data earlyGET / HTTP/1.1\r\n end=true", "complete close=true")
	if d := cmp.Diff(want, u.events()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff("HTTP/1.1 101 Switching Protocols\r\n\r\ndownlast", u.out.flush()); d != "" {
		t.Error(d)
	}
}

// The end of a client's bytes is no event for requests other than tunnels; nothing is read after it.
func TestServerEOF(t *testing.T) {
	for _, in := range []string{"", get(), "GET", post("he", "Content-Length: 5")} {
		u := newUser(t, &std)
		u.feed(in, 0)
		u.log = nil
		if err := u.s.EOF(); err != nil {
			t.Fatal(err)
		}
		if rest, err := u.feed(get(), 0); rest != "" || err != nil {
			t.Error(rest, err)
		}
		if s := u.events(); s != "" {
			t.Errorf("%q: %s", in, s)
		}
	}
}

func TestDroppedUnderscoresAreCounted(t *testing.T) {
	u := newUser(t, &h1.Options{EnableTrailers: true, Underscores: h1.UnderscoresDrop})
	u.feed("POST / HTTP/1.1\r\nHost: a\r\nX_A: 1\r\nX_B: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX_T: 1\r\nB: 1\r\n\r\n", 0)
	if u.dropped != 3 {
		t.Errorf("%d counted", u.dropped)
	}
}

// Blank lines between requests do not make a stream.
func TestBlankLinesAreIdle(t *testing.T) {
	u := newUser(t, &std)
	if rest, err := u.feed("\r\n\n\r", 1); rest != "" || err != nil || len(u.reqs) != 0 {
		t.Error(rest, err, len(u.reqs))
	}
}

func TestServerWatermarks(t *testing.T) {
	u := newUser(t, &std)
	u.s.OnHighWatermark()
	u.feed(get(), 0)
	u.s.OnHighWatermark()
	u.s.OnLowWatermark()
	u.s.OnLowWatermark()
	u.reqs[0].respond("200", "")
	u.s.OnHighWatermark()
	u.s.OnLowWatermark()
	want := lines("new 1", "above", "head :method=GET|:path=/|:authority=a end=true", "below", "complete close=false")
	if d := cmp.Diff(want, u.events()); d != "" {
		t.Error(d)
	}
}

func TestClientWatermarks(t *testing.T) {
	u := newRouter(t, &h1.Options{})
	u.c.OnHighWatermark()
	u.get()
	u.c.OnLowWatermark()
	u.c.OnHighWatermark()
	u.feed(answer("", "Content-Length: 0"), 0)
	u.c.OnLowWatermark()
	want := lines("above", "below", "above", res("200", "content-length=0")+" end=true", done)
	if d := cmp.Diff(want, u.events()); d != "" {
		t.Error(d)
	}
}

// The user may reset its stream or destroy the codec within any callback.
func TestDestroyInCallbacks(t *testing.T) {
	ins := []string{get(), post("hello", "Content-Length: 5"), chunked("1\r\na\r\n0\r\nX: y\r\n\r\n"), "BAD\r\n\r\n", get("Connection: upgrade", "Upgrade: x") + "raw"}
	for _, in := range ins {
		for _, size := range []int{0, 1} {
			for at := 0; at < 6; at++ {
				for _, how := range []string{"destroy", "reset", "respond"} {
					u := newUser(t, &h1.Options{EnableTrailers: true})
					n := 0
					act := func(r *userStream) {
						// There is nobody to tell of the response's end within NewStream.
						if n++; n != at+1 || r.done || n == 1 && how == "respond" {
							return
						}
						switch how {
						case "destroy":
							u.s.Destroy()
						case "reset":
							r.s.Reset(http.ResetLocal)
						default:
							r.respond("200", "ok")
						}
					}
					u.onAny = act
					u.feed(in+get(), size)
				}
			}
		}
	}
}

func TestClientResetInCallbacks(t *testing.T) {
	ins := []string{answer("ok", "Content-Length: 2"), answer("2\r\nok\r\n0\r\nX: y\r\n\r\n", "Transfer-Encoding: chunked"), answer(""), "bad",
		"HTTP/1.1 100 C\r\n\r\n" + answer("", "Content-Length: 0")}
	for _, in := range ins {
		for _, size := range []int{0, 1} {
			for at := 0; at < 5; at++ {
				for _, how := range []string{"destroy", "reset"} {
					u := newRouter(t, &h1.Options{EnableTrailers: true})
					n := 0
					u.onData = func() {
						if n++; n != at+1 {
							return
						}
						if how == "destroy" {
							u.c.Destroy()
						} else {
							u.stream.Reset(http.ResetLocal)
						}
					}
					u.get()
					u.feed(in, size)
					u.c.EOF()
				}
			}
		}
	}
}

// A response that is ahead of its request is complete for its user; the connection is not reused.
func TestResponseAheadOfRequest(t *testing.T) {
	u := newRouter(t, &h1.Options{})
	if err := u.request(false, ":method", "POST", ":path", "/", ":authority", "h"); err != nil {
		t.Fatal(err)
	}
	u.data("abc", false)
	if _, err := u.feed(answer("", "Content-Length: 0"), 0); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(res("200", "content-length=0")+" end=true", u.events()); d != "" {
		t.Error(d)
	}
	u.data("d", true)
	if d := cmp.Diff(doneNot, u.events()); d != "" {
		t.Error(d)
	}
}

func TestCloseNotified(t *testing.T) {
	for in, want := range map[string]bool{
		answer("", "Content-Length: 0", "Connection: close"): true,
		answer("", "Content-Length: 0"):                      false,
		"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n":       true,
	} {
		u := newRouter(t, &h1.Options{})
		u.get()
		u.feed(in, 0)
		if u.c.CloseNotified() != want {
			t.Errorf("%q: %v", in, !want)
		}
	}
}

func TestWireBytes(t *testing.T) {
	u := newUser(t, &std)
	in := chunked("3\r\nabc\r\n0\r\n\r\n")
	var got codec.Bytes
	u.onComplete = func(r *userStream) { got = *r.s.WireBytes() }
	u.feed(in, 1)
	u.reqs[0].respond("200", "ok")
	// Header bytes are those of the fields, received ones without the blanks before values.
	want := codec.Bytes{HeaderReceived: fieldBytes(in, 1), Received: uint64(len(in)), HeaderSent: fieldBytes(ok2, 0), Sent: uint64(len(ok2))}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	r := newRouter(t, &h1.Options{})
	r.get()
	sent := r.out.flush()
	s := r.stream
	in = "HTTP/1.1 100 C\r\n\r\n" + answer("ok", "Content-Length: 2")
	r.onData = func() { got = *s.WireBytes() }
	r.feed(in, 0)
	// A head without fields counts 3 there, as in Envoy.
	want = codec.Bytes{HeaderReceived: 3 + uint64(len("Content-Length:2\r\n")), Received: uint64(len(in)), HeaderSent: fieldBytes(sent, 0), Sent: uint64(len(sent))}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestContinue(t *testing.T) {
	u := newUser(t, &std)
	u.feed(post("", "Expect: 100-continue", "Content-Length: 2"), 0)
	r := u.reqs[0]
	if r.h.Get(http.Expect) != "100-continue" {
		t.Error("expect is not reported")
	}
	r.resp.AddConst(http.Status, "100")
	r.s.Encode1xx(&r.resp)
	u.feed("ab", 0)
	r.respond("200", "ok")
	if d := cmp.Diff("HTTP/1.1 100 Continue\r\n\r\n"+ok2, u.out.flush()); d != "" {
		t.Error(d)
	}
	if r.closes {
		t.Error("closes")
	}
}

// fieldBytes is the size of a head's fields, less so much for each of them.
func fieldBytes(message string, less int) uint64 {
	head, _, _ := strings.Cut(message, "\r\n\r\n")
	_, fields, _ := strings.Cut(head, "\r\n")
	if fields != "" {
		fields += "\r\n"
	}
	return uint64(len(fields) - less*strings.Count(fields, "\r\n"))
}
