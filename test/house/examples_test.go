package house_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples has the real command validate every configuration under examples, and asks for each to be described.
// What an example does when it runs is shown by the scenarios.
func TestExamples(t *testing.T) {
	page := read(t, "examples/README.md")
	var configs []string
	for _, file := range files(t, func(rel string) bool { return strings.HasPrefix(rel, "examples/") }) {
		if ext := filepath.Ext(file); ext == ".yaml" || ext == ".json" {
			configs = append(configs, file)
		}
	}
	for _, file := range configs {
		if name := strings.TrimPrefix(file, "examples/"); !strings.Contains(page, "`"+name+"`") {
			t.Errorf("examples/README.md does not describe %s", name)
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
