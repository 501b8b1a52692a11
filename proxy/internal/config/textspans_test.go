package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

func TestTextProtobufTellsEverything(t *testing.T) {
	path := write(t, "b.pb_text", []byte(`node { idd: "a" cluster: 'b'
  "c" }
static_resources {
  clusters { name: "c" type: NOPE } # what comes here } does not count
  clusters: [{ name: "d", connect_timeout { seconds: "x" } }, { nam: 5 }]
  listeners < name: "" filter_chains { filters { name: "h" typed_config {
    [type.googleapis.com/envoy.config.core.v3.Node] { cluster: "c" idd: 1 } } } filters { name: "g" typed_config { [type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy] {} } } } >
}
`))
	_, _, err := config.Load(path, config.Options{})
	var got []string
	for _, p := range config.List(err) {
		got = append(got, fmt.Sprintf("%d:%d %s %s", p.Line, p.Col, p.Kind, p.Path))
	}
	want := []string{
		"1:8 unknown_field node.idd",
		"4:30 syntax static_resources.clusters[0].type",
		"5:54 syntax static_resources.clusters[1].connect_timeout.seconds",
		"5:65 unknown_field static_resources.clusters[2].nam",
		"7:68 unknown_field static_resources.listeners[0].filter_chains[0].filters[0].typed_config.idd",
		"7:116 unsupported static_resources.listeners[0].filter_chains[0].filters[1].typed_config",
		"5:63 rule static_resources.clusters[2].name",
	}
	for i, w := range want {
		if i >= len(got) || got[i] != w {
			t.Errorf("%d: want %q in\n%s", i, w, fmt.Sprint(err))
		}
	}
}

// What breaks a rule has a place in a text protobuf, too.
func TestTextProtobufPlaces(t *testing.T) {
	path := write(t, "b.pb_text", []byte("static_resources {\n clusters { name: \"a\" }\n clusters {\n  name: \"b\" connect_timeout { seconds: 0 } cleanup_interval { seconds: 1 } dns_jitter { nanos: -5 } }\n}\n"))
	_, pos, err := config.Load(path, config.Options{})
	var many *config.Errors
	if !errors.As(err, &many) || len(many.List) != 2 {
		t.Fatal(err)
	}
	if x := many.List[1]; x.Path != "static_resources.clusters[1].dns_jitter" || x.Line != 4 || !strings.Contains(x.Msg, "Expected positive duration") {
		t.Error(x)
	}
	if d := cmp.Diff([]any{path, 4, 13, "static_resources.clusters[1].connect_timeout"}, []any{many.List[0].File, many.List[0].Line, many.List[0].Col, many.List[0].Path}); d != "" {
		t.Error(d)
	}
	if at, ok := pos.Lookup("static_resources.clusters[1].lb_policy"); ok || at.Line != 3 {
		t.Error(at, ok)
	}
}

func FuzzTextProtobuf(f *testing.F) {
	for _, s := range []string{`node { id: "a" }`, "node < id: 'a' \"b\" >", "a: [{b: 1}, {}]", "node { idd: 1 [x/y] { a: 1 } }", "node {", "# x", "node: [\n]", "node { id: \"\\", "node { locality { region: 5 } user_agent_name: 7 }"} {
		f.Add(s)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "b.pb_text")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := config.Load(path, config.Options{})
		for _, p := range config.List(err) {
			if p.Msg == "" || p.File == "" {
				t.Errorf("%+v", p)
			}
		}
	})
}
