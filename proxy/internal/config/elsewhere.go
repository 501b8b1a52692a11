package config

import (
	"cmp"
	"slices"
	"strings"

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
	if !e.opts.AllowUnknownFields && key != "@type" && (e.ofMisplacedType(n, m, key) || e.foreign(n, c, m)) {
		return
	}
	top := len(e.path) - 1
	if e.path[top] = (frame{name: key, index: -1}); strings.ContainsAny(key, ".[") {
		e.path[top] = frame{key: e.tree.Key(c), index: -1}
	}
	names := m.fieldNames()
	x := Error{
		Kind:       UnknownField,
		Msg:        "no such field: '" + shorten(key) + "': message " + m.name + " has unknown fields",
		Suggestion: slip(key, names), // a slip of one letter comes before a field of that very name elsewhere
	}
	wrong, told := e.wrongSide(n, c, m, &x)
	if told && !e.opts.AllowUnknownFields {
		return
	}
	f, keys := e.unwrapped(n, m)
	switch {
	case wrong:
	case f != "" && slices.Contains(keys, key):
		if key != keys[0] && !e.opts.AllowUnknownFields {
			return // told with the first of them
		}
		x.Msg = "no such field: '" + strings.Join(keys, "', '") + "': message " + m.name + " has unknown fields"
		x.Suggestion, x.Advice = f, "as {"+strings.Join(keys, ": ..., ")+": ...}"
	case key == "<<":
		x.Msg = "no such field: '<<': YAML's merge keys are not read, as in Envoy"
		x.Allowed, x.Suggestion = "the fields themselves, or an alias for a whole value", ""
	case key == "@type" && m.fields["typed_config"] != nil:
		x.Suggestion, x.Advice = "typed_config", "@type and the fields of the message that it names stand in typed_config"
	case m.byOldName(key, &x):
		if x.Suggestion != "" && !e.opts.AllowUnknownFields && (e.toldBefore(n, c, m, x.Suggestion) || e.inOnePiece(n, x.Suggestion)) {
			return
		}
	case x.Suggestion == "" && e.untyped(n, m):
		if !e.opts.AllowUnknownFields && e.unknownBefore(n, c, m) {
			return
		}
		x.Suggestion, x.Advice = "typed_config", "it holds the fields of the extension, with an @type that says whose they are"
	case x.Suggestion == "":
		if x.Elsewhere, x.Suggestion = e.elsewhere(n, m, key, names); x.Elsewhere == "" && x.Suggestion == "" {
			x.Suggestion = cmp.Or(nearest(key, names), shorter(key, names))
		}
	}
	if x.Elsewhere == "" && x.Suggestion == "" && x.Advice == "" && e.form(n, c, m, &x) && !e.opts.AllowUnknownFields && e.unknownBefore(n, c, m) {
		return // told with the first of them
	}
	if x.Elsewhere == "" && x.Suggestion == "" && x.Allowed == "" && x.Advice == "" {
		switch alike, sure := byWords(key, names); {
		case sure:
			x.Suggestion = alike[0]
		case len(names) == 0:
			x.Allowed = "nothing, the message has no fields"
		default:
			x.Allowed = someOf(alike, 12)
		}
	}
	e.unknown(c, e.tree.KeyPos, x)
}

// form says of the key c of the map n, which m has not, in which form what it says stands in m, if that is known. It tells whether that
// is a list in the place of all of n.
func (e *encoder) form(n, c yamlpos.Node, m *message, x *Error) (all bool) {
	t := e.tree
	if len(t.Key(n)) > 0 && len(e.path) > 1 && e.path[len(e.path)-2].index == 0 { // a map in the place of a list
		if list := e.asList(c, m); list != "" {
			x.Advice = "a list is wanted here: " + list
		}
		return x.Advice != ""
	}
	if pair := pairs[m.name]; pair != nil && t.Len(n) == 1 && t.Kind(c) < yamlpos.Map {
		x.Suggestion = pair(string(t.Key(c)), string(t.Text(c)))
	}
	if _, named := t.Child(n, "name"); m.fields["name"] != nil && !named && strings.Contains(string(t.Key(c)), ".") && (t.Kind(c) == yamlpos.Map || t.Kind(c) == yamlpos.Null) {
		x.Suggestion, x.Advice = "name", "as name: "+string(t.Key(c))
	}
	return false
}

// untyped tells whether n lacks the typed_config that m has.
func (e *encoder) untyped(n yamlpos.Node, m *message) bool {
	if m.fields["typed_config"] == nil {
		return false
	}
	for _, key := range []string{"typed_config", "typedConfig", "config_discovery", "@type"} {
		if _, written := e.tree.Child(n, key); written {
			return false
		}
	}
	return true
}

// unknownBefore tells whether a key of n before c is one that m has not.
func (e *encoder) unknownBefore(n, c yamlpos.Node, m *message) bool {
	for b := e.tree.First(n); b < c; b = e.tree.End(b) {
		if m.fields[string(e.tree.Key(b))] == nil {
			return true
		}
	}
	return false
}

// toldBefore tells whether a key of n before c stands for the same field of m, which is told there.
func (e *encoder) toldBefore(n, c yamlpos.Node, m *message, now string) bool {
	for b := e.tree.First(n); b < c; b = e.tree.End(b) {
		var x Error
		if key := string(e.tree.Key(b)); m.fields[key] == nil && m.byOldName(key, &x) && x.Suggestion == now {
			return true
		}
	}
	return false
}

// inOnePiece tells whether the address of n stands there as a text, where its port is told, too.
func (e *encoder) inOnePiece(n yamlpos.Node, field string) bool {
	a, ok := e.tree.Child(n, field)
	return ok && field == "address" && e.tree.Kind(a) < yamlpos.Map && e.tree.Kind(a) != yamlpos.Null
}

// unwrapped finds in n the keys that m has not, if there are several and all are of a message that m has in a field f which is not
// written: what stands in n belongs into f. "" if it is not so, or not clear which field it is.
func (e *encoder) unwrapped(n yamlpos.Node, m *message) (f string, keys []string) {
	t := e.tree
	for c, end := t.First(n), t.End(n); c < end; c = t.End(c) {
		if key := string(t.Key(c)); m.fields[key] == nil {
			keys = append(keys, key)
		}
	}
	const most = 8 // more than that say nothing
	if len(keys) < 2 || len(keys) > most {
		return "", nil
	}
	for name, x := range m.fields {
		if name != x.name || x.kind != protoreflect.MessageKind || x.isMap || x.list || x.desc == nil || x.deprecated() {
			continue
		}
		in := e.schema.messageOf(x)
		if v, written := t.Child(n, name); written && t.Kind(v) != yamlpos.Null || in.special != plainMessage || slices.ContainsFunc(keys, func(k string) bool { return in.fields[k] == nil }) {
			continue
		}
		if f != "" {
			return "", nil
		}
		f = name
	}
	return f, keys
}

// foreign tells whether the map n is the whole of a file that is none of a bootstrap's, which is told at its first key only.
func (e *encoder) foreign(n, c yamlpos.Node, m *message) bool {
	if len(e.path) != 1 || c == e.tree.First(n) || m.name != "envoy.config.bootstrap.v3.Bootstrap" {
		return false
	}
	first := string(e.tree.Key(e.tree.First(n)))
	return m.fields[first] == nil && slices.Contains(foreignKeys, first)
}

// foreignKeys are with what files of others begin: of Kubernetes, of docker compose, and responses of a control plane.
var foreignKeys = []string{"apiVersion", "kind", "services", "resources", "version_info", "versionInfo"}

// elsewhere looks for a message that has a field key which m, read from n, has not: in what is written below it, or could be, around it,
// the nearest first, beside it, and then further below, and in lists. A field of m that key is short for comes before those around. It
// returns the path of the message or that field, two times "" if there is none.
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
		a := e.around[i]
		if a.m.fields[key] != nil {
			return cmp.Or(pathString(e.path[:a.depth]), "."), ""
		}
		if f := e.writtenBeside(a, key); f != "" {
			return join(pathString(e.path[:a.depth]), f), ""
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

// writtenBeside is writtenBelow for a message around, if it stands in the same tree.
func (e *encoder) writtenBeside(a nesting, key string) string {
	if !a.here {
		return ""
	}
	return e.writtenBelow(a.n, a.m, key)
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
						found = join(at.path, s.usual(at.m, f))
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

// usual is the field of m in which messages of the type of f stand mostly, as filter_chains for default_filter_chain.
func (s *schema) usual(m *message, f *field) string {
	if list := m.fields[strings.TrimPrefix(f.name, "default_")+"s"]; list != nil && list.list && !f.list && list.kind == f.kind && s.messageOf(list) == s.messageOf(f) {
		return list.name + "[0]"
	}
	if f.list {
		return f.name + "[0]"
	}
	return f.name
}
