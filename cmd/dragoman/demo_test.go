package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The demonstration does what it says: it answers, and takes routes over while it serves.
func TestDemo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- demo(ctx, w, dir, 0, 0) }()
	lines := bufio.NewScanner(r)
	var urls []string
	for lines.Scan() {
		for _, f := range strings.Fields(lines.Text()) {
			if strings.HasPrefix(f, "http://") {
				urls = append(urls, strings.TrimSuffix(f, ","))
			}
		}
		if strings.Contains(lines.Text(), "Ctrl-C") {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	if len(urls) < 2 {
		t.Fatalf("%v", urls)
	}
	client := &http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	get := func(url string) string {
		t.Helper()
		x, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Body.Close()
		b, err := io.ReadAll(x.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	seen := ""
	for range 4 {
		seen += get(urls[0] + "/")
	}
	if !strings.Contains(seen, `"upstream": "blue"`) || !strings.Contains(seen, `"upstream": "green"`) {
		t.Errorf("only one upstream answers: %s", seen)
	}
	if got := get(urls[1] + "/ready"); got != "LIVE\n" {
		t.Errorf("admin: %s", got)
	}
	if got := get(urls[0] + "/hello"); got != "Hello from Dragoman.\n" {
		t.Errorf("%q", got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "routes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new.yaml"), []byte(strings.ReplaceAll(string(text), "Hello", "Good day")), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "new.yaml"), filepath.Join(dir, "routes.yaml")); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(25 * time.Second); get(urls[0]+"/hello") != "Good day from Dragoman.\n"; {
		if time.Now().After(end) {
			t.Fatal("the new routes were not taken")
		}
	}
	cancel()
	if err := within(t, "the end", ended); err != nil {
		t.Error(err)
	}
}
