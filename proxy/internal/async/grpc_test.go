package async_test

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/internal/xdstest"
	"github.com/dragoman-proxy/dragoman/proxy/internal/async"
)

// talk is what a stream of gRPC has told.
type talk struct {
	t        *testing.T
	inside   bool
	messages []string
	end      string
}

func (k *talk) note() {
	if k.inside {
		k.t.Error("called back from within a call")
	}
	if k.end != "" {
		k.t.Error("told after the end")
	}
}

func (k *talk) OnMessage(b []byte) {
	k.note()
	k.messages = append(k.messages, string(b))
}

func (k *talk) OnClose(status int, message string) {
	k.note()
	k.end = fmt.Sprint(status, " ", message)
}

// grpc opens a stream to a control plane in cluster c.
func (r *rig) grpc(o async.GRPCOptions) (*talk, *async.GRPC) {
	r.t.Helper()
	k := &talk{t: r.t, inside: true}
	o.Cluster, o.Path = "c", "/a.B/C"
	g, err := r.client.GRPC(r.main, &o, k)
	if err != nil {
		r.t.Fatal(err)
	}
	k.inside = false
	return k, g
}

// await steps until a stream has come.
func (r *rig) await(s *xdstest.Server) *xdstest.Stream {
	r.t.Helper()
	var x *xdstest.Stream
	r.run("a stream", func() bool {
		select {
		case x = <-s.Streams():
		default:
		}
		return x != nil
	})
	return x
}

// hear steps until a message of the client has come.
func (r *rig) hear(x *xdstest.Stream) string {
	r.t.Helper()
	var b []byte
	r.run("a message", func() bool {
		select {
		case b = <-x.Requests():
			return true
		default:
			return false
		}
	})
	return string(b)
}

func TestGRPC(t *testing.T) {
	r := newRig(t)
	s := xdstest.Start(t)
	t.Cleanup(r.close)
	r.cluster("c", s.Addr, http2)
	k, g := r.grpc(async.GRPCOptions{Metadata: []http.Header{{Name: "x-mine", Value: "1"}}})
	g.Send([]byte("one"))
	g.Send(nil)
	g.Send([]byte(strings.Repeat("l", 100_000)))
	x := r.await(s)
	for name, want := range map[string]string{"Content-Type": "application/grpc", "Te": "trailers", "X-Mine": "1", "X-Envoy-Internal": "true", "X-Forwarded-For": "10.1.2.3"} {
		if got := x.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if x.Path != "/a.B/C" {
		t.Error(x.Path)
	}
	if a, b, c := r.hear(x), r.hear(x), r.hear(x); a != "one" || b != "" || len(c) != 100_000 {
		t.Errorf("%q %q %d", a, b, len(c))
	}
	// Messages come whole, however they are cut.
	long := strings.Repeat("x", 200_000)
	wire := slices.Concat(xdstest.Frame([]byte("a")), xdstest.Frame(nil), xdstest.Frame([]byte(long)), xdstest.Frame([]byte("z")))
	for _, at := range []int{1, 4, 5, 6, 8, 11, 12, 20, 150_000, len(wire)} {
		n := min(at, len(wire))
		x.SendRaw(wire[:n])
		wire = wire[n:]
	}
	x.SendRaw(wire)
	r.run("the messages", func() bool { return len(k.messages) == 4 })
	if k.messages[0] != "a" || k.messages[1] != "" || k.messages[2] != long || k.messages[3] != "z" {
		t.Errorf("%.20q", k.messages)
	}
	x.End(5, "not%20here%")
	r.run("the end", func() bool { return k.end != "" })
	if k.end != "5 not here%" {
		t.Error(k.end)
	}
	g.Send([]byte("late"))
	g.Close()
}

func TestGRPCLimit(t *testing.T) {
	r := newRig(t)
	s := xdstest.Start(t)
	t.Cleanup(r.close)
	r.cluster("c", s.Addr, http2)
	k, _ := r.grpc(async.GRPCOptions{LimitBytes: 1000})
	x := r.await(s)
	x.SendRaw(xdstest.Frame(bytes.Repeat([]byte("x"), 1000)))
	x.SendRaw(xdstest.Frame(bytes.Repeat([]byte("x"), 1001)))
	r.run("the end", func() bool { return k.end != "" })
	if len(k.messages) != 1 || k.end != "8 a gRPC message of 1001 bytes is larger than 1000" {
		t.Error(len(k.messages), k.end)
	}
	k, _ = r.grpc(async.GRPCOptions{})
	r.await(s).SendRaw([]byte{1, 0, 0, 0, 0})
	r.run("the end", func() bool { return k.end != "" })
	if !strings.HasPrefix(k.end, "13 ") {
		t.Error(k.end)
	}
}

func TestGRPCEnds(t *testing.T) {
	r := newRig(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r.cluster("c", addr, http2)
	k, _ := r.grpc(async.GRPCOptions{})
	r.run("the refusal", func() bool { return k.end != "" })
	if !strings.HasPrefix(k.end, "14 upstream connect error or disconnect/reset before headers.") {
		t.Error(k.end)
	}
	s := xdstest.StartAt(t, addr)
	t.Cleanup(r.close)
	k, _ = r.grpc(async.GRPCOptions{})
	x := r.await(s)
	x.SendRaw(xdstest.Frame([]byte("a")))
	r.run("a message", func() bool { return len(k.messages) == 1 })
	s.Close()
	r.run("the end", func() bool { return k.end != "" })
	if !strings.HasPrefix(k.end, "13 upstream_reset_after_response_started{") {
		t.Error(k.end)
	}
	// A stream that was given up says nothing.
	s = xdstest.StartAt(t, addr)
	k, g := r.grpc(async.GRPCOptions{})
	x = r.await(s)
	g.Close()
	r.run("the end at the peer", func() bool {
		select {
		case _, ok := <-x.Requests():
			return !ok
		default:
			return false
		}
	})
	if k.end != "" || len(k.messages) != 0 {
		t.Error(k.end, k.messages)
	}
}

// However the bytes are cut, the same messages come out.
func FuzzGRPC(f *testing.F) {
	f.Add(slices.Concat(xdstest.Frame([]byte("a")), xdstest.Frame(nil), xdstest.Frame([]byte("long"))), uint8(3))
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 1}, uint8(1))
	f.Add([]byte{1, 0, 0, 0, 0}, uint8(5))
	f.Fuzz(func(t *testing.T, b []byte, cut uint8) {
		whole, parts := &talk{t: t}, &talk{t: t}
		async.FeedGRPC(whole, 100, b)
		var chunks [][]byte
		for c := range slices.Chunk(b, int(cut)+1) {
			chunks = append(chunks, c)
		}
		async.FeedGRPC(parts, 100, chunks...)
		if !slices.Equal(whole.messages, parts.messages) || len(b) > 0 && whole.end != parts.end {
			t.Errorf("%q %q, in parts %q %q", whole.messages, whole.end, parts.messages, parts.end)
		}
	})
}
