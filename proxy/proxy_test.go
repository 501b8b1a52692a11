package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dragoman-proxy/dragoman/proxy"
	"github.com/dragoman-proxy/dragoman/proxy/internal/async"
	"github.com/dragoman-proxy/dragoman/proxy/internal/hcm"
	"github.com/dragoman-proxy/dragoman/proxy/internal/router"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const bootstrap = `
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  listeners:
  - name: main
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: test
          access_log:
          - name: file
            typed_config: {"@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: LOG}
          route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: backend}}]}]}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: backend
    type: STATIC
    load_assignment: {cluster_name: backend, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: PORT}}}}]}]}
`

// running is a proxy under test.
type running struct {
	t    *testing.T
	p    *proxy.Proxy
	stop context.CancelFunc
	done chan error
}

func text(t *testing.T, backend string) string {
	_, port, _ := net.SplitHostPort(backend)
	return strings.NewReplacer("PORT", port, "LOG", filepath.Join(t.TempDir(), "access.log")).Replace(bootstrap)
}

func build(t *testing.T, text string, opts ...proxy.Option) *proxy.Proxy {
	t.Helper()
	b, err := proxy.LoadWith("", proxy.LoadOptions{ConfigYAML: text})
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(b, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func run(t *testing.T, p *proxy.Proxy) *running {
	t.Helper()
	r := &running{t: t, p: p, done: make(chan error, 1)}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	go func() { r.done <- p.Run(ctx) }()
	select {
	case <-p.Ready():
	case err := <-r.done:
		t.Fatalf("did not start: %v", err)
	case <-time.After(25 * time.Second):
		t.Fatal("does not start")
	}
	return r
}

// end ends the proxy and checks what is left in its loops.
func (r *running) end() {
	r.t.Helper()
	r.stop()
	select {
	case err := <-r.done:
		if err != nil {
			r.t.Errorf("ended with %v", err)
		}
	case <-time.After(25 * time.Second):
		r.t.Fatal("does not end")
	}
	for _, w := range r.p.Loops() {
		if n := w.Bufs.Live() + w.Arenas.Live() + hcm.LiveStreams(w) + router.Live(w) + async.Live(w); n != 0 {
			r.t.Errorf("%s: %d slabs, %d chunks, %d streams, %d routers, %d calls are left", w.Name, w.Bufs.Live(), w.Arenas.Live(),
				hcm.LiveStreams(w), router.Live(w), async.Live(w))
		}
		if n := len(w.Handlers()); n != 0 {
			r.t.Errorf("%s: %d sockets are left", w.Name, n)
		}
	}
}

func (r *running) url(path string) string { return "http://" + r.p.Addrs()["main"][0].String() + path }

func backend(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func get(t *testing.T, url string) string {
	t.Helper()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	p, err := (&http.Client{Transport: tr, Timeout: 25 * time.Second}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Body.Close()
	b, err := io.ReadAll(p.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(p.StatusCode, " ", string(b))
}

func drivers() []string {
	if runtime.GOOS == "linux" {
		return []string{"std", "epoll"}
	}
	return []string{"std"}
}

// TestHundredTimes: two proxies in one process start, serve and end a hundred times, and leave no goroutine, file descriptor, buffer or
// stream behind; some of their connections are in the middle of something then.
func TestHundredTimes(t *testing.T) {
	for _, io := range drivers() {
		t.Run(io, func(t *testing.T) {
			inside := make(chan struct{}, 2)
			addr := backend(t, func(w http.ResponseWriter, q *http.Request) {
				if q.URL.Path == "/wait" {
					inside <- struct{}{}
					<-q.Context().Done()
				}
				_, _ = fmt.Fprint(w, "hello")
			})
			config := text(t, addr)
			once := func() {
				a, b := run(t, build(t, config, proxy.WithIO(io), proxy.WithConcurrency(2))), run(t, build(t, config, proxy.WithIO(io)))
				for _, r := range []*running{a, b} {
					if got := get(t, r.url("/")); got != "200 hello" {
						t.Fatal(got)
					}
				}
				c, err := net.Dial("tcp", b.p.Addrs()["main"][0].String())
				if err != nil {
					t.Fatal(err)
				}
				_, _ = fmt.Fprint(c, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")
				select {
				case <-inside:
				case <-time.After(25 * time.Second):
					t.Fatal("the request did not arrive")
				}
				a.end()
				b.end()
				_ = c.Close()
			}
			once()
			descriptors, goroutines := open(t), runtime.NumGoroutine()
			for range 99 {
				once()
			}
			settle(t, "file descriptors", descriptors, func() int { return open(t) })
			settle(t, "goroutines", goroutines, runtime.NumGoroutine)
		})
	}
}

// open counts the process's file descriptors; 0 where that is not known.
func open(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(list)
}

// settle waits until something is at most what it was: the test's own server and clients need a moment for their ends.
func settle(t *testing.T, what string, before int, now func() int) {
	t.Helper()
	deadline := time.Now().Add(25 * time.Second)
	n := now()
	for ; n > before; n = now() {
		if time.Now().After(deadline) {
			t.Errorf("%d %s before, %d after", before, what, n)
			return
		}
		runtime.Gosched()
	}
}

// TestProcessIsLeftAlone: building and running a proxy changes nothing that belongs to the process.
func TestProcessIsLeftAlone(t *testing.T) {
	procs, gc, mem := runtime.GOMAXPROCS(0), debug.SetGCPercent(123), debug.SetMemoryLimit(-1)
	defer debug.SetGCPercent(gc)
	dir, _ := os.Getwd()
	env := strings.Join(os.Environ(), "\n")
	r := run(t, build(t, text(t, backend(t, func(http.ResponseWriter, *http.Request) {})), proxy.WithConcurrency(3)))
	get(t, r.url("/"))
	r.end()
	if n := runtime.GOMAXPROCS(0); n != procs {
		t.Errorf("GOMAXPROCS was %d, is %d", procs, n)
	}
	if n := debug.SetGCPercent(123); n != 123 {
		t.Errorf("GOGC became %d", n)
	}
	if n := debug.SetMemoryLimit(-1); n != mem {
		t.Errorf("GOMEMLIMIT was %d, is %d", mem, n)
	}
	if now, _ := os.Getwd(); now != dir || strings.Join(os.Environ(), "\n") != env {
		t.Error("the folder or the environment has changed")
	}
}

// TestNewLeavesNothing: a proxy that is built and not run, and one that is refused, hold nothing.
func TestNewLeavesNothing(t *testing.T) {
	for _, io := range drivers() {
		descriptors := open(t)
		for range 10 {
			b, err := proxy.LoadWith("", proxy.LoadOptions{ConfigYAML: strings.Replace(text(t, "127.0.0.1:1"), "cluster: backend}", "cluster: nobody}", 1)})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := proxy.New(b, proxy.WithIO(io)); err == nil || !strings.Contains(err.Error(), "nobody") {
				t.Fatal(err)
			}
		}
		settle(t, "file descriptors", descriptors, func() int { return open(t) })
	}
}

// TestStartFails: a listener whose address is taken makes Run return, with its name.
func TestStartFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, io := range drivers() {
		config := strings.Replace(text(t, "127.0.0.1:1"), "name: main\n    address: {socket_address: {address: 127.0.0.1, port_value: 0}}",
			fmt.Sprintf("name: main\n    address: {socket_address: {address: 127.0.0.1, port_value: %d}}", l.Addr().(*net.TCPAddr).Port), 1)
		p := build(t, config, proxy.WithIO(io))
		if err := p.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "main") {
			t.Errorf("%v", err)
		}
		select {
		case <-p.Ready():
			t.Error("ready")
		default:
		}
	}
}

func TestAdminAndStats(t *testing.T) {
	r := run(t, build(t, text(t, backend(t, func(http.ResponseWriter, *http.Request) {}))))
	defer r.end()
	get(t, r.url("/"))
	w := httptest.NewRecorder()
	r.p.Admin().ServeHTTP(w, httptest.NewRequest("GET", "/stats?filter=^http.test.downstream_rq_total", nil))
	if w.Code != 200 || w.Body.String() != "http.test.downstream_rq_total: 1\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	if !strings.Contains(r.p.Stats(), "\nhttp.test.downstream_rq_total: 1\n") {
		t.Error("the stats lack a counter")
	}
	if a := r.p.Addrs(); len(a) != 1 || a["main"][0].IP.Port() == 0 {
		t.Errorf("%v", a)
	}
}

// TestQuit ends Run without a context.
func TestQuit(t *testing.T) {
	r := run(t, build(t, text(t, "127.0.0.1:1")))
	r.p.Quit()
	r.p.Quit()
	r.end()
}
