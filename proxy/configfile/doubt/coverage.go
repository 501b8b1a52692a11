package doubt

import (
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/configfile"
)

// coverage is which paths the routes before have taken, as far as these had no other condition. The zero value is none.
type coverage struct {
	exact, folded paths // the second is in lower case: of routes that ignore the case
	any           int   // 1 more than the number of a route that takes all paths that begin with a slash
	regexes       map[string]int
}

// paths are those of one way of comparing, by their text; each has the number of its route.
type paths struct {
	whole, prefix, segments map[string]int
	longest                 int // of prefix and segments
}

// pathKeys are the fields of a match that say nothing but which paths it fits.
var pathKeys = []string{"prefix", "path", "path_separated_prefix", "safe_regex", "case_sensitive"}

// add takes the match of route i over, if a path is all that it asks for.
func (c *coverage) add(m *configfile.Value, i int) {
	for _, k := range m.Keys {
		if !slices.Contains(pathKeys, k) {
			return
		}
	}
	p, fold := &c.exact, same
	if m.Str("case_sensitive") == "false" {
		p, fold = &c.folded, strings.ToLower
	}
	switch prefix, regex := m.Get("prefix"), m.Get("safe_regex").Str("regex"); {
	case prefix != nil && len(prefix.Text) <= 1 && strings.HasPrefix("/", prefix.Text), regex == ".*", regex == "/.*":
		if c.any == 0 {
			c.any = i + 1
		}
	case prefix != nil:
		p.add(&p.prefix, fold(prefix.Text), i)
	case regex != "":
		put(&c.regexes, regex, i)
	case m.Get("path") != nil:
		put(&p.whole, fold(m.Str("path")), i)
	case m.Get("path_separated_prefix") != nil:
		p.add(&p.segments, fold(m.Str("path_separated_prefix")), i)
	}
}

func same(s string) string { return s }

func (p *paths) add(to *map[string]int, text string, i int) {
	p.longest = max(p.longest, len(text))
	put(to, text, i)
}

// put keeps the first.
func put(to *map[string]int, text string, i int) {
	if *to == nil {
		*to = map[string]int{}
	}
	if _, ok := (*to)[text]; !ok {
		(*to)[text] = i
	}
}

// of tells whether one of the routes before takes all that a match fits, and which.
func (c *coverage) of(m *configfile.Value) (i int, ok bool) {
	folded := m.Str("case_sensitive") == "false"
	if x := m.Get("safe_regex"); x != nil {
		if i, ok := c.regexes[x.Str("regex")]; ok {
			return i, true
		}
		return c.any - 1, c.any > 0 && beginsWithSlash(x.Str("regex"))
	}
	text, ends := "", kind(0)
	switch {
	case m.Get("path") != nil:
		text, ends = m.Str("path"), whole
	case m.Get("prefix") != nil:
		text, ends = m.Str("prefix"), open
	case m.Get("path_separated_prefix") != nil:
		text, ends = m.Str("path_separated_prefix"), segments
	default: // CONNECT has no path; templates are left alone
		return 0, false
	}
	if strings.HasPrefix(text, "/") && c.any > 0 {
		return c.any - 1, true
	}
	lower := strings.ToLower(text)
	if !folded || lower == strings.ToUpper(text) {
		if i, ok := c.exact.of(text, ends); ok {
			return i, true
		}
	}
	return c.folded.of(lower, ends)
}

// kind is what may follow the text of a match.
type kind uint8

const (
	whole    kind = iota // nothing
	open                 // anything
	segments             // nothing, or a slash and anything
)

// of finds a route that takes all paths of text and what may follow.
func (p *paths) of(text string, ends kind) (int, bool) {
	if ends == whole {
		if i, ok := p.whole[text]; ok {
			return i, true
		}
	}
	for n := 0; n <= min(len(text), p.longest); n++ {
		if i, ok := p.prefix[text[:n]]; ok {
			return i, true
		}
		if i, ok := p.segments[text[:n]]; ok && (n < len(text) && text[n] == '/' || n == len(text) && ends != open) {
			return i, true
		}
	}
	return 0, false
}

// beginsWithSlash tells whether all that a regular expression fits does.
func beginsWithSlash(regex string) bool {
	re, err := syntax.Parse(regex, syntax.Perl)
	if err != nil {
		return false
	}
	first, _ := literals(re)
	return strings.HasPrefix(first, "/")
}
