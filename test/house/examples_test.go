package house_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples has the real command validate every configuration that stands in examples itself, and asks for each to be
// described. A folder is a program that brings its own extensions: it has a test of its own instead.
func TestExamples(t *testing.T) {
	page := read(t, "examples/README.md")
	var configs []string
	tested := map[string]bool{}
	for _, file := range files(t, func(rel string) bool { return strings.HasPrefix(rel, "examples/") }) {
		name := strings.TrimPrefix(file, "examples/")
		if folder, _, inFolder := strings.Cut(name, "/"); inFolder {
			tested[folder] = tested[folder] || isTest(file)
		} else if ext := filepath.Ext(name); ext == ".yaml" || ext == ".json" {
			configs = append(configs, file)
			if !strings.Contains(page, "`"+name+"`") {
				t.Errorf("examples/README.md does not describe %s", name)
			}
		}
	}
	for folder, ok := range tested {
		if !ok {
			t.Errorf("examples/%s has no test", folder)
		}
		if !strings.Contains(page, "`"+folder+"/`") {
			t.Errorf("examples/README.md does not describe %s/", folder)
		}
	}
	if len(configs) == 0 {
		t.Skip("there are no examples yet")
	}
	binary := buildCommand(t)
	for _, file := range configs {
		t.Run(file, func(t *testing.T) {
			cmd := exec.Command(binary, "proxy", "--mode", "validate", "-c", file)
			cmd.Dir = root
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func buildCommand(t *testing.T) string {
	t.Helper()
	if !exists("cmd/dragoman") {
		t.Skip("the command is not written yet")
	}
	binary := filepath.Join(t.TempDir(), "dragoman")
	cmd := exec.Command("go", "build", "-o", binary, "./cmd/dragoman")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}
