package lb

import (
	"math"

	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
)

// RoundRobin takes the hosts in turn, by weight if weights differ. Each worker starts at a place of its own.
type RoundRobin struct{}

// Build implements Policy.
func (RoundRobin) Build(hosts []*host.Host, state int) Balancer {
	if equalWeights(hosts) {
		return &roundRobin{hosts: hosts, state: state}
	}
	return &weighted{hosts: hosts, state: state, weight: staticWeight}
}

type roundRobin struct {
	hosts []*host.Host
	state int
}

func (b *roundRobin) Pick(c *Context) *host.Host {
	s := c.State(b.state)
	if !s.Seeded {
		s.Seeded, s.Next = true, c.W.Rand.Uint32()%uint32(len(b.hosts))
	}
	i := s.Next
	if i++; i >= uint32(len(b.hosts)) {
		i = 0
	}
	s.Next = i
	return b.hosts[i]
}

type weighted struct {
	hosts  []*host.Host
	state  int
	weight func(*host.Host) float64
}

func (b *weighted) Pick(c *Context) *host.Host {
	s := c.State(b.state)
	if s.sched == nil {
		s.sched = newSchedule(b.hosts, b.weight)
		// Workers must not all begin with the heaviest host.
		for n := c.W.Rand.IntN(len(b.hosts)); n > 0; n-- {
			s.sched.next(b.hosts, b.weight)
		}
	}
	return s.sched.next(b.hosts, b.weight)
}

// Random takes any host, whatever its weight, as Envoy's does.
type Random struct{}

// Build implements Policy.
func (Random) Build(hosts []*host.Host, _ int) Balancer { return random(hosts) }

type random []*host.Host

func (b random) Pick(c *Context) *host.Host { return b[c.W.Rand.IntN(len(b))] }

// LeastRequest looks at Choices hosts by chance and takes the one with the fewest active requests. With different weights it is
// a weighted round robin instead, each weight divided by (active requests + 1) to the power of Bias.
type LeastRequest struct {
	// Choices is choice_count, 2 by default. FullScan looks at all hosts.
	Choices  int
	FullScan bool
	// Bias is active_request_bias, 1 by default.
	Bias float64
}

// Build implements Policy.
func (p LeastRequest) Build(hosts []*host.Host, state int) Balancer {
	if equalWeights(hosts) {
		return &leastRequest{hosts: hosts, choices: max(p.Choices, 1), scan: p.FullScan}
	}
	return &weighted{hosts: hosts, state: state, weight: p.weight()}
}

// weight returns the weight of a host as it is now. The power is a case of its own for the usual biases.
func (p LeastRequest) weight() func(*host.Host) float64 {
	switch p.Bias {
	case 0:
		return staticWeight
	case 1:
		return func(h *host.Host) float64 { return float64(h.Weight()) / float64(h.RqActive.Load()+1) }
	}
	return func(h *host.Host) float64 {
		return float64(h.Weight()) / math.Pow(float64(h.RqActive.Load()+1), p.Bias)
	}
}

type leastRequest struct {
	hosts   []*host.Host
	choices int
	scan    bool
}

func (b *leastRequest) Pick(c *Context) *host.Host {
	if len(b.hosts) == 1 {
		return b.hosts[0]
	}
	if b.scan {
		return b.pickScan(c)
	}
	best := b.hosts[c.W.Rand.IntN(len(b.hosts))]
	for i := 1; i < b.choices; i++ {
		if h := b.hosts[c.W.Rand.IntN(len(b.hosts))]; h.RqActive.Load() < best.RqActive.Load() {
			best = h
		}
	}
	return best
}

// pickScan chooses by chance among the hosts that have the fewest requests.
func (b *leastRequest) pickScan(c *Context) *host.Host {
	var best *host.Host
	least, ties := int64(math.MaxInt64), 0
	for _, h := range b.hosts {
		switch n := h.RqActive.Load(); {
		case n < least:
			best, least, ties = h, n, 1
		case n == least:
			if ties++; c.W.Rand.IntN(ties) == 0 {
				best = h
			}
		}
	}
	return best
}

// localities chooses a place by weight, then a host in it.
type localities struct {
	balancers []Balancer
	weights   []float64
	state     int
}

// localities returns nil if no place has a usable host: the whole priority is used then.
func (t *Table) localities(o *Options, s *HostSet, which func(*LocalitySet) []*host.Host) *localities {
	l := &localities{}
	for i := range s.Localities {
		x := &s.Localities[i]
		usable, all := len(which(x)), len(x.Hosts)
		if usable == 0 || x.Weight == 0 {
			continue
		}
		// A place takes as much of its weight as its usable hosts, times the overprovisioning factor, can bear.
		ratio := min(1, float64(usable)/float64(all)*float64(s.Overprovisioning)/100)
		l.balancers = append(l.balancers, t.build(o, which(x)))
		l.weights = append(l.weights, float64(x.Weight)*ratio)
	}
	if len(l.balancers) == 0 {
		return nil
	}
	l.state = t.states
	t.states++
	return l
}

func (l *localities) pick(c *Context) *host.Host {
	if len(l.balancers) == 1 {
		return l.balancers[0].Pick(c)
	}
	s := c.State(l.state)
	if s.sched == nil {
		s.sched = &schedule{heap: make([]entry, len(l.weights)), seq: uint32(len(l.weights))}
		for i, w := range l.weights {
			s.sched.heap[i] = entry{deadline: 1 / w, seq: uint32(i), i: int32(i)}
		}
		for i := len(l.weights)/2 - 1; i >= 0; i-- {
			s.sched.down(i)
		}
		for n := c.W.Rand.IntN(len(l.weights)); n > 0; n-- {
			s.sched.nextIndex(l.weights)
		}
	}
	return l.balancers[s.sched.nextIndex(l.weights)].Pick(c)
}

func (s *schedule) nextIndex(weights []float64) int32 {
	e := &s.heap[0]
	i := e.i
	s.now = e.deadline
	e.deadline = s.now + 1/weights[i]
	e.seq = s.seq
	s.seq++
	s.down(0)
	return i
}
