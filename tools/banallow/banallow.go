// Package banallow checks the comments that allow a line to break a rule: one that names no analyzer allows nothing, and
// looks as if it did.
package banallow

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/dragoman-proxy/dragoman/tools/internal/house"
)

// New returns the analyzer, which knows the others by name.
func New(others ...*analysis.Analyzer) *analysis.Analyzer {
	var names []string
	for _, a := range others {
		names = append(names, a.Name)
	}
	slices.Sort(names)
	return &analysis.Analyzer{
		Name: "banallow",
		Doc:  "reports //ban:allow comments that name no analyzer",
		Run: func(pass *analysis.Pass) (any, error) {
			check(pass, names)
			return nil, nil
		},
	}
}

func check(pass *analysis.Pass, names []string) {
	for _, f := range pass.Files {
		for _, g := range f.Comments {
			for _, c := range g.List {
				rest, ok := strings.CutPrefix(c.Text, house.Allow)
				if !ok {
					continue
				}
				words := strings.Fields(rest)
				if len(words) == 0 || !slices.Contains(names, words[0]) {
					pass.Reportf(c.Pos(), "%s is followed by the analyzer (%s) and the reason", house.Allow, strings.Join(names, ", "))
				}
			}
		}
	}
}
