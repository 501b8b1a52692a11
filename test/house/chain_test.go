package house_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pending lists files of the chain that are not written yet. It only shrinks.
var pending = []string{
	"cmd/dragoman/proxy.go",
	"proxy/proxy.go",
	"proxy/internal/server/worker.go",
	"proxy/internal/listener/accept.go",
	"proxy/internal/listener/chain.go",
	"proxy/internal/hcm/conn.go",
	"proxy/internal/codec/h2/session.go",
	"proxy/internal/fm/stream.go",
	"proxy/internal/route/table.go",
	"proxy/internal/router/router.go",
	"proxy/internal/cluster/pick.go",
	"proxy/internal/pool/pool.go",
	"proxy/internal/hcm/finish.go",
}

const chainPage = "docs/life-of-a-request.md"

var (
	chainItem = regexp.MustCompile("(?m)^[0-9]+\\. `([^`]+\\.go)`")
	nextLine  = regexp.MustCompile(`(?m)^// Next: (.+)$`)
	goPath    = regexp.MustCompile(`[\w./-]+\.go`)
)

// TestChainIsWhole follows the request's path through the code: each file of the list ends with a line that names the
// next one, as a path from the root or from proxy/internal.
func TestChainIsWhole(t *testing.T) {
	chain := chainOf(read(t, chainPage))
	if len(chain) < 10 {
		t.Fatalf("%s lists %d files, too few to be the chain", chainPage, len(chain))
	}
	for i, file := range chain {
		if !exists(file) {
			if !slices.Contains(pending, file) {
				t.Errorf("%s names %s, which does not exist", chainPage, file)
			}
			continue
		}
		if slices.Contains(pending, file) {
			t.Logf("%s exists now: take it off the list of pending files in chain_test.go", file)
		}
		if i+1 == len(chain) {
			continue
		}
		if problem := nextProblem(read(t, file), chain[i+1]); problem != "" {
			t.Errorf("%s %s", file, problem)
		}
	}
	for _, file := range pending {
		if !slices.Contains(chain, file) {
			t.Errorf("%s is pending, but %s does not name it", file, chainPage)
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
			if !exists(p) && !slices.Contains(pending, p) {
				t.Errorf("%s: %q names %s, which does not exist", file, m[0], p)
			}
		}
	}
}

func TestChainRulesCanFail(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"package a\n\n// Next: proxy/proxy.go\n", ""},
		{"package a\n\n// Next: proxy/proxy.go, proxy/other.go\n", ""},
		{"package a\n", "has no line"},
		{"package a\n\n// Next: proxy/other.go\n", "names proxy/other.go"},
		{"package a\n\n// Next: proxy/proxy.go\n\nfunc f() {}\n", "is not its last line"},
	} {
		got := nextProblem(c.source, "proxy/proxy.go")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.source, got, c.want)
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

func nextProblem(source, next string) string {
	all := nextLine.FindAllStringSubmatch(source, -1)
	if len(all) == 0 {
		return "has no line \"// Next: " + next + "\" at its end"
	}
	last := all[len(all)-1]
	if paths := nextPaths(last[1]); !slices.Contains(paths, next) {
		return "names " + strings.Join(paths, ", ") + " as next, " + chainPage + " names " + next
	}
	if !strings.HasSuffix(strings.TrimSpace(source), last[0]) {
		return "has a line \"// Next:\" that is not its last line"
	}
	return ""
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
