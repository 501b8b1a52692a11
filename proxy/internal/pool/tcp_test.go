package pool_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/host"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// user is the handler of a raw connection.
type user struct {
	got       []byte
	connected bool
	closed    *conn.Closed
}

func (u *user) OnConnected()          { u.connected = true }
func (u *user) OnData(b []byte) int   { u.got = append(u.got, b...); return len(b) }
func (u *user) OnEOF()                {}
func (u *user) OnHighWatermark()      {}
func (u *user) OnLowWatermark()       {}
func (u *user) OnClose(w conn.Closed) { u.closed = &w }

// echo is a server that sends back what it gets.
func echo(t *testing.T) *host.Host {
	return raw(t, func(_ int, c net.Conn) { _, _ = io.Copy(c, c) })
}

func TestDialTCP(t *testing.T) {
	overDrivers(t, func(r *rig) {
		h, u := echo(r.t), &user{}
		c, _ := pool.DialTCP(r.w, r.s, h, 0, u)
		c.NetConn().Out().Append([]byte("hello"))
		r.run("echo", func() bool { return string(u.got) == "hello" })
		if !c.Info().Local.Valid() || c.Host() != h || h.RqActive.Load() != 1 || h.CxActive.Load() != 1 {
			r.t.Error("the connection is not as it should be")
		}
		c.NetConn().Close(network.FlushWrite, "")
		r.run("close", func() bool { return u.closed != nil })
		r.want(map[string]string{"upstream_cx_total": "1", "upstream_cx_active": "0", "upstream_cx_rx_bytes_total": "5", "upstream_cx_tx_bytes_total": "5",
			"upstream_rq_total": "1", "upstream_rq_active": "0", "upstream_rq_pending_total": "1", "upstream_rq_pending_active": "0",
			"upstream_cx_destroy_local_with_active_rq": "1", "upstream_cx_connect_fail": "0", "upstream_cx_http1_total": "0"})
		b := r.s.Breakers(0)
		if b.Connections.Count()+b.Pending.Count()+b.Requests.Count() != 0 || h.CxActive.Load() != 0 || h.RqActive.Load() != 0 || h.RqPending.Load() != 0 {
			r.t.Error("something is still taken")
		}
	})
}

func TestDialTCPFails(t *testing.T) {
	overDrivers(t, func(r *rig) {
		u := &user{}
		c, _ := pool.DialTCP(r.w, r.s, refused(), 0, u)
		r.run("failure", func() bool { return u.closed != nil })
		reason, failure := c.Failure()
		if u.connected || !u.closed.Failed || reason != http.ResetRemoteConnectionFailure || failure != "delayed connect error: Connection refused" {
			r.t.Errorf("got %v %q", reason, failure)
		}
		r.want(map[string]string{"upstream_cx_connect_fail": "1", "upstream_rq_pending_failure_eject": "1", "upstream_rq_total": "0", "upstream_cx_destroy_remote": "1"})

		r.s.Transport = deafTransport{}
		u = &user{}
		c, _ = pool.DialTCP(r.w, r.s, echo(r.t), 0, u)
		r.w.Step(false)
		r.jump(5100 * time.Millisecond)
		r.run("timeout", func() bool { return u.closed != nil })
		if reason, _ := c.Failure(); reason != http.ResetConnectionTimeout {
			r.t.Errorf("got %v", reason)
		}
		r.want(map[string]string{"upstream_cx_connect_timeout": "1", "upstream_cx_destroy_local": "1"})
	})
}

// The limit of connections is not stretched for raw connections: nobody would give one back.
func TestDialTCPLimit(t *testing.T) {
	for name, set := range map[string]func(l *pool.Limits){
		"connections": func(l *pool.Limits) { l.MaxConnections = 2 },
		"pending":     func(l *pool.Limits) { l.MaxPending = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			overDrivers(t, func(r *rig) {
				set(&r.s.Limits[0])
				h := echo(r.t)
				users := []*user{{}, {}, {}}
				var conns []*pool.TCPConn
				for i, u := range users {
					c, reason := pool.DialTCP(r.w, r.s, h, 0, u)
					if (c == nil) != (i == 2) || i == 2 && reason != http.ResetOverflow {
						r.t.Fatalf("connection %d: %v", i+1, reason)
					}
					if c != nil {
						conns = append(conns, c)
					}
				}
				r.run("connected", func() bool { return users[0].connected && users[1].connected })
				if name == "connections" {
					r.want(map[string]string{"upstream_cx_overflow": "1", "upstream_rq_pending_overflow": "0"})
				} else {
					r.want(map[string]string{"upstream_cx_overflow": "0", "upstream_rq_pending_overflow": "1"})
				}
				for _, c := range conns {
					c.NetConn().Close(network.NoFlush, "")
				}
				if n := r.s.Breakers(0).Connections.Count(); n != 0 {
					r.t.Errorf("%d connections are still taken", n)
				}
			})
		})
	}
}

// brokenFactory has no secrets.
type brokenFactory struct{}

func (brokenFactory) New(*event.Worker, *host.Host, []string) (conn.Transport, string) {
	return nil, "Secret is not supplied by SDS"
}

func TestMissingSecrets(t *testing.T) {
	overDrivers(t, func(r *rig) {
		r.s.Transport = brokenFactory{}
		p := r.pool(echo(r.t), pool.HTTP1)
		c := r.call(p, "/")
		r.run("failure", allDone(c))
		if c.failed != http.ResetRemoteConnectionFailure || c.failure != "Secret is not supplied by SDS" {
			r.t.Errorf("got %v %q", c.failed, c.failure)
		}
	})
}

// alpn stands for a handshake that agreed on a protocol, and carries plain bytes.
type alpn struct {
	deafTransport
	protocol string
}

func (a alpn) New(*event.Worker, *host.Host, []string) (conn.Transport, string) { return a, "" }
func (a alpn) Start(c *conn.Conn) {
	c.Info.Protocol = a.protocol
	c.Ready()
}
func (alpn) Feed(c *conn.Conn, b []byte) { c.Deliver(b) }
func (alpn) EOF(*conn.Conn)              {}
func (alpn) Seal(_ *conn.Conn, plain, wire *buffer.Buffer) {
	wire.Move(plain)
}

func TestAuto(t *testing.T) {
	for protocol, want := range map[string]http.Proto{"h2": http.HTTP2, "http/1.1": http.HTTP11, "": http.HTTP11} {
		t.Run(protocol, func(t *testing.T) {
			overDrivers(t, func(r *rig) {
				r.s.Transport = alpn{protocol: protocol}
				p := r.pool(hostOf(server(r.t, text("x")).Listener.Addr()), pool.Auto)
				a, b := r.call(p, "/"), r.call(p, "/")
				r.run("both", allDone(a, b))
				if a.status != 200 || b.status != 200 || a.conn.Protocol() != want {
					r.t.Errorf("got %d %d over %v", a.status, b.status, a.conn.Protocol())
				}
				count := map[string]string{"upstream_cx_http1_total": "2", "upstream_cx_http2_total": "0"}
				if want == http.HTTP2 {
					count = map[string]string{"upstream_cx_http1_total": "0", "upstream_cx_http2_total": "2"}
				}
				r.run("connections", func() bool { return p.Connections() == 2 })
				r.run("both up", func() bool {
					v := r.values()
					return v["upstream_cx_http1_total"] == count["upstream_cx_http1_total"] && v["upstream_cx_http2_total"] == count["upstream_cx_http2_total"]
				})
				p.Drain()
			})
		})
	}
}
