package scripttest

import (
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http2"

	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
)

// Upstream is a scripted server. It speaks HTTP/1, or what the mode says.
type Upstream struct {
	// Serve answers one request. nil: every request is answered with 200 and "ok".
	Serve func(r *Call)
	// Early calls Serve as soon as a head is there, before the body.
	Early bool
	// Tunnel is told of the bytes that follow an upgrade or CONNECT, if set.
	Tunnel func(r *Call, bytes string)
	// Canceled is told of a request that the proxy gives up before it is answered, if set.
	Canceled func(r *Call)
	// Down: nobody listens.
	Down bool
}

// Call is one request that an upstream got.
type Call struct {
	// Head is the request's head without the empty line, Body what has come of the body, without its coding; Whole tells whether that
	// is all, and then there are Trailers, if any.
	Head, Body string
	Trailers   []string
	Whole      bool
	// N counts the upstream's requests from 1, Conn its connections.
	N, Conn int

	u      *upstreamConn
	s      *h2stream // nil: HTTP/1
	say    *decoder  // of what we answer
	tunnel bool
	done   bool // answered whole, or given up
}

// Answer is a response with a length.
func Answer(status, body string, headers ...string) string {
	head := "HTTP/1.1 " + status + "\r\n"
	for _, h := range headers {
		head += h + "\r\n"
	}
	return head + "content-length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// Write sends text of a response now, or part of it.
func (r *Call) Write(text string) {
	if r.s == nil {
		r.u.l.write([]byte(text))
	}
	r.say.feed(text)
	if r.say.in == notUnderstood && r.s != nil {
		r.u.p.t.Errorf("%q cannot be said in HTTP/2", text)
	}
}

// Reply answers with a status and a body.
func (r *Call) Reply(status, body string, headers ...string) {
	r.Write(Answer(status, body, headers...))
}

// After calls f after some time, unless the connection is closed by then.
func (r *Call) After(d time.Duration, f func()) {
	r.u.p.w.After(d, func() {
		if !r.u.l.c.IsClosed() {
			f()
		}
	})
}

// Close ends the connection. It ends a response that has no length.
func (r *Call) Close() {
	if r.s != nil && r.say.in == untilClosed {
		r.say.eof()
		return
	}
	r.u.calls = nil
	r.u.l.close()
}

// Reset breaks the connection.
func (r *Call) Reset() {
	r.u.calls = nil
	r.u.l.c.Reset()
}

// Fail gives up the request: its stream with HTTP/2, by a reset of the connection with HTTP/1.
func (r *Call) Fail() {
	if r.s == nil {
		r.Reset()
		return
	}
	r.done = true
	r.s.cancel(http2.ErrCodeInternal)
}

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
	return value(strings.Split(head, "\r\n"), name)
}

// accept gives each connection a script.
func (u Upstream) accept(p *Proxy) func(c *sim.Conn) sim.Script {
	if u.Serve == nil {
		u.Serve = func(r *Call) { r.Reply("200 OK", "ok") }
	}
	conns, calls := 0, 0
	return func(c *sim.Conn) sim.Script {
		conns++
		x := &upstreamConn{u: &u, p: p, conn: conns, count: &calls}
		x.l = &link{c: c, to: x, config: p.mode.Up.config(true), server: true}
		if p.mode.Up.Streams() {
			x.h = &h2peer{l: x.l, on: x, server: true}
		}
		x.read = &decoder{
			head: func(start string, lines []string, end bool) {
				x.last = x.begin(strings.Join(append([]string{start}, lines...), "\r\n"), nil)
				x.head(x.last, x.read.in == inTunnel, end)
			},
			data: func(s string) { x.more(x.last, s) },
			end:  func(trailers []string) { x.whole(x.last, trailers) },
		}
		return x.l
	}
}

// upstreamConn is one connection of an upstream.
type upstreamConn struct {
	u     *Upstream
	p     *Proxy
	l     *link
	count *int    // of the upstream's calls
	calls []*Call // of this connection
	conn  int
	h     *h2peer  // nil: HTTP/1
	read  *decoder // HTTP/1 only
	last  *Call
}

// begin takes note of a request. s is its stream, nil with HTTP/1.
func (x *upstreamConn) begin(head string, s *h2stream) *Call {
	*x.count++
	r := &Call{Head: head, N: *x.count, Conn: x.conn, u: x, s: s}
	method, _, _ := strings.Cut(head, " ")
	r.say = &decoder{
		response: true, method: func() string { return method },
		head: func(start string, lines []string, end bool) {
			r.done = r.done || end
			if s != nil {
				s.write(responseFields(start, lines), end)
			}
		},
		data: func(text string) {
			if s != nil {
				s.send(text)
			}
		},
		end: func(trailers []string) {
			r.done = true
			if s != nil {
				s.finish(trailers)
			}
		},
	}
	x.calls = append(x.calls, r)
	return r
}

// head, more and whole are a request's, in any protocol.
func (x *upstreamConn) head(r *Call, tunnel, end bool) {
	r.tunnel = tunnel
	r.Whole = end
	if end || x.u.Early || tunnel {
		x.u.Serve(r)
	}
}

func (x *upstreamConn) more(r *Call, s string) {
	if !r.tunnel {
		r.Body += s
	} else if x.u.Tunnel != nil {
		x.u.Tunnel(r, s)
	}
}

func (x *upstreamConn) whole(r *Call, trailers []string) {
	if r.tunnel {
		if r.s != nil {
			r.s.finish(nil)
		}
		return
	}
	r.Trailers, r.Whole = trailers, true
	if !x.u.Early {
		x.u.Serve(r)
	}
}

// What comes with HTTP/2.

func (x *upstreamConn) fields(s *h2stream, nv []string, end bool) error {
	start, lines := requestText(nv)
	s.call = x.begin(strings.Join(append([]string{start}, lines...), "\r\n"), s)
	x.head(s.call, s.protocol != "" || strings.HasPrefix(start, "CONNECT "), end)
	return nil
}

func (x *upstreamConn) body(s *h2stream, b string) { x.more(s.call, b) }

func (x *upstreamConn) over(s *h2stream, trailers []string) { x.whole(s.call, trailers) }

func (x *upstreamConn) canceled(s *h2stream, _ http2.ErrCode) { x.gaveUp(s.call) }

// gaveUp: the proxy does not want a request's answer any more.
func (x *upstreamConn) gaveUp(r *Call) {
	if r.done {
		return
	}
	r.done = true
	if x.u.Canceled != nil {
		x.u.Canceled(r)
	}
}

func (x *upstreamConn) goaway(uint32) {}

func (x *upstreamConn) broke(err error) { x.p.t.Errorf("an upstream got %v", err) }

// The connection.

func (x *upstreamConn) open() {
	if x.h != nil {
		x.h.begin()
	}
}

func (x *upstreamConn) data(b []byte) {
	if x.h != nil {
		x.h.feed(b)
		return
	}
	x.read.feed(string(b))
}

func (x *upstreamConn) end() { x.l.close() }

func (x *upstreamConn) closed(syscall.Errno) {
	for _, r := range x.calls {
		x.gaveUp(r)
	}
	x.calls = nil
}
