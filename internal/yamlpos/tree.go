// Package yamlpos reads YAML and JSON into one flat tree of nodes that remembers where every key and value stood in
// its file, so that whoever rejects a value can say file, line and column.
//
// It owns the syntax only: scalars keep their text, and what a scalar may mean is decided by the caller who knows the
// field. YAML follows the scalar rules of Envoy's reader (YAML 1.1 booleans, octal and hexadecimal integers, everything
// else a string); JSON follows the lenient reader of protobuf (single quotes, bare keys, trailing commas). A Tree is
// immutable once it is built and may be shared; building takes no locks, starts no goroutine and never panics on input.
package yamlpos

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"
)

// Limits of what is read. A configuration that hits one of them is refused with a position.
const (
	// MaxDepth is the deepest nesting of maps and sequences; protobuf's own JSON reader stops at 100 too.
	MaxDepth = 100
	// MaxSource is the largest source, so that offsets fit into 32 bits.
	MaxSource = 1 << 30
	// MaxAliasNodes bounds how many nodes YAML aliases may add ("billion laughs").
	MaxAliasNodes = 1 << 20
)

// Kind says what a node is.
type Kind uint8

// The kinds. Number appears for JSON numbers and for YAML integers; a YAML float is a String, because Envoy's reader
// leaves it as text too.
const (
	Null Kind = iota
	Bool
	Number
	String
	Map
	Seq
	// Raw is an element that ParseJSONOutline left unread; Expand reads it.
	Raw
)

// String names the kind as an error message wants it.
func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a map", "a list", "an unread value"}[k]
}

// Node is a handle into a Tree. The root is 0; the children of a map or a sequence follow their parent directly.
type Node uint32

// Pos is a place in a file; Line and Col count from 1, Col counts characters. The zero Pos means unknown.
type Pos struct {
	File string
	Line int
	Col  int
}

// String prints file:line:col, or less when less is known.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// SyntaxError is what the readers return for text that is not YAML or JSON, or that exceeds a limit.
type SyntaxError struct {
	Pos Pos
	Msg string
	// Unset: a variable is not set, and all else may be right.
	Unset bool
}

func (e *SyntaxError) Error() string { return e.Pos.String() + ": " + e.Msg }

const (
	flagAux    = 1 << iota // the text lives in Tree.aux, not in Tree.src
	flagKeyAux             // the key lives in Tree.aux
	flagTrue               // the value of a Bool
	flagQuoted             // a String that stood in quotes or in a block
)

// node is 32 bytes: a 5 MB configuration has about 200,000 of them.
type node struct {
	off    uint32 // start of the text of a scalar
	n      uint32 // length of the text, or the number of children
	end    uint32 // the node after this one's subtree
	pos    uint32 // offset of the value in src
	keyOff uint32
	keyLen uint32
	keyPos uint32 // offset of the key in src
	kind   Kind
	flags  uint8
}

// Tree is a parsed document.
type Tree struct {
	file   string
	src    []byte
	aux    []byte // decoded text that does not stand in src as it is
	nodes  []node
	yaml   bool
	places *places // shared with the trees of Expand
	// repeated are keys that stood twice.
	repeated []Repeated
	// rest is where a second document begins.
	rest Pos
	// lookup gives the values of variables, for what Expand reads later; nil: there are none.
	lookup func(name string) (value string, ok bool)
	// emptied are the variables whose empty values left nothing of a scalar.
	emptied map[Node]string
}

// Emptied returns the variable whose empty value has left nothing of the scalar n, "" if that is not so.
func (t *Tree) Emptied(n Node) string { return t.emptied[n] }

// Repeated is a key of a YAML map that stands twice: the value at Before is not used.
type Repeated struct {
	Key         string
	Before, Pos Pos
}

// Repeated returns the keys that stand twice in a map of a YAML text, a hundred at most. They must not be changed.
func (t *Tree) Repeated() []Repeated { return t.repeated }

// Rest returns where the second document of a YAML text begins, which is not read; its Line is 0 if there is none.
func (t *Tree) Rest() Pos { return t.rest }

// File returns the name under which the tree was read.
func (t *Tree) File() string { return t.file }

// YAML tells whether scalars were resolved by the YAML rules.
func (t *Tree) YAML() bool { return t.yaml }

// Root returns the root node.
func (t *Tree) Root() Node { return 0 }

// Size returns the number of nodes.
func (t *Tree) Size() int { return len(t.nodes) }

// Kind returns what n is.
func (t *Tree) Kind(n Node) Kind { return t.nodes[n].kind }

// Len returns the number of children of a map or a sequence, or the length of a scalar's text.
func (t *Tree) Len(n Node) int { return int(t.nodes[n].n) }

// First returns the first child. Iterate with: for c := t.First(n); c < t.End(n); c = t.End(c).
func (t *Tree) First(n Node) Node { return n + 1 }

// End returns the node behind n's subtree, which is n's next sibling if it has one.
func (t *Tree) End(n Node) Node { return Node(t.nodes[n].end) }

// Text returns the text of a scalar: the decoded string, the number as it was written. The bytes belong to the tree.
func (t *Tree) Text(n Node) []byte {
	nd := &t.nodes[n]
	if nd.kind > String {
		return nil
	}
	if nd.flags&flagAux != 0 {
		return t.aux[nd.off : nd.off+nd.n]
	}
	return t.src[nd.off : nd.off+nd.n]
}

// Bool returns the value of a Bool.
func (t *Tree) Bool(n Node) bool { return t.nodes[n].flags&flagTrue != 0 }

// Quoted tells whether a String stood in quotes (or in a YAML block), so that it cannot be meant as a number.
func (t *Tree) Quoted(n Node) bool { return t.nodes[n].flags&flagQuoted != 0 }

// Key returns the key under which n stands in its map, nil for an element of a sequence and for the root.
func (t *Tree) Key(n Node) []byte {
	nd := &t.nodes[n]
	if nd.flags&flagKeyAux != 0 {
		return t.aux[nd.keyOff : nd.keyOff+nd.keyLen]
	}
	return t.src[nd.keyOff : nd.keyOff+nd.keyLen]
}

// Child returns the value of key in the map n; with duplicate keys the last one.
func (t *Tree) Child(n Node, key string) (Node, bool) {
	found, ok := Node(0), false
	if t.nodes[n].kind != Map {
		return 0, false
	}
	for c := t.First(n); c < t.End(n); c = t.End(c) {
		if string(t.Key(c)) == key {
			found, ok = c, true
		}
	}
	return found, ok
}

// Elem returns element i of the sequence n.
func (t *Tree) Elem(n Node, i int) (Node, bool) {
	if t.nodes[n].kind != Seq || i < 0 || i >= t.Len(n) {
		return 0, false
	}
	c := t.First(n)
	for ; i > 0; i-- {
		c = t.End(c)
	}
	return c, true
}

// Pos returns where the value n begins.
func (t *Tree) Pos(n Node) Pos { return t.place(t.nodes[n].pos) }

// KeyPos returns where the key of n begins; without a key it is the place of the value.
func (t *Tree) KeyPos(n Node) Pos {
	if nd := &t.nodes[n]; nd.keyLen == 0 && nd.keyPos == 0 {
		return t.place(nd.pos)
	}
	return t.place(t.nodes[n].keyPos)
}

func (t *Tree) place(off uint32) Pos {
	return t.places.of(t.file, t.src, int(off))
}

// places finds lines and columns. A few are counted; when many are asked for, lines are found by an index, and columns from the
// place that was asked for last.
type places struct {
	mu     sync.Mutex
	asked  int
	starts []uint32 // of lines
	line   int      // that of the last place,
	off    int      // its offset,
	col    int      // and its column
}

// fewPlaces is how many are found without an index.
const fewPlaces = 16

func (p *places) of(file string, src []byte, off int) Pos {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked++; p.asked <= fewPlaces {
		return placeOf(file, src, off)
	}
	if p.starts == nil {
		p.starts = lineStarts(src)
	}
	off = min(off, len(src))
	line, here := slices.BinarySearch(p.starts, uint32(off))
	if !here {
		line-- // the line that begins before
	}
	from, col := int(p.starts[line]), 1
	switch same := p.line == line && p.off >= from && p.col > 0; {
	case same && p.off > off && p.off-off < off-from: // back from the last one
		col = p.col - utf8.RuneCount(src[off:p.off])
	case same && p.off <= off:
		col = p.col + utf8.RuneCount(src[p.off:off])
	default:
		col += utf8.RuneCount(src[from:off])
	}
	p.line, p.off, p.col = line, off, col
	return Pos{File: file, Line: line + 1, Col: p.col}
}

// placeOf counts lines and characters.
func placeOf(file string, src []byte, off int) Pos {
	off = min(off, len(src))
	line := 1 + bytes.Count(src[:off], []byte{'\n'})
	start := 1 + bytes.LastIndexByte(src[:off], '\n')
	return Pos{File: file, Line: line, Col: 1 + utf8.RuneCount(src[start:off])}
}
