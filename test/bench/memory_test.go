package bench_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The bars of idle connections, in bytes of RSS (the short version: of live heap and stacks). Envoy holds 15.9 KiB per plain and 20.7 KiB per TLS connection here.
const (
	plainBar = 1 << 10
	tlsBar   = 20.7 / 2 * 1024
)

func TestIdleConnections(t *testing.T) {
	for name, x := range map[string]struct {
		tls bool
		n   int
		bar float64
	}{
		"plain": {false, scaled(2000, 9500), plainBar},
		"tls":   {true, scaled(500, 4000), tlsBar},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t, oneRoute(t, backend(t), x.tls))
			addr := p.Addrs["main"]
			for range 50 {
				hold(t, addr, x.tls)
			}
			before := p.ask("collect")
			for range x.n {
				hold(t, addr, x.tls)
			}
			after := p.ask("collect")
			per := func(a, b uint64) float64 { return float64(int64(b)-int64(a)) / float64(x.n) }
			rss := per(before.RSS, after.RSS)
			t.Logf("%d connections: %.0f bytes of RSS each, of that %.0f heap, %.0f stacks", x.n, rss, per(before.Live, after.Live),
				per(before.Stacks, after.Stacks))
			p.profile("heap", "idle-"+name+".pprof")
			// With few connections the process's own pages outweigh theirs: then only what they hold is judged.
			held := rss
			if !*full {
				held = per(before.Live+before.Stacks, after.Live+after.Stacks)
			}
			if held > x.bar {
				t.Errorf("%.0f bytes per connection, want at most %.0f", held, x.bar)
			}
		})
	}
}

// scaled chooses between the short and the full version.
func scaled(short, long int) int {
	if *full {
		return long
	}
	return short
}

// hold makes a connection, asks once over it, and leaves it to its own: the socket stays open, without anything around it here.
func hold(t *testing.T, addr string, secure bool) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	t.Cleanup(func() { _ = syscall.Close(fd) })
	var rw io.ReadWriter = c
	if secure {
		rw = tls.Client(c, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	}
	if _, err := io.WriteString(rw, "GET /1k HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	for got := ""; !strings.HasSuffix(got, "\r\n\r\n"+body); {
		n, err := rw.Read(buf)
		if err != nil {
			t.Fatalf("%v after %q", err, got)
		}
		got += string(buf[:n])
	}
	_ = c.Close()
}

var body = strings.Repeat("x", 1024)

// backend is an HTTP server that answers with 1 KiB.
func backend(t testing.TB) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// oneRoute writes a bootstrap with one listener, "main", and one cluster.
func oneRoute(t testing.TB, upstream string, secure bool) string {
	dir := t.TempDir()
	transport := ""
	if secure {
		cert, key := certificate(t, "one")
		transport = `"transport_socket": {"name": "tls", "typed_config": {
			"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
			"common_tls_context": {"tls_certificates": [{
				"certificate_chain": {"inline_string": ` + quote(cert) + `}, "private_key": {"inline_string": ` + quote(key) + `}}]}}},`
	}
	host, port, _ := net.SplitHostPort(upstream)
	text := fmt.Sprintf(`{"static_resources": {
		"listeners": [{"name": "main", "address": %s, "filter_chains": [{%s "filters": [%s]}]}],
		"clusters": [%s]}}`, socketAddress("127.0.0.1", "0"), transport,
		hcmFilter(`"route_config": {"virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [
			{"match": {"prefix": "/"}, "route": {"cluster": "b", "timeout": "0s"}}]}]}`),
		staticCluster("b", host, port))
	return write(t, filepath.Join(dir, "boot.json"), text)
}

func hcmFilter(routes string) string {
	return `{"name": "hcm", "typed_config": {
		"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"stat_prefix": "main", ` + routes + `, "http_filters": [{"name": "router", "typed_config": {
			"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}]}}`
}

func staticCluster(name, host, port string) string {
	return fmt.Sprintf(`{"name": %q, "type": "STATIC", "load_assignment": {"cluster_name": %q, "endpoints": [{"lb_endpoints": [
		{"endpoint": {"address": %s}}]}]}}`, name, name, socketAddress(host, port))
}

func socketAddress(host, port string) string {
	return fmt.Sprintf(`{"socket_address": {"address": %q, "port_value": %s}}`, host, port)
}

func write(t testing.TB, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
