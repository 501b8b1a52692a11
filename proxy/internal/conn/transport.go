package conn

import "github.com/dragoman-proxy/dragoman/api/buffer"

// Transport sits between the socket and the handler: TLS, ALTS, PROXY protocol towards upstreams. nil is plain bytes. One value
// per connection; all calls come on the worker.
type Transport interface {
	// Start is called when the socket is up. A client writes its hello to c.Wire().
	Start(c *Conn)
	// Feed gets bytes from the socket, dead after the call. It calls c.Deliver with what it made of them, c.Ready when the
	// handshake is done, c.PeerDone at the peer's close_notify, or c.Fail.
	Feed(c *Conn, b []byte)
	// EOF: the socket's end, without or after a close_notify.
	EOF(c *Conn)
	// Seal turns all or a batch of plain into bytes of wire, draining plain.
	Seal(c *Conn, plain, wire *buffer.Buffer)
	// CloseNotify writes what must come before our FIN to c.Wire(), once; it returns false if there is nothing (more) to send.
	CloseNotify(c *Conn) bool
	Destroy()
}

// breaker is a Transport that says why a handshake failed of which the socket broke.
type breaker interface{ Broken(c *Conn) }
