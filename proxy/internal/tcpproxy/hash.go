package tcpproxy

import (
	"github.com/cespare/xxhash/v2"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/dragoman-proxy/dragoman/api/network"
)

// hashPolicy makes a hash of what is known of a connection. ok is false if it finds nothing to hash.
type hashPolicy func(c *network.ConnInfo) (h uint64, ok bool)

func (c *Config) readHash(list []*typev3.HashPolicy) {
	for _, p := range list {
		if _, ok := p.GetPolicySpecifier().(*typev3.HashPolicy_SourceIp_); ok { // the other kind is among the gaps
			c.hashes = append(c.hashes, sourceIP)
		}
	}
}

func sourceIP(c *network.ConnInfo) (uint64, bool) {
	if !c.Remote.IP.IsValid() {
		return 0, false
	}
	var buf [64]byte
	return xxhash.Sum64(c.Remote.AppendIP(buf[:0])), true
}

// hash is what the first policy that finds something makes.
func (c *Config) hash(i *network.ConnInfo) (uint64, bool) {
	for _, p := range c.hashes {
		if h, ok := p(i); ok {
			return h, true
		}
	}
	return 0, false
}
