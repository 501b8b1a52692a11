//go:build peers

package peer_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/test/verdict"
)

// TestVerdicts asks the real Envoy what it says of the bootstraps whose verdict our own tests check.
func TestVerdicts(t *testing.T) {
	envoy := realEnvoy(t)[0]
	cases, err := verdict.All()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, c := range cases {
		got, said := validate(t, envoy, write(t, filepath.Join(dir, c.Name+".yaml"), c.YAML))
		if want := map[bool]string{true: "accepted", false: "refused"}[c.Envoy]; got != want {
			t.Errorf("%s is %s, want %s: %s", c.Name, got, want, said)
		}
		if one := strings.Join(strings.Fields(said), " "); !c.Envoy && !strings.Contains(one, c.Says) {
			t.Errorf("%s: %s, want %q", c.Name, one, c.Says)
		}
	}
}
