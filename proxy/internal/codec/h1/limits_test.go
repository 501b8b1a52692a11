package h1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
)

// headOf is a GET's head of exactly n bytes.
func headOf(n int) string {
	pre, post := "GET / HTTP/1.1\r\nHost: a\r\nX: ", "\r\n\r\n"
	return pre + strings.Repeat("a", n-len(pre)-len(post)) + post
}

func responseOf(n int) string {
	pre, post := "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ", "\r\n\r\n"
	return pre + strings.Repeat("a", n-len(pre)-len(post)) + post
}

func many(line string, n int) string { return strings.Repeat(line, n) }

// Each limit holds at the limit and fails one past it, however the bytes come.
func TestRequestLimits(t *testing.T) {
	trailers := &h1.Options{EnableTrailers: true}
	small := &h1.Options{MaxHeadBytes: 500, MaxHeaders: 5, EnableTrailers: true}
	trailer := func(n int) string { return "0\r\nX: " + strings.Repeat("a", n-len("X: \r\n\r\n")) + "\r\n\r\n" }
	ext := func(n int) string { return "1;" + strings.Repeat("x", n-3) + "\r\na\r\n0\r\n\r\n" }
	count := func(n int) string { return "GET / HTTP/1.1\r\nHost: a\r\n" + many("X: 1\r\n", n-1) + "\r\n" }
	large, manyH := "http1.headers_too_large", "http1.too_many_headers"
	for _, tt := range []struct {
		name    string
		opts    *h1.Options
		at      func(n int) string
		limit   int
		details string
	}{
		{"head", &std, headOf, h1.DefaultMaxRequestHeadBytes, large},
		{"head, configured", small, headOf, 500, large},
		{"head, of an odd kind", &h1.Options{Underscores: h1.UnderscoresDrop}, headOf, h1.DefaultMaxRequestHeadBytes, large},
		{"fields", &std, count, h1.DefaultMaxHeaders, manyH},
		{"fields, configured", small, count, 5, manyH},
		{"trailers", trailers, func(n int) string { return chunked(trailer(n)) }, h1.DefaultMaxRequestHeadBytes, large},
		{"trailers dropped", &std, func(n int) string { return chunked(trailer(n)) }, h1.DefaultMaxRequestHeadBytes, large},
		{"trailer fields", trailers, func(n int) string { return chunked("0\r\n" + many("X: 1\r\n", n) + "\r\n") }, h1.DefaultMaxHeaders, manyH},
		{"chunk extension", &std, func(n int) string { return chunked(ext(n)) }, h1.MaxChunkLineBytes, syntax},
		{"text after data", &std, func(n int) string { return chunked("1\r\na" + strings.Repeat("x", n) + "\n0\r\n\r\n") }, h1.MaxChunkLineBytes, syntax},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, size := range []int{0, 1, 1000} {
				u := newUser(t, tt.opts)
				if _, err := u.feed(tt.at(tt.limit), size); err != nil || !strings.HasSuffix(strings.TrimSpace(u.events()), "end=true") && tt.opts != trailers {
					t.Fatalf("size %d: at the limit: %v", size, err)
				}
				u = newUser(t, tt.opts)
				_, err := u.feed(tt.at(tt.limit+1), size)
				log := u.events()
				if err == nil || !strings.Contains(log, tt.details) {
					t.Fatalf("size %d: past the limit: %v\n%.300s", size, err, log)
				}
				if status := "error 431"; tt.details != syntax && !strings.Contains(log, status) {
					t.Fatalf("size %d: %s", size, log)
				}
			}
		})
	}
}

// Fields that are joined count once.
func TestJoinedFieldsCountOnce(t *testing.T) {
	in := "GET / HTTP/1.1\r\nHost: a\r\n" + many("Accept: 1\r\n", 50) + many("X: 1\r\n", h1.DefaultMaxHeaders-2)
	u := newUser(t, &std)
	if _, err := u.feed(in+"\r\n", 0); err != nil {
		t.Error(err)
	}
	u = newUser(t, &std)
	if _, err := u.feed(in+"X: 1\r\n\r\n", 0); err == nil {
		t.Error("too many fields are taken")
	}
}

// Trailers that are dropped are not counted, as in Envoy; their bytes are bounded.
func TestDroppedTrailersAreNotCounted(t *testing.T) {
	u := newUser(t, &std)
	if _, err := u.feed(chunked("0\r\n"+many("X: 1\r\n", 1000)+"\r\n"), 0); err != nil {
		t.Error(err)
	}
}

// A head that never ends is refused before more than the limit was stored.
func TestEndlessLine(t *testing.T) {
	u := newUser(t, &std)
	fed := 0
	for {
		k, err := u.s.Dispatch([]byte(strings.Repeat("G", 1024)))
		if err != nil {
			break
		}
		if fed += k; fed > h1.DefaultMaxRequestHeadBytes {
			t.Fatal("no end to it")
		}
	}
	if log := u.events(); !strings.Contains(log, "error 431 http1.headers_too_large") {
		t.Error(log)
	}
}

func TestResponseLimits(t *testing.T) {
	count := func(n int) string {
		return "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + many("X: 1\r\n", n-1) + "\r\n"
	}
	info := "HTTP/1.1 103 E\r\nLink: " + strings.Repeat("a", 1024-len("HTTP/1.1 103 E\r\nLink: \r\n\r\n")) + "\r\n\r\n"
	for _, tt := range []struct {
		name  string
		opts  *h1.Options
		at    func(n int) string
		limit int
	}{
		{"head", &h1.Options{}, responseOf, h1.DefaultMaxResponseHeadBytes},
		{"head, configured", &h1.Options{MaxHeadBytes: 400}, responseOf, 400},
		{"fields", &h1.Options{}, count, h1.DefaultMaxHeaders},
		{"fields, configured", &h1.Options{MaxHeaders: 3}, count, 3},
		{"informational bytes", &h1.Options{MaxHeadBytes: 10 << 10}, func(n int) string { return many(info, n) + responseOf(100) }, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, size := range []int{0, 1, 1000} {
				u := newRouter(t, tt.opts)
				u.get()
				if _, err := u.feed(tt.at(tt.limit), size); err != nil || !strings.HasSuffix(u.events(), done) {
					t.Fatalf("size %d: at the limit: %v", size, err)
				}
				u = newRouter(t, tt.opts)
				u.get()
				if _, err := u.feed(tt.at(tt.limit+1), size); err == nil || !strings.HasSuffix(u.events(), resetPE) {
					t.Fatalf("size %d: past the limit: %v", size, err)
				}
			}
		})
	}
}

// A head that comes byte by byte is searched once: were it searched anew with each byte, this test would take hours.
func TestSlowHeadIsNotQuadratic(t *testing.T) {
	const n = 4 << 20
	u := newUser(t, &h1.Options{MaxHeadBytes: n})
	b := []byte(headOf(n))
	for i := range b {
		if k, err := u.s.Dispatch(b[i : i+1]); k != 1 || err != nil {
			t.Fatal(i, k, err)
		}
	}
	if len(u.log) != 2 {
		t.Error("not parsed")
	}
}

// What a peer can make us keep while it sends a head slowly is the head itself, not a slab.
func TestManyFieldsDoNotKeepMemory(t *testing.T) {
	u := newUser(t, &h1.Options{MaxHeaders: 10000, MaxHeadBytes: 1 << 20})
	u.onEnd = func(r *userStream) { r.respond("200", "") }
	var b strings.Builder
	b.WriteString("GET / HTTP/1.1\r\nHost: a\r\n")
	for i := range 5000 {
		fmt.Fprintf(&b, "X-%d: 1\r\n", i)
	}
	if _, err := u.feed(b.String()+"\r\n", 1000); err != nil {
		t.Fatal(err)
	}
	if n := u.w.pool.Kept(); n > 32<<10 {
		t.Errorf("%d bytes are kept", n)
	}
}
