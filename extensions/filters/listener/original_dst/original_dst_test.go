package original_dst_test

import (
	"net/netip"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/extensions/filters/listener/original_dst"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest/filtertest"
)

func addr(s string) network.Address { return network.AddrFrom(netip.MustParseAddrPort(s)) }

// redirected is a connection that knows its original destination before the filter asks.
type redirected struct {
	network.ListenerCallbacks
	to network.Address
}

func (r redirected) OriginalDestination() (network.Address, bool) { return r.to, r.to.Valid() }

func TestOriginalDestination(t *testing.T) {
	for _, tc := range []struct {
		name     string
		original network.Address
		want     network.Address
	}{
		{"redirected", addr("10.1.1.1:80"), addr("10.1.1.1:80")},
		{"redirected, IPv6", addr("[fd00::1]:80"), addr("[fd00::1]:80")},
		{"not redirected", network.Address{}, addr("127.0.0.1:15001")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx := filtertest.NewContext()
			mk, err := original_dst.Extension.New(nil, ctx)
			if err != nil {
				t.Fatal(err)
			}
			c := ctx.AcceptWith(mk, network.ConnInfo{Local: addr("127.0.0.1:15001"), Remote: addr("127.0.0.1:40000")})
			if st := mk(nil).OnAccept(redirected{c, tc.original}); st != network.Continue {
				t.Errorf("status %v", st)
			}
			i := c.Info()
			if i.Local != tc.want || i.DirectLocal() != addr("127.0.0.1:15001") || i.Said().LocalRestored != tc.original.Valid() {
				t.Errorf("local %v, of the socket %v, restored %v", i.Local, i.DirectLocal(), i.Said().LocalRestored)
			}
			if i.Remote != addr("127.0.0.1:40000") {
				t.Errorf("remote %v", i.Remote)
			}
		})
	}
}
