package stats

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MaxTags bounds the tags of one stat.
const MaxTags = 32

// Tag is a name and a value that were taken out of a stat's name, or that every stat has.
type Tag struct {
	Name, Value string
}

// TagRule is one entry of stats_config.stats_tags. With a Regex, its first group is what is cut out of the name and its
// second, if there is one, the value, even an empty one; with neither Regex nor Fixed it switches a default tag on by its name.
type TagRule struct {
	Name  string
	Regex TagRegex
	Fixed string
	// HasFixed tells that Fixed counts though it is "".
	HasFixed bool
}

// TagConfig says how tags are made.
type TagConfig struct {
	NoDefaults bool // use_all_default_tags: false
	Rules      []TagRule
	Fixed      []Tag // --stats-tag: before those of Rules
}

// Tagger takes tags out of stat names. It is immutable and may be used from any thread.
type Tagger struct {
	noPrefix []tagRule            // tried for every name
	byPrefix map[string][]tagRule // tried for names whose first token is the key
	custom   bool                 // there are regexes from the configuration
}

// tagRule finds one tag. find returns the ranges that are cut out and that are the value; without find the tag is on every stat.
// Of several rules for one tag the first that finds it counts.
type tagRule struct {
	tag   string
	find  func(n *tokens) (cut, value span, ok bool)
	fixed string
}

type span struct{ from, to int }

// NewTagger checks a configuration. Tags come in Envoy's order: default tags whose rules hold for any name, fixed tags and regexes
// that do so, then those for names that begin with a certain token.
func NewTagger(cfg TagConfig) (*Tagger, error) {
	t := &Tagger{byPrefix: make(map[string][]tagRule)}
	if !cfg.NoDefaults {
		for _, d := range defaultTags {
			t.add(d.prefix, d.tagRule)
		}
	}
	for _, f := range cfg.Fixed {
		t.add("", tagRule{tag: f.Name, fixed: f.Value})
	}
	fixed := len(cfg.Fixed)
	for i, r := range cfg.Rules {
		if err := t.addRule(r, cfg.NoDefaults); err != nil {
			return nil, &RuleError{i, err}
		}
		if r.Regex == nil && r.fixed() {
			fixed++
		}
	}
	if fixed > MaxTags/2 {
		return nil, fmt.Errorf("stats_tags: %d fixed values, at most %d are possible", fixed, MaxTags/2)
	}
	return t, nil
}

// RuleError says which of TagConfig.Rules is wrong.
type RuleError struct {
	Rule int
	Err  error
}

func (e *RuleError) Error() string { return fmt.Sprintf("stats_tags[%d]: %v", e.Rule, e.Err) }

// Unwrap returns what is wrong with it.
func (e *RuleError) Unwrap() error { return e.Err }

func (r *TagRule) fixed() bool { return r.Fixed != "" || r.HasFixed }

// Extract returns a name without its tags and appends the tags to tags, in Envoy's order. Without tags it returns name
// itself.
func (t *Tagger) Extract(name string, tags []Tag) (string, []Tag) {
	e := extractor{tagger: t}
	cuts, tags := e.find(name, tags)
	if len(cuts) == 0 {
		return name, tags
	}
	return strings.TrimRight(string(cutOut(nil, name, cuts)), "."), tags
}

// extractor is the memory that an extraction needs, for those who make many.
type extractor struct {
	tagger *Tagger
	n      tokens
	cuts   [MaxTags]span
	count  int
}

// find appends the tags of a name to tags and returns the ranges that they are cut out of, valid until the next call.
func (e *extractor) find(name string, tags []Tag) ([]span, []Tag) {
	first := len(tags)
	e.count = 0
	known := e.n.split(name)
	tags = e.apply(e.tagger.noPrefix, tags, first, known)
	if known && e.n.count > 1 {
		tags = e.apply(e.tagger.byPrefix[e.n.at(0)], tags, first, known)
	}
	return e.cuts[:e.count], tags
}

// apply tries rules in order; the tags of this name begin at first. A name that is not known has fixed tags only.
func (e *extractor) apply(rules []tagRule, tags []Tag, first int, known bool) []Tag {
	for i := range rules {
		r := &rules[i]
		if r.find == nil {
			if !hasTag(tags[first:], r.tag) {
				tags = append(tags, Tag{Name: r.tag, Value: r.fixed})
			}
			continue
		}
		if !known || e.count == MaxTags {
			continue
		}
		cut, value, ok := r.find(&e.n)
		if !ok || hasTag(tags[first:], r.tag) {
			continue
		}
		tags = append(tags, Tag{Name: r.tag, Value: e.n.name[value.from:value.to]})
		e.cuts[e.count] = cut
		e.count++
	}
	return tags
}

func hasTag(tags []Tag, name string) bool {
	return slices.ContainsFunc(tags, func(t Tag) bool { return t.Name == name })
}

func (t *Tagger) add(prefix string, r tagRule) {
	if prefix == "" {
		t.noPrefix = append(t.noPrefix, r)
		return
	}
	t.byPrefix[prefix] = append(t.byPrefix[prefix], r)
}

func (t *Tagger) addRule(r TagRule, noDefaults bool) error {
	switch {
	case r.Name == "":
		return errors.New("tag_name cannot be empty")
	case r.Regex != nil:
		t.custom = true
		t.add(regexPrefix(r.Regex.String()),
			tagRule{tag: r.Name, find: func(n *tokens) (span, span, bool) { return findRegex(r.Regex, n.name) }})
	case r.fixed():
		t.add("", tagRule{tag: r.Name, fixed: r.Fixed})
	default:
		found := false
		for _, d := range defaultTags {
			if d.tag == r.Name {
				found = true
				if noDefaults {
					t.add(d.prefix, d.tagRule)
				}
			}
		}
		if !found {
			return fmt.Errorf("No regex specified for tag specifier and no default regex for name: '%s'", r.Name) //nolint:staticcheck // Envoy's text
		}
	}
	return nil
}

func findRegex(re TagRegex, name string) (cut, value span, ok bool) {
	m := re.FindStringSubmatchIndex(name)
	if len(m) < 4 {
		return span{}, span{}, false
	}
	cut = span{max(m[2], 0), max(m[3], 0)} // a group that took no part is -1, -1
	if value = cut; len(m) >= 6 {
		value = span{max(m[4], 0), max(m[5], 0)}
	}
	return cut, value, true
}

// regexPrefix returns the first token that a name must have to match, "" if the regex does not say: what Envoy uses to try a
// regex only where it can match. It decides about the order of tags, too.
func regexPrefix(re string) string {
	rest, ok := strings.CutPrefix(re, "^")
	if !ok {
		return ""
	}
	n := 0
	for n < len(rest) && isWord(rest[n]) {
		n++
	}
	dot := strings.HasPrefix(rest[n:], `\.`) || strings.HasPrefix(rest[n:], `(?=\.)`)
	if n == 0 || !dot && rest[n:] != "$" {
		return ""
	}
	return rest[:n]
}

// cutOut appends what is left of a name without ranges, which may overlap and come in any order.
func cutOut(dst []byte, name string, cuts []span) []byte {
	if len(cuts) > 1 {
		slices.SortFunc(cuts, func(a, b span) int { return a.from - b.from })
	}
	at := 0
	for _, c := range cuts {
		if c.from > at {
			dst = append(dst, name[at:c.from]...)
		}
		at = max(at, c.to)
	}
	return append(dst, name[at:]...)
}

// maxTokens bounds the tokens of a name that are looked at. A name with more has no tags.
const maxTokens = 64

// tokens is a name split at its dots.
type tokens struct {
	name  string
	count int
	ends  [maxTokens]int
}

func (n *tokens) split(name string) bool {
	n.name, n.count = name, 0
	for at := 0; ; {
		if n.count == maxTokens {
			return false
		}
		dot := strings.IndexByte(name[at:], '.')
		if dot < 0 {
			n.ends[n.count] = len(name)
			n.count++
			return true
		}
		n.ends[n.count] = at + dot
		n.count++
		at += dot + 1
	}
}

func (n *tokens) start(i int) int {
	if i == 0 {
		return 0
	}
	return n.ends[i-1] + 1
}

// at returns token i, "" past the end.
func (n *tokens) at(i int) string {
	if i < 0 || i >= n.count {
		return ""
	}
	return n.name[n.start(i):n.ends[i]]
}

// value is the range of token i, token that of i with the dot behind it.
func (n *tokens) value(i int) span { return span{n.start(i), n.ends[i]} }
func (n *tokens) token(i int) span { return span{n.start(i), n.ends[i] + 1} }

// cutToken is what most rules find: token i and the dot that follows it.
func (n *tokens) cutToken(i int) (cut, value span, ok bool) {
	if i+1 >= n.count || n.start(i) == n.ends[i] {
		return span{}, span{}, false
	}
	return n.token(i), n.value(i), true
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func all(s string, ok func(c byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return s != ""
}
