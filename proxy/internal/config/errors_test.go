package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/anypb"
)

const listener = `
static_resources:
  listeners:
  - name: main
    filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
`

func TestWhatErrorsSay(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"field rules through an Any", listener + `
          http2_protocol_options: {initial_stream_window_size: 10}
          route_config: {virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 99}}, {match: {prefix: /}, request_headers_to_add: [{header: {key: "a b\n"}}], redirect: {}}]}]}`,
			[]string{
				":9:11: static_resources.listeners[0].filter_chains[0].filters[0].typed_config.stat_prefix: Proto constraint validation failed (HttpConnectionManagerValidationError.StatPrefix: value length must be at least 1 characters)",
				":11:64: static_resources.listeners[0].filter_chains[0].filters[0].typed_config.http2_protocol_options.initial_stream_window_size: Proto constraint validation failed (Http2ProtocolOptionsValidationError.InitialStreamWindowSize: value must be inside range [65535, 2147483647]); found 10",
				"typed_config.route_config.virtual_hosts[0].routes[0].direct_response.status: Proto constraint validation failed (DirectResponseActionValidationError.Status: value must be inside range [200, 600)); found 99",
				`routes[1].request_headers_to_add[0].header.key: Proto constraint validation failed (HeaderValueValidationError.Key: `,
				`found 'a b\n'`,
			}},
		{"a oneof that is missing", listener + "          stat_prefix: x\n", []string{
			"typed_config.route_specifier: Proto constraint validation failed (field: \"route_specifier\", reason: is required); allowed: one of rds, route_config, scoped_routes"}},
		{"field rules in a TypedStruct", `
static_resources:
  listeners:
  - filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/udpa.type.v1.TypedStruct
          type_url: envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          value: {stat_prefix: x, route_config: {}, bogus: 1}
`, []string{":10:53: static_resources.listeners[0].filter_chains[0].filters[0].typed_config.value.bogus: no such field: 'bogus'"}},
		{"map keys in paths", `static_resources: {clusters: [{name: a, typed_extension_protocol_options: {a.b: {"@type": type.googleapis.com/envoy.config.core.v3.Node, id: []}}}]}`,
			[]string{`1:142: static_resources.clusters[0].typed_extension_protocol_options["a.b"].id: expected '"', a string; found a list`}},
		{"a bool where a string is wanted", "node: {id: n}", []string{`1:12: node.id: expected '"', a string; found a boolean n; allowed: the same in quotes`}},
		{"a wrong enum", "static_resources: {clusters: [{name: a, lb_policy: RINGHASH}]}", []string{"unknown enum value: 'RINGHASH'", "enum envoy.config.cluster.v3.Cluster.LbPolicy", "allowed: ROUND_ROBIN, LEAST_REQUEST", "did you mean 'RING_HASH'?"}},
		{"not supported yet", `bootstrap_extensions: [{name: x, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm}}]`,
			[]string{"bootstrap_extensions[0].typed_config: could not find @type 'type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm': not supported yet, an extension of Envoy"}},
		{"a type of the v2 API", `bootstrap_extensions: [{name: x, typed_config: {"@type": type.googleapis.com/envoy.config.filter.network.http_connection_manager.v2.HttpConnectionManager}}]`,
			[]string{"the v2 API is not supported", "did you mean 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'?"}},
		{"a misspelt type", `bootstrap_extensions: [{name: x, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Ruoter}}]`,
			[]string{"could not find @type", "did you mean 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router'?"}},
		{"all at once", "node: {idd: a}\nadmin: {adress: {}}\nstatic_resources: {clusters: [{name: a, connect_timeout: 5}]}", []string{
			"node.idd: no such field: 'idd'", "did you mean 'id'?", "did you mean 'address'?", "clusters[0].connect_timeout: expected '\"'"}},
		{"bounds of a rule", "admin: {address: {socket_address: {address: a, port_value: -1}}}", []string{"integer out of range; found -1; allowed: an integer from 0 to 65535"}},
		{"bounds of a type", "static_resources: {listeners: [{tcp_backlog_size: -1}]}", []string{"allowed: an integer from 0 to 4294967295"}},
		{"bounds of a rule with a fraction", "static_resources: {clusters: [{name: a, common_lb_config: {healthy_panic_threshold: {value: x}}}]}", []string{"invalid number: 'x'; allowed: a number from 0 to 100"}},
		{"a duration without a unit", "static_resources: {clusters: [{name: a, connect_timeout: 5}]}", []string{`found 5; allowed: a duration greater than 0s, in seconds with the unit, such as "1.5s"; did you mean '5s'?`}},
		{"a duration of another unit", "static_resources: {clusters: [{name: a, connect_timeout: 5ms}]}", []string{`found '5ms'; allowed: `, "did you mean '0.005s'?"}},
		{"a duration that may be zero", "stats_flush_interval: 1h\ndrain: 1\nwatchdog: {miss_timeout: 1m}", []string{`found '1m'; allowed: a duration of at least 0s, in seconds`, "did you mean '60s'?"}},
		{"a field of a message around", "static_resources: {listeners: [{name: a}, {clusters: [{name: c}]}]}", []string{
			"static_resources.listeners[1].clusters: no such field: 'clusters': message envoy.config.listener.v3.Listener has unknown fields; static_resources has that field: is the indent wrong?"}},
		{"a field of the root", "static_resources: {admin: {}}", []string{"static_resources.admin: no such field: 'admin'", "; the top of the file has that field: is the indent wrong?"}},
		{"a field of the message below", listener + "          stat_prefix: x\n        route_config: {}", []string{
			"filters[0].route_config: no such field: 'route_config': message envoy.config.listener.v3.Filter has unknown fields; static_resources.listeners[0].filter_chains[0].filters[0].typed_config has that field"}},
		{"a slip comes before another place", listener + "          stat_prefix: x\n          route_config: {virtual_hosts: [{name: v, domains: [a], routes: [{match: {prefix: /}, route: {clusters: x}}]}]}", []string{
			"no such field: 'clusters': message envoy.config.route.v3.RouteAction has unknown fields; did you mean 'cluster'?"}},
		{"a merge key", "node: {<<: {id: a}}", []string{"no such field: '<<': YAML's merge keys are not read, as in Envoy; allowed: the fields themselves"}},
		{"a list for the root", "[a]", []string{"1:1: expected '{', a map of the fields of envoy.config.bootstrap.v3.Bootstrap; found a list"}},
		{"an empty file", "", []string{"Unable to convert YAML as JSON"}},
		{"broken YAML", "a: {b: [}", []string{"1:9: invalid YAML"}},
	} {
		_, _, err := config.Load(write(t, "envoy.yaml", []byte(c.in)), config.Options{})
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: no\n\t%s\nin\n\t%v", c.name, w, err)
			}
		}
	}
}

func TestUnknownFieldsMayBeAllowed(t *testing.T) {
	var notes []string
	opts := config.Options{AllowUnknownFields: true, OnUnknownField: func(e *config.Error) { notes = append(notes, fmt.Sprintf("%d:%d %s", e.Line, e.Col, e.Path)) }}
	b, _, err := config.Load(write(t, "b.yaml", []byte("bogus: 1\nnode: {id: a, more: {x: y}}\nstatic_resources: {clusters: [{name: a, lb_policy: NOPE}]}")), opts)
	if err != nil {
		t.Fatal(err)
	}
	if b.Node.Id != "a" || b.StaticResources.Clusters[0].LbPolicy != 0 {
		t.Error(b)
	}
	if diff := cmp.Diff([]string{"1:1 bogus", "2:15 node.more", "3:52 static_resources.clusters[0].lb_policy"}, notes); diff != "" {
		t.Error(diff)
	}
}

func TestDeprecatedFieldsAreTold(t *testing.T) {
	var notes []string
	opts := config.Options{OnDeprecated: func(e *config.Error, said string) { notes = append(notes, e.Error(), said) }}
	path := write(t, "b.yaml", []byte("static_resources: {clusters: [{name: a, connect_timeout: 1s, track_timeout_budgets: true}]}"))
	if _, _, err := config.Load(path, opts); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{path + ":1:62: static_resources.clusters[0].track_timeout_budgets: 'track_timeout_budgets' is deprecated: set timeout_budgets in track_cluster_stats",
		"Deprecated field: type envoy.config.cluster.v3.Cluster Using deprecated option 'envoy.config.cluster.v3.Cluster.track_timeout_budgets' from file cluster.proto. This configuration will be removed from Envoy soon."}, notes); diff != "" {
		t.Error(diff)
	}
}

// Each row is about a deprecated field, and a field that it names alone is one of the same message.
func TestReplacements(t *testing.T) {
	for name, now := range config.Replacements {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			if _, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name).Parent()); err == nil {
				t.Errorf("%s: %v", name, err)
			}
			continue // of a message that is not linked in
		}
		if o, ok := d.Options().(*descriptorpb.FieldOptions); !ok || !o.GetDeprecated() || now == "" {
			t.Errorf("%s: %q", name, now)
		}
		field, ok := strings.CutPrefix(now, "set ")
		if field, _, _ = strings.Cut(field, " "); ok && now == "set "+field {
			if parent := d.Parent().(protoreflect.MessageDescriptor); parent.Fields().ByName(protoreflect.Name(field)) == nil {
				t.Errorf("%s: there is no %s", name, field)
			}
		}
	}
}

func TestErrorsAreBounded(t *testing.T) {
	for _, n := range []int{5, 6} {
		_, _, err := config.Load(write(t, "b.json", []byte("{"+strings.Repeat(`"bogus": 1, `, n)+"}")), config.Options{MaxErrors: 5})
		var errs *config.Errors
		if !errors.As(err, &errs) || len(errs.List) != 5 || errs.More != n-5 || errs.Len() != n {
			t.Errorf("%d: %v", n, err)
		}
		var one *config.Error
		if !errors.As(err, &one) || one.Path != "bogus" {
			t.Errorf("%d: %v", n, one)
		}
	}
}

// A mistake in each of ten thousand clusters must not cost a walk through the file for each.
func TestManyMistakesAreCheap(t *testing.T) {
	data := strings.ReplaceAll(string(scaled(10000)), `"type": "STATIC"`, `"track_timeout_budgets": true, "bogus": 1, "lb_policy": "NOPE", "dns_refresh_rate": "0s"`)
	notes := 0
	tell := func(*config.Error) { notes++ }
	for _, opts := range []config.Options{{}, {AllowUnknownFields: true, OnUnknownField: tell, OnDeprecated: func(x *config.Error, _ string) { tell(x) }}} {
		var b bootstrapv3.Bootstrap
		var errs *config.Errors
		if _, err := config.Parse("b.json", []byte(data), &b, opts); !errors.As(err, &errs) || errs.Len() < 10000 {
			t.Errorf("%v", errs.Len())
		}
	}
	if notes != 40000 {
		t.Errorf("%d notes", notes)
	}
}

func TestForms(t *testing.T) {
	want := &bootstrapv3.Bootstrap{}
	text := "node { id: \"a\" cluster: \"b\" } static_resources { clusters { name: \"c\" } listeners { name: \"l\" filter_chains { filters { name: \"h\" typed_config { [type.googleapis.com/envoy.config.core.v3.Node] { id: \"x\" } } } } } }"
	if err := prototext.Unmarshal([]byte(text), want); err != nil {
		t.Fatal(err)
	}
	binary, err := proto.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	yaml := "node: {id: a, cluster: b}\nstatic_resources: {clusters: [{name: c}], listeners: [{name: l, filter_chains: [{filters: [{name: h, typed_config: {\"@type\": type.googleapis.com/envoy.config.core.v3.Node, id: x}}]}]}]}"
	json := config.NewPrinter(nil).Append(nil, want, 0)
	for name, data := range map[string]string{"b.yaml": yaml, "b.YML": yaml, "b.pb": string(binary), "b.pb_text": text, "b.json": string(json), "b": string(json)} {
		got, _, err := config.Load(write(t, name, []byte(data)), config.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for name, words := range map[string]string{
		"b.pb":      `Unable to parse file "%s" as a binary protobuf (type envoy.config.bootstrap.v3.Bootstrap)`,
		"b.pb_text": `Unable to parse file "%s" as a text protobuf (type envoy.config.bootstrap.v3.Bootstrap)`,
	} {
		path := write(t, name, []byte("\xff{"))
		if _, _, err := config.Load(path, config.Options{}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf(words, path)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := config.Load("/nope.yaml", config.Options{}); err == nil || err.Error() != "Invalid path: /nope.yaml" {
		t.Error(err)
	}
	if _, _, err := config.Load("", config.Options{}); err == nil || !strings.Contains(err.Error(), "At least one of --config-path or --config-yaml") {
		t.Error(err)
	}
	if _, _, err := config.Load(t.TempDir(), config.Options{}); err == nil || !strings.Contains(err.Error(), "unable to read file: ") {
		t.Error(err)
	}
}

func TestBinaryIsCheckedToo(t *testing.T) {
	hcm, err := proto.Marshal(&listenerv3.Filter{Name: "x", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: &anypb.Any{
		TypeUrl: "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"}}})
	if err != nil {
		t.Fatal(err)
	}
	f := &listenerv3.Filter{}
	if err := proto.Unmarshal(hcm, f); err != nil {
		t.Fatal(err)
	}
	b := &bootstrapv3.Bootstrap{StaticResources: &bootstrapv3.Bootstrap_StaticResources{
		Clusters:  []*clusterv3.Cluster{{}},
		Listeners: []*listenerv3.Listener{{FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{f}}}}},
	}}
	data, err := proto.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = config.Load(write(t, "b.pb", data), config.Options{})
	for _, w := range []string{"static_resources.clusters[0].name: Proto constraint", "static_resources.listeners[0].filter_chains[0].filters[0].typed_config.stat_prefix: Proto constraint"} {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("no %q in %v", w, err)
		}
	}
	unknown := append(data, 0xfa, 0x7f, 1, 'x') // field 2047
	if _, _, err := config.Load(write(t, "b.pb", unknown), config.Options{SkipValidation: true}); err == nil || !strings.Contains(err.Error(), "has unknown fields") {
		t.Error(err)
	}
	if _, _, err := config.Load(write(t, "b.pb", unknown), config.Options{SkipValidation: true, AllowUnknownFields: true}); err != nil {
		t.Error(err)
	}
}

func TestConfigYAMLIsMerged(t *testing.T) {
	path := write(t, "b.json", []byte(`{"node": {"id": "a", "cluster": "b"}, "static_resources": {"clusters": [{"name": "one"}]}}`))
	b, pos, err := config.Load(path, config.Options{ConfigYAML: "node: {id: over}\nstatic_resources:\n  clusters:\n  - name: two"})
	if err != nil {
		t.Fatal(err)
	}
	if b.Node.Id != "over" || b.Node.Cluster != "b" || len(b.StaticResources.Clusters) != 2 || b.StaticResources.Clusters[1].Name != "two" {
		t.Error(b)
	}
	for path, want := range map[string]string{
		"node.id":                           "--config-yaml:1:12",
		"node.cluster":                      "b.json:1:33",
		"static_resources.clusters[0].name": "b.json:1:82",
		"static_resources.clusters[1].name": "--config-yaml:4:11",
		"static_resources.clusters[1].type": "--config-yaml:4:5",
	} {
		if p, _ := pos.Lookup(path); !strings.HasSuffix(p.String(), want) {
			t.Errorf("%s is at %v, want %s", path, p, want)
		}
	}
	_, _, err = config.Load(path, config.Options{ConfigYAML: "nod: {}"})
	if err == nil || !strings.HasPrefix(err.Error(), "--config-yaml:1:1: nod: no such field: 'nod'") {
		t.Error(err)
	}
	_, _, err = config.Load(path, config.Options{ConfigYAML: "static_resources: {clusters: [{name: ''}]}"})
	if err == nil || !strings.HasPrefix(err.Error(), "--config-yaml:1:38: static_resources.clusters[1].name: Proto constraint") {
		t.Error(err)
	}
}

func TestPositions(t *testing.T) {
	in := "staticResources:\n  clusters:\n  - name: a\n    typed_extension_protocol_options:\n      x.y:\n        \"@type\": type.googleapis.com/envoy.config.core.v3.Node\n        id: q\n    health_checks: {timeout: 1s}\n"
	var b bootstrapv3.Bootstrap
	pos, err := config.Parse("b.yaml", []byte(in), &b, config.Options{SkipValidation: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, want string
		ok         bool
	}{
		{"static_resources.clusters[0].name", "b.yaml:3:11", true},
		{`static_resources.clusters[0].typed_extension_protocol_options["x.y"].id`, "b.yaml:7:13", true},
		{"static_resources.clusters[0].health_checks[0].timeout", "b.yaml:8:30", true},
		{"static_resources.clusters[0].nope.more", "b.yaml:3:5", false},
		{"static_resources.clusters[1]", "b.yaml:3:3", false},
		{"admin", "b.yaml:1:1", false},
		{"", "b.yaml:1:1", true},
	} {
		if p, ok := pos.Lookup(c.path); p.String() != c.want || ok != c.ok {
			t.Errorf("%s: %v %v, want %s %v", c.path, p, ok, c.want, c.ok)
		}
	}
	x := pos.Error("static_resources.clusters[0].name", config.Error{Msg: "duplicate cluster 'a'", Found: "'a'"})
	if got := x.Error(); got != "b.yaml:3:11: static_resources.clusters[0].name: duplicate cluster 'a'" {
		t.Error(got)
	}
	cause := fmt.Errorf("cluster: %w", &config.Error{Path: "clusters[0].name", Msg: "m"})
	if got := pos.Attach("static_resources", cause).Error(); got != "b.yaml:3:11: static_resources.clusters[0].name: m; found 'a'" {
		t.Error(got)
	}
	if got := pos.Attach("static_resources.clusters", &config.Errors{List: []*config.Error{{Path: "[0].name", Msg: "m"}}, More: 1}).Error(); got != "b.yaml:3:11: static_resources.clusters[0].name: m; found 'a'\nand 1 more errors" {
		t.Error(got)
	}
	if got := pos.Attach("static_resources", errors.New("m")).Error(); got != "b.yaml:2:3: static_resources: m" {
		t.Error(got)
	}
	var none *config.Positions
	if got := none.Error("a.b", config.Error{Msg: "m"}).Error(); got != "a.b: m" {
		t.Error(got)
	}
}

func TestRegistry(t *testing.T) {
	r, err := config.NewRegistry("envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", "type.googleapis.com/envoy.config.core.v3.Locality")
	if err != nil {
		t.Fatal(err)
	}
	opts := config.Options{Resolver: r}
	hcm := listener + "          stat_prefix: x\n          route_config: {}\n"
	if _, _, err := config.Load(write(t, "b.yaml", []byte(hcm)), opts); err != nil {
		t.Error(err)
	}
	// Linked in, but not given: another extension of Envoy, not a typing mistake.
	router := hcm + "          http_filters: [{name: r, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]\n"
	if _, _, err := config.Load(write(t, "b.yaml", []byte(router)), opts); err == nil || !strings.Contains(err.Error(), "typed_config.http_filters[0].typed_config: could not find @type 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router': not supported yet") {
		t.Error(err)
	}
	if _, err := config.NewRegistry("nope.T"); err == nil || !strings.Contains(err.Error(), "nope.T is not linked") {
		t.Error(err)
	}
}

func TestUnpack(t *testing.T) {
	var b bootstrapv3.Bootstrap
	if _, err := config.Parse("b.yaml", []byte(`bootstrap_extensions:
- {typed_config: {"@type": type.googleapis.com/envoy.config.core.v3.Node, id: a}}
- {typed_config: {"@type": type.googleapis.com/xds.type.v3.TypedStruct, type_url: envoy.config.core.v3.Node, value: {id: b, userAgentName: c}}}
- {typed_config: {"@type": type.googleapis.com/udpa.type.v1.TypedStruct, type_url: type.googleapis.com/envoy.config.core.v3.Locality, value: {region: "1"}}}
- {typed_config: {}}
- {typed_config: {"@type": type.googleapis.com/xds.type.v3.TypedStruct, type_url: nope.X, value: {id: b}}}
`), &b, config.Options{SkipValidation: true}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"envoy.config.core.v3.Node:id:\"a\"", "envoy.config.core.v3.Node:id:\"b\" user_agent_name:\"c\"", "envoy.config.core.v3.Locality:region:\"1\"", ":<nil>"} {
		m, url, err := config.Unpack(b.BootstrapExtensions[i].TypedConfig, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := xdstype.Name(url) + ":<nil>"
		if m != nil {
			text, err := prototext.MarshalOptions{}.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			got = xdstype.Name(url) + ":" + strings.ReplaceAll(string(text), "  ", " ")
		}
		if got != want {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
		if p := config.PayloadURL(b.BootstrapExtensions[i].TypedConfig); p != url {
			t.Errorf("%d: PayloadURL = %s, want %s", i, p, url)
		}
	}
	if _, _, err := config.Unpack(b.BootstrapExtensions[4].TypedConfig, nil); err == nil || !strings.Contains(err.Error(), "Didn't find a registered implementation with type URL: 'nope.X'") {
		t.Error(err)
	}
}

func TestDiscoveryResponse(t *testing.T) {
	in := `
version_info: "7"
control_plane: {identifier: me}
resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: a
  connect_timeout: 1s
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: b
`
	r, pos, err := config.LoadDiscoveryResponse(write(t, "cds.yaml", []byte(in)), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Version != "7" || r.ControlPlane != "me" || len(r.Resources) != 2 || r.Resources[1].TypeURL != xdstype.Cluster {
		t.Errorf("%+v", r)
	}
	var c clusterv3.Cluster
	if name, err := config.Decode(r.Resources[0], &c, nil); err != nil || name != "" || c.Name != "a" || c.ConnectTimeout.GetSeconds() != 1 {
		t.Errorf("%v %v", &c, err)
	}
	if p, ok := pos.Lookup("resources[1].name"); !ok || p.Line != 9 {
		t.Errorf("%v %v", p, ok)
	}
	wrapped := xdstype.Any{TypeURL: xdstype.DeltaResource, Value: (&xdstype.Resource{Name: "w", HasAny: true, Any: r.Resources[1]}).Append(nil)}
	if name, err := config.Decode(wrapped, &c, nil); err != nil || name != "w" || c.Name != "b" {
		t.Errorf("%s %v %v", name, &c, err)
	}
	if _, err := config.Decode(r.Resources[0], &listenerv3.Listener{}, nil); err == nil || !strings.Contains(err.Error(), "does not match") {
		t.Error(err)
	}
	binary := write(t, "cds.pb", r.Append(nil))
	if again, _, err := config.LoadDiscoveryResponse(binary, config.Options{}); err != nil || !cmp.Equal(r, again) {
		t.Errorf("%v %v", again, err)
	}
	bad := strings.Replace(in, "name: b", "name: ''\n  nome: x", 1)
	_, _, err = config.LoadDiscoveryResponse(write(t, "cds.yaml", []byte(bad)), config.Options{})
	if err == nil || !strings.Contains(err.Error(), ":10:3: resources[1].nome: no such field: 'nome'") {
		t.Error(err)
	}
	empty := (&xdstype.Response{Resources: []xdstype.Any{{TypeURL: xdstype.Cluster}}}).Append(nil)
	_, _, err = config.LoadDiscoveryResponse(write(t, "cds.pb", empty), config.Options{})
	if err == nil || !strings.Contains(err.Error(), "resources[0].name: Proto constraint validation failed (ClusterValidationError.Name") {
		t.Error(err)
	}
}

// Own seeds: every file of testdata/bootstraps loads, every file of testdata/refused does not and says why.
func TestSeeds(t *testing.T) {
	good, err := filepath.Glob("testdata/bootstraps/*")
	if err != nil || len(good) == 0 {
		t.Fatal(good, err)
	}
	for _, f := range good {
		if _, _, err := config.Load(f, config.Options{}); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	bad, err := filepath.Glob("testdata/refused/*")
	if err != nil || len(bad) == 0 {
		t.Fatal(bad, err)
	}
	for _, f := range bad {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		_, want, _ := strings.Cut(string(data), "# refused: ")
		want, _, _ = strings.Cut(want, "\n")
		if _, _, err := config.Load(f, config.Options{}); err == nil || want == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", f, err, want)
		}
	}
}

// Two checks may find the same, of which one leaves open of what kind it is, and others may stand at the same place.
func TestSortTellsOnce(t *testing.T) {
	same := config.Error{File: "a", Line: 2, Col: 1, Path: "x", Msg: "not supported yet"}
	between := config.Error{File: "a", Line: 2, Col: 1, Path: "x.y", Msg: "wrong"}
	first, again, other := same, same, config.Error{File: "a", Line: 1, Path: "y", Msg: "wrong"}
	again.Kind = config.Unsupported
	e := config.Errors{List: []*config.Error{&first, &between, &other, &again}}
	if e.Sort(); len(e.List) != 3 || e.List[0] != &other || e.List[1] != &first || e.List[2] != &between {
		t.Error(e.Error())
	}
}

// What stands in an anchor shows at each path that uses it: it is one mistake. Others at the same place are others.
func TestSortCountsAnchors(t *testing.T) {
	at := func(path, msg string) *config.Error {
		return &config.Error{File: "a", Line: 2, Col: 1, Path: path, Msg: msg}
	}
	e := config.Errors{List: []*config.Error{at("x[0].f", "wrong"), at("x[1].f", "wrong"), at("x[0].f", "other"), at("x[1].g", "wrong"), at("x[0].f", "wrong"), at("y.f", "wrong"),
		{Path: "x[0].f", Msg: "no place"}, {Path: "x[1].f", Msg: "no place"}}}
	e.Sort()
	if want := "a:2:1: x[0].f: wrong; so in 3 places\na:2:1: x[0].f: other\na:2:1: x[1].g: wrong\nx[0].f: no place\nx[1].f: no place"; e.Error() != want {
		t.Error(e.Error())
	}
}

// A message of others is no resource of the API that ends in the same word.
func TestTypesOfOthers(t *testing.T) {
	for url, want := range map[string]string{
		"my.Filter":                     "could not find @type 'type.googleapis.com/my.Filter'",
		"acme.filters.v1.Listener":      "could not find @type 'type.googleapis.com/acme.filters.v1.Listener'",
		"Cluster":                       "did you mean 'type.googleapis.com/envoy.config.cluster.v3.Cluster'?",
		"envoy.config.v3.VirtualHost":   "did you mean 'type.googleapis.com/envoy.config.route.v3.VirtualHost'?",
		"envoy.config.route.v3.Virtual": "could not find @type",
	} {
		_, _, err := config.Load(write(t, "b.yaml", []byte(`bootstrap_extensions: [{name: x, typed_config: {"@type": type.googleapis.com/`+url+"}}]")), config.Options{})
		if err == nil || !strings.HasSuffix(err.Error(), want) && !strings.Contains(want, "could not find") || strings.HasSuffix(want, "'") && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
	}
}
