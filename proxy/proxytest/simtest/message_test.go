package simtest

import (
	"fmt"
	"strings"
	"testing"
)

// transcript reads a stream cut at every k bytes and writes down what came out.
func transcript(response bool, stream string, k int) string {
	var b strings.Builder
	body := 0
	r := &reader{response: response}
	r.head = func(m *message) error { fmt.Fprintf(&b, "[%s|%d]", m.first, len(m.fields)); return nil }
	r.body = func(p []byte) error { b.Write(p); body += len(p); return nil }
	r.done = func() error { fmt.Fprintf(&b, "(%d,%d)", body, len(r.m.trailer)); body = 0; return nil }
	for len(stream) > 0 {
		n := min(k, len(stream))
		if err := r.feed([]byte(stream[:n])); err != nil {
			return b.String() + "!"
		}
		stream = stream[n:]
	}
	if err := r.eof(); err != nil {
		b.WriteString("!")
	}
	return b.String()
}

var streams = []struct {
	response bool
	in, out  string
}{
	{false, "GET / HTTP/1.1\r\na: b\r\n\r\n", "[GET / HTTP/1.1|1](0,0)"},
	{false, "POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\nabcGET /2 HTTP/1.1\r\n\r\n", "[POST / HTTP/1.1|1]abc(3,0)[GET /2 HTTP/1.1|0](0,0)"},
	{false, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x\r\n0123456789\r\n0\r\nt: v\r\n\r\n", "[POST / HTTP/1.1|1]abc0123456789(13,1)"},
	{true, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nto the end", "[HTTP/1.1 100 Continue|0](0,0)[HTTP/1.1 200 OK|0]to the end(10,0)"},
	{true, "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", "[HTTP/1.1 304 Not Modified|1](0,0)"},
	{true, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc", "[HTTP/1.1 200 OK|1]abc!"},
	{true, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n", "!"},
	{true, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n", "[HTTP/1.1 200 OK|2]!"},
	{true, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabcd", "[HTTP/1.1 200 OK|1]abc!"},
	{true, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n", "[HTTP/1.1 200 OK|1]!"},
	{true, "HTTP/1.0 200 OK\r\n\r\n", "!"},
	{false, "GET / HTTP/1.1\r\na b: c\r\n\r\n", "!"},
	{false, "GET /", "!"},
}

func TestReader(t *testing.T) {
	for _, s := range streams {
		for _, k := range []int{1, 2, 7, 1000} {
			if got := transcript(s.response, s.in, k); got != s.out {
				t.Errorf("%q in pieces of %d: %q, want %q", s.in, k, got, s.out)
			}
		}
	}
}

func TestReaderBoundsHeads(t *testing.T) {
	for n, want := range map[int]bool{maxHead: true, maxHead + 1: false} {
		ok := !strings.HasSuffix(transcript(false, "GET / HTTP/1.1\r\na: "+strings.Repeat("x", n-19)+"\r\n\r\n", 100), "!")
		if ok != want {
			t.Errorf("a head of %d bytes: %v", n, ok)
		}
	}
}

// However a stream is cut, the same comes out.
func FuzzReader(f *testing.F) {
	for _, s := range streams {
		f.Add(s.response, s.in)
	}
	f.Fuzz(func(t *testing.T, response bool, in string) {
		whole := transcript(response, in, len(in)+1)
		if bits := transcript(response, in, 1); bits != whole {
			t.Errorf("whole %q, byte by byte %q", whole, bits)
		}
	})
}
