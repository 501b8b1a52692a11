//go:build peers

package peer_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// recorder is an upstream that keeps what it was sent, byte for byte, by the client that it was sent for: the proxy notes the
// client's address in x-tag.
type recorder struct {
	addr string
	mu   sync.Mutex
	seen map[string][]string
	// scripts are the answers to /answer, by client.
	scripts map[string]script
}

type script struct {
	answer *byteStream
	pace   pace
}

// prepare sets what a client's request is answered with.
func (r *recorder) prepare(tag string, a *byteStream, p pace) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scripts[tag] = script{a, p}
}

// play gives a client's answer. end: the connection is of no further use.
func (r *recorder) play(c net.Conn, tag string) (end bool) {
	r.mu.Lock()
	s := r.scripts[tag]
	r.mu.Unlock()
	if s.answer == nil {
		return true
	}
	at := 0
	for _, cut := range append(s.answer.cuts[:len(s.answer.cuts):len(s.answer.cuts)], len(s.answer.bytes)) {
		if at > 0 {
			<-time.After(s.pace.between)
		}
		if _, err := c.Write(s.answer.bytes[at:cut]); err != nil {
			return true
		}
		at = cut
	}
	return s.answer.listener == "close"
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{addr: l.Addr().String(), seen: map[string][]string{}, scripts: map[string]script{}}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go r.serve(c)
		}
	}()
	return r
}

// take returns and forgets what came for a client.
func (r *recorder) take(tag string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.seen[tag]
	delete(r.seen, tag)
	return s
}

func (r *recorder) note(tag, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[tag] = append(r.seen[tag], what)
}

func (r *recorder) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	for {
		head, err := readHead(in)
		if err != nil {
			if head != "" {
				r.note(tagOf(head), "broken head: "+head)
			}
			return
		}
		tag := tagOf(head)
		if strings.Contains(head, " /answer HTTP/1.1\r\n") {
			if _, err := readBody(in, head); err != nil || r.play(c, tag) {
				return
			}
			continue
		}
		if fieldOf(head, "upgrade") != "" || strings.HasPrefix(head, "CONNECT ") {
			r.tunnel(c, in, tag, head)
			return
		}
		body, err := readBody(in, head)
		if err != nil {
			return // how much of a request that never ends gets here is a matter of time
		}
		r.note(tag, steadyHead(sameFraming(head, body))+strings.TrimSuffix(body, "\r\n"))
		if _, err := io.WriteString(c, answerTo(head)); err != nil {
			return
		}
	}
}

// sameFraming makes two ways to say that a body is empty one: which of them a proxy takes depends on whether it had a connection at hand.
func sameFraming(head, body string) string {
	if body == "\r\n" {
		head = chunkedField.ReplaceAllString(head, "content-length: 0\r\n")
	}
	return head
}

var chunkedField = regexp.MustCompile(`(?i)transfer-encoding: chunked\r\n`)

// tunnel grants another protocol, and echoes it.
func (r *recorder) tunnel(c net.Conn, in io.Reader, tag, head string) {
	r.note(tag, steadyHead(head))
	answer := "HTTP/1.1 200 OK\r\n\r\n"
	if p := fieldOf(head, "upgrade"); p != "" {
		answer = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: " + p + "\r\n\r\n"
	}
	if _, err := io.WriteString(c, answer); err == nil {
		_, _ = io.Copy(c, in)
	}
}

func answerTo(head string) string {
	if strings.HasPrefix(head, "GET /a/b") {
		return "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx-up: 1\r\n\r\n2\r\nok\r\n0\r\n\r\n"
	}
	if strings.HasPrefix(head, "HEAD ") {
		return "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
	}
	return "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
}

func readHead(in *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		l, err := in.ReadString('\n')
		b.WriteString(l)
		if err != nil || l == "\r\n" && b.Len() > 2 || b.Len() > 1<<20 {
			return b.String(), err
		}
	}
}

// fieldOf returns the value of a field of a head that a proxy wrote.
func fieldOf(head, name string) string {
	for l := range strings.SplitSeq(head, "\r\n") {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.EqualFold(k, name) {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func tagOf(head string) string { return fieldOf(head, "x-tag") }

var errFraming = errors.New("a request that has no clear end")

// readBody reads as a strict server does, and returns the body and the trailers without chunks.
func readBody(in *bufio.Reader, head string) (string, error) {
	if te := fieldOf(head, "transfer-encoding"); te != "" {
		if te != "chunked" {
			return "", errFraming
		}
		return readChunks(in)
	}
	length := fieldOf(head, "content-length")
	if length == "" {
		return "", nil
	}
	n, err := strconv.ParseUint(length, 10, 63)
	if err != nil {
		return "", errFraming
	}
	var b strings.Builder
	_, err = io.CopyN(&b, in, int64(n))
	return b.String(), err
}

func readChunks(in *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		l, err := in.ReadString('\n')
		if err != nil {
			return "", err
		}
		n, err := strconv.ParseUint(strings.TrimSuffix(l, "\r\n"), 16, 31)
		if err != nil {
			return "", fmt.Errorf("%w: %q", errFraming, l)
		}
		if n == 0 {
			break
		}
		if _, err := io.CopyN(&b, in, int64(n)); err != nil {
			return "", err
		}
		if l, err = in.ReadString('\n'); err != nil || l != "\r\n" {
			return "", errFraming
		}
	}
	for {
		l, err := in.ReadString('\n')
		if err != nil {
			return "", err
		}
		b.WriteString(l)
		if l == "\r\n" {
			return b.String(), nil
		}
	}
}
