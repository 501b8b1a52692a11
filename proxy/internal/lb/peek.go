package lb

import "github.com/dragoman-proxy/dragoman/proxy/internal/host"

// peeked is a pick that was made ahead.
type peeked struct {
	h *host.Host
	o Outcome
}

// Peek returns the host of the pick after those that were peeked at already, which then gives just that host; nil: the policy cannot
// tell, or as many hosts as are healthy have been peeked at. Like Envoy's, only ROUND_ROBIN and RANDOM can tell.
func (t *Table) Peek(l *Local, c *Context) *host.Host {
	if l.table != t {
		l.bind(t)
	}
	if !t.peeks || len(l.ahead) >= t.healthy() {
		return nil
	}
	c.local = l
	h, o := t.pickOnce(c)
	if h != nil {
		l.ahead = append(l.ahead, peeked{h, o})
	}
	return h
}

// next takes the first of what was picked ahead.
func (l *Local) next() (*host.Host, Outcome) {
	p := l.ahead[0]
	n := copy(l.ahead, l.ahead[1:])
	l.ahead[n] = peeked{}
	l.ahead = l.ahead[:n]
	return p.h, p.o
}

func (t *Table) healthy() (n int) {
	for i := range t.Sets {
		n += len(t.Sets[i].Healthy)
	}
	return n
}

// canPeek tells whether a policy's picks may be made ahead.
func canPeek(p Policy) bool {
	switch p.(type) {
	case RoundRobin, Random:
		return true
	}
	return false
}
