package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shortestDoc is a bound against "Package x does x.", not a measure of quality.
const shortestDocBytes = 80

// TestPackageDocs asks every package for a comment that says what it owns, and for one only.
func TestPackageDocs(t *testing.T) {
	docs := map[string][]string{}
	for _, file := range files(t, func(rel string) bool { return isGo(rel) && !isTest(rel) }) {
		dir := path.Dir(file)
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if _, seen := docs[dir]; !seen {
			docs[dir] = nil
		}
		if f.Doc != nil && !ast.IsGenerated(f) {
			docs[dir] = append(docs[dir], f.Name.Name+"\x00"+f.Doc.Text())
		}
	}
	for dir, found := range docs {
		if problem := docProblem(found); problem != "" {
			t.Errorf("%s: %s", dir, problem)
		}
	}
}

func docProblem(found []string) string {
	if len(found) == 0 {
		return "no file says what the package is for"
	}
	if len(found) > 1 {
		return "several files have a package comment: join them"
	}
	name, text, _ := strings.Cut(found[0], "\x00")
	want := "Package " + name + " "
	if name == "main" {
		want = "Command "
	}
	if !strings.HasPrefix(text, want) {
		return "the package comment does not begin with " + strings.TrimSpace(want)
	}
	if len(text) < shortestDocBytes {
		return "the package comment is too short to say what the package owns, on which thread it runs and what it never does"
	}
	return ""
}

func TestDocRulesCanFail(t *testing.T) {
	long := strings.Repeat("It owns something. ", 5)
	for _, c := range []struct {
		found []string
		want  string
	}{
		{nil, "no file"},
		{[]string{"a\x00Package a " + long}, ""},
		{[]string{"main\x00Command a " + long}, ""},
		{[]string{"a\x00Package a " + long, "a\x00Package a " + long}, "several"},
		{[]string{"a\x00This is a. " + long}, "does not begin"},
		{[]string{"a\x00Package a is a."}, "too short"},
	} {
		if got := docProblem(c.found); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.found, got, c.want)
		}
	}
}

var (
	link     = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	fragment = regexp.MustCompile(`^kind: (new|changed|fixed|faster|removed|security)\narea: [\w/.-]+\nguard: (none|(?:envoy|dragoman)\.reloadable_features\.\w+)\ndiffers: (yes|no)\n\n\S`)
)

// TestLinks follows the links between the pages of the tree.
func TestLinks(t *testing.T) {
	for _, page := range files(t, func(rel string) bool { return strings.HasSuffix(rel, ".md") }) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			if target := path.Join(path.Dir(page), m[1]); !exists(target) {
				t.Errorf("%s links to %s, which does not exist", page, target)
			}
		}
	}
}

// TestDesignIndex keeps the index of the design notes whole, and their statuses among those that it explains.
func TestDesignIndex(t *testing.T) {
	const folder = "docs/design/"
	statuses := regexp.MustCompile(`(?m)^Status: (draft|accepted|done|rejected|replaced by \d{4})$`)
	index := read(t, folder+"README.md")
	for _, page := range files(t, func(rel string) bool { return strings.HasPrefix(rel, folder) && strings.HasSuffix(rel, ".md") }) {
		name := path.Base(page)
		if name == "README.md" {
			continue
		}
		m := statuses.FindStringSubmatch(read(t, page))
		if m == nil {
			t.Errorf("%s has no line \"Status: ...\" that %sREADME.md explains", page, folder)
			continue
		}
		if name == "0000-template.md" {
			continue
		}
		row := regexp.MustCompile(`(?m)^\| \[\d{4}\]\(` + regexp.QuoteMeta(name) + `\) \|.*\| ` + m[1] + ` \|$`)
		if !row.MatchString(index) {
			t.Errorf("%sREADME.md has no row for %s with status %q", folder, name, m[1])
		}
	}
}

// TestChangeFragments checks the format that changes/README.md describes.
func TestChangeFragments(t *testing.T) {
	for _, file := range files(t, func(rel string) bool { return strings.HasPrefix(rel, "changes/") }) {
		if file == "changes/README.md" {
			continue
		}
		if !strings.HasSuffix(file, ".md") || !fragment.MatchString(read(t, file)) {
			t.Errorf("%s has not the format of changes/README.md", file)
		}
	}
	if !fragment.MatchString("kind: fixed\narea: hcm\nguard: none\ndiffers: no\n\nText.\n") || fragment.MatchString("kind: fix\narea: hcm\nguard: none\ndiffers: no\n\nText.\n") {
		t.Error("the format itself is wrong")
	}
}

// extensionDir is the folder of one extension: the one with an extension.go.
func extensionDirs(t *testing.T) []string {
	var dirs []string
	for _, file := range files(t, isGo) {
		if strings.HasPrefix(file, "extensions/") && path.Base(file) == "extension.go" {
			dirs = append(dirs, path.Dir(file))
		}
	}
	return dirs
}

// TestExtensionFolders asks each extension for its page and its tests, and keeps its proto at the edge: one with a few
// fields reads them in extension.go, one with many in config.go, and the hot path sees plain structs only.
func TestExtensionFolders(t *testing.T) {
	all := files(t, func(rel string) bool { return strings.HasPrefix(rel, "extensions/") || rel == "go.mod" })
	for _, dir := range extensionDirs(t) {
		if !slices.Contains(all, dir+"/README.md") {
			t.Errorf("%s has no README.md", dir)
		}
		if !slices.ContainsFunc(all, func(f string) bool { return path.Dir(f) == dir && isTest(f) }) {
			t.Errorf("%s has no test", dir)
		}
		for _, f := range all {
			name := path.Base(f)
			if path.Dir(f) != dir || !isGo(f) || isTest(f) || name == "config.go" || name == "extension.go" {
				continue
			}
			if strings.Contains(read(t, f), "\"github.com/envoyproxy/go-control-plane/") {
				t.Errorf("%s imports the proto: only config.go and extension.go do, and give plain structs to the rest", f)
			}
		}
	}
}
