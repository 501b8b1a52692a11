// Package globallog bans the process-wide loggers: they belong to the program, and a program may run two proxies.
package globallog

import (
	"go/ast"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/dragoman-proxy/dragoman/tools/internal/house"
)

// Analyzer bans slog's and log's package functions that write to, return or replace the process's logger.
var Analyzer = &analysis.Analyzer{
	Name: "globallog",
	Doc:  "bans the process-wide loggers of slog and log",
	Run:  run,
}

const instead = "log to the logger that was handed in: a program may run two proxies with a logger each"

func run(pass *analysis.Pass) (any, error) {
	if _, ours := house.Place(pass); !ours {
		return nil, nil
	}
	for _, f := range pass.Files {
		if ast.IsGenerated(f) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if name := house.Func(pass, id); isGlobal(name) {
					house.Report(pass, id.Pos(), "%s is banned: %s", name, instead)
				}
			}
			return true
		})
	}
	return nil, nil
}

func isGlobal(name string) bool {
	switch name {
	case "log/slog.Debug", "log/slog.Info", "log/slog.Warn", "log/slog.Error", "log/slog.Log", "log/slog.LogAttrs",
		"log/slog.DebugContext", "log/slog.InfoContext", "log/slog.WarnContext", "log/slog.ErrorContext",
		"log/slog.With", "log/slog.Default", "log/slog.SetDefault", "log/slog.SetLogLoggerLevel":
		return true
	}
	f, ok := strings.CutPrefix(name, "log.")
	return ok && f != "New" && !strings.Contains(f, ".")
}
