package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/proxy"
)

// knownButMissing are messages of extensions that there are not, which are known nevertheless: they are parts of other messages.
var knownButMissing = []string{
	"envoy.config.", "google.protobuf.Empty", "xds.type.matcher.v3.CelMatcher", "xds.type.matcher.v3.HttpAttributesCelMatchInput",
}

// An extension whose message the proxy reads is one that it has: the page would else say of what works that it does not.
func TestCompatMissesNothing(t *testing.T) {
	have := map[string]bool{}
	for _, e := range ours(t) {
		for _, u := range e.TypeURLs {
			have[u] = true
		}
	}
	var missing []string
	text := "static_resources:\n  clusters:\n  - name: c\n    metadata:\n      typed_filter_metadata:\n"
	for _, e := range envoys(t) {
		for _, u := range e.TypeURLs {
			if !slices.ContainsFunc(e.TypeURLs, func(u string) bool { return have[u] }) {
				text += fmt.Sprintf("        k%d: {\"@type\": type.googleapis.com/%s}\n", len(missing), u)
				missing = append(missing, u)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "envoy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, p := range proxy.Check(path, proxy.LoadOptions{MaxProblems: 2 * len(missing)}, proxy.WithExtensions(standard.All()...)).Problems {
		_, rest, _ := strings.Cut(p.Msg, "type.googleapis.com/")
		u, _, _ := strings.Cut(rest, "'")
		told[u] = true
	}
	if len(told) < len(missing)/2 {
		t.Fatalf("%d of %d are not known", len(told), len(missing))
	}
next:
	for _, u := range missing {
		for _, known := range knownButMissing {
			if strings.HasPrefix(u, known) {
				continue next
			}
		}
		if !told[u] {
			t.Errorf("%s is read, and no extension of it is listed (engineExtensions)", u)
		}
	}
}
