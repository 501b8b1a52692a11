// Package initeffect bans init functions that do more than fill in the package's own variables.
package initeffect

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"

	"github.com/dragoman-proxy/dragoman/tools/internal/house"
)

// Analyzer bans effects in init functions: calls, goroutines, sends, and assignments to what another package owns.
// A program that imports a package must not be changed by that alone; what registers itself cannot be left out.
var Analyzer = &analysis.Analyzer{
	Name: "initeffect",
	Doc:  "bans init functions with effects outside their package",
	Run:  run,
}

const instead = "build the value where it is used, or let the caller list it (as extensions/standard does)"

func run(pass *analysis.Pass) (any, error) {
	if _, ours := house.Place(pass); !ours {
		return nil, nil
	}
	for _, f := range pass.Files {
		if ast.IsGenerated(f) || house.IsTest(pass, f) {
			continue
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Recv == nil && fn.Name.Name == "init" && fn.Body != nil {
				check(pass, fn)
			}
		}
	}
	return nil, nil
}

func check(pass *analysis.Pass, fn *ast.FuncDecl) {
	report := func(n ast.Node, what string) {
		house.Report(pass, n.Pos(), "init %s: %s", what, instead)
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if isCall(pass, n) {
				report(n, "calls a function")
			}
		case *ast.GoStmt:
			report(n, "starts a goroutine")
			return false
		case *ast.SendStmt:
			report(n, "sends on a channel")
		case *ast.AssignStmt:
			for _, lhs := range n.Lhs {
				if foreign(pass, lhs) {
					report(n, "assigns to a variable of another package")
				}
			}
		}
		return true
	})
}

// isCall tells calls from conversions and builtins.
func isCall(pass *analysis.Pass, call *ast.CallExpr) bool {
	tv := pass.TypesInfo.Types[call.Fun]
	return !tv.IsType() && !tv.IsBuiltin()
}

// foreign says whether an expression begins at a variable of another package.
func foreign(pass *analysis.Pass, e ast.Expr) bool {
	for {
		switch x := e.(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.TypeAssertExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.SelectorExpr:
			if v, ok := pass.TypesInfo.Uses[x.Sel].(*types.Var); ok && !v.IsField() {
				return v.Pkg() != pass.Pkg
			}
			e = x.X
		default:
			return false
		}
	}
}
