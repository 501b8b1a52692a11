package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy"
)

const watched = `
static_resources:
  listeners:
  - name: main
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: p
          http_filters: [{name: envoy.filters.http.router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
          route_config: {name: local, virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200, body: {inline_string: one}}}]}]}
`

// watching is a proxy that watches its file, whose looks the test commands.
type watching struct {
	t    *testing.T
	path string
	log  string
	tick chan time.Time
	idle chan struct{} // it is through with the last look
	w    *watch
	p    *proxy.Proxy
}

// startWatching starts one; built are called when it was built.
func startWatching(t *testing.T, built ...func(*watching)) *watching {
	dir := t.TempDir()
	x := &watching{t: t, path: filepath.Join(dir, "a.yaml"), log: filepath.Join(dir, "log"), tick: make(chan time.Time), idle: make(chan struct{})}
	x.write(watched)
	f := newFlags("dragoman proxy", true)
	if err := f.parse([]string{"-c", x.path, "--watch", "--log-path", x.log, "--concurrency", "1"}); err != nil {
		t.Fatal(err)
	}
	l, err := openLog(f)
	if err != nil {
		t.Fatal(err)
	}
	if x.p, err = build(f, l); err != nil {
		t.Fatal(err)
	}
	for _, do := range built {
		do(x)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done, ended := make(chan error, 1), make(chan struct{})
	go func() { done <- x.p.Run(ctx) }()
	x.w = newWatch(f, l, x.p)
	x.w.tick = func() <-chan time.Time {
		select {
		case x.idle <- struct{}{}:
		case <-ctx.Done():
		}
		return x.tick
	}
	go func() { x.w.run(ctx); close(ended) }()
	t.Cleanup(func() {
		cancel()
		if err := within(t, "the proxy's end", done); err != nil {
			t.Error(err)
		}
		within(t, "the watch's end", ended)
	})
	within(t, "a proxy that is ready", x.p.Ready())
	within(t, "the first rest", x.idle)
	return x
}

func (x *watching) write(text string) {
	x.t.Helper()
	if err := os.WriteFile(x.path, []byte(text), 0o600); err != nil {
		x.t.Fatal(err)
	}
}

// patience is how long a test waits for what must come.
const patience = 25 * time.Second

// within returns what comes from a channel.
func within[T any](t *testing.T, what string, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(patience):
		t.Fatalf("waited too long for %s", what)
	}
	return v
}

// looks makes it look n times, and waits until it has.
func (x *watching) looks(n int) {
	for range n {
		select {
		case x.tick <- time.Time{}:
		case <-time.After(patience):
			x.t.Fatal("it does not wait for the next look")
		}
		within(x.t, "the end of a look", x.idle)
	}
}

// said returns what was logged since the last call.
func (x *watching) said() string {
	x.t.Helper()
	data, err := os.ReadFile(x.log)
	if err == nil {
		err = os.Truncate(x.log, 0)
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return string(data)
}

func (x *watching) get() string {
	x.t.Helper()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	p, err := (&http.Client{Transport: tr, Timeout: 25 * time.Second}).Get("http://" + x.p.Addrs()["main"][0].String())
	if err != nil {
		x.t.Fatal(err)
	}
	defer p.Body.Close()
	b, err := io.ReadAll(p.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	return string(b)
}

func TestWatch(t *testing.T) {
	x := startWatching(t)
	if all := x.p.Stats(); strings.Contains(all, "reload") {
		t.Error(all)
	}
	if got := x.get(); got != "one" {
		t.Fatal(got)
	}
	x.looks(2)
	x.said()
	for _, c := range []struct {
		name, text, body string
		log              []string
	}{
		{"a route", strings.ReplaceAll(watched, "string: one", "string: two"), "two",
			[]string{"the configuration has changed:\n  ~ route main / local / all / prefix /\n      direct_response.body.inline_string: one -> two\n", "the changed configuration serves; clusters, listeners and secrets that were added, replaced or removed: 1"}},
		{"what nobody means", strings.ReplaceAll(watched, "string: one", "string: two") + "  clusters: [{name: c}]\n", "two",
			[]string{"[warning][config]", "a.yaml:14:21: static_resources.clusters[0].name: the cluster 'c' has no endpoints"}},
		{"a comment", "# new\n" + strings.ReplaceAll(watched, "string: one", "string: two") + "  clusters: [{name: c}]\n", "two", []string{"has changed, what it says has not"}},
		{"a mistake", strings.ReplaceAll(watched, "direct_response", "direct_respons"), "two",
			[]string{"the changed configuration is refused; the proxy goes on with what it has:\n", x.path + ":13:", "did you mean 'direct_response'?"}},
		{"an unknown cluster", strings.ReplaceAll(watched, "direct_response: {status: 200, body: {inline_string: one}}", "route: {cluster: nope}"), "two",
			[]string{"is refused", "unknown cluster 'nope'"}},
		{"no YAML", "a: [", "two", []string{"is refused", "a.yaml:2:1: invalid YAML"}},
		{"what is read at the start", "node: {id: n1, cluster: c}\n" + watched, "one",
			[]string{"  ~ route main", "  + bootstrap node", "stays as it was, until a restart: node"}},
	} {
		x.write(c.text)
		x.looks(2)
		said := x.said()
		for _, want := range c.log {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %q is missing in\n%s", c.name, want, said)
			}
		}
		if got := x.get(); got != c.body {
			t.Errorf("%s: %s, want %s", c.name, got, c.body)
		}
		x.looks(2)
		if said := x.said(); said != "" {
			t.Errorf("%s: it is told again: %s", c.name, said)
		}
	}

	// All of that is counted.
	if all := x.p.Stats(); !strings.Contains(all, "\nserver.dragoman.reload.applied: 2\n") || !strings.Contains(all, "\nserver.dragoman.reload.refused: 3\n") ||
		!strings.Contains(all, "\nserver.dragoman.reload.applied_time: 1") || !strings.Contains(all, "\nserver.dragoman.reload.refused_time: 1") || !strings.Contains(all, "\nserver.dragoman.reload.partial: 1\n") {
		t.Error(all)
	}
	x.w.look()
	within(t, "the end of a look", x.idle)
	if said := x.said(); !strings.Contains(said, "the configuration file has not changed: it is what serves") {
		t.Error(said)
	}

	// A file that changes between two looks is left alone, unless somebody asks.
	x.write(strings.ReplaceAll(watched, "string: one", "string: three"))
	x.looks(1)
	x.write(strings.ReplaceAll(watched, "string: one", "string: four"))
	x.looks(1)
	if got := x.get(); got != "one" {
		t.Error(got)
	}
	x.w.look()
	within(t, "the end of a look", x.idle)
	if got := x.get(); got != "four" {
		t.Error(got)
	}
	x.said()
	if err := os.Remove(x.path); err != nil {
		t.Fatal(err)
	}
	x.looks(2)
	if said := x.said(); strings.Count(said, "cannot be read") != 1 || x.get() != "four" {
		t.Error(said)
	}

	// An address that another has is told, and all else goes on.
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	x.write(strings.Replace(watched, "port_value: 0", fmt.Sprint("port_value: ", taken.Addr().(*net.TCPAddr).Port), 1))
	x.looks(2)
	if said := x.said(); !strings.Contains(said, "not all of the changed configuration could be applied") || !strings.Contains(said, "Address already in use") {
		t.Error(said)
	}
	if all := x.p.Stats(); !strings.Contains(all, "\nserver.dragoman.reload.partial: 2\n") {
		t.Error(all)
	}
	x.write("a: [")
	x.looks(2)
	x.said()
	x.w.look()
	within(t, "the end of a look", x.idle)
	if said := x.said(); !strings.Contains(said, "has not changed since it was refused") {
		t.Error(said)
	}
}

// A file that changes after it was read, and before the first look at it, is a change.
func TestWatchBeforeTheFirstLook(t *testing.T) {
	x := startWatching(t, func(x *watching) { x.write(strings.Replace(watched, "inline_string: one", "inline_string: two", 1)) })
	x.looks(2)
	if said := x.said(); !strings.Contains(said, "inline_string: one -> two") || x.get() != "two" {
		t.Errorf("%s\n%s", x.get(), said)
	}
}

// What could not be applied stays outstanding until it serves: it is tried again when somebody asks, with any change, and from time to time.
func TestWatchOutstanding(t *testing.T) {
	x := startWatching(t)
	dir := filepath.Join(filepath.Dir(x.path), "d")
	pipe := filepath.Join(dir, "s")
	moved := strings.Replace(watched, "{socket_address: {address: 127.0.0.1, port_value: 0}}", "{pipe: {path: "+pipe+"}}", 1)
	was := x.p.Addrs()["main"][0].String()
	served := func(want string) {
		t.Helper()
		if got := x.p.Addrs()["main"][0].String(); got != want {
			t.Errorf("it serves at %s, want %s", got, want)
		}
	}
	counted := func(applied, partial int) {
		t.Helper()
		all := x.p.Stats()
		if want := fmt.Sprint("\nserver.dragoman.reload.partial: ", partial, "\n"); !strings.Contains(all, want) {
			t.Errorf("no %q in %s", want, all)
		}
		want := fmt.Sprint("\nserver.dragoman.reload.applied: ", applied, "\n")
		if strings.Contains(all, want) != (applied > 0) || applied == 0 && strings.Contains(all, "reload.applied: ") {
			t.Errorf("%q in %s", want, all)
		}
	}
	says := func(list ...string) {
		t.Helper()
		said := x.said()
		for _, want := range list {
			if !strings.Contains(said, want) {
				t.Errorf("%q is missing in\n%s", want, said)
			}
		}
		if len(list) == 0 && strings.Contains(said, "changed configuration") {
			t.Errorf("said:\n%s", said)
		}
	}
	asked := func() {
		x.w.look()
		within(t, "the end of a look", x.idle)
	}
	const partly = "the changed configuration serves in part"
	x.said()

	x.write(moved)
	x.looks(2)
	says("could be applied", "cannot bind '"+pipe+"'", partly)
	counted(0, 1)
	asked()
	says("cannot bind '"+pipe+"'", partly)
	counted(0, 2)
	served(was)

	// With a comment, and with a route.
	x.write("# new\n" + moved)
	x.looks(2)
	says("what it says has not; what could not be applied is tried again", partly)
	moved = strings.ReplaceAll(moved, "string: one", "string: two")
	x.write(moved)
	x.looks(2)
	says("body.inline_string: one -> two", partly)
	counted(0, 4)
	served(was)
	if got := x.get(); got != "one" {
		t.Error(got)
	}

	// From time to time, which is not told unless something changes, and ever more seldom.
	x.looks(shortestPause)
	counted(0, 5)
	x.looks(2*shortestPause - 1)
	counted(0, 5)
	x.looks(1)
	counted(0, 6)
	says()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	x.looks(4 * shortestPause)
	says("the changed configuration serves; clusters, listeners and secrets that were added, replaced or removed: 1")
	served(pipe)
	counted(1, 6)
	asked()
	says("has not changed: it is what serves")
	x.looks(2 * longestPause)
	counted(1, 6)
}
