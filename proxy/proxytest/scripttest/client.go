package scripttest

import (
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/net/http2"

	"github.com/dragoman-proxy/dragoman/api/network"
)

// Client is a connection to the proxy.
type Client struct {
	p   *Proxy
	l   *link
	h   *h2peer  // nil: HTTP/1
	say *decoder // of what we send
	got strings.Builder

	asked   []*asked
	read    *decoder // of what comes; HTTP/1 only
	reading int      // the index in asked of the answer that is coming
	stream  *h2stream

	ended, wasReset, leaving bool
}

// asked is a request with its response.
type asked struct {
	method string
	Response
}

// Dial connects.
func (p *Proxy) Dial() *Client {
	p.t.Helper()
	return p.DialFrom("192.0.2.7")
}

// DialFrom connects from an address.
func (p *Proxy) DialFrom(ip string) *Client {
	p.t.Helper()
	cl := &Client{p: p}
	cl.say = &decoder{head: cl.sayHead, data: cl.sayData, end: cl.sayEnd}
	cl.read = &decoder{response: true, head: cl.gotHead, data: cl.gotData, end: cl.gotEnd, method: cl.method}
	cl.l = &link{to: cl, config: p.mode.Down.config(false)}
	if p.mode.Down.Streams() {
		cl.h = &h2peer{l: cl.l, on: cl}
	}
	from := network.AddrFrom(netip.AddrPortFrom(netip.MustParseAddr(ip), uint16(40000+len(p.peers))))
	cl.l.c = p.w.DialFrom(from, p.at, cl.l)
	p.peers = append(p.peers, cl.l.c)
	p.Settle()
	return cl
}

// Send sends text of HTTP/1, as what the client speaks, and lets happen what it causes at once. It may be part of a message; with
// HTTP/2 a head is sent when it is whole.
func (c *Client) Send(text string) *Client {
	c.p.t.Helper()
	if c.h == nil {
		c.l.write([]byte(text))
	}
	c.say.feed(text)
	if c.say.in == notUnderstood && c.h != nil {
		c.p.t.Fatalf("%q cannot be said in HTTP/2", text)
	}
	c.p.Settle()
	return c
}

// Raw sends bytes as they are.
func (c *Client) Raw(bytes string) *Client {
	c.p.t.Helper()
	c.l.write([]byte(bytes))
	c.p.Settle()
	return c
}

// Cancel gives up the last request: its stream with HTTP/2, the connection with HTTP/1.
func (c *Client) Cancel() {
	c.p.t.Helper()
	if c.h == nil {
		c.Abort()
		return
	}
	c.stream.cancel(http2.ErrCodeCancel)
	c.p.Settle()
}

// Do sends a request on a connection of its own and returns what came back within a moment.
func (p *Proxy) Do(text string) string {
	p.t.Helper()
	return p.Dial().Send(text).Got()
}

// Get is Do for a GET request with these header lines.
func (p *Proxy) Get(path string, headers ...string) string {
	p.t.Helper()
	return p.Do(Request(path, headers...))
}

// Ask is Do, and returns the response taken apart.
func (p *Proxy) Ask(text string) Response {
	p.t.Helper()
	return p.Dial().Send(text).Response()
}

// Request is a GET request as text.
func Request(path string, headers ...string) string { return Message("GET", path, "", headers...) }

// Message is a request as text; a body comes with its length.
func Message(method, path, body string, headers ...string) string {
	head := method + " " + path + " HTTP/1.1\r\nhost: h.test\r\n"
	for _, h := range headers {
		head += h + "\r\n"
	}
	if body != "" {
		head += "content-length: " + strconv.Itoa(len(body)) + "\r\n"
	}
	return head + "\r\n" + body
}

// Got returns what was received since the last call.
func (c *Client) Got() string {
	s := c.got.String()
	c.got.Reset()
	return s
}

// Response returns what there is of the response to the last request.
func (c *Client) Response() Response {
	if n := len(c.asked); n > 0 {
		return c.asked[n-1].Response
	}
	return Response{}
}

// Responses returns what there is of all responses, in the order of the requests.
func (c *Client) Responses() (all []Response) {
	for _, a := range c.asked {
		all = append(all, a.Response)
	}
	return all
}

// Closed tells whether the proxy has ended the connection.
func (c *Client) Closed() bool { return c.ended }

// Reset tells whether the proxy has reset the connection.
func (c *Client) Reset() bool { return c.wasReset }

// Leaving tells whether the proxy has said that it takes no more requests on the connection: "connection: close", or GOAWAY.
func (c *Client) Leaving() bool { return c.leaving }

// Close ends the connection.
func (c *Client) Close() { c.l.close(); c.p.Settle() }

// Abort ends the connection by a reset.
func (c *Client) Abort() { c.l.c.Reset(); c.p.Settle() }

// Pause stops reading, so that what the proxy sends stays on its way; Resume reads on.
func (c *Client) Pause() { c.l.c.Pause() }

// Resume reads on.
func (c *Client) Resume() { c.l.c.Resume(); c.p.Settle() }

// What is sent.

func (c *Client) sayHead(start string, lines []string, end bool) {
	method, _, _ := strings.Cut(start, " ")
	a := &asked{method: method}
	c.asked = append(c.asked, a)
	if c.h == nil {
		return
	}
	c.stream = c.h.open(c.h.next)
	c.h.next += 2
	c.stream.answer = &a.Response
	c.stream.protocol = value(lines, "upgrade")
	c.stream.write(requestFields(start, lines, c.p.mode.Down.Scheme()), end)
}

func (c *Client) sayData(s string) {
	if c.h != nil {
		c.stream.send(s)
	}
}

func (c *Client) sayEnd(trailers []string) {
	if c.h != nil {
		c.stream.finish(trailers)
	}
}

// What comes with HTTP/1.

// answering returns the request that is being answered.
func (c *Client) answering() *asked {
	for c.reading >= len(c.asked) {
		c.asked = append(c.asked, &asked{}) // to what was no request
	}
	return c.asked[c.reading]
}

func (c *Client) method() string { return c.answering().method }

func (c *Client) gotHead(start string, lines []string, end bool) {
	a := c.answering()
	c.leaving = c.leaving || hasToken(value(lines, "connection"), "close")
	a.headed(start, lines)
	if end {
		c.gotEnd(nil)
	}
}

func (c *Client) gotData(s string) { c.answering().Body += s }

func (c *Client) gotEnd(trailers []string) {
	a := c.answering()
	a.Trailers, a.Whole = trailers, true
	c.reading++
}

// What comes with HTTP/2.

func (c *Client) fields(s *h2stream, nv []string, end bool) error {
	start, lines := responseText(nv, s.protocol)
	c.got.WriteString(start + "\r\n")
	for _, l := range lines {
		c.got.WriteString(l + "\r\n")
	}
	c.got.WriteString("\r\n")
	s.answer.headed(start, lines)
	s.answer.Whole = end
	return nil
}

func (c *Client) body(s *h2stream, b string) {
	c.got.WriteString(b)
	s.answer.Body += b
}

func (c *Client) over(s *h2stream, trailers []string) {
	s.answer.Trailers, s.answer.Whole = trailers, true
}

// canceled is a stream's end by a reset.
func (c *Client) canceled(s *h2stream, code http2.ErrCode) {
	s.answer.Broken = !s.answer.Whole
	s.answer.Code = code
}

func (c *Client) goaway(uint32) { c.leaving = true }

func (c *Client) broke(err error) { c.p.t.Errorf("a client got %v", err) }

// The connection.

func (c *Client) open() {
	if c.h != nil {
		c.h.begin()
	}
}

func (c *Client) data(b []byte) {
	if c.h != nil {
		c.h.feed(b)
		return
	}
	c.got.Write(b)
	c.read.feed(string(b))
}

func (c *Client) end() {
	c.ended = true
	if c.h == nil {
		c.read.eof()
	}
	c.l.close()
}

func (c *Client) closed(e syscall.Errno) {
	c.ended = true
	c.wasReset = c.wasReset || e != 0
	for _, a := range c.asked {
		a.Broken = a.Broken || !a.Whole
	}
}
