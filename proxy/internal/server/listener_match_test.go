package server

import (
	"fmt"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
)

const (
	stringValue = `"@type": "type.googleapis.com/google.protobuf.StringValue"`
	inputs      = "type.googleapis.com/envoy.extensions.matching.common_inputs.network.v3."
)

// bySource is a filter_chain_matcher: pairs of the client's address and the chain's name, and more fields.
func bySource(fields string, pairs ...string) string {
	var list []string
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, fmt.Sprintf("%q: %s", pairs[i], toChain(pairs[i+1])))
	}
	return fmt.Sprintf(`"filter_chain_matcher": {"matcher_tree": {"input": {"name": "i", "typed_config": {"@type": "%sSourceIPInput"}}, "exact_match_map": {"map": {%s}}} %s},`,
		inputs, strings.Join(list, ", "), fields)
}

func toChain(name string) string {
	return fmt.Sprintf(`{"action": {"name": "a", "typed_config": {%s, "value": %q}}}`, stringValue, name)
}

// A matcher chooses chains by their names, and what the chains say themselves does not count. The default chain has no name there.
func TestFilterChainMatcher(t *testing.T) {
	r := newListenerRig(t, "")
	withDefault := func(p *listenerv3.Listener) *listenerv3.Listener {
		p.DefaultFilterChain = listenerConfig(t, "l", "127.0.0.1:0", "", "default").FilterChains[0]
		p.DefaultFilterChain.Name = "d"
		return p
	}
	pairs := []string{"127.0.0.2", "c0", "127.0.0.3", "c1", "127.0.0.4", "nobody", "127.0.0.5", "d"}
	for i, tc := range []struct {
		name string
		p    *listenerv3.Listener
		want [5]string // of 127.0.0.2 and those after it
	}{
		{"without a default", listenerConfig(t, "l", "127.0.0.1:0", bySource("", pairs...), "zero", "one"), [5]string{"zero", "one"}},
		{"with one", withDefault(listenerConfig(t, "l", "127.0.0.1:0", bySource("", pairs...), "zero", "one")), [5]string{"zero", "one", "", "", "default"}},
		{"on_no_match", withDefault(listenerConfig(t, "l", "127.0.0.1:0", bySource(`, "on_no_match": `+toChain("c1"), pairs...), "zero", "one")),
			[5]string{"zero", "one", "", "", "one"}},
		{"nothing", withDefault(listenerConfig(t, "l", "127.0.0.1:0", `"filter_chain_matcher": {},`, "zero")), [5]string{"default", "default", "default", "default", "default"}},
		{"no chain but the default one", withDefault(listenerConfig(t, "l", "127.0.0.1:0", bySource("", pairs...))), [5]string{"", "", "", "", "default"}},
		{"keep_matching", withDefault(listenerConfig(t, "l", "127.0.0.1:0",
			strings.Replace(bySource("", pairs...), `{"action"`, `{"keep_matching": true, "action"`, 1), "zero", "one")), [5]string{"default", "one", "", "", "default"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name := fmt.Sprint("l", i)
			tc.p.Name = name
			tc.p.StatPrefix = name
			r.must(tc.p)
			none := 0
			for i, want := range tc.want {
				body, _ := r.dial(r.at(name, 0), fmt.Sprintf("127.0.0.%d", 2+i)).get()
				if body != want {
					t.Errorf("127.0.0.%d: %q, want %q", 2+i, body, want)
				}
				if want == "" {
					none++
				}
			}
			if got, want := r.get("/stats?filter=^listener."+name+".no_filter_chain_match").text, fmt.Sprintf("listener.%s.no_filter_chain_match: %d\n", name, none); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// Another matcher is an update in place: chains and their connections stay.
func TestFilterChainMatcherUpdate(t *testing.T) {
	r := newListenerRig(t, "")
	r.must(listenerConfig(t, "l", "127.0.0.1:0", bySource("", "127.0.0.2", "c0", "127.0.0.3", "c1"), "zero", "one"))
	addr, sockets := r.at("l", 0), r.sockets("l")
	old := r.dial(addr, "127.0.0.2")
	old.want("zero", false)
	r.must(listenerConfig(t, "l", "127.0.0.1:0", bySource("", "127.0.0.2", "c1"), "zero", "one"))
	if got := r.sockets("l"); len(got) != len(sockets) || got[0] != sockets[0] {
		t.Error("the sockets did not stay")
	}
	old.want("zero", false)
	r.dial(addr, "127.0.0.2").want("one", false)
	r.dial(addr, "127.0.0.3").want("", true)
	// Back to what the chains match themselves.
	r.must(listenerConfig(t, "l", "127.0.0.1:0", "", "zero", "one"))
	r.dial(addr, "127.0.0.3").want("zero", false)
	old.want("zero", false)
	r.wantStats(map[string]string{"listener_added": "1", "listener_create_success": "6", "listener_modified": "2", "listener_in_place_updated": "2",
		"total_listeners_active": "1"})
}

func TestFilterChainMatcherRefused(t *testing.T) {
	r := newListenerRig(t, "")
	with := func(fields string, change func(p *listenerv3.Listener)) *listenerv3.Listener {
		p := listenerConfig(t, "l", "127.0.0.1:0", fields, "x", "y")
		change(p)
		return p
	}
	same := func(*listenerv3.Listener) {}
	good := bySource("", "127.0.0.2", "c0")
	for want, p := range map[string]*listenerv3.Listener{
		`error adding listener '127.0.0.1:0': "name" field is required when using a listener matcher`: with(good, func(p *listenerv3.Listener) { p.FilterChains[1].Name = "" }),
		`error adding listener '127.0.0.1:0': "name" field is duplicated with value 'c0'`:             with(good, func(p *listenerv3.Listener) { p.FilterChains[1].Name = "c0" }),
		"error adding listener '127.0.0.1:0': filter chain 'c0' contains unimplemented fields": with(good, func(p *listenerv3.Listener) {
			p.FilterChains[0].FilterChainMatch = &listenerv3.FilterChainMatch{AddressSuffix: "1.2.3.4"}
		}),
		"error adding listener '127.0.0.1:0': no filter chains specified": with(good, func(p *listenerv3.Listener) { p.FilterChains = nil }),
		"filter_chain_matcher.matcher_tree.input: cannot create a filter chain matcher: Didn't find a registered implementation for 'i' with type URL: '" + inputs[len("type.googleapis.com/"):] + "DynamicMetadataInput'": with(
			strings.Replace(good, "SourceIPInput", "DynamicMetadataInput", 1), same),
		"cannot create a filter chain matcher: Didn't find a registered implementation for 'a' with type URL: 'google.protobuf.BoolValue'": with(
			strings.Replace(strings.Replace(good, "StringValue", "BoolValue", 1), `"c0"`, "true", 1), same),
	} {
		if err := r.update(p); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// What a chain matches is not looked at where a matcher chooses.
	r.must(with(good, func(p *listenerv3.Listener) {
		p.FilterChains[0].FilterChainMatch = &listenerv3.FilterChainMatch{ServerNames: []string{"a*b"}}
		p.FilterChains[1].FilterChainMatch = p.FilterChains[0].FilterChainMatch
	}))
}
