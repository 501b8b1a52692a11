package configfile_test

import (
	_ "embed"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
	"github.com/dragoman-proxy/dragoman/proxy/configfile"
)

//go:embed defaults.yaml
var defaultsText []byte

// Each row of the table of defaults names a message and a field that there are.
func TestDefaultsNameFields(t *testing.T) {
	tree, err := yamlpos.ParseYAML("defaults.yaml", defaultsText)
	if err != nil {
		t.Fatal(err)
	}
	for c := tree.First(0); c < tree.End(0); c = tree.End(c) {
		name := string(tree.Key(c))
		mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for f := tree.First(c); f < tree.End(c); f = tree.End(f) {
			fd := mt.Descriptor().Fields().ByName(protoreflect.Name(tree.Key(f)))
			switch {
			case fd == nil:
				t.Errorf("%s has no field %s", name, tree.Key(f))
			case fd.Options().(*descriptorpb.FieldOptions).GetDeprecated():
				t.Errorf("%s.%s is deprecated: nobody should be shown to write it", name, tree.Key(f))
			}
		}
	}
}

func TestEffective(t *testing.T) {
	f := read(t, "a.yaml", base, configfile.Options{ConfigYAML: "node: {id: other}"})
	v, err := configfile.Effective(f, true)
	if err != nil {
		t.Fatal(err)
	}
	text := string(v.YAML())
	for _, want := range []string{"id: other\n", "connect_timeout: 1s\n", "connect_timeout: 5s # default\n", "  timeout: 5s\n", "  timeout: 15s # default\n",
		"stats_flush_interval: 5s # default\n", "circuit_breakers: # default\n", "codec_type: AUTO # default\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	// It is a configuration itself, and nothing more is added to it.
	g := read(t, "b.yaml", text, configfile.Options{})
	again, err := configfile.Effective(g, true)
	if err != nil {
		t.Fatal(err)
	}
	if d := configfile.Fields(v, again); len(d) > 0 {
		t.Errorf("%v", d)
	}
	bare, err := configfile.Effective(f, false)
	if err != nil || strings.Contains(string(bare.YAML()), "# default") {
		t.Errorf("%v", err)
	}
	// A type of a cluster that is not one of the enum is no reason to add another.
	other := read(t, "c.yaml", "static_resources: {clusters: [{name: a, cluster_type: {name: x, typed_config: {}}}]}", configfile.Options{})
	if v, err = configfile.Effective(other, true); err != nil || v.At("static_resources").List("clusters")[0].Get("type") != nil {
		t.Errorf("%v", err)
	}
}

// What the file says stays as it was written, and in its order; what this build does not have is left alone.
func TestEffectiveKeepsWhatIsWritten(t *testing.T) {
	f := read(t, "a.yaml", `
static_resources:
  clusters: {name: a, connectTimeout: 0.50s, type: STATIC, lb_policy: null}
  listeners:
  - name: l
    filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: x
          codec_type: AUTO
          http_filters: [{name: w, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm, config: {vmConfig: {code: {}}}}}]
`, configfile.Options{ConfigYAML: `
node: {id: me}
static_resources: {clusters: [{name: b, typeUrl: x}]}`, AllowUnknownFields: true})
	v, err := configfile.Effective(f, true)
	if err != nil {
		t.Fatal(err)
	}
	text := string(v.YAML())
	for _, want := range []string{
		"  - name: a\n    connect_timeout: 0.50s\n    type: STATIC\n", "codec_type: AUTO\n", "lb_policy: ROUND_ROBIN # default\n", "vmConfig:", "  - name: b\n", "id: me\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	// Mistakes are left alone, too: of a file that is refused the rest is shown.
	v, err = configfile.Effective(read(t, "b.yaml", "static_resources: {cluster: [], clusters: {name: 1, type: [], load_assignment: x}, listeners: 7}\nnode: 3",
		configfile.Options{ConfigYAML: "node: {id: a}\nadmin: []"}), true)
	if err != nil || v.At("static_resources").Get("cluster") == nil || v.At("static_resources").List("clusters")[0].Str("lb_policy") != "ROUND_ROBIN" {
		t.Errorf("%v %s", err, v.YAML())
	}
	// Of a oneof that --config-yaml chooses anew, what the file has chosen goes; maps and messages are merged.
	f = read(t, "c.yaml", "admin: {address: {pipe: {path: x}}}\nnode: {id: a, cluster: c, metadata: {k: 1}}", configfile.Options{
		ConfigYAML: "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}\nnode: {id: b}",
	})
	if v, err = configfile.Effective(f, false); err != nil {
		t.Fatal(err)
	}
	if a := v.At("admin", "address"); a.Get("pipe") != nil || a.Get("socket_address") == nil || v.Get("node").Str("id") != "b" || v.Get("node").Str("cluster") != "c" {
		t.Errorf("%s", v.YAML())
	}
}
