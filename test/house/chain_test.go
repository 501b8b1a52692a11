package house_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const chainPage = "docs/life-of-a-request.md"

var (
	chainItem = regexp.MustCompile("(?m)^[0-9]+\\. `([^`]+\\.go)`")
	nextLine  = regexp.MustCompile(`(?m)^// Next: (.+)$`)
	goPath    = regexp.MustCompile(`[\w./-]+\.go`)
)

// detour is how many files that the page does not list may stand between two that it does: they are details of the first.
const detour = 2

// TestChainIsWhole follows the request's path through the code: each file ends with a line that names the next one, as a
// path from the root or from proxy/internal, and so leads to the next file of the list.
func TestChainIsWhole(t *testing.T) {
	chain := chainOf(read(t, chainPage))
	if len(chain) < 10 {
		t.Fatalf("%s lists %d files, too few to be the chain", chainPage, len(chain))
	}
	source := func(file string) (string, bool) {
		if !exists(file) {
			return "", false
		}
		return read(t, file), true
	}
	for i, file := range chain {
		if !exists(file) {
			t.Errorf("%s names %s, which does not exist", chainPage, file)
		} else if i+1 < len(chain) {
			if problem := walk(source, file, chain[i+1]); problem != "" {
				t.Error(problem)
			}
		}
	}
}

// TestNextNamesFiles holds for every "Next:" line in the tree, in the chain or beside it.
func TestNextNamesFiles(t *testing.T) {
	for _, file := range files(t, isGo) {
		m := nextLine.FindStringSubmatch(read(t, file))
		if m == nil {
			continue
		}
		paths := nextPaths(m[1])
		if len(paths) == 0 {
			t.Errorf("%s: %q names no file", file, m[0])
		}
		for _, p := range paths {
			if !exists(p) {
				t.Errorf("%s: %q names %s, which does not exist", file, m[0], p)
			}
		}
	}
}

func TestChainRulesCanFail(t *testing.T) {
	for _, c := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{"cmd/a.go": "package a\n\n// Next: proxy/b.go\n"}, ""},
		{map[string]string{"cmd/a.go": "package a\n\n// Next: proxy/other.go, proxy/b.go\n"}, ""},
		{map[string]string{"cmd/a.go": "package a\n"}, "cmd/a.go has no line"},
		{map[string]string{"cmd/a.go": "package a\n\n// Next: proxy/b.go\n\nfunc f() {}\n"}, "is not its last line"},
		{map[string]string{"cmd/a.go": "// Next: proxy/c.go", "proxy/c.go": "// Next: proxy/b.go"}, ""},
		{map[string]string{"cmd/a.go": "// Next: proxy/c.go", "proxy/c.go": "// Next: proxy/d.go", "proxy/d.go": "// Next: proxy/b.go"}, ""},
		{map[string]string{"cmd/a.go": "// Next: proxy/c.go"}, "proxy/c.go does not exist"},
		{map[string]string{"cmd/a.go": "// Next: proxy/c.go", "proxy/c.go": "// Next: cmd/a.go"}, "does not lead to proxy/b.go"},
	} {
		source := func(file string) (string, bool) { s, ok := c.files[file]; return s, ok }
		got := walk(source, "cmd/a.go", "proxy/b.go")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%v: got %q, want %q", c.files, got, c.want)
		}
	}
	if got := nextPaths("host/host.go and lb/lb.go"); !slices.Equal(got, []string{"proxy/internal/host/host.go", "proxy/internal/lb/lb.go"}) {
		t.Errorf("short paths: %v", got)
	}
}

func chainOf(page string) []string {
	var chain []string
	for _, m := range chainItem.FindAllStringSubmatch(page, -1) {
		chain = append(chain, m[1])
	}
	return chain
}

// walk follows the last lines from one file and says why it does not come to the other.
func walk(source func(string) (string, bool), from, to string) (problem string) {
	file := from
	for range detour + 1 {
		text, ok := source(file)
		if !ok {
			return from + " leads to " + file + ", but " + file + " does not exist"
		}
		all := nextLine.FindAllStringSubmatch(text, -1)
		if len(all) == 0 {
			return file + " has no line \"// Next: FILE\" at its end; " + chainPage + " goes on with " + to
		}
		last := all[len(all)-1]
		if !strings.HasSuffix(strings.TrimSpace(text), last[0]) {
			return file + " has a line \"// Next:\" that is not its last line"
		}
		paths := nextPaths(last[1])
		if slices.Contains(paths, to) {
			return ""
		}
		if len(paths) == 0 {
			return file + ": " + last[0] + " names no file"
		}
		file = paths[0]
	}
	return from + " does not lead to " + to + ", which " + chainPage + " names after it"
}

// nextPaths reads the files out of a Next line. A path may leave out the engine's folder.
func nextPaths(s string) []string {
	tops := []string{"agent/", "api/", "cmd/", "control/", "examples/", "extensions/", "internal/", "proxy/", "test/", "tools/"}
	var paths []string
	for _, p := range goPath.FindAllString(s, -1) {
		if !slices.ContainsFunc(tops, func(top string) bool { return strings.HasPrefix(p, top) }) {
			p = "proxy/internal/" + p
		}
		paths = append(paths, p)
	}
	return paths
}
