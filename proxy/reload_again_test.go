package proxy_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy"
)

// shown returns what /config_dump has of a list of resources.
func (r *running) shown(resource string) string {
	r.t.Helper()
	w := httptest.NewRecorder()
	r.p.Admin().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/config_dump?resource="+resource, nil))
	var v any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		r.t.Fatalf("%v: %s", err, w.Body)
	}
	out, _ := json.Marshal(v)
	return string(out)
}

// What a listener could not get is outstanding: it is tried again by the same bootstrap and by any other, and the pages have what serves.
func TestReloadOwed(t *testing.T) {
	for _, driver := range drivers() {
		t.Run(driver, func(t *testing.T) { reloadOwed(t, driver) })
	}
}

func reloadOwed(t *testing.T, driver string) {
	addr := backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "hello") })
	config := text(t, addr)
	dir := filepath.Join(t.TempDir(), "d")
	socket := filepath.Join(dir, "s")
	pipe := "{pipe: {path: " + socket + "}}"
	const at = "name: main\n    address: {socket_address: {address: 127.0.0.1, port_value: 0}}"
	if !strings.Contains(config, at) {
		t.Fatal("the configuration has changed")
	}
	moved := strings.Replace(config, at, "name: main\n    address: "+pipe, 1)
	fixed := strings.Replace(moved, "route: {cluster: backend}", "direct_response: {status: 418}", 1)
	more := strings.Replace(config, at, at+"\n    additional_addresses: [{address: "+pipe+"}]", 1)

	r := run(t, build(t, config, proxy.WithIO(driver), proxy.WithConcurrency(2)))
	was := r.p.Addrs()["main"][0].String()
	fails := func(bootstrap string) {
		t.Helper()
		got := r.reload(bootstrap)
		if len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Error(), "cannot bind '"+socket+"': ") || got.Changed != 0 {
			t.Errorf("%+v, want nothing changed", got)
		}
		if got := fmt.Sprint(r.p.Addrs()["main"]); !strings.Contains(got, was) || strings.Contains(got, socket) {
			t.Error(got)
		}
		if got := r.shown("static_listeners"); !strings.Contains(got, "127.0.0.1") || strings.Contains(got, socket) {
			t.Error(got)
		}
		if got := r.shown("dynamic_listeners"); !strings.Contains(got, `"error_state":{"details":"cannot bind '`+socket) || !strings.Contains(got, `"pipe":{"path":"`+socket) || strings.Contains(got, "active_state") {
			t.Error(got)
		}
	}
	fails(moved)
	if got := get(t, "http://"+was); got != "200 hello" {
		t.Error(got)
	}
	kept := dial(t, was)
	if got := kept.get("/"); got != "200 hello" {
		t.Error(got)
	}
	fails(moved)
	fails(fixed)
	if got := kept.get("/"); got != "200 hello" { // a try drains nobody
		t.Error(got)
	}

	serves := func(bootstrap string, changed int, there, gone string) {
		t.Helper()
		want(t, r.reload(bootstrap), changed)
		if got := fmt.Sprint(r.p.Addrs()["main"]); !strings.Contains(got, there) || gone != "" && strings.Contains(got, gone) {
			t.Error(got)
		}
		if got := r.shown("static_listeners"); !strings.Contains(got, socket) {
			t.Error(got)
		}
		if got := r.shown("dynamic_listeners"); got != "{}" {
			t.Error(got)
		}
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		want(t, r.reload(bootstrap), 0)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	serves(fixed, 1, socket, was)
	if c, err := net.Dial("tcp", was); err == nil {
		_ = c.Close()
		t.Error("the old address listens")
	}

	// An address more that cannot be had.
	want(t, r.reload(config), 1)
	was = r.p.Addrs()["main"][0].String()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	fails(more)
	fails(more)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	serves(more, 1, was, "")
	r.end()
}

// The only listener without a name is taken for the one that was it before: one that cannot listen leaves the old one.
func TestReloadOwedWithoutName(t *testing.T) {
	addr := backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "hello") })
	config := strings.Replace(text(t, addr), "name: main\n    address", "address", 1)
	socket := filepath.Join(t.TempDir(), "d", "s")
	const at = "- address: {socket_address: {address: 127.0.0.1, port_value: 0}}"
	if !strings.Contains(config, at) {
		t.Fatal("the configuration has changed")
	}
	r := run(t, build(t, config, proxy.WithIO("std")))
	moved := strings.Replace(config, at, "- address: {pipe: {path: "+socket+"}}", 1)
	for range 2 {
		if got := r.reload(moved); len(got.Errors) != 1 || got.Changed != 0 || len(r.p.Addrs()) != 1 {
			t.Errorf("%+v %v", got, r.p.Addrs())
		}
		for _, list := range r.p.Addrs() {
			if got := get(t, "http://"+list[0].String()); got != "200 hello" {
				t.Error(got)
			}
		}
	}
	if err := os.Mkdir(filepath.Dir(socket), 0o700); err != nil {
		t.Fatal(err)
	}
	want(t, r.reload(moved), 1)
	r.end()
}
