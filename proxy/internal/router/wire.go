package router

import "github.com/dragoman-proxy/dragoman/proxy/internal/codec"

// countWire notes what the stream took on the wire so far.
func (a *attempt) countWire() {
	if a.enc != nil {
		a.putWire(a.enc.WireBytes())
	}
}

// putWire adds what the stream took to what was taken before it.
func (a *attempt) putWire(b *codec.Bytes) {
	u, old := a.up, &a.before
	u.WireSent, u.WireRecv = old.Sent+b.Sent, old.Received+b.Received
	u.HeaderSent, u.HeaderRecv = old.HeaderSent+b.HeaderSent, old.HeaderReceived+b.HeaderReceived
}
