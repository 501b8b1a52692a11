package format

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// maxJSONDepth bounds the nesting of JSON formats.
const maxJSONDepth = 64

// node is a value of a JSON format: one of its fields is set.
type node struct {
	raw     string    // JSON text
	op      *operator // keeps its type
	text    *Format   // several operators, or text around one: a string
	members []member
	list    []*node
	kind    nodeKind
}

type nodeKind uint8

const (
	rawNode nodeKind = iota
	nullNode
	opNode
	textNode
	objectNode
	listNode
)

// member is a key, quoted and with its colon, and a value.
type member struct {
	key   string
	value *node
}

// ParseJSON compiles a JSON format: plain values as google.protobuf.Struct has them (nil, bool, float64, string, []any,
// map[string]any). Strings are formats; one that is a single operator keeps the operator's type. Keys come out sorted.
func ParseJSON(tree map[string]any, o *Options) (*Format, error) {
	root, err := newNode(tree, o, 0)
	if err != nil {
		return nil, err
	}
	return &Format{root: root, omit: o.OmitEmpty}, nil
}

func newNode(v any, o *Options, depth int) (*node, error) {
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("json_format is nested deeper than %d", maxJSONDepth)
	}
	switch v := v.(type) {
	case nil:
		return &node{kind: nullNode}, nil
	case string:
		return newString(v, o)
	case map[string]any:
		n := &node{kind: objectNode}
		var errs config.Errors
		for _, k := range slices.Sorted(maps.Keys(v)) {
			child, err := newNode(v[k], o, depth+1)
			errs.Collect(fmt.Sprintf("[%q]", k), err)
			n.members = append(n.members, member{string(appendQuoted(nil, &Context{}, k)) + ":", child})
		}
		return n, single(&errs)
	case []any:
		n := &node{kind: listNode}
		var errs config.Errors
		for i, e := range v {
			child, err := newNode(e, o, depth+1)
			errs.Collect(fmt.Sprintf("[%d]", i), err)
			n.list = append(n.list, child)
		}
		return n, single(&errs)
	case bool, float64, int:
		return &node{raw: string(appendValue(nil, &Context{}, v))}, nil
	}
	return nil, fmt.Errorf("json_format holds a %T, which JSON has not", v)
}

func newString(s string, o *Options) (*node, error) {
	tokens, err := parse(s, o)
	if err != nil {
		return nil, err
	}
	if len(tokens) == 1 && tokens[0].op != nil {
		return &node{kind: opNode, op: tokens[0].op}, nil
	}
	f := newText(tokens, o)
	if lit, ok := f.Literal(); ok {
		return &node{raw: string(appendQuoted(nil, &Context{}, lit))}, nil
	}
	return &node{kind: textNode, text: f}, nil
}

func (n *node) appendObject(dst []byte, c *Context, omit bool) []byte {
	dst = append(dst, '{')
	first := true
	for i := range n.members {
		m := &n.members[i]
		start := len(dst)
		if !first {
			dst = append(dst, ',')
		}
		dst = append(dst, m.key...)
		var ok bool
		if dst, ok = m.value.append(dst, c, omit); ok {
			first = false
		} else {
			dst = dst[:start]
		}
	}
	return append(dst, '}')
}

// append appends the value; false means that it is to be left out, with what leads to it.
func (n *node) append(dst []byte, c *Context, omit bool) ([]byte, bool) {
	switch n.kind {
	case rawNode:
		return append(dst, n.raw...), true
	case opNode:
		dst, ok := n.op.appendJSON(dst, c)
		if ok {
			return dst, true
		}
		return append(dst, "null"...), !omit
	case textNode:
		dst = append(dst, '"')
		start := len(dst)
		dst = n.text.Evaluate(dst, c)
		return append(escape(dst, start, c), '"'), true
	case objectNode:
		start := len(dst)
		dst = n.appendObject(dst, c, omit)
		return dst, !omit || len(dst) > start+len("{}")
	case listNode:
		return n.appendList(dst, c, omit), true
	}
	return append(dst, "null"...), !omit
}

func (n *node) appendList(dst []byte, c *Context, omit bool) []byte {
	dst = append(dst, '[')
	first := true
	for _, e := range n.list {
		start := len(dst)
		if !first {
			dst = append(dst, ',')
		}
		var ok bool
		if dst, ok = e.append(dst, c, omit); ok {
			first = false
		} else {
			dst = dst[:start]
		}
	}
	return append(dst, ']')
}

// appendJSON appends the operator's value as JSON; without one it returns dst as it was, and false.
func (o *operator) appendJSON(dst []byte, c *Context) ([]byte, bool) {
	if o.json != nil {
		return o.json(dst, c)
	}
	if o.number {
		return o.append(dst, c)
	}
	start := len(dst)
	dst = append(dst, '"')
	dst, ok := o.text(dst, c)
	if !ok {
		return dst[:start], false
	}
	return append(escape(dst, start+1, c), '"'), true
}

// appendValue appends a plain value as JSON.
func appendValue(dst []byte, c *Context, v any) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(dst, v)
	case float64:
		return appendFloat(dst, v)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case uint64:
		return strconv.AppendUint(dst, v, 10)
	case string:
		return appendQuoted(dst, c, v)
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, c, e)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendQuoted(dst, c, k), ':')
			dst = appendValue(dst, c, v[k])
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

// appendFloat appends a number as Envoy prints it (std::to_chars): the fewest digits that read back the same, in fixed or
// scientific notation, whichever is shorter, fixed if both are. Integers that are too large for exact digits print whole.
func appendFloat(dst []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(dst, "null"...)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, v, 'e', -1, 64)
	digits := -1
	if math.Abs(v) >= 1<<53 {
		digits = 0
	}
	var buf [340]byte
	if fixed := strconv.AppendFloat(buf[:0], v, 'f', digits, 64); len(fixed) <= len(dst)-start {
		dst = append(dst[:start], fixed...)
	}
	return dst
}

func appendQuoted(dst []byte, c *Context, s string) []byte {
	dst = append(dst, '"')
	start := len(dst)
	dst = append(dst, s...)
	return append(escape(dst, start, c), '"')
}

const hexDigits = "0123456789abcdef"

// escape makes what dst holds from start on the inside of a JSON string. Text that is not UTF-8 is shown byte by byte, as
// Envoy does: each byte that is not printable ASCII as \u00xx, quotes and backslashes too.
func escape(dst []byte, start int, c *Context) []byte {
	i, plain := start, true
	for ; i < len(dst); i++ {
		if b := dst[i]; b < ' ' || b == '"' || b == '\\' || b >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return dst
	}
	c.scratch = append(c.scratch[:0], dst[i:]...)
	valid := utf8.Valid(dst[start:])
	dst = dst[:i]
	for _, b := range c.scratch {
		switch {
		case !valid && (b < ' ' || b == '"' || b == '\\' || b >= 0x7f):
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b < ' ':
			dst = appendControl(dst, b)
		default:
			dst = append(dst, b)
		}
	}
	if cap(c.scratch) > maxScratch {
		c.scratch = nil
	}
	return dst
}

// maxScratch bounds what a Context keeps for escaping, in bytes.
const maxScratch = 64 << 10

func appendControl(dst []byte, b byte) []byte {
	switch b {
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
}
