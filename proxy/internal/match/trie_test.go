package match_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
)

// A trie finds what trying all prefixes finds.
func TestTrieIsLinearSearch(t *testing.T) {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("ab/")), 0, 6, -1)
	rapid.Check(t, func(rt *rapid.T) {
		var b match.TrieBuilder[string]
		keys := rapid.SliceOfN(text, 1, 30).Draw(rt, "prefixes")
		for _, k := range keys {
			b.Set(k, k)
		}
		x := b.Build()
		for range 20 {
			s := rapid.StringOfN(rapid.RuneFrom([]rune("ab/")), 0, 9, -1).Draw(rt, "text")
			limit := rapid.IntRange(0, 9).Draw(rt, "limit")
			want, found := "", false
			for _, k := range keys {
				if strings.HasPrefix(s, k) && len(k) <= limit && (!found || len(k) > len(want)) {
					want, found = k, true
				}
			}
			if got, ok := x.Longest(s, limit); got != want || ok != found {
				rt.Fatalf("%q up to %d: %q, %v, want %q, %v", s, limit, got, ok, want, found)
			}
			last := -1
			for w := x.Walk(s); w.Next(); last = w.Len() {
				if w.Len() <= last || w.Value() != s[:w.Len()] {
					rt.Fatalf("%q: %q after %d", s, w.Value(), last)
				}
			}
		}
	})
}

func TestEmptyTrie(t *testing.T) {
	var b match.TrieBuilder[int]
	x := b.Build()
	if x != nil {
		t.Error("it is not nil")
	}
	if _, ok := x.Longest("a", 1); ok {
		t.Error("something is found")
	}
	if w := x.Walk("a"); w.Next() {
		t.Error("something is on the way")
	}
}
