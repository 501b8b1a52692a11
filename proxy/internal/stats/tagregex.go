package stats

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// TagRegex finds a tag in a name. A *regexp.Regexp is one.
type TagRegex interface {
	// FindStringSubmatchIndex returns the places of the leftmost match and of its groups, nil if there is none.
	FindStringSubmatchIndex(s string) []int
	String() string
}

// CompileTagRegex compiles an expression of stats_tags: ECMAScript's, as far as RE2 has the same, and its lookaheads. They may hold no
// groups. There are no back references.
func CompileTagRegex(text string) (TagRegex, error) {
	x := &lookahead{text: text}
	rest, err := x.cutOut(text)
	if err != nil {
		return nil, err
	}
	if len(x.looks) == 0 {
		return regexp.Compile(text) //ban:allow bannedcall stats_tags are searched for, not matched as a whole; their groups are needed
	}
	re, err := syntax.Parse(rest, syntax.Perl)
	if err != nil {
		return nil, err
	}
	for i, name := range re.CapNames() {
		x.groups = append(x.groups, i-len(x.isLook))
		if n := lookIndex(name); n >= 0 {
			x.groups[i] = -1 - n
			x.isLook = append(x.isLook, i)
		}
	}
	x.prog, err = syntax.Compile(re.Simplify())
	return x, err
}

// lookName is the name of the empty groups that stand for lookaheads.
const lookName = "dragoman_lookahead_"

func lookIndex(name string) int {
	n, ok := strings.CutPrefix(name, lookName)
	if !ok || n == "" {
		return -1
	}
	return len(n) - 1
}

// lookahead is an expression with lookaheads. It is immutable.
type lookahead struct {
	text string
	prog *syntax.Prog
	// looks are the lookaheads, in the order in which they stand there, each as an expression that begins where it stands.
	looks []look
	// groups are the numbers of the program's groups in text: -1-i for lookahead i.
	groups []int
	isLook []int
}

type look struct {
	re  *regexp.Regexp
	not bool
}

func (x *lookahead) String() string { return x.text }

// errPreceded is what Envoy's library says of groups of a kind that it does not know.
var errPreceded = errors.New("One of *?+{ was not preceded by a valid regular expression.") //nolint:staticcheck // Envoy's text

// cutOut replaces lookaheads by empty groups with names.
func (x *lookahead) cutOut(text string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); {
		n, err := step(text[i:])
		if err != nil {
			return "", err
		}
		if !strings.HasPrefix(text[i:], "(?=") && !strings.HasPrefix(text[i:], "(?!") {
			b.WriteString(text[i : i+n])
			i += n
			continue
		}
		end, err := closing(text, i+3)
		if err != nil {
			return "", err
		}
		re, err := regexp.Compile(`\A(?:` + text[i+3:end] + `)`) //ban:allow bannedcall see CompileTagRegex
		if err != nil {
			return "", err
		}
		x.looks = append(x.looks, look{re, text[i+2] == '!'})
		fmt.Fprintf(&b, "(?P<%s%s>)", lookName, strings.Repeat("x", len(x.looks)))
		i = end + 1
	}
	return b.String(), nil
}

// step returns the length of the escape, class, beginning of a group or other character that text begins with.
func step(text string) (int, error) {
	switch {
	case text[0] == '\\' && len(text) > 1:
		if text[1] >= '1' && text[1] <= '9' {
			return 0, errors.New("back references are not supported yet")
		}
		return 2, nil
	case text[0] == '[':
		return class(text), nil
	case strings.HasPrefix(text, "(?"):
		if len(text) < 3 || !strings.ContainsRune(":=!", rune(text[2])) {
			return 0, errPreceded
		}
		return 3, nil
	}
	return 1, nil
}

// class returns the length of the character class that text begins with.
func class(text string) int {
	first := 1
	if strings.HasPrefix(text, "[^") {
		first = 2
	}
	for i := first; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case strings.HasPrefix(text[i:], "[:"):
			if n := strings.Index(text[i:], ":]"); n > 0 {
				i += n + 1
			}
		case text[i] == ']' && i > first:
			return i + 1
		}
	}
	return len(text)
}

// closing returns where the group ends whose inside begins at i.
func closing(text string, i int) (int, error) {
	for depth := 0; i < len(text); {
		switch {
		case text[i] == ')' && depth == 0:
			return i, nil
		case text[i] == ')':
			depth--
		case strings.HasPrefix(text[i:], "(?:"):
			depth++
		case text[i] == '(':
			return 0, errors.New("groups in a lookahead are not supported yet")
		}
		n, err := step(text[i:])
		if err != nil {
			return 0, err
		}
		i += n
	}
	return 0, errors.New("a group is not closed")
}

// FindStringSubmatchIndex implements TagRegex. It takes time in proportion to the sizes of the expression and the name: what has been
// tried at a place is not tried there again.
func (x *lookahead) FindStringSubmatchIndex(s string) []int {
	m := lookMatch{x: x, s: s, tried: make([]bool, len(x.prog.Inst)*(len(s)+1)), at: make([]int, 2*(len(x.groups)-len(x.isLook)))}
	for start := 0; start <= len(s); start++ {
		for i := range m.at {
			m.at[i] = -1
		}
		m.at[0] = start
		if m.run(uint32(x.prog.Start), start) {
			return slices.Clone(m.at)
		}
	}
	return nil
}

type lookMatch struct {
	x     *lookahead
	s     string
	tried []bool
	at    []int
}

// run tells whether the program, from one of its instructions, matches what stands at pos.
func (m *lookMatch) run(pc uint32, pos int) bool {
	for {
		n := int(pc)*(len(m.s)+1) + pos
		if m.tried[n] {
			return false
		}
		m.tried[n] = true
		i := &m.x.prog.Inst[pc]
		switch i.Op {
		case syntax.InstMatch:
			m.at[1] = pos
			return true
		case syntax.InstFail:
			return false
		case syntax.InstAlt, syntax.InstAltMatch:
			if m.run(i.Out, pos) {
				return true
			}
			pc = i.Arg
			continue
		case syntax.InstCapture:
			if g := m.x.groups[i.Arg/2]; g >= 0 {
				return m.group(i, 2*g+int(i.Arg%2), pos)
			} else if i.Arg%2 == 0 && m.x.looks[-1-g].re.MatchString(m.s[pos:]) == m.x.looks[-1-g].not {
				return false
			}
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(i.Arg)&^m.around(pos) != 0 {
				return false
			}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			r, size := utf8.DecodeRuneInString(m.s[pos:])
			if size == 0 || !i.MatchRune(r) {
				return false
			}
			pos += size
		}
		pc = i.Out
	}
}

// group notes where a group begins or ends, and forgets it again if that does not lead to a match.
func (m *lookMatch) group(i *syntax.Inst, slot, pos int) bool {
	was := m.at[slot]
	m.at[slot] = pos
	if m.run(i.Out, pos) {
		return true
	}
	m.at[slot] = was
	return false
}

// around is what is true of a place that has no width.
func (m *lookMatch) around(pos int) syntax.EmptyOp {
	before, after := rune(-1), rune(-1)
	if pos > 0 {
		before, _ = utf8.DecodeLastRuneInString(m.s[:pos])
	}
	if pos < len(m.s) {
		after, _ = utf8.DecodeRuneInString(m.s[pos:])
	}
	return syntax.EmptyOpContext(before, after)
}
