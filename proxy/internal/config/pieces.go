package config

import (
	"strings"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// notFields is the error for n, which should hold the fields of m and is no map. A value in one piece is told in the form that is wanted.
func (e *encoder) notFields(n yamlpos.Node, m *message) Error {
	x := Error{Msg: "expected '{', a map of the fields of " + m.name, Found: e.found(n)}
	switch k := e.tree.Kind(n); {
	case k == yamlpos.Seq:
		x.Allowed = "one map, and not a list: without the dash"
		if f := e.listOf(n, m); f != "" {
			x.Suggestion, x.Allowed = "{"+f+": [...]}", ""
		}
	case k < yamlpos.Map:
		const maxText = 200
		if k == yamlpos.Bool && e.tree.Bool(n) && forms[m.name] == nil && len(e.path) > 0 && e.path[len(e.path)-1].index < 0 {
			x.Suggestion = "{}"
		}
		if form := forms[m.name]; form != nil && len(e.tree.Text(n)) <= maxText {
			x.Suggestion = form(string(e.tree.Text(n)) + e.portBeside(n, m))
		}
		if names := m.fieldNames(); x.Suggestion == "" && len(names) > 0 {
			x.Allowed = "the fields " + someOf(names, 12)
		}
	}
	return x
}

// portBeside is the port, with a colon, that stands beside an address without one. Where that is no field, it is told at the address.
func (e *encoder) portBeside(n yamlpos.Node, m *message) string {
	if m.name != addressMessage || len(e.around) == 0 || strings.ContainsAny(string(e.tree.Text(n)), ":/") {
		return ""
	}
	if a := e.around[len(e.around)-1]; a.here {
		if p, ok := e.port(a.n); ok {
			return ":" + string(e.tree.Text(p))
		}
	}
	return ""
}

const addressMessage = "envoy.config.core.v3.Address"

// port is the number of a port in the map n.
func (e *encoder) port(n yamlpos.Node) (p yamlpos.Node, ok bool) {
	for _, key := range []string{"port", "port_value"} {
		if p, ok = e.tree.Child(n, key); ok && e.tree.Kind(p) == yamlpos.Number {
			return p, true
		}
	}
	return 0, false
}

// listOf is the only field of m that is a list of messages which have all fields of the first element of the list n, "" if there is none
// or more; of thresholds and per_host_thresholds it is the shorter one.
func (e *encoder) listOf(n yamlpos.Node, m *message) (found string) {
	t := e.tree
	first, ok := t.Elem(n, 0)
	if ok && t.Kind(first) == yamlpos.Map && e.hasAll(first, m) {
		return ""
	}
	for name, f := range m.fields {
		if name != f.name || !f.list || f.kind != protoreflect.MessageKind || ok && t.Kind(first) == yamlpos.Map && !e.hasAll(first, e.schema.messageOf(f)) {
			continue
		}
		switch {
		case found == "", strings.HasSuffix(found, "_"+name):
			found = name
		case !strings.HasSuffix(name, "_"+found):
			return ""
		}
	}
	return found
}

// hasAll tells whether all keys of the map n are fields of m.
func (e *encoder) hasAll(n yamlpos.Node, m *message) bool {
	t := e.tree
	for c, end := t.First(n), t.End(n); c < end; c = t.End(c) {
		if m.fields[string(t.Key(c))] == nil {
			return false
		}
	}
	return true
}

// asList says how what the key c of a map says stands in a list of m, "" if that is not known: names of things that have a name, and pairs
// of what are headers or parameters.
func (e *encoder) asList(c yamlpos.Node, m *message) string {
	key := string(e.tree.Key(c))
	if e.tree.Kind(c) == yamlpos.Map {
		if m.fields["name"] != nil {
			return "[{name: " + scalarText(key) + ", ...}]"
		}
		return ""
	}
	if form := pairs[m.name]; form != nil && e.tree.Kind(c) < yamlpos.Map {
		return "[" + form(key, string(e.tree.Text(c))) + "]"
	}
	return ""
}
