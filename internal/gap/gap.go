// Package gap holds, as data, which fields of Envoy's messages this program refuses because it does not have what they ask for.
//
// A Table belongs to one message. The package that reads the message owns the table and asks it once, while a configuration is
// loaded; docs/compat.md and the tables of fields are made from the same rows, so that what they say is what is refused. A table
// is immutable and may be used from any goroutine. Nothing here runs while a request is served.
package gap

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Table is what is refused of one message.
type Table struct {
	message protoreflect.FullName
	rows    []Row
	tree    node
}

// Row is one refused field.
type Row struct {
	// Message is the full name of the message that the table is of.
	Message string
	// Field is the path below it in proto names: "common_lb_config.override_host_status". Lists and maps add no step.
	Field string
	// Value is the refused value, by its name; "" means every value.
	Value string
	// Note says when it is refused, for what a path and a value cannot say.
	Note string
	// Own tells that the code that reads the field checks it itself: Found does not look at it.
	Own bool
	// Ignored tells that the field is not refused: it is accepted and changes nothing, for the reason that Note gives.
	Ignored bool
}

// String is the row as it was given to Of.
func (r Row) String() string {
	s := r.Field
	switch {
	case r.Ignored:
		s = "~" + s
	case r.Own && r.Note == "":
		s = "!" + s
	}
	if r.Value != "" {
		s += "=" + r.Value
	}
	if r.Note != "" {
		s += " (" + r.Note + ")"
	}
	return s
}

// node is one step of the paths.
type node struct {
	below  map[protoreflect.Name]*node
	all    bool
	values []string
}

// Of makes the table of a message from its rows:
//
//	a.b            field b of field a, whatever it holds
//	a.b=TEXT       only if it holds TEXT, the name of an enum's value, true or false
//	a.b (note)     only under the condition that the note names, which the code that reads the field checks itself
//	!a.b           as the first, and the code that reads the field checks it itself: where that is faster or says more
//	~a.b (reason)  accepted, and changes nothing
//
// A row whose path ends at a list or a map means one that is not empty.
func Of(message string, rows ...string) *Table {
	t := &Table{message: protoreflect.FullName(message)}
	for _, text := range rows {
		r := Row{Message: message}
		r.Field, r.Ignored = strings.CutPrefix(text, "~")
		r.Field, r.Own = strings.CutPrefix(r.Field, "!")
		if path, note, ok := strings.Cut(r.Field, " ("); ok {
			r.Field, r.Note, r.Own = path, strings.TrimSuffix(note, ")"), !r.Ignored
		}
		r.Field, r.Value, _ = strings.Cut(r.Field, "=")
		t.rows = append(t.rows, r)
		if !r.Own && !r.Ignored {
			t.tree.add(strings.Split(r.Field, "."), r.Value)
		}
	}
	return t
}

// ForExtension makes the tables of an extension's messages, of which the first is the one that rows are of. A row of another one
// begins with that one's name without its package, and a colon: "PerRoute:a.b".
func ForExtension(messages []string, rows []string) []*Table {
	if len(messages) == 0 || len(rows) == 0 {
		return nil
	}
	of := map[string][]string{}
	for _, r := range rows {
		message := messages[0]
		if short, rest, ok := strings.Cut(r, ":"); ok && !strings.ContainsAny(short, " (") {
			for _, m := range messages {
				if strings.HasSuffix(m, "."+short) {
					message, r = m, rest
				}
			}
		}
		of[message] = append(of[message], r)
	}
	var out []*Table
	for _, m := range slices.Sorted(maps.Keys(of)) {
		out = append(out, Of(m, of[m]...))
	}
	return out
}

func (n *node) add(path []string, value string) {
	for _, step := range path {
		if n.below == nil {
			n.below = map[protoreflect.Name]*node{}
		}
		next := n.below[protoreflect.Name(step)]
		if next == nil {
			next = &node{}
			n.below[protoreflect.Name(step)] = next
		}
		n = next
	}
	if value == "" {
		n.all = true
	} else {
		n.values = append(n.values, value)
	}
}

// Message is the full name of the message that the table is of.
func (t *Table) Message() string { return string(t.message) }

// Rows returns all rows in the order in which they were given. The caller must not change them.
func (t *Table) Rows() []Row { return t.rows }

// Found returns the paths of m's fields that are refused, in alphabetical order and with the indices and keys of lists and maps;
// a value that is refused is part of it ("codec_type=HTTP3"). It must be a message of the table's type. Rows that
// are left to the reading code are not looked at.
func (t *Table) Found(m proto.Message) []string {
	r := m.ProtoReflect()
	if r.Descriptor().FullName() != t.message || !r.IsValid() {
		return nil
	}
	var out []string
	t.tree.walk(r, "", &out)
	slices.Sort(out)
	return out
}

// walk looks at the fields of m that are set, of which there are mostly fewer than rows.
func (n *node) walk(m protoreflect.Message, path string, out *[]string) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		next := n.below[fd.Name()]
		if next == nil {
			return true
		}
		at := string(fd.Name())
		if path != "" {
			at = path + "." + at
		}
		next.field(fd, v, at, out)
		return true
	})
}

func (n *node) field(fd protoreflect.FieldDescriptor, v protoreflect.Value, at string, out *[]string) {
	switch {
	case n.all:
		*out = append(*out, at)
	case fd.IsMap():
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			n.single(fd.MapValue(), v, fmt.Sprintf("%s[%q]", at, k.String()), out)
			return true
		})
	case fd.IsList():
		for i := range v.List().Len() {
			n.single(fd, v.List().Get(i), fmt.Sprintf("%s[%d]", at, i), out)
		}
	default:
		n.single(fd, v, at, out)
	}
}

func (n *node) single(fd protoreflect.FieldDescriptor, v protoreflect.Value, at string, out *[]string) {
	if len(n.values) > 0 {
		if name := valueName(fd, v); slices.Contains(n.values, name) {
			*out = append(*out, at+"="+name)
			return
		}
	}
	if fd.Message() != nil {
		n.walk(v.Message(), at, out)
	}
}

// valueName is a value as rows have it; a wrapper's is that of its value.
func valueName(fd protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch {
	case fd.Enum() != nil:
		if e := fd.Enum().Values().ByNumber(v.Enum()); e != nil {
			return string(e.Name())
		}
		return ""
	case fd.Message() != nil:
		if fd.Message().FullName().Parent() != "google.protobuf" {
			return ""
		}
		if inner := fd.Message().Fields().ByName("value"); inner != nil && fd.Message().Fields().Len() == 1 {
			return v.Message().Get(inner).String()
		}
		return ""
	}
	return v.String()
}
