package pool_test

import (
	"io"
	"net"
	nethttp "net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// An HTTP/2 connection is filled before another one is opened.
func TestFillHTTP2(t *testing.T) {
	overDrivers(t, func(r *rig) {
		r.s.H2.MaxConcurrentStreams = 3
		gate := make(chan struct{})
		s := server(r.t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { <-gate })
		p := r.pool(hostOf(s.Listener.Addr()), pool.HTTP2)
		var calls []*call
		for range 4 {
			calls = append(calls, r.call(p, "/"))
		}
		if p.Connections() != 2 {
			r.t.Errorf("%d connections for 4 streams of 3", p.Connections())
		}
		r.run("ready", func() bool {
			n := 0
			for _, c := range calls {
				n += c.ready
			}
			return n == 4
		})
		perConn := map[*pool.Conn]int{}
		for _, c := range calls {
			perConn[c.conn]++
			if c.conn.Protocol() != http.HTTP2 {
				r.t.Error("not HTTP/2")
			}
		}
		if len(perConn) != 2 || perConn[calls[0].conn] != 3 {
			r.t.Errorf("streams by connection: %v", perConn)
		}
		close(gate)
		r.run("done", allDone(calls...))
		r.want(map[string]string{"upstream_cx_http2_total": "2", "upstream_rq_active": "0", "http2.streams_active": "0"})
		p.Drain()
	})
}

// A server that goes away gets no further streams, and those that it has end.
func TestGoAway(t *testing.T) {
	overDrivers(t, func(r *rig) {
		s := server(r.t, func(w nethttp.ResponseWriter, q *nethttp.Request) {
			if q.URL.Path == "/bye" {
				w.Header().Set("Connection", "close") // net/http sends GOAWAY
			}
		})
		p := r.pool(hostOf(s.Listener.Addr()), pool.HTTP2)
		a := r.call(p, "/bye")
		r.run("first", allDone(a))
		r.run("goaway", func() bool { return p.Connections() == 0 })
		b := r.call(p, "/")
		r.run("second", allDone(b))
		if a.status != 200 || b.status != 200 || a.conn == b.conn {
			r.t.Errorf("got %d and %d", a.status, b.status)
		}
		r.want(map[string]string{"upstream_cx_total": "2", "upstream_cx_close_notify": "1", "upstream_cx_protocol_error": "0"})
		p.Drain()
	})
}

// A server that breaks the rules hears of it, and its streams count as reset by us, not as those of a connection that was lost.
func TestBadServer(t *testing.T) {
	overDrivers(t, func(r *rig) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			r.t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		said := make(chan string, 1)
		go func() {
			c, err := l.Accept()
			if err != nil {
				said <- err.Error()
				return
			}
			defer func() { _ = c.Close() }()
			_, _ = io.WriteString(c, "this is not the protocol")
			b, _ := io.ReadAll(c)
			said <- string(b)
		}()
		p := r.pool(hostOf(l.Addr()), pool.HTTP2)
		a := r.call(p, "/")
		r.run("reset", allDone(a))
		r.run("closed", func() bool { return p.Connections() == 0 })
		if got := <-said; !strings.HasSuffix(got, "too large frame size") {
			r.t.Errorf("the server got %q", got)
		}
		r.want(map[string]string{"upstream_cx_protocol_error": "1", "upstream_cx_destroy_local": "1", "upstream_cx_destroy_with_active_rq": "0"})
	})
}

// A connection that was never there counts as one of its codec, as in Envoy, which makes the codec before.
func TestNoConnectionHTTP2(t *testing.T) {
	overDrivers(t, func(r *rig) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			r.t.Fatal(err)
		}
		addr := l.Addr()
		_ = l.Close()
		p := r.pool(hostOf(addr), pool.HTTP2)
		a := r.call(p, "/")
		r.run("failed", allDone(a))
		r.want(map[string]string{"upstream_cx_connect_fail": "1", "http2.nghttp2_upstream_connections": "1"})
	})
}

// A connection that breaks resets all its streams.
func TestBrokenHTTP2(t *testing.T) {
	overDrivers(t, func(r *rig) {
		var inside atomic.Int32
		s := server(r.t, func(_ nethttp.ResponseWriter, q *nethttp.Request) {
			inside.Add(1)
			<-q.Context().Done()
		})
		p := r.pool(hostOf(s.Listener.Addr()), pool.HTTP2)
		a, b := r.call(p, "/"), r.call(p, "/")
		r.run("requests", func() bool { return inside.Load() == 2 })
		s.Listener.(*keeper).breakAll()
		r.run("reset", allDone(a, b))
		if a.reset != http.ResetConnectionTermination || b.reset != http.ResetConnectionTermination {
			r.t.Errorf("got %v and %v", a.reset, b.reset)
		}
		r.run("empty", p.Empty)
		r.want(map[string]string{"upstream_cx_destroy_remote_with_active_rq": "1", "upstream_rq_active": "0", "upstream_rq_pending_failure_eject": "2"})
	})
}

// A peer that does not answer pings is left, and its streams are reset; one that does keeps its connection.
func TestKeepalive(t *testing.T) {
	for name, answers := range map[string]bool{"answers": true, "silent": false} {
		t.Run(name, func(t *testing.T) {
			overDrivers(t, func(r *rig) {
				r.s.Keepalive, r.s.KeepaliveTimeout = 10*time.Second, 2*time.Second
				var h *host.Host
				if answers {
					h = hostOf(server(r.t, reading).Listener.Addr())
				} else {
					h = raw(r.t, func(_ int, c net.Conn) {
						_, _ = c.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // SETTINGS, and nothing more
						_, _ = io.Copy(io.Discard, c)
					})
				}
				p := r.pool(h, pool.HTTP2)
				if answers { // what both sides say first is over then
					first := r.call(p, "/")
					r.run("the first answer", allDone(first))
				}
				c := &call{r: r, method: "POST", path: "/", hold: true}
				c.start(p)
				r.run("ready", func() bool { return c.ready == 1 })
				for range 3 {
					had := r.values()["upstream_cx_rx_bytes_total"]
					r.jump(10100 * time.Millisecond)
					if answers { // to the ping, before the time for that is over
						r.run("pong", func() bool { return r.values()["upstream_cx_rx_bytes_total"] != had })
					}
					r.jump(2100 * time.Millisecond)
				}
				if answers {
					if c.done || p.Connections() != 1 {
						r.t.Fatal("the connection was left")
					}
					c.finish()
					r.run("end", allDone(c))
				} else {
					r.run("end", allDone(c))
					if c.reset != http.ResetConnectionTermination {
						r.t.Errorf("got %v", c.reset)
					}
				}
				want := "1"
				if answers {
					want = "0"
				}
				r.want(map[string]string{"http2.keepalive_timeout": want})
				p.Drain()
			})
		})
	}
}
