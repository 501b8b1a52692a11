// Package network is the contract for connections: addresses, network filters, listener filters and what they may ask of a
// connection. Everything in it belongs to the connection's worker.
package network

import (
	"net/netip"
	"strconv"
)

// Address is a socket address: an IP and port, or a Unix path ("@" first means the abstract namespace), or the name of an
// internal listener. The zero value is no address.
type Address struct {
	IP   netip.AddrPort
	Path string
	// Internal is the name of an internal listener.
	Internal string
}

// AddrFrom returns the Address of an IP and port.
func AddrFrom(a netip.AddrPort) Address { return Address{IP: a} }

// Valid tells whether a is an address at all.
func (a Address) Valid() bool { return a.IP.IsValid() || a.Path != "" || a.Internal != "" }

// IsUnix tells whether a is a Unix path.
func (a Address) IsUnix() bool { return a.Path != "" }

// String returns what Envoy prints: "127.0.0.1:80", "[::1]:80", the path, or "envoy://name/".
func (a Address) String() string {
	switch {
	case a.Path != "":
		return a.Path
	case a.Internal != "":
		return "envoy://" + a.Internal + "/"
	case a.IP.IsValid():
		return a.IP.String()
	}
	return ""
}

// Append appends String to dst without allocating.
func (a Address) Append(dst []byte) []byte {
	if a.IP.IsValid() {
		return a.IP.AppendTo(dst)
	}
	return append(dst, a.String()...)
}

// AppendIP appends the IP without port to dst, the path of a Unix address.
func (a Address) AppendIP(dst []byte) []byte {
	if a.IP.IsValid() {
		return a.IP.Addr().AppendTo(dst)
	}
	return append(dst, a.String()...)
}

// AppendPort appends the port to dst, "0" if there is none.
func (a Address) AppendPort(dst []byte) []byte {
	return strconv.AppendUint(dst, uint64(a.IP.Port()), 10)
}
