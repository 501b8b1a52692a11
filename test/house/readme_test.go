package house_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var goBlock = regexp.MustCompile("(?s)\n```go\n(.*?)```")

// TestReadmeCompiles compiles the lines of the README that embed a proxy against the library as it is.
func TestReadmeCompiles(t *testing.T) {
	block := goBlock.FindStringSubmatch(read(t, "README.md"))
	if block == nil {
		t.Fatal("README.md shows no Go code")
	}
	if !exists("proxy/proxy.go") || !exists("extensions/standard") {
		t.Skip("the library is not written yet")
	}
	source := "// Package readme is what README.md shows.\npackage readme\n\nimport (\n\t\"context\"\n\n\t\"" + module + "/extensions/standard\"\n\t\"" + module +
		"/proxy\"\n)\n\nfunc embed(ctx context.Context) error {\n" + block[1] + "}\n\nvar _ = embed\n"
	compile(t, source)
}

// compile has the go command compile a package that exists only for it, as if it stood in the tree.
func compile(t *testing.T, source string) {
	t.Helper()
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "readme.go")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(top, "test/house/readme/readme.go"): file}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"readme.go": []byte(source), "overlay.json": overlay} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", os.DevNull, module+"/test/house/readme")
	cmd.Dir = top
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the code in README.md does not compile: %v\n%s\n%s", err, out, strings.TrimSpace(source))
	}
}
