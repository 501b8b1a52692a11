package server

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// fieldMask is a tree of field names; a leaf stands for all that is below. A nil mask is everything.
type fieldMask struct{ children map[string]*fieldMask }

// parseMask reads paths with dots, separated by commas.
func parseMask(text string) *fieldMask {
	root := &fieldMask{}
	for _, path := range strings.Split(text, ",") {
		m := root
		for _, name := range strings.Split(path, ".") {
			if m.children == nil {
				m.children = map[string]*fieldMask{}
			}
			next := m.children[name]
			if next == nil {
				next = &fieldMask{}
				m.children[name] = next
			}
			m = next
		}
	}
	return root
}

// selects tells whether the field at path is shown whole.
func (m *fieldMask) selects(path ...string) bool {
	for _, name := range path {
		if m == nil || m.children == nil {
			return true
		}
		if m = m.children[name]; m == nil {
			return false
		}
	}
	return true
}

const anyName = "google.protobuf.Any"

// valid tells whether the mask fits a message: its fields exist, and no list is looked into. inner is what an Any in it holds.
func (m *fieldMask) valid(d, inner protoreflect.MessageDescriptor) bool {
	if d.FullName() == anyName && inner != nil {
		d = inner
	}
	for name, child := range m.children {
		f := d.Fields().ByTextName(name)
		switch {
		case f == nil:
			return false
		case child.children == nil:
		case f.IsList() || f.IsMap() || f.Message() == nil:
			return false
		case !child.valid(f.Message(), inner):
			return false
		}
	}
	return true
}

// trim clears what the mask does not show.
func (m *fieldMask) trim(msg protoreflect.Message) {
	if m.children == nil {
		return
	}
	if a, ok := msg.Interface().(*anypb.Any); ok {
		m.trimAny(a)
		return
	}
	msg.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		child := m.children[f.TextName()]
		switch {
		case child == nil:
			msg.Clear(f)
		case child.children != nil && f.Message() != nil && !f.IsList() && !f.IsMap():
			child.trim(v.Message())
		}
		return true
	})
}

func (m *fieldMask) trimAny(a *anypb.Any) {
	inner, _, err := config.Unpack(a, nil)
	if err != nil || inner == nil {
		return
	}
	m.trim(inner.ProtoReflect())
	if raw, err := proto.Marshal(inner); err == nil {
		a.Value = raw
	}
}
