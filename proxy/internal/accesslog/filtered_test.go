package accesslog_test

import (
	"io"
	"testing"

	api "github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/accesslog"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

type reject struct{}

func (reject) Log(network.Dispatcher, *stream.Info, api.Type) bool { return false }

type panics struct{}

func (panics) Log(network.Dispatcher, *stream.Info, api.Type) { panic("it was filtered out") }

// discard is a file that forgets.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }

func newDiscard(string) (io.WriteCloser, error) { return discard{}, nil }

func (r *rig) steady(tb testing.TB) api.Logger {
	l, err := r.m.NewFileLogger("/log", text(tb, format.DefaultHTTP))
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func lineInfo() *stream.Info {
	return &stream.Info{
		Code: 200, Start: 1, End: 5_000_000, StartWall: epoch.UnixNano(), BytesSent: 1024,
		RequestHeaders: requestHeaders(":method", "GET", ":path", "/index.html", ":authority", "example.com", "user-agent", "curl/8",
			"x-request-id", "0a1b2c3d-0000-4000-8000-000000000000"),
		ResponseHeaders: requestHeaders(":status", "200", "x-envoy-upstream-service-time", "3"),
	}
}

func TestNoAllocationsPerLine(t *testing.T) {
	r := newRig(t, 1, accesslog.Config{Open: newDiscard, FlushSize: 64 << 10, Inline: true})
	l, info, w := r.steady(t), lineInfo(), r.workers[0]
	for range 2000 { // two batches
		l.Log(w, info, api.DownstreamEnd)
	}
	w.Stats.Settle()
	r.home.Stats.Settle()
	if n := testing.AllocsPerRun(5000, func() { l.Log(w, info, api.DownstreamEnd) }); n != 0 {
		t.Errorf("%v allocations a line", n)
	}
}

func BenchmarkLine(b *testing.B) {
	r := newRig(b, 1, accesslog.Config{Open: newDiscard})
	l, info, w := r.steady(b), lineInfo(), r.workers[0]
	l.Log(w, info, api.DownstreamEnd)
	w.Stats.Settle()
	b.ReportAllocs()
	for b.Loop() {
		l.Log(w, info, api.DownstreamEnd)
	}
}
