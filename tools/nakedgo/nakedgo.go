// Package nakedgo bans goroutines in the packages of the data plane, where one worker owns everything that it touches.
package nakedgo

import (
	"go/ast"

	"golang.org/x/tools/go/analysis"

	"github.com/dragoman-proxy/dragoman/tools/internal/house"
)

// Analyzer bans the go statement, and what hides one, outside the packages that own goroutines.
var Analyzer = &analysis.Analyzer{
	Name: "nakedgo",
	Doc:  "bans goroutines outside the packages that own some",
	Run:  run,
}

// owners are the folders that own goroutines: they have something that blocks (a socket of another library, a file, a
// resolver, a control plane) or are no part of the data plane. Everything else runs on the worker that it belongs to.
var owners = []string{
	"proxy/internal/event",
	"proxy/internal/spill",
	"proxy/internal/accesslog",
	"proxy/internal/dns",
	"proxy/internal/config",
	"proxy/internal/xds",
	"proxy/internal/quic",
	"proxy/proxytest",
	"internal/xdstest",
	"agent",
	"control",
	"cmd",
	"test",
	"examples",
}

const instead = "Post to a worker, or write the wait as a coroutine; who really owns a goroutine is listed in tools/nakedgo"

func run(pass *analysis.Pass) (any, error) {
	place, ours := house.Place(pass)
	if !ours || house.Under(place, owners...) {
		return nil, nil
	}
	for _, f := range pass.Files {
		if ast.IsGenerated(f) || house.IsTest(pass, f) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				house.Report(pass, n.Pos(), "a goroutine of its own is banned here: %s", instead)
			case *ast.CallExpr:
				if house.Callee(pass, n) == "sync.WaitGroup.Go" {
					house.Report(pass, n.Pos(), "sync.WaitGroup.Go starts a goroutine, which is banned here: %s", instead)
				}
			}
			return true
		})
	}
	return nil, nil
}
