package h1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
)

func TestResponseEncoding(t *testing.T) {
	const (
		get1 = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
		head = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"
		get0 = "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n"
		conn = "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"
		ws   = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
	)
	ten := &h1.Options{AcceptHTTP10: true}
	proper := &h1.Options{ProperCase: true, EnableTrailers: true}
	trailers := &h1.Options{EnableTrailers: true}
	tests := []struct {
		name, req string
		opts      *h1.Options
		head      []string // name, value
		data      []string // pieces, nil: the head ends the response
		trailers  []string
		want      string
		closes    bool
	}{
		{name: "length", req: get1, head: []string{":status", "200", "x-a", "1", "content-length", "2"}, data: []string{"ok"}, want: "HTTP/1.1 200 OK\r\nx-a: 1\r\ncontent-length: 2\r\n\r\nok"},
		{name: "no body", req: get1, head: []string{":status", "404"}, want: "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"},
		{name: "chunked", req: get1, head: []string{":status", "200", "x-a", "1"}, data: []string{"0123456789abcdef!", "b"},
			want: "HTTP/1.1 200 OK\r\nx-a: 1\r\ntransfer-encoding: chunked\r\n\r\n11\r\n0123456789abcdef!\r\n1\r\nb\r\n0\r\n\r\n"},
		{name: "chunked, empty end", req: get1, head: []string{":status", "200"}, data: []string{"a", ""},
			want: "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"},
		{name: "chunked, empty piece", req: get1, head: []string{":status", "200"}, data: []string{"", "a"},
			want: "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"},
		{name: "transfer-encoding of the upstream is not repeated", req: get1, head: []string{":status", "200", "transfer-encoding", "chunked", "content-length", "1"}, data: []string{"a"},
			want: "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na"},
		{name: "host is a field", req: get1, head: []string{":status", "200", "host", "q"}, want: "HTTP/1.1 200 OK\r\nhost: q\r\ncontent-length: 0\r\n\r\n"},
		{name: "trailers off", req: get1, head: []string{":status", "200"}, data: []string{"a"}, trailers: []string{"x-t", "1"},
			want: "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"},
		{name: "trailers", req: get1, opts: trailers, head: []string{":status", "200"}, data: []string{"a"}, trailers: []string{"x-t", "1", "host", "q"},
			want: "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-t: 1\r\nhost: q\r\n\r\n"},
		{name: "trailers with length", req: get1, opts: trailers, head: []string{":status", "200", "content-length", "1"}, data: []string{"a"}, trailers: []string{"x-t", "1"},
			want: "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na"},
		{name: "HEAD with length", req: head, head: []string{":status", "200", "content-length", "5"}, want: "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"},
		{name: "HEAD", req: head, head: []string{":status", "200"}, want: "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"},
		{name: "HEAD drops data", req: head, head: []string{":status", "200"}, data: []string{"a", "b"}, want: "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"},
		{name: "204", req: get1, head: []string{":status", "204"}, want: "HTTP/1.1 204 No Content\r\n\r\n"},
		{name: "204 drops data", req: get1, head: []string{":status", "204"}, data: []string{"a"}, want: "HTTP/1.1 204 No Content\r\n\r\n"},
		{name: "304", req: get1, head: []string{":status", "304"}, want: "HTTP/1.1 304 Not Modified\r\n\r\n"},
		{name: "304 with length", req: get1, head: []string{":status", "304", "content-length", "5"}, want: "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n"},
		{name: "close", req: get1, head: []string{":status", "200", "connection", "close"}, want: "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", closes: true},
		{name: "unknown status", req: get1, head: []string{":status", "299"}, want: "HTTP/1.1 299 Unknown\r\ncontent-length: 0\r\n\r\n"},
		{name: "425", req: get1, head: []string{":status", "425"}, want: "HTTP/1.1 425 Too Early\r\ncontent-length: 0\r\n\r\n"},
		{name: "599", req: get1, head: []string{":status", "599"}, want: "HTTP/1.1 599 Last Unassigned Server Error Code\r\ncontent-length: 0\r\n\r\n"},
		{name: "no status", req: get1, head: []string{"x", "y"}, want: "HTTP/1.1 500 Internal Server Error\r\nx: y\r\ncontent-length: 0\r\n\r\n"},
		{name: "HTTP/1.0 refused", req: get0, head: []string{":status", "426"}, want: "HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n"},
		{name: "HTTP/1.0", req: get0, opts: ten, head: []string{":status", "200", "content-length", "1"}, data: []string{"a"}, want: "HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na"},
		{name: "HTTP/1.0 until close", req: get0, opts: ten, head: []string{":status", "200"}, data: []string{"a", "b"}, want: "HTTP/1.0 200 OK\r\n\r\nab", closes: true},
		{name: "CONNECT", req: conn, head: []string{":status", "200"}, data: []string{"raw", ""}, want: "HTTP/1.1 200 OK\r\n\r\nraw", closes: true},
		{name: "CONNECT refused", req: conn, head: []string{":status", "403"}, data: []string{"a"}, want: "HTTP/1.1 403 Forbidden\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", closes: true},
		{name: "101", req: ws, head: []string{":status", "101", "connection", "upgrade", "upgrade", "x"}, data: []string{"raw", ""}, want: "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nraw", closes: true},
		{name: "upgrade refused", req: ws, head: []string{":status", "403", "content-length", "1"}, data: []string{"a"}, want: "HTTP/1.1 403 Forbidden\r\ncontent-length: 1\r\n\r\na", closes: true},
		{name: "proper case", req: get1, opts: proper, head: []string{":status", "200", "x-foo_bar-9baz.q-ab-", "1", "x--y", "2", "x-a$b", "3", "etag", "4"}, data: []string{"a"}, trailers: []string{"x-t", "1"},
			want: "HTTP/1.1 200 OK\r\nX-Foo_Bar-9baz.Q-Ab-: 1\r\nX--Y: 2\r\nX-A$B: 3\r\nEtag: 4\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-t: 1\r\n\r\n"},
		{name: "a filter cannot split a response", req: get1, head: []string{":status", "200", "x", "a\r\nset-cookie: b"}, want: "HTTP/1.1 200 OK\r\nx: a  set-cookie: b\r\ncontent-length: 0\r\n\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := tt.opts
			if opts == nil {
				opts = &std
			}
			u := newUser(t, opts)
			if _, err := u.feed(tt.req, 0); err != nil {
				t.Fatal(err)
			}
			r := u.reqs[0]
			fill := func(nv []string) *http.HeaderMap {
				r.resp.Init(&r.arena)
				for i := 0; i < len(nv); i += 2 {
					r.resp.AddName(nv[i], nv[i+1])
				}
				return &r.resp
			}
			r.s.EncodeHeaders(fill(tt.head), tt.data == nil)
			for i, d := range tt.data {
				r.data(d, i == len(tt.data)-1 && tt.trailers == nil)
			}
			if tt.trailers != nil {
				r.s.EncodeTrailers(fill(tt.trailers))
			}
			if !r.done {
				t.Error("not complete")
			}
			if r.closes != tt.closes {
				t.Errorf("closes: %v", r.closes)
			}
			if d := cmp.Diff(tt.want, u.out.flush()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRequestEncoding(t *testing.T) {
	p := func(method string, more ...string) []string {
		return append([]string{":method", method, ":path", "/p?q", ":authority", "h:1", ":scheme", "http"}, more...)
	}
	fq, proper := &h1.Options{SendFullyQualifiedURL: true}, &h1.Options{ProperCase: true}
	trailers := &h1.Options{EnableTrailers: true}
	tests := []struct {
		name     string
		opts     *h1.Options
		head     []string
		data     []string
		trailers []string
		want     string
	}{
		{name: "GET", head: p("GET", "x-b", "1", "accept", "2"), want: "GET /p?q HTTP/1.1\r\nhost: h:1\r\nx-b: 1\r\naccept: 2\r\n\r\n"},
		{name: "HEAD", head: p("HEAD"), want: "HEAD /p?q HTTP/1.1\r\nhost: h:1\r\n\r\n"},
		{name: "DELETE", head: p("DELETE"), want: "DELETE /p?q HTTP/1.1\r\nhost: h:1\r\n\r\n"},
		{name: "TRACE", head: p("TRACE"), want: "TRACE /p?q HTTP/1.1\r\nhost: h:1\r\n\r\n"},
		{name: "POST without body", head: p("POST", "x", "y"), want: "POST /p?q HTTP/1.1\r\nhost: h:1\r\nx: y\r\ncontent-length: 0\r\n\r\n"},
		{name: "OPTIONS without body", head: p("OPTIONS"), want: "OPTIONS /p?q HTTP/1.1\r\nhost: h:1\r\ncontent-length: 0\r\n\r\n"},
		{name: "GET with length 0", head: p("GET", "content-length", "0"), want: "GET /p?q HTTP/1.1\r\nhost: h:1\r\ncontent-length: 0\r\n\r\n"},
		{name: "length", head: p("POST", "content-length", "2"), data: []string{"o", "k"}, want: "POST /p?q HTTP/1.1\r\nhost: h:1\r\ncontent-length: 2\r\n\r\nok"},
		{name: "chunked", head: p("POST", "transfer-encoding", "chunked"), data: []string{"ok", ""}, want: "POST /p?q HTTP/1.1\r\nhost: h:1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
		{name: "GET chunked", head: p("GET"), data: []string{"ok"}, want: "GET /p?q HTTP/1.1\r\nhost: h:1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
		{name: "trailers", opts: trailers, head: p("POST"), data: []string{"ok"}, trailers: []string{"x", "y"}, want: "POST /p?q HTTP/1.1\r\nhost: h:1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx: y\r\n\r\n"},
		{name: "trailers off", head: p("POST"), data: []string{"ok"}, trailers: []string{"x", "y"}, want: "POST /p?q HTTP/1.1\r\nhost: h:1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
		{name: "CONNECT", head: []string{":method", "CONNECT", ":authority", "h:1"}, data: []string{"raw"}, want: "CONNECT h:1 HTTP/1.1\r\nhost: h:1\r\n\r\nraw"},
		{name: "upgrade", head: p("GET", "connection", "Upgrade", "upgrade", "x"), data: []string{"raw"}, want: "GET /p?q HTTP/1.1\r\nhost: h:1\r\nconnection: Upgrade\r\nupgrade: x\r\n\r\nraw"},
		{name: "fully qualified", opts: fq, head: p("GET"), want: "GET http://h:1/p?q HTTP/1.1\r\nhost: h:1\r\n\r\n"},
		{name: "proper case", opts: proper, head: p("POST", "x-a", "1"), want: "POST /p?q HTTP/1.1\r\nHost: h:1\r\nX-A: 1\r\nContent-Length: 0\r\n\r\n"},
		{name: "without authority", head: []string{":method", "GET", ":path", "/"}, want: "GET / HTTP/1.1\r\n\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := tt.opts
			if opts == nil {
				opts = &h1.Options{}
			}
			u := newRouter(t, opts)
			if err := u.request(tt.data == nil, tt.head...); err != nil {
				t.Fatal(err)
			}
			for i, d := range tt.data {
				u.data(d, i == len(tt.data)-1 && tt.trailers == nil)
			}
			if tt.trailers != nil {
				u.req.Init(&u.arena)
				u.req.AddName(tt.trailers[0], tt.trailers[1])
				u.stream.EncodeTrailers(&u.req)
			}
			got := u.out.flush()
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
			fields := fieldBytes(got, 0)
			if tt.trailers != nil && strings.Contains(got, tt.trailers[0]+": ") {
				fields += uint64(len(tt.trailers[0] + ": " + tt.trailers[1] + "\r\n"))
			}
			if b := u.stream.WireBytes(); b.Sent != uint64(len(got)) || b.HeaderSent != fields {
				t.Errorf("counted %+v", *b)
			}
		})
	}
}

func TestUnsendableRequests(t *testing.T) {
	fq := &h1.Options{SendFullyQualifiedURL: true}
	for _, tt := range []struct {
		name string
		opts *h1.Options
		head []string
		want error
	}{
		{"no method", nil, []string{":path", "/", ":authority", "a"}, h1.ErrMissingMethod},
		{"no path", nil, []string{":method", "GET", ":authority", "a"}, h1.ErrMissingPath},
		{"CONNECT without authority", nil, []string{":method", "CONNECT"}, h1.ErrMissingAuthority},
		{"fully qualified without authority", fq, []string{":method", "GET", ":path", "/", ":scheme", "http"}, h1.ErrMissingAuthority},
		{"fully qualified without scheme", fq, []string{":method", "GET", ":path", "/", ":authority", "a"}, h1.ErrMissingScheme},
		{"blank in path", nil, []string{":method", "GET", ":path", "/ HTTP/1.1", ":authority", "a"}, h1.ErrInvalidField},
		{"CR LF in value", nil, []string{":method", "GET", ":path", "/", ":authority", "a", "x", "a\r\nb: c"}, h1.ErrInvalidField},
		{"LF in value", nil, []string{":method", "GET", ":path", "/", ":authority", "a", "x", "a\nb: c"}, h1.ErrInvalidField},
		{"CR in host", nil, []string{":method", "GET", ":path", "/", ":authority", "a\rb"}, h1.ErrInvalidField},
		{"CR LF in value, proper case", &h1.Options{ProperCase: true}, []string{":method", "GET", ":path", "/", ":authority", "a", "x", "a\r\nb: c"}, h1.ErrInvalidField},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := tt.opts
			if opts == nil {
				opts = &h1.Options{}
			}
			u := newRouter(t, opts)
			if err := u.request(true, tt.head...); err != tt.want {
				t.Errorf("got %v", err)
			}
			if s := u.out.flush(); s != "" {
				t.Errorf("sent %q", s)
			}
			u.stream.Reset(http.ResetLocal)
		})
	}
}

// preserve_case: a name is written as it came, wherever the head goes.
func TestPreserveCase(t *testing.T) {
	mk := func(f h1.PreserveCase) *h1.Options {
		return &h1.Options{EnableTrailers: true, NewFormatter: func(*http.Arena) http.KeyFormatter { g := f; return &g }}
	}
	u := newUser(t, mk(h1.PreserveCase{}))
	r := newRouter(t, mk(h1.PreserveCase{ForwardReason: true, ProperEnvoy: true}))
	if _, err := u.feed("POST / HTTP/1.1\r\nHOST: a\r\nX-Foo: 1\r\nx-FOO: 2\r\nACCEPT: a\r\naccept: b\r\ntransfer-encODING: chunked\r\n\r\n0\r\nX-TraIL: b\r\n\r\n", 0); err != nil {
		t.Fatal(err)
	}
	h := &u.reqs[0].h
	h.AddName("x-added", "1")
	r.h.Init(&r.arena)
	r.stream = r.c.NewStream(r, &r.h)
	if err := r.stream.EncodeHeaders(h, false); err != nil {
		t.Fatal(err)
	}
	r.data("", true)
	want := "POST / HTTP/1.1\r\nHOST: a\r\nX-Foo: 1\r\nX-Foo: 2\r\nACCEPT: a,b\r\nx-added: 1\r\ntransfer-encODING: chunked\r\n\r\n0\r\n\r\n"
	if d := cmp.Diff(want, r.out.flush()); d != "" {
		t.Error(d)
	}
	if _, err := r.feed("HTTP/1.1 200 Fine Thing\r\nX-Up: 1\r\nx-UP: 2\r\ncontent-Length: 2\r\n\r\nok", 0); err != nil {
		t.Fatal(err)
	}
	r.h.AddName("x-added", "1")
	u.reqs[0].s.EncodeHeaders(&r.h, false)
	u.reqs[0].data("ok", true)
	want = "HTTP/1.1 200 Fine Thing\r\nX-Up: 1\r\nX-Up: 2\r\ncontent-Length: 2\r\nX-Added: 1\r\n\r\nok"
	if d := cmp.Diff(want, u.out.flush()); d != "" {
		t.Error(d)
	}
}
