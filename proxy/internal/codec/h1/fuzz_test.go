package h1_test

import (
	"bufio"
	"bytes"
	"io"
	nethttp "net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
)

var fuzzOptions = []h1.Options{
	{AllowAbsoluteURL: true},
	{EnableTrailers: true, AllowChunkedLength: true, AllowCustomMethods: true, AcceptHTTP10: true},
	{EnableTrailers: true, StrictChunks: true, Underscores: h1.UnderscoresDrop, MaxHeadBytes: 300, MaxHeaders: 6},
	{AllowAbsoluteURL: true, EnableTrailers: true, NewFormatter: func(*http.Arena) http.KeyFormatter { return &h1.PreserveCase{} }},
}

// serve gives in to a server that answers each request at its end, in pieces of size bytes, and returns events and output.
func serve(t *testing.T, in string, opts *h1.Options, size int) (events, out string) {
	u := newUser(t, opts)
	u.merge = true
	u.onEnd = func(r *userStream) { r.respond("200", "ok"); out += u.out.flush() }
	if _, err := u.feed(in, size); err == nil {
		if err := u.s.EOF(); err != nil {
			t.Fatal(err)
		}
	}
	return u.withoutLost(), out + u.out.flush()
}

// FuzzRequest: a server never panics, leaks nothing, and says the same however the bytes are cut. That also holds the fast path
// for heads to the slow one, which alone sees heads in parts.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		get("X-A: 1", "Connection: x-a, te", "TE: trailers"), post("hello", "Content-Length: 5") + get(), chunked("3;x\r\nabc\r\n0\r\nX: y\r\n\r\n") + get(),
		"GET http://u@a.b:80/?x HTTP/1.1\r\nHost: b\r\n\r\n", "CONNECT [::1]:443 HTTP/1.1\r\nHost: b\r\n\r\nraw", get("X: a", " b", "Y: c\rd"),
		get("Connection: Upgrade", "Upgrade: websocket") + "raw", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get("Accept: a", "Accept: b"),
		"GET /\n", "\r\n\r\nGET\t/ HTTP/1.1 \r\nhOsT:a\nX_y: 1\n\n", get("Content-Length: 1", "Transfer-Encoding: chunked"), get(strings.Repeat("X: 1\r\n", 10)),
	} {
		for i := range fuzzOptions {
			f.Add(s, uint8(i), uint8(7))
		}
	}
	f.Fuzz(func(t *testing.T, in string, opt, size uint8) {
		opts := &fuzzOptions[int(opt)%len(fuzzOptions)]
		whole, out := serve(t, in, opts, 0)
		for _, n := range []int{1, int(size)%50 + 2} {
			events, sent := serve(t, in, opts, n)
			if d := cmp.Diff(whole, events); d != "" {
				t.Fatalf("in pieces of %d: %s", n, d)
			}
			if d := cmp.Diff(out, sent); d != "" {
				t.Fatalf("sent, in pieces of %d: %s", n, d)
			}
		}
	})
}

// FuzzResponse is FuzzRequest for the client side.
func FuzzResponse(f *testing.F) {
	for _, s := range []string{
		answer("ok", "Content-Length: 2"), answer("2\r\nok\r\n0\r\nX: y\r\n\r\n", "Transfer-Encoding: chunked"), answer("ok"),
		"HTTP/1.1 100 C\r\n\r\n" + answer("okMORE", "Content-Length: 2", "Connection: close"), "HTTP/1.1 204 N\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 101 S\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nraw", "HTTP/1.0 200\nX: a\r\n b\nVary: a\nVary: b\n\n", "HTTP/1.1  304 \r\n\r\n",
	} {
		for i := range fuzzOptions {
			f.Add(s, uint8(i), uint8(7), uint8(0))
			f.Add(s, uint8(i), uint8(7), uint8(i))
		}
	}
	reqs := [][]string{{":method", "GET", ":path", "/", ":authority", "h"}, {":method", "HEAD", ":path", "/", ":authority", "h"},
		{":method", "CONNECT", ":authority", "h:1"}, {":method", "GET", ":path", "/", ":authority", "h", "connection", "upgrade", "upgrade", "x"}}
	f.Fuzz(func(t *testing.T, in string, opt, size, req uint8) {
		run := func(n int) (string, bool) {
			u := newRouter(t, &fuzzOptions[int(opt)%len(fuzzOptions)])
			u.merge = true
			if err := u.request(true, reqs[int(req)%len(reqs)]...); err != nil {
				t.Fatal(err)
			}
			u.out.flush()
			_, err := u.feed(in, n)
			if err == nil {
				err = u.c.EOF()
			}
			for i := 1; i < len(u.log); i++ {
				if strings.HasPrefix(u.log[i], "reset ") && strings.HasPrefix(u.log[i-1], "data ") {
					u.log = append(u.log[:i-1], u.log[i:]...)
				}
			}
			s := u.events()
			if err != nil || strings.HasSuffix(s, done) {
				// Surplus bytes are seen with the response or after it.
				s = strings.TrimSuffix(s, done)
				s = strings.TrimSuffix(s, doneNot)
			}
			return s, err != nil
		}
		whole, failed := run(0)
		for _, n := range []int{1, int(size)%50 + 2} {
			events, fails := run(n)
			if d := cmp.Diff(whole, events); d != "" || failed != fails {
				t.Fatalf("in pieces of %d: failed %v, %v: %s", n, failed, fails, d)
			}
		}
	})
}

// relayed is what a request looks like after it went through a server and a client.
func relayed(t *testing.T, in string, trailers bool) (out string, complete bool) {
	u := newUser(t, &h1.Options{EnableTrailers: trailers})
	r := newRouter(t, &h1.Options{EnableTrailers: trailers})
	r.h.Init(&r.arena)
	p := &relay{userStream: nil, r: r}
	u.relay = p
	_, err := u.feed(in, 0)
	if err != nil || !p.complete {
		return r.out.flush(), false
	}
	return r.out.flush(), true
}

// FuzzRoundTrip: what is parsed and encoded again parses to the same, and encodes to the same.
func FuzzRoundTrip(f *testing.F) {
	f.Add(get("X-A: 1", "Accept: a", "Accept: b"))
	f.Add(post("hello", "Content-Length: 5"))
	f.Add(chunked("3;x\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n"))
	f.Add(get("X: a", " b", "Y: c\rd"))
	f.Fuzz(func(t *testing.T, in string) {
		first, complete := relayed(t, in, true)
		if !complete {
			return
		}
		second, complete := relayed(t, first, true)
		if !complete {
			t.Fatalf("%q was made of %q, and is not taken", first, in)
		}
		if d := cmp.Diff(first, second); d != "" {
			t.Fatal(d)
		}
	})
}

// FuzzPeer: what we send upstream for any request that we take, net/http reads as one request with the same meaning.
func FuzzPeer(f *testing.F) {
	f.Add(get("X-A: 1", "Accept: a", "Accept: b"))
	f.Add(post("hello", "Content-Length: 5"))
	f.Add(chunked("3;x\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n"))
	f.Add("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
	f.Fuzz(func(t *testing.T, in string) {
		u := newUser(t, &h1.Options{})
		r := newRouter(t, &h1.Options{})
		r.h.Init(&r.arena)
		p := &relay{r: r}
		u.relay = p
		if _, err := u.feed(in, 0); err != nil || !p.complete {
			return
		}
		out := r.out.flush()
		br := bufio.NewReader(strings.NewReader(out))
		req, err := nethttp.ReadRequest(br)
		if err != nil {
			if stricter(p, err) {
				return
			}
			t.Fatalf("%q: %v", out, err)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		if req.Method != p.method || req.RequestURI != p.path || req.Host != p.authority || !bytes.Equal(body, p.body) {
			t.Fatalf("%q: %s %s %s %q, we say %s %s %s %q", out, req.Method, req.RequestURI, req.Host, body, p.method, p.path, p.authority, p.body)
		}
		if br.Buffered() != 0 {
			t.Fatalf("%q: bytes are left", out)
		}
	})
}

// stricter tells whether net/http refuses something that Envoy and we pass on.
func stricter(p *relay, err error) bool {
	for _, s := range []string{"invalid URI", "parse ", "malformed Host header", "invalid URL escape", "bad Content-Length", "invalid port"} {
		if strings.Contains(err.Error(), s) {
			return true
		}
	}
	return false
}
