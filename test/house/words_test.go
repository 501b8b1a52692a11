package house_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const wordList = "test/house/testdata/words.txt"

// TestWords keeps out of the tree what means something on one machine or in one workplace only. The list is a file, so
// that it can be changed without code: a regular expression, a tab, what to write instead.
func TestWords(t *testing.T) {
	words := wordsOf(t, read(t, wordList))
	for _, file := range files(t, isText) {
		for _, p := range wordProblems(words, read(t, file)) {
			t.Errorf("%s:%s", file, p)
		}
	}
}

func TestWordRulesCanFail(t *testing.T) {
	words := wordsOf(t, read(t, wordList))
	for _, c := range []struct {
		text string
		hits int
	}{
		{"see /" + "home/somebody/src\n", 1},
		{"nothing\nopen /" + "root/.cache/x\n", 1},
		{"a home of one's own, the root of the tree\n", 0},
		{"http://127.0.0.1/home/page\n", 0},
	} {
		if got := wordProblems(words, c.text); len(got) != c.hits {
			t.Errorf("%q: %q, want %d", c.text, got, c.hits)
		}
	}
}

type word struct {
	re      *regexp.Regexp
	instead string
}

func wordsOf(t *testing.T, list string) []word {
	t.Helper()
	var words []word
	for line := range strings.Lines(list) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		re, instead, ok := strings.Cut(line, "\t")
		if !ok {
			t.Fatalf("%s: no tab in %q", wordList, line)
		}
		words = append(words, word{regexp.MustCompile(re), strings.TrimSpace(instead)})
	}
	if len(words) == 0 {
		t.Fatalf("%s is empty", wordList)
	}
	return words
}

func wordProblems(words []word, text string) []string {
	var problems []string
	n := 0
	for line := range strings.Lines(text) {
		n++
		for _, w := range words {
			if m := w.re.FindString(line); m != "" {
				problems = append(problems, strconv.Itoa(n)+": "+strings.TrimSpace(m)+": "+w.instead)
			}
		}
	}
	return problems
}

// isText says whether people read a file: everything but pictures, archives and sums.
func isText(rel string) bool {
	for _, suffix := range []string{".sum", ".png", ".gz", ".pb", ".bin", ".pem", ".key", ".crt"} {
		if strings.HasSuffix(rel, suffix) {
			return false
		}
	}
	info, err := os.Stat(root + "/" + rel)
	return err == nil && info.Size() < 1<<20
}
