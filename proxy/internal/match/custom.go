package match

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	corexdsv3 "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	hashv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/input_matchers/consistent_hashing/v3"
	ipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/input_matchers/ip/v3"
	metadatav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/input_matchers/metadata/v3"
	runtimev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/input_matchers/runtime_fraction/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// custom compiles a matcher of one input that is an extension, and says what kind of input it takes.
func custom(x *corexdsv3.TypedExtensionConfig) (func(d *Data, v Value) bool, kind, error) {
	m, err := unpack(x)
	if err != nil {
		return nil, 0, err
	}
	switch p := m.(type) {
	case *ipv3.Ip:
		nets, err := Prefixes(p.GetCidrRanges())
		return func(_ *Data, v Value) bool {
			a, ok := v.addr()
			return ok && slices.ContainsFunc(nets, func(n netip.Prefix) bool { return n.Contains(a) })
		}, texts, below("cidr_ranges", err)
	case *metadatav3.Metadata:
		f, err := NewValue(p.GetValue())
		return func(_ *Data, v Value) bool { return f(v.Plain, v.Has) != p.Invert }, plains, err
	case *hashv3.ConsistentHashing:
		if p.Threshold > p.Modulo {
			return nil, 0, errors.New("threshold cannot be greater than modulo")
		}
		return func(_ *Data, v Value) bool {
			return v.Has && hashed(v, p.Seed)%uint64(p.Modulo) >= uint64(p.Threshold)
		}, texts, nil
	case *runtimev3.RuntimeFraction:
		num, den := Fraction(p.GetRuntimeFraction().GetDefaultValue())
		key := p.GetRuntimeFraction().GetRuntimeKey()
		return func(d *Data, v Value) bool {
			if !v.Has {
				return false
			}
			n, of := num, den
			if key != "" && d.Runtime != nil {
				n, of = d.Runtime.Fraction(key, n, of)
			}
			return hashed(v, p.Seed)%of < n
		}, texts, nil
	}
	return nil, 0, config.Unregistered(x.GetName(), x.GetTypedConfig())
}

// Fraction is a fractional percentage in plain numbers.
func Fraction(p *typev3.FractionalPercent) (numerator, denominator uint64) {
	denominator = 100
	switch p.GetDenominator() {
	case typev3.FractionalPercent_TEN_THOUSAND:
		denominator = 10_000
	case typev3.FractionalPercent_MILLION:
		denominator = 1_000_000
	}
	return uint64(p.GetNumerator()), denominator
}

func hashed(v Value, seed uint64) uint64 {
	d := xxhash.NewWithSeed(seed)
	_, _ = d.WriteString(v.String())
	return d.Sum64()
}

// addr is a value as an address.
func (v Value) addr() (netip.Addr, bool) {
	if !v.Has || v.Addr.IsValid() {
		return v.Addr, v.Has
	}
	a, err := netip.ParseAddr(v.Text)
	return a.Unmap(), err == nil
}

// cidr is what the messages for ranges of addresses have.
type cidr interface {
	GetAddressPrefix() string
	GetPrefixLen() *wrapperspb.UInt32Value
}

// prefixOf reads a range of addresses. Bits behind the prefix do not matter.
func prefixOf(c cidr) (netip.Prefix, error) {
	a, err := netip.ParseAddr(c.GetAddressPrefix())
	if err != nil {
		return netip.Prefix{}, config.BadRange(c.GetAddressPrefix())
	}
	return netip.PrefixFrom(a, min(int(c.GetPrefixLen().GetValue()), a.BitLen())).Masked(), nil
}

// Prefixes reads ranges of addresses.
func Prefixes[C cidr](list []C) (out []netip.Prefix, err error) {
	for i, c := range list {
		p, err := prefixOf(c)
		if err != nil {
			return nil, below(fmt.Sprintf("[%d]", i), err)
		}
		out = append(out, p)
	}
	return out, nil
}

// customMap compiles a tree's matcher that is an extension.
func (c *compiler[A]) customMap(n *mapNode[A], x *corexdsv3.TypedExtensionConfig) error {
	m, err := unpack(x)
	if err != nil {
		return err
	}
	switch p := m.(type) {
	case *xdsmatcherv3.IPMatcher:
		return c.ranges(n, p)
	case *xdsmatcherv3.ServerNameMatcher:
		return c.serverNames(n, p)
	}
	return config.Unregistered(x.GetName(), x.GetTypedConfig())
}

// ipRange is one range of an IPMatcher.
type ipRange[A any] struct {
	net       netip.Prefix
	exclusive bool
	on        *onMatch[A]
}

// ranges compiles an IPMatcher: the longest prefix first, those of one length in their order. A range that leads nowhere leaves the word
// to the next one that is not exclusive.
func (c *compiler[A]) ranges(n *mapNode[A], m *xdsmatcherv3.IPMatcher) error {
	var all []ipRange[A]
	for i, r := range m.GetRangeMatchers() {
		at := fmt.Sprintf("range_matchers[%d]", i)
		on, err := c.onMatch(r.GetOnMatch())
		if err != nil {
			return below(at+".on_match", err)
		}
		n.all = append(n.all, &on)
		for j, x := range r.GetRanges() {
			p, err := prefixOf(x)
			if err != nil {
				return below(fmt.Sprintf("%s.ranges[%d]", at, j), err)
			}
			all = append(all, ipRange[A]{p, r.Exclusive, &on})
		}
	}
	slices.SortStableFunc(all, func(a, b ipRange[A]) int { return b.net.Bits() - a.net.Bits() })
	n.find = func(d *Data, v Value) (a A, o Outcome) {
		ip, ok := v.addr()
		if !ok {
			return a, NoMatch
		}
		first := true
		for i := range all {
			r := &all[i]
			if !r.net.Contains(ip) || !first && r.exclusive {
				continue
			}
			first = false
			if a, o = r.on.resolve(d); o != NoMatch {
				return a, o
			}
		}
		return a, NoMatch
	}
	return nil
}

// serverNames compiles a ServerNameMatcher: the whole name, then "*." with the longest end, then "*". What leads nowhere leaves the
// word to the next. Case matters: server names come in lower case.
func (c *compiler[A]) serverNames(n *mapNode[A], m *xdsmatcherv3.ServerNameMatcher) error {
	exact, wild := map[string]*onMatch[A]{}, map[string]*onMatch[A]{}
	var star *onMatch[A]
	for i, dm := range m.GetDomainMatchers() {
		at := fmt.Sprintf("domain_matchers[%d]", i)
		on, err := c.onMatch(dm.GetOnMatch())
		if err != nil {
			return below(at+".on_match", err)
		}
		n.all = append(n.all, &on)
		for _, name := range dm.GetDomains() {
			into, key := exact, name
			switch {
			case key == "*" && star == nil:
				star = &on
				continue
			case strings.HasPrefix(key, "*.") && len(key) > 2:
				into, key = wild, key[1:]
			}
			if strings.Contains(key, "*") || into[key] != nil {
				return below(at, fmt.Errorf("domain %s is there twice or has a wildcard that is not its first label", name))
			}
			into[key] = &on
		}
	}
	n.find = func(d *Data, v Value) (a A, o Outcome) {
		name := v.String()
		if on := exact[name]; on != nil {
			if a, o = on.resolve(d); o != NoMatch {
				return a, o
			}
		}
		for at := strings.IndexByte(name, '.'); at >= 0; {
			if on := wild[name[at:]]; on != nil {
				if a, o = on.resolve(d); o != NoMatch {
					return a, o
				}
			}
			next := strings.IndexByte(name[at+1:], '.')
			if next < 0 {
				break
			}
			at += 1 + next
		}
		if star != nil {
			return star.resolve(d)
		}
		return a, NoMatch
	}
	return nil
}

func sortedKeys[V proto.Message](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
