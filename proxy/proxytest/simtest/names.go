package simtest

import (
	"errors"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/proxy/internal/dns"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// names answers questions for names, as servers would that change their mind: all upstreams at first, then some of them, late or
// not at all. An answer without addresses is not among them: with it a proxy may say that there is no host.
type names struct {
	w    *World
	main *event.Worker
	rnd  *rand.Source
	all  []network.Address
	n    int
}

var _ dns.Resolver = (*names)(nil)

// question is one that is under way.
type question struct{ canceled bool }

// Cancel implements dns.Query.
func (q *question) Cancel() { q.canceled = true }

var errNoServer = errors.New("no server has answered")

// Resolve implements dns.Resolver.
func (x *names) Resolve(_ string, _ dns.Family, done func(dns.Result)) dns.Query {
	q, r := &question{}, x.answer()
	delay := time.Duration(x.rnd.IntN(5e7))
	if percent(x.rnd, 10) {
		delay = time.Duration(x.rnd.IntN(6e9))
	}
	x.w.After(delay, func() {
		x.main.Post(func() {
			if !q.canceled {
				done(r)
			}
		})
	})
	return q
}

func (x *names) answer() (r dns.Result) {
	x.n++
	if x.n > 1 && percent(x.rnd, 20) {
		return dns.Result{Err: errNoServer}
	}
	keep := x.rnd.IntN(len(x.all))
	for i, a := range x.all {
		if x.n == 1 || i == keep || percent(x.rnd, 40) {
			r.Addresses = append(r.Addresses, dns.Address{IP: a.IP.Addr(), TTL: time.Duration(x.rnd.IntN(3)) * time.Second})
		}
	}
	return r
}
