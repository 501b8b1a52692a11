package scripttest

import (
	"net/netip"
	"strings"
	"syscall"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
)

// Client is a connection to the proxy.
type Client struct {
	p   *Proxy
	c   *sim.Conn
	got strings.Builder

	closed, reset bool
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
	from := network.AddrFrom(netip.AddrPortFrom(netip.MustParseAddr(ip), uint16(40000+len(p.peers))))
	cl.c = p.w.DialFrom(from, p.at, clientScript{cl})
	p.peers = append(p.peers, cl.c)
	p.Settle()
	return cl
}

// Send sends bytes and lets happen what they cause at once.
func (c *Client) Send(text string) *Client {
	c.p.t.Helper()
	c.c.Write([]byte(text))
	c.p.Settle()
	return c
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

// Request is a GET request as text.
func Request(path string, headers ...string) string {
	head := "GET " + path + " HTTP/1.1\r\nhost: h.test\r\n"
	for _, h := range headers {
		head += h + "\r\n"
	}
	return head + "\r\n"
}

// Got returns what was received since the last call.
func (c *Client) Got() string {
	s := c.got.String()
	c.got.Reset()
	return s
}

// Closed tells whether the proxy has ended the connection, Reset whether by a reset.
func (c *Client) Closed() bool { return c.closed }

// Reset tells whether the proxy has reset the connection.
func (c *Client) Reset() bool { return c.reset }

// Close ends the connection.
func (c *Client) Close() { c.c.Close(); c.p.Settle() }

// Abort ends the connection by a reset.
func (c *Client) Abort() { c.c.Reset(); c.p.Settle() }

// clientScript is what a Client does in the world: it listens.
type clientScript struct{ c *Client }

func (clientScript) Open(*sim.Conn)               {}
func (s clientScript) Data(_ *sim.Conn, b []byte) { s.c.got.Write(b) }
func (s clientScript) End(x *sim.Conn)            { s.c.closed = true; x.Close() }
func (s clientScript) Closed(_ *sim.Conn, e syscall.Errno) {
	s.c.closed = true
	s.c.reset = s.c.reset || e != 0
}
