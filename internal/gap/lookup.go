package gap

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Problems says what is wrong with a table itself: rows whose path or value the message does not have, and rows that come twice.
// It is for tests. The message must be linked in.
func (t *Table) Problems() []string {
	mt, err := protoregistry.GlobalTypes.FindMessageByName(t.message)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", t.message, err)}
	}
	var out []string
	seen := map[string]bool{}
	for _, r := range t.rows {
		if seen[r.String()] {
			out = append(out, fmt.Sprintf("%s: %s comes twice", t.message, r))
		}
		seen[r.String()] = true
		fd, err := Lookup(mt.Descriptor(), r.Field)
		switch {
		case err != nil:
			out = append(out, fmt.Sprintf("%s: %v", t.message, err))
		case r.Value != "" && fd.Enum() != nil && fd.Enum().Values().ByName(protoreflect.Name(r.Value)) == nil:
			out = append(out, fmt.Sprintf("%s: %s has no value %s", t.message, r.Field, r.Value))
		}
	}
	return out
}

// Lookup finds the field at a path of proto names; lists and maps add no step.
func Lookup(d protoreflect.MessageDescriptor, path string) (protoreflect.FieldDescriptor, error) {
	var fd protoreflect.FieldDescriptor
	for step := range strings.SplitSeq(path, ".") {
		if fd != nil {
			if d = valueMessage(fd); d == nil {
				return nil, fmt.Errorf("%s: nothing is below %s", path, fd.FullName())
			}
		}
		if fd = d.Fields().ByName(protoreflect.Name(step)); fd == nil {
			return nil, fmt.Errorf("%s: %s has no field %s", path, d.FullName(), step)
		}
	}
	return fd, nil
}

// valueMessage is the message that a field holds, one or many of; nil: none.
func valueMessage(fd protoreflect.FieldDescriptor) protoreflect.MessageDescriptor {
	if fd.IsMap() {
		fd = fd.MapValue()
	}
	return fd.Message()
}
