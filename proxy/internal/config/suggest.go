package config

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Nearest returns the candidate that word may have meant, "" if none is like it. Of those that are as like it the first in the
// alphabet wins.
func Nearest(word string, candidates []string) string {
	sort.Strings(candidates)
	return nearest(word, candidates)
}

// Among says which of names, those that there are of what, may have been meant by name: the nearest, or some of all if none is like it.
func (e *Error) Among(name, what string, names []string) {
	const most = 8
	names = slices.Clone(names)
	slices.Sort(names)
	switch names = slices.Compact(names); {
	case len(names) == 0:
		e.Advice = "there are no " + what
	case slices.Contains(names, name):
	default:
		if e.Suggestion = nearest(name, names); e.Suggestion == "" {
			e.Allowed = "the " + what + " " + someOf(names, most)
		}
	}
}

// nearest returns the candidate that is most like word, "" if none is like it. Case and underscores do not count.
func nearest(word string, candidates []string) string {
	return nearestWithin(word, candidates, len(word)/3)
}

// slip returns the candidate that differs from word by one edit, "" if there is none.
func slip(word string, candidates []string) string {
	w := fold(word)
	for _, c := range candidates {
		if distance(w, fold(c), 2) < 2 {
			return c
		}
	}
	return ""
}

// longer returns the first candidate that has more words, before or behind word, "" if there is none.
func longer(word string, candidates []string) string {
	for _, c := range candidates {
		if strings.HasPrefix(c, word+"_") || strings.HasSuffix(c, "_"+word) {
			return c
		}
	}
	return ""
}

// shorter returns the longest candidate that word begins with, or ends with as a word of its own, "" if there is none.
func shorter(word string, candidates []string) (best string) {
	const enough = 5 // letters that say something
	for _, c := range candidates {
		if len(c) >= enough && len(c) > len(best) && (strings.HasPrefix(fold(word), fold(c)) || strings.HasSuffix(word, "_"+c)) {
			best = c
		}
	}
	return best
}

// byWords returns the candidates in another order: those that share most words with word come first. sure tells that there is one of
// these, and that it has all of its words or at least two.
func byWords(word string, candidates []string) (sorted []string, sure bool) {
	words := singular(word)
	shared := func(c string) (n int) {
		for _, w := range singular(c) {
			if slices.Contains(words, w) {
				n++
			}
		}
		return n
	}
	counts := make(map[string]int, len(candidates))
	for _, c := range candidates {
		counts[c] = shared(c)
	}
	sorted = slices.Clone(candidates)
	slices.SortStableFunc(sorted, func(a, b string) int { return counts[b] - counts[a] })
	if len(sorted) == 0 || len(sorted) > 1 && counts[sorted[0]] == counts[sorted[1]] {
		return sorted, false
	}
	n := counts[sorted[0]]
	return sorted, n > 1 || n == 1 && len(words) == 1
}

// singular are the words of a name, in lower case, without the s of many.
func singular(name string) []string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	for i, w := range words {
		words[i] = strings.TrimSuffix(w, "s")
	}
	return words
}

// nearestWithin is nearest with a bound for the number of edits, at least 1.
func nearestWithin(word string, candidates []string, edits int) string {
	const maxWord = 128 // the distance takes quadratic time
	if word == "" || len(word) > maxWord {
		return ""
	}
	w := fold(word)
	best, bestDist := "", 1+max(edits, 1)
	for _, c := range candidates {
		if len(c) > maxWord {
			continue
		}
		f := fold(c)
		d := distance(w, f, bestDist)
		if d >= bestDist && len(w) >= 4 && (strings.HasPrefix(f, w) || strings.HasSuffix(f, w)) {
			d = bestDist - 1 // an abbreviation
			if best != "" {
				continue
			}
		}
		if d < bestDist {
			best, bestDist = c, d
		}
	}
	return best
}

func fold(s string) string { return strings.ReplaceAll(strings.ToLower(s), "_", "") }

// distance is the number of edits (insert, delete, replace, swap of neighbours) between a and b, or limit if it is more.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return min(prev[len(b)], limit)
}

// someOf joins names for a message, at most max of them.
func someOf(names []string, max int) string {
	if len(names) <= max {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, ... (%d in all)", strings.Join(names[:max], ", "), len(names))
}

// fieldNames lists the proto names of m's fields in alphabetical order. The list is m's.
func (m *message) fieldNames() []string {
	if m.names != nil {
		return m.names
	}
	names := make([]string, 0, len(m.fields))
	for key, f := range m.fields {
		if key == f.name {
			names = append(names, key)
		}
	}
	sort.Strings(names)
	m.names = names
	return names
}
