// Command vet is the house's own analyzers as a tool for go vet:
//
//	go build -C tools -o ../bin/vet ./vet && go vet -vettool=$PWD/bin/vet ./...
//
// Each analyzer bans something and names what to use instead. A line that has a good reason says so, on the line or on
// the one above it: //ban:allow ANALYZER REASON.
package main

import (
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/dragoman-proxy/dragoman/tools/banallow"
	"github.com/dragoman-proxy/dragoman/tools/bannedcall"
	"github.com/dragoman-proxy/dragoman/tools/globallog"
	"github.com/dragoman-proxy/dragoman/tools/hotfmt"
	"github.com/dragoman-proxy/dragoman/tools/initeffect"
	"github.com/dragoman-proxy/dragoman/tools/nakedgo"
)

func main() {
	analyzers := []*analysis.Analyzer{
		bannedcall.Analyzer,
		globallog.Analyzer,
		hotfmt.Analyzer,
		initeffect.Analyzer,
		nakedgo.Analyzer,
	}
	unitchecker.Main(append(analyzers, banallow.New(analyzers...))...)
}
