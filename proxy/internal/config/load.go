// Package config turns configuration files into Envoy's v3 messages: YAML, JSON, binary and text protobuf in, a
// bootstrap or a discovery response out, checked by the field rules of the API, each error with file, line, column, full
// field path and the nearest valid name.
//
// It owns syntax, types and field rules, and the printing and keeping of configuration for the admin interface. What a
// value means together with others is checked where it is used; those checks take the place of a field from Positions.
// Everything here runs on the main loop or on helper goroutines that it starts; nothing is shared between two loads, no
// goroutine is started, and nothing of it runs while a request is served.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Options say how to load. The zero Options are strict.
type Options struct {
	// Resolver knows the types that an Any may hold; nil means all that are linked in.
	Resolver Resolver
	// AllowUnknownFields skips unknown fields and enum values (--allow-unknown-static-fields).
	AllowUnknownFields bool
	// OnUnknownField is called for each of them.
	OnUnknownField func(*Error)
	// OnDeprecated is called for each use of a deprecated field in a text form, with what to do about it, and with what Envoy says.
	OnDeprecated func(x *Error, said string)
	// OnRepeated is called for each key of a YAML map that stands again, so that its first value is not used.
	OnRepeated func(*Error)
	// SkipValidation leaves out the field rules of the API.
	SkipValidation bool
	// ConfigYAML is a YAML text that is merged over the file (--config-yaml): scalars win, messages merge, lists append.
	ConfigYAML string
	// Env gives the values of variables: ${NAME} and ${NAME:-default} in values are replaced. nil leaves them as they are.
	Env func(name string) (value string, ok bool)
	// Data is what the file holds, if it has been read already; nil means that it is read.
	Data []byte
	// MaxRegexSize is how many instructions of RE2 a regular expression may need (the runtime key re2.max_program_size.error_level). It is
	// asked for each one in a text form; nil: they are not bounded.
	MaxRegexSize func() uint64
	// MaxErrors bounds how many errors are reported; 0 means DefaultMaxErrors.
	MaxErrors int
}

func (o *Options) maxErrors() int {
	if o.MaxErrors > 0 {
		return o.MaxErrors
	}
	return DefaultMaxErrors
}

// configYAMLName stands for the file in errors of --config-yaml.
const configYAMLName = "--config-yaml"

// Load reads a bootstrap from path, merged with opts.ConfigYAML; either may be empty, not both. The error is an *Errors
// when the text could be read but is wrong. The Positions are usable whenever the text could be parsed, also beside an error.
func Load(path string, opts Options) (*bootstrapv3.Bootstrap, *Positions, error) {
	b := &bootstrapv3.Bootstrap{}
	pos, err := LoadInto(path, b, opts)
	if err != nil {
		return nil, pos, err
	}
	return b, pos, nil
}

// LoadInto is Load for any message type.
func LoadInto(path string, msg proto.Message, opts Options) (*Positions, error) {
	if path == "" && opts.ConfigYAML == "" {
		return nil, errNoConfig
	}
	l := newLoader(msg, opts)
	if err := l.sources(path); err != nil {
		return l.pos, err
	}
	return l.pos, l.finish()
}

// errNoConfig is Envoy's text.
var errNoConfig = errors.New("At least one of --config-path or --config-yaml or Options::configProto() should be non-empty") //nolint:staticcheck

// sources reads the file, if there is one, and the text that is merged over it.
func (l *loader) sources(path string) error {
	if path != "" {
		data := l.opts.Data
		if data == nil {
			var err error
			if data, err = readFile(path); err != nil {
				return err
			}
		}
		if err := l.file(path, data); err != nil {
			return err
		}
	}
	if l.opts.ConfigYAML == "" {
		return nil
	}
	return l.text(configYAMLName, []byte(l.opts.ConfigYAML), yamlpos.ParseYAML)
}

// Parse is LoadInto for bytes; the end of name says in which form they are.
func Parse(name string, data []byte, msg proto.Message, opts Options) (*Positions, error) {
	l := newLoader(msg, opts)
	if err := l.file(name, data); err != nil {
		return l.pos, err
	}
	return l.pos, l.finish()
}

// readFile says what Envoy says when it cannot.
func readFile(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{Kind: Unreadable, Msg: "Invalid path: " + path}
	case err != nil:
		return nil, &Error{Kind: Unreadable, Msg: "unable to read file: " + path + ": " + err.Error()}
	}
	return data, nil
}

// loader collects the wire bytes of one message from one or two sources; that they are concatenated is what merges them.
type loader struct {
	root      *message
	msg       proto.Message
	opts      Options
	schema    *schema
	errs      *Errors
	wire      []byte
	pos       *Positions
	parseJSON func(string, []byte) (*yamlpos.Tree, error)
	notes     int  // see encoder.note
	opaque    bool // a source was protobuf: payloads of Any have not been checked while reading
}

func newLoader(msg proto.Message, opts Options) *loader {
	opts.Resolver = orGlobal(opts.Resolver)
	l := &loader{msg: msg, opts: opts, schema: newSchema(), errs: &Errors{}, pos: &Positions{}, parseJSON: yamlpos.ParseJSON}
	if msg != nil {
		l.root = l.schema.message(msg.ProtoReflect().Descriptor())
	}
	return l
}

func newEncoder(t *yamlpos.Tree, s *schema, opts *Options) *encoder {
	return &encoder{
		tree: t, schema: s, resolver: orGlobal(opts.Resolver), opts: opts, errs: &Errors{},
		pos: &Positions{trees: []*yamlpos.Tree{t}}, notes: new(int),
	}
}

// StandardInput stands for the name of what was read there.
const StandardInput = "standard input"

// Nameless tells whether a path is none that somebody has chosen: standard input, or a pipe of a shell's <(...).
func Nameless(path string) bool {
	return path == StandardInput || path == "/dev/stdin" || strings.HasPrefix(path, "/dev/fd/")
}

// file reads data in the form that the end of the name tells; JSON if it tells nothing, and YAML if there is no name.
func (l *loader) file(name string, data []byte) error {
	if err := l.inForm(name, data); err != nil {
		return orOther(name, data, err)
	}
	if l.pos.text != nil && len(l.errs.List) > 0 {
		_ = orOther(name, data, l.errs)
	}
	return nil
}

func (l *loader) inForm(name string, data []byte) error {
	lower := strings.ToLower(name)
	switch {
	case strings.HasSuffix(lower, ".pb"):
		return l.binary(name, data)
	case strings.HasSuffix(lower, ".pb_text"):
		return l.prototext(name, data)
	case strings.HasSuffix(lower, ".yaml"), strings.HasSuffix(lower, ".yml"), Nameless(name):
		return l.text(name, data, yamlpos.ParseYAML)
	}
	return l.text(name, data, l.parseJSON)
}

// text parses a source, writes its wire bytes and collects the errors. A returned error means that there is no tree.
func (l *loader) text(name string, data []byte, parse func(string, []byte) (*yamlpos.Tree, error)) error {
	t, err := l.opts.parse(name, data, parse)
	if err != nil {
		return err
	}
	l.pos.add(t)
	if l.opts.OnRepeated != nil {
		for _, r := range t.Repeated() {
			l.opts.OnRepeated(&Error{File: r.Pos.File, Line: r.Pos.Line, Col: r.Pos.Col, Kind: Invalid,
				Msg: fmt.Sprintf("the key '%s' stands twice: this value is used, and not the one at %d:%d, as in Envoy", shorten(r.Key), r.Before.Line, r.Before.Col)})
		}
	}
	if p := t.Rest(); p.Line > 0 && l.opts.OnRepeated != nil {
		l.opts.OnRepeated(&Error{File: p.File, Line: p.Line, Col: p.Col, Kind: Invalid,
			Msg: "a second document begins: nothing from here on is read, as in Envoy"})
	}
	if k := t.Kind(t.Root()); k != yamlpos.Map {
		x := &Error{File: name, Line: 1, Col: 1, Msg: "expected '{', a map of the fields of " + l.root.name, Found: k.String()}
		if t.YAML() && k < yamlpos.Map {
			x.Msg = "Unable to convert YAML as JSON: " + x.Msg
		}
		if k == yamlpos.Null && len(t.Text(t.Root())) == 0 {
			x.Found = "nothing: the file is empty"
		}
		return &Errors{List: []*Error{x}}
	}
	e := newEncoder(t, l.schema, &l.opts)
	e.errs, e.buf, e.notes = l.errs, l.wire, &l.notes
	if e.buf == nil {
		e.buf = make([]byte, 0, 8*t.Size()+64)
	}
	e.body(t.Root(), l.root)
	l.wire = e.buf
	return nil
}

// parse reads a text, with its variables replaced if they are to be.
func (o *Options) parse(name string, data []byte, parse func(string, []byte) (*yamlpos.Tree, error)) (*yamlpos.Tree, error) {
	if o.Env != nil {
		data = yamlpos.MaskVariables(data)
	}
	t, err := parse(name, data)
	if err != nil {
		return nil, syntaxError(err)
	}
	if o.Env == nil {
		return t, nil
	}
	missing := &Errors{}
	for _, s := range t.Substitute(o.Env) {
		x := &Error{File: s.Pos.File, Line: s.Pos.Line, Col: s.Pos.Col, Msg: s.Msg}
		if s.Unset {
			x.Kind = NotHere
		}
		missing.Add(x, o.maxErrors())
	}
	return t, missing.Err()
}

func syntaxError(err error) error {
	var s *yamlpos.SyntaxError
	if !errors.As(err, &s) {
		return err
	}
	return &Errors{List: []*Error{{File: s.Pos.File, Line: s.Pos.Line, Col: s.Pos.Col, Kind: Unreadable, Msg: s.Msg}}}
}

func (l *loader) binary(name string, data []byte) error {
	if err := proto.Unmarshal(data, l.msg); err != nil {
		return &Error{File: name, Kind: Unreadable, Msg: fmt.Sprintf("Unable to parse file %q as a binary protobuf (type %s): %v", name, l.root.name, err)}
	}
	if !l.opts.AllowUnknownFields {
		unknownIn(l.msg.ProtoReflect(), "", l.errs)
	}
	l.wire, l.opaque = append(l.wire, data...), true
	return nil
}

// prototext reads the text form. The library stops at the first mistake: the field that has it is blanked, and the rest read again.
func (l *loader) prototext(name string, data []byte) error {
	o := prototext.UnmarshalOptions{DiscardUnknown: l.opts.AllowUnknownFields, Resolver: textResolver{l.opts.Resolver}}
	err := o.Unmarshal(data, l.msg)
	if l.pos.text = readText(name, data); err != nil {
		data = bytes.Clone(data)
	}
	for tries := min(l.opts.maxErrors(), maxBlanked/(len(data)+1)+1); err != nil; tries-- {
		x := &Error{File: name, Kind: Unreadable, Msg: fmt.Sprintf("Unable to parse file %q as a text protobuf (type %s): %v", name, l.root.name, err)}
		if _, place, ok := strings.Cut(err.Error(), "(line "); ok {
			_, _ = fmt.Sscanf(place, "%d:%d", &x.Line, &x.Col)
		}
		blanked := l.blank(x, data)
		l.errs.Add(x, l.opts.maxErrors())
		if !blanked || tries <= 1 {
			return l.errs
		}
		proto.Reset(l.msg)
		err = o.Unmarshal(data, l.msg)
	}
	wire, err := proto.Marshal(l.msg)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", name, err)
	}
	l.wire, l.opaque = append(l.wire, wire...), true
	return nil
}

// maxBlanked bounds how much text is read again and again to find all that is wrong with it.
const maxBlanked = 64 << 20

// blank makes spaces of the field that x is about, and gives x its path. It tells whether there was something to blank.
func (l *loader) blank(x *Error, data []byte) bool {
	t := l.pos.text
	if t == nil || x.Line < 1 {
		return false
	}
	f, path := t.innermost(t.offset(x.Line, x.Col), l.msg.ProtoReflect().Descriptor())
	if f == nil {
		return false
	}
	x.Path = path
	switch _, url, missing := strings.Cut(x.Msg, "unable to resolve message ["); {
	case strings.Contains(x.Msg, "unknown field: "):
		x.Kind = UnknownField
	case missing:
		url, _, _ = strings.Cut(url, "]")
		why := unknownType(l.opts.Resolver, url)
		x.Kind, x.Extension, x.Suggestion = why.Kind, why.Extension, why.Suggestion
	}
	any := false
	for i, c := range data[f.start:f.end] {
		if c > ' ' {
			data[f.start+i], any = ' ', true
		}
	}
	return any
}

// finish builds the message and runs the field rules.
func (l *loader) finish() error {
	if err := proto.Unmarshal(l.wire, l.msg); err != nil {
		return fmt.Errorf("cannot decode %s: %w", l.root.name, err)
	}
	l.check(l.msg, "")
	return l.errs.Err()
}

// check runs the field rules of a message that stands at path.
func (l *loader) check(msg proto.Message, path string) {
	if l.opts.SkipValidation {
		return
	}
	w := walker{schema: l.schema, limit: l.opts.maxErrors(), errs: l.errs, pos: l.pos, known: slices.Clone(l.errs.List)}
	w.tryValidate(msg, path)
	if l.opaque {
		w.payloads(msg.ProtoReflect(), l.opts.Resolver, path, 0)
	}
}

// unknownIn refuses unknown fields of a binary message, as Envoy does.
func unknownIn(m protoreflect.Message, path string, errs *Errors) {
	if len(m.GetUnknown()) > 0 {
		errs.Add(&Error{Path: path, Kind: UnknownField, Msg: "message " + string(m.Descriptor().FullName()) + " has unknown fields"}, DefaultMaxErrors)
	}
	eachMessage(m, path, func(m protoreflect.Message, path string) { unknownIn(m, path, errs) })
}
