package yamlpos

import (
	"bytes"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// variable is a reference to a variable with nothing wrong about it.
var variable = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}\n]*)?\}`)

// masked are the characters of a reference that mean something in YAML, and maskBase begins the private characters that stand for them
// while the text is parsed.
const (
	masked   = "{}[],:#"
	maskBase = 0xE000
)

// MaskVariables returns src with references to variables in a form that YAML takes for plain text, also inside of flow maps, where
// {port: ${PORT}} could not be read. Each character stays one character, so that places hold. Substitute takes the mask off.
func MaskVariables(src []byte) []byte {
	if !bytes.Contains(src, []byte("${")) {
		return src
	}
	return variable.ReplaceAllFunc(src, func(ref []byte) []byte {
		out := make([]byte, 0, 2*len(ref))
		for _, r := range string(ref) {
			if i := strings.IndexRune(masked, r); i >= 0 {
				r = maskBase + rune(i)
			}
			out = utf8.AppendRune(out, r)
		}
		return out
	})
}

func unmask(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= maskBase && r < maskBase+rune(len(masked)) {
			return rune(masked[r-maskBase])
		}
		return r
	}, s)
}

// unquotedVariable finds the reference to a variable that a YAML text breaks at for want of quotes: with it masked, the error, which is
// msg, is another or none. ok is false if there is no such.
func unquotedVariable(src []byte, msg string) (off int, ref string, ok bool) {
	refs := variable.FindAllIndex(src, -1)
	if len(refs) == 0 || len(src) > maxSearched {
		return 0, "", false
	}
	same := func(n int) bool { // with the first n masked
		end := refs[n-1][1]
		err := yaml.Unmarshal(append(MaskVariables(src[:end:end]), src[end:]...), new(yaml.Node))
		return err != nil && err.Error() == msg
	}
	n := 1 + sort.Search(len(refs), func(i int) bool { return !same(i + 1) })
	if n > len(refs) {
		return 0, "", false
	}
	at := refs[n-1]
	return at[0], string(src[at[0]:at[1]]), true
}

// Substitute replaces ${NAME} and ${NAME:-default} in the values of t by what lookup says; the default is taken for a variable that is
// not set or empty. $${ stands for ${. Keys and comments stay. In YAML a value without quotes means afterwards what it would mean if
// the text stood there: ${PORT} becomes a number.
//
// The errors are all that was wrong: a variable that is not set, and what is no reference. t must not be shared yet.
func (t *Tree) Substitute(lookup func(name string) (value string, ok bool)) []*SyntaxError {
	s := substitution{t: t, lookup: lookup}
	t.lookup = lookup
	for i := range t.nodes {
		if t.nodes[i].kind <= String {
			s.scalar(Node(i))
		}
		if key := t.Key(Node(i)); bytes.ContainsRune(key, '$') { // it only loses the mask
			nd, name := &t.nodes[i], unmask(string(key))
			nd.keyOff, nd.keyLen = uint32(len(t.aux)), uint32(len(name))
			nd.flags |= flagKeyAux
			t.aux = append(t.aux, name...)
		}
	}
	return s.errs
}

// substitution is a pass over a tree.
type substitution struct {
	t      *Tree
	lookup func(string) (string, bool)
	errs   []*SyntaxError
}

func (s *substitution) scalar(n Node) {
	t := s.t
	old := t.Text(n)
	if !bytes.ContainsRune(old, '$') {
		return
	}
	text := s.expand(n, unmask(string(old)))
	if text == "" {
		if t.emptied == nil {
			t.emptied = map[Node]string{}
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(unmask(string(old)), "${"), "}")
		t.emptied[n], _, _ = strings.Cut(name, ":-")
	}
	nd := &t.nodes[n]
	nd.off, nd.n = uint32(len(t.aux)), uint32(len(text))
	nd.flags |= flagAux
	t.aux = append(t.aux, text...)
	if t.yaml && nd.flags&flagQuoted == 0 {
		t.resolvePlain(int(n))
	}
}

// expand returns a text with its variables replaced.
func (s *substitution) expand(n Node, in string) string {
	var b strings.Builder
	for {
		i := strings.Index(in, "${")
		if i < 0 {
			return b.String() + in
		}
		if i > 0 && in[i-1] == '$' {
			b.WriteString(in[:i-1] + "${")
			in = in[i+2:]
			continue
		}
		b.WriteString(in[:i])
		in = in[i:]
		ref := variable.FindString(in)
		if ref == "" || !strings.HasPrefix(in, ref) {
			end := min(len(in), 24)
			s.fail(n, in[:2], fmt.Sprintf("'%s' is not a reference to a variable: write ${NAME} or ${NAME:-default}, or $${ for the two characters",
				strings.ToValidUTF8(in[:end], "")))
			b.WriteString("${")
			in = in[2:]
			continue
		}
		in = in[len(ref):]
		name, fallback, has := strings.Cut(ref[2:len(ref)-1], ":-")
		value, ok := s.lookup(name)
		switch {
		case has && value == "":
			value = fallback
		case !ok:
			s.fail(n, "${"+name, fmt.Sprintf("the environment variable %s is not set: set it, or write ${%s:-default}", name, name))
			s.errs[len(s.errs)-1].Unset = true
		}
		b.WriteString(value)
	}
}

// fail records an error at the place of a reference: within the value, if it is found there as it stands.
func (s *substitution) fail(n Node, ref, msg string) {
	t := s.t
	off := int(t.nodes[n].pos)
	ref = string(bytes.ReplaceAll([]byte(ref), []byte("{"), []byte(string(rune(maskBase)))))
	for _, r := range []string{ref, unmask(ref)} {
		if i := bytes.Index(t.src[off:], []byte(r)); i >= 0 && i < len(t.Text(n))+2*len(r)+2 {
			off += i
			break
		}
	}
	s.errs = append(s.errs, &SyntaxError{Pos: t.place(uint32(off)), Msg: msg})
}

// resolvePlain gives a scalar without quotes its kind, as resolve does.
func (t *Tree) resolvePlain(at int) {
	nd := &t.nodes[at]
	nd.flags &^= flagTrue
	text := string(t.Text(Node(at)))
	switch text {
	case "", "~", "null", "Null", "NULL":
		nd.kind = Null
		return
	}
	if v, ok := yamlBool(text); ok {
		nd.kind = Bool
		if v {
			nd.flags |= flagTrue
		}
		return
	}
	t.resolveNumber(at)
}
