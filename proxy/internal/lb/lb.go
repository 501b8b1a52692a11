// Package lb chooses hosts: the balancers, and the tables of priorities and health that say which of a cluster's hosts they
// choose from.
//
// A Table is immutable and built on the main loop; what a balancer must remember between two picks is in a Local, one for each
// worker. Nothing here locks, allocates per pick, or opens a connection.
package lb

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/api/upstream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
)

// Context is what a pick may depend on. The caller owns it and may reuse it for retries.
type Context struct {
	// W is the worker that the pick happens on.
	W *event.Worker
	// Headers is the request's head; nil for TCP.
	Headers *http.HeaderMap
	// Info is the stream's, or the connection's for TCP; nil if there is none.
	Info *stream.Info
	// Hash is the request's hash for consistent hashing, if HasHash.
	Hash    uint64
	HasHash bool
	// Exclude are hosts to avoid (hosts that were tried before), and Reject is asked too, if set. A pick is repeated at most
	// Attempts times; then the last one stands.
	Exclude  []*host.Host
	Reject   func(h *host.Host) bool
	Attempts int
	// Loads replaces the share of each priority (retry priority); nil mostly.
	Loads *Loads

	local   *Local
	attempt int // how often the pick was repeated
}

// avoid tells whether another host should be picked instead of h.
func (c *Context) avoid(h *host.Host) bool {
	for _, x := range c.Exclude {
		if x == h {
			return true
		}
	}
	return c.Reject != nil && c.Reject(h)
}

// Balancer picks from one list of hosts. It is immutable and shared by all workers; its memory between two picks is in the
// Context's worker-local state. It returns nil if it has no host.
type Balancer interface {
	Pick(c *Context) *host.Host
}

// Policy makes Balancers. Values are immutable and shared by clusters.
type Policy interface {
	// Build returns the balancer of hosts, which it keeps. state is where it finds its worker-local state (Context.State).
	Build(hosts []*host.Host, state int) Balancer
}

// State is what one balancer remembers on one worker.
type State struct {
	// Next is a counter that starts somewhere.
	Next uint32
	// Seeded tells whether Next was set.
	Seeded bool
	sched  *schedule
	own    any // of an extension
}

// Local is the memory of all balancers of one table on one worker. The zero value is ready. owner: worker.
type Local struct {
	table  *Table
	states []State
	one    [1]State // most tables have one balancer
	pick   upstream.Pick
	ahead  []peeked // what the next picks give; empty mostly
}

// bind makes l the memory of t.
func (l *Local) bind(t *Table) {
	l.table = t
	clear(l.ahead)
	l.ahead = l.ahead[:0]
	if t.states <= len(l.one) {
		l.one = [1]State{}
		l.states = l.one[:]
		return
	}
	l.states = make([]State, t.states)
}

// State returns the balancer's memory on this worker.
func (c *Context) State(i int) *State { return &c.local.states[i] }
