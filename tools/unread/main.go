// Command unread lists the fields of Envoy's messages that no code of the proxy reads, with a minus before them: each should be refused,
// or be among those that may be ignored. A plus stands before those that code reads. It runs on the tree that is around its module, reads source and export data, and writes to standard output.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const protos = "github.com/envoyproxy/go-control-plane/envoy/"

func main() {
	root := flag.String("root", "..", "the tree")
	flag.Parse()
	patterns := flag.Args()
	if len(patterns) == 0 {
		patterns = []string{"./proxy/internal/...", "./extensions/..."}
	}
	r := &reads{fields: map[string]bool{}, messages: map[*types.TypeName]bool{}, anyGetter: map[string]bool{}}
	if err := r.load(*root, patterns); err != nil {
		fmt.Fprintln(os.Stderr, "unread:", err)
		os.Exit(1)
	}
	for _, line := range r.unread() {
		fmt.Println(line)
	}
}

// reads is what code was seen to read.
type reads struct {
	fields    map[string]bool // "import path.Message.GoField"
	messages  map[*types.TypeName]bool
	anyGetter map[string]bool // getters that are called through an interface
}

func (r *reads) load(root string, patterns []string) error {
	pkgs, err := packages.Load(&packages.Config{Dir: root,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile}, patterns...)
	if err != nil {
		return err
	}
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			return p.Errors[0]
		}
		for _, f := range p.Syntax {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					r.selection(p.TypesInfo.Selections[n])
				case *ast.Ident:
					if t, ok := p.TypesInfo.Uses[n].(*types.TypeName); ok && isProto(t.Pkg()) {
						r.mention(t)
					}
				}
				return true
			})
		}
	}
	return nil
}

func isProto(p *types.Package) bool { return p != nil && strings.HasPrefix(p.Path(), protos) }

// mention notes a type that code names: a message that it knows, or the wrapper of a oneof's field, which counts as reading that field.
func (r *reads) mention(t *types.TypeName) {
	s, ok := t.Type().Underlying().(*types.Struct)
	if !ok {
		return
	}
	if s.NumFields() == 1 && strings.Contains(reflect.StructTag(s.Tag(0)).Get("protobuf"), ",oneof") {
		parent, _, _ := strings.Cut(t.Name(), "_")
		r.fields[t.Pkg().Path()+"."+parent+"."+s.Field(0).Name()] = true
		r.fields[t.Pkg().Path()+"."+t.Name()[:strings.LastIndexByte(strings.TrimRight(t.Name(), "_"), '_')]+"."+s.Field(0).Name()] = true
		return
	}
	r.messages[t] = true
}

func (r *reads) selection(s *types.Selection) {
	if s == nil {
		return
	}
	name := strings.TrimPrefix(s.Obj().Name(), "Get")
	if s.Kind() == types.MethodVal || s.Kind() == types.MethodExpr {
		if !strings.HasPrefix(s.Obj().Name(), "Get") {
			return
		}
		if types.IsInterface(s.Recv()) {
			r.anyGetter[name] = true
			return
		}
	}
	t := s.Recv()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok && isProto(n.Obj().Pkg()) {
		r.fields[n.Obj().Pkg().Path()+"."+n.Obj().Name()+"."+name] = true
		r.messages[n.Obj()] = true
		// What a field holds is known too: code that passes it on reads it elsewhere, or nowhere.
	}
}

// unread lists the fields of all messages of which at least one field is read.
func (r *reads) unread() []string {
	var out []string
	for t := range r.messages {
		s, ok := t.Type().Underlying().(*types.Struct)
		if !ok || s.NumFields() == 1 && strings.Contains(reflect.StructTag(s.Tag(0)).Get("protobuf"), ",oneof") {
			continue
		}
		var unread []string
		any := false
		note := func(goName, tag string) {
			if r.fields[t.Pkg().Path()+"."+t.Name()+"."+goName] || r.anyGetter[goName] {
				any = true
				if !r.anyGetter[goName] {
					out = append(out, line("+", t, protoName(tag)))
				}
				return
			}
			unread = append(unread, protoName(tag))
		}
		for i := range s.NumFields() {
			tag := reflect.StructTag(s.Tag(i))
			if p := tag.Get("protobuf"); p != "" {
				note(s.Field(i).Name(), p)
			} else if tag.Get("protobuf_oneof") != "" {
				for _, w := range wrappers(t) {
					note(w.Field(0).Name(), reflect.StructTag(w.Tag(0)).Get("protobuf"))
				}
			}
		}
		if !any {
			continue
		}
		for _, f := range unread {
			out = append(out, line("-", t, f))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func line(sign string, t *types.TypeName, field string) string {
	return sign + " " + strings.TrimPrefix(t.Pkg().Path(), protos) + " " + t.Name() + " " + field
}

// wrappers are the structs that hold the fields of a message's oneofs.
func wrappers(t *types.TypeName) []*types.Struct {
	var out []*types.Struct
	scope := t.Pkg().Scope()
	for _, n := range scope.Names() {
		if !strings.HasPrefix(n, t.Name()+"_") {
			continue
		}
		s, ok := scope.Lookup(n).Type().Underlying().(*types.Struct)
		if ok && s.NumFields() == 1 && strings.TrimRight(n, "_") == t.Name()+"_"+s.Field(0).Name() &&
			strings.Contains(reflect.StructTag(s.Tag(0)).Get("protobuf"), ",oneof") {
			out = append(out, s)
		}
	}
	return out
}

func protoName(tag string) string {
	for part := range strings.SplitSeq(tag, ",") {
		if n, ok := strings.CutPrefix(part, "name="); ok {
			return n
		}
	}
	return tag
}
