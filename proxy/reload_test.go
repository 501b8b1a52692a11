package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/log"
	"github.com/dragoman-proxy/dragoman/proxy"
)

// client is a connection that is kept.
type client struct {
	t *testing.T
	c net.Conn
	r *bufio.Reader
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(25 * time.Second))
	return &client{t, c, bufio.NewReader(c)}
}

func (c *client) get(path string) string {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.c, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path); err != nil {
		c.t.Fatal(err)
	}
	p, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer p.Body.Close()
	b, err := io.ReadAll(p.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	out := fmt.Sprint(p.StatusCode, " ", string(b))
	if p.Close {
		out += " (closes)"
	}
	return out
}

// reload gives a running proxy another bootstrap.
func (r *running) reload(text string) proxy.Reloaded {
	r.t.Helper()
	b, err := proxy.LoadWith("", proxy.LoadOptions{ConfigYAML: text})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Second)
	defer cancel()
	out, err := r.p.Reload(ctx, b)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// want checks what became of a bootstrap.
func want(t *testing.T, got proxy.Reloaded, changed int, restart ...string) {
	t.Helper()
	for _, err := range got.Errors {
		t.Error(err)
	}
	if got.Changed != changed || !cmp.Equal(got.NeedRestart, restart) {
		t.Errorf("%+v, want %d changed, restart for %v", got, changed, restart)
	}
}

func TestReload(t *testing.T) {
	for _, driver := range drivers() {
		t.Run(driver, func(t *testing.T) {
			say := func(what string) string {
				return backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, what) })
			}
			one, two := say("one"), say("two")
			config := text(t, one)
			r := run(t, build(t, config, proxy.WithIO(driver), proxy.WithConcurrency(2)))
			addr := r.p.Addrs()["main"][0].String()
			kept := dial(t, addr)
			check := func(path, want string) {
				t.Helper()
				if got := kept.get(path); got != want {
					t.Errorf("%s: %s, want %s", path, got, want)
				}
			}
			check("/", "200 one")
			want(t, r.reload(config), 0)
			check("/", "200 one")

			// A cluster's hosts: nobody notices but those who ask.
			_, p1, _ := net.SplitHostPort(one)
			_, p2, _ := net.SplitHostPort(two)
			moved := strings.ReplaceAll(config, "port_value: "+p1, "port_value: "+p2)
			want(t, r.reload(moved), 1)
			check("/", "200 two")

			// Routes, with a cluster that is new: the connection stays.
			route := `routes: [{match: {prefix: /}, route: {cluster: backend}}]`
			if !strings.Contains(moved, route) {
				t.Fatal("the configuration has changed")
			}
			routed := strings.Replace(moved, route, `routes: [{match: {prefix: /new}, route: {cluster: other}}, {match: {prefix: /fixed}, direct_response: {status: 418}}, {match: {prefix: /}, route: {cluster: backend}}]`, 1)
			other := moved[strings.Index(moved, "  - name: backend"):]
			routed += strings.ReplaceAll(strings.ReplaceAll(other, "backend", "other"), p2, p1)
			want(t, r.reload(routed), 2)
			check("/new", "200 one")
			check("/fixed", "418 ")
			check("/", "200 two")

			// Back: the cluster goes, and what it was used for.
			want(t, r.reload(moved), 2)
			check("/new", "200 two")

			// Another name at the same address: the sockets stay, the connection drains.
			named := strings.ReplaceAll(moved, "name: main", "name: renamed")
			want(t, r.reload(named), 1)
			if got := fmt.Sprint(r.p.Addrs()); !strings.Contains(got, "renamed") || strings.Contains(got, "main") || !strings.Contains(got, addr) {
				t.Error(got)
			}
			kept = dial(t, addr)
			check("/", "200 two")

			// What is read at the start is named.
			want(t, r.reload("node: {id: x, cluster: z}\nstats_flush_interval: 7s\n"+named), 0, "node", "stats_flush_interval")

			// A listener more, a listener less.
			start := strings.Index(named, "  - name: renamed")
			end := strings.Index(named, "  clusters:")
			more := named[:end] + strings.ReplaceAll(named[start:end], "renamed", "second") + named[end:]
			want(t, r.reload(more), 1)
			second := r.p.Addrs()["second"]
			if len(second) != 1 || get(t, "http://"+second[0].String()) != "200 two" {
				t.Errorf("%v", second)
			}
			want(t, r.reload(named), 1)
			if c, err := net.Dial("tcp", second[0].String()); err == nil {
				_ = c.Close()
				t.Error("the listener that is gone listens")
			}
			check("/", "200 two")
			r.end()
		})
	}
}

// What cannot be applied is told, and the old serves on.
func TestReloadErrors(t *testing.T) {
	addr := backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "hello") })
	config := text(t, addr)
	r := run(t, build(t, config, proxy.WithIO("std")))
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	start, end := strings.Index(config, "  - name: main"), strings.Index(config, "  clusters:")
	port := fmt.Sprint("port_value: ", taken.Addr().(*net.TCPAddr).Port)
	for name, c := range map[string]struct {
		config, want string
		back         int // how much changes with what was there before
	}{
		"an address that is taken": {config[:end] + strings.ReplaceAll(strings.ReplaceAll(config[start:end], "name: main", "name: second"), "port_value: 0", port) + config[end:], "Address already in use", 0},
		"a move to it":             {config[:start] + strings.Replace(config[start:end], "port_value: 0", port, 1) + config[end:], "cannot bind '127.0.0.1:" + port[len("port_value: "):] + "': ", 0},
		"a cluster that there is not": {strings.Replace(config, "route: {cluster: backend}", "route: {cluster: nope}", 1),
			"unknown cluster 'nope'", 0},
	} {
		got := r.reload(c.config)
		if len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Error(), c.want) || !strings.Contains(got.Errors[0].Error(), "static_resources.listeners[") {
			t.Errorf("%s: %+v", name, got)
		}
		if got := get(t, r.url("/")); got != "200 hello" {
			t.Errorf("%s: %s", name, got)
		}
		want(t, r.reload(config), c.back)
		if got := get(t, r.url("/")); got != "200 hello" {
			t.Errorf("back from %s: %s", name, got)
		}
	}
	b, err := proxy.LoadWith("", proxy.LoadOptions{ConfigYAML: "static_resources: {clusters: [{name: ''}]}"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.p.Reload(t.Context(), b); err == nil {
		t.Error("a field rule is broken, and it is taken")
	}
	r.end()
}

// Of listeners with one name the first is the only one, by a reload as by a start.
func TestReloadListenersOfOneName(t *testing.T) {
	addr := backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "hello") })
	config := text(t, addr)
	start, end := strings.Index(config, "  - name: main"), strings.Index(config, "  clusters:")
	two := config[:end] + strings.ReplaceAll(config[start:end], "name: main", "name: second") + config[end:]
	same := strings.ReplaceAll(strings.ReplaceAll(two, "name: main", "name: one"), "name: second", "name: one")

	var said bytes.Buffer
	logs := log.New(log.Config{Output: &said})
	r := run(t, build(t, two, proxy.WithIO("std"), proxy.WithLog(logs)))
	first, second := r.p.Addrs()["main"][0].String(), r.p.Addrs()["second"][0].String()
	for range 2 { // the second time as what serves already
		got := r.reload(same)
		if len(got.Errors) != 0 {
			t.Fatal(got.Errors)
		}
	}
	if got := r.p.Addrs(); len(got) != 1 || len(got["one"]) != 1 || get(t, "http://"+got["one"][0].String()) != "200 hello" {
		t.Errorf("%v, of %s and %s", got, first, second)
	}
	r.end()
	if n := strings.Count(said.String(), "listener 'one' stands twice: the second is left out"); n != 2 {
		t.Errorf("%d warnings:\n%s", n, &said)
	}
	started := run(t, build(t, same, proxy.WithIO("std")))
	if got := started.p.Addrs(); len(got) != 1 || len(got["one"]) != 1 {
		t.Error(got)
	}
	started.end()
}

// Listeners that /drain_listeners has stopped do not come back, and a bootstrap that would change them or bring more is told so.
func TestReloadOfStoppedListeners(t *testing.T) {
	addr := backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "hello") })
	config := text(t, addr)
	start, end := strings.Index(config, "  - name: main"), strings.Index(config, "  clusters:")
	changed := strings.Replace(config, "route: {cluster: backend}", "direct_response: {status: 200}", 1)
	more := config[:end] + strings.ReplaceAll(config[start:end], "name: main", "name: second") + config[end:]
	inbound := strings.Replace(more, "  - name: second", "  - name: second\n    traffic_direction: INBOUND", 1)
	for query, c := range map[string]struct {
		config string
		errors int
	}{"": {changed, 1}, "?graceful&skip_exit": {changed, 0}, "?inboundonly": {more, 0}, "?x": {more, 1}, "?inboundonly&x": {inbound, 1}} {
		r := run(t, build(t, config, proxy.WithIO("std")))
		req := httptest.NewRequest(http.MethodPost, "/drain_listeners"+query, http.NoBody)
		rec := httptest.NewRecorder()
		if r.p.Admin().ServeHTTP(rec, req); rec.Code != http.StatusOK {
			t.Fatal(rec.Code, rec.Body)
		}
		want(t, r.reload(config), 0)
		got := r.reload(c.config)
		if len(got.Errors) != c.errors || c.errors > 0 && (got.Changed > 0 || !strings.Contains(got.Errors[0].Error(), "/drain_listeners has stopped them")) {
			t.Errorf("%q: %+v", query, got)
		}
		if n := len(r.p.Addrs()["second"]); (n == 1) != (c.errors == 0 && c.config == more) {
			t.Errorf("%q: %d new listeners", query, n)
		}
		r.end()
	}
}
