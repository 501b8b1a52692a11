package simtest

import (
	"fmt"
	"strconv"
)

// Tunnels are connections with HTTP/1 that are upgraded to a protocol of which the proxy knows nothing. Both sides send their bytes;
// the upstream keeps its last ones until it has got all of the client's, so that a client that has everything may close.

// tunnel asks for one, as the last request of the connection.
func (c *h1Client) tunnel() {
	r := c.g.ledger.add(&request{client: c.name, method: "GET", status: 101, up: size(c.rnd), down: 1 + size(c.rnd), upgrade: true})
	r.path = fmt.Sprintf("/t/%d", r.id)
	c.waiting = append(c.waiting, r)
	c.closing = true
	c.conn.Write(fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: sim.test\r\nx-id: %d\r\nX-Want: %d\r\nx-status: %d\r\nx-up: %d\r\n"+
		"Connection: Upgrade\r\nUpgrade: sim\r\n\r\n", r.path, r.id, r.down, r.status, r.up))
	if !c.g.o.NoAborts && percent(c.rnd, percentAbort) {
		c.planAbort(c.conn)
	}
}

// through: the tunnel is open.
func (c *h1Client) through(r *request, m *message) error {
	if id := m.get("x-id"); id != strconv.Itoa(r.id) {
		return fmt.Errorf("the tunnel of request %s instead of %d", id, r.id)
	}
	c.own, c.got, c.uploading = false, newBody(r, downward), true
	c.upload(c.conn, bodyPieces(c.rnd, newBody(r, upward), r.up, false))()
	return nil
}

// accept answers a request for a tunnel.
func (u *h1Upstream) accept(r *request) {
	u.tunneled = true
	u.held = bodyPieces(u.rnd, newBody(r, downward), r.down, false)
	u.later(func() {
		u.open = true
		u.conn.Write(fmt.Appendf(nil, "HTTP/1.1 101 Whatever\r\nConnection: Upgrade\r\nUpgrade: sim\r\nX-Id: %d\r\n\r\n", r.id))
		u.send()
	})
}

// send sends what may be sent of the upstream's bytes.
func (u *h1Upstream) send() {
	if !u.open || u.sending {
		return
	}
	for len(u.held) > 1 || len(u.held) == 1 && u.n == u.r.up {
		if u.conn.IsClosed() {
			return
		}
		u.conn.Write(u.held[0])
		if u.held = u.held[1:]; len(u.held) == 0 {
			u.r.arrived++
		} else if percent(u.rnd, percentSlow) {
			u.sending = true
			u.later(func() { u.sending = false; u.send() })
			return
		}
	}
}
