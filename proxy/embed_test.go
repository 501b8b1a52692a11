package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy"
)

// TestWithListener: listeners accept from what the program brings, on several workers, and close it at the end.
func TestWithListener(t *testing.T) {
	addr := backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "hello") })
	for _, io := range drivers() {
		for _, network := range []string{"tcp", "unix"} {
			at := "127.0.0.1:0"
			if network == "unix" {
				at = filepath.Join(t.TempDir(), "s")
			}
			ln, err := net.Listen(network, at)
			if err != nil {
				t.Fatal(err)
			}
			r := run(t, build(t, text(t, addr), proxy.WithIO(io), proxy.WithConcurrency(3), proxy.WithListener("main", ln)))
			if got := r.p.Addrs()["main"][0].String(); network == "tcp" && got != ln.Addr().String() {
				t.Errorf("%s: the listener has %s, the program's %s", io, got, ln.Addr())
			}
			for range 10 {
				if got := ask(t, func() (net.Conn, error) { return net.Dial(network, ln.Addr().String()) }); got != "200 OK" {
					t.Errorf("%s, %s: %s", io, network, got)
				}
			}
			r.end()
			if c, err := net.Dial(network, ln.Addr().String()); err == nil {
				_ = c.Close()
				t.Errorf("%s, %s: the socket listens on", io, network)
			}
		}
	}
}

// TestWithSockets: a listener takes the socket that is bound to its address over; one that nobody has stays unused.
func TestWithSockets(t *testing.T) {
	addr := backend(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "hello") })
	for _, io := range drivers() {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		other, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		// What is in the queue before the proxy starts is answered too.
		early, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		port := ln.Addr().(*net.TCPAddr).Port
		boot := strings.ReplaceAll(text(t, addr), "port_value: 0", fmt.Sprintf("port_value: %d", port))
		if !strings.Contains(boot, fmt.Sprint(port)) {
			t.Fatal(boot)
		}
		r := run(t, build(t, boot, proxy.WithIO(io), proxy.WithConcurrency(2), proxy.WithSockets(other, ln)))
		if got := r.p.Addrs()["main"][0].String(); got != ln.Addr().String() {
			t.Errorf("%s: the listener has %s, the socket %s", io, got, ln.Addr())
		}
		for _, dial := range []func() (net.Conn, error){
			func() (net.Conn, error) { return early, nil },
			func() (net.Conn, error) { return net.Dial("tcp", ln.Addr().String()) },
		} {
			if got := ask(t, dial); got != "200 OK" {
				t.Errorf("%s: %s", io, got)
			}
		}
		r.end()
		for _, l := range []net.Listener{ln, other} {
			if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
				_ = c.Close()
				t.Errorf("%s: %s listens on", io, l.Addr())
			}
		}
	}
}

// ask sends a request and returns the status.
func ask(t *testing.T, dial func() (net.Conn, error)) string {
	t.Helper()
	c, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(25 * time.Second))
	if _, err := fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	p, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Body.Close()
	return p.Status
}

// pipes is a listener without a kernel.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	gone  chan struct{}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.gone:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.gone) })
	return nil
}

func (l *pipes) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

func (l *pipes) dial() (net.Conn, error) {
	a, b := net.Pipe()
	l.conns <- a
	return b, nil
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), gone: make(chan struct{})} }

// TestWithListenerOfAnyKind: the std driver takes any listener; epoll says that it cannot.
func TestWithListenerOfAnyKind(t *testing.T) {
	addr := backend(t, func(http.ResponseWriter, *http.Request) {})
	ln := newPipes()
	r := run(t, build(t, text(t, addr), proxy.WithIO("std"), proxy.WithListener("main", ln)))
	if got := ask(t, ln.dial); got != "200 OK" {
		t.Error(got)
	}
	r.end()
	for _, io := range drivers() {
		if io == "std" {
			continue
		}
		p := build(t, text(t, addr), proxy.WithIO(io), proxy.WithListener("main", newPipes()))
		if err := p.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "has no file descriptor") {
			t.Error(err)
		}
	}
}

// TestWithUpstream: a handler of the program is a cluster's only host.
func TestWithUpstream(t *testing.T) {
	const http2 = `
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
`
	for _, io := range drivers() {
		for proto, more := range map[string]string{"HTTP/1.1": "", "HTTP/2.0": http2} {
			h := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { _, _ = fmt.Fprint(w, q.Proto) })
			r := run(t, build(t, text(t, "1.2.3.4:5")+more, proxy.WithIO(io), proxy.WithUpstream("backend", h)))
			if got := get(t, r.url("/")); got != "200 "+proto {
				t.Errorf("%s: %s, want %s", io, got, proto)
			}
			r.end()
		}
	}
	b, err := proxy.LoadWith("", proxy.LoadOptions{ConfigYAML: text(t, "1.2.3.4:5")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = proxy.New(b, proxy.WithUpstream("nobody", http.NotFoundHandler())); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
		t.Error(err)
	}
}
