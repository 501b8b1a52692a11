//go:build peers

package peer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a server that a test started. It ends with the test, by its pid.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}
	log  lockedBuffer
}

// lockedBuffer takes what a process writes while the test may look at it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t *testing.T, path string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	// Not even a test that is killed leaves a server behind.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(p.stop)
	return p
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-p.done:
	case <-late.C:
		p.t.Errorf("%s did not end after SIGTERM", p.cmd.Path)
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	if p.t.Failed() {
		p.t.Logf("%s:\n%s", p.cmd, tail([]byte(p.log.String())))
	}
}

// ended says whether the process is gone already, which it must not be.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// proxy is a running Dragoman or Envoy.
type proxy struct {
	*process
	admin string
	addrs map[string]string // by listener
}

// startProxy starts a proxy with a bootstrap and waits until it serves.
func startProxy(t *testing.T, command []string, bootstrap string) *proxy {
	t.Helper()
	dir := t.TempDir()
	adminFile := filepath.Join(dir, "admin")
	args := append(command[1:len(command):len(command)], "-c", write(t, filepath.Join(dir, "bootstrap.yaml"), bootstrap),
		"--admin-address-path", adminFile, "--disable-hot-restart", "--concurrency", "1", "-l", "warning")
	p := &proxy{process: start(t, command[0], args...)}
	eventually(t, filepath.Base(command[0])+" is live", func() bool {
		if p.ended() {
			t.Fatalf("%s ended at once:\n%s", p.cmd, p.log.String())
		}
		b, err := os.ReadFile(adminFile)
		if err != nil || len(b) == 0 {
			return false
		}
		p.admin = "http://" + strings.TrimSpace(string(b))
		r, err := http.Get(p.admin + "/ready")
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	eventually(t, "listeners are bound", func() bool { return p.askListeners() == strings.Count(bootstrap, "filter_chains:") })
	return p
}

// askListeners asks the admin interface, which answers in Envoy's form, where the listeners are, and returns how many are bound.
func (p *proxy) askListeners() int {
	var list struct {
		Statuses []struct {
			Name    string `json:"name"`
			Address struct {
				Socket struct {
					Address string `json:"address"`
					Port    int    `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	r, err := http.Get(p.admin + "/listeners?format=json")
	if err != nil {
		return 0
	}
	defer func() { _ = r.Body.Close() }()
	if json.NewDecoder(r.Body).Decode(&list) != nil {
		return 0
	}
	p.addrs = map[string]string{}
	for _, l := range list.Statuses {
		if l.Address.Socket.Port != 0 {
			p.addrs[l.Name] = fmt.Sprintf("%s:%d", l.Address.Socket.Address, l.Address.Socket.Port)
		}
	}
	return len(p.addrs)
}

// addr is where a listener listens.
func (p *proxy) addr(listener string) string {
	p.t.Helper()
	a, ok := p.addrs[listener]
	if !ok {
		p.t.Fatalf("no listener %q in %v", listener, p.addrs)
	}
	return a
}
