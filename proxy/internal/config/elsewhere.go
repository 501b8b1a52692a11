package config

import (
	"cmp"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// unknownField tells of the key c of the map n, which m does not have.
func (e *encoder) unknownField(n, c yamlpos.Node, m *message) {
	if e.opts.AllowUnknownFields && e.opts.OnUnknownField == nil {
		return
	}
	if !e.opts.AllowUnknownFields && e.errs.full(e.opts.maxErrors()) {
		e.errs.More++
		return
	}
	key := string(e.tree.Key(c))
	if !e.opts.AllowUnknownFields && key != "@type" && e.ofMisplacedType(n, m, key) {
		return
	}
	top := len(e.path) - 1
	e.path[top] = frame{name: key, index: -1}
	names := m.fieldNames()
	x := Error{
		Kind:       UnknownField,
		Msg:        "no such field: '" + shorten(key) + "': message " + m.name + " has unknown fields",
		Suggestion: slip(key, names), // a slip of one letter comes before a field of that very name elsewhere
	}
	switch {
	case key == "<<":
		x.Msg = "no such field: '<<': YAML's merge keys are not read, as in Envoy"
		x.Allowed, x.Suggestion = "the fields themselves, or an alias for a whole value", ""
	case key == "@type" && m.fields["typed_config"] != nil:
		x.Suggestion, x.Advice = "typed_config", "@type and the fields of the message that it names stand in typed_config"
	case m.byOldName(key, &x):
	case x.Suggestion == "":
		if x.Elsewhere, x.Suggestion = e.elsewhere(n, m, key, names); x.Elsewhere == "" && x.Suggestion == "" {
			x.Suggestion = cmp.Or(nearest(key, names), shorter(key, names))
		}
	}
	if x.Elsewhere == "" && x.Suggestion == "" && x.Advice == "" {
		if list := e.asList(c, m); list != "" {
			x.Advice = "a list is wanted here: " + list
		}
	}
	if x.Elsewhere == "" && x.Suggestion == "" && x.Allowed == "" && x.Advice == "" {
		x.Allowed = someOf(names, 12)
		if len(names) == 0 {
			x.Allowed = "nothing, the message has no fields"
		}
	}
	e.unknown(c, e.tree.KeyPos, x)
}

// elsewhere looks for a message that has a field key which m, read from n, has not: in what is written below it, or could be, around it,
// the nearest first, beside it, and then further below, and in lists. A field of m that key is short for comes before those around. It returns the path of the
// message or that field, two times "" if there is none.
func (e *encoder) elsewhere(n yamlpos.Node, m *message, key string, names []string) (path, field string) {
	at := pathString(e.path[:len(e.path)-1])
	if f := e.writtenBelow(n, m, key); f != "" {
		return join(at, f), ""
	}
	if f := e.schema.below(m, key, 1, false); f != "" {
		return join(at, f), ""
	}
	if f := longer(key, names); f != "" {
		return "", f
	}
	for i := len(e.around) - 2; i >= 0; i-- {
		if a := e.around[i]; a.m.fields[key] != nil {
			return cmp.Or(pathString(e.path[:a.depth]), "."), ""
		}
	}
	if i := len(e.around) - 2; i >= 0 {
		if f := e.schema.below(e.around[i].m, key, 1, false); f != "" {
			return join(pathString(e.path[:e.around[i].depth]), f), ""
		}
	}
	if f := e.schema.below(m, key, maxBelow, true); f != "" {
		return join(at, f), ""
	}
	return "", ""
}

// ofMisplacedType tells whether n, which has an @type that m has not, is all in all what belongs into its typed_config: that is told at
// the @type, for all its fields.
func (e *encoder) ofMisplacedType(n yamlpos.Node, m *message, key string) bool {
	if m.fields["typed_config"] == nil {
		return false
	}
	p := e.payloadType(n)
	return p != nil && p.fields[key] != nil
}

// payloadType is the message that the @type of n names, nil if it names none.
func (e *encoder) payloadType(n yamlpos.Node) *message {
	url, ok := e.tree.Child(n, "@type")
	if !ok {
		return nil
	}
	mt, err := e.resolver.FindMessageByURL(string(e.tree.Text(url)))
	if err != nil {
		return nil
	}
	return e.schema.message(mt.Descriptor())
}

// writtenBelow is the field of m, read from n, that holds a message with the field key, "" if there is none.
func (e *encoder) writtenBelow(n yamlpos.Node, m *message, key string) string {
	t := e.tree
	for c, end := t.First(n), t.End(n); c < end; c = t.End(c) {
		f := m.fields[string(t.Key(c))]
		if f == nil || f.kind != protoreflect.MessageKind || f.isMap || f.list {
			continue
		}
		child := e.schema.messageOf(f)
		if child.special == anyMessage {
			child = e.payloadType(c)
		}
		if child != nil && child.fields[key] != nil {
			return f.name
		}
	}
	return ""
}

// maxBelow is how many messages deep a field is looked for that was written too far out.
const maxBelow = 2

// below is the path, from m, of the only message that has a field key among those nearest below m, "" if there is none or more. Those in
// lists count only if they are asked for.
func (s *schema) below(m *message, key string, depth int, lists bool) string {
	type spot struct {
		path string
		m    *message
	}
	level := []spot{{"", m}}
	for range depth {
		var next []spot
		found, places := "", 0
		for _, at := range level {
			for name, f := range at.m.fields {
				if name != f.name || f.kind != protoreflect.MessageKind || f.isMap || f.list && !lists || f.desc == nil || f.deprecated() {
					continue
				}
				child := s.messageOf(f)
				path := join(at.path, f.name)
				if f.list {
					path += "[0]"
				}
				if child.special == plainMessage {
					next = append(next, spot{path, child})
					if child.fields[key] != nil {
						found = path
						places++
					}
				}
			}
		}
		if places > 0 {
			if places > 1 {
				return ""
			}
			return found
		}
		level = next
	}
	return ""
}
