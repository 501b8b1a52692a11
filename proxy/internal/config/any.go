package config

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/dragoman-proxy/dragoman/internal/xdstype"
	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// any writes a google.protobuf.Any from a map with @type. Without @type only an empty map is one.
func (e *encoder) any(n yamlpos.Node) {
	t := e.tree
	if t.Kind(n) != yamlpos.Map {
		x := Error{Msg: "expected '{', a map with @type", Found: e.found(n)}
		if t.Kind(n) == yamlpos.String && !e.errs.full(e.opts.maxErrors()) {
			if url := suggestURL(e.resolver, string(t.Text(n))); url != "" {
				x.Suggestion = `{"@type": ` + url + "}"
			}
		}
		e.fail(n, x)
		return
	}
	if t.Len(n) == 0 {
		return
	}
	url, ok := e.typeURL(n)
	if !ok {
		return
	}
	if typeName(url) == typeName(xdstype.DeltaResource) {
		e.wrapped(n, url)
		return
	}
	mt, err := e.resolver.FindMessageByURL(url)
	if err != nil {
		if e.errs.full(e.opts.maxErrors()) { // it takes time to find out which was meant
			e.errs.More++
			return
		}
		node, _ := t.Child(n, "@type")
		x := unknownType(e.resolver, url)
		e.fail(node, x)
		if x.Kind == Unsupported {
			e.lookInto(n, x.Extension)
		}
		return
	}
	m := e.schema.message(mt.Descriptor())
	e.buf = append(e.buf, 0x0a)
	e.buf = protowire.AppendVarint(e.buf, uint64(len(url)))
	e.buf = append(e.buf, url...)
	e.buf = append(e.buf, 0x12)
	start := e.open()
	before, first := e.errs.Len(), len(e.errs.List)
	if m.special == plainMessage {
		e.fields(n, m, true)
	} else {
		e.anyValue(n, m)
	}
	known := e.errs.List[first:]
	if e.errs.Len() == before+len(known) { // one more would otherwise follow from what was only counted
		e.checkPayload(n, m, mt.New().Interface(), e.buf[start:], known)
		if isTypedStruct(m.name) && len(known) == 0 {
			e.checkTypedStruct(n)
		}
	}
	if len(e.buf) == start { // an empty value is left out
		e.buf = e.buf[:start-2]
		return
	}
	e.close(start)
}

// wrapped writes an Any of a Resource, in which a file may give a resource another name, a version or a time to live.
func (e *encoder) wrapped(n yamlpos.Node, url string) {
	e.buf = append(e.buf, 0x0a)
	e.buf = protowire.AppendVarint(e.buf, uint64(len(url)))
	e.buf = append(e.buf, url...)
	e.buf = append(e.buf, 0x12)
	start := e.open()
	e.fields(n, e.schema.discoveryResource(), true)
	e.payload = nil // it is that of what is within
	e.close(start)
}

func (e *encoder) typeURL(n yamlpos.Node) (string, bool) {
	t := e.tree
	node, found := yamlpos.Node(0), false
	for c := t.First(n); c < t.End(n); c = t.End(c) {
		if string(t.Key(c)) != "@type" {
			continue
		}
		if found {
			e.failKey(c, Error{Msg: "repeated @type in Any"})
			return "", false
		}
		node, found = c, true
	}
	if !found {
		x := Error{Msg: "missing @type in Any is only allowed for an empty object"}
		if url := e.nearlyType(n); url != "" {
			x.Suggestion = `"@type": ` + shortenTo(url, 256)
		} else if disabled, ok := t.Child(n, "disabled"); ok && t.Len(n) == 1 && t.Kind(disabled) == yamlpos.Bool {
			x.Suggestion = `"@type": ` + typePrefix + "envoy.config.route.v3.FilterConfig"
		} else if name := e.typeByFields(n); name != "" {
			x.Suggestion = `"@type": ` + typePrefix + name
		} else {
			x.Allowed = "a key \"@type\" with the type URL of the message, such as \"" + typePrefix + "envoy.extensions.filters.http.router.v3.Router\""
		}
		e.fail(n, x)
		return "", false
	}
	if t.Kind(node) != yamlpos.String {
		e.fail(node, Error{Msg: "@type: expected '\"', a string", Found: e.found(node)})
		return "", false
	}
	url := string(t.Text(node))
	if i := strings.LastIndexByte(url, '/'); i <= 0 {
		e.fail(node, Error{Msg: "@type must contain at least one / and a nonempty host; got: " + shorten(url), Suggestion: suggestURL(e.resolver, url)})
		return "", false
	}
	return url, true
}

// nearlyType is the type URL that stands in n under a key that is nearly @type, "" if there is none.
func (e *encoder) nearlyType(n yamlpos.Node) string {
	t := e.tree
	for c, end := t.First(n), t.End(n); c < end; c = t.End(c) {
		switch strings.ToLower(strings.Trim(string(t.Key(c)), "@_")) {
		case "type", "type_url", "typeurl":
			if t.Kind(c) == yamlpos.String && strings.Contains(string(t.Text(c)), typePrefix) {
				return string(t.Text(c))
			}
		}
	}
	return ""
}

// typeByFields is the only message that has all the fields of n, "" if there is none or more.
func (e *encoder) typeByFields(n yamlpos.Node) (found string) {
	t := e.tree
	if e.errs.full(e.opts.maxErrors()) {
		return ""
	}
	for _, name := range typeNames(e.resolver) {
		mt, err := e.resolver.FindMessageByURL(typePrefix + name)
		if err != nil {
			continue
		}
		m, all := e.schema.message(mt.Descriptor()), true
		for c, end := t.First(n), t.End(n); c < end && all; c = t.End(c) {
			all = m.fields[string(t.Key(c))] != nil
		}
		if all && found != "" {
			return ""
		}
		if all {
			found = name
		}
	}
	return found
}

func suggestURL(r Resolver, url string) string {
	if url == "" || strings.HasPrefix(url, "/") {
		return ""
	}
	if _, err := r.FindMessageByURL(typePrefix + url); err == nil {
		return typePrefix + url
	}
	names := typeNames(r)
	if s := cmp.Or(nearestType(url, names), byLastWord(url, names)); s != "" {
		return typePrefix + s
	}
	return ""
}

const typePrefix = "type.googleapis.com/"

// anyValue writes an Any whose payload has a JSON form of its own, under the key value.
func (e *encoder) anyValue(n yamlpos.Node, m *message) {
	t := e.tree
	top := len(e.path)
	e.path = append(e.path, frame{name: "value", index: -1})
	for c := t.First(n); c < t.End(n); c = t.End(c) {
		switch string(t.Key(c)) {
		case "@type":
		case "value":
			if t.Kind(c) != yamlpos.Null || m.special == valueMessage {
				e.body(c, m)
			}
		default:
			e.unknown(c, t.KeyPos, Error{Kind: UnknownField, Msg: "no such field: '" + shorten(string(t.Key(c))) + "': fields in a well-known-typed Any must be @type or value"})
		}
	}
	e.path = e.path[:top]
}

// maxLastAny bounds the payloads that are remembered: what repeats is small.
const maxLastAny = 16 << 10

// checkPayload runs the field rules of an Any's payload, which the validator of the outer message does not see.
// known are the errors that it has already.
func (e *encoder) checkPayload(n yamlpos.Node, m *message, into proto.Message, wire []byte, known []*Error) {
	if e.opts.SkipValidation {
		return
	}
	e.payload = nil
	if len(known) == 0 && m == e.lastType && bytes.Equal(wire, e.lastAny) {
		return
	}
	if _, ok := into.(validatable); !ok {
		return
	}
	if err := proto.Unmarshal(wire, into); err != nil {
		e.fail(n, Error{Msg: "cannot be decoded as " + m.name + ": " + err.Error()})
		return
	}
	e.payload = into
	before := e.errs.Len()
	e.validate(m, into, known)
	if e.errs.Len() == before && len(known) == 0 && len(wire) <= maxLastAny {
		e.lastType, e.lastAny = m, append(e.lastAny[:0], wire...)
	}
}

func isTypedStruct(name string) bool {
	return name == "xds.type.v3.TypedStruct" || name == "udpa.type.v1.TypedStruct"
}

// checkTypedStruct checks the value of a TypedStruct against the type that it names, if that type is known. If it is
// not, whoever builds the extension decides: an optional filter may be unknown.
func (e *encoder) checkTypedStruct(n yamlpos.Node) {
	t := e.tree
	urlNode, ok := t.Child(n, "type_url")
	if !ok {
		urlNode, ok = t.Child(n, "typeUrl")
	}
	value, has := t.Child(n, "value")
	if !ok || !has || t.Kind(urlNode) != yamlpos.String || t.Kind(value) != yamlpos.Map {
		return
	}
	mt, err := e.resolver.FindMessageByURL(withHost(string(t.Text(urlNode))))
	if err != nil {
		return
	}
	m := e.schema.message(mt.Descriptor())
	at, before, first := len(e.buf), e.errs.Len(), len(e.errs.List)
	e.path = append(e.path, frame{name: "value", index: -1})
	e.body(value, m)
	known := e.errs.List[first:]
	if e.errs.Len() == before+len(known) {
		e.checkPayload(value, m, mt.New().Interface(), e.buf[at:], known)
	}
	e.path = e.path[:len(e.path)-1]
	e.buf = e.buf[:at]
}

// withHost completes a type name to a type URL: TypedStruct takes both.
func withHost(url string) string {
	if strings.IndexByte(url, '/') < 0 {
		return typePrefix + url
	}
	return url
}
