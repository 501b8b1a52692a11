// Package docs_test makes the pages that are made from code (docs/compat.md, docs/fields), and fails when one that is committed is not
// what the code says now: make docs writes them anew.
package docs_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/internal/gap"
	"github.com/dragoman-proxy/dragoman/proxy"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

var update = flag.Bool("update", false, "write the pages anew")

// root is the top of the tree, seen from this package.
const root = "../.."

const generated = "<!-- Made by `make docs` from the code: changes by hand are lost. -->\n\n"

// page compares a page with what is committed, or writes it with -update.
func page(t *testing.T, rel, want string) {
	t.Helper()
	file := filepath.Join(root, rel)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Errorf("%s: %v; write it by: make docs", rel, err)
		return
	}
	if string(got) != want {
		t.Errorf("%s is not what the code says now (%s); write it anew by: make docs", rel, firstDifference(string(got), want))
	}
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "it has " + a[i] + ", the code " + b[i]
		}
	}
	return "their lengths differ"
}

func exists(rel string) bool {
	_, err := os.Stat(filepath.Join(root, rel))
	return err == nil
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if line := s.Text(); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// extension is one of Envoy's, or of ours, as /server_info lists it.
type extension struct {
	Category string
	Name     string
	TypeURLs []string `json:"type_urls"`
}

// envoys are the extensions of the real Envoy.
func envoys(t *testing.T) []extension {
	t.Helper()
	var out []extension
	for _, line := range lines(t, "testdata/envoy-1.40.txt") {
		f := strings.Fields(line)
		e := extension{Category: f[0], Name: f[1]}
		if len(f) > 2 {
			e.TypeURLs = strings.Split(f[2], ",")
		}
		out = append(out, e)
	}
	return out
}

// ours are the extensions that a proxy with the standard set lists.
func ours(t *testing.T) []extension {
	t.Helper()
	p := proxytest.Start(t, "admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}", proxytest.Extensions(standard.All()...))
	var info struct {
		Node struct{ Extensions []extension }
	}
	if err := json.Unmarshal([]byte(p.Admin("GET", "/server_info").Body), &info); err != nil {
		t.Fatal(err)
	}
	if len(info.Node.Extensions) == 0 {
		t.Fatal("the proxy lists no extensions")
	}
	return info.Node.Extensions
}

// refused are all rows: those of the engine and of the extensions.
func refused() []gap.Row {
	var out []gap.Row
	for _, r := range proxy.RefusedFields() {
		out = append(out, gap.Row{Message: r.Message, Field: r.Field, Value: r.Value, Note: r.Note, Ignored: r.Ignored})
	}
	add := func(i *ext.Info, messages []string) {
		for _, t := range gap.ForExtension(messages, i.Refused) {
			out = append(out, t.Rows()...)
		}
		for _, t := range gap.ForExtension(messages, i.Ignored) {
			for _, r := range t.Rows() {
				r.Ignored = true
				out = append(out, r)
			}
		}
	}
	for _, s := range standard.All() {
		for i := range s.HTTPFilters {
			add(&s.HTTPFilters[i].Info, s.HTTPFilters[i].Messages())
		}
		for i := range s.NetworkFilters {
			add(&s.NetworkFilters[i].Info, s.NetworkFilters[i].TypeURLs)
		}
		for i := range s.ListenerFilters {
			add(&s.ListenerFilters[i].Info, s.ListenerFilters[i].TypeURLs)
		}
	}
	return slices.Compact(out)
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
