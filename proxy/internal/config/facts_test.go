package config_test

import (
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/testing/protocmp"
)

// What Envoy 1.40 reads in each of these JSON bootstraps, as prototext, or, behind "!", words of why it refuses.
var facts = []struct{ in, want string }{
	// Duplicates: the last scalar wins, messages merge, both spellings are one field.
	{`"node":{"id":"a","id":"b"}`, `node{id:"b"}`},
	{`"node":{"id":"a"},"node":{"cluster":"b"}`, `node{id:"a" cluster:"b"}`},
	{`"node":{"userAgentName":"b","user_agent_name":"c"}`, `node{user_agent_name:"c"}`},
	// Lenient syntax.
	{`'node':{id:"a",}`, `node{id:"a"}`},
	{`"flags_path":"a\u0041\ud83d\ude00"`, `flags_path:"aA😀"`},
	{"\"flags_path\":\"a\tb\"", `flags_path:"a\tb"`},
	// Strings are strings.
	{`"node":{"id":5}`, `!node.id: expected '"'`},
	{`"node":{"id":true}`, `!node.id: expected '"'`},
	{`"node":{"id":null}`, `node{}`},
	{`"node":null`, ``},
	{`"node":[]`, `!expected '{'`},
	{`"node":""`, `!expected '{'`},
	{`"node":[{"id":"x"}]`, `!expected '{'`},
	{`"node":{"ID":"x"}`, `!no such field: 'ID'`},
	{`"1":1`, `!no such field: '1'`},
	// Durations.
	{`"stats_flush_interval":"1.5s"`, `stats_flush_interval{seconds:1 nanos:500000000}`},
	{`"stats_flush_interval":"1.123456789s"`, `stats_flush_interval{seconds:1 nanos:123456789}`},
	{`"stats_flush_interval":{"seconds":5}`, `stats_flush_interval{seconds:5}`},
	{`"stats_flush_interval":"-1.5s"`, `stats_flush_interval{seconds:-1 nanos:-500000000}`},
	{`"stats_flush_interval":"1.1234567891s"`, `!duration had bad nanoseconds`},
	{`"stats_flush_interval":"1.s"`, `!duration had bad nanoseconds`},
	{`"stats_flush_interval":"1s "`, `!duration must end with a single 's'`},
	{`"stats_flush_interval":"1e3s"`, `!duration must end with a single 's'`},
	{`"stats_flush_interval":"5"`, `!duration must end with a single 's'`},
	{`"stats_flush_interval":"1ms"`, `!duration must end with a single 's'`},
	{`"stats_flush_interval":" 1s"`, `!duration must start with an integer`},
	{`"stats_flush_interval":"+1s"`, `!duration must start with an integer`},
	{`"stats_flush_interval":".5s"`, `!duration must start with an integer`},
	{`"stats_flush_interval":""`, `!duration must start with an integer`},
	{`"stats_flush_interval":5`, `!expected '"'`},
	{`"stats_flush_interval":"315576000001s"`, `!duration out of range`},
	{`"stats_flush_interval":"315576000000s"`, `stats_flush_interval{seconds:315576000000}`},
	// Booleans.
	{`"enable_dispatcher_stats":"true"`, `enable_dispatcher_stats:true`},
	{`"enable_dispatcher_stats":1`, `!expected 'true' or 'false'`},
	{`"enable_dispatcher_stats":"yes"`, `enable_dispatcher_stats:true`},
	{`"enable_dispatcher_stats":"True"`, `enable_dispatcher_stats:true`},
	{`"enable_dispatcher_stats":"1"`, `enable_dispatcher_stats:true`},
	{`"enable_dispatcher_stats":"N"`, ``},
	{`"enable_dispatcher_stats":"on"`, `!expected 'true' or 'false'`},
	// Integers and wrappers.
	{`"stats_server_version_override":"123"`, `stats_server_version_override{value:123}`},
	{`"stats_server_version_override":123.0`, `stats_server_version_override{value:123}`},
	{`"stats_server_version_override":1e3`, `stats_server_version_override{value:1000}`},
	{`"stats_server_version_override":"1e3"`, `stats_server_version_override{value:1000}`},
	{`"stats_server_version_override":"1.0"`, `stats_server_version_override{value:1}`},
	{`"stats_server_version_override":"0x10"`, `stats_server_version_override{value:16}`},
	{`"stats_server_version_override":{"value":5}`, `stats_server_version_override{value:5}`},
	{`"stats_server_version_override":{}`, `stats_server_version_override{}`},
	{`"stats_server_version_override":0`, `stats_server_version_override{}`},
	{`"stats_server_version_override":null`, ``},
	{`"stats_server_version_override":18446744073709551615`, `stats_server_version_override{value:18446744073709551615}`},
	{`"stats_server_version_override":18446744073709551616`, `!out of range`},
	{`"stats_server_version_override":-1`, `!out of range`},
	{`"stats_server_version_override":1.5`, `!expected integer, but JSON number had fractional part`},
	{`"stats_server_version_override":" 1"`, `!invalid number: ' 1'`},
	{`"stats_server_version_override":""`, `!invalid number: ''`},
	{`"stats_server_version_override":"4x"`, `!invalid number: '4x'`},
	{`"stats_server_version_override":[4]`, `!expected number or string`},
	{`"stats_server_version_override":{"bogus":1}`, `!no such field: 'bogus'`},
	{`"stats_server_version_override":01`, `!number cannot have extraneous leading zero`},
	{`"static_resources":{"clusters":[{"per_connection_buffer_limit_bytes":4294967296}]}`, `!integer out of range`},
	{`"static_resources":{"clusters":[{"per_connection_buffer_limit_bytes":4294967295}]}`, `static_resources{clusters{per_connection_buffer_limit_bytes{value:4294967295}}}`},
	// Numbers with a fraction.
	{`"static_resources":{"clusters":[{"common_lb_config":{"healthy_panic_threshold":{"value":"50.5"}}}]}`, `static_resources{clusters{common_lb_config{healthy_panic_threshold{value:50.5}}}}`},
	{`"static_resources":{"clusters":[{"common_lb_config":{"healthy_panic_threshold":{"value":"inf"}}}]}`, `static_resources{clusters{common_lb_config{healthy_panic_threshold{value:inf}}}}`},
	{`"static_resources":{"clusters":[{"common_lb_config":{"healthy_panic_threshold":{"value":"-Infinity"}}}]}`, `static_resources{clusters{common_lb_config{healthy_panic_threshold{value:-inf}}}}`},
	{`"static_resources":{"clusters":[{"common_lb_config":{"healthy_panic_threshold":{"value":"1e400"}}}]}`, `static_resources{clusters{common_lb_config{healthy_panic_threshold{value:inf}}}}`},
	{`"static_resources":{"clusters":[{"common_lb_config":{"healthy_panic_threshold":{"value":"abc"}}}]}`, `!invalid number: 'abc'`},
	{`"static_resources":{"clusters":[{"common_lb_config":{"healthy_panic_threshold":{"value":".inf"}}}]}`, `!invalid number: '.inf'`},
	{`"node":{"metadata":{"a":1e400}}`, `!invalid number: '1e400'`},
	// Lists: one value stands for a list of one, nested lists are flattened, null is a default element.
	{`"inline_headers":{"inline_header_name":"x"}`, `inline_headers{inline_header_name:"x"}`},
	{`"inline_headers":[null]`, `inline_headers{}`},
	{`"inline_headers":null`, ``},
	{`"node":{"client_features":["a",null]}`, `node{client_features:"a" client_features:""}`},
	{`"node":{"client_features":"a"}`, `node{client_features:"a"}`},
	{`"node":{"client_features":[["a"]]}`, `node{client_features:"a"}`},
	{`"static_resources":{"clusters":[{"health_checks":[[{"timeout":"1s"}]]}]}`, `static_resources{clusters{health_checks{timeout{seconds:1}}}}`},
	{`"static_resources":{"clusters":[{"alt_stat_name":["a"]}]}`, `!expected '"'`},
	// Enums.
	{`"inline_headers":[{"inline_header_type":"RESPONSE_HEADER"}]`, `inline_headers{inline_header_type:RESPONSE_HEADER}`},
	{`"inline_headers":[{"inline_header_type":"response_header"}]`, `inline_headers{inline_header_type:RESPONSE_HEADER}`},
	{`"inline_headers":[{"inline_header_type":2}]`, `inline_headers{inline_header_type:RESPONSE_HEADER}`},
	{`"inline_headers":[{"inline_header_type":"2"}]`, `inline_headers{inline_header_type:RESPONSE_HEADER}`},
	{`"inline_headers":[{"inline_header_type":2.0}]`, `inline_headers{inline_header_type:RESPONSE_HEADER}`},
	{`"inline_headers":[{"inline_header_type":99}]`, `inline_headers{inline_header_type:99}`},
	{`"inline_headers":[{"inline_header_type":null}]`, `inline_headers{}`},
	{`"inline_headers":[{"inline_header_type":true}]`, `!expected number or string`},
	{`"static_resources":{"clusters":[{"lb_policy":""}]}`, `!unknown enum value: ''`},
	{`"static_resources":{"clusters":[{"lb_policy":"ring-hash"}]}`, `!unknown enum value: 'ring-hash'`},
	{`"static_resources":{"clusters":[{"lb_policy":"RingHash"}]}`, `!did you mean 'RING_HASH'?`},
	{`"static_resources":{"clusters":[{"lb_policy":1.5}]}`, `!fractional part`},
	// Oneofs.
	{`"static_resources":{"clusters":[{"type":"STATIC","cluster_type":{"name":"x"}}]}`, `!'cluster_type' has already been set (either directly or as part of a oneof)`},
	{`"static_resources":{"clusters":[{"type":"STATIC","type":"EDS"}]}`, `!'type' has already been set`},
	{`"static_resources":{"clusters":[{"health_checks":[{"tcp_health_check":{"send":{"text":null,"binary":"aGl="}}}]}]}`, `static_resources{clusters{health_checks{tcp_health_check{send{binary:"hi"}}}}}`},
	// Bytes.
	{`"static_resources":{"clusters":[{"health_checks":[{"tcp_health_check":{"send":{"binary":"aGk"}}}]}]}`, `static_resources{clusters{health_checks{tcp_health_check{send{binary:"hi"}}}}}`},
	{`"static_resources":{"clusters":[{"health_checks":[{"tcp_health_check":{"send":{"binary":"-_8="}}}]}]}`, `static_resources{clusters{health_checks{tcp_health_check{send{binary:"\373\377"}}}}}`},
	{`"static_resources":{"clusters":[{"health_checks":[{"tcp_health_check":{"send":{"binary":"a%k"}}}]}]}`, `!corrupt base64`},
	{`"static_resources":{"clusters":[{"health_checks":[{"tcp_health_check":{"send":{"binary":"aGk= "}}}]}]}`, `!corrupt base64`},
	// Structs.
	{`"node":{"metadata":{"a":1.5,"b":12345678901,"c":"x","d":null,"e":[1,null],"f":{}}}`,
		`node{metadata{fields{key:"a" value{number_value:1.5}} fields{key:"b" value{number_value:12345678901}} fields{key:"c" value{string_value:"x"}} fields{key:"d" value{null_value:NULL_VALUE}} fields{key:"e" value{list_value{values{number_value:1} values{null_value:NULL_VALUE}}}} fields{key:"f" value{struct_value{}}}}}`},
	{`"static_resources":{"clusters":[{"metadata":{"filter_metadata":{"a":null}}}]}`, `static_resources{clusters{metadata{filter_metadata{key:"a" value{}}}}}`},
	{`"static_resources":{"clusters":[{"metadata":{"filter_metadata":{"a":5}}}]}`, `!static_resources.clusters[0].metadata.filter_metadata["a"]: expected '{'`},
	// Any.
	{`"static_resources":{"clusters":[{"typed_extension_protocol_options":{"a":null}}]}`, `static_resources{clusters{typed_extension_protocol_options{key:"a" value{}}}}`},
	{`"static_resources":{"clusters":[{"typed_extension_protocol_options":{"a":{}}}]}`, `static_resources{clusters{typed_extension_protocol_options{key:"a" value{}}}}`},
	{`"static_resources":{"clusters":[{"typed_extension_protocol_options":[]}]}`, `!expected '{'`},
	{`"bootstrap_extensions":[{"typed_config":{"x":1}}]`, `!missing @type in Any is only allowed for an empty object`},
	{`"bootstrap_extensions":[{"typed_config":{"@type":5}}]`, `!expected '"'`},
	{`"bootstrap_extensions":[{"typed_config":{"@type":""}}]`, `!@type must contain at least one / and a nonempty host; got: `},
	{`"bootstrap_extensions":[{"typed_config":{"@type":"google.protobuf.Duration"}}]`, `!did you mean 'type.googleapis.com/google.protobuf.Duration'?`},
	{`"bootstrap_extensions":[{"typed_config":{"@type":"type.googleapis.com/nope.X"}}]`, `!bootstrap_extensions[0].typed_config: could not find @type 'type.googleapis.com/nope.X'`},
	{`"bootstrap_extensions":[{"typed_config":{"@type":"x.com/google.protobuf.Duration","value":"5s"}}]`, `bootstrap_extensions{typed_config{[x.com/google.protobuf.Duration]{seconds:5}}}`},
	{`"bootstrap_extensions":[{"typed_config":{"value":"5","@type":"type.googleapis.com/google.protobuf.UInt32Value"}}]`, `bootstrap_extensions{typed_config{[type.googleapis.com/google.protobuf.UInt32Value]{value:5}}}`},
	{`"bootstrap_extensions":[{"typed_config":{"@type":"type.googleapis.com/google.protobuf.Struct"}}]`, `bootstrap_extensions{typed_config{[type.googleapis.com/google.protobuf.Struct]{}}}`},
	{`"bootstrap_extensions":[{"typed_config":{"@type":"type.googleapis.com/google.protobuf.Struct","a":1}}]`, `!fields in a well-known-typed Any must be @type or value`},
	{`"bootstrap_extensions":[{"typed_config":{"@type":"type.googleapis.com/google.protobuf.Any","value":{"@type":"type.googleapis.com/google.protobuf.Struct"}}}]`, `bootstrap_extensions{typed_config{[type.googleapis.com/google.protobuf.Any]{[type.googleapis.com/google.protobuf.Struct]{}}}}`},
	{`"bootstrap_extensions":[{"typed_config":{"@type":"type.googleapis.com/envoy.config.core.v3.Node","id":"x","bogus":1}}]`, `!bootstrap_extensions[0].typed_config.bogus: no such field: 'bogus': message envoy.config.core.v3.Node has unknown fields`},
	{`"bootstrap_extensions":[{"typed_config":{"@type":"a/envoy.config.core.v3.Node","@type":"a/envoy.config.core.v3.Node"}}]`, `!repeated @type in Any`},
	{`"bootstrap_extensions":[{"typed_config":{"@type":"type.googleapis.com/xds.type.v3.TypedStruct","type_url":"x/y.Z","value":{"a":1}}}]`, `bootstrap_extensions{typed_config{[type.googleapis.com/xds.type.v3.TypedStruct]{type_url:"x/y.Z" value{fields{key:"a" value{number_value:1}}}}}}`},
}

func TestEnvoyFacts(t *testing.T) {
	for _, c := range facts {
		var got, want bootstrapv3.Bootstrap
		_, err := config.Parse("b.json", []byte("{"+c.in+"}"), &got, config.Options{SkipValidation: true})
		if phrase, bad := strings.CutPrefix(c.want, "!"); bad {
			if err == nil || !strings.Contains(err.Error(), phrase) {
				t.Errorf("%s: %v, want %q", c.in, err, phrase)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if err := prototext.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatalf("%s: %v", c.want, err)
		}
		if diff := cmp.Diff(&want, &got, protocmp.Transform()); diff != "" {
			t.Errorf("%s: %s", c.in, diff)
		}
	}
}

// YAML keeps numbers that are not 32-bit integers as strings when it does not know the field.
func TestYAMLNumbersInStructs(t *testing.T) {
	var got, want bootstrapv3.Bootstrap
	in := "node: {metadata: {a: 1.5e3, b: 12345678901, c: -0x10, d: 2147483647, e: 0.5}}\n" +
		"static_resources: {clusters: [{common_lb_config: {healthy_panic_threshold: {value: .5}}, per_connection_buffer_limit_bytes: 0x10}]}"
	if _, err := config.Parse("b.yaml", []byte(in), &got, config.Options{SkipValidation: true}); err != nil {
		t.Fatal(err)
	}
	if err := prototext.Unmarshal([]byte(`node{metadata{fields{key:"a" value{string_value:"1.5e3"}} fields{key:"b" value{string_value:"12345678901"}} fields{key:"c" value{number_value:-16}} fields{key:"d" value{number_value:2147483647}} fields{key:"e" value{string_value:"0.5"}}}}
		static_resources{clusters{common_lb_config{healthy_panic_threshold{value:0.5}} per_connection_buffer_limit_bytes{value:16}}}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, &got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}
