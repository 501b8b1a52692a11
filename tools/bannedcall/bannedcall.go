// Package bannedcall bans functions of the standard library that the data plane has its own seams for.
package bannedcall

import (
	"go/ast"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/dragoman-proxy/dragoman/tools/internal/house"
)

// Analyzer bans the calls of the table in the data plane, and sleeping in tests anywhere.
var Analyzer = &analysis.Analyzer{
	Name: "bannedcall",
	Doc:  "bans functions that go around the seams of time, chance and the network in the data plane",
	Run:  run,
}

const useClock = "take the time from the worker or an api/clock.Clock, which the simulation can drive"

// banned gives the replacement for each function. Test files may use them, but for sleeping.
var banned = map[string]string{
	"time.Now":       useClock,
	"time.Since":     useClock,
	"time.Until":     useClock,
	"time.After":     "set a timer on the worker, which the simulation can drive",
	"time.AfterFunc": "set a timer on the worker, which the simulation can drive",
	"time.NewTimer":  "set a timer on the worker, which the simulation can drive",
	"time.NewTicker": "set a timer on the worker, which the simulation can drive",
	"time.Tick":      "set a timer on the worker, which the simulation can drive",
	"time.Sleep":     "set a timer on the worker; a worker must never block",
	"net.ParseIP":    "use net/netip.ParseAddr: it does not allocate and does not take IPv4 for IPv6",
	"net.ParseCIDR":  "use net/netip.ParsePrefix: it does not allocate and does not take IPv4 for IPv6",

	"regexp.Compile":          useMatch,
	"regexp.MustCompile":      useMatch,
	"regexp.CompilePOSIX":     useMatch,
	"regexp.MustCompilePOSIX": useMatch,
	"regexp.Match":            useMatch,
	"regexp.MatchString":      useMatch,
	"regexp.MatchReader":      useMatch,
}

const (
	useMatch = "use the regex of package match (extensions: ext.FactoryContext), which has the literal fast path and the cap on program size"
	useRand  = "use api/rand, which the simulation can seed"
	noSleep  = "wait for what the test is about: a channel, a condition with a deadline, or a fake clock"
)

// exempt lists the folders in which a prefix of names is allowed: those that implement the seam.
var exempt = map[string][]string{
	"time.":         {"api/clock"},
	"regexp.":       {"proxy/internal/match"},
	"math/rand/v2.": {"api/rand"},
}

func run(pass *analysis.Pass) (any, error) {
	place, ours := house.Place(pass)
	if !ours {
		return nil, nil
	}
	for _, f := range pass.Files {
		if ast.IsGenerated(f) {
			continue
		}
		checkImports(pass, f, place)
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				checkUse(pass, id, place)
			}
			return true
		})
	}
	return nil, nil
}

func checkImports(pass *analysis.Pass, f *ast.File, place string) {
	if !house.DataPlane(place) {
		return
	}
	for _, imp := range f.Imports {
		if path, _ := strconv.Unquote(imp.Path.Value); path == "math/rand" {
			house.Report(pass, imp.Pos(), "math/rand is banned in the data plane: %s", useRand)
		}
	}
}

func checkUse(pass *analysis.Pass, id *ast.Ident, place string) {
	name := house.Func(pass, id)
	if name == "" {
		return
	}
	if house.IsTest(pass, id) {
		if name == "time.Sleep" {
			house.Report(pass, id.Pos(), "time.Sleep is banned in tests: %s", noSleep)
		}
		return
	}
	if !house.DataPlane(place) || isExempt(name, place) {
		return
	}
	if instead, ok := banned[name]; ok {
		house.Report(pass, id.Pos(), "%s is banned in the data plane: %s", name, instead)
		return
	}
	if isGlobalRand(name) {
		house.Report(pass, id.Pos(), "%s is banned in the data plane: %s", name, useRand)
	}
}

func isExempt(name, place string) bool {
	for prefix, folders := range exempt {
		if strings.HasPrefix(name, prefix) && house.Under(place, folders...) {
			return true
		}
	}
	return false
}

// isGlobalRand is for functions of math/rand/v2 that draw from the process's own source; a source made with New is fine.
func isGlobalRand(name string) bool {
	f, ok := strings.CutPrefix(name, "math/rand/v2.")
	return ok && !strings.Contains(f, ".") && !strings.HasPrefix(f, "New")
}
