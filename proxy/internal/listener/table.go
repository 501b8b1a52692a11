package listener

import (
	"net/netip"
	"sync/atomic"

	"github.com/dragoman-proxy/dragoman/api/network"
)

// Table finds listeners by their address, for connections that were redirected to another one. The main loop replaces its content,
// workers read it.
type Table struct {
	m atomic.Pointer[map[netip.AddrPort]*Listener]
}

// Set replaces the content.
func (t *Table) Set(m map[netip.AddrPort]*Listener) { t.m.Store(&m) }

// Find returns the listener for connections to a: that of the address, or of the unspecified address with the same port.
func (t *Table) Find(a network.Address) *Listener {
	m := t.m.Load()
	if m == nil || !a.IP.IsValid() {
		return nil
	}
	ip := netip.AddrPortFrom(a.IP.Addr().Unmap(), a.IP.Port())
	if l := (*m)[ip]; l != nil {
		return l
	}
	if ip.Addr().Is4() {
		if l := (*m)[netip.AddrPortFrom(netip.IPv4Unspecified(), ip.Port())]; l != nil {
			return l
		}
	}
	return (*m)[netip.AddrPortFrom(netip.IPv6Unspecified(), ip.Port())]
}
