package yamlpos

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// ParseYAML reads the first document of a YAML stream. src is kept and must not change as long as the tree is used.
//
// A document that is strict JSON is read by the JSON scanner, which is many times faster, with the scalar rules of YAML.
// Aliases are expanded; their nodes keep the place where the anchor stood. Merge keys are not: as in Envoy, << is a key like any other.
// Of duplicate keys the last wins, as in Envoy. A map key with the tag !ignore is left out with its value, a place to put anchors in.
func ParseYAML(file string, src []byte) (*Tree, error) {
	if len(src) > MaxSource {
		return nil, &SyntaxError{Pos: Pos{File: file, Line: 1, Col: 1}, Msg: fmt.Sprintf("the file is larger than %d bytes", MaxSource)}
	}
	if looksLikeJSON(src) {
		if t, err := parseJSON(file, src, true, Outline{}); err == nil && !t.hasDuplicates() {
			return t, nil
		}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil {
		return nil, yamlError(file, src, err)
	}
	b := yamlBuilder{t: &Tree{file: file, src: src, yaml: true, places: &places{}}, lines: lineStarts(src)}
	root := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: 1, Column: 1}
	if doc.Kind == yaml.DocumentNode && len(doc.Content) > 0 {
		root = doc.Content[0]
	}
	b.t.nodes = make([]node, 0, len(src)/32+8)
	if err := b.value(0, key{}, root); err != nil {
		return nil, err
	}
	b.t.rest = nextDocument(file, src, b.lines, root.Line)
	return b.t, nil
}

// nextDocument returns where a document behind the one that begins in line first stands, a zero Pos if there is none with anything in it.
func nextDocument(file string, src []byte, lines []uint32, first int) (p Pos) {
	for n := first + 1; n <= len(lines); n++ {
		l := lineAt(src, lines, n)
		switch rest, ok := bytes.CutPrefix(l, []byte("---")); {
		case !ok && p.Line > 0 && len(bytes.TrimSpace(l)) > 0 && bytes.TrimSpace(l)[0] != '#':
			return p
		case !ok || len(rest) > 0 && rest[0] != ' ':
		case len(bytes.TrimSpace(rest)) > 0:
			return Pos{File: file, Line: n, Col: 1}
		case p.Line == 0:
			p = Pos{File: file, Line: n, Col: 1}
		}
	}
	return Pos{}
}

func looksLikeJSON(src []byte) bool {
	src = bytes.TrimLeft(src, " \t\r\n")
	return len(src) > 1 && src[0] == '{'
}

// hasDuplicates tells whether a map of the tree has a key twice: in YAML the last one replaces the others, in JSON they merge.
func (t *Tree) hasDuplicates() bool {
	seen := map[string]bool{}
	for i := range t.nodes {
		n := Node(i)
		if t.nodes[i].kind != Map || t.nodes[i].n < 2 {
			continue
		}
		if t.nodes[i].n <= 12 { // most maps: comparing costs less than hashing
			for a := t.First(n); a < t.End(n); a = t.End(a) {
				for b := t.End(a); b < t.End(n); b = t.End(b) {
					if bytes.Equal(t.Key(a), t.Key(b)) {
						return true
					}
				}
			}
			continue
		}
		clear(seen)
		for c := t.First(n); c < t.End(n); c = t.End(c) {
			if seen[string(t.Key(c))] {
				return true
			}
			seen[string(t.Key(c))] = true
		}
	}
	return false
}

type yamlBuilder struct {
	t       *Tree
	lines   []uint32 // offset of the start of each line
	last    struct{ line, col, off int }
	open    map[*yaml.Node]bool // anchors that are being expanded
	inAlias int
	aliased int // nodes added inside aliases
}

func (b *yamlBuilder) errAt(n *yaml.Node, format string, args ...any) error {
	return &SyntaxError{Pos: Pos{File: b.t.file, Line: n.Line, Col: n.Column}, Msg: fmt.Sprintf(format, args...)}
}

func lineStarts(src []byte) []uint32 {
	starts := make([]uint32, 1, bytes.Count(src, []byte{'\n'})+1)
	for i, c := range src {
		if c == '\n' {
			starts = append(starts, uint32(i+1))
		}
	}
	return starts
}

// offset turns the line and column of the YAML library, which counts characters, into a byte offset.
func (b *yamlBuilder) offset(n *yaml.Node) uint32 {
	if n.Line < 1 || n.Line > len(b.lines) {
		return 0
	}
	// A document may be one long line: go on from where the last node of the line was.
	off, col := int(b.lines[n.Line-1]), 1
	if b.last.line == n.Line && b.last.col <= n.Column {
		off, col = b.last.off, b.last.col
	}
	for ; col < n.Column && off < len(b.t.src); col++ {
		_, size := utf8.DecodeRune(b.t.src[off:])
		off += size
	}
	b.last.line, b.last.col, b.last.off = n.Line, n.Column, off
	return uint32(off)
}

func (b *yamlBuilder) add(k key, kind Kind, n *yaml.Node) (int, error) {
	if b.inAlias > 0 {
		if b.aliased++; b.aliased > MaxAliasNodes {
			return 0, b.errAt(n, "aliases expand to more than %d values", MaxAliasNodes)
		}
	}
	t := b.t
	t.nodes = append(t.nodes, node{
		keyOff: k.off, keyLen: k.n, keyPos: k.pos, flags: k.flags,
		pos: b.offset(n), end: uint32(len(t.nodes) + 1), kind: kind,
	})
	return len(t.nodes) - 1, nil
}

func (b *yamlBuilder) text(s string) (off, n uint32) {
	off = uint32(len(b.t.aux))
	b.t.aux = append(b.t.aux, s...)
	return off, uint32(len(s))
}

func (b *yamlBuilder) value(depth int, k key, n *yaml.Node) error {
	switch n.Kind {
	case yaml.AliasNode:
		return b.alias(n, func(target *yaml.Node) error { return b.value(depth, k, target) })
	case yaml.MappingNode:
		return b.mapping(depth+1, k, n)
	case yaml.SequenceNode:
		return b.sequence(depth+1, k, n)
	case yaml.ScalarNode:
		at, err := b.add(k, String, n)
		if err != nil {
			return err
		}
		nd := &b.t.nodes[at]
		nd.off, nd.n = b.text(n.Value)
		nd.flags |= flagAux
		b.resolve(at, n)
		return nil
	}
	return b.errAt(n, "unexpected YAML node")
}

func (b *yamlBuilder) alias(n *yaml.Node, use func(*yaml.Node) error) error {
	if b.open[n.Alias] {
		return b.errAt(n, "anchor '%s' contains itself", n.Value)
	}
	if b.open == nil {
		b.open = map[*yaml.Node]bool{}
	}
	b.open[n.Alias] = true
	b.inAlias++
	err := use(n.Alias)
	b.inAlias--
	delete(b.open, n.Alias)
	return err
}

func (b *yamlBuilder) sequence(depth int, k key, n *yaml.Node) error {
	if depth > MaxDepth {
		return b.errAt(n, "nested deeper than %d levels", MaxDepth)
	}
	at, err := b.add(k, Seq, n)
	if err != nil {
		return err
	}
	for _, e := range n.Content {
		if err := b.value(depth, key{}, e); err != nil {
			return err
		}
	}
	b.t.nodes[at].n = uint32(len(n.Content))
	b.t.nodes[at].end = uint32(len(b.t.nodes))
	return nil
}

// pair is an entry of a mapping once duplicates are settled.
type pair struct {
	name       string
	key, value *yaml.Node
}

func (b *yamlBuilder) mapping(depth int, k key, n *yaml.Node) error {
	if depth > MaxDepth {
		return b.errAt(n, "nested deeper than %d levels", MaxDepth)
	}
	at, err := b.add(k, Map, n)
	if err != nil {
		return err
	}
	pairs, err := b.collect(n)
	if err != nil {
		return err
	}
	for _, p := range pairs {
		ck := key{pos: b.offset(p.key), flags: flagKeyAux}
		ck.off, ck.n = b.text(p.name)
		if err := b.value(depth, ck, p.value); err != nil {
			return err
		}
	}
	b.t.nodes[at].n = uint32(len(pairs))
	b.t.nodes[at].end = uint32(len(b.t.nodes))
	return nil
}

// maxRepeated bounds how many keys that stand twice are kept.
const maxRepeated = 100

// repeat notes that a key stands twice. What an alias repeats has been noted at its anchor.
func (b *yamlBuilder) repeat(name string, before, n *yaml.Node) {
	if b.inAlias == 0 && len(b.t.repeated) < maxRepeated {
		b.t.repeated = append(b.t.repeated, Repeated{Key: name, Before: Pos{File: b.t.file, Line: before.Line, Col: before.Column},
			Pos: Pos{File: b.t.file, Line: n.Line, Col: n.Column}})
	}
}

// collect settles which value each key has: of duplicates the last wins. A merge key is a key like any other.
func (b *yamlBuilder) collect(n *yaml.Node) ([]pair, error) {
	pairs := make([]pair, 0, len(n.Content)/2)
	index := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		kn, vn := n.Content[i], n.Content[i+1]
		if kn.Tag == "!ignore" {
			continue
		}
		if kn.Kind == yaml.AliasNode {
			kn = kn.Alias
		}
		if kn.Kind != yaml.ScalarNode {
			return nil, b.errAt(kn, "a key must be a scalar; a text that begins with a brace or a bracket needs quotes")
		}
		name := kn.Value
		if kn.Tag == "!!null" {
			name = "null"
		}
		if at, dup := index[name]; dup {
			b.repeat(name, pairs[at].key, kn)
			pairs[at] = pair{name: name, key: kn, value: vn}
			continue
		}
		index[name] = len(pairs)
		pairs = append(pairs, pair{name: name, key: kn, value: vn})
	}
	return pairs, nil
}

// resolve gives a scalar its kind by the rules of Envoy's YAML reader, which are those of yaml-cpp's conversions: text in
// quotes or blocks is a string; then null, boolean, 64-bit integer; all else, floats included, stays a string.
func (b *yamlBuilder) resolve(at int, n *yaml.Node) {
	nd := &b.t.nodes[at]
	tagged := n.Style&yaml.TaggedStyle != 0
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		nd.flags |= flagQuoted
		if !tagged {
			return
		}
	}
	if tagged && n.Tag == "!" {
		return
	}
	switch v := n.Value; v {
	case "", "~", "null", "Null", "NULL":
		if !tagged && nd.flags&flagQuoted == 0 {
			nd.kind = Null
			return
		}
	}
	if v, ok := yamlBool(n.Value); ok {
		nd.kind = Bool
		if v {
			nd.flags |= flagTrue
		}
		return
	}
	b.t.resolveNumber(at)
}

// yamlBool knows y, yes, true, on and their opposites in lower, upper or title case.
func yamlBool(s string) (value, ok bool) {
	if len(s) == 0 || len(s) > 5 {
		return false, false
	}
	lower := strings.ToLower(s)
	if s != lower && s != strings.ToUpper(s) && s != strings.ToUpper(lower[:1])+lower[1:] {
		return false, false
	}
	switch lower {
	case "y", "yes", "true", "on":
		return true, true
	case "n", "no", "false", "off":
		return false, true
	}
	return false, false
}

// resolveNumber makes a scalar a Number if it is a 64-bit integer in C notation; hexadecimal and octal text is rewritten
// in decimal. Anything else becomes a String.
func (t *Tree) resolveNumber(at int) {
	nd := &t.nodes[at]
	text := t.Text(Node(at))
	v, ok := yamlInt(string(text))
	if !ok {
		nd.kind = String
		return
	}
	nd.kind = Number
	if dec := strconv.FormatInt(v, 10); dec != string(text) {
		nd.off = uint32(len(t.aux))
		nd.n = uint32(len(dec))
		nd.flags |= flagAux
		t.aux = append(t.aux, dec...)
	}
}

func yamlInt(s string) (int64, bool) {
	digits := s
	if digits != "" && (digits[0] == '+' || digits[0] == '-') {
		digits = digits[1:]
	}
	base := 10
	switch {
	case len(digits) > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'):
		digits, base = digits[2:], 16
	case len(digits) > 1 && digits[0] == '0':
		digits, base = digits[1:], 8
	}
	if digits == "" || digits[0] == '+' || digits[0] == '-' {
		return 0, false
	}
	if s[0] == '-' {
		digits = "-" + digits
	}
	v, err := strconv.ParseInt(digits, base, 64)
	return v, err == nil
}
