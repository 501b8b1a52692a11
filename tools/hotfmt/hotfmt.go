// Package hotfmt bans formatting by reflection in files that say, with a line //hot, that requests pass through them.
package hotfmt

import (
	"go/ast"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/dragoman-proxy/dragoman/tools/internal/house"
)

// Analyzer bans package fmt and errors.New inside functions of files with a line //hot.
var Analyzer = &analysis.Analyzer{
	Name: "hotfmt",
	Doc:  "bans fmt and errors.New in functions of files marked //hot",
	Run:  run,
}

func run(pass *analysis.Pass) (any, error) {
	if _, ours := house.Place(pass); !ours {
		return nil, nil
	}
	for _, f := range pass.Files {
		if house.IsTest(pass, f) || !house.HasMarker(f, "hot") {
			continue
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				checkBody(pass, fn.Body)
			}
		}
	}
	return nil, nil
}

func checkBody(pass *analysis.Pass, body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch name := house.Callee(pass, call); {
		case name == "errors.New":
			house.Report(pass, call.Pos(), "errors.New allocates on a hot path: make the error once, in a package variable")
		case strings.HasPrefix(name, "fmt."):
			house.Report(pass, call.Pos(), "%s allocates on a hot path: append to a buffer with strconv.Append*, or move the cold code to another file", name)
		}
		return true
	})
}
