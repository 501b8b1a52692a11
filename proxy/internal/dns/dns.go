// Package dns resolves names for clusters.
//
// A Resolver is called on the main loop and answers there. System asks servers on goroutines of its own, whose number is bounded,
// and comes back by Post. The package keeps no answers: whoever asks knows how long they hold.
package dns

import (
	"errors"
	"net/netip"
	"time"
)

// Family says which addresses are wanted, in Envoy's words.
type Family uint8

// The families.
const (
	// Auto takes IPv6 addresses, or IPv4 ones if there are none.
	Auto Family = iota
	V4Only
	V6Only
	// V4Preferred is Auto the other way round.
	V4Preferred
	// All takes both.
	All
)

// Address is one answer. TTL is 0 if it is not known.
type Address struct {
	IP  netip.Addr
	TTL time.Duration
}

// Result is the answer to a question. No addresses and no error mean that the name exists without any.
type Result struct {
	Addresses []Address
	Err       error
}

// ErrNotFound: there is no such name, or it has no address of the family. It is an answer, not a failure.
var ErrNotFound = errors.New("no such name")

// Query is a question that is under way.
type Query interface {
	// Cancel makes sure that no answer comes.
	Cancel()
}

// Resolver answers questions. It belongs to the main loop.
type Resolver interface {
	// Resolve calls done once, on the main loop, never inline.
	Resolve(name string, family Family, done func(Result)) Query
}

// Select returns the addresses that a family asks for, in order.
func Select(all []Address, family Family) []Address {
	var v4, v6 []Address
	for _, a := range all {
		if a.IP.Is4() {
			v4 = append(v4, a)
		} else {
			v6 = append(v6, a)
		}
	}
	switch family {
	case V4Only:
		return v4
	case V6Only:
		return v6
	case V4Preferred:
		if len(v4) > 0 {
			return v4
		}
		return v6
	case All:
		return append(v6, v4...)
	}
	if len(v6) > 0 {
		return v6
	}
	return v4
}
