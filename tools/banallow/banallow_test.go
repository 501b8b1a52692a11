package banallow_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/dragoman-proxy/dragoman/tools/banallow"
	"github.com/dragoman-proxy/dragoman/tools/nakedgo"
)

func TestAnalyzer(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), banallow.New(nakedgo.Analyzer), "github.com/dragoman-proxy/dragoman/...")
}
