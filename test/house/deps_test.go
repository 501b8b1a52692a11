package house_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/dragoman-proxy/dragoman"

// products are the packages whose dependencies are committed, each in deps/NAME.txt: what gets into a binary is a
// decision, and shows as a diff.
var products = map[string]string{
	"proxy":    "./proxy",
	"dragoman": "./cmd/dragoman",
}

// TestDependencies compares the packages of each product, ours by path and others by module, with the committed list.
func TestDependencies(t *testing.T) {
	for name, pkg := range products {
		t.Run(name, func(t *testing.T) {
			if goFiles, _ := filepath.Glob(filepath.Join(root, pkg, "*.go")); len(goFiles) == 0 {
				t.Skipf("%s is not written yet", pkg)
			}
			head := "# What " + pkg + " links: packages of ours, modules of others, and those of the standard library that are worth knowing.\n"
			compareList(t, "test/house/deps/"+name+".txt", head, dependencies(t, pkg))
		})
	}
}

// notable are packages of the standard library that say something about a product: what it can do to the machine.
var notable = []string{"cgo", "net/http", "net/http/pprof", "os/exec", "os/user", "plugin", "reflect", "testing", "text/template", "unsafe"}

func dependencies(t *testing.T, pkg string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Module", pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	for dec := json.NewDecoder(out); ; {
		var p struct {
			ImportPath string
			Standard   bool
			Module     *struct{ Path string }
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		switch {
		case p.Standard:
			if slices.Contains(notable, p.ImportPath) {
				set["std "+p.ImportPath] = true
			}
		case p.Module.Path == module:
			set["our "+strings.TrimPrefix(p.ImportPath, module+"/")] = true
		default:
			set["mod "+p.Module.Path] = true
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	var list []string
	for s := range set {
		list = append(list, s)
	}
	slices.Sort(list)
	return list
}
