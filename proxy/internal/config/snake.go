package config

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

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
