package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// Form is how a configuration is written down.
type Form string

// The forms, with the endings of file names that Envoy knows them by.
const (
	YAML      Form = "yaml"    // .yaml, .yml
	JSON      Form = "json"    // .json and everything else
	ProtoText Form = "pb_text" // .pb_text
	Proto     Form = "pb"      // .pb
)

var forms = []Form{YAML, JSON, ProtoText, Proto}

// FormOf tells the form by the end of a name, as Envoy does. What has no name, as standard input or a pipe, is YAML, of which JSON is a
// part.
func FormOf(name string) Form {
	lower := strings.ToLower(name)
	switch {
	case config.Nameless(name):
		return YAML
	case strings.HasSuffix(lower, ".yaml"), strings.HasSuffix(lower, ".yml"):
		return YAML
	case strings.HasSuffix(lower, ".pb_text"):
		return ProtoText
	case strings.HasSuffix(lower, ".pb"):
		return Proto
	}
	return JSON
}

// ParseForm reads the name of a form.
func ParseForm(name string) (Form, error) {
	switch name {
	case "yml":
		return YAML, nil
	case "text", "textproto", "prototext":
		return ProtoText, nil
	case "binary", "proto":
		return Proto, nil
	}
	for _, f := range forms {
		if string(f) == name {
			return f, nil
		}
	}
	return "", fmt.Errorf("unknown form %q; the forms are yaml, json, pb_text and pb", name)
}

// Options say how to read.
type Options struct {
	// ConfigYAML is merged over the file, as Envoy's --config-yaml.
	ConfigYAML string
	// Env replaces ${NAME} and ${NAME:-default} in values; nil leaves them as they are.
	Env func(name string) (value string, ok bool)
	// AllowUnknownFields lets fields pass that Envoy 1.40 does not have.
	AllowUnknownFields bool
	// Stdin is read for the name "-".
	Stdin io.Reader
}

// File is a configuration that was read.
type File struct {
	Path string
	Form Form
	Data []byte
	// Root is the content. What a protobuf leaves open (the order of keys, how a duration is written) is as in the file, or as
	// Envoy's admin interface prints it if the file is a protobuf.
	Root *Value

	opts Options
}

// StandardInput is the Path of a file that was read there.
const StandardInput = config.StandardInput

// Read reads a file. An error of syntax names its place.
func Read(path string, o Options) (*File, error) {
	if path != "-" {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return Of(path, data, o)
	}
	if o.Stdin == nil {
		return nil, errors.New("there is no standard input to read from")
	}
	data, err := io.ReadAll(o.Stdin)
	if err != nil {
		return nil, err
	}
	return Of(config.StandardInput, data, o)
}

// Of is Read for a file whose content is there already.
func Of(path string, data []byte, o Options) (*File, error) {
	f := &File{Path: path, Form: FormOf(path), Data: data, opts: o}
	return f, f.parse()
}

// Parse reads JSON; an error has its place in name.
func Parse(name string, data []byte) (*Value, error) {
	t, err := yamlpos.ParseJSON(name, data)
	if err != nil {
		return nil, err
	}
	return fromTree(t, t.Root()), nil
}

// FromValue returns a file of a content that was made.
func FromValue(v *Value) *File {
	return &File{Path: "configuration", Form: YAML, Data: v.YAML(), Root: v}
}

func (f *File) parse() error {
	if f.Form == Proto || f.Form == ProtoText {
		b, err := f.Bootstrap()
		if err != nil {
			return err
		}
		f.Root, err = FromMessage(b)
		return err
	}
	t, err := f.tree()
	if err != nil {
		return err
	}
	if t.Kind(t.Root()) != yamlpos.Map {
		return fmt.Errorf("%s: a configuration is a map of the fields of a bootstrap, such as static_resources; this is %s", f.Path, t.Kind(t.Root()))
	}
	f.Root = fromTree(t, t.Root())
	if f.Form == YAML {
		f.Root.largeToText()
	}
	return nil
}

func (f *File) tree() (*yamlpos.Tree, error) {
	parse, data := yamlpos.ParseJSON, f.Data
	if f.Form == YAML {
		parse = yamlpos.ParseYAML
	}
	if f.opts.Env != nil {
		data = yamlpos.MaskVariables(data)
	}
	t, err := parse(f.Path, data)
	if err != nil {
		if name, advice := config.OtherForm(f.Path, f.Data); advice != "" {
			err = fmt.Errorf("%w; did you mean '%s'? (%s)", err, name, advice)
		}
	}
	if err != nil || f.opts.Env == nil {
		return t, err
	}
	var missing []error
	for _, e := range t.Substitute(f.opts.Env) {
		missing = append(missing, e)
	}
	return t, errors.Join(missing...)
}

// Bootstrap returns the content as a message. All mistakes are in the error, with their places. The field rules of the API are not
// looked at.
func (f *File) Bootstrap() (*bootstrapv3.Bootstrap, error) {
	b := &bootstrapv3.Bootstrap{}
	o := config.Options{SkipValidation: true, AllowUnknownFields: f.opts.AllowUnknownFields, Env: f.opts.Env}
	name := f.Path
	if f.Form == YAML && FormOf(name) != YAML {
		name += ".yaml" // made by FromValue
	}
	if _, err := config.Parse(name, f.Data, b, o); err != nil {
		return nil, err
	}
	if f.opts.ConfigYAML != "" {
		over := &bootstrapv3.Bootstrap{}
		if _, err := config.Parse("--config-yaml.yaml", []byte(f.opts.ConfigYAML), over, o); err != nil {
			return nil, err
		}
		proto.Merge(b, over)
	}
	return b, nil
}

// FromMessage returns a message as a value: names of the protobufs, in the order of their numbers.
func FromMessage(m proto.Message) (*Value, error) {
	raw := config.NewPrinter(nil).Append(nil, m, 0)
	t, err := yamlpos.ParseJSON("", raw)
	if err != nil {
		return nil, fmt.Errorf("cannot print %s: %w", m.ProtoReflect().Descriptor().FullName(), err)
	}
	return fromTree(t, t.Root()), nil
}

// Encode writes a file in a form. Between YAML and JSON everything stays as it was written; the protobufs need a bootstrap that can be
// decoded.
func (f *File) Encode(to Form) ([]byte, error) {
	switch to {
	case YAML:
		return f.Root.YAML(), nil
	case JSON:
		return f.Root.JSON(), nil
	}
	b, err := f.Bootstrap()
	if err != nil {
		return nil, err
	}
	if to == Proto {
		return proto.MarshalOptions{Deterministic: true}.Marshal(b)
	}
	raw, err := prototext.MarshalOptions{Multiline: true, Indent: "  "}.Marshal(b)
	if err != nil {
		return nil, err
	}
	return singleSpaced(raw), nil
}

// singleSpaced takes out the second space that the encoder puts behind names at random.
func singleSpaced(raw []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(bytes.TrimRight(raw, "\n")) {
		start := len(line) - len(bytes.TrimLeft(line, " "))
		if i := bytes.Index(line[start:], []byte("  ")); i > 0 && bytes.IndexByte(line[start:start+i], '"') < 0 {
			b.Write(line[:start+i])
			line = line[start+i+1:]
		}
		b.Write(line)
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// Formatted returns a file in the form in which it should be written: an indent of two spaces; comments and the order of keys stay.
// It is for YAML and JSON.
func (f *File) Formatted() ([]byte, error) {
	switch f.Form {
	case YAML:
		return yamlpos.FormatYAML(f.Path, f.Data)
	case JSON:
		return f.Root.JSON(), nil
	}
	return nil, fmt.Errorf("%s: only YAML and JSON can be formatted", f.Path)
}
