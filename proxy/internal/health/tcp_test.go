package health_test

import (
	"bytes"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/health"
)

// sink reads until the other side closes.
func sink(_ int, c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// echo answers with what came, behind "p:", one byte at a time.
func echo(_ int, c net.Conn) {
	b := make([]byte, 100)
	for {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		for _, x := range append([]byte("p:"), b[:n]...) {
			if _, err := c.Write([]byte{x}); err != nil {
				return
			}
		}
	}
}

func TestTCP(t *testing.T) {
	parts := func(s ...string) (out [][]byte) {
		for _, p := range s {
			out = append(out, []byte(p))
		}
		return out
	}
	for _, c := range []struct {
		name   string
		check  health.TCP
		serve  func(int, net.Conn)
		want   string
		passes bool // the timeout has to pass
	}{
		{"connect", health.TCP{}, sink, "healthy", false},
		{"answer", health.TCP{Send: []byte("ping"), Receive: parts("p:ping")}, echo, "healthy", false},
		{"parts", health.TCP{Send: []byte("ping"), Receive: parts("p:", "in", "g")}, echo, "healthy", false},
		{"without sending", health.TCP{Receive: parts("hi")}, func(n int, c net.Conn) { _, _ = io.WriteString(c, "hi"); sink(n, c) }, "healthy", false},
		{"other answer", health.TCP{Send: []byte("ping"), Receive: parts("ping", "p:")}, echo, "/failed_active_hc/active_hc_timeout", true},
		{"closed", health.TCP{Send: []byte("ping"), Receive: parts("x")}, func(_ int, c net.Conn) { _, _ = c.Read(make([]byte, 4)) }, "/failed_active_hc", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, func(o *health.Options) { o.TCP = &c.check })
			h := raw(t, c.serve)
			r.add(h)
			if c.passes {
				r.run("the connection", func() bool { return len(r.w.Handlers()) == 1 })
				r.jump(patience + 1e9)
			} else {
				r.result()
			}
			if f := flags(h); f != c.want {
				t.Errorf("flags %s, want %s", f, c.want)
			}
		})
	}
}

// A connection that exchanges bytes is kept; a host that closes it between two checks has failed.
func TestTCPReuse(t *testing.T) {
	for _, noReuse := range []bool{false, true} {
		conns := make(chan net.Conn, 10)
		h := raw(t, func(n int, c net.Conn) { conns <- c; echo(n, c) })
		r := newRig(t, func(o *health.Options) {
			o.TCP, o.NoReuse = &health.TCP{Send: []byte("a"), Receive: [][]byte{[]byte("a")}}, noReuse
		})
		r.add(h)
		r.result()
		first := <-conns
		r.next()
		r.result()
		if n := len(r.w.Handlers()); noReuse != (n == 0) || flags(h) != "healthy" {
			t.Errorf("%d connections, flags %s", n, flags(h))
		}
		if !noReuse {
			_ = first.Close()
			r.result()
			if f := flags(h); f != "/failed_active_hc" {
				t.Errorf("flags %s", f)
			}
			r.want(map[string]string{"attempt": "2", "network_failure": "1"})
		}
	}
}

// Of what a host sends, so much is looked at and no more.
func TestTCPLimit(t *testing.T) {
	for _, c := range []struct {
		between int
		want    string
	}{{health.MaxTCPAnswer - 2, "healthy"}, {health.MaxTCPAnswer - 1, "/failed_active_hc"}} {
		b := append(append([]byte("a"), bytes.Repeat([]byte("x"), c.between)...), 'b')
		h := raw(t, func(_ int, x net.Conn) {
			_, _ = x.Write(b)
			_ = x.(*net.TCPConn).CloseWrite()
			sink(0, x)
		})
		r := newRig(t, func(o *health.Options) { o.TCP = &health.TCP{Receive: [][]byte{[]byte("a"), []byte("b")}} })
		r.add(h)
		if r.result(); r.results[0].Changed != (c.want == "healthy") {
			t.Errorf("%d: %+v, want %s", c.between, r.results[0], c.want)
		}
	}
}

func FuzzContains(f *testing.F) {
	f.Add([]byte("all ok"), []byte("al"), []byte("ok"))
	f.Fuzz(func(t *testing.T, b, first, second []byte) {
		want := false
		for i := 0; i+len(first) <= len(b); i++ {
			if bytes.Equal(b[i:i+len(first)], first) && bytes.Contains(b[i+len(first):], second) {
				want = true
			}
		}
		if got := health.Contains(slices.Clone(b), [][]byte{first, second}); got != want {
			t.Errorf("got %v", got)
		}
	})
}
