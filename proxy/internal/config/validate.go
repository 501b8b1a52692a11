package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
)

// validatable is what protoc-gen-validate generates for every message of the API.
type validatable interface {
	ValidateAll() error
}

// violation is one error of a generated validator.
type violation interface {
	Field() string
	Reason() string
	Cause() error
	ErrorName() string
}

type multiError interface{ AllErrors() []error }

// validate runs the generated rules of msg, which was read from the current path, and reports each violation at the place
// of the value that breaks it. The rules see nested messages, not the payloads of Any.
// known are errors that were found while it was read.
func (e *encoder) validate(m *message, msg proto.Message, known []*Error) {
	v, ok := msg.(validatable)
	if !ok {
		return
	}
	if err := v.ValidateAll(); err != nil {
		w := walker{schema: e.schema, limit: e.opts.maxErrors(), errs: e.errs, pos: e.pos, known: known}
		w.violations(err, spot{path: pathString(e.path), msg: m, value: msg.ProtoReflect()})
	}
}

// walker turns the nested errors of a generated validator into Errors.
type walker struct {
	schema *schema
	limit  int
	errs   *Errors
	pos    *Positions // nil without a text form
	known  []*Error   // what follows from them is not reported
}

// spot is a message on the way down.
type spot struct {
	path  string
	msg   *message             // nil if its type is not known
	value protoreflect.Message // nil if it is not known
}

// unasked is a rule that Envoy does not ask for: it reads load balancing policies without the generated rules, and takes one that says
// nothing of localities for one without it. The others of these policies bound what a table takes, or have no meaning when broken.
const unasked = "LocalityLbConfigValidationError.LocalityConfigSpecifier"

func (w *walker) violations(err error, at spot) {
	if multi, ok := err.(multiError); ok {
		for _, one := range multi.AllErrors() {
			w.violations(one, at)
		}
		return
	}
	v, ok := err.(violation)
	if !ok {
		w.add(Error{Path: at.path, Msg: "Proto constraint validation failed (" + err.Error() + ")"})
		return
	}
	if v.ErrorName()+"."+v.Field() == unasked {
		return
	}
	next, f, members := w.step(at, v.Field())
	if cause := v.Cause(); cause != nil && isViolation(cause) {
		w.violations(cause, next)
		return
	}
	reason := strings.ReplaceAll(v.Reason(), " runes", " characters") // Envoy's validator counts characters
	if cause := v.Cause(); cause != nil {
		reason += " | caused by " + cause.Error()
	}
	x := Error{Path: next.path, Msg: "Proto constraint validation failed (" + v.ErrorName() + "." + v.Field() + ": " + reason + ")"}
	if len(members) > 0 {
		if reason == "value is required" { // Envoy's validator has its own words for these
			x.Msg = "Proto constraint validation failed (field: \"" + lastWord(next.path) + "\", reason: is required)"
		}
		x.Allowed = "one of " + someOf(members, 20)
		if w.chosen(at.path, members) {
			return
		}
	}
	if f != nil && f.kind == protoreflect.EnumKind && strings.Contains(reason, "value must be one of the defined enum values") {
		names := w.schema.allowedNames(f)
		x.Allowed = someOf(names, 20)
		if n, ok := w.pos.node(next.path); ok && n.tree.Kind(n.node) < yamlpos.Map {
			x.Suggestion = meantEnum(string(n.tree.Text(n.node)), names)
		}
	}
	if f != nil && negative(at.value, f) {
		x.Msg += ": Invalid duration: Expected positive duration"
	}
	w.meant(&x, at)
	w.add(x)
}

// meant says what was meant by a value that breaks a rule, where people write the same.
func (w *walker) meant(x *Error, at spot) {
	text := func(path string) (string, bool) {
		n, ok := w.pos.node(path)
		if !ok || n.tree.Kind(n.node) != yamlpos.String {
			return "", false
		}
		return string(n.tree.Text(n.node)), true
	}
	switch {
	case at.msg == nil:
	case at.msg.name == "envoy.config.core.v3.SocketAddress" && strings.HasSuffix(x.Path, ".port_specifier"):
		if s, ok := text(join(at.path, "address")); ok {
			if form := socketForm(s); !strings.HasSuffix(form, "...}") {
				x.Suggestion = form
			}
		}
	case strings.HasSuffix(x.Path, ".path_separated_prefix"):
		switch s, ok := text(x.Path); {
		case !ok:
		case s == "/":
			x.Suggestion = "prefix: /"
		case strings.ContainsAny(s, "?#"):
			x.Advice = "paths are compared without the query and the fragment"
		default:
			x.Suggestion, x.Advice = strings.TrimRight(s, "/"), "what follows is nothing, or a slash and more"
		}
	}
}

func isViolation(err error) bool {
	switch err.(type) {
	case multiError, violation:
		return true
	}
	return false
}

// chosen tells whether one of the members of a oneof was written, and is wrong.
func (w *walker) chosen(path string, members []string) bool {
	return slices.ContainsFunc(members, func(m string) bool { return about(w.known, join(path, m)) })
}

func (w *walker) add(x Error) {
	if about(w.known, x.Path) {
		return
	}
	x.Kind = BrokenRule
	if w.errs.full(w.limit) {
		w.errs.More++
		return
	}
	n, ok := w.pos.node(x.Path)
	if !ok && n.tree != nil && mysterious(w.known, x.Path) {
		return
	}
	switch {
	case ok && n.tree.Kind(n.node) < yamlpos.Map:
		e := encoder{tree: n.tree}
		x.Found = e.found(n.node)
	case !ok && n.tree != nil && x.Allowed == "" && x.Suggestion == "" && x.Advice == "":
		x.Advice = "'" + x.Path[strings.LastIndexByte(x.Path, '.')+1:] + "' is missing"
	}
	w.errs.Add(w.pos.Error(x.Path, x), w.limit)
}

// step goes from a message to the field that a violation names: Clusters, Clusters[3], Options[key] or the name of a
// oneof, whose members it returns.
func (w *walker) step(at spot, name string) (next spot, f *field, members []string) {
	base, index, hasIndex := strings.Cut(name, "[")
	index = strings.TrimSuffix(index, "]")
	if at.msg == nil {
		return spot{path: join(at.path, name)}, nil, nil
	}
	f, oneof := at.msg.byGoName(base)
	switch {
	case f == nil && oneof != "":
		return spot{path: join(at.path, oneof)}, nil, oneofMembers(at.msg, oneof)
	case f == nil:
		return spot{path: join(at.path, name)}, nil, nil
	}
	next.path = join(at.path, f.name)
	value := f
	if hasIndex && f.isMap {
		value = f.value
		next.path += "[" + strconv.Quote(index) + "]"
	} else if hasIndex {
		next.path += "[" + index + "]"
	}
	if value.kind == protoreflect.MessageKind {
		next.msg = w.schema.messageOf(value)
		next.value = valueAt(at.value, f, index)
	}
	return next, f, nil
}

func oneofMembers(m *message, oneof string) []string {
	fds := m.desc.Oneofs().ByName(protoreflect.Name(oneof)).Fields()
	names := make([]string, fds.Len())
	for i := range names {
		names[i] = string(fds.Get(i).Name())
	}
	return names
}

// valueAt returns the message in field f of m, or in its element; nil if there is none.
func valueAt(m protoreflect.Message, f *field, index string) protoreflect.Message {
	if m == nil || !m.IsValid() || !m.Has(f.desc) {
		return nil
	}
	switch {
	case f.isMap:
		return nil // only needed for durations, which no map of the API holds
	case f.list:
		i, err := strconv.Atoi(index)
		if l := m.Get(f.desc).List(); err == nil && i >= 0 && i < l.Len() {
			return l.Get(i).Message()
		}
		return nil
	}
	return m.Get(f.desc).Message()
}

func negative(m protoreflect.Message, f *field) bool {
	if f.kind != protoreflect.MessageKind || f.list || f.isMap {
		return false
	}
	v := valueAt(m, f, "")
	if v == nil {
		return false
	}
	d, ok := v.Interface().(*durationpb.Duration)
	return ok && (d.GetSeconds() < 0 || d.GetNanos() < 0)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Validate runs the generated rules of msg and of every Any payload below it whose type r knows; a payload of another
// type is left to whoever unpacks it. path is put before the field paths.
func Validate(msg proto.Message, r Resolver, path string) error {
	errs := &Errors{}
	w := walker{schema: newSchema(), limit: DefaultMaxErrors, errs: errs}
	w.tryValidate(msg, path)
	w.payloads(msg.ProtoReflect(), orGlobal(r), path, 0)
	return errs.Err()
}

func (w *walker) tryValidate(msg proto.Message, path string) {
	v, ok := msg.(validatable)
	if !ok {
		return
	}
	if err := v.ValidateAll(); err != nil {
		w.violations(err, spot{path: path, msg: w.schema.message(msg.ProtoReflect().Descriptor()), value: msg.ProtoReflect()})
	}
}

// maxAnyDepth bounds how deep Any payloads may nest in each other.
const maxAnyDepth = 32

// payloads looks for Any below m.
func (w *walker) payloads(m protoreflect.Message, r Resolver, path string, depth int) {
	eachMessage(m, path, func(m protoreflect.Message, path string) { w.payload(m, r, path, depth) })
}

// eachMessage calls do for every message that stands directly in a field of m, in lists and maps too.
func eachMessage(m protoreflect.Message, path string, do func(m protoreflect.Message, path string)) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.Kind() != protoreflect.MessageKind {
			return true
		}
		p := join(path, string(fd.Name()))
		switch {
		case fd.IsMap():
			if fd.MapValue().Kind() != protoreflect.MessageKind {
				return true
			}
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				do(v.Message(), p+"["+strconv.Quote(k.String())+"]")
				return true
			})
		case fd.IsList():
			for i := range v.List().Len() {
				do(v.List().Get(i).Message(), p+"["+strconv.Itoa(i)+"]")
			}
		default:
			do(v.Message(), p)
		}
		return true
	})
}

func (w *walker) payload(m protoreflect.Message, r Resolver, path string, depth int) {
	if d, ok := m.Interface().(*durationpb.Duration); ok {
		if problem := unusable(d.GetSeconds(), d.GetNanos()); problem != "" && !about(w.errs.List, path) {
			w.add(Error{Path: path, Msg: problem})
		}
		return
	}
	if m.Descriptor().FullName() != "google.protobuf.Any" {
		w.payloads(m, r, path, depth)
		return
	}
	if depth >= maxAnyDepth {
		w.add(Error{Path: path, Msg: "Any payloads are nested deeper than " + strconv.Itoa(maxAnyDepth)})
		return
	}
	inner, err := unpack(m.Interface(), r)
	if err != nil || inner == nil {
		return
	}
	w.tryValidate(inner, path)
	w.payloads(inner.ProtoReflect(), r, path, depth+1)
}
