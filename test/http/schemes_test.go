package http_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/proxytest/scripttest"
)

// A scheme that is none of ours is not believed: the connection's stands in its place.
func TestForeignSchemes(t *testing.T) {
	m := scripttest.Mode{Down: scripttest.H2C, Up: scripttest.H1}
	var got []string
	p := m.Start(t, scripttest.Config{VirtualHost: []string{`request_headers_to_add: [{header: {key: x-scheme, value: "%REQ(:SCHEME)%"}}]`}},
		scripttest.Upstream{Serve: func(r *scripttest.Call) {
			got = append(got, r.Header("x-scheme"))
			r.Reply("200 OK", "")
		}})
	for _, scheme := range []string{"http", "HTTPS", "ftp", "ws", "a+b"} {
		p.Dial().Raw(head2(t, true, ":method=GET", ":scheme="+scheme, ":authority=h", ":path=/"))
	}
	if d := cmp.Diff([]string{"http", "https", "http", "http", "http"}, got); d != "" {
		t.Error(d)
	}
}

// Bytes above ASCII may stand in a path of HTTP/2, and go on as they are.
func TestPathsAboveASCII(t *testing.T) {
	m := scripttest.Mode{Down: scripttest.H2C, Up: scripttest.H1}
	var got []string
	p := m.Start(t, scripttest.Config{}, scripttest.Upstream{Serve: func(r *scripttest.Call) {
		got = append(got, r.Path())
		r.Reply("200 OK", "")
	}})
	for _, path := range []string{"/é", "/a?b=日本", "/\xff", "/\x7f"} {
		p.Dial().Raw(head2(t, true, ":method=GET", ":scheme=http", ":authority=h", ":path="+path))
	}
	if d := cmp.Diff([]string{"/é", "/a?b=日本", "/\xff"}, got); d != "" {
		t.Error(d)
	}
}
