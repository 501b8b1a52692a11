package bannedcall_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/dragoman-proxy/dragoman/tools/bannedcall"
)

func TestAnalyzer(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), bannedcall.Analyzer, "github.com/dragoman-proxy/dragoman/...")
}
