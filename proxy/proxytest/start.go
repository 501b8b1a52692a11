// Package proxytest starts a whole proxy inside a test: real sockets on loopback, ports that the kernel chooses, everything gone when
// the test ends. A start takes a few milliseconds.
//
// It is for tests of extensions and of programs that embed a proxy. Its functions are called from the test's goroutine.
package proxytest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/proxy"
)

// limit is how long a proxy may take to start, to answer and to end.
const limit = 25 * time.Second

// Option changes what Start starts.
type Option func(c *config)

type config struct {
	upstreams map[string]http.Handler
	options   []proxy.Option
}

// Upstream starts a server for HTTP/1 and HTTP/2 without TLS. In the bootstrap, UPSTREAM(name) stands for its address, as a
// config.core.v3.Address.
func Upstream(name string, h http.Handler) Option {
	return func(c *config) { c.upstreams[name] = h }
}

// Extensions adds extensions.
func Extensions(sets ...ext.Set) Option { return With(proxy.WithExtensions(sets...)) }

// Filter adds one HTTP filter.
func Filter(f ext.HTTPFilter) Option { return Extensions(ext.Set{HTTPFilters: []ext.HTTPFilter{f}}) }

// IO chooses the I/O driver, "epoll" or "std"; otherwise it is that of the variable DRAGOMAN_IO, or the system's.
func IO(kind string) Option { return With(proxy.WithIO(kind)) }

// With adds options of the proxy.
func With(options ...proxy.Option) Option {
	return func(c *config) { c.options = append(c.options, options...) }
}

// Proxy is a proxy that runs until the test ends.
type Proxy struct {
	t      testing.TB
	p      *proxy.Proxy
	cancel context.CancelFunc
	done   chan error
	over   bool
}

// Start starts a proxy from a bootstrap in YAML and returns when it serves. Its listeners should have port_value: 0, see Addr;
// TEMPDIR in it stands for a folder of the test's own. The test fails if the proxy does not start.
func Start(t testing.TB, bootstrap string, options ...Option) *Proxy {
	t.Helper()
	c := &config{upstreams: map[string]http.Handler{}}
	if kind := os.Getenv("DRAGOMAN_IO"); kind != "" {
		c.options = append(c.options, proxy.WithIO(kind))
	}
	for _, o := range options {
		o(c)
	}
	b, err := proxy.LoadWith("", proxy.LoadOptions{ConfigYAML: c.fill(t, bootstrap)})
	if err != nil {
		t.Fatal(err)
	}
	x := &Proxy{t: t, done: make(chan error, 1)}
	if x.p, err = proxy.New(b, c.options...); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	x.cancel = cancel
	go func() { x.done <- x.p.Run(ctx) }()
	t.Cleanup(x.Stop)
	select {
	case <-x.p.Ready():
	case err := <-x.done:
		x.over = true
		t.Fatalf("the proxy did not start: %v", err)
	case <-time.After(limit):
		t.Fatal("the proxy does not start")
	}
	return x
}

var upstream = regexp.MustCompile(`UPSTREAM\((\w+)\)`)

// fill puts addresses and paths into a bootstrap.
func (c *config) fill(t testing.TB, text string) string {
	if strings.Contains(text, "TEMPDIR") {
		text = strings.ReplaceAll(text, "TEMPDIR", t.TempDir())
	}
	started := map[string]string{}
	return upstream.ReplaceAllStringFunc(text, func(token string) string {
		name := upstream.FindStringSubmatch(token)[1]
		h, ok := c.upstreams[name]
		if !ok {
			t.Fatalf("there is no upstream %s", name)
		}
		if started[name] == "" {
			started[name] = serve(t, h)
		}
		host, port, _ := strings.Cut(started[name], ":")
		return fmt.Sprintf("{socket_address: {address: %s, port_value: %s}}", host, port)
	})
}

// serve starts a server and returns its address.
func serve(t testing.TB, h http.Handler) string {
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = &http.Protocols{}
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.Listener.Addr().String()
}

// Stop ends the proxy now. The end of the test does it otherwise.
func (x *Proxy) Stop() {
	x.t.Helper()
	if x.over {
		return
	}
	x.over = true
	x.cancel()
	select {
	case err := <-x.done:
		if err != nil {
			x.t.Errorf("the proxy ended with: %v", err)
		}
	case <-time.After(limit):
		x.t.Errorf("the proxy does not end")
	}
}

// Proxy is the proxy itself.
func (x *Proxy) Proxy() *proxy.Proxy { return x.p }

// Addr is the address, host:port, of a listener; "" is the only one.
func (x *Proxy) Addr(listener string) string {
	x.t.Helper()
	all := x.p.Addrs()
	for name, a := range all {
		if name == listener || listener == "" && len(all) == 1 {
			return a[0].String()
		}
	}
	x.t.Fatalf("there is no listener %q", listener)
	return ""
}

// URL is the URL of a path on the only listener.
func (x *Proxy) URL(path string) string {
	x.t.Helper()
	return "http://" + x.Addr("") + path
}

// Answer is what a client got.
type Answer struct {
	Code    int
	Header  http.Header
	Body    string
	Trailer http.Header
}

// Get sends a GET request to the only listener, over a connection of its own. header is name, value, name, value...
func (x *Proxy) Get(path string, header ...string) *Answer {
	x.t.Helper()
	return x.Do("GET", path, "", header...)
}

// Do is Get with a method and a body.
func (x *Proxy) Do(method, path, body string, header ...string) *Answer {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, x.URL(path), strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if http.CanonicalHeaderKey(header[i]) == "Host" {
			q.Host = header[i+1]
			continue
		}
		q.Header.Add(header[i], header[i+1])
	}
	tr := &http.Transport{DisableCompression: true}
	defer tr.CloseIdleConnections()
	p, err := tr.RoundTrip(q)
	if err != nil {
		x.t.Fatal(err)
	}
	defer p.Body.Close()
	b, err := io.ReadAll(p.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	return &Answer{Code: p.StatusCode, Header: p.Header, Body: string(b), Trailer: p.Trailer}
}

// Admin asks the administration interface for a page.
func (x *Proxy) Admin(method, path string) *Answer {
	x.t.Helper()
	w := httptest.NewRecorder()
	x.p.Admin().ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return &Answer{Code: w.Code, Header: w.Header(), Body: w.Body.String()}
}

// Stats returns the values of all counters and gauges as text, by name, no older than now.
func (x *Proxy) Stats() map[string]string {
	out := map[string]string{}
	for _, l := range strings.Split(x.p.Stats(), "\n") {
		if name, v, ok := strings.Cut(l, ": "); ok {
			out[name] = v
		}
	}
	return out
}

// Await waits until a counter or gauge has a value: what a client has seen may be counted a moment later.
func (x *Proxy) Await(stat, value string) {
	x.t.Helper()
	deadline := time.Now().Add(limit)
	for {
		got := x.Stats()[stat]
		if got == value {
			return
		}
		if time.Now().After(deadline) {
			x.t.Fatalf("%s is %q, not %q", stat, got, value)
		}
		runtime.Gosched()
	}
}

// EachIO runs a test with each I/O driver that there is here.
func EachIO(t *testing.T, f func(t *testing.T, io Option)) {
	kinds := []string{"std"}
	if runtime.GOOS == "linux" {
		kinds = append(kinds, "epoll")
	}
	for _, k := range kinds {
		t.Run(k, func(t *testing.T) { f(t, IO(k)) })
	}
}
