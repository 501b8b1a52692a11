package pool_test

import (
	"bufio"
	"net"
	nethttp "net/http"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// answering reads one request of a connection and answers it.
func answering(c net.Conn, in *bufio.Reader) bool {
	if _, err := nethttp.ReadRequest(in); err != nil {
		return false
	}
	_, err := c.Write([]byte("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"))
	return err == nil
}

// A connection that the peer closes after it was idle for long is not used again, although nobody has told the worker yet.
func TestClosedBeforeReuse(t *testing.T) {
	for name, c := range map[string]struct {
		end     func(c *net.TCPConn)
		counted bool
	}{
		"fin":   {func(c *net.TCPConn) { c.Close() }, true},
		"reset": {func(c *net.TCPConn) { _ = c.SetLinger(0); c.Close() }, true},
		"bytes nobody has asked for": {func(c *net.TCPConn) {
			_, _ = c.Write([]byte("HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			overDrivers(t, func(r *rig) {
				conns := make(chan *net.TCPConn, 2)
				gone := make(chan struct{})
				h := raw(t, func(n int, c net.Conn) {
					in := bufio.NewReader(c)
					answering(c, in)
					conns <- c.(*net.TCPConn)
					if n == 0 {
						<-gone
						return
					}
					answering(c, in)
				})
				p := r.pool(h, pool.HTTP1)
				first := r.call(p, "/1")
				r.run("the first answer", allDone(first))
				r.jump(time.Minute)
				var peer *net.TCPConn
				r.run("the first connection", func() bool {
					select {
					case peer = <-conns:
					default:
					}
					return peer != nil
				})
				c.end(peer)
				r.untilPeek(first.conn)
				second := r.call(p, "/2")
				if second.conn == first.conn {
					t.Fatal("a closed connection was used again")
				}
				r.run("the second answer", allDone(second))
				if second.status != 200 {
					t.Errorf("status %d", second.status)
				}
				r.run("the end of the first connection", func() bool { return p.Connections() == 1 })
				// Whose look finds a reset first hears of it: ours, or the test's.
				if v := r.values(); (v["dragoman.reuse.closed"]+v["dragoman.reuse.reset"] == "1") != c.counted {
					t.Errorf("closed: %s, reset: %s", v["dragoman.reuse.closed"], v["dragoman.reuse.reset"])
				}
				close(gone)
				p.Drain()
				r.run("the end", p.Empty)
			})
		})
	}
}

// untilPeek waits until something has arrived for a connection, without letting the worker see it.
func (r *rig) untilPeek(c *pool.Conn) {
	r.t.Helper()
	probe := r.w.Driver.(event.Prober)
	for deadline := time.Now().Add(25 * time.Second); time.Now().Before(deadline); {
		if _, e := probe.Peek(c.NetConn().Handle()); e != syscall.EAGAIN {
			return
		}
	}
	r.t.Fatal("nothing arrives")
}

// What is known of a request whose connection breaks.
func TestLost(t *testing.T) {
	const first, ended, sent = 1, 2, 4 // the connection has served a request; it is closed before the next one; which is sent nevertheless
	read := func(in *bufio.Reader) { _, _ = nethttp.ReadRequest(in) }
	for name, c := range map[string]struct {
		flags  int
		second func(in *bufio.Reader) // what the peer does after its first answer
		want   pool.Progress
		count  string
	}{
		"its first request":     {0, read, pool.Unknown, ""},
		"the request was read":  {first, read, pool.Acknowledged, "dragoman.lost.acknowledged"},
		"it was not sent":       {first | ended, func(*bufio.Reader) {}, pool.Unsent, "dragoman.lost.unsent"},
		"it was sent to nobody": {first | ended | sent, func(*bufio.Reader) {}, pool.Unacknowledged, "dragoman.lost.unacknowledged"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, event.DefaultDriver())
			if event.DefaultDriver() == event.KindStd && c.want > pool.Unsent {
				t.Skip("the system does not say what was acknowledged")
			}
			answered := make(chan struct{})
			h := raw(t, func(_ int, k net.Conn) {
				in := bufio.NewReader(k)
				if c.flags&first != 0 {
					answering(k, in)
					<-answered
				}
				c.second(in)
			})
			p := r.pool(h, pool.HTTP1)
			if c.flags&first != 0 {
				x := r.call(p, "/1")
				r.run("the first answer", allDone(x))
				close(answered)
				if c.flags&ended != 0 {
					r.untilPeek(x.conn)
				}
			}
			x := r.call(p, "/2")
			if c.flags&sent != 0 {
				x.conn.NetConn().Flush()
			}
			var got pool.Progress
			x.onDone = func() { got, _ = x.conn.Lost() }
			r.run("the end", allDone(x))
			if x.reset != http.ResetConnectionTermination || got != c.want {
				t.Errorf("%v: %v, want %v", x.reset, got, c.want)
			}
			if c.count != "" {
				r.want(map[string]string{c.count: "1"})
			}
			r.run("the pool is empty", p.Empty)
		})
	}
}
