package verdict_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/proxy"
	"github.com/dragoman-proxy/dragoman/test/verdict"
)

func TestVerdicts(t *testing.T) {
	cases, err := verdict.All()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			path := filepath.Join(dir, c.Name+".yaml")
			if err := os.WriteFile(path, []byte(c.YAML), 0o600); err != nil {
				t.Fatal(err)
			}
			r := proxy.Check(path, proxy.LoadOptions{}, proxy.WithExtensions(standard.All()...))
			said := make([]string, len(r.Problems))
			for i, p := range r.Problems {
				said[i] = p.Error()
				if p.Line == 0 || p.Path == "" {
					t.Errorf("no place in %q", p.Error())
				}
				if c.Envoy && (p.Kind == proxy.Unsupported) == c.Stricter {
					t.Errorf("%s is %s", p.Error(), p.Kind)
				}
			}
			if all := strings.Join(said, "\n"); r.OK() != c.Here || !strings.Contains(all, c.Says) {
				t.Errorf("accepted %v, want %v with %q:\n%s\n%s", r.OK(), c.Here, c.Says, all, c.YAML)
			}
		})
	}
}
