package listener

import (
	"sync/atomic"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
)

// Chain is one filter chain: what it matches, its transport socket and its network filters. It may outlive the Chains that it
// came with: an update keeps the chains that did not change.
type Chain struct {
	Name  string
	Match Match
	// Transport makes the transport socket of a connection; nil: plain.
	Transport TransportFactory
	// Filters come before Terminal.
	Filters []NetworkFactory
	// Terminal is what serves; nil if the last of Filters does.
	Terminal Terminal
	// ConnectTimeout bounds the transport's handshake, 0: none.
	ConnectTimeout time.Duration
	// Drained, if set, refines what Draining says, since connections need not all end at once.
	Drained func() bool

	draining atomic.Bool
	// entrance is what connections have of the chain's names; the listener sets it.
	entrance *network.Entrance
}

// TransportFactory makes transport sockets for accepted connections.
type TransportFactory interface {
	New(w *event.Worker) conn.Transport
}

// NetworkFactory makes a network filter for one connection.
type NetworkFactory func(d network.Dispatcher) network.ReadFilter

// Terminal makes what serves a connection: an HTTP connection manager, a TCP proxy.
type Terminal interface {
	NewHandler(c *conn.Conn) conn.Handler
}

// Drain says that the chain's connections should end after their current work.
func (ch *Chain) Drain() { ch.draining.Store(true) }

// Draining tells whether Drain was called. Safe from any thread.
func (ch *Chain) Draining() bool { return ch.draining.Load() }

// handler makes what serves a connection, nil if the chain is empty. Write filters go into its transport.
func (ch *Chain) handler(c *conn.Conn, tr *conn.Transport) conn.Handler {
	if len(ch.Filters) > 0 {
		return newManager(ch, c, tr)
	}
	if ch.Terminal == nil {
		return nil
	}
	return ch.Terminal.NewHandler(c)
}

// Chains is the set of filter chains of a listener. It is immutable.
type Chains struct {
	List    []*Chain
	Default *Chain
	root    node
	// only: the single chain that matches everything.
	only *Chain
	// tree chooses instead of the chains' matches, if there is one.
	tree    *match.Tree[*Chain]
	runtime match.Runtime
}

// NewChains returns the set; the chains must not be changed any more. Two chains for one and the same connection are an error.
func NewChains(list []*Chain, def *Chain) (*Chains, error) {
	c := &Chains{List: list, Default: def}
	for _, ch := range list {
		if err := c.root.insert(ch, 0); err != nil {
			return nil, err
		}
	}
	if len(list) == 1 && list[0].Match.empty() {
		c.only = list[0]
	}
	return c, nil
}

// NewMatchedChains returns a set whose chains a matcher tree chooses; what the chains themselves match does not count. A match that leads
// to nil is a match: there is no chain then. rt may be nil.
func NewMatchedChains(list []*Chain, def *Chain, tree *match.Tree[*Chain], rt match.Runtime) *Chains {
	return &Chains{List: list, Default: def, tree: tree, runtime: rt}
}

// OneChain returns a set whose chain takes every connection.
func OneChain(ch *Chain) *Chains { return &Chains{List: []*Chain{ch}, only: ch} }

// Find returns the chain of a connection: by the matcher tree, or criterion by criterion, in Envoy's fixed order, the most specific of
// what is left, with no way back. nil: there is none.
func (c *Chains) Find(i *network.ConnInfo) *Chain {
	switch {
	case c.only != nil:
		return c.only
	case c.tree != nil:
		if ch, o := c.tree.Match(&match.Data{Conn: i, Runtime: c.runtime}); o == match.Match {
			return ch
		}
		return c.Default
	}
	if ch := c.root.find(i); ch != nil {
		return ch
	}
	return c.Default
}

// Each calls f for all chains.
func (c *Chains) Each(f func(ch *Chain)) {
	for _, ch := range c.List {
		f(ch)
	}
	if c.Default != nil {
		f(c.Default)
	}
}

// Next: proxy/internal/conn/conn.go
