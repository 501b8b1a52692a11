//go:build peers

package peer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// curlWay is one way in which curl reaches the proxy.
type curlWay struct {
	name, url string
	args      []string
	version   string // as curl's %{http_version} has it
}

func TestCurl(t *testing.T) {
	curl := tool(t, "curl")
	ca := newAuthority(t)
	p := startProxy(t, dragoman(t), new(config).cluster("up", newUpstream(t)).plain("plain", "up").secure("secure", "up", ca, "a.test").String())
	caFile := write(t, filepath.Join(t.TempDir(), "ca.pem"), ca.pem)
	host, port, _ := strings.Cut(p.addr("secure"), ":")
	secure := []string{"--cacert", caFile, "--resolve", "a.test:" + port + ":" + host}
	plain, encrypted := "http://"+p.addr("plain"), "https://a.test:"+port
	for _, w := range []curlWay{
		{"http1", plain, []string{"--http1.1"}, "1.1"},
		{"h2c", plain, []string{"--http2-prior-knowledge"}, "2"},
		{"https-http1", encrypted, append([]string{"--http1.1"}, secure...), "1.1"},
		{"https-h2", encrypted, append([]string{"--http2"}, secure...), "2"},
	} {
		for _, up := range []string{"/up", "/h2/up"} {
			t.Run(w.name+strings.ReplaceAll(up, "/", "-"), func(t *testing.T) { curlTransfers(t, curl, w, w.url+up) })
		}
	}
}

func curlTransfers(t *testing.T, curl string, w curlWay, base string) {
	dir := t.TempDir()
	get := func(args ...string) output {
		t.Helper()
		all := append([]string{"-sS", "--fail", "--max-time", "20", "--noproxy", "*", "-w", "%{stderr}\nis %{http_version} %{response_code}\n"}, w.args...)
		out := run(t, "", curl, append(all, args...)...)
		if want := fmt.Sprintf("\nis %s 200\n", w.version); !strings.Contains(out.stderr, want) {
			t.Errorf("curl %q says %q, want %q", args, tail([]byte(out.stderr)), want)
		}
		return out
	}

	proto := "HTTP/1.1"
	if strings.Contains(base, "/h2/") {
		proto = "HTTP/2.0"
	}
	if got := get("-i", base+"/hello").stdout; !strings.Contains(strings.ToLower(got), "x-upstream-proto: "+strings.ToLower(proto)) || !strings.HasSuffix(got, "\r\n\r\nhello\n") {
		t.Errorf("hello: %q", got)
	}

	down := filepath.Join(dir, "down")
	get("-o", down, base+"/blob")
	if b, err := os.ReadFile(down); err != nil || sum(b) != sum(blob) {
		t.Errorf("download: %v, %d bytes with sum %s, want %d with %s", err, len(b), sum(b), len(blob), sum(blob))
	}

	up := write(t, filepath.Join(dir, "up"), string(blob))
	want := func(method string) string { return fmt.Sprintf("%s %d %s\n", method, len(blob), sum(blob)) }
	if got := get("-T", up, base+"/sum").stdout; got != want("PUT") {
		t.Errorf("upload: %q, want %q", got, want("PUT"))
	}
	// Without a length: chunked in HTTP/1.
	if got := get("-T", up, "-X", "POST", "-H", "Content-Length:", "-H", "Transfer-Encoding: chunked", base+"/sum").stdout; got != want("POST") {
		t.Errorf("upload without a length: %q, want %q", got, want("POST"))
	}

	out := get("-v", "--expect100-timeout", "15", "-H", "Expect: 100-continue", "--data-binary", "@"+up, base+"/sum")
	if out.stdout != want("POST") {
		t.Errorf("upload with Expect: %q, want %q", out.stdout, want("POST"))
	}
	if !strings.Contains(out.stderr, "< HTTP/"+w.version+" 100") {
		t.Errorf("no 100 came: %s", tail([]byte(out.stderr)))
	}
}
