// Package house_test checks the tree itself: that its parts are where the house says, that what is written about it holds,
// and that its measures are kept. It reads files and starts nothing but the go command.
package house_test

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the committed lists from the tree")

// root is the top of the tree, seen from this package.
const root = "../.."

// files returns the files of the tree, below the root, that keep reports true. Left out are what git ignores, test data,
// and hidden folders other than .ci.
func files(t *testing.T, keep func(rel string) bool) []string {
	t.Helper()
	var found []string
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
			hidden := strings.HasPrefix(d.Name(), ".") && rel != "." && rel != ".ci"
			if hidden || rel == "bin" || rel == "dist" || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if rel == ".git" { // of a second work tree, which says where the first one is
			return nil
		}
		if keep(rel) {
			found = append(found, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("no file was found: the test looks in the wrong place")
	}
	return found
}

func isGo(rel string) bool { return strings.HasSuffix(rel, ".go") }

func isTest(rel string) bool { return strings.HasSuffix(rel, "_test.go") }

func read(t *testing.T, rel string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, rel))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func exists(rel string) bool {
	_, err := os.Stat(filepath.Join(root, rel))
	return err == nil
}

// compareList compares a committed list with what the tree holds now, or rewrites it with -update. Lines that start
// with # are its head and stay.
func compareList(t *testing.T, rel, head string, now []string) {
	t.Helper()
	want := head
	for _, line := range now {
		want += line + "\n"
	}
	if *update {
		if err := os.WriteFile(filepath.Join(root, rel), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	old := map[string]bool{}
	if exists(rel) {
		for line := range strings.Lines(read(t, rel)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				old[line] = true
			}
		}
	}
	for _, line := range now {
		if !old[line] {
			t.Errorf("%s lacks: %s", rel, line)
		}
		delete(old, line)
	}
	for line := range old {
		t.Errorf("%s has, and the tree has not: %s", rel, line)
	}
	if t.Failed() {
		t.Logf("if that is meant: go test ./test/house -run '^%s$' -update, and say why in the commit", t.Name())
	}
}
