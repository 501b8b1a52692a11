package health_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	nethttp "net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/health"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
)

// print writes a request down.
func print(q *nethttp.Request) string {
	b, _ := io.ReadAll(q.Body)
	var s strings.Builder
	fmt.Fprintf(&s, "%s %s %s host=%s", q.Method, q.RequestURI, q.Proto, q.Host)
	for _, k := range slices.Sorted(maps.Keys(q.Header)) {
		fmt.Fprintf(&s, " %s=%s", k, strings.Join(q.Header[k], ","))
	}
	if len(b) > 0 {
		fmt.Fprintf(&s, " body=%s", b)
	}
	return s.String()
}

// The request of an HTTP check, over HTTP/1 and HTTP/2.
func TestHTTPRequest(t *testing.T) {
	for _, c := range []struct {
		name  string
		check health.HTTP
		extra *host.Extra
		want  string
	}{
		{"plain", health.HTTP{Path: "/hz", Method: "GET"}, nil, "GET /hz HTTP/1.1 host=c User-Agent=Envoy/HC"},
		{"host", health.HTTP{Path: "/hz?x=1", Method: "HEAD", Host: "a.b"}, nil, "HEAD /hz?x=1 HTTP/1.1 host=a.b User-Agent=Envoy/HC"},
		{"endpoint's host", health.HTTP{Path: "/", Method: "GET", Host: "a.b"}, &host.Extra{HealthCheckName: "e"}, "GET / HTTP/1.1 host=e User-Agent=Envoy/HC"},
		{"edit", health.HTTP{Path: "/", Method: "GET", Edit: health.Edits(nil, func(_ *event.Worker, h *http.HeaderMap, _ *stream.Info) {
			h.AddName("x-hc", "1")
			h.SetConst(http.UserAgent, "me")
		})}, nil, "GET / HTTP/1.1 host=c User-Agent=me X-Hc=1"},
		{"body", health.HTTP{Path: "/", Method: "PUT", Send: []byte("ping")}, nil, "PUT / HTTP/1.1 host=c Transfer-Encoding=x User-Agent=Envoy/HC body=ping"},
		{"two", health.HTTP{Path: "/hz", Method: "GET", Two: true}, nil, "GET /hz HTTP/2.0 host=c User-Agent=Envoy/HC"},
		{"two with body", health.HTTP{Path: "/hz", Method: "POST", Two: true, Send: []byte("ping")}, nil, "POST /hz HTTP/2.0 host=c User-Agent=Envoy/HC body=ping"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := make(chan string, 1)
			h := server(t, func(_ nethttp.ResponseWriter, q *nethttp.Request) {
				for range q.TransferEncoding {
					q.Header.Set("Transfer-Encoding", "x")
				}
				got <- print(q)
			})
			h.Extra = c.extra
			r := newRig(t, func(o *health.Options) { o.HTTP = &c.check })
			if f := r.check(h); f != "healthy" {
				t.Errorf("flags %s", f)
			}
			if d := cmp.Diff(c.want, <-got); d != "" {
				t.Error(d)
			}
		})
	}
}

// What answers mean.
func TestHTTPAnswer(t *testing.T) {
	name := match.Prefix("web-")
	for _, c := range []struct {
		name   string
		check  health.HTTP
		code   int
		header string
		body   string
		want   string
	}{
		{"good", health.HTTP{}, 200, "", "", "healthy"},
		{"bad", health.HTTP{}, 204, "", "", "/failed_active_hc"},
		{"expected", health.HTTP{Expected: []health.Range{{300, 301}, {201, 205}}}, 204, "", "", "healthy"},
		{"end is out", health.HTTP{Expected: []health.Range{{201, 205}}}, 205, "", "", "/failed_active_hc"},
		{"200 is not among the expected", health.HTTP{Expected: []health.Range{{201, 205}}}, 200, "", "", "/failed_active_hc"},
		{"degraded", health.HTTP{}, 200, "x-envoy-degraded: ", "", "/degraded_active_hc"},
		{"excluded", health.HTTP{}, 503, "x-envoy-immediate-health-check-fail: true", "", "/failed_active_hc/excluded_via_immediate_hc_fail"},
		{"good and excluded", health.HTTP{}, 200, "x-envoy-immediate-health-check-fail: true", "", "healthy"},
		{"receive", health.HTTP{Receive: [][]byte{[]byte("al"), []byte("ok")}, BufferSize: 6}, 200, "", "all ok", "healthy"},
		{"receive in another order", health.HTTP{Receive: [][]byte{[]byte("ok"), []byte("al")}}, 200, "", "all ok", "/failed_active_hc"},
		{"past the buffer", health.HTTP{Receive: [][]byte{[]byte("ok")}, BufferSize: 5}, 200, "", "all ok", "/failed_active_hc"},
		{"name", health.HTTP{ServiceName: name}, 200, "x-envoy-upstream-healthchecked-cluster: web-1", "", "healthy"},
		{"other name", health.HTTP{ServiceName: name}, 200, "x-envoy-upstream-healthchecked-cluster: db", "", "/failed_active_hc"},
		{"no name", health.HTTP{ServiceName: name}, 200, "", "", "/failed_active_hc"},
	} {
		for _, two := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, two), func(t *testing.T) {
				h := server(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
					if k, v, ok := strings.Cut(c.header, ": "); ok {
						w.Header().Set(k, v)
					}
					w.WriteHeader(c.code)
					_, _ = io.WriteString(w, c.body)
				})
				c.check.Path, c.check.Method, c.check.Two = "/", "GET", two
				r := newRig(t, func(o *health.Options) { o.HTTP = &c.check })
				if f := r.check(h); f != c.want {
					t.Errorf("flags %s, want %s", f, c.want)
				}
			})
		}
	}
}

// The key health_check.verify_cluster turns the look at the name off.
func TestVerifyCluster(t *testing.T) {
	r := newRig(t, func(o *health.Options) {
		o.HTTP = &health.HTTP{Path: "/", Method: "GET", ServiceName: match.Exact("x")}
	})
	h := server(t, func(nethttp.ResponseWriter, *nethttp.Request) {})
	if f := r.check(h); f != "/failed_active_hc" {
		t.Errorf("flags %s", f)
	}
	r.want(map[string]string{"verify_cluster": "1", "failure": "1", "network_failure": "0"})
	r.rt = keys{"health_check.verify_cluster": 0}
	r.next()
	r.result()
	if f := flags(h); f != "healthy" {
		t.Errorf("flags %s", f)
	}
	r.want(map[string]string{"verify_cluster": "1", "success": "1"})
}

// keys are runtime keys.
type keys map[string]uint64

func (k keys) Uint(key string, def uint64) uint64 {
	if v, ok := k[key]; ok {
		return v
	}
	return def
}

func (k keys) Fraction(key string, n, d uint64) (uint64, uint64) { return k.Uint(key, n), d }

// Which checks share a connection.
func TestConnections(t *testing.T) {
	for _, c := range []struct {
		name    string
		two     bool
		noReuse bool
		header  string
		want    int64
	}{
		{name: "kept", want: 1},
		{name: "kept, HTTP/2", two: true, want: 1},
		{name: "not reused", noReuse: true, want: 3},
		{name: "not reused, HTTP/2", two: true, noReuse: true, want: 3},
		{name: "closed by the host", header: "close", want: 3},
		{name: "closed by the host, HTTP/2", two: true, header: "close", want: 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen := map[string]bool{}
			ch := make(chan string, 1)
			h := server(t, func(w nethttp.ResponseWriter, q *nethttp.Request) {
				if c.header != "" {
					w.Header().Set("Connection", c.header)
				}
				ch <- q.RemoteAddr
				_, _ = io.WriteString(w, "hello")
			})
			r := newRig(t, func(o *health.Options) {
				o.HTTP, o.NoReuse = &health.HTTP{Path: "/", Method: "GET", Two: c.two}, c.noReuse
			})
			r.add(h)
			for range 3 {
				r.result()
				seen[<-ch] = true
				if f := flags(h); f != "healthy" {
					t.Errorf("flags %s", f)
				}
				if c.header != "" {
					r.run("the close", func() bool { return len(r.w.Handlers()) == 0 })
				}
				r.next()
			}
			if n := int64(len(seen)); n != c.want {
				t.Errorf("%d connections, want %d", n, c.want)
			}
			r.result()
			<-ch
		})
	}
}

// Hosts that do not answer as they should.
func TestNoAnswer(t *testing.T) {
	answer := func(s string) func(int, net.Conn) {
		return func(_ int, c net.Conn) {
			_, _ = c.Read(make([]byte, 1000))
			_, _ = io.WriteString(c, s)
		}
	}
	for _, c := range []struct {
		name string
		host func(t *testing.T) *host.Host
		want string
		net  string
	}{
		{"refused", func(*testing.T) *host.Host { return refused() }, "/failed_active_hc", "1"},
		{"closed", func(t *testing.T) *host.Host { return raw(t, answer("")) }, "/failed_active_hc", "1"},
		{"no HTTP", func(t *testing.T) *host.Host { return raw(t, answer("hello\r\n\r\n")) }, "/failed_active_hc", "1"},
		{"cut short", func(t *testing.T) *host.Host { return raw(t, answer("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n1")) }, "/failed_active_hc", "1"},
		{"until the end", func(t *testing.T) *host.Host { return raw(t, answer("HTTP/1.1 200 OK\r\n\r\n1")) }, "healthy", "0"},
		{"more than the answer", func(t *testing.T) *host.Host {
			return raw(t, answer("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n1HTTP/1.1 500 No\r\n\r\n"))
		}, "healthy", "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, func(o *health.Options) { o.HTTP = &health.HTTP{Path: "/", Method: "GET"} })
			if f := r.check(c.host(t)); f != c.want {
				t.Errorf("flags %s, want %s", f, c.want)
			}
			r.want(map[string]string{"attempt": "1", "network_failure": c.net})
			r.run("the close", func() bool { return len(r.w.Handlers()) == 0 })
		})
	}
}

// A check that takes too long fails its host and leaves nothing behind; the next one has a connection of its own.
func TestTimeout(t *testing.T) {
	for _, two := range []bool{false, true} {
		t.Run(fmt.Sprint(two), func(t *testing.T) {
			var asked atomic.Int32
			hold := make(chan struct{})
			h := server(t, func(_ nethttp.ResponseWriter, q *nethttp.Request) {
				if asked.Add(1) == 1 {
					select {
					case <-hold:
					case <-q.Context().Done():
					}
				}
			})
			defer close(hold)
			r := newRig(t, func(o *health.Options) { o.HTTP = &health.HTTP{Path: "/", Method: "GET", Two: two} })
			r.add(h)
			r.run("the request", func() bool { return asked.Load() == 1 })
			r.jump(patience + 1e9)
			if f := flags(h); f != "/failed_active_hc/active_hc_timeout" {
				t.Errorf("flags %s", f)
			}
			if n := len(r.w.Handlers()); n != 0 {
				t.Errorf("%d connections", n)
			}
			r.want(map[string]string{"attempt": "1", "failure": "1", "network_failure": "1", "healthy": "0"})
			r.next()
			r.result()
			if f := flags(h); f != "healthy" {
				t.Errorf("flags %s", f)
			}
			r.want(map[string]string{"attempt": "2", "success": "1", "healthy": "1"})
		})
	}
}

// An endpoint may be checked at another port, or address.
func TestHealthAddress(t *testing.T) {
	good := server(t, func(nethttp.ResponseWriter, *nethttp.Request) {})
	for _, x := range []*host.Extra{{HealthCheckPort: good.Address.IP.Port()}, {HealthCheck: good.Address}} {
		r := newRig(t, func(o *health.Options) { o.HTTP = &health.HTTP{Path: "/", Method: "GET"} })
		h := refused()
		h.Extra = x
		if f := r.check(h); f != "healthy" {
			t.Errorf("flags %s", f)
		}
	}
}
