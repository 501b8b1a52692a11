package cluster

import (
	"slices"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

// Eyeballs says in which order the addresses of an endpoint are tried (RFC 8305, section 4): Count addresses of the first family, one of
// the other, and so on. The zero value begins with the family of the first address.
type Eyeballs struct {
	// V4 and V6 say which family is the first one.
	V4, V6 bool
	Count  uint32 // 0 is 1
}

func buildEyeballs(c *clusterv3.UpstreamConnectionOptions_HappyEyeballsConfig) Eyeballs {
	f := c.GetFirstAddressFamilyVersion()
	return Eyeballs{V4: f == clusterv3.UpstreamConnectionOptions_V4, V6: f == clusterv3.UpstreamConnectionOptions_V6,
		Count: number(c.GetFirstAddressFamilyCount(), 1)}
}

// order returns the addresses as they are tried.
func (e Eyeballs) order(list []network.Address) []network.Address {
	v4 := !e.V6 && (e.V4 || list[0].IP.Addr().Unmap().Is4())
	var first, second []network.Address
	for _, a := range list {
		if a.IP.Addr().Unmap().Is4() == v4 {
			first = append(first, a)
		} else {
			second = append(second, a)
		}
	}
	out := make([]network.Address, 0, len(list))
	for len(first) > 0 || len(second) > 0 {
		n := min(len(first), int(max(e.Count, 1)))
		out, first = append(out, first[:n]...), first[n:]
		n = min(len(second), 1)
		out, second = append(out, second[:n]...), second[n:]
	}
	return out
}

// sameAddresses tells whether an endpoint has the addresses that a host was made with.
func (e Eyeballs) sameAddresses(h *host.Host, x *host.Extra) bool {
	old := h.Addresses()
	if x == nil || len(x.Addresses) == 0 {
		return len(old) == 0
	}
	return slices.Equal(old, e.order(x.Addresses))
}
