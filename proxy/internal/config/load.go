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
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	// SkipValidation leaves out the field rules of the API.
	SkipValidation bool
	// ConfigYAML is a YAML text that is merged over the file (--config-yaml): scalars win, messages merge, lists append.
	ConfigYAML string
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
		return nil, errors.New("At least one of --config-path or --config-yaml or Options::configProto() should be non-empty") //nolint:staticcheck // Envoy's text
	}
	l := newLoader(msg, opts)
	if path != "" {
		data, err := readFile(path)
		if err != nil {
			return nil, err
		}
		if err := l.file(path, data); err != nil {
			return l.pos, err
		}
	}
	if opts.ConfigYAML != "" {
		if err := l.text(configYAMLName, []byte(opts.ConfigYAML), yamlpos.ParseYAML); err != nil {
			return l.pos, err
		}
	}
	return l.pos, l.finish()
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
		return nil, fmt.Errorf("Invalid path: %s", path) //nolint:staticcheck // Envoy's text
	case err != nil:
		return nil, fmt.Errorf("unable to read file: %s: %w", path, err)
	}
	return data, nil
}

// loader collects the wire bytes of one message from one or two sources; that they are concatenated is what merges them.
type loader struct {
	msg    proto.Message
	opts   Options
	schema *schema
	errs   *Errors
	wire   []byte
	pos    *Positions
}

func newLoader(msg proto.Message, opts Options) *loader {
	opts.Resolver = orGlobal(opts.Resolver)
	return &loader{msg: msg, opts: opts, schema: newSchema(), errs: &Errors{}, pos: &Positions{}}
}

func newEncoder(t *yamlpos.Tree, s *schema, opts *Options) *encoder {
	return &encoder{tree: t, schema: s, resolver: orGlobal(opts.Resolver), opts: opts, errs: &Errors{}}
}

// file reads data in the form that the end of the name tells; JSON if it tells nothing.
func (l *loader) file(name string, data []byte) error {
	lower := strings.ToLower(name)
	switch {
	case strings.HasSuffix(lower, ".pb"):
		return l.binary(name, data)
	case strings.HasSuffix(lower, ".pb_text"):
		return l.prototext(name, data)
	case strings.HasSuffix(lower, ".yaml"), strings.HasSuffix(lower, ".yml"):
		return l.text(name, data, yamlpos.ParseYAML)
	}
	return l.text(name, data, yamlpos.ParseJSON)
}

// text parses a source, writes its wire bytes and collects the errors. A returned error means that there is no tree.
func (l *loader) text(name string, data []byte, parse func(string, []byte) (*yamlpos.Tree, error)) error {
	t, err := parse(name, data)
	if err != nil {
		return syntaxError(err)
	}
	l.pos.add(t)
	if k := t.Kind(t.Root()); k != yamlpos.Map {
		x := &Error{File: name, Line: 1, Col: 1, Msg: "expected '{', a map of the fields of " + string(l.msg.ProtoReflect().Descriptor().FullName()), Found: k.String()}
		if t.YAML() && k < yamlpos.Map {
			x.Msg = "Unable to convert YAML as JSON: " + x.Msg
		}
		return &Errors{List: []*Error{x}}
	}
	e := newEncoder(t, l.schema, &l.opts)
	e.errs, e.buf = l.errs, l.wire
	if e.buf == nil {
		e.buf = make([]byte, 0, len(data)/2+64)
	}
	e.body(t.Root(), l.schema.message(l.msg.ProtoReflect().Descriptor()))
	l.wire = e.buf
	return nil
}

func syntaxError(err error) error {
	var s *yamlpos.SyntaxError
	if !errors.As(err, &s) {
		return err
	}
	return &Errors{List: []*Error{{File: s.Pos.File, Line: s.Pos.Line, Col: s.Pos.Col, Msg: s.Msg}}}
}

func (l *loader) binary(name string, data []byte) error {
	if err := proto.Unmarshal(data, l.msg); err != nil {
		return fmt.Errorf("Unable to parse file %q as a binary protobuf (type %s): %w", name, l.msg.ProtoReflect().Descriptor().FullName(), err) //nolint:staticcheck // Envoy's text
	}
	l.wire = append(l.wire, data...)
	return nil
}

func (l *loader) prototext(name string, data []byte) error {
	o := prototext.UnmarshalOptions{DiscardUnknown: l.opts.AllowUnknownFields, Resolver: textResolver{l.opts.Resolver}}
	if err := o.Unmarshal(data, l.msg); err != nil {
		return fmt.Errorf("Unable to parse file %q as a text protobuf (type %s): %w", name, l.msg.ProtoReflect().Descriptor().FullName(), err) //nolint:staticcheck // Envoy's text
	}
	wire, err := proto.Marshal(l.msg)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", name, err)
	}
	l.wire = append(l.wire, wire...)
	return nil
}

// finish builds the message and runs the field rules.
func (l *loader) finish() error {
	if err := l.errs.Err(); err != nil {
		return err
	}
	if err := proto.Unmarshal(l.wire, l.msg); err != nil {
		return fmt.Errorf("cannot decode %s: %w", l.msg.ProtoReflect().Descriptor().FullName(), err)
	}
	if l.opts.SkipValidation {
		return nil
	}
	if len(l.pos.trees) == 0 { // no text form: the payloads of Any have not been checked yet
		if err := l.unknownIn(l.msg.ProtoReflect(), ""); err != nil {
			return err
		}
		return Validate(l.msg, l.opts.Resolver, "")
	}
	if v, ok := l.msg.(validatable); ok {
		if err := v.ValidateAll(); err != nil {
			w := walker{schema: l.schema, limit: l.opts.maxErrors(), errs: l.errs, pos: l.pos}
			w.violations(err, spot{msg: l.schema.message(l.msg.ProtoReflect().Descriptor()), value: l.msg.ProtoReflect()})
		}
	}
	return l.errs.Err()
}

// unknownIn refuses unknown fields of a binary message, as Envoy does.
func (l *loader) unknownIn(m protoreflect.Message, path string) error {
	if len(m.GetUnknown()) > 0 && !l.opts.AllowUnknownFields {
		return &Errors{List: []*Error{{Path: path, Msg: "message " + string(m.Descriptor().FullName()) + " has unknown fields"}}}
	}
	var err error
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.Kind() != protoreflect.MessageKind || fd.IsMap() {
			return true
		}
		if fd.IsList() {
			for i := range v.List().Len() {
				if err = l.unknownIn(v.List().Get(i).Message(), fmt.Sprintf("%s[%d]", join(path, string(fd.Name())), i)); err != nil {
					return false
				}
			}
			return true
		}
		err = l.unknownIn(v.Message(), join(path, string(fd.Name())))
		return err == nil
	})
	return err
}
