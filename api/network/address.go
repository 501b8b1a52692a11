// Package network is the contract for connections: addresses, network filters, listener filters and what they may ask of a
// connection. Everything in it belongs to the connection's worker.
package network

import (
	"net/netip"
	"strconv"
	"strings"
)

// Address is a socket address: an IP and port, or a Unix path ("@" first means the abstract namespace). An internal listener
// is the path "envoy://NAME/". The zero value is no address.
type Address struct {
	IP   netip.AddrPort
	Path string
}

// AddrFrom returns the Address of an IP and port.
func AddrFrom(a netip.AddrPort) Address { return Address{IP: a} }

// Valid tells whether a is an address at all.
func (a Address) Valid() bool { return a.IP.IsValid() || a.Path != "" }

// IsUnix tells whether a is a Unix path.
func (a Address) IsUnix() bool { return a.Path != "" && !a.IsInternal() }

// IsInternal tells whether a names an internal listener.
func (a Address) IsInternal() bool { return strings.HasPrefix(a.Path, "envoy://") }

// String returns what Envoy prints: "127.0.0.1:80", "[::1]:80", or the path.
func (a Address) String() string {
	if a.IP.IsValid() {
		return a.IP.String()
	}
	return a.Path
}

// Append appends String to dst without allocating.
func (a Address) Append(dst []byte) []byte {
	if a.IP.IsValid() {
		return a.IP.AppendTo(dst)
	}
	return append(dst, a.Path...)
}

// AppendIP appends the IP without port to dst, the path of a Unix address.
func (a Address) AppendIP(dst []byte) []byte {
	if a.IP.IsValid() {
		return a.IP.Addr().AppendTo(dst)
	}
	return append(dst, a.Path...)
}

// AppendPort appends the port to dst, "0" if there is none.
func (a Address) AppendPort(dst []byte) []byte {
	return strconv.AppendUint(dst, uint64(a.IP.Port()), 10)
}
