package pool_test

import (
	"bufio"
	"io"
	"net"
	nethttp "net/http"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// Requests one after the other share a connection, and everything is counted.
func TestReuse(t *testing.T) {
	overDrivers(t, func(r *rig) {
		h := hostOf(server(r.t, text("hello")).Listener.Addr())
		p := r.pool(h, pool.HTTP1)
		var conn *pool.Conn
		for range 3 {
			c := r.call(p, "/")
			r.run("response", allDone(c))
			if c.status != 200 || string(c.body) != "hello" {
				r.t.Fatalf("got %d %q", c.status, c.body)
			}
			if conn != nil && conn != c.conn {
				r.t.Error("another connection")
			}
			conn = c.conn
		}
		if conn.Streams() != 3 || conn.Protocol() != http.HTTP11 || conn.Host() != h || !conn.Info().Remote.Valid() {
			r.t.Errorf("streams %d, protocol %v", conn.Streams(), conn.Protocol())
		}
		r.want(map[string]string{
			"upstream_cx_total": "1", "upstream_cx_active": "1", "upstream_cx_http1_total": "1", "upstream_rq_total": "3",
			"upstream_rq_active": "0", "upstream_rq_pending_total": "1", "upstream_rq_pending_active": "0",
			"upstream_cx_overflow": "0", "http1.response_flood": "0",
		})
		p.Drain()
		if !p.Empty() || h.CxActive.Load() != 0 || h.CxTotal.Load() != 1 {
			r.t.Error("the connection is not gone")
		}
		r.want(map[string]string{"upstream_cx_active": "0", "upstream_cx_destroy": "1", "upstream_cx_destroy_local": "1",
			"upstream_cx_destroy_with_active_rq": "0"})
	})
}

// The connection that was used last is used first.
func TestLastInFirstOut(t *testing.T) {
	overDrivers(t, func(r *rig) {
		p := r.pool(hostOf(server(r.t, reading).Listener.Addr()), pool.HTTP1)
		a, b := &call{r: r, method: "POST", path: "/a", hold: true}, &call{r: r, method: "POST", path: "/b", hold: true}
		a.start(p)
		b.start(p)
		r.run("streams", func() bool { return a.ready+b.ready == 2 })
		a.finish()
		r.run("first", allDone(a))
		b.finish()
		r.run("second", allDone(b))
		if a.conn == b.conn {
			r.t.Fatal("one connection carried two streams at a time")
		}
		for range 3 {
			c := r.call(p, "/")
			r.run("next", allDone(c))
			if c.conn != b.conn {
				r.t.Error("not the connection that was used last")
			}
		}
		p.Drain()
	})
}

// What waits is served first in, first out.
func TestQueueOrder(t *testing.T) {
	overDrivers(t, func(r *rig) {
		r.s.Limits[0].MaxConnections = 1
		p := r.pool(hostOf(server(r.t, text("")).Listener.Addr()), pool.HTTP1)
		var order []string
		var calls []*call
		for _, path := range []string{"/0", "/1", "/2", "/3"} {
			c := r.call(p, path)
			c.onDone = func() { order = append(order, path) }
			calls = append(calls, c)
		}
		r.want(map[string]string{"upstream_cx_overflow": "3", "upstream_rq_pending_active": "4"})
		calls[2].req.Cancel()
		calls[2].req.Cancel()
		r.run("all", allDone(calls[0], calls[1], calls[3]))
		if len(order) != 3 || order[0] != "/0" || order[1] != "/1" || order[2] != "/3" {
			r.t.Errorf("order is %v", order)
		}
		if calls[2].ready != 0 || calls[2].done {
			r.t.Error("a cancelled request went on")
		}
		calls[2].arena.Release()
		r.want(map[string]string{"upstream_cx_total": "1", "upstream_rq_total": "3", "upstream_rq_pending_active": "0"})
		p.Drain()
	})
}

// Each breaker lets its limit through, and not one more.
func TestBreakers(t *testing.T) {
	for _, c := range []struct {
		name  string
		set   func(l *pool.Limits, n uint32)
		stats map[string]string
	}{
		{"requests", func(l *pool.Limits, n uint32) { l.MaxRequests = n }, map[string]string{"upstream_rq_active_overflow": "1", "upstream_rq_pending_overflow": "0"}},
		{"pending", func(l *pool.Limits, n uint32) { l.MaxPending = n }, map[string]string{"upstream_rq_active_overflow": "0", "upstream_rq_pending_overflow": "1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			overDrivers(t, func(r *rig) {
				const limit = 3
				c.set(&r.s.Limits[0], limit)
				p := r.pool(hostOf(server(r.t, text("")).Listener.Addr()), pool.HTTP1)
				var calls []*call
				for range limit {
					x := &call{r: r, method: "GET", path: "/", hold: true}
					x.start(p)
					calls = append(calls, x)
				}
				if c.name == "requests" {
					r.run("ready", func() bool { return calls[0].ready+calls[1].ready+calls[2].ready == limit })
				}
				over := r.call(p, "/")
				if c.name == "requests" {
					r.run("overflow", allDone(over))
				}
				if over.failed != http.ResetOverflow {
					r.t.Fatalf("request %d got %v", limit+1, over.failed)
				}
				r.run("ready", func() bool { return calls[0].ready+calls[1].ready+calls[2].ready == limit })
				for _, x := range calls {
					if x.failed != 0 {
						r.t.Error("a request within the limit failed")
					}
					x.finish()
				}
				r.run("done", allDone(calls...))
				again := r.call(p, "/")
				r.run("again", allDone(again))
				if again.status != 200 {
					r.t.Errorf("after the overflow: %v", again.failed)
				}
				r.want(c.stats)
				p.Drain()
				b := r.s.Breakers(0)
				if b.Requests.Count() != 0 || b.Pending.Count() != 0 || b.Connections.Count() != 0 {
					r.t.Error("something is still taken")
				}
			})
		})
	}
}

// At the limit of connections each pool may have one.
func TestConnectionLimit(t *testing.T) {
	for name, set := range map[string]func(l *pool.Limits){
		"cluster":  func(l *pool.Limits) { l.MaxConnections = 2 },
		"per host": func(l *pool.Limits) { l.PerHostConnections = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			overDrivers(t, func(r *rig) {
				set(&r.s.Limits[0])
				a := r.pool(hostOf(server(r.t, text("")).Listener.Addr()), pool.HTTP1)
				b := r.pool(hostOf(server(r.t, text("")).Listener.Addr()), pool.HTTP1)
				calls := []*call{r.call(a, "/"), r.call(a, "/"), r.call(a, "/"), r.call(b, "/")}
				if a.Connections() != 2 || b.Connections() != 1 {
					r.t.Errorf("%d and %d connections", a.Connections(), b.Connections())
				}
				want := map[string]string{"upstream_cx_total": "3", "upstream_cx_overflow": "2"}
				if name == "per host" {
					want["upstream_cx_overflow"] = "1"
				}
				r.want(want)
				r.run("all", allDone(calls...))
				a.Drain()
				b.Drain()
				if n := r.s.Breakers(0).Connections.Count(); n != 0 {
					r.t.Errorf("%d connections are still taken", n)
				}
			})
		})
	}
}

// A connection that cannot be made fails all that waits, and what is started from there is not failed with it.
func TestConnectFailure(t *testing.T) {
	overDrivers(t, func(r *rig) {
		h := refused()
		r.s.Limits[0].MaxConnections = 1
		p := r.pool(h, pool.HTTP1)
		a := r.call(p, "/a")
		b := r.call(p, "/b")
		var again *call
		a.onDone = func() { again = r.call(p, "/again") }
		r.run("failures", allDone(a, b))
		if a.failed != http.ResetRemoteConnectionFailure || a.failure != "delayed connect error: Connection refused" || b.failed != a.failed {
			r.t.Errorf("got %v %q", a.failed, a.failure)
		}
		if again.done {
			r.t.Error("the new request failed with the old ones")
		}
		r.run("second failure", allDone(again))
		r.want(map[string]string{"upstream_cx_connect_fail": "2", "upstream_cx_total": "2", "upstream_cx_destroy": "2", "upstream_cx_destroy_remote": "2",
			"upstream_cx_active": "0", "upstream_rq_pending_failure_eject": "3", "upstream_rq_total": "0", "upstream_rq_pending_active": "0"})
		if h.CxConnectFail.Load() != 2 || h.CxActive.Load() != 0 {
			r.t.Error("the host's counters are wrong")
		}
	})
}

func TestConnectTimeout(t *testing.T) {
	overDrivers(t, func(r *rig) {
		// Nobody answers a handshake: a transport that never gets ready stands for an address that swallows packets.
		r.s.Transport = deafTransport{}
		p := r.pool(hostOf(server(r.t, text("")).Listener.Addr()), pool.HTTP1)
		c := r.call(p, "/")
		r.w.Step(false)
		r.jump(4900 * time.Millisecond)
		if c.done {
			r.t.Fatal("too early")
		}
		r.jump(200 * time.Millisecond)
		r.run("timeout", allDone(c))
		if c.failed != http.ResetConnectionTimeout {
			r.t.Errorf("got %v", c.failed)
		}
		r.want(map[string]string{"upstream_cx_connect_timeout": "1", "upstream_cx_connect_fail": "1", "upstream_cx_destroy_local": "1"})
	})
}

// A connection that its peer closes while it rests is never handed out.
func TestIdleClose(t *testing.T) {
	overDrivers(t, func(r *rig) {
		closeNow := make(chan struct{})
		h := raw(r.t, func(n int, c net.Conn) {
			req, err := nethttp.ReadRequest(bufio.NewReader(c))
			if err != nil {
				return
			}
			_ = req.Body.Close()
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
			if n == 0 {
				<-closeNow
				return
			}
			_, _ = c.Read(make([]byte, 1))
		})
		p := r.pool(h, pool.HTTP1)
		c := r.call(p, "/")
		r.run("first", allDone(c))
		close(closeNow)
		r.run("close", func() bool { return p.Connections() == 0 })
		d := r.call(p, "/")
		r.run("second", allDone(d))
		if d.status != 200 {
			r.t.Errorf("got %d, reset %v", d.status, d.reset)
		}
		r.want(map[string]string{"upstream_cx_total": "2", "upstream_cx_destroy_remote": "1", "upstream_cx_destroy_with_active_rq": "0"})
		p.Drain()
	})
}

func TestIdleTimeout(t *testing.T) {
	overDrivers(t, func(r *rig) {
		p := r.pool(hostOf(server(r.t, text("")).Listener.Addr()), pool.HTTP1)
		c := r.call(p, "/")
		r.run("first", allDone(c))
		r.jump(59 * time.Minute)
		c = r.call(p, "/") // begins the hour anew
		r.run("second", allDone(c))
		r.jump(59 * time.Minute)
		if p.Connections() != 1 {
			r.t.Fatal("closed too early")
		}
		r.jump(2 * time.Minute)
		r.run("timeout", func() bool { return p.Connections() == 0 })
		r.want(map[string]string{"upstream_cx_idle_timeout": "1", "upstream_cx_destroy_local": "1"})
	})
}

func TestMaxRequests(t *testing.T) {
	for _, proto := range []pool.Protocol{pool.HTTP1, pool.HTTP2} {
		overDrivers(t, func(r *rig) {
			r.s.MaxRequests = 2
			p := r.pool(hostOf(server(r.t, text("")).Listener.Addr()), proto)
			for range 5 {
				c := r.call(p, "/")
				r.run("response", allDone(c))
			}
			r.run("close", func() bool { return p.Connections() == 1 })
			r.want(map[string]string{"upstream_cx_total": "3", "upstream_cx_max_requests": "2", "upstream_rq_total": "5"})
			p.Drain()
		})
	}
}

func TestMaxDuration(t *testing.T) {
	overDrivers(t, func(r *rig) {
		r.s.MaxDuration = time.Minute
		p := r.pool(hostOf(server(r.t, reading).Listener.Addr()), pool.HTTP1)
		c := &call{r: r, method: "POST", path: "/", hold: true}
		c.start(p)
		r.run("ready", func() bool { return c.ready == 1 })
		r.jump(61 * time.Second)
		if p.Connections() != 1 {
			r.t.Fatal("a busy connection was closed")
		}
		c.finish()
		r.run("response", allDone(c))
		r.run("close", func() bool { return p.Connections() == 0 })
		if c.status != 200 {
			r.t.Errorf("got %d", c.status)
		}
		r.want(map[string]string{"upstream_cx_max_duration_reached": "1"})
	})
}

// What ends a stream badly ends an HTTP/1 connection, and is told apart from an orderly end.
func TestHTTP1Ends(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for _, c := range []struct {
		name, answer string
		status       int
		reset        http.ResetReason
		stats        map[string]string
	}{
		{"close header", ok + "connection: close\r\ncontent-length: 0\r\n\r\n", 200, 0, map[string]string{
			"upstream_cx_close_notify": "1", "upstream_cx_destroy_local": "1", "upstream_cx_destroy_with_active_rq": "0"}},
		{"until eof", ok + "\r\nbody", 200, 0, map[string]string{
			"upstream_cx_destroy_remote": "1", "upstream_cx_destroy_with_active_rq": "0"}},
		{"nothing", "", 0, http.ResetConnectionTermination, map[string]string{
			"upstream_cx_destroy_remote": "1", "upstream_cx_destroy_remote_with_active_rq": "1", "upstream_cx_protocol_error": "0"}},
		{"short body", ok + "content-length: 10\r\n\r\nshort", 200, http.ResetProtocolError, map[string]string{
			"upstream_cx_destroy_remote_with_active_rq": "1", "upstream_cx_protocol_error": "1"}},
		{"surplus", ok + "content-length: 2\r\n\r\nokEXTRA", 200, 0, map[string]string{
			"upstream_cx_destroy_local": "1", "upstream_cx_destroy_with_active_rq": "0", "upstream_cx_protocol_error": "1"}},
		{"garbage", "garbage\r\n\r\n", 0, http.ResetProtocolError, map[string]string{
			"upstream_cx_destroy_local_with_active_rq": "1", "upstream_cx_protocol_error": "1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			overDrivers(t, func(r *rig) {
				h := raw(r.t, func(_ int, nc net.Conn) {
					req, err := nethttp.ReadRequest(bufio.NewReader(nc))
					if err != nil {
						return
					}
					_ = req.Body.Close()
					_, _ = io.WriteString(nc, c.answer)
				})
				p := r.pool(h, pool.HTTP1)
				x := r.call(p, "/")
				r.run("end", allDone(x))
				r.run("close", func() bool { return p.Connections() == 0 })
				if x.status != c.status || x.reset != c.reset {
					r.t.Errorf("got %d, reset %v", x.status, x.reset)
				}
				c.stats["upstream_rq_active"] = "0"
				r.want(c.stats)
			})
		})
	}
}

// A reset by the user closes an HTTP/1 connection, and leaves an HTTP/2 connection alone.
func TestUserReset(t *testing.T) {
	for proto, conns := range map[pool.Protocol]int{pool.HTTP1: 0, pool.HTTP2: 1} {
		overDrivers(t, func(r *rig) {
			p := r.pool(hostOf(server(r.t, reading).Listener.Addr()), proto)
			c := &call{r: r, method: "POST", path: "/", hold: true}
			c.start(p)
			r.run("ready", func() bool { return c.ready == 1 })
			c.s.Reset(http.ResetLocal)
			c.arena.Release()
			r.run("gone", func() bool { return p.Connections() == conns })
			r.want(map[string]string{"upstream_rq_active": "0"})
			if proto == pool.HTTP1 {
				r.want(map[string]string{"upstream_cx_destroy_local_with_active_rq": "1"})
			}
			p.Drain()
		})
	}
}

// onEmpty is a pool's Owner.
type onEmpty func()

func (f onEmpty) OnEmpty(*pool.Pool) { f() }

// Draining lets streams end, closes their connections then, and serves late requests on connections that close as well.
func TestDrain(t *testing.T) {
	for _, proto := range []pool.Protocol{pool.HTTP1, pool.HTTP2} {
		overDrivers(t, func(r *rig) {
			h := hostOf(server(r.t, reading).Listener.Addr())
			p := r.pool(h, proto)
			empty := 0
			p.Owner = onEmpty(func() { empty++ })
			c := &call{r: r, method: "POST", path: "/", hold: true}
			c.start(p)
			idle := r.call(p, "/idle")
			r.run("both", func() bool { return c.ready == 1 && idle.done })
			h.SetFlag(host.Removed, true)
			p.Drain()
			if p.Connections() != 1 || empty != 0 {
				r.t.Errorf("%d connections, want the busy one", p.Connections())
			}
			late := r.call(p, "/late")
			r.run("late", allDone(late))
			if late.status != 200 {
				r.t.Errorf("late request: %v", late.failed)
			}
			c.finish()
			r.run("end", allDone(c))
			r.run("empty", p.Empty)
			if c.status != 200 || empty == 0 {
				r.t.Errorf("got %d, empty %d", c.status, empty)
			}
		})
	}
}

// A user that cannot keep up stops the connection, and loses nothing when the server is done before it.
func TestPausedReader(t *testing.T) {
	overDrivers(t, func(r *rig) {
		const size = 300 << 10
		sent := make(chan struct{})
		h := raw(r.t, func(_ int, c net.Conn) {
			req, err := nethttp.ReadRequest(bufio.NewReader(c))
			if err != nil {
				return
			}
			_ = req.Body.Close()
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			_, _ = c.Write(make([]byte, size))
			close(sent)
		})
		p := r.pool(h, pool.HTTP1)
		c := r.call(p, "/")
		r.run("head", func() bool { return c.status == 200 })
		c.s.ReadDisable(true)
		c.s.ReadDisable(true)
		had := len(c.body)
		r.run("everything to be on its way", ended(sent))
		for range 20 {
			r.w.Step(false)
		}
		if c.done || len(c.body) > had+256<<10 {
			r.t.Errorf("%d bytes came although reading was stopped", len(c.body)-had)
		}
		c.s.ReadDisable(false)
		c.s.ReadDisable(false)
		r.run("end", allDone(c))
		if len(c.body) != size || c.reset != 0 {
			r.t.Errorf("got %d bytes, reset %v", len(c.body), c.reset)
		}
		r.run("close", p.Empty)
	})
}

// A stream that ends while it is paused leaves no pause behind.
func TestPauseEndsWithStream(t *testing.T) {
	overDrivers(t, func(r *rig) {
		p := r.pool(hostOf(server(r.t, text("")).Listener.Addr()), pool.HTTP1)
		c := r.call(p, "/")
		c.onHead = func() { c.s.ReadDisable(true) }
		r.run("response", allDone(c))
		if c.conn.NetConn().Paused() {
			r.t.Error("the connection is still paused")
		}
		d := r.call(p, "/")
		r.run("next", allDone(d))
		if d.conn != c.conn || d.status != 200 {
			r.t.Errorf("got %d", d.status)
		}
		p.Drain()
	})
}
