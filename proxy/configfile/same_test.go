package configfile_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/configfile"
)

// chains is a listener with two filter chains whose route configurations have one name.
const chains = `
static_resources:
  listeners:
  - name: main
    address: {socket_address: {address: 127.0.0.1, port_value: 8443}}
    filter_chains:
    - filter_chain_match: {server_names: [a.example]}
      filters: [{name: h, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: p,
        route_config: {name: local, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200, body: {inline_string: A}}}]}]}}}]
    - filter_chain_match: {server_names: [b.example, c.example]}
      filters: [{name: h, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager, stat_prefix: p,
        route_config: {name: local, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200, body: {inline_string: B}}}]}]}}}]
`

// Routes are compared with those of the same filter chain.
func TestDiffOfChains(t *testing.T) {
	body := func(chain, old, next string) configfile.Change {
		return configfile.Change{Kind: "route", Name: "main / " + chain + " / local / all / prefix /", Op: "changed",
			Fields: []configfile.Field{{Path: "direct_response.body.inline_string", Old: old, New: next}}}
	}
	names := func(path, next string) configfile.Change {
		return configfile.Change{Kind: "listener", Name: "main", Op: "changed", Fields: []configfile.Field{{Path: path, New: next}}}
	}
	second := chains[strings.Index(chains, "    - filter_chain_match: {server_names: [b"):]
	for _, c := range []struct {
		name, old, next string
		want            []configfile.Change
	}{
		{"a comment", "\nstatic", "# new\nstatic", nil},
		{"the first", "inline_string: A", "inline_string: A2", []configfile.Change{body("a.example", "A", "A2")}},
		{"the second", "inline_string: B", "inline_string: B2", []configfile.Change{body("b.example, c.example", "B", "B2")}},
		{"what a chain matches", "c.example]", "c.example, d.example]", []configfile.Change{names("filter_chains[1].filter_chain_match.server_names[d.example]", "d.example")}},
		{"a chain less", second, "", []configfile.Change{
			{Kind: "listener", Name: "main", Op: "changed"},
			{Kind: "route", Name: "main / b.example, c.example / local", Op: "removed", What: "1 virtual host"}}},
	} {
		got := configfile.Diff(read(t, "a.yaml", chains, configfile.Options{}), read(t, "b.yaml", strings.Replace(chains, c.old, c.next, 1), configfile.Options{}))
		if c.name == "a chain less" && len(got) > 0 {
			got[0].Fields = nil // the whole chain
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// awkward are configurations in which names do not tell what is what.
var awkward = map[string]string{
	"chains.yaml":     chains,
	"no match.yaml":   strings.NewReplacer("filter_chain_match: {server_names: [a.example]}", "name: ''", "filter_chain_match: {server_names: [b.example, c.example]}", "name: ''").Replace(chains),
	"same match.yaml": strings.ReplaceAll(chains, "b.example, c.example", "a.example"),
	"no names.yaml":   strings.NewReplacer("name: main", "name: ''", "name: local", "name: ''", "name: all", "name: ''", "name: h", "name: ''").Replace(chains),
	"twice.yaml": "static_resources: {clusters: [{name: a}, {name: a, connect_timeout: 1s}, {name: b}, {name: a}], " +
		"secrets: [{name: s, generic_secret: {}}, {name: s}], listeners: [{name: l}, {name: l, stat_prefix: x}, {}, {}]}",
	"hosts.yaml":   strings.ReplaceAll(chains, `domains: ["*"], routes:`, `domains: [a], routes: [{match: {prefix: /}, direct_response: {status: 200}}]}, {name: all, domains: [b], routes:`),
	"routes.yaml":  strings.ReplaceAll(chains, "routes: [", "routes: [{match: {prefix: /}, direct_response: {status: 201}}, {match: {prefix: /}, direct_response: {status: 202}}, "),
	"unknown.yaml": strings.ReplaceAll(chains, "stat_prefix: p,", `stat_prefix: p, http_filters: [{name: x, typed_config: {"@type": type.googleapis.com/no.such.Type, value: 0.95, big: 4294967295, s: "0.95"}}],`),
	"numbers.yaml": `layered_runtime: {layers: [{name: x, static_layer: {f: 1.5, e: 1e6, i: 4294967295, n: -2147483648, h: 0x1F, o: 010, s: "5", t: "1.5", b: yes, q: "yes", z: null, l: [1, 1.5, "1.5"]}}]}`,
	"numbers.json": `{"layered_runtime": {"layers": [{"name": "x", "static_layer": {"f": 1.5, "e": 1e6, "i": 4294967295, "n": -2147483649, "d": 5.0, "s": "5", "t": "1.5", "b": true, "q": "yes", "z": null, "l": [1, 1.5, "1.5"]}}]}, "stats_config": {"stats_matcher": {"reject_all": false}}}`,
}

// A configuration has no difference from itself, in whatever form it is written, and means the same then.
func TestSameInAllForms(t *testing.T) {
	texts := map[string]string{}
	for name, text := range awkward {
		texts[name] = text
	}
	for _, pattern := range []string{"../../examples/*.yaml", "../../examples/*/*.yaml", "../../packaging/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, files, err)
		}
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.Base(filepath.Dir(path))+" "+filepath.Base(path)] = string(data)
		}
	}
	all := []configfile.Form{configfile.YAML, configfile.JSON, configfile.ProtoText, configfile.Proto}
	for name, text := range texts {
		f := read(t, name, text, configfile.Options{})
		if c := configfile.Diff(f, f); len(c) > 0 {
			t.Errorf("%s differs from itself: %+v", name, c)
		}
		_, undecodable := f.Bootstrap()
		for _, form := range all {
			data, err := f.Encode(form)
			if err != nil {
				if undecodable == nil {
					t.Errorf("%s as %s: %v", name, form, err)
				}
				continue
			}
			g := read(t, "converted."+string(form), string(data), configfile.Options{})
			if c := configfile.Diff(f, g); len(c) > 0 {
				t.Errorf("%s as %s: %+v\n%s", name, form, c, data)
			}
			lost := configfile.Lost(f, g)
			if len(lost) > 0 != (name == "numbers.json" && form == configfile.YAML) {
				t.Errorf("%s as %s lost %+v", name, form, lost)
			}
			for _, back := range all {
				if data, err = g.Encode(back); err != nil {
					continue
				}
				h := read(t, "back."+string(back), string(data), configfile.Options{})
				if c := configfile.Diff(g, h); len(c) > 0 {
					t.Errorf("%s as %s and %s: %+v", name, form, back, c)
				}
			}
		}
	}
	f := read(t, "numbers.json", awkward["numbers.json"], configfile.Options{})
	data, err := f.Encode(configfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	const at = "layered_runtime.layers[x].static_layer."
	var lost []string
	for _, l := range configfile.Lost(f, read(t, "a.yaml", string(data), configfile.Options{})) {
		lost = append(lost, strings.TrimPrefix(l.Path, at)+" "+l.Old+" "+l.New)
	}
	slices.Sort(lost)
	if d := cmp.Diff([]string{`d 5 "5.0"`, `e 1000000 "1e6"`, `f 1.5 "1.5"`, `i 4294967295 "4294967295"`, `l[1] 1.5 "1.5"`, `n -2147483649 "-2147483649"`}, lost); d != "" {
		t.Error(d)
	}
}
