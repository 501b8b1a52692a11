//go:build peers

package peer_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestH2load(t *testing.T) {
	h2load := tool(t, "h2load")
	p := startProxy(t, dragoman(t), new(config).cluster("up", newUpstream(t)).plain("plain", "up").String())
	const requests, connections, streams = 2000, 4, 16
	for _, path := range []string{"/direct", "/up/hello", "/h2/up/hello"} {
		t.Run(strings.Trim(path, "/"), func(t *testing.T) {
			out := run(t, "", h2load, "-n", fmt.Sprint(requests), "-c", fmt.Sprint(connections), "-m", fmt.Sprint(streams), "http://"+p.addr("plain")+path).stdout
			for _, want := range []string{
				fmt.Sprintf("requests: %d total, %[1]d started, %[1]d done, %[1]d succeeded, 0 failed, 0 errored, 0 timeout", requests),
				fmt.Sprintf("status codes: %d 2xx, 0 3xx, 0 4xx, 0 5xx", requests),
			} {
				if !strings.Contains(out, want) {
					t.Errorf("%q is not in:\n%s", want, out)
				}
			}
		})
	}
}

func TestNghttp(t *testing.T) {
	nghttp := tool(t, "nghttp")
	p := startProxy(t, dragoman(t), new(config).cluster("up", newUpstream(t)).plain("plain", "up").String())
	base := "http://" + p.addr("plain")

	const times = 16
	if got, want := run(t, "", nghttp, "-m", fmt.Sprint(times), base+"/h2/up/hello").stdout, strings.Repeat("hello\n", times); got != want {
		t.Errorf("%d requests at once: %q, want %q", times, got, want)
	}

	// Padding, a small window and a small header table are what clients seldom use.
	file := write(t, filepath.Join(t.TempDir(), "body"), string(blob[:1<<20]))
	for _, up := range []string{"/up", "/h2/up"} {
		got := run(t, "", nghttp, "-b", "64", "-w", "10", "-W", "10", "-c", "0", "-d", file, base+up+"/sum").stdout
		if want := fmt.Sprintf("POST %d %s\n", 1<<20, sum(blob[:1<<20])); got != want {
			t.Errorf("%s: %q, want %q", up, got, want)
		}
		if got := run(t, "", nghttp, "-w", "10", "-W", "10", base+up+"/blob").stdout; sum([]byte(got)) != sum(blob) {
			t.Errorf("%s: %d bytes with the wrong sum", up, len(got))
		}
	}

	got := run(t, "", nghttp, "-v", "-d", file, "--trailer", "x-peer-trailer: from nghttp", base+"/h2/up/echo").stdout
	if want := "x-echo-trailer: from nghttp"; !strings.Contains(got, want) {
		t.Errorf("no %q in %s", want, tail([]byte(got)))
	}
}

func TestNghttpd(t *testing.T) {
	nghttpd := tool(t, "nghttpd")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "blob"), string(blob))
	upstream := start(t, nghttpd, "--no-tls", "-a", "127.0.0.1", "-d", dir, "--echo-upload", "--trailer", "x-end: of nghttpd", "-w", "10", "-b", "32", "0")
	var addr string
	eventually(t, "nghttpd listens", func() bool {
		if upstream.ended() {
			t.Fatalf("nghttpd ended at once: %s", upstream.log.String())
		}
		addr = listening(t, upstream.cmd.Process.Pid)
		return addr != ""
	})
	p := startProxy(t, dragoman(t), new(config).cluster("up", addr).plain("plain", "up").String())
	for name, client := range clearClients() {
		t.Run(name, func(t *testing.T) {
			got := ask(t, client, "GET", "http://"+p.addr("plain")+"/h2/blob", nil)
			if got.status != 200 || sum(got.body) != sum(blob) {
				t.Errorf("download: %d, %d bytes with sum %s", got.status, len(got.body), sum(got.body))
			}
			// This answer has a length, with which HTTP/1 has no place for a trailer (RFC 9112 7.1.2).
			if v := got.trailer.Get("X-End"); v != "of nghttpd" && name != "http1" {
				t.Errorf("trailer: %q", got.trailer)
			}
			got = ask(t, client, "POST", "http://"+p.addr("plain")+"/h2/upload", blob[:1<<20])
			if got.status != 200 || sum(got.body) != sum(blob[:1<<20]) {
				t.Errorf("echo: %d, %d bytes with sum %s", got.status, len(got.body), sum(got.body))
			}
			if got = ask(t, client, "GET", "http://"+p.addr("plain")+"/h2/none", nil); got.status != 404 {
				t.Errorf("a file that is not there: %d", got.status)
			}
		})
	}
}

// listening returns the address on which a process listens on the loopback, or nothing: nghttpd does not say which port the
// kernel gave it, but the kernel does.
func listening(t *testing.T, pid int) string {
	t.Helper()
	inodes := map[string]bool{}
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, fd := range fds {
		target, _ := os.Readlink(fd)
		if inode, ok := strings.CutPrefix(target, "socket:["); ok {
			inodes[strings.TrimSuffix(inode, "]")] = true
		}
	}
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		t.Skipf("cannot learn the port of nghttpd: %v", err)
	}
	defer func() { _ = f.Close() }()
	const local, state, inode = 1, 3, 9
	for lines := bufio.NewScanner(f); lines.Scan(); {
		col := strings.Fields(lines.Text())
		if len(col) <= inode || col[state] != "0A" || !inodes[col[inode]] {
			continue
		}
		var port int
		if _, hex, ok := strings.Cut(col[local], ":"); ok {
			if _, err := fmt.Sscanf(hex, "%X", &port); err == nil {
				return fmt.Sprintf("127.0.0.1:%d", port)
			}
		}
	}
	return ""
}
