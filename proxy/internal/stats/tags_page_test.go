package stats_test

import (
	"strings"
	"testing"

	api "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// samePage checks that a stat prints the same as part of a group and by itself, with the last split tokens of its name in the
// template: what the fast way through a page promises.
func samePage(t *testing.T, tg *stats.Tagger, name string, split int) {
	t.Helper()
	at := len(name)
	for range split%3 + 1 {
		if at = strings.LastIndexByte(name[:at], '.'); at < 0 {
			return
		}
	}
	template, err := api.NewTemplate("t", api.Counter(0, name[at+1:]))
	if err != nil {
		t.Fatal(err)
	}
	group, single := stats.NewStore(), stats.NewStore()
	group.Root().Scope(name[:at]).Group(template)
	single.Root().Counter(name)
	if a, b := page(t, group, tg), page(t, single, tg); a != b {
		t.Fatalf("%q split at %d\ngroup  %ssingle %s", name, at, a, b)
	}
}

func page(t *testing.T, s *stats.Store, tg *stats.Tagger) string {
	t.Helper()
	s.Collect()
	o, err := s.Prometheus(stats.Query{}, tg)
	if err != nil {
		t.Fatal(err)
	}
	return string(stats.WriteAll(o))
}
