package configfile

import (
	_ "embed"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
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
// leaves out. What is a default has a note that says so.
func Effective(f *File, withDefaults bool) (*Value, error) {
	root, err := canonical(f)
	if err != nil || !withDefaults {
		return root, err
	}
	table, err := defaults()
	if err != nil {
		return nil, err
	}
	top := protoreflect.FullName("envoy.config.bootstrap.v3.Bootstrap")
	mt, err := protoregistry.GlobalTypes.FindMessageByName(top)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", top, err)
	}
	fill(root, mt.Descriptor(), table)
	return root, nil
}

// fill adds the defaults of a message and of those in it.
func fill(v *Value, d protoreflect.MessageDescriptor, table *Value) {
	if v == nil || v.Kind != Map {
		return
	}
	if d.FullName() == "google.protobuf.Any" {
		url := v.Str("@type")
		mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:]))
		if err != nil {
			return
		}
		d = mt.Descriptor()
	}
	if d.FullName().Parent() == "google.protobuf" {
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
	list := fd.ContainingOneof().Fields()
	for i := range list.Len() {
		if v.Get(string(list.Get(i).Name())) != nil {
			return true
		}
	}
	return false
}
