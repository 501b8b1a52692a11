package direct_response_test

import (
	"os"
	"path/filepath"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	directv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/direct_response/v3"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/extensions/filters/network/direct_response"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest/filtertest"
)

func TestAnswers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "answer")
	if err := os.WriteFile(file, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		from *corev3.DataSource
		want string
	}{
		{"text", &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: "hello"}}, "hello"},
		{"bytes", &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte("\x00\xff")}}, "\x00\xff"},
		{"file", &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: file}}, "from a file"},
		{"nothing", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := filtertest.NewContext().Connect(t, &direct_response.Extension, &directv3.Config{Response: tc.from}, network.ConnInfo{})
			if n.Sent != tc.want || n.Closed != "flush" || n.Status != network.StopIteration || n.Info().Ended().Details != "direct_response" {
				t.Errorf("sent %q, closed %q, %v", n.Sent, n.Closed, n.Info().Ended())
			}
			n.Receive("ignored", false)
			if n.Sent != tc.want || n.Passed+n.Left() != "" {
				t.Errorf("sent %q, passed %q", n.Sent, n.Passed)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for name, from := range map[string]*corev3.DataSource{
		"no such file":  {Specifier: &corev3.DataSource_Filename{Filename: filepath.Join(t.TempDir(), "none")}},
		"not supported": {Specifier: &corev3.DataSource_EnvironmentVariable{EnvironmentVariable: "HOME"}},
	} {
		if _, err := direct_response.Extension.New(&directv3.Config{Response: from}, filtertest.NewContext()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
