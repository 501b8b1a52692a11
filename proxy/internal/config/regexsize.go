package config

import (
	"fmt"
	"regexp/syntax"
	"strconv"
	"unicode/utf8"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
)

// DefaultMaxRegexSize is re2.max_program_size.error_level without a runtime key.
const DefaultMaxRegexSize = 100

// regex refuses a RegexMatcher whose program is larger than what is allowed, by its own google_re2 or else by the runtime.
func (e *encoder) regex(n yamlpos.Node) {
	t := e.tree
	c, ok := t.Child(n, "regex")
	if !ok || t.Kind(c) != yamlpos.String {
		return
	}
	most, of := e.opts.MaxRegexSize(), " set for the error level threshold"
	for _, s := range childOf(childOf([]treeNode{{t, n}}, "google_re2"), "max_program_size") {
		if v, err := strconv.ParseUint(string(s.tree.Text(s.node)), 10, 32); err == nil {
			most, of = v, ""
		}
	}
	text := string(t.Text(c))
	if size := uint64(regexSize(text)); size > most {
		e.fail(c, Error{Kind: Invalid, Msg: fmt.Sprintf("regex '%s' RE2 program size of %d > max program size of %d%s. Increase configured max program size if necessary.",
			shorten(text), size, most, of), Advice: "the runtime key re2.max_program_size.error_level allows more"})
	}
}

// regexSize returns how many instructions RE2 needs at least for a regular expression, as Envoy compiles it: by bytes. It is what the
// bound re2.max_program_size.error_level is compared with. RE2 may need a few more, for choices that come together again; what it is
// certain to need is counted here, so that nothing is refused that Envoy takes. 0: it is no regular expression.
func regexSize(text string) int {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0
	}
	re = re.Simplify()
	const fixed = 2 // to fail, to match
	if anchored(re) {
		return fixed + instructions(re)
	}
	return fixed + 2 + instructions(re) // to begin anywhere
}

// anchored tells whether re can match at the beginning only.
func anchored(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginText:
		return true
	case syntax.OpConcat:
		return len(re.Sub) > 0 && anchored(re.Sub[0])
	case syntax.OpCapture:
		return anchored(re.Sub[0])
	}
	return false
}

// instructions counts those of re itself.
func instructions(re *syntax.Regexp) (n int) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			n += utf8.RuneLen(r)
		}
		return n
	case syntax.OpCharClass:
		return ranges(re.Rune)
	case syntax.OpAnyCharNotNL:
		return 2
	case syntax.OpAnyChar, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return 1
	case syntax.OpCapture:
		n = 2
	case syntax.OpPlus, syntax.OpQuest:
		n = 1
	case syntax.OpConcat:
		for i, s := range re.Sub {
			if i == 1 && s.Op == syntax.OpLiteral && re.Sub[0].Op == syntax.OpBeginText {
				continue // RE2 compares it before
			}
			// A repetition right behind one of the same is one with it.
			if i == 0 || !sameRepetition(re.Sub[i-1], s) {
				n += instructions(s)
			}
		}
		return n
	}
	for _, s := range re.Sub {
		n += instructions(s)
	}
	return n
}

func sameRepetition(a, b *syntax.Regexp) bool {
	repeats := func(re *syntax.Regexp) bool {
		return re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpQuest
	}
	switch {
	case repeats(a) && repeats(b):
		return a.Sub[0].Equal(b.Sub[0])
	case repeats(a):
		return a.Sub[0].Equal(b) || b.Op == syntax.OpLiteral && a.Sub[0].Op == syntax.OpLiteral
	}
	return false
}

// ranges counts the ranges of bytes of a class: what is beyond ASCII is one, at least, and capital letters need none of their own if the
// small ones are there as well.
func ranges(pairs []rune) (n int) {
	var small, capital uint32
	each := func(f func(lo, hi rune)) {
		for i := 0; i+1 < len(pairs); i += 2 {
			f(pairs[i], pairs[i+1])
		}
	}
	each(func(lo, hi rune) {
		for c := rune(0); c < 26; c++ {
			if lo <= 'a'+c && 'a'+c <= hi {
				small |= 1 << c
			}
			if lo <= 'A'+c && 'A'+c <= hi {
				capital |= 1 << c
			}
		}
	})
	folds, beyond := small == capital, false
	each(func(lo, hi rune) {
		switch {
		case lo > 0x7f:
			beyond = true
		case folds && 'A' <= lo && hi <= 'Z':
		default:
			n++
		}
	})
	if beyond && n == 0 {
		return 1
	}
	return n
}
