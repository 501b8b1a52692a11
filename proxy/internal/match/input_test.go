package match_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
)

func address(s string) network.Address { return network.AddrFrom(netip.MustParseAddrPort(s)) }

type named map[string]any

func (n named) Field(name string) (any, bool) { v, ok := n[name]; return v, ok }

func peer(t *testing.T) *x509.Certificate {
	t.Helper()
	raw, err := asn1.Marshal(pkix.Name{CommonName: "me", Organization: []string{"us"}}.ToRDNSequence())
	if err != nil {
		t.Fatal(err)
	}
	uri, err := url.Parse("spiffe://td/sa")
	if err != nil {
		t.Fatal(err)
	}
	return &x509.Certificate{RawSubject: raw, DNSNames: []string{"a.test", "b.test"}, URIs: []*url.URL{uri}}
}

// full is a request of which everything is known.
func full(t *testing.T) *match.Data {
	conn := &network.ConnInfo{Local: address("10.0.0.1:443"), Remote: address("10.0.0.2:1234"), TLS: &network.TLSInfo{Peer: []*x509.Certificate{peer(t)}}}
	conn.Direct = &[2]network.Address{address("10.0.0.1:15001"), address("192.0.2.9:9")}
	h := conn.SetHello()
	h.ServerName, h.Transport, h.ALPN = "sni.test", "tls", []string{"h2", "http/1.1"}
	conn.FilterState().Set("c", "of the connection")
	info := &stream.Info{Conn: conn, Remote: address("203.0.113.5:55")}
	info.FilterState().Set("s", "of the stream")
	info.FilterState().Set("f", named{"name": "value", "n": int64(7)})
	info.Metadata().Set("ns", "a", map[string]any{"b": "deep"})
	return &match.Data{Request: headers("GET /p?q=a%20b&r=%zz&q=2 h", "x: 1"), RequestTrailers: headers("- - -", "t: 2"), Response: response("404", "y: 3"),
		ResponseTrailers: headers("- - -", "u: 4"), Info: info, LocalReply: true}
}

func TestInputs(t *testing.T) {
	t.Setenv("MATCH_TEST_INPUT", "yes")
	const net, http, ssl = "envoy.extensions.matching.common_inputs.network.v3.", "envoy.type.matcher.v3.", "envoy.extensions.matching.common_inputs.ssl.v3."
	without := &match.Data{Request: headers("GET / h"), Info: &stream.Info{Conn: &network.ConnInfo{}}}
	for in, want := range map[string][2]string{ // with everything, with a request only
		input(http+"HttpRequestHeaderMatchInput", "header_name: X"):                                                {"1", "-"},
		input(http+"HttpRequestTrailerMatchInput", "header_name: t"):                                               {"2", "?"},
		input(http+"HttpResponseHeaderMatchInput", "header_name: 'y'"):                                             {"3", "?"},
		input(http+"HttpResponseTrailerMatchInput", "header_name: u"):                                              {"4", "?"},
		input(http+"HttpRequestQueryParamMatchInput", "query_param: q"):                                            {"a b", "-"},
		input(http+"HttpRequestQueryParamMatchInput", "query_param: r"):                                            {"%zz", "-"},
		input(http+"HttpResponseStatusCodeMatchInput", ""):                                                         {"404", "?"},
		input(http+"HttpResponseStatusCodeClassMatchInput", ""):                                                    {"4xx", "?"},
		input(http+"HttpResponseLocalReplyMatchInput", ""):                                                         {"true", "?"},
		input(net+"DestinationIPInput", ""):                                                                        {"10.0.0.1", "-"},
		input(net+"DestinationPortInput", ""):                                                                      {"443", "-"},
		input(net+"SourceIPInput", ""):                                                                             {"203.0.113.5", "-"},
		input(net+"SourcePortInput", ""):                                                                           {"55", "-"},
		input(net+"DirectSourceIPInput", ""):                                                                       {"192.0.2.9", "-"},
		input(net+"SourceTypeInput", ""):                                                                           {"-", "-"},
		input(net+"ServerNameInput", ""):                                                                           {"sni.test", "-"},
		input(net+"NetworkNamespaceInput", ""):                                                                     {"-", "-"},
		input(net+"FilterStateInput", "key: s"):                                                                    {"of the stream", "-"},
		input(net+"FilterStateInput", "key: c"):                                                                    {"of the connection", "-"},
		input(net+"FilterStateInput", "key: f, field: name"):                                                       {"value", "-"},
		input(net+"FilterStateInput", "key: f, field: 'n'"):                                                        {"7", "-"},
		input(net+"FilterStateInput", "key: f, field: none"):                                                       {"-", "-"},
		input(ssl+"UriSanInput", ""):                                                                               {"spiffe://td/sa", "-"},
		input(ssl+"DnsSanInput", ""):                                                                               {"a.test,b.test", "-"},
		input(ssl+"SubjectInput", ""):                                                                              {"CN=me,O=us", "-"},
		input("envoy.extensions.matching.common_inputs.environment_variable.v3.Config", "name: MATCH_TEST_INPUT"):  {"-", "-"},
		input("envoy.extensions.matching.common_inputs.environment_variable.v3.Config", "name: MATCH_TEST_NO_INP"): {"-", "-"},
	} {
		for i, d := range []*match.Data{full(t), without} {
			yaml := "{matcher_tree: {" + in + ", exact_match_map: {map: {'" + want[i] + "': " + to("found") + "}}}}"
			if want[i] == "-" || want[i] == "?" {
				yaml = "{matcher_list: {matchers: [{predicate: {single_predicate: {" + in + ", value_match: {safe_regex: {regex: '.*'}}}}, on_match: " + to("any") + "}]}}"
			}
			got := ask(tree(t, yaml), d)
			if got == "found" {
				got = want[i]
			}
			if got != want[i] {
				t.Errorf("%s: %s, want %s", in, got, want[i])
			}
		}
	}
}

// Trees for connections have inputs of their own, and none of requests.
func TestConnectionInputs(t *testing.T) {
	const net = "envoy.extensions.matching.common_inputs.network.v3."
	o := match.Options[string]{Connection: true}
	conn := full(t).Info.Conn
	for in, want := range map[string]string{net + "TransportProtocolInput": "tls", net + "ApplicationProtocolInput": "''h2'',''http/1.1''", net + "SourceIPInput": "10.0.0.2"} {
		x, err := compile(t, "{matcher_tree: {"+input(in, "")+", exact_match_map: {map: {'"+want+"': "+to("found")+"}}}}", o)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := ask(x, &match.Data{Conn: conn}); got != "found" {
			t.Errorf("%s: %s", in, got)
		}
	}
	for _, in := range []string{header("a"), input(net+"DynamicMetadataInput", "filter: f, path: [{key: k}]")} {
		if _, err := compile(t, "{matcher_tree: {"+in+", exact_match_map: {map: {}}}}", o); err == nil ||
			!strings.Contains(err.Error(), "Didn't find a registered implementation") {
			t.Errorf("%s: %v", in, err)
		}
	}
	plain, err := compile(t, "{matcher_tree: {"+input(net+"TransportProtocolInput", "")+", exact_match_map: {map: {raw_buffer: "+to("plain")+"}}}}", o)
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(plain, &match.Data{Conn: &network.ConnInfo{}}); got != "plain" {
		t.Errorf("a connection of which nothing is known: %s", got)
	}
	x, err := compile(t, "{matcher_tree: {"+input(net+"SourceTypeInput", "")+", exact_match_map: {map: {local: "+to("local")+"}}}, on_no_match: "+to("remote")+"}", o)
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string][]network.ConnInfo{
		"local":  {{Local: address("10.0.0.1:1"), Remote: address("10.0.0.1:2")}, {Local: address("10.0.0.1:1"), Remote: address("127.0.0.1:2")}, {Remote: network.Address{Path: "/x"}}},
		"remote": {{Local: address("10.0.0.1:1"), Remote: address("10.0.0.2:2")}},
	} {
		for i := range c {
			if got := ask(x, &match.Data{Conn: &c[i]}); got != want {
				t.Errorf("%v: %s", c[i].Remote, got)
			}
		}
	}
}

type fractions map[string][2]uint64

func (f fractions) Fraction(key string, n, d uint64) (uint64, uint64) {
	if v, ok := f[key]; ok {
		return v[0], v[1]
	}
	return n, d
}

// What each value hashes to was compared with Envoy 1.40.
func TestCustomMatchers(t *testing.T) {
	const in = "envoy.extensions.matching.input_matchers."
	custom := func(input, message, fields string) *match.Tree[string] {
		return tree(t, "{matcher_list: {matchers: [{predicate: {single_predicate: {"+input+", custom_match: {name: c, typed_config: {"+typeURL+in+message+", "+fields+"}}}}, on_match: "+to("hit")+"}]}}")
	}
	fraction := custom(header("x"), "runtime_fraction.v3.RuntimeFraction", "runtime_fraction: {runtime_key: k, default_value: {numerator: 50}}, seed: 7")
	hash := custom(header("x"), "consistent_hashing.v3.ConsistentHashing", "threshold: 3, modulo: 10, seed: 7")
	ip := custom(header("x"), "ip.v3.Ip", "cidr_ranges: [{address_prefix: 127.0.0.0, prefix_len: 8}], stat_prefix: s")
	for value, want := range map[string][3]string{
		"a": {"-", "hit", "-"}, "b": {"hit", "hit", "-"}, "c": {"hit", "-", "-"}, "d": {"-", "-", "-"}, "e": {"hit", "hit", "-"}, "127.9.9.9": {"", "", "hit"}, "128.0.0.1": {"", "", "-"},
	} {
		d := &match.Data{Request: headers("GET / h", "x: "+value)}
		got := [3]string{ask(fraction, d), ask(hash, d), ask(ip, d)}
		for i := range got {
			if want[i] != "" && got[i] != want[i] {
				t.Errorf("%s: %q, want %q", value, got, want)
			}
		}
	}
	for i, x := range []*match.Tree[string]{fraction, hash, ip} {
		if got := ask(x, &match.Data{Request: headers("GET / h")}); got != "-" {
			t.Errorf("%d: without a value: %s", i, got)
		}
	}
	for n, want := range map[uint64]string{0: "-", 100: "hit"} {
		if got := ask(fraction, &match.Data{Request: headers("GET / h", "x: a"), Runtime: fractions{"k": {n, 100}}}); got != want {
			t.Errorf("%d%%: %s", n, got)
		}
	}
	meta := input("envoy.extensions.matching.common_inputs.network.v3.DynamicMetadataInput", "filter: ns, path: [{key: a}, {key: b}]")
	for fields, want := range map[string][2]string{"value: {string_match: {prefix: de}}": {"hit", "-"}, "value: {string_match: {exact: x}}, invert: true": {"hit", "hit"},
		"value: {present_match: true}": {"hit", "-"}} {
		x := custom(meta, "metadata.v3.Metadata", fields)
		if got := [2]string{ask(x, full(t)), ask(x, &match.Data{Request: headers("GET / h")})}; got != want {
			t.Errorf("%s: %q", fields, got)
		}
	}
}

func FuzzQueryParam(f *testing.F) {
	for _, s := range []string{"/?a=b", "/?a=%20%2", "/?&&=&a", "/a", "/?%61=1", "?%", "/?a=b?a=c"} {
		f.Add(s, "a")
	}
	f.Fuzz(func(t *testing.T, path, name string) {
		v, ok := match.QueryParam(path, name)
		if !ok && v != "" || len(v) > len(path) {
			t.Errorf("%q of %q: %q, %v", name, path, v, ok)
		}
	})
}
