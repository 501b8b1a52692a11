package hotfmt_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/dragoman-proxy/dragoman/tools/hotfmt"
)

func TestAnalyzer(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), hotfmt.Analyzer, "github.com/dragoman-proxy/dragoman/...")
}
