package h1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
)

// responseCase is bytes from an upstream that answer a request, and the events that they make however they are cut.
type responseCase struct {
	name, in string
	opts     *h1.Options
	req      []string // pseudo headers and fields, a GET if nil
	eof      bool     // the upstream closes then
	want     string
	fails    bool // Dispatch or EOF returns an error
	surplus  bool // of the last bytes some belong to no request
}

const (
	done    = "done reusable=true"
	doneNot = "done reusable=false"
	resetPE = "reset protocol error\n" + doneNot
)

func (c *responseCase) run(t *testing.T, cuts ...int) string {
	t.Helper()
	opts := c.opts
	if opts == nil {
		opts = &h1.Options{}
	}
	u := newRouter(t, opts)
	u.merge = true
	if c.req == nil {
		u.get()
	} else if err := u.request(true, c.req...); err != nil {
		t.Fatal(err)
	}
	u.out.flush()
	var err error
	rest, at := "", 0
	for _, cut := range append(cuts, len(c.in)) {
		if err == nil {
			rest, err = u.feed(rest+c.in[at:cut], 0)
			at = cut
		}
	}
	if c.eof && err == nil {
		err = u.c.EOF()
	}
	if (err != nil) != (c.fails || c.surplus) {
		t.Errorf("cuts %v: error %v", cuts, err)
	}
	// How much data is reported before an error depends on how the bytes came.
	for i := 1; i < len(u.log); i++ {
		if strings.HasPrefix(u.log[i], "reset ") && strings.HasPrefix(u.log[i-1], "data ") {
			u.log = append(u.log[:i-1], u.log[i:]...)
		}
	}
	s := u.events()
	if c.surplus {
		// Whether the surplus came with the response or after it, the connection is of no further use.
		s = strings.Replace(s, done, doneNot, 1)
	}
	return s
}

func runResponses(t *testing.T, cases []responseCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, c.run(t)); d != "" {
				t.Fatal(d)
			}
			var each []int
			for i := 1; i < len(c.in); i++ {
				each = append(each, i)
			}
			if d := cmp.Diff(c.want, c.run(t, each...)); d != "" {
				t.Fatalf("byte by byte: %s", d)
			}
			for _, cut := range each {
				if d := cmp.Diff(c.want, c.run(t, cut)); d != "" {
					t.Fatalf("cut at %d: %s", cut, d)
				}
			}
		})
	}
}

// answer is a 200 with these lines and a body.
func answer(body string, fields ...string) string {
	return "HTTP/1.1 200 OK\r\n" + strings.Join(append(fields, "", ""), "\r\n") + body
}

func res(status string, fields ...string) string {
	return "head " + strings.Join(append([]string{":status=" + status}, fields...), "|")
}

func TestStatusLine(t *testing.T) {
	rest := "\r\nContent-Length: 0\r\n\r\n"
	empty := func(status, done string) string { return res(status, "content-length=0") + " end=true\n" + done }
	runResponses(t, []responseCase{
		{name: "plain", in: "HTTP/1.1 200 OK" + rest, want: empty("200", done)},
		{name: "no reason", in: "HTTP/1.1 404" + rest, want: empty("404", done)},
		{name: "empty reason", in: "HTTP/1.1 404 " + rest, want: empty("404", done)},
		{name: "reason with blanks and high bytes", in: "HTTP/1.1 404 No \xff way" + rest, want: empty("404", done)},
		{name: "blanks", in: "HTTP/1.1  404  No" + rest, want: empty("404", done)},
		{name: "tabs", in: "HTTP/1.1\t404\tNo" + rest, want: empty("404", done)},
		{name: "LF", in: "HTTP/1.1 404 No\nContent-Length: 0\n\n", want: empty("404", done)},
		{name: "999", in: "HTTP/1.1 999 X" + rest, want: empty("999", done)},
		{name: "HTTP/1.0", in: "HTTP/1.0 200 OK" + rest, want: empty("200", doneNot)},
		{name: "HTTP/1.2 counts as HTTP/1.0", in: "HTTP/1.2 200 OK" + rest, want: empty("200", doneNot)},
		{name: "99", in: "HTTP/1.1 99 X" + rest, fails: true, want: resetPE},
		{name: "099", in: "HTTP/1.1 099 X" + rest, fails: true, want: resetPE},
		{name: "1000", in: "HTTP/1.1 1000 X" + rest, fails: true, want: resetPE},
		{name: "2x0", in: "HTTP/1.1 2x0 X" + rest, fails: true, want: resetPE},
		{name: "+200", in: "HTTP/1.1 +200 X" + rest, fails: true, want: resetPE},
		{name: "no status", in: "HTTP/1.1" + rest, fails: true, want: resetPE},
		{name: "lower-case", in: "http/1.1 200 OK" + rest, fails: true, want: resetPE},
		{name: "HTTP/11", in: "HTTP/11 200 OK" + rest, fails: true, want: resetPE},
		{name: "ICY", in: "ICY 200 OK" + rest, fails: true, want: resetPE},
		{name: "Hello", in: "Hello\r\n", fails: true, want: resetPE},
		{name: "line before", in: "\r\nHTTP/1.1 200 OK" + rest, fails: true, want: resetPE},
		{name: "letter before", in: "XHTTP/1.1 200 OK" + rest, fails: true, want: resetPE},
		{name: "control instead of a reason, at once", in: "HTTP/1.1 200 \x00\n", fails: true, want: resetPE},
		{name: "control behind a CR, at once", in: "HTTP/1.1 200\r\x00\n", fails: true, want: resetPE},
		{name: "control behind the code, at once", in: "HTTP/1.1 204\x00K\n", fails: true, want: resetPE},
		{name: "control before the reason, at once", in: "HTTP/1.1 204 \x01 K\n", fails: true, want: resetPE},
		{name: "control behind the code and a blank, at once", in: "HTTP/1.1 204\x00 K\n", fails: true, want: resetPE},
		{name: "white space behind the code", in: "HTTP/1.1 204\v\t K\n", want: ""},
		{name: "control within the reason", in: "HTTP/1.1 204 K\x00\n", want: ""},
		{name: "CR instead of a reason", in: "HTTP/1.1 200 \r" + rest, want: empty("200", done)},
		{name: "control in reason", in: "HTTP/1.1 200 O\x01K" + rest, fails: true, want: resetPE},
	})
}

func TestResponseFields(t *testing.T) {
	cl := "Content-Length: 0"
	end := " end=true\n" + done
	runResponses(t, []responseCase{
		{name: "order", in: answer("", "X-B: 2", "x-a:1", cl), want: res("200", "x-b=2", "x-a=1", "content-length=0") + end},
		{name: "folded", in: answer("", "X: 1", " 2", cl), want: res("200", "x=1 2", "content-length=0") + end},
		{name: "bare CR dropped", in: answer("", "X: 1\r2", cl), want: res("200", "x=12", "content-length=0") + end},
		{name: "underscore", in: answer("", "x_a: 1", cl), opts: &h1.Options{Underscores: h1.UnderscoresReject}, want: res("200", "x_a=1", "content-length=0") + end},
		{name: "host is a field", in: answer("", "Host: q", cl), want: res("200", "host=q", "content-length=0") + end},
		{name: "held once", in: answer("", "Vary: a", "Vary: b", cl), want: res("200", "vary=a,b", "content-length=0") + end},
		{name: "held apart", in: answer("", "Set-Cookie: a", "Set-Cookie: b", cl), want: res("200", "set-cookie=a", "set-cookie=b", "content-length=0") + end},
		{name: "nominated stay", in: answer("", "Connection: x-a", "X-A: 1", cl), want: res("200", "connection=x-a", "x-a=1", "content-length=0") + end},
		{name: "control", in: answer("", "X: \x01", cl), fails: true, want: resetPE},
		{name: "blank before colon", in: answer("", "X : 1", cl), fails: true, want: resetPE},
		{name: "pseudo header", in: answer("", ":status: 500", cl), fails: true, want: resetPE},
	})
}

func TestResponseBody(t *testing.T) {
	head := []string{":method", "HEAD", ":path", "/", ":authority", "h"}
	te := "Transfer-Encoding: chunked"
	data := func(s, done string) string { return "data " + s + " end=true\n" + done }
	plain := func(s string) string { return res("200", "content-length="+s) + " end=false\n" }
	chunk := res("200", "transfer-encoding=chunked") + " end=false\n"
	with := &h1.Options{EnableTrailers: true}
	runResponses(t, []responseCase{
		{name: "length", in: answer("ok", "Content-Length: 2"), want: plain("2") + data("ok", done)},
		{name: "chunked", in: answer("2\r\nok\r\n3\r\nabc\r\n0\r\n\r\n", te), want: chunk + data("okabc", done)},
		{name: "trailers dropped", in: answer("2\r\nok\r\n0\r\nX: y\r\n\r\n", te), want: chunk + data("ok", done)},
		{name: "trailers", in: answer("2\r\nok\r\n0\r\nX: y\r\nGrpc-Status: 0\r\ngrpc-status: 1\r\n\r\n", te), opts: with,
			want: chunk + "data ok end=false\ntrailers x=y|grpc-status=0,1\n" + done},
		{name: "until close", in: answer("ok"), eof: true, want: res("200") + " end=false\n" + data("ok", doneNot)},
		{name: "until close, empty", in: answer(""), eof: true, want: res("200") + " end=false\n" + data("", doneNot)},
		{name: "HEAD length", in: answer("", "Content-Length: 5"), req: head, want: res("200", "content-length=5") + " end=true\n" + done},
		{name: "HEAD nothing", in: answer(""), req: head, want: res("200") + " end=true\n" + done},
		{name: "HEAD chunked", in: answer("", te), req: head, want: res("200", "transfer-encoding=chunked") + " end=true\n" + done},
		{name: "HEAD with body", in: answer("hello", "Content-Length: 5"), req: head, surplus: true, want: res("200", "content-length=5") + " end=true\n" + doneNot},
		{name: "204", in: "HTTP/1.1 204 N\r\n\r\n", want: res("204") + " end=true\n" + done},
		{name: "204 length 0", in: "HTTP/1.1 204 N\r\nContent-Length: 0\r\n\r\n", want: res("204") + " end=true\n" + done},
		{name: "304 length", in: "HTTP/1.1 304 N\r\nContent-Length: 5\r\n\r\n", want: res("304", "content-length=5") + " end=true\n" + done},
		{name: "304 chunked", in: "HTTP/1.1 304 N\r\n" + te + "\r\n\r\n", want: res("304", "transfer-encoding=chunked") + " end=true\n" + done},
		{name: "205 has a body", in: "HTTP/1.1 205 N\r\nContent-Length: 2\r\n\r\nok", want: res("205", "content-length=2") + " end=false\n" + data("ok", done)},
		{name: "close", in: answer("ok", "Connection: close", "Content-Length: 2"), want: res("200", "connection=close", "content-length=2") + " end=false\n" + data("ok", doneNot)},
		{name: "proxy-connection close", in: answer("", "Proxy-Connection: close", "Content-Length: 0"), want: res("200", "proxy-connection=close", "content-length=0") + " end=true\n" + doneNot},
		{name: "HTTP/1.0 keep-alive", in: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", want: res("200", "connection=keep-alive", "content-length=0") + " end=true\n" + done},
		{name: "surplus", in: answer("okMORE", "Content-Length: 2"), surplus: true, want: plain("2") + data("ok", doneNot)},
		{name: "204 length 5", in: "HTTP/1.1 204 N\r\nContent-Length: 5\r\n\r\nhello", fails: true, want: resetPE},
		{name: "204 length 00", in: "HTTP/1.1 204 N\r\nContent-Length: 00\r\n\r\n", fails: true, want: resetPE},
		{name: "204 chunked", in: "HTTP/1.1 204 N\r\n" + te + "\r\n\r\n0\r\n\r\n", fails: true, want: resetPE},
		{name: "both", in: answer("", te, "Content-Length: 2"), fails: true, want: resetPE},
		{name: "two lengths", in: answer("ok", "Content-Length: 2", "Content-Length: 2"), fails: true, want: resetPE},
		{name: "bad length", in: answer("ok", "Content-Length: x"), fails: true, want: resetPE},
		{name: "gzip", in: answer("ok", "Transfer-Encoding: gzip"), fails: true, want: resetPE},
		{name: "gzip, chunked", in: answer("ok", "Transfer-Encoding: gzip, chunked"), fails: true, want: resetPE},
		{name: "bad chunk", in: answer("x\r\n", te), fails: true, want: chunk + resetPE},
		{name: "short length", in: answer("ok", "Content-Length: 5"), eof: true, fails: true, want: plain("5") + resetPE},
		{name: "short chunk", in: answer("5\r\nok", te), eof: true, fails: true, want: chunk + resetPE},
		{name: "no last line", in: answer("2\r\nok\r\n0\r\n", te), eof: true, fails: true, want: chunk + resetPE},
		{name: "short head", in: "HTTP/1.1 200 OK\r\nConte", eof: true, fails: true, want: resetPE},
		{name: "one byte", in: "H", eof: true, fails: true, want: resetPE},
		{name: "nothing", in: "", eof: true, want: "reset connection termination\n" + doneNot},
	})
}

func TestInformational(t *testing.T) {
	final := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	end := "\n" + res("200", "content-length=2") + " end=false\ndata ok end=true\n" + done
	runResponses(t, []responseCase{
		{name: "100", in: "HTTP/1.1 100 Continue\r\n\r\n" + final, want: "1xx :status=100" + end},
		{name: "103 twice", in: "HTTP/1.1 103 E\r\nLink: 1\r\n\r\nHTTP/1.1 103 E\r\nLink: 2\r\n\r\n" + final, want: "1xx :status=103|link=1\n1xx :status=103|link=2" + end},
		{name: "199", in: "HTTP/1.1 199 E\r\nConnection: close\r\n\r\n" + final, want: "1xx :status=199|connection=close" + end},
		{name: "length 0", in: "HTTP/1.1 100 E\r\nContent-Length: 0\r\n\r\n" + final, want: "1xx :status=100" + end},
		{name: "length", in: "HTTP/1.1 100 E\r\nContent-Length: 5\r\n\r\n" + final, fails: true, want: resetPE},
		{name: "chunked", in: "HTTP/1.1 100 E\r\nTransfer-Encoding: chunked\r\n\r\n" + final, fails: true, want: resetPE},
		{name: "bad after", in: "HTTP/1.1 100 E\r\n\r\nX", fails: true, want: "1xx :status=100\n" + resetPE},
		{name: "101 without upgrade is the end", in: "HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", want: res("101", "connection=upgrade", "upgrade=x") + " end=true\n" + doneNot},
	})
}

func TestResponseTunnel(t *testing.T) {
	ws := []string{":method", "GET", ":path", "/", ":authority", "h", "connection", "Upgrade", "upgrade", "websocket"}
	connect := []string{":method", "CONNECT", ":authority", "h:1"}
	up := "Connection: Upgrade\r\nUpgrade: websocket\r\n"
	upMap := []string{"connection=Upgrade", "upgrade=websocket"}
	cases := []responseCase{
		{name: "101", in: "HTTP/1.1 101 S\r\n" + up + "\r\nraw", want: res("101", upMap...) + " end=false\ndata raw end=true\n" + doneNot},
		{name: "101 length 0", in: "HTTP/1.1 101 S\r\nContent-Length: 0\r\n" + up + "\r\nraw", want: res("101", upMap...) + " end=false\ndata raw end=true\n" + doneNot},
		{name: "101 to something else", in: "HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: y\r\n\r\nraw", want: res("101", "connection=Upgrade", "upgrade=y") + " end=false\ndata raw end=true\n" + doneNot},
		{name: "200 with upgrade", in: "HTTP/1.1 200 S\r\n" + up + "\r\nraw", want: res("200", upMap...) + " end=false\ndata raw end=true\n" + doneNot},
		{name: "101 chunked", in: "HTTP/1.1 101 S\r\nTransfer-Encoding: chunked\r\n" + up + "\r\n", fails: true, want: resetPE},
		{name: "CONNECT", req: connect, in: "HTTP/1.1 200 OK\r\n\r\nraw", want: res("200") + " end=false\ndata raw end=true\n" + doneNot},
		{name: "CONNECT 299 with length", req: connect, in: "HTTP/1.1 299 OK\r\nContent-Length: 1\r\n\r\nraw", want: res("299", "content-length=1") + " end=false\ndata raw end=true\n" + doneNot},
		{name: "CONNECT chunked", req: connect, in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nraw", want: res("200", "transfer-encoding=chunked") + " end=false\ndata raw end=true\n" + doneNot},
	}
	for i := range cases {
		if cases[i].req == nil {
			cases[i].req = ws
		}
		cases[i].eof = !cases[i].fails
	}
	runResponses(t, append(cases,
		responseCase{name: "refused", req: ws, in: "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", want: res("403", "content-length=2") + " end=false\ndata no end=true\n" + done},
		responseCase{name: "CONNECT refused", req: connect, in: "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", want: res("403", "content-length=2") + " end=false\ndata no end=true\n" + done},
	))
}

func TestIdleClient(t *testing.T) {
	u := newRouter(t, &h1.Options{})
	if _, err := u.feed("HTTP/1.1 408 T\r\nConnection: close\r\n\r\n", 0); err == nil {
		t.Error("bytes on a connection that was never used are taken")
	}
	u = newRouter(t, &h1.Options{})
	u.get()
	if _, err := u.feed(answer("ok", "Content-Length: 2"), 0); err != nil {
		t.Fatal(err)
	}
	if u.c.Active() != 0 {
		t.Error("still active")
	}
	if _, err := u.feed("H", 0); err == nil {
		t.Error("bytes on an idle connection are taken")
	}
}

func TestManyExchanges(t *testing.T) {
	u := newRouter(t, &h1.Options{})
	next := 0
	u.onDone = func() {
		if next++; next < 5 {
			u.get() // a pool reuses the connection within the callback
		}
	}
	u.get()
	for i := 0; i < 5; i++ {
		if u.stream.ID() != uint32(i+1) {
			t.Fatalf("stream %d is %d", i+1, u.stream.ID())
		}
		b := fmt.Sprint(i)
		if _, err := u.feed(answer(b, "Content-Length: 1"), 0); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(res("200", "content-length=1")+" end=false\ndata "+b+" end=true\n"+done, u.events()); d != "" {
			t.Fatal(d)
		}
	}
}

// Bytes behind a response are known before the pool is told that the connection is free.
func TestSurplusIsSeenInTime(t *testing.T) {
	for _, in := range []string{answer("okX", "Content-Length: 2"), answer("X", "Content-Length: 0"), answer("0\r\n\r\nX", "Transfer-Encoding: chunked")} {
		u := newRouter(t, &h1.Options{})
		u.get()
		if _, err := u.feed(in, 0); err != h1.ErrExtraneous {
			t.Errorf("%q: error %v", in, err)
		}
		if log := u.events(); !strings.HasSuffix(log, doneNot) {
			t.Errorf("%q: %s", in, log)
		}
	}
}
