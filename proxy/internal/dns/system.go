package dns

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// MaxQueries is how many questions a System asks at a time; further ones wait.
const MaxQueries = 64

// Timeout is how long it waits for an answer.
const Timeout = 5 * time.Second

// System is a Resolver that asks as the standard library does, without cgo: /etc/hosts, then the servers of /etc/resolv.conf.
// Answers have no TTL. owner: main loop.
type System struct {
	main    *event.Worker
	r       net.Resolver
	ctx     context.Context
	stop    context.CancelFunc
	running int
	queue   []*question
	all     sync.WaitGroup
}

// NewSystem returns a System. servers, if there are any, are asked instead of those of /etc/resolv.conf, one after the other.
func NewSystem(main *event.Worker, servers ...netip.AddrPort) *System {
	s := &System{main: main, r: net.Resolver{PreferGo: true}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if len(servers) > 0 {
		next := 0
		var mu sync.Mutex
		s.r.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			mu.Lock()
			a := servers[next%len(servers)]
			next++
			mu.Unlock()
			var d net.Dialer
			return d.DialContext(ctx, network, a.String())
		}
	}
	return s
}

// Close ends all questions without answers, and waits for the goroutines that asked them.
func (s *System) Close() error {
	s.queue = nil
	s.stop()
	s.all.Wait()
	return nil
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

// Resolve implements Resolver.
func (s *System) Resolve(name string, family Family, done func(Result)) Query {
	q := &question{name: name, family: family, done: done}
	s.queue = append(s.queue, q)
	s.next()
	return q
}

func (s *System) next() {
	for s.running < MaxQueries && len(s.queue) > 0 && s.ctx.Err() == nil {
		q := s.queue[0]
		s.queue[0] = nil
		s.queue = s.queue[1:]
		if q.over {
			continue
		}
		s.running++
		ctx, cancel := context.WithTimeout(s.ctx, Timeout)
		q.cancel = cancel
		s.all.Add(1)
		go func() {
			defer s.all.Done()
			res := s.ask(ctx, q.name, q.family)
			cancel()
			s.main.Post(func() { s.answered(q, res) })
		}()
	}
}

func (s *System) answered(q *question, res Result) {
	s.running--
	if !q.over && s.ctx.Err() == nil {
		q.over = true
		q.done(res)
	}
	s.next()
}

func (s *System) ask(ctx context.Context, name string, family Family) Result {
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
