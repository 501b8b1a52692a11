// Package pool keeps a worker's connections to one upstream host and gives streams on them to requests.
//
// A Pool belongs to one worker and one host, protocol and priority. HTTP/1 connections carry one stream and are reused last in,
// first out; an HTTP/2 connection is filled up to its stream limit before another one is opened. Requests that find no room
// wait in a queue, first in, first out, within the cluster's breakers. The package chooses no host, retries nothing, and never
// allocates for a request that finds an idle connection.
package pool

import (
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Pool gives out streams to one host. owner: worker.
type Pool struct {
	// Next chains the pools of one host, and Owner is told when the pool has nothing left (nil: nobody): both belong to whoever finds
	// pools.
	Next  *Pool
	Owner Owner
	// Names are what the pool's connections are for; set before first use.
	Names Names

	s        *Settings
	w        *event.Worker
	host     *host.Host
	breakers *Breakers

	// Connections by what they can do: ready ones have room for a stream, busy ones have none (or drain).
	ready, busy, connecting list
	// Requests that wait.
	first, last *Request
	waiting     int
	active      int // streams
	// room is how many streams the connecting connections will have room for.
	room int

	prio     Priority
	protocol Protocol
	woken    bool
	draining bool
}

// Owner is told of a pool that it is empty. It is an interface, not a function: a closure would be one more small object for as long as
// a connection lives.
type Owner interface{ OnEmpty(p *Pool) }

// New returns an empty pool. protocol is not Downstream.
func New(w *event.Worker, s *Settings, h *host.Host, prio Priority, protocol Protocol) *Pool {
	return &Pool{s: s, w: w, host: h, breakers: s.Breakers(prio), prio: prio, protocol: protocol,
		ready: list{id: inReady}, busy: list{id: inBusy}, connecting: list{id: inConnecting}}
}

// Breakers returns the breakers that the pool keeps to.
func (p *Pool) Breakers() *Breakers { return p.breakers }

// Host returns the host that the pool connects to.
func (p *Pool) Host() *host.Host { return p.host }

// Is tells whether the pool is the one for this priority and protocol.
func (p *Pool) Is(prio Priority, protocol Protocol) bool {
	return p.prio == prio && p.protocol == protocol
}

// Empty tells whether the pool has no connection and nothing waits.
func (p *Pool) Empty() bool {
	return p.ready.n+p.busy.n+p.connecting.n == 0 && p.first == nil
}

// Connections returns how many connections there are, those that are being made included.
func (p *Pool) Connections() int { return int(p.ready.n + p.busy.n + p.connecting.n) }

// Waiting returns how many requests wait.
func (p *Pool) Waiting() int { return p.waiting }

// Start gets r a stream: now, or when a connection has room for it, or never; see Callbacks. A nil Pool has no room.
func (p *Pool) Start(r *Request) {
	if p == nil { // max_connection_pools was reached
		r.CB.OnPoolFailure(http.ResetOverflow, "", nil)
		return
	}
	if c := p.usable(); c != nil {
		c.attach(r)
		if p.s.Preconnect > 1 {
			p.preconnect()
		}
		return
	}
	if !p.breakers.Pending.TryAcquire() {
		p.w.Stats.Inc(p.s.Stats.Counter(stats.ClusterUpstreamRqPendingOverflow))
		r.CB.OnPoolFailure(http.ResetOverflow, "", nil)
		return
	}
	p.enqueue(r)
	p.connect()
}

// connect opens connections for what waits, as far as the limits allow.
func (p *Pool) connect() {
	for p.waiting > p.room {
		if !p.mayConnect() {
			return
		}
		p.open()
	}
	if p.s.Preconnect > 1 && p.waiting+p.active > 0 {
		p.preconnect()
	}
}

// mayConnect takes a connection from the breakers. A pool without any connection may always have one, so that what waits in it
// is not stuck because of other hosts and workers.
func (p *Pool) mayConnect() bool {
	perHost := p.breakers.limits.PerHostConnections
	if perHost == Unlimited || p.host.CxActive.Load() < int32(min(perHost, 1<<30)) {
		if p.breakers.Connections.TryAcquire() {
			return true
		}
	}
	p.w.Stats.Inc(p.s.Stats.Counter(stats.ClusterUpstreamCxOverflow))
	if p.Connections() > 0 {
		return false
	}
	p.breakers.Connections.Force()
	return true
}

// wake serves what waits in this pass, after what is on the stack now.
func (p *Pool) wake() {
	if !p.woken && p.first != nil {
		p.woken = true
		p.w.Again(p)
	}
}

// Run is the worker's call after wake.
func (p *Pool) Run() {
	p.woken = false
	p.serve()
}

// serve gives what waits to connections that have room.
func (p *Pool) serve() {
	for p.first != nil {
		c := p.usable()
		if c == nil {
			break
		}
		r := p.first
		p.unqueue(r)
		c.attach(r)
	}
	p.connect()
}

// Drain closes idle connections now and the others after their last stream. What waits is still served; new requests may come
// (of streams that hold the host), and their connections close as well.
func (p *Pool) Drain() {
	p.draining = true
	for c := p.ready.head; c != nil; {
		next := c.next
		c.drain("")
		c = next
	}
	for c := p.busy.head; c != nil; {
		next := c.next
		c.drain("")
		c = next
	}
	for p.first == nil && p.connecting.head != nil {
		p.connecting.head.close("")
	}
}

// checkEmpty tells the owner when nothing is left.
func (p *Pool) checkEmpty() {
	if p.Owner != nil && p.Empty() {
		p.Owner.OnEmpty(p)
	}
}

// leaving tells whether connections must not outlive their streams.
func (p *Pool) leaving() bool {
	return p.draining || p.host.Has(host.Removed) || p.s.Retired()
}

// list is a doubly linked list of connections; the head is used first.
type list struct {
	head *Conn
	n    int32
	id   listID
}

// listID says which of a pool's lists one is. A connection knows its list by that: eight bytes less.
type listID uint8

const (
	nowhere listID = iota
	inReady
	inBusy
	inConnecting
)

// list returns the list that c is in, nil if there is none.
func (c *Conn) list() *list {
	switch c.in {
	case inReady:
		return &c.pool.ready
	case inBusy:
		return &c.pool.busy
	case inConnecting:
		return &c.pool.connecting
	}
	return nil
}

func (l *list) push(c *Conn) {
	c.prev, c.next = nil, l.head
	if l.head != nil {
		l.head.prev = c
	}
	l.head = c
	l.n++
	c.in = l.id
}

func (l *list) remove(c *Conn) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		l.head = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	c.next, c.prev, c.in = nil, nil, nowhere
	l.n--
}

// move puts c into l, at the front.
func (c *Conn) move(l *list) {
	was := c.list()
	if was == l {
		return
	}
	if was != nil {
		was.remove(c)
	}
	if l != nil {
		l.push(c)
	}
}

// Next: proxy/internal/hcm/finish.go
