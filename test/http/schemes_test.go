package http_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

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
		var block, frames bytes.Buffer
		enc := hpack.NewEncoder(&block)
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", scheme}, {":authority", "h"}, {":path", "/"}} {
			if err := enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
				t.Fatal(err)
			}
		}
		if err := http2.NewFramer(&frames, nil).WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true,
			EndHeaders: true}); err != nil {
			t.Fatal(err)
		}
		p.Dial().Raw(frames.String())
	}
	if d := cmp.Diff([]string{"http", "https", "http", "http", "http"}, got); d != "" {
		t.Error(d)
	}
}
