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
	p := detect(b)
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

// detect tells what begins with b. It decides as early as it can: by the first byte that no method has.
func detect(b []byte) protocol {
	if k := min(len(b), len(preface)); bytes.Equal(b[:k], preface[:k]) {
		if k == len(preface) {
			return http2
		}
		return undecided
	}
	i := 0
	for ; i < len(b) && b[i] != ' '; i++ {
		if !token(b[i]) {
			return other
		}
	}
	if i == len(b) {
		return undecided
	}
	if i == 0 {
		return other
	}
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return undecided
	}
	line := bytes.TrimSuffix(b[:end], []byte("\r"))
	// Two blanks at least: method, target, version.
	last := bytes.LastIndexByte(line, ' ')
	if last <= i {
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
