// Package match evaluates the matchers that configurations share: strings, regular expressions, values, and the matcher trees of
// xds.type.matcher.v3.Matcher, whose inputs and predicates lead to an action of any type.
//
// A tree is compiled once, on the main loop, immutable, and used by all workers. It reads what is known of a connection or a
// request at that moment, never waits for more (it says that more is needed), and reads no protobuf.
package match

import (
	"net/netip"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
)

// Outcome is what matching says.
type Outcome uint8

// The outcomes. Insufficient: an input is not there yet, such as response headers while the request is on its way.
const (
	NoMatch Outcome = iota
	Match
	Insufficient
)

// Data is what the inputs of a tree look at. What is nil is not there yet.
type Data struct {
	Request, RequestTrailers, Response, ResponseTrailers *http.HeaderMap
	// Info is the stream's, Conn the connection's; one of them is enough.
	Info *stream.Info
	Conn *network.ConnInfo
	// Runtime answers runtime fractions; nil: their defaults.
	Runtime Runtime
	// LocalReply: the response is the proxy's own.
	LocalReply bool
}

// Runtime is the runtime as matching sees it.
type Runtime interface {
	// Fraction returns a runtime key as a fraction, the given one if it is not set.
	Fraction(key string, numerator, denominator uint64) (n, d uint64)
}

func (d *Data) conn() *network.ConnInfo {
	if d.Conn == nil && d.Info != nil {
		return d.Info.Conn
	}
	return d.Conn
}

// remote is the client, which may be another one than the connection's peer.
func (d *Data) remote() network.Address {
	if d.Info != nil && d.Info.Remote.Valid() {
		return d.Info.Remote
	}
	if c := d.conn(); c != nil {
		return c.Remote
	}
	return network.Address{}
}

// Value is what an input gives: a text, an address (which has a text), a plain value of metadata, or nothing.
type Value struct {
	Text string
	// Addr is the address that Text stands for, if the input knows it as one; Text may be empty then.
	Addr netip.Addr
	// Plain is a value of metadata.
	Plain any
	// Has: there is a value.
	Has bool
}

// String is the value as a text.
func (v Value) String() string {
	if v.Text == "" && v.Addr.IsValid() {
		return v.Addr.String()
	}
	return v.Text
}

// kind says which values an input gives.
type kind uint8

const (
	texts kind = iota
	plains
)

// input reads one fact. ok is false if it is not known yet.
type input struct {
	read func(d *Data) (v Value, ok bool)
	kind kind
}

// Tree is a compiled matcher tree with actions of type A.
type Tree[A any] struct{ root node[A] }

// Match evaluates the tree.
func (t *Tree[A]) Match(d *Data) (action A, o Outcome) { return t.root.match(d) }

// Actions calls f for each action of the tree.
func (t *Tree[A]) Actions(f func(A)) { t.root.each(f) }

// node is one matcher.
type node[A any] interface {
	match(d *Data) (A, Outcome)
	each(f func(A))
}

// onMatch is what a match leads to: an action, another matcher, or nothing.
type onMatch[A any] struct {
	set    bool
	action A
	tree   node[A]
	keep   bool // keep_matching: what it leads to counts as no match
}

func (o *onMatch[A]) resolve(d *Data) (a A, out Outcome) {
	if !o.set {
		return a, NoMatch
	}
	a, out = o.action, Match
	if o.tree != nil {
		a, out = o.tree.match(d)
	}
	if o.keep && out == Match {
		var none A
		return none, NoMatch
	}
	return a, out
}

func (o *onMatch[A]) each(f func(A)) {
	switch {
	case !o.set:
	case o.tree != nil:
		o.tree.each(f)
	default:
		f(o.action)
	}
}

// listNode tries predicates in order.
type listNode[A any] struct {
	fields []field[A]
	none   onMatch[A]
}

type field[A any] struct {
	is predicate
	on onMatch[A]
}

func (n *listNode[A]) match(d *Data) (A, Outcome) {
	for i := range n.fields {
		f := &n.fields[i]
		switch f.is.match(d) {
		case Insufficient:
			var none A
			return none, Insufficient
		case Match:
			if a, o := f.on.resolve(d); o != NoMatch {
				return a, o
			}
		}
	}
	return n.none.resolve(d)
}

func (n *listNode[A]) each(f func(A)) {
	for i := range n.fields {
		n.fields[i].on.each(f)
	}
	n.none.each(f)
}

// mapNode looks an input up.
type mapNode[A any] struct {
	in   input
	find func(d *Data, v Value) (A, Outcome)
	all  []*onMatch[A]
	none onMatch[A]
}

func (n *mapNode[A]) match(d *Data) (A, Outcome) {
	v, ok := n.in.read(d)
	if !ok {
		var none A
		return none, Insufficient
	}
	if v.Has {
		if a, o := n.find(d, v); o != NoMatch {
			return a, o
		}
	}
	return n.none.resolve(d)
}

func (n *mapNode[A]) each(f func(A)) {
	for _, o := range n.all {
		o.each(f)
	}
	n.none.each(f)
}

// emptyNode has nothing but on_no_match.
type emptyNode[A any] struct{ none onMatch[A] }

func (n *emptyNode[A]) match(d *Data) (A, Outcome) { return n.none.resolve(d) }
func (n *emptyNode[A]) each(f func(A))             { n.none.each(f) }
