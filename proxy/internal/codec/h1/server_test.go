package h1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
)

func lines(s ...string) string { return strings.Join(s, "\n") }

var std = h1.Options{AllowAbsoluteURL: true}

func TestRequestEvents(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"get", "GET /a?b HTTP/1.1\r\nHost: h\r\nX-A:  one \r\n\r\n", lines("new 1",
			"head :method=GET|:path=/a?b|:authority=h|x-a=one end=true")},
		{"length", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello", lines("new 1",
			"head :method=POST|:path=/|:authority=h|content-length=5 end=false", "data hello end=true")},
		{"chunked", "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", lines("new 1",
			"head :method=POST|:path=/|:authority=h|transfer-encoding=chunked end=false", "data abcde end=true")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := newUser(t, &std)
			if _, err := u.feed(tt.in, 0); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, u.events()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestPipeline(t *testing.T) {
	u := newUser(t, &std)
	in := "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n"
	rest, err := u.feed(in, 0)
	if err != nil || rest != in[len(in)/2:] {
		t.Fatal(rest, err)
	}
	u.reqs[0].respond("200", "ok")
	if rest, err = u.feed(rest, 0); err != nil || rest != "" {
		t.Fatal(rest, err)
	}
	u.reqs[1].respond("404", "")
	if d := cmp.Diff("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", u.out.flush()); d != "" {
		t.Error(d)
	}
}
