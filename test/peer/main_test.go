//go:build peers

// Package peer_test lets programs that others wrote talk to the built binary: curl, nghttp2's tools, OpenSSL, Go's HTTP
// clients, and a real Envoy in front of it, behind it, and in its place. What each of them says is the verdict.
//
// The binary is $DRAGOMAN or $DRAGOMAN_BIN, by default bin/dragoman; the real Envoy is $ENVOY. A program that is not there
// skips its tests, and fails them when $PEERS is strict. All ports are the kernel's choice.
package peer_test

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// patience bounds everything that a peer is waited for. It is what a hung test costs, not what a test takes.
const patience = 30 * time.Second

// dragoman returns the command that runs the proxy under test.
func dragoman(t *testing.T) []string {
	t.Helper()
	path := cmp.Or(os.Getenv("DRAGOMAN"), os.Getenv("DRAGOMAN_BIN"), filepath.Join("..", "..", "bin", "dragoman"))
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		missing(t, "the binary is not built (make build): "+err.Error())
	}
	return []string{path, "proxy"}
}

// realEnvoy returns the command that runs the real Envoy.
func realEnvoy(t *testing.T) []string {
	t.Helper()
	path := os.Getenv("ENVOY")
	if path == "" {
		missing(t, "no real Envoy: its path belongs in $ENVOY")
	}
	return []string{path}
}

// tool returns the path of a program that the runner of these tests installs.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, name+" is not installed")
	}
	return path
}

func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("PEERS") == "strict" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// output is what a program that ran to its end has written.
type output struct{ stdout, stderr string }

// run runs a program to its end, which must be a good one.
func run(t *testing.T, stdin, path string, args ...string) output {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errs bytes.Buffer
	c := exec.CommandContext(ctx, path, args...)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewBufferString(stdin), &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("%s %q: %v\n%s%s", filepath.Base(path), args, err, tail(out.Bytes()), tail(errs.Bytes()))
	}
	return output{out.String(), errs.String()}
}

// tail keeps a message readable when a program has written megabytes.
func tail(b []byte) []byte {
	const most = 4 << 10
	return b[max(0, len(b)-most):]
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// eventually asks again and again until the answer is yes.
func eventually(t *testing.T, what string, ask func() bool) {
	t.Helper()
	end := time.NewTimer(patience)
	defer end.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !ask() {
		select {
		case <-again.C:
		case <-end.C:
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
