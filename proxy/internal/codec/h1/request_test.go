package h1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
)

func lines(s ...string) string { return strings.Join(s, "\n") }

var std = h1.Options{AllowAbsoluteURL: true}

// requestCase is bytes from a client and the events that they make, given whole, byte by byte and cut at every place.
type requestCase struct {
	name, in string
	opts     *h1.Options
	want     string // events after "new 1"
	rest     string // what is not consumed
}

// bad is what a refused request's events are.
func bad(status int, details string) string {
	return fmt.Sprintf("error %d %s\ncomplete close=true", status, details)
}

const syntax = "http1.codec_error"

// get is a GET with these lines, which lack the line ends.
func get(fields ...string) string {
	return "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Join(append(fields, "", ""), "\r\n")
}

// post is a POST with these lines and a body.
func post(body string, fields ...string) string {
	return "POST / HTTP/1.1\r\nHost: a\r\n" + strings.Join(append(fields, "", ""), "\r\n") + body
}

func chunked(body string) string { return post(body, "Transfer-Encoding: chunked") }

func ok(fields ...string) string {
	return "head " + strings.Join(append([]string{":method=GET|:path=/|:authority=a"}, fields...), "|") + " end=true"
}

func target(path, authority string, more ...string) string {
	return "head " + strings.Join(append([]string{":method=GET|:path=" + path + "|:authority=" + authority}, more...), "|") + " end=true"
}

const (
	chunkedHead = "head :method=POST|:path=/|:authority=a|transfer-encoding=chunked end=false\n"
)

func (c *requestCase) run(t *testing.T, size int) string {
	t.Helper()
	opts := c.opts
	if opts == nil {
		opts = &std
	}
	u := newUser(t, opts)
	u.merge = true
	rest, err := u.feed(c.in, size)
	failed := strings.Contains(c.want, "error ")
	if (err != nil) != failed {
		t.Errorf("size %d: error %v", size, err)
	}
	if rest != c.rest && !failed {
		t.Errorf("size %d: rest %q, want %q", size, rest, c.rest)
	}
	return u.withoutLost()
}

// withoutLost returns the events without the data that comes before an error: how much of it is reported depends on how the
// bytes came, as the error makes what came with it worthless.
func (u *user) withoutLost() string {
	for i := 1; i < len(u.log); i++ {
		if strings.HasPrefix(u.log[i], "error ") && strings.HasPrefix(u.log[i-1], "data ") {
			u.log = append(u.log[:i-1], u.log[i:]...)
		}
	}
	return u.events()
}

func runRequests(t *testing.T, cases []requestCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			want := "new 1"
			if c.want != "" {
				want += "\n" + c.want
			}
			for _, size := range []int{0, 1, 2, 3, 7} {
				if d := cmp.Diff(want, c.run(t, size)); d != "" {
					t.Fatalf("in pieces of %d (0: whole): %s", size, d)
				}
			}
			if len(c.in) > 400 {
				return
			}
			for cut := 1; cut < len(c.in); cut++ {
				if d := cmp.Diff(want, c.runCut(t, cut)); d != "" {
					t.Fatalf("cut at %d: %s", cut, d)
				}
			}
		})
	}
}

func (c *requestCase) runCut(t *testing.T, cut int) string {
	opts := c.opts
	if opts == nil {
		opts = &std
	}
	u := newUser(t, opts)
	u.merge = true
	rest, err := u.feed(c.in[:cut], 0)
	if err == nil {
		_, err = u.feed(rest+c.in[cut:], 0)
	}
	if (err != nil) != strings.Contains(c.want, "error ") {
		t.Errorf("cut at %d: error %v", cut, err)
	}
	return u.withoutLost()
}

func TestRequestLine(t *testing.T) {
	h := "\r\nHost: a\r\n\r\n"
	custom := &h1.Options{AllowCustomMethods: true}
	head := func(method string) string { return "head :method=" + method + "|:path=/|:authority=a end=true" }
	cases := []requestCase{
		{name: "plain", in: "GET /a?b=c#d HTTP/1.1" + h, want: target("/a?b=c#d", "a")},
		{name: "double blank", in: "GET  /  HTTP/1.1" + h, want: ok()},
		{name: "tabs", in: "GET\t/\tHTTP/1.1" + h, want: ok()},
		{name: "blank at the end", in: "GET / HTTP/1.1 \t" + h, want: ok()},
		{name: "two CR", in: "GET / HTTP/1.1\r" + h, want: ok()},
		{name: "bare LF", in: "GET / HTTP/1.1\nHost: a\n\n", want: ok()},
		{name: "odd characters", in: "GET /\"\\<>{}|^` HTTP/1.1" + h, want: target("/\"\\<>{}|^`", "a")},
		{name: "lines before", in: "\r\n\n\r\r\nGET / HTTP/1.1" + h, want: ok()},
		{name: "no target", in: "GET HTTP/1.1" + h, want: bad(400, syntax)},
		{name: "only a word", in: "GARBAGE\r\n\r\n", want: bad(400, syntax)},
		{name: "blank first", in: " GET / HTTP/1.1" + h, want: bad(400, syntax)},
		{name: "blank line first", in: "  \r\nGET / HTTP/1.1" + h, want: bad(400, syntax)},
		{name: "blank in target", in: "GET /a b HTTP/1.1" + h, want: bad(400, syntax)},
		{name: "tab in target", in: "GET /a\tb HTTP/1.1" + h, want: bad(400, syntax)},
		{name: "CR in target", in: "GET /\rx HTTP/1.1" + h, want: bad(400, syntax)},
		{name: "high byte in target", in: "GET /\x80 HTTP/1.1" + h, want: bad(400, syntax)},
		{name: "high byte in long target", in: "GET /0123456789abc\xff HTTP/1.1" + h, want: bad(400, syntax)},
		{name: "control in target", in: "GET /\x01 HTTP/1.1" + h, want: bad(400, "http1.invalid_characters")},
		{name: "FF in target", in: "GET /\x0c HTTP/1.1" + h, want: bad(400, "http1.invalid_characters")},
		{name: "TLS", in: "\x16\x03\x01\x02\x00\x01", want: bad(400, syntax)},
		{name: "NUL", in: "\x00", want: bad(400, syntax)},
		{name: "HTTP/1.10", in: "GET / HTTP/1.10" + h, want: bad(400, syntax)},
		{name: "HTTP/11", in: "GET / HTTP/11" + h, want: bad(400, syntax)},
		{name: "http/1.1", in: "GET / http/1.1" + h, want: bad(400, syntax)},
		{name: "words behind", in: "GET / HTTP/1.1 x" + h, want: bad(400, syntax)},
		{name: "CR behind", in: "GET / HTTP/1.1\rx" + h, want: bad(400, syntax)},
		{name: "unknown method", in: "FOO / HTTP/1.1" + h, want: bad(400, syntax)},
		{name: "unknown method, head not complete", in: "FOO / HTTP/1.1\r\n", want: bad(400, syntax)},
		{name: "lower-case method", in: "get / HTTP/1.1" + h, want: bad(400, syntax)},
		{name: "M-SEARCH", in: "M-SEARCH / HTTP/1.1" + h, want: bad(400, syntax)},
		{name: "custom method", in: "m-search / HTTP/1.1" + h, opts: custom, want: head("m-search")},
		{name: "custom method, not a token", in: "F(O / HTTP/1.1" + h, opts: custom, want: bad(400, syntax)},
		{name: "HTTP/0.9", in: "GET /\r\n", want: "head :method=GET|:path=/ end=true"},
		{name: "HTTP/0.9 and more", in: "GET /\r\nHost: b\r\n\r\n", rest: "Host: b\r\n\r\n", want: "head :method=GET|:path=/ end=true"},
		{name: "HTTP/0.9 with LF", in: "GET /\n", want: "head :method=GET|:path=/ end=true"},
	}
	for _, m := range strings.Fields("ACL BIND CHECKOUT COPY DELETE GET HEAD LINK LOCK MERGE MKACTIVITY MKCALENDAR MKCOL MOVE MSEARCH " +
		"NOTIFY OPTIONS PATCH POST PROPFIND PROPPATCH PURGE PUT QUERY REBIND REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND UNLINK " +
		"UNLOCK UNSUBSCRIBE") {
		cases = append(cases, requestCase{name: m, in: m + " / HTTP/1.1" + h, want: head(m)})
	}
	runRequests(t, cases)
}

func TestRequestTarget(t *testing.T) {
	h := " HTTP/1.1\r\nHost: h\r\nX: 1\r\n\r\n"
	noAbs := &h1.Options{}
	abs := func(path, authority, scheme string) string { return target(path, authority, ":scheme="+scheme+"|x=1") }
	invalid := bad(400, "http1.invalid_url")
	connect := func(authority string) string {
		return "head :method=CONNECT|:authority=" + authority + "|x=1 end=false"
	}
	runRequests(t, []requestCase{
		{name: "absolute", in: "GET http://o.example:8080/p?q=1" + h, want: abs("/p?q=1", "o.example:8080", "http")},
		{name: "no path", in: "GET http://o.example" + h, want: abs("/", "o.example", "http")},
		{name: "only query", in: "GET http://o?q" + h, want: abs("?q", "o", "http")},
		{name: "https upper-case", in: "GET HTTPS://A/x" + h, want: abs("/x", "A", "https")},
		{name: "user information", in: "GET http://u:p@a/" + h, want: abs("/", "a", "http")},
		{name: "IPv6", in: "GET http://[::1]:80/x" + h, want: abs("/x", "[::1]:80", "http")},
		{name: "port 65535", in: "GET http://a:65535/" + h, want: abs("/", "a:65535", "http")},
		{name: "port 65536", in: "GET http://a:65536/" + h, want: invalid},
		{name: "fragment", in: "GET http://a/x#f" + h, want: abs("/x#f", "a", "http")},
		{name: "without host header", in: "GET http://a/ HTTP/1.1\r\nX: 1\r\n\r\n", want: abs("/", "a", "http")},
		{name: "bad host header is replaced", in: "GET http://a/ HTTP/1.1\r\nHost: a b\r\nX: 1\r\n\r\n", want: abs("/", "a", "http")},
		{name: "double slash is a path", in: "GET //a/x" + h, want: target("//a/x", "h", "x=1")},
		{name: "two at signs", in: "GET http://u@@a/" + h, want: bad(400, syntax)},
		{name: "two user informations", in: "GET http://u@v@a/" + h, want: invalid},
		{name: "fragment in host", in: "GET http://a#b" + h, want: bad(400, syntax)},
		{name: "one slash", in: "GET http:/a" + h, want: bad(400, syntax)},
		{name: "relative", in: "GET a" + h, want: bad(400, syntax)},
		{name: "query only", in: "GET ?x" + h, want: bad(400, syntax)},
		{name: "empty host", in: "GET http:///x" + h, want: invalid},
		{name: "empty port", in: "GET http://a:/" + h, want: invalid},
		{name: "port with letters", in: "GET http://a:x/" + h, want: invalid},
		{name: "underscore", in: "GET http://a_b/" + h, want: invalid},
		{name: "percent", in: "GET http://a%20b/" + h, want: invalid},
		{name: "zone", in: "GET http://[fe80::1%25e]/" + h, want: invalid},
		{name: "bad IPv6", in: "GET http://[zz]/" + h, want: invalid},
		{name: "open bracket", in: "GET http://[::1/" + h, want: invalid},
		{name: "text after bracket", in: "GET http://[::1]x/" + h, want: invalid},
		{name: "ws", in: "GET ws://a/x" + h, want: bad(400, "http1.invalid_scheme")},
		{name: "absolute not allowed", in: "GET http://a/x" + h, opts: noAbs, want: target("http://a/x", "h", "x=1")},
		{name: "asterisk", in: "OPTIONS *" + h, want: "head :method=OPTIONS|:path=*|:authority=h|x=1 end=true"},
		{name: "asterisk and more", in: "OPTIONS *x" + h, want: "head :method=OPTIONS|:path=*x|:authority=h|x=1 end=true"},
		{name: "asterisk for GET", in: "GET *" + h, want: invalid},
		{name: "asterisk for GET, absolute not allowed", in: "GET *" + h, opts: noAbs, want: target("*", "h", "x=1")},
		{name: "CONNECT", in: "CONNECT a.example:443" + h, want: connect("a.example:443")},
		{name: "CONNECT IPv6", in: "CONNECT [::1]:443" + h, opts: noAbs, want: connect("[::1]:443")},
		{name: "CONNECT no port", in: "CONNECT a.example" + h, want: invalid},
		{name: "CONNECT IPv6 no port", in: "CONNECT [::1]" + h, want: invalid},
		{name: "CONNECT no host", in: "CONNECT :443" + h, want: invalid},
		{name: "CONNECT with user", in: "CONNECT u@a:443" + h, want: invalid},
		{name: "CONNECT with path", in: "CONNECT a:443/x" + h, want: invalid},
		{name: "CONNECT absolute", in: "CONNECT http://a/" + h, want: invalid},
		{name: "CONNECT origin form", in: "CONNECT /x" + h, want: invalid},
		{name: "CONNECT length 0", in: "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nX: 1\r\n\r\nraw", want: connect("a:1") + "\ndata raw end=false"},
		{name: "CONNECT length", in: "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", want: bad(400, "http1.body_disallowed")},
		{name: "CONNECT chunked", in: "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
			want: bad(501, "http1.invalid_transfer_encoding")},
	})
}

func TestRequestFields(t *testing.T) {
	authority := bad(400, "http.invalid_authority")
	reject, drop := &h1.Options{Underscores: h1.UnderscoresReject}, &h1.Options{Underscores: h1.UnderscoresDrop}
	host := func(v string) string { return "GET / HTTP/1.1\r\nHost: " + v + "\r\n\r\n" }
	runRequests(t, []requestCase{
		{name: "order and case", in: get("X-B: 2", "x-A: 1", "ACCEPT: */*"), want: ok("x-b=2|x-a=1|accept=*/*")},
		{name: "host in the middle", in: "GET / HTTP/1.1\r\nA: b\r\nhOST: a\r\nC: d\r\n\r\n", want: ok("a=b|c=d")},
		{name: "blanks around", in: get("X-A:   padded \t ", "X-E:", "X-F: "), want: ok("x-a=padded|x-e=|x-f=")},
		{name: "tab inside", in: get("X-A:\ta\tb"), want: ok("x-a=a\tb")},
		{name: "high bytes", in: get("X-A: \xe4\xf6"), want: ok("x-a=\xe4\xf6")},
		{name: "all token characters", in: get("!#$%&'*+-.^_`|~09azAZ: v"), want: ok("!#$%&'*+-.^_`|~09azaz=v")},
		{name: "bare LF", in: "GET / HTTP/1.1\r\nHost: a\nX-B: c\r\n\r\n", want: ok("x-b=c")},
		{name: "folded", in: get("X-A: one", " two", "\tthree", "X-B: 1"), want: ok("x-a=one two\tthree|x-b=1")},
		{name: "folded, blanks kept", in: get("X-A: one  ", "\t \t two ", "   three"), want: ok("x-a=one  \t \t two    three")},
		{name: "folded, empty", in: get("X-A: one", " ", "X-B: 1"), want: ok("x-a=one|x-b=1")},
		{name: "folded host", in: get("  "), want: ok()},
		{name: "bare CR in value is dropped", in: get("X-A: a\rb"), want: ok("x-a=ab")},
		{name: "CR at the end", in: get("X-A: a\r"), want: ok("x-a=a")},
		{name: "bare CR in host", in: "GET / HTTP/1.1\r\nHost: a\rX-B: c\r\n\r\n", want: authority},
		{name: "bare CR in transfer-encoding", in: post("", "Transfer-Encoding: chun\rked"), want: bad(400, syntax)},
		{name: "bare CR in content-length", in: post("", "Content-Length: 1\r0"), want: bad(400, syntax)},
		{name: "folded line first", in: "GET / HTTP/1.1\r\n X: y\r\nHost: a\r\n\r\n", want: bad(400, syntax)},
		{name: "no colon", in: get("abc"), want: bad(400, syntax)},
		{name: "empty name", in: get(": v"), want: bad(400, syntax)},
		{name: "pseudo header", in: get(":path: v"), want: bad(400, syntax)},
		{name: "blank before colon", in: get("X-A : v"), want: bad(400, syntax)},
		{name: "parenthesis in name", in: get("X(A: v"), want: bad(400, syntax)},
		{name: "high byte in name", in: get("X\xe4: v"), want: bad(400, syntax)},
		{name: "CR in name", in: get("X\r-A: v"), want: bad(400, syntax)},
		{name: "CR for the dash of a known name", in: get("content\rtype: v"), want: bad(400, syntax)},
		{name: "only CR", in: "GET / HTTP/1.1\r\nHost: a\r\n\r\r\n\r\n", want: bad(400, syntax)},
		{name: "control in name", in: get("X\x01A: v"), want: bad(400, "http1.invalid_characters")},
		{name: "NUL", in: get("X-A: a\x00b"), want: bad(400, "http1.invalid_characters")},
		{name: "control", in: get("X-A: a\x01b"), want: bad(400, "http1.invalid_characters")},
		{name: "control late", in: get("X-A: 0123456789abcdef\x1f"), want: bad(400, "http1.invalid_characters")},
		{name: "DEL", in: get("X-A: a\x7fb"), want: bad(400, "http1.invalid_characters")},
		{name: "FF", in: get("X-A: a\x0cb"), want: bad(400, "http1.invalid_characters")},
		{name: "VT at the end", in: get("X-A: ab\x0b"), want: bad(400, "http1.invalid_characters")},
		{name: "two hosts", in: get("Host: b"), want: target("/", "a,b")},
		{name: "no host", in: "GET / HTTP/1.1\r\nX: 1\r\n\r\n", want: "head :method=GET|:path=/|x=1 end=true"},
		{name: "no fields", in: "GET / HTTP/1.1\r\n\r\n", want: "head :method=GET|:path=/ end=true"},
		{name: "empty host", in: host(""), want: target("/", "")},
		{name: "host characters", in: host("aZ09!$%&'()*+,-.:;=@[]_~"), want: target("/", "aZ09!$%&'()*+,-.:;=@[]_~")},
		{name: "host blank", in: host("a b"), want: authority},
		{name: "host slash", in: host("a/b"), want: authority},
		{name: "host quote", in: host("a\""), want: authority},
		{name: "host hash", in: host("a#"), want: authority},
		{name: "host high", in: host("\xe9"), want: authority},
		{name: "held once", in: get("Accept: a", "X: 1", "accept: b", "User-Agent: u", "User-Agent: v"), want: ok("accept=a,b|x=1|user-agent=u,v")},
		{name: "held apart", in: get("Cookie: a", "X: 1", "Cookie: b", "X: 2"), want: ok("cookie=a|x=1|cookie=b|x=2")},
		{name: "underscore", in: get("X_A: 1"), want: ok("x_a=1")},
		{name: "underscore dropped", in: get("X_A: 1", "B: 2"), opts: drop, want: ok("b=2")},
		{name: "underscore refused", in: get("X_A: 1"), opts: reject, want: bad(400, "http1.unexpected_underscore")},
	})
}

func TestRequestBody(t *testing.T) {
	length := func(n, rest string) string {
		return "head :method=POST|:path=/|:authority=a|content-length=" + n + " end=" + rest
	}
	allow := &h1.Options{AllowChunkedLength: true}
	te := bad(501, "http1.invalid_transfer_encoding")
	both := bad(400, "http1.content_length_and_chunked_not_allowed")
	runRequests(t, []requestCase{
		{name: "length", in: post("hello", "Content-Length: 5"), want: length("5", "false\ndata hello end=true")},
		{name: "length 0", in: post("", "Content-Length: 0"), want: length("0", "true")},
		{name: "leading zeros", in: post("hello", "Content-Length: 005"), want: length("005", "false\ndata hello end=true")},
		{name: "length with blanks", in: post("hello", "Content-Length:  5\t"), want: length("5", "false\ndata hello end=true")},
		{name: "length folded", in: post("hello", "Content-Length:", " 5"), want: length("5", "false\ndata hello end=true")},
		{name: "next request", in: post("hi", "Content-Length: 2") + "GET /", rest: "GET /", want: length("2", "false\ndata hi end=true")},
		{name: "largest length", in: post("hi", "Content-Length: 18446744073709551615"), want: length("18446744073709551615", "false\ndata hi end=false")},
		{name: "length too large", in: post("", "Content-Length: 18446744073709551616"), want: bad(400, syntax)},
		{name: "length much too large", in: post("", "Content-Length: 99999999999999999999"), want: bad(400, syntax)},
		{name: "length list", in: post("", "Content-Length: 5, 5"), want: bad(400, syntax)},
		{name: "length plus", in: post("", "Content-Length: +5"), want: bad(400, syntax)},
		{name: "length minus", in: post("", "Content-Length: -5"), want: bad(400, syntax)},
		{name: "length hex", in: post("", "Content-Length: 0x5"), want: bad(400, syntax)},
		{name: "length empty", in: post("", "Content-Length: "), want: bad(400, syntax)},
		{name: "two lengths", in: post("", "Content-Length: 5", "Content-Length: 5"), want: bad(400, syntax)},
		{name: "two lengths and chunked", in: post("", "Content-Length: 5", "Content-Length: 5", "Transfer-Encoding: chunked"), want: bad(400, syntax)},
		{name: "both", in: post("", "Content-Length: 5", "Transfer-Encoding: chunked"), want: both},
		{name: "both, length 0", in: post("", "Transfer-Encoding: chunked", "Content-Length: 0"), want: both},
		{name: "both, length invalid", in: post("", "Transfer-Encoding: chunked", "Content-Length: x"), want: both},
		{name: "both, allowed", in: post("3\r\nabc\r\n0\r\n\r\n", "Content-Length: 5", "Transfer-Encoding: chunked"), opts: allow, want: chunkedHead + "data abc end=true"},
		{name: "both, allowed, not chunked", in: post("", "Content-Length: 5", "Transfer-Encoding: gzip"), opts: allow, want: both},
		{name: "Chunked", in: post("0\r\n\r\n", "Transfer-Encoding: Chunked "), want: strings.Replace(chunkedHead, "=chunked", "=Chunked", 1) + "data  end=true"},
		{name: "gzip, chunked", in: post("", "Transfer-Encoding: gzip, chunked"), want: te},
		{name: "identity", in: get("Transfer-Encoding: identity"), want: te},
		{name: "empty transfer-encoding", in: post("", "Transfer-Encoding:"), want: te},
		{name: "chunked twice", in: post("", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), want: te},
		{name: "chunked with a comma", in: post("", "Transfer-Encoding: chunked,"), want: te},
	})
}

func TestChunks(t *testing.T) {
	data := func(s string) string { return chunkedHead + "data " + s }
	strict := &h1.Options{StrictChunks: true}
	with := &h1.Options{EnableTrailers: true}
	dropUS := &h1.Options{EnableTrailers: true, Underscores: h1.UnderscoresDrop}
	fail := chunkedHead + bad(400, syntax)
	runRequests(t, []requestCase{
		{name: "several", in: chunked("1\r\na\r\n1\r\nb\r\nA\r\n0123456789\r\n0\r\n\r\n"), want: data("ab0123456789 end=true")},
		{name: "empty", in: chunked("0\r\n\r\n"), want: data(" end=true")},
		{name: "next request", in: chunked("1\r\na\r\n0\r\n\r\nGET"), rest: "GET", want: data("a end=true")},
		{name: "extension", in: chunked("3;a=b;c=\"d\x01\"\r\nabc\r\n0;x\r\n\r\n"), want: data("abc end=true")},
		{name: "blanks", in: chunked("3 \t\r\nabc\r\n0  \r\n\r\n"), want: data("abc end=true")},
		{name: "blank and text", in: chunked("3 g\r\nabc\r\n0\r\n\r\n"), want: data("abc end=true")},
		{name: "zeros", in: chunked("00000000000000000000003\r\nabc\r\n0000\r\n\r\n"), want: data("abc end=true")},
		{name: "LF after data", in: chunked("3\r\nabc\n0\r\n\r\n"), want: data("abc end=true")},
		{name: "text after data", in: chunked("3\r\nabcd\r\n0\r\n\r\n"), want: data("abc end=true")},
		{name: "largest", in: chunked("ffffffffffffffff\r\nabc"), want: data("abc end=false")},
		{name: "too large", in: chunked("10000000000000000\r\nabc"), want: fail},
		{name: "blank before", in: chunked(" 3\r\nabc\r\n"), want: fail},
		{name: "LF after size", in: chunked("3\nabc\n0\n\n"), want: fail},
		{name: "LF in extension", in: chunked("3;a\nabc\r\n"), want: fail},
		{name: "CR in extension", in: chunked("3;a\rb\r\nabc\r\n"), want: fail},
		{name: "CR CR LF", in: chunked("3\r\r\nabc\r\n"), want: fail},
		{name: "0x", in: chunked("0x3\r\nabc\r\n"), want: fail},
		{name: "plus", in: chunked("+3\r\nabc\r\n"), want: fail},
		{name: "no size", in: chunked("\r\nabc\r\n"), want: fail},
		{name: "not hex", in: chunked("g\r\n"), want: fail},
		{name: "hex and text", in: chunked("3g\r\nabc\r\n"), want: fail},
		{name: "no end of data", in: chunked("3\r\nabc0\r\n\r\n"), want: fail},
		{name: "strict", in: chunked("3;a\r\nabc\r\n0\r\n\r\n"), opts: strict, want: data("abc end=true")},
		{name: "strict, LF after data", in: chunked("3\r\nabc\n0\r\n\r\n"), opts: strict, want: fail},
		{name: "strict, text after data", in: chunked("3\r\nabcd\r\n"), opts: strict, want: fail},
		{name: "strict, CR CR LF after data", in: chunked("3\r\nabc\r\r\n"), opts: strict, want: fail},
		{name: "trailers dropped", in: chunked("1\r\na\r\n0\r\nX: y\r\n\r\n"), want: data("a end=true")},
		{name: "trailers", in: chunked("1\r\na\r\n0\r\nX: y\r\nGrpc-Status: 0\r\nZ:\r\n\r\n"), opts: with, want: data("a end=false\ntrailers x=y|grpc-status=0|z=")},
		{name: "only trailers", in: chunked("0\r\nX: y\r\n\r\n"), opts: with, want: chunkedHead + "trailers x=y"},
		{name: "trailers with LF", in: chunked("0\r\nX: y\n\n"), opts: with, want: chunkedHead + "trailers x=y"},
		{name: "end with LF", in: chunked("0\r\n\n"), want: data(" end=true")},
		{name: "framing trailers are trailers", in: chunked("0\r\nContent-Length: 5\r\nHost: x\r\n\r\n"), opts: with, want: chunkedHead + "trailers content-length=5|host=x"},
		{name: "trailer folded", in: chunked("0\r\nX: a\r\n b\r\n\r\n"), opts: with, want: chunkedHead + "trailers x=a b"},
		{name: "trailer underscore dropped", in: chunked("0\r\nX_t: a\r\nb: c\r\n\r\n"), opts: dropUS, want: chunkedHead + "trailers b=c"},
		{name: "trailer bad name", in: chunked("0\r\nX T: a\r\n\r\n"), want: fail},
		{name: "trailer no colon", in: chunked("0\r\nabc\r\n\r\n"), want: fail},
		{name: "trailer no name", in: chunked("0\r\n: a\r\n\r\n"), want: fail},
		{name: "trailer folded first", in: chunked("0\r\n X: a\r\n\r\n"), want: fail},
		{name: "trailer control", in: chunked("0\r\nX: a\x01\r\n\r\n"), want: chunkedHead + bad(400, "http1.invalid_characters")},
		{name: "trailer not complete", in: chunked("0\r\n\rX\r\n"), want: strings.TrimSuffix(chunkedHead, "\n")},
	})
}

func TestRequestConnection(t *testing.T) {
	f := []string{"X-A: 1", "X-B: 2", "TE: trailers, gzip", "X-Forwarded-For: 1.2.3.4"}
	conn := func(v string, more ...string) string {
		return get(append(append([]string{}, f...), append(more, "Connection: "+v)...)...)
	}
	refused := bad(400, "http1.connection_header_rejected")
	all := "x-a=1|x-b=2|te=trailers, gzip|x-forwarded-for=1.2.3.4"
	noTE := "|te=trailers, gzip|x-forwarded-for=1.2.3.4"
	upgrade := func(more string) string { return "head :method=GET|:path=/|:authority=a" + more + " end=false" }
	runRequests(t, []requestCase{
		{name: "keep-alive", in: conn("keep-alive"), want: ok(all, "connection=keep-alive")},
		{name: "close", in: conn("Close"), want: ok(all, "connection=Close")},
		{name: "one", in: conn("x-a"), want: ok("x-b=2" + noTE)},
		{name: "two", in: conn("X-A ,\tx-b"), want: ok(noTE[1:])},
		{name: "one and close", in: conn("close, x-a"), want: ok("x-b=2"+noTE, "connection=close")},
		{name: "te", in: conn("te"), want: ok("x-a=1|x-b=2|te=trailers|x-forwarded-for=1.2.3.4|connection=te")},
		{name: "te without trailers", in: get("TE: gzip", "Connection: te"), want: ok()},
		{name: "connection", in: conn("connection, x-a"), want: ok("x-b=2" + noTE)},
		{name: "host", in: conn("host"), want: "head :method=GET|:path=/|" + all + " end=true"},
		{name: "empty", in: conn(" , "), want: ok(all, "connection=,")},
		{name: "x-forwarded-for", in: conn("x-forwarded-for"), want: refused},
		{name: "x-forwarded-host, absent", in: conn("x-forwarded-host"), want: refused},
		{name: "x-forwarded-proto", in: conn("x-a, X-Forwarded-Proto"), want: refused},
		{name: "pseudo header", in: conn("x-a,:path"), want: refused},
		{name: "nine", in: conn("a,b,c,d,e,f,g,h,i"), want: ok(all)},
		{name: "ten", in: conn("a,b,c,d,e,f,g,h,i,j"), want: refused},
		{name: "commas", in: conn("a,,,,,,,,,,,,b"), want: ok(all)},
		{name: "TE of 255", in: get("TE: "+strings.Repeat("a", 255), "Connection: te"), want: ok()},
		{name: "TE of 256", in: get("TE: "+strings.Repeat("a", 256), "Connection: te"), want: refused},
		{name: "chunked is read although nominated", in: "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: transfer-encoding\r\n\r\n1\r\na\r\n0\r\n\r\n",
			want: "head :method=POST|:path=/|:authority=a end=false\ndata a end=true"},
		{name: "upgrade", in: get("Connection: keep-alive, Upgrade", "Upgrade: websocket") + "raw", want: upgrade("|connection=keep-alive, Upgrade|upgrade=websocket") + "\ndata raw end=false"},
		{name: "upgrade keeps nominated", in: get("Connection: Upgrade, x-a", "X-A: 1", "Upgrade: x"), want: upgrade("|connection=Upgrade, x-a|x-a=1|upgrade=x")},
		{name: "upgrade not nominated", in: get("Upgrade: websocket"), want: ok("upgrade=websocket")},
		{name: "h2c", in: get("Connection: Upgrade, HTTP2-Settings, X-A", "Upgrade: H2C", "HTTP2-Settings: AAA", "X-A: 1"), want: ok()},
		{name: "h2c among others", in: get("Connection: Upgrade", "Upgrade: h2c, websocket"), want: upgrade("|connection=Upgrade|upgrade=h2c, websocket")},
		{name: "upgrade twice", in: get("Connection: Upgrade", "Upgrade: h2c", "Upgrade: websocket"), want: upgrade("|connection=Upgrade|upgrade=h2c,websocket")},
		{name: "upgrade ignored", in: get("Connection: Upgrade", "Upgrade: TLS/1.2"), want: ok(),
			opts: &h1.Options{IgnoreUpgrade: func(v string) bool { return strings.HasPrefix(v, "TLS/") }}},
		{name: "upgrade ignored, with empty elements", in: get("Connection: Upgrade", "Upgrade: ,TLS/1.2, TLS/1.3,"), want: ok(),
			opts: &h1.Options{IgnoreUpgrade: func(v string) bool { return strings.HasPrefix(v, "TLS/") }}},
		{name: "empty upgrade where some are ignored", in: get("Connection: Upgrade", "Upgrade:"), want: ok(),
			opts: &h1.Options{IgnoreUpgrade: func(string) bool { return false }}},
		{name: "upgrade ignored among others", in: get("Connection: a, Upgrade", "Upgrade: TLS/1.2, x ,TLS/1.3"), want: upgrade("|connection=a, Upgrade|upgrade=x"),
			opts: &h1.Options{IgnoreUpgrade: func(v string) bool { return strings.HasPrefix(v, "TLS/") }}},
		{name: "upgrade with both lengths", in: get("Connection: Upgrade", "Upgrade: x", "Content-Length: 1", "Transfer-Encoding: chunked"),
			want: bad(400, "http1.content_length_and_chunked_not_allowed")},
	})
}
