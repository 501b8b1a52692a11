package h1_test

import (
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/codec/h1"
)

// Which of several faults is named follows Envoy: a fault of the first line at the end of what was read with it, unless the rest of the head
// came too and holds control characters; then the syntax of all lines; then what they mean.
func TestOrderOfFaults(t *testing.T) {
	strict := &h1.Options{AllowAbsoluteURL: true, Underscores: h1.UnderscoresReject, MaxHeaders: 3, MaxHeadBytes: 200}
	const characters, lines = "http1.invalid_characters", "http1.codec_error"
	for name, c := range map[string]struct {
		in     string
		whole  string
		pieces string // given byte by byte
	}{
		"DEL in target":         {"GET /\x7f HTTP/1.1\r\nhost: a\r\n\r\n", characters, lines},
		"control in method":     {"G\x01T / HTTP/1.1\r\nhost: a\r\n\r\n", characters, lines},
		"bad method, then NUL":  {"G / HTTP/1.1\r\nhost: a\r\nx: \x00\r\n\r\n", characters, lines},
		"control as a blank":    {"GET\v/ HTTP/1.1\r\nhost: a\r\n\r\n", characters, characters},
		"no colon, then NUL":    {"GET / HTTP/1.1\r\nhost: a\r\nx\r\ny: \x00\r\n\r\n", characters, characters},
		"underscore, no colon":  {"GET / HTTP/1.1\r\nx_y: 1\r\nx\r\n\r\n", lines, lines},
		"underscore, length":    {"GET / HTTP/1.1\r\nx_y: 1\r\ncontent-length: x\r\n\r\n", lines, lines},
		"underscore":            {"GET / HTTP/1.1\r\nx_y: 1\r\n\r\n", "http1.unexpected_underscore", "http1.unexpected_underscore"},
		"too many, no colon":    {"GET / HTTP/1.1\r\na: 1\r\na: 1\r\na: 1\r\na: 1\r\nx\r\n\r\n", lines, lines},
		"bad target, too large": {"GET /\x80 HTTP/1.1\r\na: " + strings.Repeat("x", 200) + "\r\n\r\n", "http1.headers_too_large", lines},
		"underscore, then name": {"GET / HTTP/1.1\r\na: 1\r\nx_y: 1\r\n\xa9: 1\r\n\r\n", lines, lines},
		"underscore, bad name":  {"GET / HTTP/1.1\r\nx_y: 1\r\na: 1\r\n\xa9: 1\r\n\r\n", "http1.unexpected_underscore", "http1.unexpected_underscore"},
		"bad name, underscore":  {"GET / HTTP/1.1\r\n\xa9: 1\r\nx_y: 1\r\n\r\n", lines, lines},
		"two lengths, both none": {"GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: x\r\ncontent-length:\r\n\r\n",
			"http1.content_length_and_chunked_not_allowed", "http1.content_length_and_chunked_not_allowed"},
		"bad length, but the last coding is chunked": {"GET / HTTP/1.1\r\ntransfer-encoding: d\r\ncontent-length: x\r\ntransfer-encoding: Chunked\r\n\r\n",
			"http1.content_length_and_chunked_not_allowed", "http1.content_length_and_chunked_not_allowed"},
		"bad length, and the first coding is chunked": {"GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: x\r\ntransfer-encoding: d\r\n\r\n", lines, lines},
		"CR inside of a length":                       {"GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r1\r\n\r\n", lines, lines},
		"CR behind a length":                          {"GET / HTTP/1.1\r\nhost: ^\r\ncontent-length: 0\r\r\n\r\n", "http.invalid_authority", "http.invalid_authority"},
	} {
		t.Run(name, func(t *testing.T) {
			for size, want := range map[int]string{0: c.whole, 1: c.pieces} {
				u := newUser(t, strict)
				_, err := u.feed(c.in, size)
				if err == nil || !strings.Contains(u.events(), " "+want+"\n") {
					t.Errorf("in pieces of %d: %q, want %s", size, u.events(), want)
				}
			}
		})
	}
}

func TestSchemeNeedsTLS(t *testing.T) {
	for secure, want := range map[bool]string{false: "error 403 http1.https_url_on_plaintext_connection", true: ":scheme=https"} {
		u := newUser(t, &h1.Options{AllowAbsoluteURL: true, ValidateScheme: true})
		if secure {
			u.s.SetSecure()
		}
		_, _ = u.feed("GET https://h/ HTTP/1.1\r\nhost: h\r\n\r\n", 0)
		if !strings.Contains(u.events(), want) {
			t.Errorf("secure %v: %q", secure, u.events())
		}
	}
}
