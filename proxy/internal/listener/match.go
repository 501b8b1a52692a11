package listener

import (
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/network"
)

// Match is a filter chain match. Empty lists match anything. Names are lower-case.
type Match struct {
	DestinationPort uint16
	Destination     []netip.Prefix
	ServerNames     []string // "a.b", "*.b"
	Transport       string
	ALPN            []string
	DirectSource    []netip.Prefix
	SourceType      uint8 // 0 any, 1 same IP or loopback, 2 external
	Source          []netip.Prefix
	SourcePorts     []uint16
}

// ErrOverlap says that two filter chains would match the same connection.
var ErrOverlap = errors.New("multiple filter chains with overlapping matching rules are defined")

func (m *Match) empty() bool {
	return m.DestinationPort == 0 && len(m.Destination) == 0 && len(m.ServerNames) == 0 && m.Transport == "" && len(m.ALPN) == 0 &&
		len(m.DirectSource) == 0 && m.SourceType == 0 && len(m.Source) == 0 && len(m.SourcePorts) == 0
}

// The criteria in their order.
const (
	byPort = iota
	byDestination
	byName
	byTransport
	byALPN
	byDirectSource
	bySourceType
	bySource
	bySourcePort
	criteria
)

// node is the choice by one criterion: what is left after the criteria above it. A connection goes to the most specific child that
// it matches, to any if there is none.
type node struct {
	chain *Chain // below the last criterion
	any   *node
	ports map[uint16]*node
	// names are server names, wildcards with their star cut off (".a.com"), transports or ALPN protocols.
	names map[string]*node
	nets  map[netip.Prefix]*node
	bits  []int // the lengths that nets has, longest first
	types [3]*node
}

// insert adds ch below n, which chooses by the given criterion.
func (n *node) insert(ch *Chain, criterion int) error {
	m := &ch.Match
	switch criterion {
	case byPort:
		if m.DestinationPort != 0 {
			return n.port(m.DestinationPort).insert(ch, criterion+1)
		}
	case byDestination:
		return n.insertNets(m.Destination, ch, criterion)
	case byName:
		return n.insertNames(m.ServerNames, ch, criterion)
	case byTransport:
		if m.Transport != "" {
			return n.name(m.Transport).insert(ch, criterion+1)
		}
	case byALPN:
		return n.insertNames(m.ALPN, ch, criterion)
	case byDirectSource:
		return n.insertNets(m.DirectSource, ch, criterion)
	case bySourceType:
		if n.types[m.SourceType] == nil {
			n.types[m.SourceType] = &node{}
		}
		return n.types[m.SourceType].insert(ch, criterion+1)
	case bySource:
		return n.insertNets(m.Source, ch, criterion)
	case bySourcePort:
		for _, p := range m.SourcePorts {
			if err := n.port(p).insert(ch, criterion+1); err != nil {
				return err
			}
		}
		if len(m.SourcePorts) > 0 {
			return nil
		}
	case criteria:
		if n.chain != nil {
			return ErrOverlap
		}
		n.chain = ch
		return nil
	}
	return n.other().insert(ch, criterion+1)
}

func (n *node) insertNets(list []netip.Prefix, ch *Chain, criterion int) error {
	for _, p := range list {
		if err := n.net(p).insert(ch, criterion+1); err != nil {
			return err
		}
	}
	if len(list) == 0 {
		return n.other().insert(ch, criterion+1)
	}
	return nil
}

func (n *node) insertNames(list []string, ch *Chain, criterion int) error {
	for _, s := range list {
		if criterion == byName {
			s = strings.TrimPrefix(s, "*")
		}
		to := n.other() // as without names
		if s != "" {
			to = n.name(s)
		}
		if err := to.insert(ch, criterion+1); err != nil {
			return err
		}
	}
	if len(list) == 0 {
		return n.other().insert(ch, criterion+1)
	}
	return nil
}

func (n *node) other() *node {
	if n.any == nil {
		n.any = &node{}
	}
	return n.any
}

func (n *node) port(p uint16) *node { return child(&n.ports, p) }

func (n *node) name(s string) *node { return child(&n.names, s) }

func (n *node) net(p netip.Prefix) *node {
	if !slices.Contains(n.bits, p.Bits()) {
		n.bits = append(n.bits, p.Bits())
		slices.SortFunc(n.bits, func(a, b int) int { return b - a })
	}
	return child(&n.nets, p.Masked())
}

func child[K comparable](m *map[K]*node, k K) *node {
	if *m == nil {
		*m = map[K]*node{}
	}
	c := (*m)[k]
	if c == nil {
		c = &node{}
		(*m)[k] = c
	}
	return c
}

// find returns the chain of a connection, nil if there is none.
func (n *node) find(i *network.ConnInfo) *Chain {
	for criterion := range criteria {
		if n == nil {
			return nil
		}
		next := n.step(criterion, i)
		if next == nil && criterion != bySourceType {
			next = n.any
		}
		n = next
	}
	if n == nil {
		return nil
	}
	return n.chain
}

// step returns the most specific child of n that the connection matches, nil if it matches none.
func (n *node) step(criterion int, i *network.ConnInfo) *node {
	switch criterion {
	case byPort:
		return n.ports[i.Local.IP.Port()]
	case byDestination:
		return n.findNet(i.Local.IP.Addr())
	case byName:
		return n.findName(i.Said().ServerName)
	case byTransport:
		t := i.Said().Transport
		if t == "" {
			t = "raw_buffer"
		}
		return n.names[t]
	case byALPN:
		for _, p := range i.Said().ALPN {
			if c := n.names[p]; c != nil {
				return c
			}
		}
	case byDirectSource:
		return n.findNet(i.DirectRemote().IP.Addr())
	case bySourceType:
		return n.findType(i)
	case bySource:
		return n.findNet(i.Remote.IP.Addr())
	case bySourcePort:
		return n.ports[i.Remote.IP.Port()]
	}
	return nil
}

func (n *node) findNet(a netip.Addr) *node {
	if len(n.bits) == 0 || !a.IsValid() {
		return nil
	}
	a = a.Unmap()
	for _, b := range n.bits {
		if p, err := a.Prefix(b); err == nil {
			if c := n.nets[p]; c != nil {
				return c
			}
		}
	}
	return nil
}

// findName looks for the name, then for wildcards, the longest first.
func (n *node) findName(name string) *node {
	if name == "" || n.names == nil {
		return nil
	}
	if c := n.names[name]; c != nil {
		return c
	}
	for k := strings.IndexByte(name, '.'); k >= 0 && k < len(name); {
		if c := n.names[name[k:]]; c != nil {
			return c
		}
		next := strings.IndexByte(name[k+1:], '.')
		if next < 0 {
			return nil
		}
		k += 1 + next
	}
	return nil
}

func (n *node) findType(i *network.ConnInfo) *node {
	a := i.Remote.IP.Addr()
	kind := 2
	if !a.IsValid() || a.IsLoopback() || a == i.Local.IP.Addr() {
		kind = 1
	}
	if n.types[kind] != nil {
		return n.types[kind]
	}
	return n.types[0]
}
