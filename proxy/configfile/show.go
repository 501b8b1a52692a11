package configfile

import (
	_ "embed"
	"slices"
	"strings"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

//go:embed defaults.yaml
var defaultsText string

// isDefault marks what the file does not say.
const isDefault = "default"

// defaults returns the table: by the name of a message, a map of its fields.
func defaults() (*Value, error) {
	t, err := yamlpos.ParseYAML("defaults.yaml", []byte(defaultsText))
	if err != nil {
		return nil, err
	}
	return fromTree(t, t.Root()), nil
}

// Effective returns what a file configures, with ConfigYAML merged over it and, if withDefaults, what holds for the fields that it
// leaves out. What the file says stays as it was written, in its order, but for the names of fields, which are those of the protobufs. A
// default has a note that says so. Extensions that this build does not have, and what is wrong, are left as they are: the file need not be
// right. An error is that of ConfigYAML.
func Effective(f *File, withDefaults bool) (*Value, error) {
	root, err := f.merged()
	if err != nil || !withDefaults {
		return root, err
	}
	table, err := defaults()
	if err != nil {
		return nil, err
	}
	fill(root, bootstrap(), table)
	return root, nil
}

// merged is the content with ConfigYAML over it.
func (f *File) merged() (*Value, error) {
	d := bootstrap()
	root := written(f.Root, d)
	if f.opts.ConfigYAML == "" || f.Form == Proto || f.Form == ProtoText { // Bootstrap has merged it
		return root, nil
	}
	over, err := Of(configYAML, []byte(f.opts.ConfigYAML), Options{Env: f.opts.Env})
	if err != nil {
		return nil, err
	}
	merge(root, written(over.Root, d), d)
	return root, nil
}

// configYAML stands for a file's name.
const configYAML = "--config-yaml.yaml"

// ProtoNames returns the content of a file, with ConfigYAML over it, and the names of fields that the protobufs have, whichever of the
// two the file has. What nobody knows, fields or payloads, stays as it is. The file need not be right.
func ProtoNames(f *File) *Value {
	if root, err := f.merged(); err == nil {
		return root
	}
	return written(f.Root, bootstrap())
}

// Locate gives problems the places of their paths, or of what is nearest to them, in the file or in ConfigYAML.
func (f *File) Locate(list []config.Error) {
	if len(list) == 0 {
		return
	}
	p := f.positions()
	for i := range list {
		if x := p.Error(list[i].Path, list[i]); x.Line > 0 {
			x.Found = list[i].Found // the message says it
			list[i] = *x
		} else {
			list[i].File = f.Path
		}
	}
}

// positions reads the file anew. nil: it has none.
func (f *File) positions() (p *config.Positions) {
	if f.Form == Proto || f.Form == ProtoText {
		p, _ = config.Parse(f.Path, f.Data, &bootstrapv3.Bootstrap{}, config.Options{SkipValidation: true, AllowUnknownFields: f.opts.AllowUnknownFields})
		return p
	}
	t, err := f.tree()
	if err != nil {
		return nil
	}
	if f.opts.ConfigYAML == "" {
		return config.PositionsIn(t)
	}
	over, err := yamlpos.ParseYAML(strings.TrimSuffix(configYAML, ".yaml"), []byte(f.opts.ConfigYAML))
	if err != nil {
		return nil
	}
	return config.PositionsIn(t, over)
}

func bootstrap() protoreflect.MessageDescriptor {
	return (&bootstrapv3.Bootstrap{}).ProtoReflect().Descriptor()
}

// written copies v, which stands where a message of type d is meant: the names of fields are those of the protobufs, what is null is
// left out, and a single value of a list is a list.
func written(v *Value, d protoreflect.MessageDescriptor) *Value {
	if d = payloadOf(v, d); d == nil || v.Kind != Map || d.FullName().Parent() == "google.protobuf" {
		return v.clone()
	}
	out := &Value{Kind: Map, Note: v.Note}
	for i, k := range v.Keys {
		fd, x := fieldOf(d, k), v.Items[i]
		switch {
		case fd == nil:
			out.Set(k, x.clone())
		case x.Kind == Null && (fd.Message() == nil || fd.Message().FullName() != "google.protobuf.Value"):
		case fd.IsMap():
			out.Set(string(fd.Name()), x.each(fd.MapValue().Message()))
		case fd.IsList() && x.Kind != List:
			out.Set(string(fd.Name()), (&Value{Kind: List, Items: []*Value{x}}).each(fd.Message()))
		case fd.IsList():
			out.Set(string(fd.Name()), x.each(fd.Message()))
		case fd.Message() != nil:
			out.Set(string(fd.Name()), written(x, fd.Message()))
		default:
			out.Set(string(fd.Name()), x.clone())
		}
	}
	return out
}

// each copies a map or a list of messages of type d; nil: of what is none.
func (v *Value) each(d protoreflect.MessageDescriptor) *Value {
	if d == nil || v.Kind < Map {
		return v.clone()
	}
	out := &Value{Kind: v.Kind, Text: v.Text, Keys: slices.Clone(v.Keys), Items: make([]*Value, len(v.Items)), Note: v.Note}
	for i, x := range v.Items {
		out.Items[i] = written(x, d)
	}
	return out
}

// fieldOf finds a field by either of its names.
func fieldOf(d protoreflect.MessageDescriptor, key string) protoreflect.FieldDescriptor {
	if fd := d.Fields().ByName(protoreflect.Name(key)); fd != nil {
		return fd
	}
	return d.Fields().ByJSONName(key)
}

// payloadOf is d, or for an Any the type that v says it holds; nil if that is not known.
func payloadOf(v *Value, d protoreflect.MessageDescriptor) protoreflect.MessageDescriptor {
	if d.FullName() != "google.protobuf.Any" {
		return d
	}
	url := v.Str("@type")
	mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:]))
	if err != nil {
		return nil
	}
	return mt.Descriptor()
}

// merge puts over on top of v, as protobufs are merged: scalars are replaced, lists are appended, messages are merged, but for
// payloads of Any, and of a oneof the last holds.
func merge(v, over *Value, d protoreflect.MessageDescriptor) {
	for i, k := range over.keys() {
		fd, x := d.Fields().ByName(protoreflect.Name(k)), over.Items[i]
		old := v.Get(k)
		switch {
		case fd == nil || old == nil:
			if fd != nil && fd.ContainingOneof() != nil {
				*v = *v.Without(others(fd)...)
			}
			v.Set(k, x)
		case fd.IsList():
			old.Items = append(old.Items, x.Items...)
		case fd.IsMap():
			for i, key := range x.Keys {
				old.Set(key, x.Items[i])
			}
		case fd.Message() != nil && old.Kind == Map && x.Kind == Map && fd.Message().FullName().Parent() != "google.protobuf":
			merge(old, x, fd.Message())
		default:
			v.Set(k, x)
		}
	}
}

// others are the names of the other fields of fd's oneof.
func others(fd protoreflect.FieldDescriptor) (names []string) {
	list := fd.ContainingOneof().Fields()
	for i := range list.Len() {
		if name := list.Get(i).Name(); name != fd.Name() {
			names = append(names, string(name))
		}
	}
	return names
}

// fill adds the defaults of a message and of those in it.
func fill(v *Value, d protoreflect.MessageDescriptor, table *Value) {
	if v == nil || v.Kind != Map {
		return
	}
	if d = payloadOf(v, d); d == nil || d.FullName().Parent() == "google.protobuf" {
		return
	}
	for i, k := range v.Keys {
		fd := d.Fields().ByName(protoreflect.Name(k))
		if fd == nil {
			continue
		}
		switch m := fd.Message(); {
		case m == nil:
		case fd.IsMap():
			if vm := fd.MapValue().Message(); vm != nil {
				for _, x := range v.Items[i].Items {
					fill(x, vm, table)
				}
			}
		case fd.IsList():
			for _, x := range v.Items[i].Items {
				fill(x, m, table)
			}
		default:
			fill(v.Items[i], m, table)
		}
	}
	add := table.Get(string(d.FullName()))
	for _, k := range add.keys() {
		if v.Get(k) == nil && !otherOfOneof(v, d, k) {
			x := add.Get(k).clone()
			x.Note = isDefault
			v.Set(k, x)
		}
	}
}

// otherOfOneof tells whether the file has chosen another field of the oneof that a default belongs to.
func otherOfOneof(v *Value, d protoreflect.MessageDescriptor, key string) bool {
	fd := d.Fields().ByName(protoreflect.Name(key))
	if fd == nil || fd.ContainingOneof() == nil {
		return false
	}
	return slices.ContainsFunc(others(fd), func(name string) bool { return v.Get(name) != nil })
}
