package network

import "crypto/x509"

// ConnInfo is what is known of a connection: addresses, and what its listener filters and its transport socket found out. It
// lives as long as the connection, and as long as something that was logged of it.
type ConnInfo struct {
	// ID counts the connections of the process from 0 (%CONNECTION_ID%).
	ID uint64
	// Start is when it was accepted or connected, in ns of the worker's clock.
	Start int64
	// Local is our end, Remote the peer's, as filters see them (after proxy protocol, original_dst, ...).
	Local, Remote Address
	// Direct are the addresses of the socket, local and remote, if they differ from Local and Remote; nil if not.
	Direct *[2]Address
	// Protocol is what the transport socket agreed on (ALPN).
	Protocol string
	// TLS is nil on a plain connection.
	TLS *TLSInfo
	// HandshakeDone is when the TLS handshake ended, in ns of the worker's clock.
	HandshakeDone int64
	// From is where it came in; nil for connections that we made. It is shared and must not be changed.
	From *Entrance

	hello *Hello
	end   *End
	meta  *Metadata
	state *FilterState
}

// Entrance names a listener, and the filter chain once it was chosen.
type Entrance struct{ ListenerName, ChainName string }

// Hello is what listener filters found out about a connection before it had a protocol.
type Hello struct {
	// ServerName is the SNI, lower-case; ALPN what the client offered.
	ServerName string
	ALPN       []string
	// Transport is "tls", "raw_buffer" or "quic".
	Transport string
	// LocalRestored: a listener filter has found the address that the client really asked for and put it into Local.
	LocalRestored bool
	// Fingerprints of the ClientHello; nil if nobody has asked for them, or there was none that could be read.
	Fingerprints *Fingerprints
}

// Fingerprints tell TLS clients apart by what they offer: JA3 as 32 hexadecimal digits, JA4 as 36 characters. "": nobody has asked.
type Fingerprints struct{ JA3, JA4 string }

// End is how and why a connection ended.
type End struct {
	// TransportFailure is why the transport socket failed (DOWNSTREAM_TRANSPORT_FAILURE_REASON).
	TransportFailure string
	// CloseReason is why we closed it (DOWNSTREAM_LOCAL_CLOSE_REASON), CloseType how it ended ("Normal", "RemoteReset", ...).
	CloseReason, CloseType string
	// TerminationDetails says which filter ended it and why (CONNECTION_TERMINATION_DETAILS).
	TerminationDetails string
	// Details says what answered it, in the words of RESPONSE_CODE_DETAILS.
	Details string
}

// Most connections are idle most of the time, and there are many: what few of them have is made when they get it.
var (
	noEntrance = Entrance{}
	noHello    = Hello{}
	noEnd      = End{CloseType: "Normal"}
)

// Entered returns where the connection came in. It must not be changed.
func (c *ConnInfo) Entered() *Entrance {
	if c.From == nil {
		return &noEntrance
	}
	return c.From
}

// Said returns what listener filters have found out so far. It must not be changed: SetHello does.
func (c *ConnInfo) Said() *Hello {
	if c.hello == nil {
		return &noHello
	}
	return c.hello
}

// SetHello returns what listener filters have found out, to be changed.
func (c *ConnInfo) SetHello() *Hello {
	if c.hello == nil {
		c.hello = &Hello{}
	}
	return c.hello
}

// Ended returns how the connection ended, as far as it is known. It must not be changed: SetEnd does.
func (c *ConnInfo) Ended() *End {
	if c.end == nil {
		return &noEnd
	}
	return c.end
}

// SetEnd returns how the connection ended, to be changed.
func (c *ConnInfo) SetEnd() *End {
	if c.end == nil {
		c.end = &End{CloseType: noEnd.CloseType}
	}
	return c.end
}

// Metadata returns the connection's dynamic metadata, made on first use.
func (c *ConnInfo) Metadata() *Metadata {
	if c.meta == nil {
		c.meta = &Metadata{}
	}
	return c.meta
}

// HasMetadata tells whether dynamic metadata was ever set.
func (c *ConnInfo) HasMetadata() bool { return c.meta != nil }

// FilterState returns the connection's filter state, made on first use. Streams see it below their own.
func (c *ConnInfo) FilterState() *FilterState {
	if c.state == nil {
		c.state = &FilterState{}
	}
	return c.state
}

// HasFilterState tells whether filter state was ever set.
func (c *ConnInfo) HasFilterState() bool { return c.state != nil }

// SetLocal changes the address that filters see as ours, SetRemote the peer's. The socket's own addresses are kept in Direct.
func (c *ConnInfo) SetLocal(a Address) {
	c.keepDirect()
	c.Local, c.SetHello().LocalRestored = a, true
}

// SetRemote is SetLocal for the peer's address.
func (c *ConnInfo) SetRemote(a Address) {
	c.keepDirect()
	c.Remote = a
}

func (c *ConnInfo) keepDirect() {
	if c.Direct == nil {
		c.Direct = &[2]Address{c.Local, c.Remote}
	}
}

// DirectLocal returns our address on the socket.
func (c *ConnInfo) DirectLocal() Address {
	if c.Direct != nil {
		return c.Direct[0]
	}
	return c.Local
}

// DirectRemote returns the peer's address on the socket.
func (c *ConnInfo) DirectRemote() Address {
	if c.Direct != nil {
		return c.Direct[1]
	}
	return c.Remote
}

// TLSInfo is what the handshake agreed on.
type TLSInfo struct {
	Version, Cipher, Group string
	SessionID              string
	Resumed                bool
	// Peer is the peer's verified or unverified leaf and its chain, Local our certificate.
	Peer  []*x509.Certificate
	Local *x509.Certificate
	// Verified tells whether the peer's chain was checked against a CA.
	Verified bool
}
