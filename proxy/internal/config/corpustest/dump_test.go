package corpustest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
)

// Dumps of running proxies are read as configuration and printed again; the lines are compared without their order,
// since maps have none.
func TestDumpsPrintAsTheyWere(t *testing.T) {
	dir, _ := corpus(t)
	files, err := filepath.Glob(filepath.Join(dir, "xds/live/*/*.json*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		base := filepath.Base(f)
		var m proto.Message
		p := config.NewPrinter(nil)
		switch {
		case strings.HasPrefix(base, "config_dump"):
			m = &adminv3.ConfigDump{}
		case strings.HasPrefix(base, "server_info"):
			m, p.Defaults = &adminv3.ServerInfo{}, true
		case strings.HasPrefix(base, "clusters"):
			m = &adminv3.Clusters{}
		case strings.HasPrefix(base, "listeners"):
			m = &adminv3.Listeners{}
		case strings.HasPrefix(base, "certs"):
			m, p.Defaults = &adminv3.Certificates{}, true
		default:
			continue
		}
		want := read(t, f)
		if _, err := config.Parse(strings.TrimSuffix(f, ".gz"), want, m, config.Options{SkipValidation: true}); err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		got := p.Append(nil, m, 0)
		var a, b any
		if err := json.Unmarshal(want, &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(got, &b); err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%s: %.2000s", f, diff)
		}
		if diff := cmp.Diff(sortedLines(want), sortedLines(got)); diff != "" {
			t.Errorf("%s: lines: %.2000s", f, diff)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(path, ".gz") {
		return data
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	return data
}

func sortedLines(b []byte) []string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], ",")
	}
	slices.Sort(lines)
	return lines
}
