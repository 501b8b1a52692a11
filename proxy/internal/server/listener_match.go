package server

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/listener"
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
)

// chainMatch compiles a filter chain match. Errors are Envoy's, without the part that names the listener. Where a matcher chooses, what is
// wrong with a match is not told, since nobody looks at it before the matcher goes.
func chainMatch(p *listenerv3.FilterChainMatch, chain string, matcher bool) (listener.Match, error) {
	m := listener.Match{
		DestinationPort: uint16(p.GetDestinationPort().GetValue()), Transport: p.GetTransportProtocol(), ALPN: p.GetApplicationProtocols(),
		SourceType: uint8(p.GetSourceType()),
	}
	var errs config.Errors
	unimplemented := p.GetAddressSuffix() != "" || p.GetSuffixLen() != nil
	if unimplemented {
		errs.Collect("", &config.Error{Path: "filter_chain_match", Msg: "filter chain '" + chain + "' contains unimplemented fields"})
	}
	for i, n := range p.GetServerNames() {
		n = strings.ToLower(n)
		if strings.Contains(n, "*") && !strings.HasPrefix(n, "*.") {
			errs.Collect("", &config.Error{Path: fmt.Sprintf("filter_chain_match.server_names[%d]", i), Found: "'" + p.ServerNames[i] + "'",
				Kind: config.Invalid,
				Msg:  `partial wildcards are not supported in "server_names"`})
		}
		m.ServerNames = append(m.ServerNames, n)
	}
	for _, x := range p.GetSourcePorts() {
		m.SourcePorts = append(m.SourcePorts, uint16(x))
	}
	for _, l := range []struct {
		field string
		from  []*corev3.CidrRange
		to    *[]netip.Prefix
	}{
		{"prefix_ranges", p.GetPrefixRanges(), &m.Destination},
		{"direct_source_prefix_ranges", p.GetDirectSourcePrefixRanges(), &m.DirectSource},
		{"source_prefix_ranges", p.GetSourcePrefixRanges(), &m.Source},
	} {
		for i, c := range l.from {
			pre, err := prefix(c)
			errs.Collect(fmt.Sprintf("filter_chain_match.%s[%d]", l.field, i), err)
			*l.to = append(*l.to, pre)
		}
	}
	if matcher && !unimplemented {
		return m, nil
	}
	return m, errs.Err()
}

// matchedChains compiles the matcher that chooses among the chains by their names. The default chain has none.
func (b *listenerBuild) matchedChains(list []*listener.Chain, def *listener.Chain) (*listener.Chains, error) {
	byName := make(map[string]*listener.Chain, len(list))
	for i, fc := range b.p.GetFilterChains() {
		byName[fc.GetName()] = list[i]
	}
	tree, err := match.New(b.p.GetFilterChainMatcher(), match.Options[*listener.Chain]{Connection: true, KeepMatching: true,
		Action: func(name string, a *anypb.Any) (*listener.Chain, error) {
			m, _, err := config.Unpack(a, nil)
			if err != nil {
				return nil, err
			}
			to, ok := m.(*wrapperspb.StringValue)
			if !ok {
				return nil, config.Unregistered(name, a)
			}
			ch, there := byName[to.GetValue()]
			if !there {
				b.s.logger("config").Warn("listener '" + b.p.GetName() + "': its filter_chain_matcher leads to a filter chain named '" + to.GetValue() +
					"' that does not exist: such connections are closed")
			}
			return ch, nil
		}})
	if err != nil {
		return nil, prefixed("cannot create a filter chain matcher: ", err)
	}
	return listener.NewMatchedChains(list, def, tree, b.s.runtime), nil
}

func prefix(c *corev3.CidrRange) (netip.Prefix, error) {
	a, err := netip.ParseAddr(c.GetAddressPrefix())
	if err != nil {
		return netip.Prefix{}, config.BadRange(c.GetAddressPrefix())
	}
	a = a.Unmap().WithZone("")
	return a.Prefix(min(int(c.GetPrefixLen().GetValue()), a.BitLen()))
}

// uniqueMatches refuses two chains that say the same, in Envoy's words. Chains that overlap in another way are found when the set is
// built.
func uniqueMatches(p *listenerv3.Listener) error {
	var errs config.Errors
	seen := map[string]string{}
	for i, fc := range p.GetFilterChains() {
		m := fc.GetFilterChainMatch()
		if p.GetFilterChainMatcher() != nil { // it chooses by the names
			if _, twice := seen[fc.GetName()]; fc.GetName() == "" {
				errs.Collect(fmt.Sprintf("filter_chains[%d]", i), errors.New(`"name" field is required when using a listener matcher`))
			} else if twice {
				errs.Collect(fmt.Sprintf("filter_chains[%d].name", i), fmt.Errorf(`"name" field is duplicated with value '%s'`, fc.GetName()))
			}
			seen[fc.GetName()] = ""
			continue
		}
		raw, err := deterministic.Marshal(m)
		if err != nil {
			return err
		}
		first, twice := seen[string(raw)]
		if !twice {
			seen[string(raw)] = fc.GetName()
			continue
		}
		errs.Collect(fmt.Sprintf("filter_chains[%d]", i), fmt.Errorf(
			"filter chain '%s' has the same matching rules defined as '%s'. duplicate matcher is: %s", fc.GetName(), first, compactJSON(m)))
	}
	return errs.Err()
}

// compactJSON prints a small message as Envoy does in its errors: field names as in the proto, no blanks.
func compactJSON(m *listenerv3.FilterChainMatch) string {
	if m == nil {
		return "{}"
	}
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return "{}"
	}
	var b strings.Builder
	quoted := false
	for i, c := range raw { // protojson puts blanks in at random, so that nobody relies on its bytes
		if c == '"' && (i == 0 || raw[i-1] != '\\') {
			quoted = !quoted
		}
		if c != ' ' || quoted {
			b.WriteByte(c)
		}
	}
	return b.String()
}
