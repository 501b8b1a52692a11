package configfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/proxy"
	"github.com/dragoman-proxy/dragoman/proxy/configfile"
)

// The engine links in the messages that configurations name.
var _ = proxy.Load

// read makes a file of a text.
func read(t *testing.T, name, text string, o configfile.Options) *configfile.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := configfile.Read(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const base = `# a comment
node: {id: a, cluster: b}
static_resources:
  listeners:
  - name: main
    address: {socket_address: {address: 127.0.0.1, port_value: 8080}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: p
          http_filters: [{name: envoy.filters.http.router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
          route_config:
            name: local
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - {match: {prefix: /api}, route: {cluster: one, timeout: 5s}}
              - {match: {path: /x, headers: [{name: x-y}]}, direct_response: {status: 200}}
              - {match: {prefix: /}, route: {weighted_clusters: {clusters: [{name: one, weight: 1}, {name: two, weight: 3}]}}}
  clusters:
  - name: one
    connect_timeout: 1s
    load_assignment:
      cluster_name: one
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}, {endpoint: {address: {socket_address: {address: 10.0.0.2, port_value: 80}}}}]}]
  - name: two
    type: STRICT_DNS
    load_assignment: {cluster_name: two, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: two.example, port_value: 81}}}}]}]}
`

func TestConvertThereAndBack(t *testing.T) {
	f := read(t, "a.yaml", base, configfile.Options{})
	want, err := f.Bootstrap()
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []configfile.Form{configfile.YAML, configfile.JSON, configfile.ProtoText, configfile.Proto} {
		data, err := f.Encode(form)
		if err != nil {
			t.Fatal(form, err)
		}
		g := read(t, "b."+string(form), string(data), configfile.Options{})
		got, err := g.Bootstrap()
		if err != nil || form != configfile.ProtoText && !proto.Equal(want, got) { // which orders the bytes of an Any anew
			t.Errorf("%s: %v\n%s", form, err, data)
		}
		if c := configfile.Diff(f, g); len(c) > 0 {
			t.Errorf("%s: %v", form, c)
		}
		back, err := g.Encode(configfile.YAML)
		if err != nil {
			t.Fatal(form, err)
		}
		if c := configfile.Diff(f, read(t, "c.yaml", string(back), configfile.Options{})); len(c) > 0 {
			t.Errorf("%s and back: %v\n%s", form, c, back)
		}
	}
}

// What is written as a scalar in YAML is read as the same one.
func TestScalarsStayWhatTheyAre(t *testing.T) {
	for _, s := range []string{"", " ", "a", "a b", "a: b", "a :b", "x:", "#", "a #b", "a#b", "y", "No", "ON", "null", "~", "1", "-1", "0x10", "010", "1.5", "1e3",
		".5", "5s", "0.25s", "1e3s", "10.0.0.1", "1.2.3", "-", "- a", "[", "]", "{a}", "*", "&a", "!a", "|", ">", "%", "@type", "`", "'", `"`, `\`, "a\nb", "a\nb\n", "a\n\nb\n",
		"\na", " a\nb", "a \nb", "a\n ", "a\n\n", "a\tb", "\x01", "é", "日本", "\u2028", "/", "/a", "a/b@c.d:80", "true", "inf", ".inf", "=", "<<", "2001-01-01", "1:30", "a\r\nb", "---", "..."} {
		v := configfile.FromValue(&configfile.Value{Kind: configfile.Map, Keys: []string{"k", "list"}, Items: []*configfile.Value{
			{Kind: configfile.String, Text: s}, {Kind: configfile.List, Items: []*configfile.Value{{Kind: configfile.String, Text: s}, {Kind: configfile.List}}}}})
		for _, form := range []configfile.Form{configfile.YAML, configfile.JSON} {
			data, err := v.Encode(form)
			if err != nil {
				t.Fatal(err)
			}
			got := read(t, "a."+string(form), string(data), configfile.Options{}).Root
			for _, x := range []*configfile.Value{got.Get("k"), got.Get("list").Items[0]} {
				if x.Kind != configfile.String || x.Text != s {
					t.Errorf("%s: %q became %d %q:\n%s", form, s, x.Kind, x.Text, data)
				}
			}
		}
	}
}

func TestDiff(t *testing.T) {
	for _, c := range []struct {
		name     string
		old, new string // replaced in base
		want     []configfile.Change
	}{
		{"nothing", "5s", "5.0s", nil},
		{"a port", "port_value: 8080", "port_value: 8081", []configfile.Change{{Kind: "listener", Name: "main", Op: "changed",
			Fields: []configfile.Field{{Path: "address.socket_address.port_value", Old: "8080", New: "8081"}}}}},
		{"a listener's name", "name: main", "name: other", []configfile.Change{
			{Kind: "listener", Name: "main", Op: "removed", What: "127.0.0.1:8080, 1 filter chain, envoy.filters.network.http_connection_manager"},
			{Kind: "listener", Name: "other", Op: "added", What: "127.0.0.1:8080, 1 filter chain, envoy.filters.network.http_connection_manager"},
			{Kind: "route", Name: "main / local", Op: "removed", What: "1 virtual host"},
			{Kind: "route", Name: "other / local", Op: "added", What: "1 virtual host"}}},
		{"a timeout", "timeout: 5s", "timeout: 6s", []configfile.Change{{Kind: "route", Name: "main / local / all / prefix /api", Op: "changed",
			Fields: []configfile.Field{{Path: "route.timeout", Old: "5s", New: "6s"}}}}},
		{"a route less", "              - {match: {path: /x, headers: [{name: x-y}]}, direct_response: {status: 200}}\n", "", []configfile.Change{
			{Kind: "route", Name: "main / local / all / path /x, header x-y", Op: "removed", What: "answer 200"}}},
		{"another match", "prefix: /api", "prefix: /v2", []configfile.Change{
			{Kind: "route", Name: "main / local / all / prefix /api", Op: "removed", What: "to cluster one"},
			{Kind: "route", Name: "main / local / all / prefix /v2", Op: "added", What: "to cluster one"}}},
		{"order", `              - {match: {prefix: /api}, route: {cluster: one, timeout: 5s}}
              - {match: {path: /x, headers: [{name: x-y}]}, direct_response: {status: 200}}
`, `              - {match: {path: /x, headers: [{name: x-y}]}, direct_response: {status: 200}}
              - {match: {prefix: /api}, route: {cluster: one, timeout: 5s}}
`, []configfile.Change{{Kind: "route", Name: "main / local / all / path /x, header x-y", Op: "changed", What: "its place among the routes"}}},
		{"a host", "address: 10.0.0.2", "address: 10.0.0.3", []configfile.Change{{Kind: "cluster", Name: "one", Op: "changed", Fields: []configfile.Field{
			{Path: "load_assignment.endpoints[0].lb_endpoints[10.0.0.2:80]", Old: "10.0.0.2:80"},
			{Path: "load_assignment.endpoints[0].lb_endpoints[10.0.0.3:80]", New: "10.0.0.3:80"}}}}},
		{"a cluster less", base[strings.Index(base, "  - name: two"):], "", []configfile.Change{{Kind: "cluster", Name: "two", Op: "removed", What: "STRICT_DNS, two.example:81"}}},
		{"a filter's field", "stat_prefix: p", "stat_prefix: q", []configfile.Change{{Kind: "listener", Name: "main", Op: "changed", Fields: []configfile.Field{
			{Path: "filter_chains[0].filters[envoy.filters.network.http_connection_manager].typed_config.stat_prefix", Old: "p", New: "q"}}}}},
		{"the node", "id: a", "id: c", []configfile.Change{{Kind: "bootstrap", Name: "node", Op: "changed", Fields: []configfile.Field{{Path: "id", Old: "a", New: "c"}}}}},
		{"a field of the bootstrap", "node:", "stats_flush_interval: 1s\nnode:", []configfile.Change{{Kind: "bootstrap", Name: "stats_flush_interval", Op: "added", What: "1s"}}},
		{"a type that is not known, so texts are compared", "filters.http.router.v3.Router", "filters.http.nope.v3.Nope", []configfile.Change{{Kind: "listener", Name: "main", Op: "changed", Fields: []configfile.Field{
			{Path: "filter_chains[0].filters[envoy.filters.network.http_connection_manager].typed_config.http_filters[envoy.filters.http.router].typed_config.@type",
				Old: "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router", New: "type.googleapis.com/envoy.extensions.filters.http.nope.v3.Nope"}}}}},
	} {
		a, b := read(t, "a.yaml", base, configfile.Options{}), read(t, "b.yaml", strings.ReplaceAll(base, c.old, c.new), configfile.Options{})
		if d := cmp.Diff(c.want, configfile.Diff(a, b)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

func TestEnvironment(t *testing.T) {
	env := func(n string) (string, bool) { return "9999", n == "PORT" }
	f := read(t, "a.yaml", strings.ReplaceAll(base, "8080", "${PORT}"), configfile.Options{Env: env})
	b, err := f.Bootstrap()
	if err != nil || b.StaticResources.Listeners[0].Address.GetSocketAddress().GetPortValue() != 9999 {
		t.Errorf("%v %v", b, err)
	}
	if got := f.Root.At("static_resources").List("listeners")[0].At("address", "socket_address").Str("port_value"); got != "9999" {
		t.Errorf("the root has port %s", got)
	}
	path := filepath.Join(t.TempDir(), "b.yaml")
	if err := os.WriteFile(path, []byte("node:\n  id: ${NOPE}\n  cluster: ${NEITHER}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = configfile.Read(path, configfile.Options{Env: env})
	if err == nil || !strings.Contains(err.Error(), "b.yaml:2:7: the environment variable NOPE is not set") || !strings.Contains(err.Error(), "b.yaml:3:12: the environment variable NEITHER") {
		t.Error(err)
	}
}

func TestForms(t *testing.T) {
	for name, want := range map[string]configfile.Form{"a.yaml": "yaml", "a.YML": "yaml", "a.json": "json", "a": "json", "a.pb": "pb", "a.pb_text": "pb_text", "a.txt": "json"} {
		if got := configfile.FormOf(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, want := range map[string]configfile.Form{"yaml": "yaml", "yml": "yaml", "prototext": "pb_text", "binary": "pb", "json": "json"} {
		if got, err := configfile.ParseForm(name); got != want || err != nil {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
	if _, err := configfile.ParseForm("toml"); err == nil || !strings.Contains(err.Error(), "yaml, json, pb_text and pb") {
		t.Error(err)
	}
}

func TestReadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a: [":   "a.yaml:2:1: invalid YAML",
		"- 1":    "a configuration is a map of the fields of a bootstrap, such as static_resources; this is a list",
		"just x": "this is a string",
		"":       "this is null",
	} {
		path := filepath.Join(t.TempDir(), "a.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := configfile.Read(path, configfile.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if f, err := configfile.Read("-", configfile.Options{Stdin: strings.NewReader("node: {id: x}")}); err != nil || f.Root.At("node").Str("id") != "x" {
		t.Error(err)
	}
	// A name that says nothing is one of JSON, as for Envoy; a pipe's is no name.
	if _, err := configfile.Of("a.conf", []byte("node: {id: x}"), configfile.Options{}); err == nil || !strings.Contains(err.Error(), "did you mean 'a.yaml'? (the file holds YAML, and its name says JSON") {
		t.Error(err)
	}
	if _, err := configfile.Of("a.json", []byte("node: {id: x}"), configfile.Options{}); err == nil || strings.Contains(err.Error(), "name ends") {
		t.Error(err)
	}
	if f, err := configfile.Of("/dev/fd/63", []byte("node: {id: x}"), configfile.Options{}); err != nil || f.Root.At("node").Str("id") != "x" {
		t.Error(err)
	}
	if _, err := configfile.Read("/nonexistent", configfile.Options{}); !os.IsNotExist(err) {
		t.Error(err)
	}
}
