package dns

import (
	"context"
	"sync"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
)

// MaxQueries is how many questions a System asks at a time; further ones wait.
const MaxQueries = 64

// MaxTime bounds all the tries of a question together.
const MaxTime = 20 * time.Second

// System is a Resolver that does what the C library's does: /etc/hosts first, then the servers of /etc/resolv.conf, or those
// that Options name. owner: main loop.
type System struct {
	main    *event.Worker
	client  client
	ctx     context.Context
	stop    context.CancelFunc
	running int
	queue   []*question
	all     sync.WaitGroup
}

// NewSystem returns a System.
func NewSystem(main *event.Worker, o Options) *System {
	s := &System{main: main, client: client{o}}
	s.ctx, s.stop = context.WithCancel(context.Background())
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
		ctx, cancel := context.WithTimeout(s.ctx, MaxTime)
		q.cancel = cancel
		s.all.Add(1)
		go func() {
			defer s.all.Done()
			res := s.client.resolve(ctx, q.name, q.family)
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
