package listener_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
)

func addr(s string) network.Address { return network.AddrFrom(netip.MustParseAddrPort(s)) }

func prefixes(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// client describes a connection.
type client struct {
	local, remote, direct string
	name, transport       string
	alpn                  []string
}

func (c client) info() *network.ConnInfo {
	i := &network.ConnInfo{Local: addr(c.local), Remote: addr(c.remote)}
	if c.direct != "" {
		i.Direct = &[2]network.Address{i.Local, addr(c.direct)}
	}
	h := i.SetHello()
	h.ServerName, h.Transport, h.ALPN = c.name, c.transport, c.alpn
	return i
}

// TestMatchOrder goes through Envoy's criteria: what each prefers, and that an earlier one decides without a way back.
func TestMatchOrder(t *testing.T) {
	type chains map[string]listener.Match
	here := client{local: "10.0.0.1:443", remote: "192.0.2.7:5000"}
	with := func(change func(c *client)) client {
		c := here
		change(&c)
		return c
	}
	for _, tc := range []struct {
		name   string
		chains chains
		def    bool
		client client
		want   string
	}{
		{"everything", chains{"all": {}}, false, here, "all"},
		{"port", chains{"p": {DestinationPort: 443}, "q": {DestinationPort: 80}, "all": {}}, false, here, "p"},
		{"no port", chains{"q": {DestinationPort: 80}}, false, here, ""},
		{"no port, default", chains{"q": {DestinationPort: 80}}, true, here, "default"},
		{"longest destination", chains{"8": {Destination: prefixes("10.0.0.0/8")}, "24": {Destination: prefixes("10.0.0.0/24", "172.16.0.0/12")},
			"32": {Destination: prefixes("10.0.0.2/32")}}, false, here, "24"},
		{"any address of the other family", chains{"6": {Destination: prefixes("::/0")}, "all": {}}, false, here, "all"},
		{"exact name", chains{"e": {ServerNames: []string{"a.b.c"}}, "w": {ServerNames: []string{"*.b.c"}}, "all": {}}, false,
			with(func(c *client) { c.name = "a.b.c" }), "e"},
		{"longest wildcard", chains{"c": {ServerNames: []string{"*.c"}}, "bc": {ServerNames: []string{"*.b.c"}}}, false,
			with(func(c *client) { c.name = "x.a.b.c" }), "bc"},
		{"a wildcard wants a label", chains{"w": {ServerNames: []string{"*.b.c"}}, "all": {}}, false,
			with(func(c *client) { c.name = "b.c" }), "all"},
		{"no name", chains{"e": {ServerNames: []string{"a.b.c"}}}, false, here, ""},
		{"transport", chains{"tls": {Transport: "tls"}, "raw": {Transport: "raw_buffer"}}, false,
			with(func(c *client) { c.transport = "tls" }), "tls"},
		{"an unknown transport is raw", chains{"tls": {Transport: "tls"}, "raw": {Transport: "raw_buffer"}}, false, here, "raw"},
		{"the client's order of protocols", chains{"h1": {ALPN: []string{"http/1.1"}}, "h2": {ALPN: []string{"h2"}}}, false,
			with(func(c *client) { c.alpn = []string{"h3", "http/1.1", "h2"} }), "h1"},
		{"no protocol of ours", chains{"h1": {ALPN: []string{"http/1.1"}}, "all": {}}, false,
			with(func(c *client) { c.alpn = []string{"h3"} }), "all"},
		{"direct source", chains{"d": {DirectSource: prefixes("198.51.100.0/24")}, "all": {}}, false,
			with(func(c *client) { c.direct = "198.51.100.1:1" }), "d"},
		{"direct source is not the source", chains{"d": {DirectSource: prefixes("192.0.2.0/24")}, "all": {}}, false,
			with(func(c *client) { c.direct = "198.51.100.1:1" }), "all"},
		{"external", chains{"l": {SourceType: 1}, "e": {SourceType: 2}, "all": {}}, false, here, "e"},
		{"loopback", chains{"l": {SourceType: 1}, "e": {SourceType: 2}}, false, with(func(c *client) { c.remote = "127.0.0.1:1" }), "l"},
		{"same IP", chains{"l": {SourceType: 1}, "all": {}}, false, with(func(c *client) { c.remote = "10.0.0.1:1" }), "l"},
		{"longest source", chains{"24": {Source: prefixes("192.0.2.0/24")}, "32": {Source: prefixes("192.0.2.7/32")}}, false, here, "32"},
		{"source port", chains{"p": {SourcePorts: []uint16{4999, 5000}}, "all": {}}, false, here, "p"},
		{"no way back", chains{
			"port": {DestinationPort: 443, ServerNames: []string{"a.b.c"}}, "name": {ServerNames: []string{"*.b.c"}}}, true,
			with(func(c *client) { c.name = "x.b.c" }), "default"},
		{"no way back from a name", chains{
			"exact": {ServerNames: []string{"a.b.c"}, Transport: "tls"}, "wild": {ServerNames: []string{"*.b.c"}}}, false,
			with(func(c *client) { c.name = "a.b.c" }), ""},
		{"an address of no family", chains{"d": {Destination: prefixes("10.0.0.0/8")}, "all": {}}, false,
			with(func(c *client) { c.local = "[fd00::1]:443" }), "all"},
		{"IPv4 in IPv6", chains{"d": {Destination: prefixes("10.0.0.0/8")}}, false,
			with(func(c *client) { c.local = "[::ffff:10.0.0.1]:443" }), "d"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var list []*listener.Chain
			for name, m := range tc.chains {
				list = append(list, &listener.Chain{Name: name, Match: m})
			}
			var def *listener.Chain
			if tc.def {
				def = &listener.Chain{Name: "default"}
			}
			set, err := listener.NewChains(list, def)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if ch := set.Find(tc.client.info()); ch != nil {
				got = ch.Name
			}
			if got != tc.want {
				t.Errorf("chain %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOverlap(t *testing.T) {
	for _, tc := range []struct {
		name string
		a, b listener.Match
		want bool
	}{
		{"both empty", listener.Match{}, listener.Match{}, true},
		{"one name in common", listener.Match{ServerNames: []string{"a", "b"}}, listener.Match{ServerNames: []string{"b", "c"}}, true},
		{"names differ", listener.Match{ServerNames: []string{"a"}}, listener.Match{ServerNames: []string{"b"}}, false},
		{"the same range, written otherwise", listener.Match{Source: prefixes("10.1.2.3/8")}, listener.Match{Source: prefixes("10.0.0.0/8")}, true},
		{"a wildcard and its name", listener.Match{ServerNames: []string{"*.a"}}, listener.Match{ServerNames: []string{"b.a"}}, false},
		{"one port in common", listener.Match{SourcePorts: []uint16{1, 2}}, listener.Match{SourcePorts: []uint16{2}}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := listener.NewChains([]*listener.Chain{{Match: tc.a}, {Match: tc.b}}, nil)
			if got := errors.Is(err, listener.ErrOverlap); got != tc.want {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestMatchAgainstRanks compares the tree with the rule as it is written: criterion by criterion, keep the chains that match best.
func TestMatchAgainstRanks(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var list []*listener.Chain
		for i := range 1 + rnd.IntN(12) {
			ch := &listener.Chain{Name: fmt.Sprint(i), Match: randomMatch(rnd)}
			if _, err := listener.NewChains(append(slices.Clone(list), ch), nil); err == nil {
				list = append(list, ch)
			}
		}
		set, err := listener.NewChains(list, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			i := randomClient(rnd).info()
			got, want := set.Find(i), byRank(list, i)
			if got != want {
				t.Fatalf("seed %d: chain %v, want %v, for %+v %+v among\n%s", seed, name(got), name(want), i, i.Said(), describe(list))
			}
		}
	}
}

func name(ch *listener.Chain) string {
	if ch == nil {
		return "none"
	}
	return ch.Name
}

func describe(list []*listener.Chain) string {
	var b strings.Builder
	for _, ch := range list {
		fmt.Fprintf(&b, "%s: %+v\n", ch.Name, ch.Match)
	}
	return b.String()
}

func some[T any](rnd *rand.Rand, from ...T) (out []T) {
	for _, x := range from {
		if rnd.IntN(4) == 0 {
			out = append(out, x)
		}
	}
	return out
}

func one[T any](rnd *rand.Rand, from ...T) T { return from[rnd.IntN(len(from))] }

func randomMatch(rnd *rand.Rand) listener.Match {
	nets := func() []netip.Prefix {
		return some(rnd, prefixes("10.0.0.0/8", "10.0.0.0/24", "10.0.0.1/32", "127.0.0.0/8", "::/0", "fd00::/16")...)
	}
	m := listener.Match{DestinationPort: one(rnd, 0, 0, uint16(80), 443), SourceType: one(rnd, uint8(0), 0, 1, 2)}
	m.ServerNames = some(rnd, "a.b.c", "*.b.c", "*.c", "b.c")
	m.Transport = one(rnd, "", "", "tls", "raw_buffer")
	m.ALPN = some(rnd, "h2", "http/1.1")
	m.SourcePorts = some(rnd, uint16(1), 2)
	m.Destination, m.Source, m.DirectSource = nets(), nets(), nets()
	return m
}

func randomClient(rnd *rand.Rand) client {
	at := func(port uint16) string {
		return netip.AddrPortFrom(netip.MustParseAddr(one(rnd, "10.0.0.1", "10.0.0.2", "10.9.9.9", "127.0.0.1", "fd00::1", "2001:db8::1")), port).String()
	}
	return client{local: at(one(rnd, uint16(80), 443, 8080)), remote: at(one(rnd, uint16(1), 2, 3)), direct: at(one(rnd, uint16(1), 2)),
		name: one(rnd, "", "a.b.c", "x.b.c", "b.c", "x.y.b.c", "z.c", "other"), transport: one(rnd, "", "tls", "raw_buffer", "quic"),
		alpn: one(rnd, nil, []string{"h2"}, []string{"http/1.1", "h2"}, []string{"h3"})}
}

// byRank is Envoy's rule, slowly. A rank of 0 is no match, 1 is a chain that does not ask.
func byRank(list []*listener.Chain, i *network.ConnInfo) *listener.Chain {
	left := slices.Clone(list)
	for _, rank := range ranks {
		best := 0
		var keep []*listener.Chain
		for _, ch := range left {
			switch r := rank(&ch.Match, i); {
			case r == 0 || r < best:
			case r == best:
				keep = append(keep, ch)
			default:
				best, keep = r, []*listener.Chain{ch}
			}
		}
		left = keep
	}
	if len(left) == 0 {
		return nil
	}
	return left[0]
}

func asked(ask, match bool, how int) int {
	switch {
	case !ask:
		return 1
	case match:
		return 2 + how
	}
	return 0
}

func longest(list []netip.Prefix, a netip.Addr) int {
	best := -1
	for _, p := range list {
		if p.Contains(a) {
			best = max(best, p.Bits())
		}
	}
	return asked(len(list) > 0, best >= 0, best)
}

var ranks = []func(m *listener.Match, i *network.ConnInfo) int{
	func(m *listener.Match, i *network.ConnInfo) int {
		return asked(m.DestinationPort != 0, m.DestinationPort == i.Local.IP.Port(), 0)
	},
	func(m *listener.Match, i *network.ConnInfo) int { return longest(m.Destination, i.Local.IP.Addr()) },
	func(m *listener.Match, i *network.ConnInfo) int {
		best := -1
		for _, n := range m.ServerNames {
			name := i.Said().ServerName
			if n == name {
				best = 1000
			} else if suffix, ok := strings.CutPrefix(n, "*"); ok && strings.HasSuffix(name, suffix) && len(name) > len(suffix) {
				best = max(best, len(suffix))
			}
		}
		return asked(len(m.ServerNames) > 0, best >= 0, best)
	},
	func(m *listener.Match, i *network.ConnInfo) int {
		t := i.Said().Transport
		if t == "" {
			t = "raw_buffer"
		}
		return asked(m.Transport != "", m.Transport == t, 0)
	},
	func(m *listener.Match, i *network.ConnInfo) int {
		for k, p := range i.Said().ALPN {
			if slices.Contains(m.ALPN, p) {
				return asked(true, true, 100-k)
			}
		}
		return asked(len(m.ALPN) > 0, false, 0)
	},
	func(m *listener.Match, i *network.ConnInfo) int {
		return longest(m.DirectSource, i.DirectRemote().IP.Addr())
	},
	func(m *listener.Match, i *network.ConnInfo) int {
		a := i.Remote.IP.Addr()
		local := a.IsLoopback() || a == i.Local.IP.Addr()
		return asked(m.SourceType != 0, local == (m.SourceType == 1), 0)
	},
	func(m *listener.Match, i *network.ConnInfo) int { return longest(m.Source, i.Remote.IP.Addr()) },
	func(m *listener.Match, i *network.ConnInfo) int {
		return asked(len(m.SourcePorts) > 0, slices.Contains(m.SourcePorts, i.Remote.IP.Port()), 0)
	},
}

func BenchmarkFind(b *testing.B) {
	for _, n := range []int{1, 10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var list []*listener.Chain
			for i := range n {
				list = append(list, &listener.Chain{Match: listener.Match{ServerNames: []string{fmt.Sprintf("host%d.example.com", i)}, Transport: "tls"}})
			}
			set, err := listener.NewChains(list, nil)
			if err != nil {
				b.Fatal(err)
			}
			i := client{local: "10.0.0.1:443", remote: "192.0.2.7:5000", name: fmt.Sprintf("host%d.example.com", n/2), transport: "tls"}.info()
			b.ReportAllocs()
			for b.Loop() {
				if set.Find(i) == nil {
					b.Fatal("none")
				}
			}
		})
	}
}
