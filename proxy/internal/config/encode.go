package config

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Resolver finds message types by type URL. *protoregistry.Types and *Registry are Resolvers.
type Resolver interface {
	FindMessageByURL(url string) (protoreflect.MessageType, error)
}

// encoder writes a node tree as protobuf wire bytes. Going through bytes, and not through reflection, lets the generated
// fast path of proto.Unmarshal build the message, and the bytes are what is kept of a resource afterwards.
//
// It follows the JSON reader of C++ protobuf as Envoy runs it, which is more lenient than the specification: one value
// stands for a list of one, null in a list is a default element, enum names in any case, objects for durations.
type encoder struct {
	tree     *yamlpos.Tree
	schema   *schema
	resolver Resolver
	opts     *Options
	pos      *Positions // knows the places of paths that begin as path does
	buf      []byte
	path     []frame
	errs     *Errors
	lastAny  []byte // the payload that was validated last, so that a run of equal ones is validated once
	lastType *message
	notes    *int          // told so far
	around   []nesting     // the messages that are being read, the outermost first
	at       *field        // that is being read; of a wrapper or a duration the field that holds it
	payload  proto.Message // of the Any that was read last, if the field rules asked for it
}

// nesting is a message that is being read, at the first depth steps of the path.
type nesting struct {
	m     *message
	depth int
	n     yamlpos.Node // in the tree, if it is here
	here  bool
}

// frame is one step of a field path.
type frame struct {
	name  string
	index int    // of a list element, -1 without
	key   []byte // of a map entry, nil without
}

// fail records an error at the value of n, failKey one at its key.
func (e *encoder) fail(n yamlpos.Node, x Error)    { e.report(n, e.tree.Pos, x) }
func (e *encoder) failKey(n yamlpos.Node, x Error) { e.report(n, e.tree.KeyPos, x) }

func (e *encoder) report(n yamlpos.Node, place func(yamlpos.Node) yamlpos.Pos, x Error) {
	if e.errs.full(e.opts.maxErrors()) { // finding the place would cost a look at all of the text before it
		e.errs.More++
		return
	}
	p := place(n)
	x.File, x.Line, x.Col = p.File, p.Line, p.Col
	x.Path = pathString(e.path)
	if name := e.tree.Emptied(n); name != "" {
		x.Advice, x.Suggestion = emptyVariable(name), ""
	}
	if x.Kind == "" {
		x.Kind = WrongType
	}
	e.errs.Add(&x, e.opts.maxErrors())
}

func pathString(path []frame) string {
	var b []byte
	for _, f := range path {
		if f.name != "" {
			if len(b) > 0 {
				b = append(b, '.')
			}
			b = append(b, f.name...)
		}
		switch {
		case f.key != nil:
			b = append(b, '[')
			b = strconv.AppendQuote(b, string(f.key))
			b = append(b, ']')
		case f.index >= 0:
			b = append(b, '[')
			b = strconv.AppendInt(b, int64(f.index), 10)
			b = append(b, ']')
		}
	}
	return string(b)
}

// found describes a node for Error.Found.
func (e *encoder) found(n yamlpos.Node) string {
	t := e.tree
	switch k := t.Kind(n); k {
	case yamlpos.Map, yamlpos.Seq, yamlpos.Null:
		return k.String()
	case yamlpos.String:
		return "'" + shorten(string(t.Text(n))) + "'"
	default:
		return shorten(string(t.Text(n)))
	}
}

func shorten(s string) string { return shortenTo(s, 80) }

// shortenTo cuts s to about limit bytes and escapes what would break the line of an error.
func shortenTo(s string, limit int) string {
	if len(s) > limit {
		cut := limit
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "..."
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		s = strconv.Quote(s)
		s = s[1 : len(s)-1]
	}
	return s
}

// body writes the fields of a message of type m from the node n, without tag and length.
func (e *encoder) body(n yamlpos.Node, m *message) {
	switch m.special {
	case durationMessage, timestampMessage, wrapperMessage, fieldMaskMessage:
		if e.tree.Kind(n) == yamlpos.Map { // C++ protobuf takes the object form of these as well
			e.fields(n, m, false)
			return
		}
		e.wellKnown(n, m)
	case structMessage, valueMessage, listMessage, anyMessage:
		e.wellKnown(n, m)
	default:
		e.fields(n, m, false)
	}
}

// fields writes a message whose fields are the keys of a map. inAny lets the key @type pass.
func (e *encoder) fields(n yamlpos.Node, m *message, inAny bool) {
	t := e.tree
	if t.Kind(n) != yamlpos.Map {
		e.fail(n, e.notFields(n, m))
		return
	}
	var oneofs uint64
	top := len(e.path)
	e.around = append(e.around, nesting{m: m, depth: top, n: n, here: true})
	e.path = append(e.path, frame{})
	for c, end := t.First(n), t.End(n); c < end; c = t.End(c) {
		f := m.fields[string(t.Key(c))]
		if f == nil {
			if inAny && string(t.Key(c)) == "@type" {
				continue
			}
			e.unknownField(n, c, m)
			continue
		}
		e.path[top] = frame{name: f.name, index: -1}
		if t.Kind(c) == yamlpos.Null && !f.null || f.skip {
			continue
		}
		if f.oneof >= 0 {
			if oneofs&(1<<f.oneof) != 0 {
				e.oneofConflict(c, f)
				continue
			}
			oneofs |= 1 << f.oneof
		}
		if e.opts.OnDeprecated != nil && f.deprecated() {
			e.deprecated(c, f)
		}
		e.field(c, f)
	}
	if m.regex && e.opts.MaxRegexSize != nil {
		e.path[top] = frame{name: "regex", index: -1}
		e.regex(n)
	}
	e.path, e.around = e.path[:top], e.around[:len(e.around)-1]
}

func (e *encoder) field(c yamlpos.Node, f *field) {
	switch {
	case f.isMap:
		e.mapField(c, f)
	case f.list && f.packed != nil:
		e.buf = append(e.buf, f.packed...)
		start := e.open()
		e.list(c, f, 0)
		e.close(start)
	case f.list:
		e.list(c, f, 0)
	default:
		e.single(c, f)
	}
}

// single writes one value of f, with its tag unless it is packed.
func (e *encoder) single(c yamlpos.Node, f *field) {
	e.at = f
	switch f.kind {
	case protoreflect.MessageKind:
		e.buf = append(e.buf, f.tag...)
		start := e.open()
		e.body(c, e.schema.messageOf(f))
		e.close(start)
	case protoreflect.GroupKind:
		e.fail(c, Error{Msg: "groups have no JSON form"})
	default:
		e.scalar(c, f)
	}
}

// list writes the elements of a list from i on and returns the next index. What is not a list counts as a list of one,
// and a list in a list is flattened.
func (e *encoder) list(n yamlpos.Node, f *field, i int) int {
	t := e.tree
	top := len(e.path) - 1
	if t.Kind(n) != yamlpos.Seq {
		e.path[top].index = i
		e.element(n, f)
		return i + 1
	}
	nested := f.kind == protoreflect.MessageKind && e.schema.messageOf(f).special >= structMessage
	for c, end := t.First(n), t.End(n); c < end; c = t.End(c) {
		if t.Kind(c) == yamlpos.Seq && !nested {
			i = e.list(c, f, i)
			continue
		}
		e.path[top].index = i
		e.element(c, f)
		i++
	}
	return i
}

func (e *encoder) element(c yamlpos.Node, f *field) {
	if e.tree.Kind(c) == yamlpos.Null && !f.null {
		e.zero(f)
		return
	}
	e.single(c, f)
}

// zero writes the default value of f.
func (e *encoder) zero(f *field) {
	if f.packed == nil {
		e.buf = append(e.buf, f.tag...)
	}
	switch wireType(f.kind) {
	case protowire.Fixed32Type:
		e.buf = append(e.buf, 0, 0, 0, 0)
	case protowire.Fixed64Type:
		e.buf = append(e.buf, 0, 0, 0, 0, 0, 0, 0, 0)
	default:
		e.buf = append(e.buf, 0) // varint 0, or an empty string or message
	}
}

func (e *encoder) mapField(n yamlpos.Node, f *field) {
	t := e.tree
	if t.Kind(n) != yamlpos.Map {
		e.fail(n, Error{Msg: "expected '{', a map", Found: e.found(n)})
		return
	}
	if url, ok := t.Child(n, "@type"); ok && t.Kind(url) == yamlpos.String && f.value.kind == protoreflect.MessageKind && e.schema.messageOf(f.value).special == anyMessage {
		e.failKey(url, Error{Msg: "expected the name of an extension, and below it its message with an @type", Found: "'@type'",
			Suggestion: "{" + typeName(string(t.Text(url))) + `: {"@type": ` + string(t.Text(url)) + ", ...}}"})
		return
	}
	top := len(e.path) - 1
	for c, end := t.First(n), t.End(n); c < end; c = t.End(c) {
		e.path[top].key = t.Key(c)
		e.buf = append(e.buf, f.tag...)
		start := e.open()
		e.mapKey(c, f.key)
		e.element(c, f.value)
		e.close(start)
	}
}

// open begins a length-delimited value; close writes the length before it. One byte is kept free, which is enough for
// most values; a longer one is moved.
func (e *encoder) open() int {
	e.buf = append(e.buf, 0)
	return len(e.buf)
}

func (e *encoder) close(start int) {
	n := len(e.buf) - start
	if n < 0x80 {
		e.buf[start-1] = byte(n)
		return
	}
	var head [10]byte
	size := len(protowire.AppendVarint(head[:0], uint64(n)))
	e.buf = append(e.buf, head[:size-1]...)
	copy(e.buf[start-1+size:], e.buf[start:start+n])
	copy(e.buf[start-1:], head[:size])
}

// unknown reports a field or an enum value that this version does not know: an error, or a note if they are allowed.
func (e *encoder) unknown(c yamlpos.Node, place func(yamlpos.Node) yamlpos.Pos, x Error) {
	if !e.opts.AllowUnknownFields {
		e.report(c, place, x)
		return
	}
	if e.opts.OnUnknownField != nil {
		e.note(e.opts.OnUnknownField, c, place, x)
	}
}

// note tells of something that is no error. Finding a place takes a look at all of the text before it, so only the
// first notes have one.
func (e *encoder) note(tell func(*Error), c yamlpos.Node, place func(yamlpos.Node) yamlpos.Pos, x Error) {
	if *e.notes++; *e.notes <= e.opts.maxErrors() {
		p := place(c)
		x.File, x.Line, x.Col = p.File, p.Line, p.Col
	}
	x.Path = pathString(e.path)
	tell(&x)
}

func (e *encoder) oneofConflict(c yamlpos.Node, f *field) {
	o := f.desc.ContainingOneof()
	names := make([]string, o.Fields().Len())
	for i := range names {
		names[i] = string(o.Fields().Get(i).Name())
	}
	e.failKey(c, Error{
		Msg:     "'" + f.name + "' has already been set (either directly or as part of a oneof)",
		Allowed: "one of " + someOf(names, 20),
	})
}
