package mutant_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/proxy"
	"github.com/dragoman-proxy/dragoman/test/mutant"
)

// patience is what the check of a mutant may take: it is about hangs, not about speed.
const patience = 30 * time.Second

// FuzzBootstrap checks bootstraps with up to three mistakes. No mutant may end the process or keep it busy, and whatever is wrong
// must be said with its place.
func FuzzBootstrap(f *testing.F) {
	originals := bootstraps(f)
	for i := range len(originals) * 6 {
		f.Add(uint8(i), uint64(i))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, which uint8, seed uint64) {
		v, r := originals[int(which)%len(originals)], rand.New(rand.NewPCG(seed, 0))
		var did []string
		for range 1 + r.IntN(3) {
			var what string
			v, what = mutant.Mutate(v, r)
			did = append(did, what)
		}
		path := filepath.Join(dir, "bootstrap.json")
		if err := os.WriteFile(path, mutant.Write(v), 0o600); err != nil {
			t.Fatal(err)
		}
		guard := time.AfterFunc(patience, func() { panic("no answer in time to " + strings.Join(did, "; ")) })
		defer guard.Stop()
		for _, p := range proxy.Check(path, proxy.LoadOptions{}, proxy.WithExtensions(standard.All()...)).Problems {
			if p.Line < 1 || p.Col < 1 || p.Msg == "" || p.Kind == "" {
				t.Errorf("%s: no place in %+v", strings.Join(did, "; "), p)
			}
		}
	})
}

// TestOriginals checks that the bootstraps are right before they are changed.
func TestOriginals(t *testing.T) {
	for i, v := range bootstraps(t) {
		path := filepath.Join(t.TempDir(), "bootstrap.json")
		if err := os.WriteFile(path, mutant.Write(v), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := proxy.Check(path, proxy.LoadOptions{}, proxy.WithExtensions(standard.All()...)); !r.OK() {
			t.Errorf("%d: %+v", i, r.Problems)
		}
	}
}

// TestMutantsAreTheSame checks that a seed makes the same mutant each time.
func TestMutantsAreTheSame(t *testing.T) {
	v := bootstraps(t)[0]
	for seed := range uint64(50) {
		a, what := mutant.Mutate(v, rand.New(rand.NewPCG(seed, 1)))
		b, again := mutant.Mutate(v, rand.New(rand.NewPCG(seed, 1)))
		if what != again || string(mutant.Write(a)) != string(mutant.Write(b)) {
			t.Errorf("seed %d: %s, then %s", seed, what, again)
		}
	}
}

// bootstraps reads those of this folder. Certificates are those of a test that is not about them.
func bootstraps(t testing.TB) (list []any) {
	t.Helper()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert, key := pair(t)
	fill := strings.NewReplacer("@{cert}", file("cert.pem", cert), "@{key}", file("key.pem", key), "@{ca}", file("ca.pem", cert),
		"@{text}", file("text.txt", "text\n"), "@{empty_xds}", file("empty.yaml", "resources: []\n"), "@{dir}", dir)
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no bootstraps", err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		v, err := mutant.Read([]byte(fill.Replace(string(data))))
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		list = append(list, v)
	}
	return list
}
