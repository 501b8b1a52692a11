package listener

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Chain is one filter chain: what it matches, its transport socket and its network filters.
type Chain struct {
	Name  string
	Match Match
	// Transport makes the transport socket of a connection; nil: plain.
	Transport TransportFactory
	// Filters come before Terminal.
	Filters  []NetworkFactory
	Terminal Terminal
	// ConnectTimeout bounds the transport's handshake, 0: none.
	ConnectTimeout time.Duration
}

// TransportFactory makes transport sockets for accepted connections.
type TransportFactory interface {
	New(w *event.Worker) conn.Transport
}

// NetworkFactory makes a network filter for one connection.
type NetworkFactory interface {
	New(d network.Dispatcher) network.ReadFilter
}

// Terminal makes what serves a connection: an HTTP connection manager, a TCP proxy.
type Terminal interface {
	NewHandler(c *conn.Conn) conn.Handler
}

// Match is a filter chain match. Empty lists match anything. Hosts are lower-case.
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

// Chains is the set of filter chains of a listener. It is immutable.
type Chains struct {
	List    []*Chain
	Default *Chain
	// only: the single chain that matches everything.
	only *Chain
	sni  bool
}

// NewChains returns the set; the chains must not be changed any more.
func NewChains(list []*Chain, def *Chain) *Chains {
	c := &Chains{List: list, Default: def}
	if len(list) == 1 && list[0].Match.empty() {
		c.only = list[0]
	}
	return c
}

func (m *Match) empty() bool {
	return m.DestinationPort == 0 && len(m.Destination) == 0 && len(m.ServerNames) == 0 && m.Transport == "" && len(m.ALPN) == 0 &&
		len(m.DirectSource) == 0 && m.SourceType == 0 && len(m.Source) == 0 && len(m.SourcePorts) == 0
}

// Find returns the chain of a connection: criterion by criterion, in Envoy's fixed order, the most specific of what is left, with
// no way back. nil: there is none.
func (c *Chains) Find(i *network.ConnInfo) *Chain {
	if c.only != nil {
		return c.only
	}
	var buf [64]*Chain
	left := append(buf[:0], c.List...)
	for _, rank := range ranks {
		if left = most(left, i, rank); len(left) == 0 {
			return c.Default
		}
	}
	return left[0]
}

// most keeps the chains with the highest rank above zero.
func most(list []*Chain, i *network.ConnInfo, rank func(m *Match, i *network.ConnInfo) int) []*Chain {
	best := 0
	out := list[:0]
	for _, x := range list {
		r := rank(&x.Match, i)
		if r == 0 || r < best {
			continue
		}
		if r > best {
			best, out = r, out[:0]
		}
		out = append(out, x)
	}
	return out
}

// ranks are the criteria in order. 0: no match, 1: not asked for, more: the more the more specific.
var ranks = []func(m *Match, i *network.ConnInfo) int{
	func(m *Match, i *network.ConnInfo) int {
		if m.DestinationPort == 0 {
			return 1
		}
		return yes(m.DestinationPort == i.Local.IP.Port())
	},
	func(m *Match, i *network.ConnInfo) int { return longest(m.Destination, i.Local.IP.Addr()) },
	func(m *Match, i *network.ConnInfo) int { return names(m.ServerNames, i.ServerName) },
	func(m *Match, i *network.ConnInfo) int {
		if m.Transport == "" {
			return 1
		}
		t := i.Transport
		if t == "" {
			t = "raw_buffer"
		}
		return yes(m.Transport == t)
	},
	func(m *Match, i *network.ConnInfo) int {
		if len(m.ALPN) == 0 {
			return 1
		}
		for k, p := range i.ALPN {
			if slices.Contains(m.ALPN, p) {
				return 1000 - k
			}
		}
		return 0
	},
	func(m *Match, i *network.ConnInfo) int { return longest(m.DirectSource, i.DirectRemote().IP.Addr()) },
	func(m *Match, i *network.ConnInfo) int {
		if m.SourceType == 0 {
			return 1
		}
		a := i.Remote.IP.Addr()
		local := !a.IsValid() || a.IsLoopback() || a == i.Local.IP.Addr()
		return yes(local == (m.SourceType == 1))
	},
	func(m *Match, i *network.ConnInfo) int { return longest(m.Source, i.Remote.IP.Addr()) },
	func(m *Match, i *network.ConnInfo) int {
		if len(m.SourcePorts) == 0 {
			return 1
		}
		return yes(slices.Contains(m.SourcePorts, i.Remote.IP.Port()))
	},
}

func yes(b bool) int {
	if b {
		return 2
	}
	return 0
}

func longest(list []netip.Prefix, a netip.Addr) int {
	if len(list) == 0 {
		return 1
	}
	best := 0
	for _, p := range list {
		if a.IsValid() && p.Contains(a) {
			best = max(best, 2+p.Bits())
		}
	}
	return best
}

func names(list []string, name string) int {
	if len(list) == 0 {
		return 1
	}
	best := 0
	for _, n := range list {
		switch {
		case n == name && name != "":
			return 1 << 20
		case strings.HasPrefix(n, "*.") && strings.HasSuffix(name, n[1:]) && len(name) > len(n)-1:
			best = max(best, 2+len(n))
		}
	}
	return best
}

// session is a connection on its way to its handler. It stays as the connection's outermost handler only while listener filters
// run; then the chain's handler takes over, wrapped so that the listener learns of the end.
type session struct {
	a *acceptor
	c *conn.Conn
	conn.Handler
}

// choose picks the chain and starts the connection on it.
func (s *session) choose() {
	l := s.a.l
	chain := l.chains.Load().Find(&s.c.Info)
	if chain == nil {
		s.a.w.Stats.Inc(l.Stats.Counter(stats.ListenerNoFilterChainMatch))
		s.refuse()
		return
	}
	s.c.Info.ChainName = chain.Name
	var tr conn.Transport
	if chain.Transport != nil {
		tr = chain.Transport.New(s.a.w)
	}
	s.serve(chain, tr)
}

// serve hands the connection to its chain.
func (s *session) serve(chain *Chain, tr conn.Transport) {
	if s.Handler == nil {
		s.c.SetTransport(tr)
		s.Handler = chain.handler(s.c)
		_ = s.c.Start(s) // an error was told by OnClose
	} else {
		s.Handler = chain.handler(s.c)
		s.c.Assign(tr, s)
	}
	if n, ok := s.Handler.(Beginner); ok && s.c.IsOpen() {
		n.OnNewConnection()
	}
}

// Beginner is a handler that has something to do once its connection is there, before a handshake is done.
type Beginner interface{ OnNewConnection() }

func (ch *Chain) handler(c *conn.Conn) conn.Handler {
	return ch.Terminal.NewHandler(c)
}

// refuse closes a connection that nobody wants.
func (s *session) refuse() {
	if s.Handler == nil {
		s.Handler = nobody{}
		if s.c.Start(s) != nil {
			return
		}
	}
	s.c.Close(network.NoFlush, "filter_chain_not_found")
}

// OnClose tells the handler, then the listener.
func (s *session) OnClose(why conn.Closed) {
	s.Handler.OnClose(why)
	s.a.released(s.c)
}

// nobody is the handler of a connection that is being refused.
type nobody struct{}

func (nobody) OnConnected()        {}
func (nobody) OnData(b []byte) int { return len(b) }
func (nobody) OnEOF()              {}
func (nobody) OnHighWatermark()    {}
func (nobody) OnLowWatermark()     {}
func (nobody) OnClose(conn.Closed) {}

// Next: proxy/internal/conn/conn.go
