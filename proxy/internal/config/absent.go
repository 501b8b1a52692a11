package config

import (
	"bytes"
	"compress/gzip"
	_ "embed" // absent.pb.gz
	"io"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/dragoman-proxy/dragoman/internal/yamlpos"
)

// absentFiles describe the messages of all extensions of Envoy, of which this build links a part only. They cost 111 KB in the binary and
// are unpacked, for one load, when it meets an extension that is not there: what is wrong in its configuration is told all the same.
//
//go:embed absent.pb.gz
var absentFiles []byte

// absent finds the types of extensions that this build does not have. It belongs to one load.
type absent struct {
	files map[string]*descriptorpb.FileDescriptorProto // by path
	home  map[protoreflect.FullName]string             // the path of the file that a message is in
	built *protoregistry.Files
}

// absentMessage returns the description of an extension's message; nil if there is none.
func (s *schema) absentMessage(name string) protoreflect.MessageDescriptor {
	if s.absent == nil {
		s.absent = readAbsent(absentFiles)
	}
	return s.absent.message(protoreflect.FullName(name))
}

// readAbsent unpacks the descriptions. What cannot be read leaves it empty.
func readAbsent(packed []byte) *absent {
	a := &absent{files: map[string]*descriptorpb.FileDescriptorProto{}, home: map[protoreflect.FullName]string{}, built: new(protoregistry.Files)}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return a
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		return a
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(raw, &set); err != nil {
		return a
	}
	for _, f := range set.GetFile() {
		a.files[f.GetName()] = f
		for _, m := range f.GetMessageType() {
			a.home[protoreflect.FullName(f.GetPackage()+"."+m.GetName())] = f.GetName()
		}
	}
	return a
}

func (a *absent) message(name protoreflect.FullName) protoreflect.MessageDescriptor {
	path, ok := a.home[name]
	if !ok || a.build(path) != nil {
		return nil
	}
	d, err := a.FindDescriptorByName(name)
	if err != nil {
		return nil
	}
	m, _ := d.(protoreflect.MessageDescriptor)
	return m
}

// build makes the description of a file usable, and those that it imports first.
func (a *absent) build(path string) error {
	if _, err := a.FindFileByPath(path); err == nil {
		return nil
	}
	f := a.files[path]
	if f == nil {
		return protoregistry.NotFound
	}
	for _, d := range f.GetDependency() {
		_ = a.build(d) // one of annotations only is not there, and not needed
	}
	d, err := protodesc.FileOptions{AllowUnresolvable: true}.New(f, a)
	if err != nil {
		return err
	}
	return a.built.RegisterFile(d)
}

// FindFileByPath prefers what is linked in, so that a message has one description.
func (a *absent) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	if f, err := protoregistry.GlobalFiles.FindFileByPath(path); err == nil {
		return f, nil
	}
	return a.built.FindFileByPath(path)
}

// FindDescriptorByName is FindFileByPath for a message or an enum.
func (a *absent) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	if d, err := protoregistry.GlobalFiles.FindDescriptorByName(name); err == nil {
		return d, nil
	}
	return a.built.FindDescriptorByName(name)
}

// unresolved tells whether a field's type is described nowhere here, as those of other projects: its values are not looked at.
func unresolved(fd protoreflect.FieldDescriptor) bool {
	if fd.IsMap() {
		fd = fd.MapValue()
	}
	return fd.Message() != nil && fd.Message().IsPlaceholder() || fd.Enum() != nil && fd.Enum().IsPlaceholder()
}

// lookInto tells what else is wrong in the configuration n of an extension that is not there: Envoy would refuse that, too. What is not
// there within it is named with it already.
func (e *encoder) lookInto(n yamlpos.Node, name string) {
	d := e.schema.absentMessage(name)
	if d == nil || e.opts.SkipValidation {
		return
	}
	m := e.schema.message(d)
	start, first, more := len(e.buf), len(e.errs.List), e.errs.More
	e.fields(n, m, true)
	known := e.errs.List[first:]
	if e.errs.More == more {
		e.validateAbsent(m, e.buf[start:], known)
	}
	e.buf = e.buf[:start]
	kept := e.errs.List[:first]
	for _, x := range e.errs.List[first:] {
		if x.Kind != Unsupported {
			kept = append(kept, x)
		}
	}
	clear(e.errs.List[len(kept):])
	e.errs.List = kept
}

// validateAbsent runs the field rules of a message that has no generated validator.
func (e *encoder) validateAbsent(m *message, wire []byte, known []*Error) {
	msg := dynamicpb.NewMessage(m.desc)
	if err := proto.Unmarshal(wire, msg); err != nil {
		return
	}
	w := walker{schema: e.schema, limit: e.opts.maxErrors(), errs: e.errs, pos: e.pos, known: known}
	w.rules(msg, pathString(e.path), 0)
}
