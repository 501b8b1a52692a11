package config

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Unknown finds the fields of a message that came as bytes which are not of this API: at most DefaultMaxErrors. It looks into the
// payloads of Any whose types r knows. With deprecated it finds those that Envoy is to lose, too: the kind of these is Deprecated, and what
// they say is in Envoy's words.
func Unknown(m proto.Message, r Resolver, deprecated bool) []*Error {
	u := unknown{r: orGlobal(r), deprecated: deprecated}
	u.look(m.ProtoReflect(), "", 0)
	return u.list
}

type unknown struct {
	r          Resolver
	deprecated bool
	list       []*Error
}

func (u *unknown) look(m protoreflect.Message, path string, depth int) {
	if depth > maxAnyDepth || len(u.list) >= DefaultMaxErrors {
		return
	}
	if b := m.GetUnknown(); len(b) > 0 {
		u.list = append(u.list, &Error{Path: path, Kind: UnknownField,
			Msg: fmt.Sprintf("Protobuf message (type %s with unknown field set {%s}) has unknown fields", m.Descriptor().FullName(), strings.Join(numbers(b), ", "))})
	}
	if m.Descriptor().FullName() == "google.protobuf.Any" {
		if inner, err := unpack(m.Interface(), u.r); err == nil && inner != nil {
			u.look(inner.ProtoReflect(), path, depth+1)
		}
		return
	}
	if u.deprecated {
		m.Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			if isDeprecated(fd) && len(u.list) < DefaultMaxErrors {
				u.list = append(u.list, &Error{Path: join(path, string(fd.Name())), Kind: Deprecated, Msg: saidOfDeprecated(fd)})
			}
			return true
		})
	}
	eachMessage(m, path, func(m protoreflect.Message, path string) { u.look(m, path, depth) })
}

// numbers are the numbers of the fields in b, each once, ascending.
func numbers(b []byte) []string {
	var list []protowire.Number
	for len(b) > 0 {
		n, typ, size := protowire.ConsumeTag(b)
		if size < 0 {
			break
		}
		value := protowire.ConsumeFieldValue(n, typ, b[size:])
		if value < 0 {
			break
		}
		b = b[size+value:]
		list = append(list, n)
	}
	slices.Sort(list)
	var out []string
	for _, n := range slices.Compact(list) {
		out = append(out, fmt.Sprint(n))
	}
	return out
}

// Tell hands over what was noted of a resource: of a deprecated field what is said is in Envoy's words.
func (o *Options) Tell(e *Error) {
	switch {
	case e.Kind == Deprecated && o.OnDeprecated != nil:
		o.OnDeprecated(e, e.Msg)
	case e.Kind != Deprecated && o.OnUnknownField != nil:
		o.OnUnknownField(e)
	}
}
