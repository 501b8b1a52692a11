//go:build peers

package peer_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/extensions/standard"
	lib "github.com/dragoman-proxy/dragoman/proxy"
	"github.com/dragoman-proxy/dragoman/test/mutant"
)

// TestMutants changes bootstraps that both accept, and compares what the real Envoy's --mode validate says of each with what Check
// says: 99 of 100 verdicts must be the same. One that it accepts and cannot start with is refused. $MUTANTS is how many there are (100), $MUTANT_SEED makes others, and $CORPUS is a folder of
// further bootstraps, in which @{cert} @{key} @{ca} @{text} @{empty_xds} @{dir} stand for files that the test makes.
func TestMutants(t *testing.T) {
	envoy := realEnvoy(t)[0]
	count, err := strconv.Atoi(cmp.Or(os.Getenv("MUTANTS"), "100"))
	if err != nil {
		t.Fatal(err)
	}
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("MUTANT_SEED"), "1"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	originals := acceptedByBoth(t, envoy, dir)
	if len(originals) == 0 {
		t.Fatal("no bootstrap is accepted by both")
	}
	jobs := make(chan int)
	var all sync.WaitGroup
	var mu sync.Mutex
	agreed, judged := 0, 0
	for range 4 {
		all.Go(func() {
			for i := range jobs {
				o := originals[i%len(originals)]
				v, what := mutant.Mutate(o.tree, rand.New(rand.NewPCG(seed, uint64(i))))
				path := filepath.Join(dir, fmt.Sprintf("mutant-%d.json", i))
				if err := os.WriteFile(path, mutant.Write(v), 0o600); err != nil {
					t.Error(err)
					continue
				}
				want, said := validate(t, envoy, path)
				got := lib.Check(path, lib.LoadOptions{}, lib.WithExtensions(standard.All()...))
				if want == "accepted" && !got.OK() && ends(t, envoy, path) {
					want, said = "refused", "when it starts"
				}
				mu.Lock()
				switch {
				case want == "crashed": // then there is no verdict
				case (want == "accepted") == got.OK():
					agreed++
					judged++
				default:
					judged++
					t.Logf("DIFFERS %d %s: %s\n  envoy %s: %s\n  we: %s", i, o.name, what, want, said, told(got))
				}
				for _, p := range got.Problems {
					if p.Line == 0 {
						t.Errorf("%d %s: %s: no place in %q", i, o.name, what, p.Error())
					}
				}
				mu.Unlock()
				_ = os.Remove(path)
			}
		})
	}
	for i := range count {
		jobs <- i
	}
	close(jobs)
	all.Wait()
	t.Logf("%d of %d verdicts are Envoy's, of mutants of %d bootstraps", agreed, judged, len(originals))
	if agreed*100 < judged*99 {
		t.Errorf("fewer than 99%% of the verdicts are Envoy's")
	}
}

type original struct {
	name string
	tree any
}

// acceptedByBoth reads the bootstraps of the tree and of $CORPUS.
func acceptedByBoth(t *testing.T, envoy, dir string) (list []original) {
	t.Helper()
	fill := placeholders(t, dir)
	roots := []string{filepath.Join(sourceDir, "..", "mutant", "testdata")}
	if c := os.Getenv("CORPUS"); c != "" {
		roots = append(roots, c)
	}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !slices.Contains([]string{".yaml", ".json"}, filepath.Ext(path)) {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			tree, err := mutant.Read([]byte(fill.Replace(string(data))))
			if err != nil {
				return nil
			}
			out := write(t, filepath.Join(dir, "original.json"), string(mutant.Write(tree)))
			if !lib.Check(out, lib.LoadOptions{}, lib.WithExtensions(standard.All()...)).OK() {
				return nil
			}
			if v, _ := validate(t, envoy, out); v == "accepted" {
				list = append(list, original{filepath.Base(path), tree})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// sourceDir is the folder of these tests, which begin there.
var sourceDir, _ = os.Getwd()

// placeholders makes the files that bootstraps name.
func placeholders(t *testing.T, dir string) *strings.Replacer {
	t.Helper()
	ca := newAuthority(t)
	cert, key := ca.issue("localhost")
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("@{cert}", write(t, filepath.Join(dir, "cert.pem"), cert), "@{key}", write(t, filepath.Join(dir, "key.pem"), key),
		"@{ca}", write(t, filepath.Join(dir, "ca.pem"), ca.pem), "@{text}", write(t, filepath.Join(dir, "text.txt"), "text\n"),
		"@{empty_xds}", write(t, filepath.Join(dir, "empty_xds.yaml"), "resources: []\n"), "@{dir}", empty)
}

// validate asks the real Envoy. A verdict is accepted, refused or crashed.
func validate(t *testing.T, envoy, path string) (verdict, said string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, envoy, "--mode", "validate", "-l", "error", "--concurrency", "1", "-c", path)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "accepted", ""
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		text := strings.TrimSpace(string(out))
		if _, rest, ok := strings.Cut(text, "error initializing configuration"); ok {
			text = rest
		}
		return "refused", text[:min(len(text), 700)]
	}
	return "crashed", err.Error()
}

// ends tells whether the real Envoy, started with a configuration that its --mode validate accepts, ends by itself: the validation leaves
// out what only a server does (subscriptions of listeners and routes, clusters that come over the network). It runs in a network namespace
// of its own, which has every port free; where there can be none it is not asked.
func ends(t *testing.T, envoy, path string) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "unshare", "--net", "--", "sh", "-c", `ip link set lo up; exec "$@"`, "sh",
		envoy, "-l", "warning", "--concurrency", "1", "--use-dynamic-base-id", "-c", path)
	out, err := c.CombinedOutput()
	text := string(out)
	// A namespace has only loopback addresses: what cannot be bound says nothing of the configuration.
	asked := !errors.Is(err, exec.ErrNotFound) && !strings.Contains(text, "unshare:") && !strings.Contains(text, "ip: not found")
	return asked && ctx.Err() == nil && !strings.Contains(text, "bind")
}

func told(r *lib.Report) string {
	var b strings.Builder
	for i, p := range r.Problems {
		if i == 3 {
			fmt.Fprintf(&b, "; and %d more", len(r.Problems)-i)
			break
		}
		b.WriteString(p.Error() + "; ")
	}
	return cmp.Or(b.String(), "accepted")
}
