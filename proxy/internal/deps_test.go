// Package internal_test holds the engine's import order and the walls between the products, as data that a test checks.
// Changing one of the tables below is a decision about the house: give the reason in the commit.
package internal_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/dragoman-proxy/dragoman"

// engine is the order of the packages in proxy/internal: each may import those before it and its own subpackages.
// Packages of one line do not know each other.
var engine = [][]string{
	{"stats"},
	{"config"},
	{"runtime"},
	{"warm"},
	{"sub"},
	{"event"},
	{"socket", "spill", "freelist"},
	{"conn"},
	{"secret"},
	{"host"},
	{"tls"},
	{"codec"},
	{"codec/hpack"},
	{"codec/h1", "codec/h2"},
	{"format"},
	{"match"}, // prints the names in certificates as format does
	{"accesslog"},
	{"overload"},
	{"lb"},
	{"pool"},
	{"health"},
	{"dns"},
	{"cluster"},
	{"route"},
	{"fm"},
	{"router"},
	{"async"},
	{"xds"},
	{"quic"},
	{"hcm"},
	{"tcpproxy"},
	{"listener"},
	{"admin"},
	{"hotrestart"},
	{"server"},
}

// walls says which other folders of this module each folder may import (itself always). The first that fits holds.
// Go's own rule for internal/ keeps agent, control and extensions out of the engine; this keeps the rest apart.
var walls = []struct {
	folder string
	may    []string
}{
	{"api", nil},
	{"internal", []string{"api"}},
	{"proxy/internal", []string{"api", "internal"}},
	{"proxy/proxytest", []string{"api", "internal", "proxy"}},
	{"proxy", []string{"api", "internal"}},
	{"agent", []string{"api", "internal"}},
	{"control", []string{"api", "internal"}},
	{"extensions/standard", []string{"api", "internal", "extensions"}},
	{"extensions", []string{"api", "internal"}},
	{"docs", nil},
	{"cmd", everything},
	{"test", everything},
	{"examples", everything},
}

var everything = []string{"."}

// testsMay adds to walls what test files may import.
var testsMay = map[string][]string{
	"extensions": {"proxy/proxytest", "extensions"},
	"agent":      {"proxy/proxytest"},
	"control":    {"proxy/proxytest"},
}

// onlyProtobuf are the modules of others that api may import: an extension author gets no more from us than these.
var onlyProtobuf = []string{"google.golang.org/protobuf"}

// fences says which folders may import a module of others. One that is not listed here may be imported by nobody; a new
// one needs a design note. Test files may import what is listed under testOnly from anywhere.
var fences = map[string][]string{
	"github.com/cespare/xxhash/v2":              {"internal", "proxy/internal", "extensions"},
	"github.com/cncf/xds/go":                    {"internal/xdstype", "proxy/internal", "extensions", "agent", "control"},
	"github.com/envoyproxy/go-control-plane":    {"internal/xdstype", "proxy", "extensions", "agent", "control", "test"},
	"github.com/envoyproxy/protoc-gen-validate": {"internal/xdstype"},
	"github.com/fsnotify/fsnotify":              {"proxy/internal/xds"},
	"github.com/gaissmai/bart":                  {"proxy/internal/match", "proxy/internal/listener"},
	"github.com/klauspost/compress":             {"proxy/internal/config", "extensions/compression"},
	"github.com/spf13/cobra":                    {"cmd/dragoman"},
	"github.com/spf13/pflag":                    {"cmd/dragoman"},
	"go.yaml.in/yaml/v3":                        {"internal/yamlpos"},
	"golang.org/x/sys":                          {"proxy/internal/event", "proxy/internal/socket", "proxy/internal/hotrestart", "cmd/dragoman"},
	"google.golang.org/genproto":                {"internal/xdstype", "proxy/internal", "agent", "control"},
	"google.golang.org/grpc":                    {"agent", "control", "test"},
	"google.golang.org/protobuf":                {"api", "internal", "proxy", "extensions", "agent", "control", "cmd", "examples", "test"},
}

// testOnly are modules that only test files, proxytest and test/ import.
var testOnly = []string{
	"github.com/google/go-cmp",
	"github.com/miekg/dns",
	"github.com/rogpeppe/go-internal",
	"go.uber.org/goleak",
	"golang.org/x/net",
	"google.golang.org/grpc",
	"pgregory.net/rapid",
}

// edge is one import that some file has.
type edge struct {
	file string // below the root
	from string // folder of the file, below the root
	to   string // import path
	test bool
}

func TestEngineOrder(t *testing.T) {
	for _, e := range imports(t) {
		if p := orderProblem(e); p != "" {
			t.Error(p)
		}
	}
}

func TestWalls(t *testing.T) {
	for _, e := range imports(t) {
		if p := wallProblem(e); p != "" {
			t.Error(p)
		}
	}
}

func TestFences(t *testing.T) {
	for _, e := range imports(t) {
		if p := fenceProblem(e); p != "" {
			t.Error(p)
		}
	}
}

// TestRulesCanFail shows one import for each rule that breaks it, and its nearest neighbour that does not.
func TestRulesCanFail(t *testing.T) {
	in := func(s string) string { return module + "/" + s }
	for _, c := range []struct {
		rule func(edge) string
		e    edge
		want string // part of the message; empty: no problem
	}{
		{orderProblem, edge{from: "proxy/internal/host", to: in("proxy/internal/cluster")}, "host comes before cluster"},
		{orderProblem, edge{from: "proxy/internal/cluster", to: in("proxy/internal/host")}, ""},
		{orderProblem, edge{from: "proxy/internal/codec/h1", to: in("proxy/internal/codec/h2")}, "do not know each other"},
		{orderProblem, edge{from: "proxy/internal/codec", to: in("proxy/internal/codec/h2")}, "codec comes before codec/h2"},
		{orderProblem, edge{from: "proxy/internal/codec/h2", to: in("proxy/internal/codec/hpack")}, ""},
		{orderProblem, edge{from: "proxy/internal/codec/h2", to: in("proxy/internal/codec")}, ""},
		{orderProblem, edge{from: "proxy/internal/codec/h2", to: in("proxy/internal/codec/h2/hpack")}, ""},
		{orderProblem, edge{from: "proxy/internal/util", to: in("proxy/internal/stats")}, "util has no place"},
		{orderProblem, edge{from: "proxy/internal/host", to: in("proxy/internal/util")}, "util has no place"},
		{orderProblem, edge{from: "proxy/internal/host", to: in("proxy/internal/server"), test: true}, ""},
		{orderProblem, edge{from: "proxy", to: in("proxy/internal/server")}, ""},

		{wallProblem, edge{from: "api/http", to: in("internal/version")}, "api may not import internal/version"},
		{wallProblem, edge{from: "api/http", to: in("api/buffer")}, ""},
		{wallProblem, edge{from: "api/http", to: in("proxy/proxytest"), test: true}, "api may not import proxy/proxytest"},
		{wallProblem, edge{from: "internal/pki", to: in("api/clock")}, ""},
		{wallProblem, edge{from: "proxy/internal/host", to: in("proxy")}, "proxy/internal may not import proxy"},
		{wallProblem, edge{from: "proxy", to: in("proxy/internal/server")}, ""},
		{wallProblem, edge{from: "proxy", to: in("agent")}, "proxy may not import agent"},
		{wallProblem, edge{from: "control/internal/push", to: in("agent/internal/sds")}, "control may not import agent/internal/sds"},
		{wallProblem, edge{from: "control", to: in("control/internal/push")}, ""},
		{wallProblem, edge{from: "extensions/filters/http/fault", to: in("extensions/filters/http/cors")}, "another extension"},
		{wallProblem, edge{from: "extensions/filters/http/fault", to: in("extensions/filters/http/fault/internal/x")}, ""},
		{wallProblem, edge{from: "extensions/filters/http/fault", to: in("extensions/filters/http/internal/x")}, ""},
		{wallProblem, edge{from: "extensions/standard", to: in("extensions/filters/http/cors")}, ""},
		{wallProblem, edge{from: "extensions/filters/http/fault", to: in("proxy/proxytest")}, "may not import proxy/proxytest"},
		{wallProblem, edge{from: "extensions/filters/http/fault", to: in("proxy/proxytest"), test: true}, ""},
		{wallProblem, edge{from: "common", to: in("api/http")}, "common stands behind no wall"},
		{wallProblem, edge{from: "cmd/dragoman", to: in("proxy")}, ""},

		{fenceProblem, edge{from: "proxy/internal/host", to: "github.com/spf13/cobra"}, "only cmd/dragoman"},
		{fenceProblem, edge{from: "cmd/dragoman", to: "github.com/spf13/cobra"}, ""},
		{fenceProblem, edge{from: "api/ext", to: "google.golang.org/protobuf/proto"}, ""},
		{fenceProblem, edge{from: "api/ext", to: "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"}, "which only agent, control, extensions, internal/xdstype"},
		{fenceProblem, edge{from: "api/ext", to: "example.com/thing"}, "is not in the table"},
		{fenceProblem, edge{from: "api/http", to: "github.com/google/go-cmp/cmp"}, "only test files"},
		{fenceProblem, edge{from: "api/http", to: "github.com/google/go-cmp/cmp", test: true}, ""},
		{fenceProblem, edge{from: "api/http", to: "net/http"}, ""},
	} {
		c.e.file = c.e.from + "/x.go"
		switch got := c.rule(c.e); {
		case c.want == "" && got != "":
			t.Errorf("%s importing %s: %s", c.e.from, c.e.to, got)
		case !strings.Contains(got, c.want):
			t.Errorf("%s importing %s: got %q, want it to say %q", c.e.from, c.e.to, got, c.want)
		}
	}
}

// TestTablesAreCurrent fails for table entries that name what is not there any more.
func TestTablesAreCurrent(t *testing.T) {
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	required := func(m string) bool {
		for line := range strings.Lines(string(gomod)) {
			for _, word := range strings.Fields(line) {
				if under(word, m) {
					return true
				}
			}
		}
		return false
	}
	for m := range fences {
		if !required(m) {
			t.Errorf("fences: go.mod does not require %s", m)
		}
	}
	for _, m := range slices.Concat(testOnly, onlyProtobuf) {
		if !required(m) {
			t.Errorf("go.mod does not require %s", m)
		}
	}
}

// orderProblem says what is wrong with an import inside the engine. Test files may look to the right: they start whole
// proxies, and Go itself refuses a circle.
func orderProblem(e edge) string {
	from, inside := strings.CutPrefix(e.from, "proxy/internal/")
	to, engineImport := strings.CutPrefix(e.to, module+"/proxy/internal/")
	if !inside || e.test {
		return ""
	}
	f, fname := rank(from)
	if f < 0 {
		return fmt.Sprintf("%s: package proxy/internal/%s has no place in the engine's order: add it to the table in proxy/internal/deps_test.go, or put the code where it belongs", e.file, from)
	}
	if !engineImport {
		return ""
	}
	g, gname := rank(to)
	switch {
	case g < 0:
		return fmt.Sprintf("%s imports proxy/internal/%s, but %s has no place in the engine's order (proxy/internal/deps_test.go)", e.file, to, to)
	case g > f:
		return fmt.Sprintf("%s imports proxy/internal/%s, but %s comes before %s in the engine's order: let %s declare the interface that it needs, or move the code (the order is in proxy/internal/deps_test.go)", e.file, to, fname, gname, fname)
	case g == f && fname != gname:
		return fmt.Sprintf("%s imports proxy/internal/%s, but %s and %s do not know each other: what both need belongs before them", e.file, to, fname, gname)
	}
	return ""
}

// rank returns the line of the order that a package stands in and the name that it has there. The longest name that
// fits holds, so that codec/h2/hpack belongs to codec/h2 and not to codec.
func rank(pkg string) (line int, name string) {
	line = -1
	for i, names := range engine {
		for _, n := range names {
			if under(pkg, n) && len(n) > len(name) {
				line, name = i, n
			}
		}
	}
	return line, name
}

func wallProblem(e edge) string {
	to, ours := strings.CutPrefix(e.to, module+"/")
	if e.to == module {
		to, ours = ".", true
	}
	if !ours {
		return ""
	}
	for _, w := range walls {
		if !under(e.from, w.folder) {
			continue
		}
		if e.test && slices.ContainsFunc(testsMay[w.folder], func(f string) bool { return under(to, f) }) {
			return ""
		}
		if w.folder == "extensions" && under(to, "extensions") {
			return extensionProblem(e, to)
		}
		if under(to, w.folder) || slices.Equal(w.may, everything) || slices.ContainsFunc(w.may, func(f string) bool { return under(to, f) }) {
			return ""
		}
		return fmt.Sprintf("%s: %s may not import %s (walls, proxy/internal/deps_test.go)", e.file, w.folder, to)
	}
	return fmt.Sprintf("%s: %s stands behind no wall: say in proxy/internal/deps_test.go what it may import", e.file, e.from)
}

// extensionProblem keeps extensions apart. What several share lies in an internal folder above them.
func extensionProblem(e edge, to string) string {
	if under(to, e.from) || slices.Contains(strings.Split(to, "/"), "internal") || under(e.from, to) {
		return ""
	}
	return fmt.Sprintf("%s imports %s, which is another extension: put what both need into an internal folder above them", e.file, to)
}

func fenceProblem(e edge) string {
	first, _, _ := strings.Cut(e.to, "/")
	if !strings.Contains(first, ".") || under(e.to, module) {
		return "" // the standard library, or ours
	}
	if slices.ContainsFunc(testOnly, func(m string) bool { return under(e.to, m) }) && (e.test || under(e.from, "test") || under(e.from, "proxy/proxytest")) {
		return ""
	}
	for m, folders := range fences {
		if !under(e.to, m) {
			continue
		}
		if slices.ContainsFunc(folders, func(f string) bool { return under(e.from, f) }) {
			return ""
		}
		only := strings.Join(slices.Sorted(slices.Values(folders)), ", ")
		return fmt.Sprintf("%s imports %s, which only %s may (fences, proxy/internal/deps_test.go)", e.file, e.to, only)
	}
	if slices.ContainsFunc(testOnly, func(m string) bool { return under(e.to, m) }) {
		return fmt.Sprintf("%s imports %s, which only test files may (testOnly, proxy/internal/deps_test.go)", e.file, e.to)
	}
	return fmt.Sprintf("%s imports %s, which is not in the table of fences: a new module needs a design note, then a line in proxy/internal/deps_test.go", e.file, e.to)
}

// under says whether a path is a folder (or module) or below it.
func under(p, folder string) bool {
	return p == folder || strings.HasPrefix(p, folder+"/")
}

// root is the top of the tree, seen from this package.
const root = "../.."

// imports reads the imports of every Go file of the module. Build tags are not looked at: the rules hold for all of them.
func imports(t *testing.T) []edge {
	t.Helper()
	var edges []edge
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if skipFolder(p, rel, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, p, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range f.Imports {
			to, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			edges = append(edges, edge{file: rel, from: path.Dir(rel), to: to, test: strings.HasSuffix(rel, "_test.go")})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(edges) == 0 {
		t.Fatal("no Go files were found: the test looks in the wrong place")
	}
	return edges
}

// skipFolder leaves out what the go command leaves out, and modules of their own.
func skipFolder(p, rel, name string) bool {
	if rel == "." {
		return false
	}
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "bin" {
		return true
	}
	_, err := os.Stat(filepath.Join(p, "go.mod"))
	return err == nil
}

// TestAPIImportsOnlyProtobuf keeps api free of what an extension author should not get from us by accident.
func TestAPIImportsOnlyProtobuf(t *testing.T) {
	for _, e := range imports(t) {
		first, _, _ := strings.Cut(e.to, "/")
		if !under(e.from, "api") || e.test || !strings.Contains(first, ".") || under(e.to, module) {
			continue
		}
		if !slices.ContainsFunc(onlyProtobuf, func(m string) bool { return under(e.to, m) }) {
			t.Errorf("%s imports %s: api imports the standard library and %s only", e.file, e.to, strings.Join(onlyProtobuf, ", "))
		}
	}
}

// TestEngineIsPureGo keeps the binary static: no package of ours uses cgo.
func TestEngineIsPureGo(t *testing.T) {
	for _, e := range imports(t) {
		if e.to == "C" {
			t.Errorf("%s uses cgo", e.file)
		}
	}
}
