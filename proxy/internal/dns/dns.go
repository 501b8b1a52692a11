// Package dns resolves names for clusters.
//
// A Resolver is called on the main loop and answers there. The system's resolver runs on goroutines of its own, whose number is
// bounded, and comes back by Post.
package dns

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
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

// MaxQueries is how many questions the system's resolver asks at a time; further ones wait.
const MaxQueries = 64

// Timeout is how long it waits for an answer.
const Timeout = 5 * time.Second

// System returns a resolver that asks the servers of /etc/resolv.conf, without cgo. Answers have no TTL.
func System(main *event.Worker) Resolver {
	return &system{main: main, r: &net.Resolver{PreferGo: true}}
}

type system struct {
	main    *event.Worker
	r       *net.Resolver
	running int
	queue   []*question
}

type question struct {
	name   string
	family Family
	done   func(Result)
	cancel context.CancelFunc
	over   bool
}

// Cancel implements Query.
func (q *question) Cancel() {
	q.over = true
	if q.cancel != nil {
		q.cancel()
	}
}

func (s *system) Resolve(name string, family Family, done func(Result)) Query {
	q := &question{name: name, family: family, done: done}
	s.queue = append(s.queue, q)
	s.next()
	return q
}

func (s *system) next() {
	for s.running < MaxQueries && len(s.queue) > 0 {
		q := s.queue[0]
		s.queue[0] = nil
		s.queue = s.queue[1:]
		if q.over {
			continue
		}
		s.running++
		ctx, cancel := context.WithTimeout(context.Background(), Timeout)
		q.cancel = cancel
		go func() {
			res := s.ask(ctx, q.name, q.family)
			cancel()
			s.main.Post(func() {
				s.running--
				if !q.over {
					q.over = true
					q.done(res)
				}
				s.next()
			})
		}()
	}
}

func (s *system) ask(ctx context.Context, name string, family Family) Result {
	network := "ip"
	switch family {
	case V4Only:
		network = "ip4"
	case V6Only:
		network = "ip6"
	}
	ips, err := s.r.LookupNetIP(ctx, network, name)
	var de *net.DNSError
	switch {
	case errors.As(err, &de) && de.IsNotFound:
		return Result{Err: ErrNotFound}
	case err != nil:
		return Result{Err: err}
	}
	out := make([]Address, len(ips))
	for i, ip := range ips {
		out[i].IP = ip.Unmap()
	}
	return Result{Addresses: Select(out, family)}
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
