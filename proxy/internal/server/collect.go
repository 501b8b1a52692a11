package server

import (
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// collectDeadline is how long the main loop waits for a worker's numbers; after it the last known ones are served.
const collectDeadline = time.Second

// collector gathers the workers' shards on the main loop. Requests that come while a collection is under way share it.
type collector struct {
	s       *Server
	waiting []func()
	pending int
	round   uint64
	timer   event.Timer
}

func (c *collector) init(s *Server) {
	c.s = s
	c.timer.Fn = func() { c.finish() }
}

// collect calls done on the main loop when the store holds the workers' numbers of now. owner: main loop.
func (c *collector) collect(done func()) {
	c.waiting = append(c.waiting, done)
	if len(c.waiting) > 1 {
		return
	}
	s := c.s
	c.round++
	round := c.round
	s.process.watch.look(s.main)
	s.logs.Count()
	s.store.Collect()
	for _, w := range s.workers {
		snap := s.store.Begin(w.Stats)
		if snap == nil {
			continue // it has not answered the last time yet
		}
		c.pending++
		w.Post(func() {
			s.process.watch.look(w)
			w.Stats.Snapshot(snap)
			s.main.Post(func() {
				s.store.Collect(snap)
				if round == c.round {
					c.pending--
					if c.pending == 0 && len(c.waiting) > 0 {
						c.finish()
					}
				}
			})
		})
	}
	if c.pending == 0 {
		s.main.Post(c.finish)
		return
	}
	s.main.Arm(&c.timer, collectDeadline)
}

func (c *collector) finish() {
	c.s.main.Disarm(&c.timer)
	c.s.process.watch.answered(c.s, c.s.store.Silent())
	c.s.clusters.UpdateGauges()
	c.round++
	c.pending = 0
	list := c.waiting
	c.waiting = nil
	for _, f := range list {
		f()
	}
}

// StatsText returns all stats as text. It waits for the main loop; safe from any goroutine but the main loop's.
func (s *Server) StatsText() string {
	ch := make(chan string, 1)
	s.main.Post(func() {
		s.collect.collect(func() { ch <- string(stats.WriteAll(s.store.Text(stats.Query{}))) })
	})
	return <-ch
}
