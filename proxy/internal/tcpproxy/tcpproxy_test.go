package tcpproxy_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/tcpproxy"
)

// source makes n bytes from a seed, and their sum.
func source(seed byte, n int) (io.Reader, [32]byte) {
	block := make([]byte, 1<<16)
	x := uint32(seed) + 1
	for i := range block {
		x = x*1664525 + 1013904223
		block[i] = byte(x >> 24)
	}
	// Every block differs from the one before it, so that a lost or doubled one shows.
	read := func() io.Reader {
		return io.LimitReader(&blocks{block: block}, int64(n))
	}
	h := sha256.New()
	_, _ = io.Copy(h, read())
	return read(), [32]byte(h.Sum(nil))
}

type blocks struct {
	block []byte
	n, at int
}

func (b *blocks) Read(p []byte) (int, error) {
	if b.at == 0 {
		b.n++
		copy(b.block, fmt.Sprintf("%08d", b.n))
	}
	n := copy(p, b.block[b.at:])
	b.at = (b.at + n) % len(b.block)
	return n, nil
}

// exchange sends all of one stream and takes all of another, at the same time, and ends both ways.
func exchange(c *net.TCPConn, out io.Reader, in [32]byte, size int64) error {
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(struct{ io.Writer }{c}, out)
		sent <- errors.Join(err, c.CloseWrite())
	}()
	h := sha256.New()
	n, err := io.Copy(h, c)
	if err == nil && n != size {
		err = fmt.Errorf("got %d bytes, want %d", n, size)
	}
	if err == nil && [32]byte(h.Sum(nil)) != in {
		err = errors.New("got other bytes than were sent")
	}
	return errors.Join(err, <-sent)
}

func TestBulkBothWays(t *testing.T) {
	const size = 100 << 20
	overKinds(t, func(t *testing.T, k kind) {
		l := upstream(t)
		r := newRig(t, k, l.Addr(), options{})
		there, sumThere := source(1, size)
		back, sumBack := source(2, size)
		c := r.dial()
		u := r.accept(l)
		one := r.peer(func() error { return exchange(c, there, sumBack, size) })
		two := r.peer(func() error { return exchange(u, back, sumThere, size) })
		r.run("both peers are done", func() bool { return one() && two() })
		r.run("the session ended", func() bool { return len(r.logs) == 1 })
		r.want(map[string]string{"tcp.t.downstream_cx_rx_bytes_total": fmt.Sprint(size), "tcp.t.downstream_cx_tx_bytes_total": fmt.Sprint(size),
			"cluster.up.upstream_cx_rx_bytes_total": fmt.Sprint(size), "cluster.up.upstream_cx_tx_bytes_total": fmt.Sprint(size)})
		if r.spy != nil {
			if spliced := r.spy.in > size; spliced == k.keep {
				t.Errorf("%d of %d bytes were spliced", r.spy.in, 2*size)
			}
		}
		if d := cmp.Diff([]string{"TcpConnectionEnd -"}, r.logs); d != "" {
			t.Error(d)
		}
	})
}

// After a bulk transfer, small messages flow as before it.
func TestSmallAfterBulk(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		l := upstream(t)
		r := newRig(t, k, l.Addr(), options{})
		c := r.dial()
		u := r.accept(l)
		echo := r.peer(func() error {
			_, err := io.Copy(struct{ io.Writer }{u}, struct{ io.Reader }{u})
			return errors.Join(err, u.CloseWrite())
		})
		done := r.peer(func() error {
			for _, n := range []int{1, 8 << 20, 1, 100, 1000, 1, 1, 1, 1, 1, 1, 4 << 20, 3, 3, 3, 3, 3, 3, 3} {
				b := bytes.Repeat([]byte{byte(n)}, n)
				sent := make(chan error, 1)
				go func() { _, err := c.Write(b); sent <- err }()
				got := make([]byte, n)
				if _, err := io.ReadFull(c, got); err != nil {
					return errors.Join(err, <-sent)
				}
				if err := <-sent; err != nil || !bytes.Equal(got, b) {
					return fmt.Errorf("a message of %d bytes came back otherwise; %w", n, err)
				}
			}
			return c.CloseWrite()
		})
		r.run("all came back", func() bool { return done() && echo() })
	})
}

func TestHalfCloseFromTheClient(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		l := upstream(t)
		r := newRig(t, k, l.Addr(), options{})
		c := r.dial()
		u := r.accept(l)
		two := r.peer(func() error {
			all, err := io.ReadAll(u)
			if err != nil || string(all) != "question" {
				return fmt.Errorf("the upstream got %q, %w", all, err)
			}
			if _, err := u.Write([]byte("answer")); err != nil {
				return err
			}
			return u.Close()
		})
		one := r.peer(func() error {
			if _, err := c.Write([]byte("question")); err != nil {
				return err
			}
			if err := c.CloseWrite(); err != nil {
				return err
			}
			all, err := io.ReadAll(c)
			if err != nil || string(all) != "answer" {
				return fmt.Errorf("the client got %q, %w", all, err)
			}
			return nil
		})
		r.run("both are done", func() bool { return one() && two() })
	})
}

// An upstream that speaks first and ends first leaves the client's half open.
func TestHalfCloseFromTheUpstream(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		l := upstream(t)
		r := newRig(t, k, l.Addr(), options{})
		c := r.dial()
		u := r.accept(l)
		done := r.peer(func() error {
			if _, err := u.Write([]byte("banner")); err != nil {
				return err
			}
			if err := u.CloseWrite(); err != nil {
				return err
			}
			if all, err := io.ReadAll(c); err != nil || string(all) != "banner" {
				return fmt.Errorf("the client got %q, %w", all, err)
			}
			if _, err := c.Write([]byte("still here")); err != nil {
				return err
			}
			if err := c.CloseWrite(); err != nil {
				return err
			}
			if all, err := io.ReadAll(u); err != nil || string(all) != "still here" {
				return fmt.Errorf("the upstream got %q, %w", all, err)
			}
			return nil
		})
		r.run("it is done", done)
	})
}

func TestResetsPass(t *testing.T) {
	for _, fromClient := range []bool{true, false} {
		t.Run(fmt.Sprint("from the client: ", fromClient), func(t *testing.T) {
			overKinds(t, func(t *testing.T, k kind) {
				l := upstream(t)
				r := newRig(t, k, l.Addr(), options{})
				c := r.dial()
				u := r.accept(l)
				r.settle()
				from, to := c, u
				flags := "TcpConnectionEnd -"
				if !fromClient {
					from, to, flags = u, c, "TcpConnectionEnd UR"
				}
				done := r.peer(func() error {
					if err := from.SetLinger(0); err != nil {
						return err
					}
					if err := from.Close(); err != nil {
						return err
					}
					if _, err := to.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
						return fmt.Errorf("the other end saw %v, want a reset", err)
					}
					return nil
				})
				r.run("it passed", done)
				if d := cmp.Diff([]string{flags}, r.logs); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

// A client that does not read stops the upstream: what the proxy holds is bounded.
func TestSlowReaderIsBounded(t *testing.T) {
	const size, buffer = 64 << 20, 256 << 10
	overKinds(t, func(t *testing.T, k kind) {
		l := upstream(t)
		r := newRig(t, k, l.Addr(), options{buffer: buffer})
		c := r.dial()
		u := r.accept(l)
		_ = c.SetReadBuffer(64 << 10)
		back, sum := source(3, size)
		two := r.peer(func() error {
			_, err := io.Copy(struct{ io.Writer }{u}, back)
			return errors.Join(err, u.CloseWrite())
		})
		r.settle()
		slabs := r.w.Bufs.Live() * 16 << 10
		if most := buffer + 2*event.ReadBufferSize; slabs > most {
			t.Errorf("%d bytes of buffers for a client that does not read, at most %d should be", slabs, most)
		}
		if two() {
			t.Fatal("the upstream was not held up")
		}
		one := r.peer(func() error {
			h := sha256.New()
			n, err := io.Copy(h, c)
			if err != nil || n != size || [32]byte(h.Sum(nil)) != sum {
				return fmt.Errorf("the client got %d bytes or other ones, %w", n, err)
			}
			return nil
		})
		r.run("the client has it all", func() bool { return one() && two() })
	})
}

// gone returns an address at which nobody listens.
func gone(t *testing.T) net.Addr {
	l := upstream(t)
	_ = l.Close()
	return l.Addr()
}

func TestConnectFails(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		r := newRig(t, k, gone(t), options{proxy: func(p *tcpv3.TcpProxy) { p.MaxConnectAttempts = wrapperspb.UInt32(3) }})
		c := r.dial()
		done := r.peer(func() error {
			if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
				return fmt.Errorf("the client got %d bytes, %v", n, err)
			}
			return nil
		})
		r.run("the client was closed", done)
		if d := cmp.Diff([]string{"TcpConnectionEnd UF,URX tcp_initializion_failure:0"}, r.logs); d != "" {
			t.Error(d)
		}
		if r.tried != 3 {
			t.Errorf("%d hosts are logged as attempted, want 3", r.tried)
		}
		r.want(map[string]string{"cluster.up.upstream_cx_connect_fail": "3", "cluster.up.upstream_cx_total": "3",
			"cluster.up.upstream_cx_connect_attempts_exceeded": "1", "tcp.t.downstream_cx_total": "1"})
	})
}

func TestNoCluster(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		r := newRig(t, k, gone(t), options{proxy: func(p *tcpv3.TcpProxy) { p.ClusterSpecifier = &tcpv3.TcpProxy_Cluster{Cluster: "other"} }})
		r.dial()
		r.run("it is closed", func() bool { return len(r.logs) == 1 })
		if d := cmp.Diff([]string{"TcpConnectionEnd NC tcp_initializion_failure:3"}, r.logs); d != "" {
			t.Error(d)
		}
		r.want(map[string]string{"tcp.t.downstream_cx_no_route": "1"})
	})
}

// The breaker lets max_connections through and refuses the next one; when one ends, there is room again.
func TestConnectionLimit(t *testing.T) {
	const most = 3
	overKinds(t, func(t *testing.T, k kind) {
		l := upstream(t)
		r := newRig(t, k, l.Addr(), options{cluster: func(c *clusterv3.Cluster) {
			c.CircuitBreakers = &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{MaxConnections: wrapperspb.UInt32(most)}}}
		}})
		var first *net.TCPConn
		for range most {
			first = r.dial()
			r.accept(l)
		}
		if len(r.logs) > 0 {
			t.Fatalf("refused at the limit: %v", r.logs)
		}
		r.dial()
		r.run("the next one is refused", func() bool { return len(r.logs) == 1 })
		if d := cmp.Diff([]string{"TcpConnectionEnd UO tcp_initializion_failure:2"}, r.logs); d != "" {
			t.Error(d)
		}
		r.want(map[string]string{"cluster.up.upstream_cx_overflow": "1", "cluster.up.upstream_cx_active": fmt.Sprint(most)})
		_ = first.SetLinger(0)
		_ = first.Close()
		r.run("it is gone", func() bool { return len(r.logs) == 2 })
		r.dial()
		r.accept(l)
	})
}

func TestTimeouts(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(p *tcpv3.TcpProxy)
		log    string
		stat   string
	}{
		{"idle", func(p *tcpv3.TcpProxy) { p.IdleTimeout = durationpb.New(time.Minute) },
			"TcpConnectionEnd - tcp_session_idle_timeout", "tcp.t.idle_timeout"},
		{"duration", func(p *tcpv3.TcpProxy) { p.MaxDownstreamConnectionDuration = durationpb.New(time.Minute) },
			"TcpConnectionEnd DT max_connection_duration_reached", "tcp.t.max_downstream_connection_duration"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			overKinds(t, func(t *testing.T, k kind) {
				l := upstream(t)
				r := newRig(t, k, l.Addr(), options{proxy: tc.change})
				c := r.dial()
				u := r.accept(l)
				r.settle()
				r.jump(59 * time.Second)
				if len(r.logs) > 0 {
					t.Fatalf("ended too early: %v", r.logs)
				}
				if tc.name == "idle" {
					// A byte begins the time anew.
					done := r.peer(func() error {
						if _, err := c.Write([]byte("x")); err != nil {
							return err
						}
						_, err := io.ReadFull(u, make([]byte, 1))
						return err
					})
					r.run("it passed", done)
					r.jump(59 * time.Second)
					if len(r.logs) > 0 {
						t.Fatalf("ended although a byte had come: %v", r.logs)
					}
				}
				r.jump(2 * time.Second)
				r.run("it ended", func() bool { return len(r.logs) == 1 })
				if d := cmp.Diff([]string{tc.log}, r.logs); d != "" {
					t.Error(d)
				}
				r.want(map[string]string{tc.stat: "1"})
			})
		})
	}
}

func TestLogsBesidesTheLast(t *testing.T) {
	l := upstream(t)
	k := kinds()[0]
	r := newRig(t, k, l.Addr(), options{proxy: func(p *tcpv3.TcpProxy) {
		p.AccessLogOptions = &tcpv3.TcpProxy_TcpAccessLogOptions{FlushAccessLogOnStart: true, FlushAccessLogOnConnected: true,
			AccessLogFlushInterval: durationpb.New(time.Minute)}
	}})
	c := r.dial()
	r.accept(l)
	r.settle()
	r.jump(time.Minute)
	_ = c.SetLinger(0)
	_ = c.Close()
	r.run("it ended", func() bool { return len(r.logs) == 4 })
	want := []string{"TcpConnectionStart -", "TcpUpstreamConnected -", "TcpPeriodic -", "TcpConnectionEnd -"}
	if d := cmp.Diff(want, r.logs); d != "" {
		t.Error(d)
	}
}

// With ON_DOWNSTREAM_DATA nobody connects before the client speaks, and what it said goes first.
func TestConnectOnData(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		l := upstream(t)
		r := newRig(t, k, l.Addr(), options{proxy: func(p *tcpv3.TcpProxy) {
			p.UpstreamConnectMode = tcpv3.UpstreamConnectMode_ON_DOWNSTREAM_DATA
			p.MaxEarlyDataBytes = wrapperspb.UInt32(4)
		}})
		c := r.dial()
		r.settle()
		r.want(map[string]string{"cluster.up.upstream_cx_total": "0"})
		if _, err := c.Write([]byte("early data")); err != nil {
			t.Fatal(err)
		}
		u := r.accept(l)
		done := r.peer(func() error {
			got := make([]byte, 10)
			if _, err := io.ReadFull(u, got); err != nil || string(got) != "early data" {
				return fmt.Errorf("the upstream got %q, %w", got, err)
			}
			return nil
		})
		r.run("it came", done)
		r.want(map[string]string{"tcp.t.early_data_received_count_total": "1"})
	})
}

// A client that ends before it has said anything has nobody to be connected to.
func TestConnectOnDataEndsWithoutData(t *testing.T) {
	overKinds(t, func(t *testing.T, k kind) {
		l := upstream(t)
		r := newRig(t, k, l.Addr(), options{proxy: func(p *tcpv3.TcpProxy) {
			p.UpstreamConnectMode = tcpv3.UpstreamConnectMode_ON_DOWNSTREAM_DATA
			p.MaxEarlyDataBytes = wrapperspb.UInt32(4)
		}})
		c := r.dial()
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		r.run("it ended", func() bool { return len(r.logs) == 1 })
		r.want(map[string]string{"cluster.up.upstream_cx_total": "0"})
	})
}

// Flows beyond the bound of pipes are copied: they all arrive, and there is never one pipe more.
func TestPipesAreBounded(t *testing.T) {
	const size, most = 24 << 20, 2
	for _, k := range kinds() {
		if k.name != "splice" {
			continue
		}
		for _, flows := range []int{most, most + 1} {
			t.Run(fmt.Sprint(flows, " flows"), func(t *testing.T) {
				l := upstream(t)
				r := newRig(t, k, l.Addr(), options{})
				tcpproxy.LimitPipes(r.w, most)
				var clients []*net.TCPConn
				var ends []func() bool
				for i := range flows {
					c := r.dial()
					_ = c.SetReadBuffer(64 << 10)
					u := r.accept(l)
					back, _ := source(byte(i), size)
					clients = append(clients, c)
					ends = append(ends, r.peer(func() error {
						_, err := io.Copy(struct{ io.Writer }{u}, back)
						return errors.Join(err, u.CloseWrite())
					}))
				}
				r.settle() // each flow is held up, with bytes in a pipe or in buffers
				for i, c := range clients {
					_, sum := source(byte(i), size)
					ends = append(ends, r.peer(func() error {
						h := sha256.New()
						n, err := io.Copy(h, c)
						if err != nil || n != size || [32]byte(h.Sum(nil)) != sum {
							return fmt.Errorf("client %d got %d bytes or other ones, %w", i, n, err)
						}
						return nil
					}))
				}
				r.run("all is there", func() bool {
					for _, end := range ends {
						if !end() {
							return false
						}
					}
					return true
				})
				if r.spy.most != most {
					t.Errorf("%d pipes at a time, the bound is %d", r.spy.most, most)
				}
			})
		}
	}
}

// own is a peer on the proxy's own worker: nothing else allocates.
type own struct {
	c   *conn.Conn
	got int
	on  func(b []byte)
}

func (o *own) OnConnected()        {}
func (o *own) OnData(b []byte) int { o.on(b); return len(b) }
func (o *own) OnEOF()              {}
func (o *own) OnHighWatermark()    {}
func (o *own) OnLowWatermark()     {}
func (o *own) OnClose(conn.Closed) {}

type ownListener struct {
	w  *event.Worker
	h  event.Handle
	on func(h event.Handle)
}

func (l *ownListener) OnReady(event.Events) {
	if h, _, e := l.w.Driver.Accept(l.h); e == 0 {
		l.on(h)
	}
}

func TestRoundTripAllocatesNothing(t *testing.T) {
	l := upstream(t)
	r := newRig(t, kinds()[len(kinds())-1], l.Addr(), options{})
	c := &own{}
	c.on = func(b []byte) { c.got += len(b) }
	c.c = conn.Dial(r.w, &event.ConnectSpec{Address: r.at}, nil, c)
	raw := r.accept(l)
	// The upstream echoes on its own goroutine, which allocates nothing either.
	echo := r.peer(func() error {
		_, _ = io.Copy(struct{ io.Writer }{raw}, struct{ io.Reader }{raw})
		return nil
	})
	msg := bytes.Repeat([]byte("x"), 1000)
	round := func() {
		c.got = 0
		c.c.Out().Append(msg)
		for c.got < len(msg) {
			r.w.Step(true)
		}
	}
	for range 200 {
		round()
	}
	if n := testing.AllocsPerRun(1000, round); n != 0 {
		t.Errorf("%v allocations a round trip", n)
	}
	c.c.Close(network.FlushWrite, "")
	r.run("the echo ended", echo)
}
