package config

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	udpaannotationsv1 "github.com/cncf/xds/go/udpa/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Printer writes messages as Envoy's admin interface does: JSON with an indent of one space, proto field names in the
// order of their numbers, defaults left out, payloads of Any expanded. Unlike Envoy it sorts maps, whose order there
// changes from run to run. It caches what it learns of types and is not safe for concurrent use.
type Printer struct {
	// Redact replaces sensitive values by "[redacted]", as /config_dump does.
	Redact bool
	// Defaults prints fields that have their default value if they cannot be absent, as /server_info does.
	Defaults bool

	resolver Resolver
	types    map[protoreflect.FullName]*printedType
}

type printedType struct {
	special special
	fields  []printedField
}

type printedField struct {
	desc      protoreflect.FieldDescriptor
	name      string
	sensitive bool
}

// NewPrinter makes a printer that expands the payloads that r knows; nil means all that are linked in.
func NewPrinter(r Resolver) *Printer {
	return &Printer{resolver: orGlobal(r), types: map[protoreflect.FullName]*printedType{}}
}

// Append writes m behind dst. depth is how deep the object stands: its closing brace is indented by that many spaces, its
// fields by one more. A dump can so be put together of pieces that are printed one by one.
func (p *Printer) Append(dst []byte, m proto.Message, depth int) []byte {
	return p.message(dst, m.ProtoReflect(), depth, false)
}

// AppendAny writes a payload with its @type. If the type is not known, its bytes are printed as base64 under value.
func (p *Printer) AppendAny(dst []byte, url string, value []byte, depth int) []byte {
	return p.any(dst, url, value, depth, false)
}

// AppendString writes a JSON string with the escapes of C++ protobuf, which also hides the characters that HTML or a
// terminal could take for something else.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != 0x7f {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			dst = escapeASCII(dst, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if !hidden(r) {
			i += size
			continue
		}
		dst = append(dst, s[start:i]...)
		if r > 0xffff {
			r -= 0x10000
			dst = appendU16(appendU16(dst, 0xd800+r>>10), 0xdc00+r&0x3ff)
		} else {
			dst = appendU16(dst, r)
		}
		i += size
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

func escapeASCII(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return appendU16(dst, rune(c))
}

func appendU16(dst []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

// hidden is the set of characters beyond ASCII that C++ protobuf escapes: controls, directions, separators, tags.
func hidden(r rune) bool {
	switch {
	case r < 0xa0, r == 0xad, r >= 0x600 && r <= 0x603, r == 0x6dd, r == 0x70f, r == 0x17b4, r == 0x17b5,
		r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x2064, r >= 0x206a && r <= 0x206f,
		r == 0xfeff, r >= 0xfff9 && r <= 0xfffb, r >= 0x1d173 && r <= 0x1d17a, r == 0xe0001, r >= 0xe0020 && r <= 0xe007f:
		return true
	}
	return false
}

func (p *Printer) typeOf(d protoreflect.MessageDescriptor) *printedType {
	if t := p.types[d.FullName()]; t != nil {
		return t
	}
	t := &printedType{special: specialOf(d)}
	fds := d.Fields()
	for i := range fds.Len() {
		fd := fds.Get(i)
		f := printedField{desc: fd, name: string(fd.Name())}
		if o, ok := fd.Options().(*descriptorpb.FieldOptions); ok && p.Redact {
			f.sensitive, _ = proto.GetExtension(o, udpaannotationsv1.E_Sensitive).(bool)
		}
		t.fields = append(t.fields, f)
	}
	slices.SortFunc(t.fields, func(a, b printedField) int { return int(a.desc.Number() - b.desc.Number()) })
	p.types[d.FullName()] = t
	return t
}

// message writes a message; secret tells that it stands in a sensitive field.
func (p *Printer) message(dst []byte, m protoreflect.Message, depth int, secret bool) []byte {
	t := p.typeOf(m.Descriptor())
	switch t.special {
	case plainMessage:
		dst, _ = p.fields(append(dst, '{'), m, t, depth, secret, true)
		return append(dst, '}')
	case anyMessage:
		get := func(name protoreflect.Name) protoreflect.Value { return m.Get(m.Descriptor().Fields().ByName(name)) }
		return p.any(dst, get("type_url").String(), get("value").Bytes(), depth, secret)
	}
	return p.wellKnown(dst, m, t, depth, secret)
}

// fields writes the fields behind an open brace and leaves the cursor where the closing one goes.
func (p *Printer) fields(dst []byte, m protoreflect.Message, t *printedType, depth int, secret, first bool) ([]byte, bool) {
	for i := range t.fields {
		f := &t.fields[i]
		if !m.Has(f.desc) && (!p.Defaults || f.desc.HasPresence()) {
			continue
		}
		if (secret || f.sensitive) && !redactable(f.desc.Kind()) {
			continue
		}
		dst = newline(dst, depth+1, first)
		first = false
		dst = AppendString(dst, f.name)
		dst = append(dst, ':', ' ')
		dst = p.value(dst, f, m.Get(f.desc), depth+1, secret || f.sensitive)
	}
	if !first {
		dst = indent(dst, depth)
	}
	return dst, first
}

// redactable tells whether a sensitive value is replaced; one of another kind is left out.
func redactable(k protoreflect.Kind) bool {
	return k == protoreflect.StringKind || k == protoreflect.BytesKind || k == protoreflect.MessageKind
}

func newline(dst []byte, depth int, first bool) []byte {
	if !first {
		dst = append(dst, ',')
	}
	return indent(dst, depth)
}

func indent(dst []byte, depth int) []byte {
	dst = append(dst, '\n')
	for range depth {
		dst = append(dst, ' ')
	}
	return dst
}

func (p *Printer) value(dst []byte, f *printedField, v protoreflect.Value, depth int, secret bool) []byte {
	switch {
	case f.desc.IsMap():
		return p.mapping(dst, f.desc, v.Map(), depth, secret)
	case f.desc.IsList():
		l := v.List()
		dst = append(dst, '[')
		for i := range l.Len() {
			dst = newline(dst, depth+1, i == 0)
			dst = p.single(dst, f.desc, l.Get(i), depth+1, secret)
		}
		if l.Len() > 0 {
			dst = indent(dst, depth)
		}
		return append(dst, ']')
	}
	return p.single(dst, f.desc, v, depth, secret)
}

func (p *Printer) mapping(dst []byte, fd protoreflect.FieldDescriptor, m protoreflect.Map, depth int, secret bool) []byte {
	dst = append(dst, '{')
	keys := make([]protoreflect.MapKey, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return strings.Compare(a.String(), b.String()) })
	for i, k := range keys {
		dst = newline(dst, depth+1, i == 0)
		dst = AppendString(dst, k.String())
		dst = append(dst, ':', ' ')
		dst = p.single(dst, fd.MapValue(), m.Get(k), depth+1, secret)
	}
	if len(keys) > 0 {
		dst = indent(dst, depth)
	}
	return append(dst, '}')
}

const redacted = "[redacted]"

func (p *Printer) single(dst []byte, fd protoreflect.FieldDescriptor, v protoreflect.Value, depth int, secret bool) []byte {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return p.message(dst, v.Message(), depth, secret)
	case protoreflect.StringKind:
		if secret {
			return AppendString(dst, redacted)
		}
		return AppendString(dst, v.String())
	case protoreflect.BytesKind:
		b := v.Bytes()
		if secret {
			b = []byte(redacted)
		}
		dst = append(dst, '"')
		dst = base64.StdEncoding.AppendEncode(dst, b)
		return append(dst, '"')
	case protoreflect.BoolKind:
		return strconv.AppendBool(dst, v.Bool())
	case protoreflect.EnumKind:
		return appendEnum(dst, fd.Enum(), v.Enum())
	case protoreflect.FloatKind:
		return appendFloat(dst, v.Float(), 32)
	case protoreflect.DoubleKind:
		return appendFloat(dst, v.Float(), 64)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return append(strconv.AppendInt(append(dst, '"'), v.Int(), 10), '"')
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return append(strconv.AppendUint(append(dst, '"'), v.Uint(), 10), '"')
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return strconv.AppendUint(dst, v.Uint(), 10)
	}
	return strconv.AppendInt(dst, v.Int(), 10)
}

func appendEnum(dst []byte, d protoreflect.EnumDescriptor, n protoreflect.EnumNumber) []byte {
	if d.FullName() == "google.protobuf.NullValue" {
		return append(dst, "null"...)
	}
	if v := d.Values().ByNumber(n); v != nil {
		return append(append(append(dst, '"'), v.Name()...), '"')
	}
	return strconv.AppendInt(dst, int64(n), 10)
}

// appendFloat writes a number as C's %.15g does, or %.17g if that loses something (%.6g and %.9g for a float).
func appendFloat(dst []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(dst, `"-Infinity"`...)
	}
	short, long := 15, 17
	if bits == 32 {
		short, long = 6, 9
	}
	at := len(dst)
	dst = strconv.AppendFloat(dst, v, 'g', short, bits)
	if back, err := strconv.ParseFloat(string(dst[at:]), bits); err != nil || back != v {
		dst = strconv.AppendFloat(dst[:at], v, 'g', long, bits)
	}
	return dst
}

// any writes a payload with its type.
func (p *Printer) any(dst []byte, url string, value []byte, depth int, secret bool) []byte {
	if url == "" {
		return append(dst, '{', '}')
	}
	dst = append(dst, '{')
	dst = indent(dst, depth+1)
	dst = append(dst, `"@type": `...)
	dst = AppendString(dst, url)
	m, ok := p.payload(url, value)
	if !ok {
		dst = newline(dst, depth+1, false)
		dst = append(dst, `"value": "`...)
		if secret {
			value = []byte(redacted)
		}
		dst = base64.StdEncoding.AppendEncode(dst, value)
		dst = append(dst, '"')
		return append(indent(dst, depth), '}')
	}
	if t := p.typeOf(m.Descriptor()); t.special == plainMessage {
		if ts, ok := m.Interface().(typedStruct); ok && p.Redact {
			return p.typedStruct(dst, m, ts, depth, secret)
		}
		dst, _ = p.fields(dst, m, t, depth, secret, false)
		return append(dst, '}')
	}
	dst = newline(dst, depth+1, false)
	dst = append(dst, `"value": `...)
	dst = p.message(dst, m, depth+1, secret)
	return append(indent(dst, depth), '}')
}

// typedStruct prints the value by its type, if that is known, so that what is sensitive in it can be told.
func (p *Printer) typedStruct(dst []byte, m protoreflect.Message, ts typedStruct, depth int, secret bool) []byte {
	inner, err := fromTypedStruct(m.Interface(), p.resolver)
	if err != nil {
		dst, _ = p.fields(dst, m, p.typeOf(m.Descriptor()), depth, secret, false)
		return append(dst, '}')
	}
	dst = append(newline(dst, depth+1, false), `"type_url": `...)
	dst = AppendString(dst, ts.GetTypeUrl())
	dst = append(newline(dst, depth+1, false), `"value": `...)
	dst = p.message(dst, inner.ProtoReflect(), depth+1, secret)
	return append(indent(dst, depth), '}')
}

func (p *Printer) payload(url string, value []byte) (protoreflect.Message, bool) {
	mt, err := p.resolver.FindMessageByURL(url)
	if err != nil {
		return nil, false
	}
	m := mt.New()
	if err := proto.Unmarshal(value, m.Interface()); err != nil {
		return nil, false
	}
	return m, true
}

// wellKnown writes the messages that have a JSON form of their own.
func (p *Printer) wellKnown(dst []byte, m protoreflect.Message, t *printedType, depth int, secret bool) []byte {
	get := func(i int) protoreflect.Value { return m.Get(t.fields[i].desc) }
	switch t.special {
	case durationMessage:
		return append(appendDuration(append(dst, '"'), get(0).Int(), get(1).Int()), '"')
	case timestampMessage:
		at := time.Unix(get(0).Int(), 0).UTC()
		dst = at.AppendFormat(append(dst, '"'), "2006-01-02T15:04:05")
		return append(appendNanos(dst, get(1).Int()), 'Z', '"')
	case wrapperMessage:
		return p.single(dst, t.fields[0].desc, get(0), depth, secret)
	case structMessage:
		return p.mapping(dst, t.fields[0].desc, get(0).Map(), depth, secret)
	case listMessage:
		return p.value(dst, &t.fields[0], get(0), depth, secret)
	case valueMessage:
		for i := range t.fields {
			if d := t.fields[i].desc; m.Has(d) && (!secret || redactable(d.Kind())) {
				return p.single(dst, t.fields[i].desc, get(i), depth, secret)
			}
		}
		return append(dst, "null"...)
	}
	var paths []string // a FieldMask
	for i := range get(0).List().Len() {
		paths = append(paths, camel(get(0).List().Get(i).String()))
	}
	return AppendString(dst, strings.Join(paths, ","))
}

func appendDuration(dst []byte, secs, nanos int64) []byte {
	if secs < 0 || nanos < 0 {
		dst = append(dst, '-')
		secs, nanos = -secs, -nanos
	}
	dst = strconv.AppendInt(dst, secs, 10)
	return append(appendNanos(dst, nanos), 's')
}

// appendNanos writes a fraction of a second with 3, 6 or 9 decimals, nothing for 0.
func appendNanos(dst []byte, nanos int64) []byte {
	if nanos == 0 {
		return dst
	}
	digits := 9
	for digits > 3 && nanos%1000 == 0 {
		nanos /= 1000
		digits -= 3
	}
	s := strconv.FormatInt(nanos, 10)
	dst = append(dst, '.')
	for range digits - len(s) {
		dst = append(dst, '0')
	}
	return append(dst, s...)
}
