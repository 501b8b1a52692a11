package h1_test

import (
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
)

// A connection that breaks ends its response with a reset, also one that would end with the connection.
func TestConnectionLost(t *testing.T) {
	const cut = "reset connection termination\ndone reusable=false"
	const broken = "reset protocol error\ndone reusable=false"
	for in, want := range map[string]string{
		"":                           cut,
		"HTTP/1.1 200":               broken,
		"HTTP/1.1 200 OK\r\n\r\nabc": "head :status=200 end=false\ndata abc end=false\n" + cut,
		"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc": "head :status=200|content-length=5 end=false\ndata abc end=false\n" + broken,
	} {
		u := newRouter(t, &h1.Options{})
		u.merge = true
		u.get()
		if _, err := u.feed(in, 0); err != nil {
			t.Fatal(err)
		}
		u.c.Lost(true)
		if got := u.events(); got != want {
			t.Errorf("%q: got\n%s\nwant\n%s", in, got, want)
		}
		u.c.Lost(true)
		if got := u.events(); got != "" {
			t.Errorf("%q: once more: %s", in, got)
		}
	}
}
