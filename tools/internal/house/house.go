// Package house knows what the analyzers share: where a package stands in the tree, which lines are allowed to break a
// rule, and how a call is named.
package house

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"
)

const module = "github.com/dragoman-proxy/dragoman"

// Place is a package's path below the module, such as "proxy/internal/event"; "." is the module's root. Packages of
// other modules have none. An external test package stands where the package under test does.
func Place(pass *analysis.Pass) (place string, ours bool) {
	path := strings.TrimSuffix(pass.Pkg.Path(), "_test")
	if path == module {
		return ".", true
	}
	place, ours = strings.CutPrefix(path, module+"/")
	return place, ours
}

// Under says whether a place is one of the folders or below one.
func Under(place string, folders ...string) bool {
	for _, f := range folders {
		if place == f || strings.HasPrefix(place, f+"/") {
			return true
		}
	}
	return false
}

// DataPlane says whether the rules of the data plane hold at a place: time, chance and the network are seams there.
// proxytest is for tests, which live in real time.
func DataPlane(place string) bool {
	return Under(place, "api", "proxy", "extensions") && !Under(place, "proxy/proxytest")
}

// IsTest says whether a node stands in a test file.
func IsTest(pass *analysis.Pass, n ast.Node) bool {
	return strings.HasSuffix(pass.Fset.File(n.Pos()).Name(), "_test.go")
}

// IsGenerated says whether a node stands in a generated file.
func IsGenerated(pass *analysis.Pass, n ast.Node) bool {
	f := file(pass, n.Pos())
	return f != nil && ast.IsGenerated(f)
}

// HasMarker says whether the file of a node has a line that consists of the comment //marker.
func HasMarker(f *ast.File, marker string) bool {
	for _, g := range f.Comments {
		for _, c := range g.List {
			if strings.TrimSpace(c.Text) == "//"+marker {
				return true
			}
		}
	}
	return false
}

// Callee names the function that a call goes to, as "path.Name" for a function and "path.Type.Name" for a method, or is
// empty where that is not known before the program runs.
func Callee(pass *analysis.Pass, call *ast.CallExpr) string {
	return name(typeutil.StaticCallee(pass.TypesInfo, call))
}

// Func names the function that an identifier stands for, as Callee does, so that a function which is passed as a value
// does not slip through.
func Func(pass *analysis.Pass, id *ast.Ident) string {
	f, _ := pass.TypesInfo.Uses[id].(*types.Func)
	return name(f)
}

func name(f *types.Func) string {
	if f == nil || f.Pkg() == nil {
		return ""
	}
	recv := f.Signature().Recv()
	if recv == nil {
		return f.Pkg().Path() + "." + f.Name()
	}
	t := recv.Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok {
		return f.Pkg().Path() + "." + n.Obj().Name() + "." + f.Name()
	}
	return ""
}

// Allow begins a comment that allows its line to break a rule.
const Allow = "//ban:allow"

// Report reports a finding, unless its line or the line above it allows it. An allowance without a reason is a finding.
func Report(pass *analysis.Pass, pos token.Pos, format string, args ...any) {
	f := file(pass, pos)
	if f == nil {
		pass.Reportf(pos, format, args...)
		return
	}
	line := pass.Fset.Position(pos).Line
	for _, g := range f.Comments {
		for _, c := range g.List {
			at := pass.Fset.Position(c.Pos()).Line
			if at != line && at != line-1 || !strings.HasPrefix(c.Text, Allow) {
				continue
			}
			words := strings.Fields(strings.TrimPrefix(c.Text, Allow))
			if len(words) == 0 || words[0] != pass.Analyzer.Name {
				continue
			}
			if len(words) < 3 {
				pass.Reportf(pos, "%s %s needs a reason of at least two words", Allow, pass.Analyzer.Name)
			}
			return
		}
	}
	pass.Reportf(pos, format, args...)
}

func file(pass *analysis.Pass, pos token.Pos) *ast.File {
	for _, f := range pass.Files {
		if f.FileStart <= pos && pos < f.FileEnd {
			return f
		}
	}
	return nil
}
