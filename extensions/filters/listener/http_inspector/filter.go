package http_inspector //nolint:revive // Envoy's name

import (
	"bytes"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stats"
)

// maxLine is how long a request line may be, in bytes; a longer one is taken for something else.
const maxLine = 64 << 10

// inspector looks at one connection.
type inspector struct {
	stats stats.GroupBase
	cb    network.ListenerCallbacks
	d     detector
}

// OnAccept implements network.ListenerFilter: what another filter took for TLS is left alone.
func (f *inspector) OnAccept(cb network.ListenerCallbacks) network.FilterStatus {
	f.cb = cb
	if t := cb.Info().Said().Transport; t != "" && t != "raw_buffer" {
		return network.Continue
	}
	return network.StopIteration
}

// MaxReadBytes implements network.ListenerFilter.
func (f *inspector) MaxReadBytes() int { return maxLine }

// OnClose implements network.ListenerFilter.
func (f *inspector) OnClose() {}

// OnData implements network.ListenerFilter.
func (f *inspector) OnData(b []byte) network.FilterStatus {
	p := f.d.detect(b)
	if p == undecided {
		if len(b) < maxLine {
			return network.StopIteration
		}
		p = other
	}
	r := protocols[p]
	f.cb.Stats().Inc(f.stats.Counter(r.stat))
	if r.alpn != "" {
		f.cb.Info().SetHello().ALPN = []string{r.alpn}
	}
	return network.Continue
}

type protocol uint8

const (
	undecided protocol = iota
	other
	http10
	http11
	http2
)

var protocols = [...]struct {
	stat stats.CounterIndex
	alpn string
}{
	other: {notFound, ""}, http10: {http10Found, "http/1.0"}, http11: {http11Found, "http/1.1"}, http2: {http2Found, "h2c"},
}

var preface = []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

// detector finds out what begins with the bytes of a connection. It decides as early as it can: by the first byte that no method has.
type detector struct {
	// method is the length of the method as far as it was read, line how much was searched for the end of the line: every byte
	// is looked at once, however the client cuts them.
	method, line int
}

// detect goes on with b, everything that has come so far.
func (d *detector) detect(b []byte) protocol {
	if k := min(len(b), len(preface)); bytes.Equal(b[:k], preface[:k]) {
		if k == len(preface) {
			return http2
		}
		return undecided
	}
	for ; d.method < len(b) && b[d.method] != ' '; d.method++ {
		if !token(b[d.method]) {
			return other
		}
	}
	if d.method == len(b) {
		return undecided
	}
	if d.method == 0 {
		return other
	}
	end := bytes.IndexByte(b[d.line:], '\n')
	if end < 0 {
		d.line = len(b)
		return undecided
	}
	line := bytes.TrimSuffix(b[:d.line+end], []byte("\r"))
	// Two blanks at least: method, target, version.
	last := bytes.LastIndexByte(line, ' ')
	if last <= d.method {
		return other
	}
	switch string(line[last+1:]) {
	case "HTTP/1.1":
		return http11
	case "HTTP/1.0":
		return http10
	}
	return other
}

// token tells whether c may be part of a method (RFC 9110 section 5.6.2).
func token(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) >= 0
}
