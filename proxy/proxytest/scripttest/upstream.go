package scripttest

import (
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
)

// Upstream is a scripted server for HTTP/1.
type Upstream struct {
	// Serve answers one request. nil: every request is answered with 200 and "ok".
	Serve func(r *Call)
	// Early calls Serve as soon as a head is there, before the body.
	Early bool
	// Down: nobody listens.
	Down bool
}

// Call is one request that an upstream got.
type Call struct {
	// Head is the request's head without the empty line, Body what has come of the body, as sent.
	Head, Body string
	// N counts the upstream's requests from 1, Conn its connections.
	N, Conn int

	p *Proxy
	c *sim.Conn
}

// Answer is a response with a length.
func Answer(status, body string, headers ...string) string {
	head := "HTTP/1.1 " + status + "\r\n"
	for _, h := range headers {
		head += h + "\r\n"
	}
	return head + "content-length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// Write sends bytes now.
func (r *Call) Write(text string) { r.c.Write([]byte(text)) }

// Reply answers with a status and a body.
func (r *Call) Reply(status, body string, headers ...string) {
	r.Write(Answer(status, body, headers...))
}

// After calls f after some time, unless the connection is closed by then.
func (r *Call) After(d time.Duration, f func()) {
	r.p.w.After(d, func() {
		if !r.c.IsClosed() {
			f()
		}
	})
}

// Close ends the connection, Reset breaks it.
func (r *Call) Close() { r.c.Close() }

// Reset breaks the connection.
func (r *Call) Reset() { r.c.Reset() }

// Path is the request's path.
func (r *Call) Path() string {
	f := strings.Fields(r.Head)
	if len(f) < 2 {
		return ""
	}
	return f[1]
}

// Header returns the value of a header line, "" if there is none.
func (r *Call) Header(name string) string { return HeaderOf(r.Head, name) }

// HeaderOf returns the value of a header line in the head of a message, "" if there is none.
func HeaderOf(message, name string) string {
	head, _, _ := strings.Cut(message, "\r\n\r\n")
	for _, line := range strings.Split(head, "\r\n") {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(k, name) {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// accept gives each connection a script.
func (u Upstream) accept(p *Proxy) func(c *sim.Conn) sim.Script {
	if u.Serve == nil {
		u.Serve = func(r *Call) { r.Reply("200 OK", "ok") }
	}
	conns, calls := 0, 0
	return func(*sim.Conn) sim.Script {
		conns++
		return &upstreamScript{u: &u, p: p, conn: conns, calls: &calls}
	}
}

// upstreamScript is one connection of an upstream.
type upstreamScript struct {
	u      *Upstream
	p      *Proxy
	calls  *int
	conn   int
	in     string
	called *Call // whose body is coming
}

func (s *upstreamScript) Open(*sim.Conn)                  {}
func (s *upstreamScript) End(c *sim.Conn)                 { c.Close() }
func (s *upstreamScript) Closed(*sim.Conn, syscall.Errno) {}

func (s *upstreamScript) Data(c *sim.Conn, b []byte) {
	s.in += string(b)
	for {
		head, rest, ok := strings.Cut(s.in, "\r\n\r\n")
		if !ok {
			return
		}
		n, whole := bodyLength(head, rest)
		if s.called == nil && (whole || s.u.Early) {
			*s.calls++
			s.called = &Call{Head: head, Body: rest[:n], N: *s.calls, Conn: s.conn, p: s.p, c: c}
			s.u.Serve(s.called)
		} else if s.called != nil {
			s.called.Body = rest[:n]
		}
		if !whole || c.IsClosed() {
			return
		}
		s.in, s.called = rest[n:], nil
	}
}

// bodyLength is how many bytes of rest are the body of a message; whole tells whether it is complete.
func bodyLength(head, rest string) (n int, whole bool) {
	if strings.EqualFold(HeaderOf(head, "transfer-encoding"), "chunked") {
		if i := strings.Index(rest, "0\r\n\r\n"); i >= 0 {
			return i + 5, true
		}
		return len(rest), false
	}
	n, _ = strconv.Atoi(HeaderOf(head, "content-length"))
	if len(rest) < n {
		return len(rest), false
	}
	return n, true
}
