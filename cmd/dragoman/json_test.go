package main

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/cmd/dragoman/internal/compare"
	"github.com/dragoman-proxy/dragoman/cmd/dragoman/internal/verdict"
	"github.com/dragoman-proxy/dragoman/proxy"
	"github.com/dragoman-proxy/dragoman/proxy/configfile"
)

// TestJSONPage keeps docs/json.md to what the commands print: each key has a row in the table of its map, with what may be missing.
func TestJSONPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	var tables []map[string]bool // by key: it may be missing
	for block := range strings.SplitSeq(string(page), "\n\n") {
		if !strings.HasPrefix(block, "| key |") {
			continue
		}
		keys := map[string]bool{}
		for _, row := range strings.Split(block, "\n")[2:] {
			first, rest, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
			for _, m := range regexp.MustCompile("`([a-z_]+)(\\[\\])?`").FindAllStringSubmatch(first, -1) {
				keys[m[1]] = strings.Contains(rest, "missing")
			}
		}
		tables = append(tables, keys)
	}
	for i, v := range []any{verdict.All{}, verdict.File{}, proxy.Problem{}, verdict.Extension{}, verdict.Difference{}, configfile.Change{}, configfile.Field{},
		compare.Report{}, compare.Side{}, compare.Value{}} {
		typ, want := reflect.TypeOf(v), map[string]bool{}
		for f := range fieldsOf(typ) {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.IsExported() && name != "-" {
				want[name] = options == "omitempty"
			}
		}
		if i >= len(tables) || !reflect.DeepEqual(tables[i], want) {
			t.Errorf("docs/json.md: table %d is not that of %v: %v, want %v", i+1, typ, tables[min(i, len(tables)-1)], want)
		}
	}
}

func fieldsOf(typ reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range typ.NumField() {
			if !yield(typ.Field(i)) {
				return
			}
		}
	}
}

// Every kind of problem and note comes as JSON, with what an editor needs.
func TestJSONOfEveryKind(t *testing.T) {
	page, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n| kind | |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	told := map[string]bool{}
	for _, c := range []struct{ name, text, kind, path, field, value string }{
		{"a.yaml", "a: [}", "syntax", "", "message", "invalid YAML"},
		{"a.json", `{"node": `, "syntax", "", "message", ""},
		{"a.yaml", "node: {idd: x}", "unknown_field", "node.idd", "suggestion", "id"},
		{"a.yaml", "static_resources: {clusters: [{name: c, transport_socket: {name: t, typed_config: {\"@type\": type.googleapis.com/no.such}}}]}", "unknown_type",
			"static_resources.clusters[0].transport_socket.typed_config", "message", "no.such"},
		{"a.yaml", "static_resources: {clusters: [{name: c, lb_policy: ROUND_ROBBIN}]}", "wrong_type", "static_resources.clusters[0].lb_policy", "suggestion", "ROUND_ROBIN"},
		{"a.yaml", "static_resources: {clusters: [{name: c, connect_timeout: 0s}]}", "rule", "static_resources.clusters[0].connect_timeout", "found", "0s"},
		{"a.yaml", "static_resources: {clusters: [{name: c}, {name: c}]}", "invalid", "static_resources.clusters[1].name", "message", "c"},
		{"a.yaml", "static_resources: {clusters: [{name: c, transport_socket: {name: t, typed_config: {\"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, " +
			"common_tls_context: {validation_context: {trusted_ca: {filename: /no/such.pem}}}}}}]}", "machine", "", "message", "/no/such"},
		{"a.yaml", "stats_sinks: [{name: x}]", "unsupported", "stats_sinks", "message", "not supported"},
		{"a.yaml", "static_resources: {clusters: [{name: c, http2_protocol_options: {}}]}", "deprecated", "static_resources.clusters[0].http2_protocol_options", "message", "HttpProtocolOptions"},
		{"a.yaml", "static_resources: {clusters: [{name: c}]}", "doubtful", "static_resources.clusters[0].name", "message", "has no endpoints"},
	} {
		_, out, _ := command(t, "", "check", "--output", "json", file(t, c.name, c.text))
		var all struct {
			Files []struct{ Problems, Notes []map[string]any }
		}
		if err := json.Unmarshal([]byte(out), &all); err != nil || len(all.Files) != 1 {
			t.Fatalf("%s: %v %s", c.text, err, out)
		}
		told[c.kind] = true
		if !slices.ContainsFunc(append(all.Files[0].Problems, all.Files[0].Notes...), func(p map[string]any) bool {
			text, _ := p[c.field].(string)
			path, _ := p["path"].(string)
			line, _ := p["line"].(float64)
			return p["kind"] == c.kind && line == 1 && strings.Contains(text, c.value) && (c.path == "" || path == c.path)
		}) {
			t.Errorf("%s: no %s of %s in\n%s", c.text, c.kind, c.path, out)
		}
	}
	for row := range strings.SplitSeq(table, "\n") {
		if kind := strings.Split(row, "`")[1]; !told[kind] {
			t.Errorf("no test of %s", kind)
		}
		delete(told, strings.Split(row, "`")[1])
	}
	if len(told) > 0 {
		t.Errorf("not in docs/json.md: %v", told)
	}
}
