// Package corpustest reads a corpus of real configurations. It is a package of its own because it links in the types of
// many extensions. The corpus is not part of this repository: CORPUS_DIR names a folder with index.tsv and bootstraps/.
package corpustest

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/encoding/protojson"
)

type row struct{ file, verdict, reason, free string }

func corpus(t *testing.T) (dir string, rows []row) {
	dir = os.Getenv("CORPUS_DIR")
	if dir == "" {
		t.Skip("CORPUS_DIR is not set")
	}
	data, err := os.ReadFile(filepath.Join(dir, "index.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n")[1:] {
		f := strings.Split(line, "\t")
		for len(f) < 8 {
			f = append(f, "")
		}
		rows = append(rows, row{file: f[0], verdict: f[3], reason: f[4], free: f[7]})
	}
	return dir, rows
}

// placeholder stands in the corpus for paths of certificates and folders.
var placeholder = regexp.MustCompile(`@\{(\w+)\}`)

// refusedHere are the reasons of refusals that are a matter of this package; later checks find the others.
var refusedHere = []string{"could not find @type", "has unknown fields", "invalid JSON", "Proto constraint validation failed"}

func TestVerdicts(t *testing.T) {
	dir, rows := corpus(t)
	counts := map[string]int{}
	for _, r := range rows {
		data, err := os.ReadFile(filepath.Join(dir, r.file))
		if err != nil {
			t.Error(err)
			continue
		}
		data = placeholder.ReplaceAll(data, []byte("/$1"))
		var b bootstrapv3.Bootstrap
		_, err = config.Parse(r.file, data, &b, config.Options{})
		counts[r.verdict]++
		here := false
		for _, s := range refusedHere {
			here = here || strings.Contains(r.reason, s)
		}
		switch {
		case err != nil && strings.Contains(err.Error(), ".open_telemetry."):
			// Its protos need a module that this repository does not have yet.
		case err != nil && r.verdict == "accepted" && r.free == "":
			t.Errorf("%s is accepted by Envoy: %v", r.file, err)
		case err == nil && r.verdict == "refused" && here && r.free == "":
			t.Errorf("%s is refused by Envoy: %s", r.file, r.reason)
		case err != nil:
			var errs *config.Errors
			if !errors.As(err, &errs) || errs.List[0].Line == 0 {
				t.Errorf("%s: an error without a place: %v", r.file, err)
			}
			t.Logf("%s: %v\n\tEnvoy: %s", r.file, err, r.reason)
		}
		if err == nil && strings.HasSuffix(r.file, ".json") {
			var want bootstrapv3.Bootstrap
			// Compared as JSON, since the fields in the payload of an Any may stand in another order.
			if err := protojson.Unmarshal(data, &want); err == nil && protojson.Format(&want) != protojson.Format(&b) {
				t.Errorf("%s: differs from protojson", r.file)
			}
		}
	}
	t.Logf("%v", counts)
}
