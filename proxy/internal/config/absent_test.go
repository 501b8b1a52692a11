package config_test

import (
	"bytes"
	"compress/gzip"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

var update = flag.Bool("update", false, "make absent.pb.gz anew")

// TestAbsentIsOfTheAPI makes absent.pb.gz from the source of the API's module, and compares: every file with a message that an extension of
// Envoy is configured by, and what these import.
func TestAbsentIsOfTheAPI(t *testing.T) {
	if !*update {
		t.Skip("reads the source of the whole API: with -update")
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/envoyproxy/go-control-plane/envoy").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*descriptorpb.FileDescriptorProto{}
	err = filepath.WalkDir(strings.TrimSpace(string(out)), func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".pb.go") && !strings.HasSuffix(path, "_grpc.pb.go") {
			f := rawDescriptor(t, path)
			if f != nil {
				files[f.GetName()] = f
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	known, err := os.ReadFile("known.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	var need func(name string)
	need = func(name string) {
		f := files[name]
		if f == nil || want[name] {
			return
		}
		want[name] = true
		for _, d := range f.GetDependency() {
			need(d)
		}
	}
	for name, f := range files {
		if pkg := strings.TrimPrefix(f.GetPackage(), "envoy."); strings.Contains("\n"+string(known), "\n"+pkg+" ") {
			need(name)
		}
	}
	var names []string
	for name := range want {
		names = append(names, name)
	}
	slices.Sort(names)
	set := &descriptorpb.FileDescriptorSet{}
	for _, name := range names {
		f := files[name]
		slim(f)
		set.File = append(set.File, f)
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	var z bytes.Buffer
	w, _ := gzip.NewWriterLevel(&z, gzip.BestCompression)
	_, _ = w.Write(raw)
	_ = w.Close()
	t.Logf("%d files, %d bytes, %d compressed", len(names), len(raw), z.Len())
	if err := os.WriteFile("absent.pb.gz", z.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// rawDescriptor is what the generated file at path was made from, nil if it holds none.
func rawDescriptor(t *testing.T, path string) *descriptorpb.FileDescriptorProto {
	t.Helper()
	src, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range src.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if !strings.HasSuffix(v.Names[0].Name, "_rawDesc") {
				continue
			}
			f := &descriptorpb.FileDescriptorProto{}
			if err := proto.Unmarshal([]byte(text(t, v.Values[0])), f); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			return f
		}
	}
	return nil
}

// text is the value of a sum of string literals.
func text(t *testing.T, x ast.Expr) string {
	var parts []string
	for {
		b, ok := x.(*ast.BinaryExpr)
		if !ok {
			break
		}
		parts = append(parts, literal(t, b.Y))
		x = b.X
	}
	parts = append(parts, literal(t, x))
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

func literal(t *testing.T, x ast.Expr) string {
	s, err := strconv.Unquote(x.(*ast.BasicLit).Value)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// slim leaves out what nobody asks for: of the options only whether a field is deprecated, and the field rules.
func slim(f *descriptorpb.FileDescriptorProto) {
	f.Options, f.SourceCodeInfo, f.Service = nil, nil, nil
	for _, m := range f.MessageType {
		slimMessage(m)
	}
	for _, e := range f.EnumType {
		slimEnum(e)
	}
}

func slimMessage(m *descriptorpb.DescriptorProto) {
	if m.Options != nil {
		entry := m.Options.MapEntry
		m.Options = nil
		if entry != nil {
			m.Options = &descriptorpb.MessageOptions{MapEntry: entry}
		}
	}
	for _, x := range m.Field {
		if x.Options == nil {
			continue
		}
		keep := &descriptorpb.FieldOptions{Deprecated: x.Options.Deprecated, Packed: x.Options.Packed}
		keep.ProtoReflect().SetUnknown(rules(x.Options))
		x.Options = keep
		if proto.Size(keep) == 0 {
			x.Options = nil
		}
	}
	for _, o := range m.OneofDecl {
		if o.Options != nil {
			keep := &descriptorpb.OneofOptions{}
			keep.ProtoReflect().SetUnknown(rules(o.Options))
			o.Options = keep
		}
	}
	for _, n := range m.NestedType {
		slimMessage(n)
	}
	for _, e := range m.EnumType {
		slimEnum(e)
	}
}

func slimEnum(e *descriptorpb.EnumDescriptorProto) {
	if alias := e.Options.GetAllowAlias(); alias {
		e.Options = &descriptorpb.EnumOptions{AllowAlias: &alias}
	} else {
		e.Options = nil
	}
	for _, v := range e.Value {
		v.Options = nil
	}
}

// rulesNumber is the number of the extensions validate.rules and validate.required.
const rulesNumber = 1071

// rules are the bytes of the field rules among options, whether these are known or not.
func rules(options protoreflect.ProtoMessage) (out protoreflect.RawFields) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(options)
	if err != nil {
		panic(err)
	}
	for len(raw) > 0 {
		num, _, n := protowire.ConsumeField(raw)
		if num == rulesNumber {
			out = append(out, raw[:n]...)
		}
		raw = raw[n:]
	}
	return out
}
