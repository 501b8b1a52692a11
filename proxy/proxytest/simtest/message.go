package simtest

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// reader takes HTTP/1.1 messages apart, strictly: it shares no code with the proxy's codec, so that the two check each other.
type reader struct {
	// response tells which kind of message comes.
	response bool
	// head is called with each head, body with each run of body bytes, done at the end of each message. Each may return an error.
	head func(m *message) error
	body func(p []byte) error
	done func() error

	buf   []byte
	state readState
	left  int
	m     *message
	err   error
}

type readState uint8

const (
	inHead readState = iota
	inLength
	inChunkSize
	inChunk
	inChunkEnd
	inTrailers
	untilClose
)

// message is a head.
type message struct {
	first   string // the request or status line
	fields  [][2]string
	method  string
	path    string
	status  int
	noBody  bool // set by head: the message has no body whatever it says (an answer to HEAD)
	toClose bool // the end of the connection ends it
	trailer [][2]string
}

// maxHead bounds what is kept of a head.
const maxHead = 64 << 10

// get returns the values of a field, joined.
func (m *message) get(name string) string {
	var v []string
	for _, f := range m.fields {
		if strings.EqualFold(f[0], name) {
			v = append(v, f[1])
		}
	}
	return strings.Join(v, ",")
}

func (m *message) number(name string) int {
	n, err := strconv.Atoi(m.get(name))
	if err != nil {
		return -1
	}
	return n
}

// idle tells whether the reader stands between two messages.
func (r *reader) idle() bool { return r.state == inHead && len(r.buf) == 0 }

// eof tells the reader that nothing more comes. It returns an error if that cuts a message.
func (r *reader) eof() error {
	switch {
	case r.err != nil:
		return r.err
	case r.state == untilClose:
		r.state = inHead
		return r.done()
	case !r.idle():
		return fmt.Errorf("cut off within a message")
	}
	return nil
}

// feed reads p.
func (r *reader) feed(p []byte) error {
	if r.err != nil {
		return r.err
	}
	r.buf = append(r.buf, p...)
	for r.err == nil {
		more, err := r.step()
		r.err = err
		if !more {
			break
		}
	}
	return r.err
}

func (r *reader) step() (more bool, err error) {
	switch r.state {
	case inHead:
		i := bytes.Index(r.buf, []byte("\r\n\r\n"))
		if i > maxHead || i < 0 && len(r.buf) >= maxHead+4 {
			return false, fmt.Errorf("a head of more than %d bytes", maxHead)
		}
		if i < 0 {
			return false, nil
		}
		head := string(r.buf[:i])
		r.buf = r.buf[i+4:]
		return true, r.begin(head)
	case inLength, inChunk, untilClose:
		return r.content()
	case inChunkEnd:
		if len(r.buf) < 2 {
			return false, nil
		}
		if string(r.buf[:2]) != "\r\n" {
			return false, fmt.Errorf("a chunk ends with %q", r.buf[:2])
		}
		r.buf, r.state = r.buf[2:], inChunkSize
		return true, nil
	}
	i := bytes.Index(r.buf, []byte("\r\n"))
	if i < 0 {
		if len(r.buf) > maxHead {
			return false, fmt.Errorf("a line of more than %d bytes", maxHead)
		}
		return false, nil
	}
	line := string(r.buf[:i])
	r.buf = r.buf[i+2:]
	if r.state == inTrailers {
		return true, r.trailerLine(line)
	}
	size, _, _ := strings.Cut(line, ";")
	n, err := strconv.ParseUint(size, 16, 31)
	if err != nil {
		return false, fmt.Errorf("a chunk size of %q", line)
	}
	if r.left, r.state = int(n), inChunk; n == 0 {
		r.state = inTrailers
	}
	return true, nil
}

func (r *reader) content() (bool, error) {
	n := len(r.buf)
	if r.state != untilClose {
		n = min(n, r.left)
	}
	if n == 0 {
		return false, nil
	}
	if err := r.body(r.buf[:n]); err != nil {
		return false, err
	}
	r.buf = r.buf[n:]
	if r.state == untilClose {
		return true, nil
	}
	if r.left -= n; r.left > 0 {
		return true, nil
	}
	if r.state == inChunk {
		r.state = inChunkEnd
		return true, nil
	}
	r.state = inHead
	return true, r.done()
}

func (r *reader) trailerLine(line string) error {
	if line == "" {
		r.state = inHead
		return r.done()
	}
	f, err := field(line)
	r.m.trailer = append(r.m.trailer, f)
	return err
}

func field(line string) (f [2]string, err error) {
	name, value, ok := strings.Cut(line, ":")
	if !ok || name == "" || strings.ContainsAny(name, " \t") {
		return f, fmt.Errorf("a header line %q", line)
	}
	return [2]string{name, strings.Trim(value, " \t")}, nil
}

// begin reads a head and finds out how its body ends (RFC 9112, 6.3).
func (r *reader) begin(head string) error {
	lines := strings.Split(head, "\r\n")
	m := &message{first: lines[0]}
	r.m = m
	for _, line := range lines[1:] {
		f, err := field(line)
		if err != nil {
			return err
		}
		m.fields = append(m.fields, f)
	}
	a, rest, _ := strings.Cut(m.first, " ")
	b, c, _ := strings.Cut(rest, " ")
	if r.response {
		var err error
		if m.status, err = strconv.Atoi(b); err != nil || a != "HTTP/1.1" || m.status < 100 || m.status > 599 {
			return fmt.Errorf("a status line %q", m.first)
		}
	} else if m.method, m.path = a, b; c != "HTTP/1.1" {
		return fmt.Errorf("a request line %q", m.first)
	}
	length, coding := m.get("content-length"), m.get("transfer-encoding")
	if length != "" && coding != "" {
		return fmt.Errorf("both a length and a coding: %q", head)
	}
	if err := r.head(m); err != nil {
		return err
	}
	switch {
	case r.response && m.status == 101, !r.response && m.get("upgrade") != "":
		r.state = untilClose // a tunnel
	case m.noBody, r.response && (m.status < 200 || m.status == 204 || m.status == 304):
		return r.done()
	case coding == "chunked":
		r.state = inChunkSize
	case coding != "":
		return fmt.Errorf("a transfer coding %q", coding)
	case length != "":
		n, err := strconv.ParseUint(length, 10, 31)
		if err != nil {
			return fmt.Errorf("a content length of %q", length)
		}
		if n == 0 {
			return r.done()
		}
		r.state, r.left = inLength, int(n)
	case r.response:
		r.state, m.toClose = untilClose, true
	default:
		return r.done()
	}
	return nil
}
