package route_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/network"
	aroute "github.com/dragoman-proxy/dragoman/api/route"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/route"
)

// limited is a route with these rate_limits.
func limited(t *testing.T, limits string) *route.Entry {
	t.Helper()
	e := table(t, routes("{match: {prefix: /}, metadata: {filter_metadata: {ns: {a: of the route}}}, route: {cluster: up, rate_limits: ["+limits+"]}}")).
		Match(&route.Request{Headers: headers("GET / a")})
	if e == nil {
		t.Fatal("no route")
	}
	return e
}

// static gives a route's metadata as the metadata of its stream.
type static struct{ e *route.Entry }

func (s static) StaticMetadata(kind stream.MetadataKind, namespace string) map[string]any {
	if kind != stream.RouteMetadata {
		return nil
	}
	return s.e.Metadata(namespace)
}

func describe(t *testing.T, e *route.Entry, from string, line string, lines ...string) (aroute.Descriptor, bool) {
	t.Helper()
	h := headers(line, lines...)
	i := info(h)
	i.Conn = &network.ConnInfo{Remote: network.AddrFrom(netip.MustParseAddrPort(from))}
	i.Metadata().Set("ns", "limit", map[string]any{"requests_per_unit": 42.0, "unit": "HOUR"})
	i.Metadata().Set("ns", "a", "dynamic")
	i.Static = static{e}
	var d aroute.Descriptor
	ok := e.RateLimits()[0].Describe(&d, &aroute.RateLimitRequest{Headers: h, Info: i, Route: e, LocalCluster: "me", Dispatcher: worker(t)})
	return d, ok
}

func TestDescriptors(t *testing.T) {
	const key = "metadata_key: {key: ns, path: [{key: a}]}"
	for actions, want := range map[string][]aroute.DescriptorEntry{
		"{source_cluster: {}}":                                     {{Key: "source_cluster", Value: "me"}},
		"{destination_cluster: {}}":                                {{Key: "destination_cluster", Value: ""}},
		"{request_headers: {header_name: X-A, descriptor_key: k}}": {{Key: "k", Value: "1,2"}},
		"{request_headers: {header_name: X-B, descriptor_key: k}}": nil,
		"{request_headers: {header_name: X-B, descriptor_key: k, skip_if_absent: true}}, {generic_key: {descriptor_value: v}}": {{Key: "generic_key", Value: "v"}},
		"{request_headers: {header_name: X-B, descriptor_key: k, skip_if_absent: true}}":                                       nil,
		"{query_parameters: {query_parameter_name: q, descriptor_key: k}}":                                                     {{Key: "k", Value: "a b"}},
		"{query_parameters: {query_parameter_name: r, descriptor_key: k}}":                                                     nil,
		"{remote_address: {}}":                                               {{Key: "remote_address", Value: "10.1.2.3"}},
		"{masked_remote_address: {}}":                                        {{Key: "masked_remote_address", Value: "10.1.2.3/32"}},
		"{masked_remote_address: {v4_prefix_mask_len: 16}}":                  {{Key: "masked_remote_address", Value: "10.1.0.0/16"}},
		"{generic_key: {descriptor_value: '%PROTOCOL%', descriptor_key: k}}": {{Key: "k", Value: "%PROTOCOL%"}},
		"{header_value_match: {descriptor_value: v, headers: [{name: x-a, string_match: {exact: '1'}}]}}":                                                                        {{Key: "header_match", Value: "v"}},
		"{header_value_match: {descriptor_value: v, headers: [{name: x-b}]}}":                                                                                                    nil,
		"{header_value_match: {descriptor_value: v, expect_match: false, headers: [{name: x-b}], descriptor_key: k}}":                                                            {{Key: "k", Value: "v"}},
		"{query_parameter_value_match: {descriptor_value: v, query_parameters: [{name: q}]}}":                                                                                    {{Key: "query_match", Value: "v"}},
		"{query_parameter_value_match: {descriptor_value: v, query_parameters: [{name: r}]}}":                                                                                    nil,
		"{query_parameter_value_match: {descriptor_value: v, expect_match: false, query_parameters: [{name: r}]}}":                                                               {{Key: "query_match", Value: "v"}},
		"{remote_address_match: {descriptor_value: '%REQ(x-c)%', address_matcher: {ranges: [{address_prefix: 10.0.0.0, prefix_len: 8}]}}}":                                       {{Key: "remote_address_match", Value: "c"}},
		"{remote_address_match: {descriptor_value: '%REQ(x-b)%', default_value: d, address_matcher: {ranges: [{address_prefix: 11.0.0.0, prefix_len: 8}], invert_match: true}}}": {{Key: "remote_address_match", Value: "d"}},
		"{remote_address_match: {descriptor_value: '%REQ(x-b)%', address_matcher: {ranges: [{address_prefix: 10.0.0.0, prefix_len: 8}]}}}":                                       nil,
		"{remote_address_match: {descriptor_value: x, address_matcher: {ranges: [{address_prefix: 11.0.0.0, prefix_len: 8}]}}}":                                                  nil,
		"{dynamic_metadata: {descriptor_key: k, " + key + "}}":                                                                                                                   {{Key: "k", Value: "dynamic"}},
		"{metadata: {descriptor_key: k, " + key + "}}":                                                                                                                           {{Key: "k", Value: "dynamic"}},
		"{metadata: {descriptor_key: k, source: ROUTE_ENTRY, " + key + "}}":                                                                                                      {{Key: "k", Value: "of the route"}},
		"{metadata: {descriptor_key: k, source: CLUSTER_ENTRY, default_value: d, " + key + "}}":                                                                                  {{Key: "k", Value: "d"}},
		"{metadata: {descriptor_key: k, source: CLUSTER_ENTRY, " + key + "}}":                                                                                                    nil,
		"{metadata: {descriptor_key: k, skip_if_absent: true, source: CLUSTER_ENTRY, " + key + "}}, {source_cluster: {}}":                                                        {{Key: "source_cluster", Value: "me"}},
	} {
		d, ok := describe(t, limited(t, "{actions: ["+actions+"]}"), "10.1.2.3:4", "GET /?q=a%20b a", "x-a: 1", "x-a: 2", "x-c: c")
		if ok != (want != nil) {
			t.Errorf("%s: %v", actions, ok)
		} else if diff := cmp.Diff(want, d.Entries); ok && diff != "" {
			t.Errorf("%s: %s", actions, diff)
		}
	}
	d, ok := describe(t, limited(t, "{actions: [{masked_remote_address: {v6_prefix_mask_len: 64}}]}"), "[2001:db8::1]:4", "GET / a")
	if diff := cmp.Diff([]aroute.DescriptorEntry{{Key: "masked_remote_address", Value: "2001:db8::/64"}}, d.Entries); !ok || diff != "" {
		t.Error(diff)
	}
}

func TestRateLimitOptions(t *testing.T) {
	const one = "actions: [{source_cluster: {}}], "
	off, v3 := aroute.NoRateLimitHeaders, aroute.DraftVersion03
	entries := []aroute.DescriptorEntry{{Key: "source_cluster", Value: "me"}}
	for fields, want := range map[string]aroute.Descriptor{
		"": {},
		"limit: {dynamic_metadata: {metadata_key: {key: ns, path: [{key: limit}]}}}": {Override: &aroute.Limit{Requests: 42, Unit: aroute.Hour}},
		"limit: {dynamic_metadata: {metadata_key: {key: ns, path: [{key: a}]}}}":     {},
		"limit: {rate_limit: {requests_per_unit: 5, unit: DAY}}":                     {Override: &aroute.Limit{Requests: 5, Unit: aroute.Day}},
		"hits_addend: {number: 3}":                                    {Hits: 3, HasHits: true},
		"hits_addend: {format: '%REQ(x-n)%', is_negative_hits: true}": {Hits: 7, HasHits: true, Refill: true},
		"x_ratelimit_option: 'OFF'":                                   {Headers: &off},
		"x_ratelimit_option: DRAFT_VERSION_03":                        {Headers: &v3},
	} {
		d, ok := describe(t, limited(t, "{"+one+fields+"}"), "10.1.2.3:4", "GET / a", "x-n: 7")
		want.Entries = entries
		if diff := cmp.Diff(want, d); !ok || diff != "" {
			t.Errorf("%s: %v %s", fields, ok, diff)
		}
	}
	if _, ok := describe(t, limited(t, "{"+one+"hits_addend: {format: '%REQ(x-n)%'}}"), "10.1.2.3:4", "GET / a", "x-n: many"); ok {
		t.Error("hits that are no number count")
	}
	l := limited(t, "{stage: 3, disable_key: k, apply_on_stream_done: true, "+one+"}").RateLimits()[0]
	if l.Stage() != 3 || l.DisableKey() != "k" || !l.OnStreamDone() {
		t.Errorf("stage %d, key %s, at the end %v", l.Stage(), l.DisableKey(), l.OnStreamDone())
	}
	x := table(t, "{virtual_hosts: [{name: v, domains: ['*'], rate_limits: [{"+one+"stage: 1}], routes: ["+
		"{match: {prefix: /a}, route: {cluster: up, include_vh_rate_limits: true}}, {match: {prefix: /}, route: {cluster: up}}]}]}")
	for path, want := range map[string]bool{"/a": true, "/b": false} {
		e := x.Match(&route.Request{Headers: headers("GET " + path + " a")})
		if len(e.RateLimits()) != 0 || len(e.HostRateLimits()) != 1 || e.IncludeHostRateLimits() != want {
			t.Errorf("%s: %v, %v, %v", path, e.RateLimits(), e.HostRateLimits(), e.IncludeHostRateLimits())
		}
	}
}

func TestRefusedRateLimits(t *testing.T) {
	for _, bad := range []string{"{actions: [{}]}", "{actions: [{extension: {name: x}}]}", "{actions: [{header_value_match: {headers: [{name: a, string_match: {safe_regex: {regex: '('}}}]}}]}",
		"{actions: [{source_cluster: {}}], hits_addend: {number: 1, format: '%PROTOCOL%'}}", "{actions: [{source_cluster: {}}], hits_addend: {format: '%NO%'}}",
		"{actions: [{remote_address_match: {address_matcher: {ranges: [{address_prefix: x}]}}}]}", "{actions: [{metadata: {source: CLUSTER_LOCALITY_ENTRY}}]}",
		"{actions: [{remote_address_match: {descriptor_value: '%NO%'}}]}", "{actions: [{query_parameter_value_match: {query_parameters: [{string_match: {safe_regex: {regex: '('}}}]}}]}"} {
		for _, yaml := range []string{routes("{match: {prefix: /}, route: {cluster: up, rate_limits: [" + bad + "]}}"),
			"{virtual_hosts: [{name: v, domains: ['*'], rate_limits: [" + bad + "], routes: []}]}"} {
			if _, err := compile(t, yaml); err == nil {
				t.Errorf("%s is accepted", yaml)
			}
		}
	}
}
