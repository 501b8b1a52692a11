package globallog_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/dragoman-proxy/dragoman/tools/globallog"
)

func TestAnalyzer(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), globallog.Analyzer, "github.com/dragoman-proxy/dragoman/...")
}
