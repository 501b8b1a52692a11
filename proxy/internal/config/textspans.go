package config

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
)

// textSource knows where the fields of a text protobuf stand. It reads no more of the form than that takes: what is right in it is
// for the library to say.
type textSource struct {
	name   string
	data   []byte
	fields []textField
}

// textField is one value of a field. The elements of a list in brackets are values of their own.
type textField struct {
	name       string // or a type URL in brackets
	start, end int    // of the value with its name, and with those of a list that it is in
	value      int    // where the value begins
	at         int    // where it is said to stand: with its name, if that is in front of it
	fields     []textField
}

// maxTextDepth is how deep messages may be nested.
const maxTextDepth = yamlpos.MaxDepth

// readText finds the fields; nil if it cannot.
func readText(name string, data []byte) *textSource {
	r := textReader{data: data}
	fields, ok := r.fields(0, 0)
	if !ok {
		return nil
	}
	return &textSource{name, data, fields}
}

type textReader struct {
	data []byte
	at   int
}

// space skips what stands between tokens, and returns the byte that comes then, 0 at the end.
func (r *textReader) space(also string) byte {
	for r.at < len(r.data) {
		c := r.data[r.at]
		switch {
		case c == '#':
			if n := bytes.IndexByte(r.data[r.at:], '\n'); n >= 0 {
				r.at += n
			} else {
				r.at = len(r.data)
			}
		case c == ' ' || c >= '\t' && c <= '\r' || strings.IndexByte(also, c) >= 0:
			r.at++
		default:
			return c
		}
	}
	return 0
}

// fields reads up to the byte that ends a message.
func (r *textReader) fields(end byte, depth int) (list []textField, ok bool) {
	for depth <= maxTextDepth {
		c := r.space(",;")
		if c == end {
			r.at++
			return list, true
		}
		start := r.at
		var name string
		if c == '[' {
			n := bytes.IndexByte(r.data[r.at:], ']')
			if n < 0 {
				return nil, false
			}
			name = string(r.data[r.at : r.at+n+1])
			r.at += n + 1
		} else if name = r.word(); name == "" {
			return nil, false
		}
		values, ok := r.values(depth)
		if !ok {
			return nil, false
		}
		for i, v := range values {
			v.name, v.start, v.end, v.at = name, start, r.at, start
			if i > 0 {
				v.at = v.value
			}
			list = append(list, v)
		}
	}
	return nil, false
}

// values reads what stands behind a name: one value, or a list of them.
func (r *textReader) values(depth int) ([]textField, bool) {
	if r.space(":") != '[' {
		v, ok := r.one(depth)
		return []textField{v}, ok
	}
	r.at++
	var list []textField
	for r.space(",") != ']' {
		v, ok := r.one(depth)
		if !ok {
			return nil, false
		}
		list = append(list, v)
	}
	r.at++
	if list == nil {
		list = []textField{{}}
	}
	return list, true
}

// one reads a message or a scalar.
func (r *textReader) one(depth int) (v textField, ok bool) {
	c := r.space("")
	v.value = r.at
	switch c {
	case '{', '<':
		r.at++
		v.fields, ok = r.fields(map[byte]byte{'{': '}', '<': '>'}[c], depth+1)
		return v, ok
	case '"', '\'':
		for c == '"' || c == '\'' { // strings that follow each other are one
			if !r.quoted(c) {
				return v, false
			}
			c = r.space("")
		}
		return v, true
	}
	return v, r.word() != ""
}

func (r *textReader) quoted(quote byte) bool {
	for r.at++; r.at < len(r.data); r.at++ {
		switch r.data[r.at] {
		case '\\':
			r.at++
		case quote:
			r.at++
			return true
		case '\n':
			return false
		}
	}
	return false
}

// word reads a name, a number or a word.
func (r *textReader) word() string {
	start := r.at
	for r.at < len(r.data) && (r.data[r.at] >= 0x80 || strings.IndexByte("_.-+/", r.data[r.at]) >= 0 || isAlnum(r.data[r.at])) {
		r.at++
	}
	return string(r.data[start:r.at])
}

func isAlnum(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// offset returns where a line and a column are, which count from 1, in characters.
func (t *textSource) offset(line, col int) int {
	at := 0
	for ; line > 1; line-- {
		n := bytes.IndexByte(t.data[at:], '\n')
		if n < 0 {
			return len(t.data)
		}
		at += n + 1
	}
	for ; col > 1 && at < len(t.data); col-- {
		_, size := utf8.DecodeRune(t.data[at:])
		at += size
	}
	return at
}

// pos is the opposite of offset.
func (t *textSource) pos(at int) yamlpos.Pos {
	start := bytes.LastIndexByte(t.data[:at], '\n') + 1
	return yamlpos.Pos{File: t.name, Line: bytes.Count(t.data[:start], []byte{'\n'}) + 1, Col: utf8.RuneCount(t.data[start:at]) + 1}
}

// innermost returns the smallest field that holds an offset, and its path; nil if there is none.
func (t *textSource) innermost(at int, d protoreflect.MessageDescriptor) (found *textField, path string) {
	list := t.fields
	for {
		var next *textField
		for i := range list { // of the values of a list, the last that begins before it
			if f := &list[i]; at >= f.start && at < f.end && (next == nil || at >= f.value) {
				next = f
			}
		}
		if next == nil {
			return found, path
		}
		nth := 0 // of its name
		for i := range list {
			if &list[i] == next {
				break
			}
			if list[i].name == next.name {
				nth++
			}
		}
		found, list = next, next.fields
		if next.name[0] == '[' { // the payload of an Any
			d = nil
			continue
		}
		path = join(path, next.name)
		var fd protoreflect.FieldDescriptor
		if d != nil {
			fd = d.Fields().ByName(protoreflect.Name(next.name))
		}
		d = nil
		if fd != nil {
			d = fd.Message()
			if fd.IsList() {
				path += "[" + strconv.Itoa(nth) + "]"
			}
		}
	}
}

// lookup returns where the field at path stands, or its nearest ancestor that does.
func (t *textSource) lookup(path string) (pos yamlpos.Pos, ok bool) {
	list, at := t.fields, 0
	for path != "" {
		step, index, rest := cutStep(path)
		if index { // without a name before it: of a map, which is not looked into
			return t.pos(at), false
		}
		nth := 0
		if strings.HasPrefix(rest, "[") {
			s, _, more := cutStep(rest)
			n, err := strconv.Atoi(s)
			if rest = more; err == nil {
				nth = n
			} else {
				rest = ""
			}
		}
		f := nthField(list, step, nth)
		if f == nil {
			return t.pos(at), false
		}
		list, at, path = f.fields, f.at, rest
	}
	return t.pos(at), true
}

// nthField finds a field by its name, within the payload of an Any too.
func nthField(list []textField, name string, n int) *textField {
	for i := range list {
		f := &list[i]
		switch {
		case f.name[0] == '[':
			if in := nthField(f.fields, name, n); in != nil {
				return in
			}
		case f.name == name:
			if n == 0 {
				return f
			}
			n--
		}
	}
	return nil
}
