package config

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// special marks the messages that have a JSON form of their own.
type special uint8

const (
	plainMessage special = iota
	durationMessage
	timestampMessage
	wrapperMessage
	structMessage
	valueMessage
	listMessage
	fieldMaskMessage
	anyMessage
)

// message is a message type, compiled for writing: a map from each spelling of a field to its number and kind.
type message struct {
	desc    protoreflect.MessageDescriptor
	name    string
	special special
	regex   bool              // it is a RegexMatcher
	fields  map[string]*field // by proto name and by JSON name
	names   []string          // of the fields, sorted; built when one is wanted
	goNames map[string]*field // by the name that generated validators use; built when the first one fails
}

// field is one field of a message, compiled.
type field struct {
	desc    protoreflect.FieldDescriptor
	name    string // proto name
	tag     []byte // encoded tag of a single element
	packed  []byte // encoded tag of the packed form, nil if the field has none
	kind    protoreflect.Kind
	list    bool
	isMap   bool
	keep    bool // a zero is written: the field tells absent from zero
	null    bool // null is a value of this field, not its absence
	skip    bool // left out by the encoder, see Stream
	oneof   int8 // index of its real oneof, -1 without
	old     deprecation
	message *message
	enum    *enum
	key     *field // of a map
	value   *field // of a map
}

// enum is an enum type: its numbers by name; C++ protobuf, as Envoy uses it, reads names in any case.
type enum struct {
	desc    protoreflect.EnumDescriptor
	numbers map[string]protoreflect.EnumNumber
}

// deprecation is whether a field is deprecated. Field options are decoded by reflection, so it is looked up for fields
// that occur, when somebody wants to know.
type deprecation uint8

const (
	notLooked deprecation = iota
	current
	deprecated
)

func (f *field) deprecated() bool {
	if f.old == notLooked {
		f.old = current
		if f.desc != nil && isDeprecated(f.desc) {
			f.old = deprecated
		}
	}
	return f.old == deprecated
}

func isDeprecated(fd protoreflect.FieldDescriptor) bool {
	o, ok := fd.Options().(*descriptorpb.FieldOptions)
	return ok && o.GetDeprecated()
}

// schema compiles message types when they are first met. It belongs to one load and is not safe for concurrent use: a
// schema of the types that a bootstrap uses takes a fraction of a millisecond to build.
type schema struct {
	messages map[protoreflect.FullName]*message
	enums    map[protoreflect.FullName]*enum
	absent   *absent // types that are not linked in; nil until one is met
}

func newSchema() *schema {
	return &schema{messages: map[protoreflect.FullName]*message{}, enums: map[protoreflect.FullName]*enum{}}
}

func (s *schema) message(d protoreflect.MessageDescriptor) *message {
	if m := s.messages[d.FullName()]; m != nil {
		return m
	}
	fds := d.Fields()
	m := &message{desc: d, name: string(d.FullName()), special: specialOf(d), fields: make(map[string]*field, 2*fds.Len())}
	m.regex = m.name == "envoy.type.matcher.v3.RegexMatcher" || m.name == "xds.type.matcher.v3.RegexMatcher"
	s.messages[d.FullName()] = m
	arena := make([]field, fds.Len())
	for i := range fds.Len() {
		f := &arena[i]
		compile(f, fds.Get(i))
		m.fields[f.name] = f
		m.fields[f.desc.JSONName()] = f
	}
	return m
}

func compile(f *field, fd protoreflect.FieldDescriptor) {
	*f = field{desc: fd, name: string(fd.Name()), kind: fd.Kind(), list: fd.IsList(), isMap: fd.IsMap(), oneof: -1}
	wire := wireType(f.kind)
	f.tag = protowire.AppendTag(nil, fd.Number(), wire)
	if f.list && wire != protowire.BytesType && wire != protowire.StartGroupType {
		f.packed = protowire.AppendTag(nil, fd.Number(), protowire.BytesType)
	}
	f.keep = fd.HasPresence() || f.list
	if o := fd.ContainingOneof(); o != nil && !o.IsSynthetic() && o.Index() < 64 {
		f.oneof = int8(o.Index())
	}
	f.null = f.kind == protoreflect.MessageKind && !f.isMap && fd.Message().FullName() == "google.protobuf.Value" ||
		f.kind == protoreflect.EnumKind && fd.Enum().FullName() == "google.protobuf.NullValue"
	f.skip = unresolved(fd)
	if f.isMap {
		f.key, f.value = new(field), new(field)
		compile(f.key, fd.MapKey())
		compile(f.value, fd.MapValue())
	}
}

// messageOf returns the compiled type of a message field.
func (s *schema) messageOf(f *field) *message {
	if f.message == nil {
		f.message = s.message(f.desc.Message())
	}
	return f.message
}

func (s *schema) enumOf(f *field) *enum {
	if f.enum != nil {
		return f.enum
	}
	d := f.desc.Enum()
	e := s.enums[d.FullName()]
	if e == nil {
		values := d.Values()
		e = &enum{desc: d, numbers: make(map[string]protoreflect.EnumNumber, values.Len())}
		for i := range values.Len() {
			v := values.Get(i)
			e.numbers[string(v.Name())] = v.Number()
		}
		s.enums[d.FullName()] = e
	}
	f.enum = e
	return e
}

// number finds an enum value by name, first as it is written, then in any case.
func (e *enum) number(name []byte) (protoreflect.EnumNumber, bool) {
	if n, ok := e.numbers[string(name)]; ok {
		return n, true
	}
	for k, n := range e.numbers {
		if strings.EqualFold(k, string(name)) {
			return n, true
		}
	}
	return 0, false
}

func (e *enum) names() []string {
	values := e.desc.Values()
	names := make([]string, values.Len())
	for i := range names {
		names[i] = string(values.Get(i).Name())
	}
	return names
}

// byGoName finds a field by the name that protoc-gen-validate puts into its errors, or the first member of a oneof of
// that name.
func (m *message) byGoName(name string) (f *field, oneof string) {
	if m.goNames == nil {
		m.goNames = make(map[string]*field, len(m.fields))
		for _, f := range m.fields {
			m.goNames[goName(f.name)] = f
		}
	}
	if f := m.goNames[name]; f != nil {
		return f, ""
	}
	for i := range m.desc.Oneofs().Len() {
		if o := m.desc.Oneofs().Get(i); goName(string(o.Name())) == name {
			return nil, string(o.Name())
		}
	}
	return nil, ""
}

// goName spells a proto name as generated Go code does: an underscore before a lower-case letter goes and the letter is
// raised, one before anything else stays.
func goName(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '_' && i == 0:
			b = append(b, 'X')
		case c == '_' && i+1 < len(s) && isLower(s[i+1]):
		case c >= '0' && c <= '9':
			b = append(b, c)
		default:
			if isLower(c) {
				c -= 'a' - 'A'
			}
			b = append(b, c)
			for ; i+1 < len(s) && isLower(s[i+1]); i++ {
				b = append(b, s[i+1])
			}
		}
	}
	return string(b)
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

func specialOf(d protoreflect.MessageDescriptor) special {
	name := string(d.FullName())
	base, ok := strings.CutPrefix(name, "google.protobuf.")
	if !ok {
		return plainMessage
	}
	switch base {
	case "Duration":
		return durationMessage
	case "Timestamp":
		return timestampMessage
	case "Struct":
		return structMessage
	case "Value":
		return valueMessage
	case "ListValue":
		return listMessage
	case "FieldMask":
		return fieldMaskMessage
	case "Any":
		return anyMessage
	case "BoolValue", "Int32Value", "Int64Value", "UInt32Value", "UInt64Value", "FloatValue", "DoubleValue", "StringValue", "BytesValue":
		return wrapperMessage
	}
	return plainMessage
}

func wireType(k protoreflect.Kind) protowire.Type {
	switch k {
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return protowire.Fixed32Type
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return protowire.Fixed64Type
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.BytesType
	case protoreflect.GroupKind:
		return protowire.StartGroupType
	}
	return protowire.VarintType
}
