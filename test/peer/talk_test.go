//go:build peers

package peer_test

import (
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// talk is what a proxy made of a stream: what it answered, how it ended, and what its upstream was sent.
type talk struct {
	answer  string
	closed  bool // by the proxy, before the client was done
	reset   bool
	forward []string
	from    string // the client's address
	failed  error
}

func (t *talk) String() string {
	end := ""
	switch {
	case t.failed != nil:
		end = "FAILED " + t.failed.Error()
	case t.closed:
		end = "CLOSED"
	}
	return t.answer + "|" + end + "|" + strings.Join(t.forward, "&")
}

// pace is how long a client waits: between two writes so that they are read one by one, and for a last answer.
type pace struct{ between, quiet time.Duration }

var paces = []pace{{time.Millisecond, 30 * time.Millisecond}, {5 * time.Millisecond, 150 * time.Millisecond}, {10 * time.Millisecond, 600 * time.Millisecond},
	{20 * time.Millisecond, 3 * time.Second}, {60 * time.Millisecond, 3 * time.Second}}

// source gives every talk a client address of its own, so that the logs of both proxies and the upstreams can be told apart.
var source atomic.Uint32

func nextSource() net.IP {
	n := source.Add(1)
	return net.IPv4(127, byte(1+n>>16%200), byte(n>>8), byte(n))
}

// speak writes a stream to a proxy from an address, waits until it is quiet, ends its side, and reads to the end.
func speak(addr string, from net.IP, in *byteStream, p pace) (t talk) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}, Timeout: patience}
	nc, err := d.Dial("tcp", addr)
	if err != nil {
		return talk{failed: err}
	}
	c := nc.(*net.TCPConn)
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(patience))
	r := &hearing{c: c, more: make(chan struct{}, 1), end: make(chan struct{})}
	go r.read()
	pause := time.NewTimer(time.Hour)
	defer pause.Stop()
	at := 0
	for _, cut := range append(in.cuts[:len(in.cuts):len(in.cuts)], len(in.bytes)) {
		if at > 0 {
			pause.Reset(p.between)
			<-pause.C
		}
		if _, err := c.Write(in.bytes[at:cut]); err != nil {
			break // the proxy has had enough
		}
		at = cut
	}
	t.closed = r.untilQuiet(pause, p.quiet)
	_ = c.CloseWrite()
	<-r.end
	t.answer, t.reset = steadyAnswer(r.buf.String()), r.reset
	return t
}

// hearing reads what a proxy says.
type hearing struct {
	c     *net.TCPConn
	buf   strings.Builder
	more  chan struct{}
	end   chan struct{}
	reset bool
}

func (r *hearing) read() {
	defer close(r.end)
	b := make([]byte, 16<<10)
	for {
		n, err := r.c.Read(b)
		r.buf.Write(b[:n])
		if err != nil {
			r.reset = !errors.Is(err, io.EOF)
			return
		}
		select {
		case r.more <- struct{}{}:
		default:
		}
	}
}

// untilQuiet tells whether the proxy closed before it was quiet for so long.
func (r *hearing) untilQuiet(pause *time.Timer, quiet time.Duration) (closed bool) {
	for {
		pause.Reset(quiet)
		select {
		case <-r.end:
			return true
		case <-r.more:
		case <-pause.C:
			return false
		}
	}
}

var (
	anyDate  = regexp.MustCompile(`(?im)^(date|x-envoy-upstream-service-time): [^\r\n]*`)
	anyUUID  = regexp.MustCompile(`(?im)^(x-request-id): [0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
	anyPort  = regexp.MustCompile(`(?im)^(x-forwarded-port): \d{4,5}`)
	anyAgent = regexp.MustCompile(`(?im)^(x-tag|x-forwarded-for|x-envoy-external-address): ([^\r\n]*?)127\.\d+\.\d+\.\d+`)
)

func steadyAnswer(s string) string {
	return anyUUID.ReplaceAllString(anyDate.ReplaceAllString(s, "$1: changing"), "$1: UUID")
}

func steadyHead(s string) string {
	return anyPort.ReplaceAllString(anyAgent.ReplaceAllString(anyUUID.ReplaceAllString(s, "$1: UUID"), "$1: ${2}CLIENT"), "$1: PORT")
}

// both lets the two proxies hear a stream at the same time.
func both(pair [2]*judged, in *byteStream, p pace) (said [2]talk) {
	var wg sync.WaitGroup
	for i, j := range pair {
		wg.Go(func() {
			from := nextSource()
			if in.answer != nil {
				j.upstream.prepare(from.String(), in.answer, p)
			}
			said[i] = speak(j.addr(in.listener), from, in, p)
			said[i].from = from.String()
			said[i].forward = j.upstream.take(from.String())
		})
	}
	wg.Wait()
	return said
}
