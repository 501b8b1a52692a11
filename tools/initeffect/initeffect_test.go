package initeffect_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/dragoman-proxy/dragoman/tools/initeffect"
)

func TestAnalyzer(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), initeffect.Analyzer, "github.com/dragoman-proxy/dragoman/...")
}
