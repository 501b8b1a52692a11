package yamlpos

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// ParseJSON reads a JSON document. src is kept and must not change as long as the tree is used.
//
// Like protobuf's reader in the mode in which Envoy runs it, it also takes single-quoted strings, bare keys, trailing
// commas and raw control characters in strings, and it keeps duplicate keys in their order: what they mean (the last
// scalar wins, messages merge) is up to the caller.
func ParseJSON(file string, src []byte) (*Tree, error) {
	return parseJSON(file, src, false, Outline{})
}

// parseJSON is strict for YAML (yaml), where the lenient forms mean something else.
func parseJSON(file string, src []byte, yaml bool, o Outline) (*Tree, error) {
	if len(src) > MaxSource {
		return nil, &SyntaxError{Pos: Pos{File: file, Line: 1, Col: 1}, Msg: fmt.Sprintf("the file is larger than %d bytes", MaxSource)}
	}
	p := jsonParser{src: src, outline: o, t: &Tree{file: file, src: src, yaml: yaml, places: &places{}}}
	switch {
	case o.Into != nil:
		*o.Into = Tree{file: file, src: src, nodes: o.Into.nodes[:0], aux: o.Into.aux[:0], places: &places{}}
		p.t = o.Into
	case len(o.Lists) == 0:
		// One node for every 16 to 20 bytes is what machine-written configurations have; growing by doubling would cost a copy
		// and, at its peak, twice the memory.
		p.t.nodes = make([]node, 0, len(src)/16+8)
	}
	p.space()
	if !p.value(0, key{}) {
		return nil, p.err
	}
	p.space()
	if p.i < len(src) {
		p.fail(p.i, "extraneous characters after end of JSON object")
		return nil, p.err
	}
	return p.t, nil
}

// key is where the key of the value that is read next stands.
type key struct {
	off, n, pos uint32
	flags       uint8
}

type jsonParser struct {
	src     []byte
	i       int
	t       *Tree
	err     *SyntaxError
	outline Outline
	inside  bool // in the map of one of outline.Parents
}

func (p *jsonParser) fail(off int, format string, args ...any) bool {
	if p.err == nil {
		p.err = &SyntaxError{Pos: placeOf(p.t.file, p.src, off), Msg: fmt.Sprintf(format, args...)}
	}
	return false
}

func (p *jsonParser) space() {
	for p.i < len(p.src) {
		switch p.src[p.i] {
		case ' ', '\n', '\t', '\r':
			p.i++
		default:
			return
		}
	}
}

// unexpected reports the character at the cursor, or the end of the file.
func (p *jsonParser) unexpected(expected string) bool {
	if p.i >= len(p.src) {
		return p.fail(p.i, "unexpected end of file; expected %s", expected)
	}
	r, _ := utf8.DecodeRune(p.src[p.i:])
	return p.fail(p.i, "unexpected character: %q; expected %s", r, expected)
}

func (p *jsonParser) add(k key, kind Kind) int {
	p.t.nodes = append(p.t.nodes, node{
		keyOff: k.off, keyLen: k.n, keyPos: k.pos, flags: k.flags,
		pos: uint32(p.i), end: uint32(len(p.t.nodes) + 1), kind: kind,
	})
	return len(p.t.nodes) - 1
}

func (p *jsonParser) value(depth int, k key) bool {
	if p.i >= len(p.src) {
		return p.unexpected("a value")
	}
	switch c := p.src[p.i]; {
	case c == '{':
		return p.object(depth+1, k)
	case c == '[':
		return p.array(depth+1, k)
	case c == '"' || c == '\'' && !p.t.yaml:
		at := p.add(k, String)
		off, n, aux, ok := p.quoted(c)
		nd := &p.t.nodes[at]
		nd.off, nd.n = off, n
		nd.flags |= flagQuoted
		if aux {
			nd.flags |= flagAux
		}
		return ok
	case c == '-' || c >= '0' && c <= '9':
		return p.number(k)
	}
	return p.literal(k)
}

func (p *jsonParser) object(depth int, k key) bool {
	if depth > MaxDepth {
		return p.fail(p.i, "nested deeper than %d levels", MaxDepth)
	}
	at := p.add(k, Map)
	p.i++
	count := uint32(0)
	for {
		p.space()
		if p.i < len(p.src) && p.src[p.i] == '}' {
			p.i++
			break
		}
		k, ok := p.key()
		if !ok {
			return false
		}
		p.space()
		if p.i >= len(p.src) || p.src[p.i] != ':' {
			return p.unexpected("':'")
		}
		p.i++
		p.space()
		if depth < rawDepth && len(p.outline.Lists) > 0 {
			ok = p.outlined(depth, k)
		} else {
			ok = p.value(depth, k)
		}
		if !ok {
			return false
		}
		count++
		p.space()
		if p.i < len(p.src) && p.src[p.i] == ',' {
			p.i++
			continue
		}
		if p.i >= len(p.src) || p.src[p.i] != '}' {
			return p.unexpected("',' or '}'")
		}
	}
	p.close(at, count)
	return true
}

func (p *jsonParser) array(depth int, k key) bool {
	if depth > MaxDepth {
		return p.fail(p.i, "nested deeper than %d levels", MaxDepth)
	}
	at := p.add(k, Seq)
	p.i++
	return p.elements(at, func() bool { return p.value(depth, key{}) })
}

// elements reads the rest of a list behind its bracket.
func (p *jsonParser) elements(at int, value func() bool) bool {
	count := uint32(0)
	for {
		p.space()
		if p.i < len(p.src) && p.src[p.i] == ']' {
			p.i++
			break
		}
		if !value() {
			return false
		}
		count++
		p.space()
		if p.i < len(p.src) && p.src[p.i] == ',' {
			p.i++
			continue
		}
		if p.i >= len(p.src) || p.src[p.i] != ']' {
			return p.unexpected("',' or ']'")
		}
	}
	p.close(at, count)
	return true
}

func (p *jsonParser) close(at int, count uint32) {
	p.t.nodes[at].n = count
	p.t.nodes[at].end = uint32(len(p.t.nodes))
}

func (p *jsonParser) key() (key, bool) {
	if p.i >= len(p.src) {
		return key{}, p.unexpected("a key or '}'")
	}
	k := key{pos: uint32(p.i)}
	if c := p.src[p.i]; c == '"' || c == '\'' && !p.t.yaml {
		off, n, aux, ok := p.quoted(c)
		k.off, k.n = off, n
		if aux {
			k.flags = flagKeyAux
		}
		return k, ok
	}
	start := p.i
	for p.i < len(p.src) && isWord(p.src[p.i]) && !p.t.yaml {
		p.i++
	}
	if p.i == start || p.src[start] >= '0' && p.src[start] <= '9' {
		p.i = start
		return k, p.unexpected("a key in double quotes or '}'")
	}
	k.off, k.n = uint32(start), uint32(p.i-start)
	return k, true
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// plain marks the bytes that may stand in a string without a closer look.
var plain = func() (t [256]bool) {
	for c := ' '; c < 0x80; c++ {
		t[c] = c != '"' && c != '\'' && c != '\\'
	}
	return t
}()

// quoted reads a string and returns where its text is; only a string with escapes is copied (aux).
func (p *jsonParser) quoted(quote byte) (off, n uint32, aux, ok bool) {
	open := p.i
	i, wide := open+1, false
	for i < len(p.src) {
		c := p.src[i]
		if plain[c] {
			i++
			continue
		}
		switch {
		case c == quote:
			if wide && !utf8.Valid(p.src[open+1:i]) {
				return 0, 0, false, p.fail(open, "the string is not valid UTF-8")
			}
			p.i = i + 1
			return uint32(open + 1), uint32(i - open - 1), false, true
		case c == '\\':
			return p.escaped(quote, open, i)
		case c >= utf8.RuneSelf:
			wide = true
		case c < ' ' && p.t.yaml: // YAML folds line breaks
			return 0, 0, false, p.fail(i, "control character in a string")
		}
		i++
	}
	return 0, 0, false, p.fail(open, "the string is not closed")
}

// escaped goes on where quoted met the first backslash, at i.
func (p *jsonParser) escaped(quote byte, open, i int) (off, n uint32, aux, ok bool) {
	t := p.t
	start := len(t.aux)
	t.aux = append(t.aux, p.src[open+1:i]...)
	for i < len(p.src) {
		c := p.src[i]
		if c == quote {
			if !utf8.Valid(t.aux[start:]) {
				return 0, 0, true, p.fail(open, "the string is not valid UTF-8")
			}
			p.i = i + 1
			return uint32(start), uint32(len(t.aux) - start), true, true
		}
		if c < ' ' && t.yaml {
			return 0, 0, true, p.fail(i, "control character in a string")
		}
		if c != '\\' {
			t.aux = append(t.aux, c)
			i++
			continue
		}
		if i+1 >= len(p.src) {
			break
		}
		switch e := p.src[i+1]; e {
		case '"', '\'', '\\', '/':
			t.aux = append(t.aux, e)
		case 'b':
			t.aux = append(t.aux, '\b')
		case 'f':
			t.aux = append(t.aux, '\f')
		case 'n':
			t.aux = append(t.aux, '\n')
		case 'r':
			t.aux = append(t.aux, '\r')
		case 't':
			t.aux = append(t.aux, '\t')
		case 'u':
			size, good := p.unicode(i)
			if !good {
				return 0, 0, true, false
			}
			i += size
			continue
		default:
			return 0, 0, true, p.fail(i, "invalid escape char: %q", rune(e))
		}
		i += 2
	}
	return 0, 0, true, p.fail(open, "the string is not closed")
}

// unicode decodes \uXXXX, or a surrogate pair of them, at i and returns how many bytes it took.
func (p *jsonParser) unicode(i int) (int, bool) {
	r, ok := hex4(p.src, i)
	if !ok {
		return 0, p.fail(i, "\\u needs four hexadecimal digits")
	}
	size := 6
	if utf16.IsSurrogate(r) {
		low, ok := hex4(p.src, i+6)
		if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
			return 0, p.fail(i, "\\u begins a surrogate pair that is not completed")
		}
		size = 12
	}
	p.t.aux = utf8.AppendRune(p.t.aux, r)
	return size, true
}

func hex4(src []byte, i int) (rune, bool) {
	if i+6 > len(src) || src[i] != '\\' || src[i+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range src[i+2 : i+6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// number takes a JSON number (RFC 8259 section 6) and keeps its text.
func (p *jsonParser) number(k key) bool {
	at := p.add(k, Number)
	start, i, src := p.i, p.i, p.src
	if src[i] == '-' {
		i++
	}
	digits := func() bool {
		from := i
		for i < len(src) && src[i] >= '0' && src[i] <= '9' {
			i++
		}
		return i > from
	}
	lead := i
	if !digits() {
		return p.fail(start, "invalid number: a '-' without digits")
	}
	if src[lead] == '0' && i-lead > 1 {
		return p.fail(start, "number cannot have extraneous leading zero")
	}
	if i < len(src) && src[i] == '.' {
		i++
		if !digits() {
			return p.fail(start, "invalid number: no digit after the decimal point")
		}
	}
	if i < len(src) && (src[i] == 'e' || src[i] == 'E') {
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		if !digits() {
			return p.fail(start, "invalid number: no digit in the exponent")
		}
	}
	if i < len(src) && (isWord(src[i]) || src[i] == '.') {
		return p.fail(start, "invalid number: %q", src[start:i+1])
	}
	nd := &p.t.nodes[at]
	nd.off, nd.n = uint32(start), uint32(i-start)
	p.i = i
	if p.t.yaml {
		p.t.resolveNumber(at)
	}
	return true
}

func (p *jsonParser) literal(k key) bool {
	start := p.i
	for p.i < len(p.src) && isWord(p.src[p.i]) {
		p.i++
	}
	word := string(p.src[start:p.i])
	kind, flags := Null, uint8(0)
	switch word {
	case "true":
		kind, flags = Bool, flagTrue
	case "false":
		kind = Bool
	case "null":
	default:
		p.i = start
		return p.unexpected("a value")
	}
	end := p.i
	p.i = start
	at := p.add(k, kind)
	p.i = end
	nd := &p.t.nodes[at]
	nd.flags |= flags
	nd.off, nd.n = uint32(start), uint32(len(word))
	return true
}
