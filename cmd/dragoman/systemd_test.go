//go:build unix

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The configuration has one listener for each way in which a socket is found: by the address, and by the name.
const activatedConfig = `static_resources:
  listeners:
  - name: by_address
    address: {socket_address: {address: 127.0.0.1, port_value: %d}}
    filter_chains: [{filters: [&hcm {name: hcm, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager,
      stat_prefix: x, http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}],
      route_config: {virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200, body: {inline_string: here}}}]}]}}}]}]
  - name: by_name
    address: {socket_address: {address: 127.0.0.1, port_value: 1}}
    filter_chains: [{filters: [*hcm]}]
`

// TestMain is the process that a service manager would start, when the environment says so: the manager sets LISTEN_PID between fork
// and exec, which only the process itself can do here.
func TestMain(m *testing.M) {
	if args := os.Getenv("DRAGOMAN_TEST_ARGS"); args != "" {
		_ = os.Unsetenv("DRAGOMAN_TEST_ARGS")
		_ = os.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
		os.Exit(run(append([]string{"dragoman"}, strings.Fields(args)...)))
	}
	os.Exit(m.Run())
}

// The sockets of a service manager are served, what waits in them too; the manager is told when, and they listen on afterwards.
func TestSocketActivation(t *testing.T) {
	dir := t.TempDir()
	sockets := []*net.TCPListener{listen(t), listen(t)}
	var files []*os.File
	for _, l := range sockets {
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	config := filepath.Join(dir, "envoy.yaml")
	text := fmt.Sprintf(activatedConfig, sockets[0].Addr().(*net.TCPAddr).Port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()

	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DRAGOMAN_TEST_ARGS=proxy -l error --concurrency 2 -c "+config,
		"LISTEN_FDS=2", "LISTEN_FDNAMES=dragoman.socket:by_name", "NOTIFY_SOCKET="+told.LocalAddr().String())
	cmd.ExtraFiles, cmd.Stderr = files, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	guard := time.AfterFunc(2*patience, func() { _ = cmd.Process.Kill() }) // it ends what waits for the process, with an error
	defer guard.Stop()

	client := &http.Client{Timeout: 20 * time.Second}
	defer client.CloseIdleConnections()
	for _, l := range sockets { // at once: the queue is there before the process is
		p, err := client.Get("http://" + l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(p.Body)
		_ = p.Body.Close()
		if string(b) != "here" {
			t.Errorf("%s: %q", l.Addr(), b)
		}
	}
	expect(t, told, "READY=1")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	expect(t, told, "STOPPING=1")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	for _, l := range sockets {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Errorf("the manager's socket was closed: %v", err)
			continue
		}
		_ = c.Close()
	}
}

func expect(t *testing.T, told *net.UnixConn, want string) {
	t.Helper()
	_ = told.SetReadDeadline(time.Now().Add(20 * time.Second))
	var b [256]byte
	n, err := told.Read(b[:])
	if err != nil || string(b[:n]) != want {
		t.Fatalf("the service manager was told %q, want %q (%v)", b[:n], want, err)
	}
}

func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestActivatedRefuses(t *testing.T) {
	for _, c := range []struct{ pid, n, want string }{
		{"", "1", ""},
		{"1", "1", ""},
		{strconv.Itoa(os.Getpid()), "many", "LISTEN_FDS: expected a number from 0 to 1024, found 'many'"},
		{strconv.Itoa(os.Getpid()), "-1", "found '-1'"},
		{strconv.Itoa(os.Getpid()), "1025", "found '1025'"},
		{strconv.Itoa(os.Getpid()), "0", ""},
	} {
		t.Setenv("LISTEN_PID", c.pid)
		t.Setenv("LISTEN_FDS", c.n)
		opts, err := activated()
		if c.want == "" && (err != nil || len(opts) != 0) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, %v", c, opts, err)
		}
		if c.want != "" && os.Getenv("LISTEN_FDS") != "" {
			t.Error("LISTEN_FDS is still set")
		}
	}
}

// The unit reloads by the signal that --watch takes, and says how its user comes by keys that are closed to it.
func TestUnit(t *testing.T) {
	unit, err := os.ReadFile("../../packaging/dragoman.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nExecReload=/bin/kill -HUP $MAINPID\n", "LoadCredential=", "SupplementaryGroups="} {
		if !strings.Contains(string(unit), want) {
			t.Errorf("the unit lacks %q", want)
		}
	}
}
