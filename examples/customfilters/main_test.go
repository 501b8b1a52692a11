package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/examples/customfilters/authorize"
	"github.com/dragoman-proxy/dragoman/examples/customfilters/tag"
	"github.com/dragoman-proxy/dragoman/extensions/standard"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestBootstrap runs bootstrap.yaml as it is, but for its ports.
func TestBootstrap(t *testing.T) {
	b, err := os.ReadFile("bootstrap.yaml")
	if err != nil {
		t.Fatal(err)
	}
	address := "{socket_address: {address: 127.0.0.1, port_value: %s}}"
	text := string(b)
	for port, with := range map[string]string{"9901": fmt.Sprintf(address, "0"), "10000": fmt.Sprintf(address, "0"), "10001": "UPSTREAM(backend)",
		"10002": "UPSTREAM(authz)"} {
		old := fmt.Sprintf(address, port)
		if !strings.Contains(text, old) {
			t.Fatalf("port %s is not in the file", port)
		}
		text = strings.ReplaceAll(text, old, with)
	}
	p := proxytest.Start(t, text, proxytest.Extensions(standard.All()...),
		proxytest.Extensions(ext.Set{HTTPFilters: []ext.HTTPFilter{tag.Extension, authorize.Extension}}),
		proxytest.Upstream("backend", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			_, _ = fmt.Fprint(w, "tag ", q.Header.Get("X-Tag"))
		})),
		proxytest.Upstream("authz", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.URL.Path != "/check/ok" {
				w.WriteHeader(401)
			}
		})))
	for path, want := range map[string]string{"/ok": "200 tag GET HTTP/1.1", "/no": "401 ", "/open": "200 tag open"} {
		a := p.Get(path)
		if got := fmt.Sprint(a.Code, " ", a.Body); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestArguments(t *testing.T) {
	if err := run([]string{"customfilters"}); err == nil || !strings.Contains(err.Error(), "usage") {
		t.Error(err)
	}
	if err := run([]string{"customfilters", "no-such-file.yaml"}); err == nil {
		t.Error("a file that is not there was read")
	}
}
