package health_test

import (
	"bytes"
	"fmt"
	"io"
	nethttp "net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/internal/health"
)

const (
	isServing  = "\x00\x00\x00\x00\x02\x08\x01"
	notServing = "\x00\x00\x00\x00\x02\x08\x02"
)

func TestGRPCRequest(t *testing.T) {
	got := make(chan string, 1)
	h := server(t, func(w nethttp.ResponseWriter, q *nethttp.Request) {
		got <- print(q)
		w.Header().Set("content-type", "application/grpc")
		w.Header().Set("Trailer", "grpc-status")
		_, _ = io.WriteString(w, isServing)
		w.Header().Set("grpc-status", "0")
	})
	r := newRig(t, func(o *health.Options) {
		o.GRPC, o.Timeout = &health.GRPC{Service: "svc", Authority: "hc.test"}, patience
	})
	if f := r.check(h); f != "healthy" {
		t.Errorf("flags %s", f)
	}
	want := "POST /grpc.health.v1.Health/Check HTTP/2.0 host=hc.test Content-Type=application/grpc Grpc-Timeout=60000m Te=trailers" +
		" User-Agent=Envoy/HC body=\x00\x00\x00\x00\x05\n\x03svc"
	if d := cmp.Diff(want, <-got); d != "" {
		t.Error(d)
	}
}

func TestGRPCAnswer(t *testing.T) {
	for _, c := range []struct {
		name, kind, body, status string
		code                     int
		early                    bool // the status is in the head
		want                     string
	}{
		{"serving", "application/grpc", isServing, "0", 200, false, "healthy"},
		{"serving, proto", "application/grpc+proto", isServing, "0", 200, false, "healthy"},
		{"not serving", "application/grpc", notServing, "0", 200, false, "/failed_active_hc"},
		{"unknown", "application/grpc", "\x00\x00\x00\x00\x00", "0", 200, false, "/failed_active_hc"},
		{"error", "application/grpc", isServing, "5", 200, false, "/failed_active_hc"},
		{"no status", "application/grpc", isServing, "", 200, false, "/failed_active_hc"},
		{"status too early", "application/grpc", isServing, "0", 200, true, "/failed_active_hc"},
		{"no message", "application/grpc", "", "0", 200, true, "/failed_active_hc"},
		{"two messages", "application/grpc", isServing + isServing, "0", 200, false, "/failed_active_hc"},
		{"HTTP status", "application/grpc", isServing, "0", 503, false, "/failed_active_hc"},
		{"no gRPC", "text/plain", isServing, "0", 200, false, "/failed_active_hc"},
		{"nearly gRPC", "application/grpcs", isServing, "0", 200, false, "/failed_active_hc"},
		{"at the limit", "application/grpc", padded(health.MaxGRPCAnswer), "0", 200, false, "healthy"},
		{"past the limit", "application/grpc", padded(health.MaxGRPCAnswer + 1), "0", 200, false, "/failed_active_hc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := server(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
				w.Header().Set("content-type", c.kind)
				if c.early {
					w.Header().Set("grpc-status", c.status)
				}
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
				if !c.early && c.status != "" {
					w.Header().Set(nethttp.TrailerPrefix+"grpc-status", c.status)
				}
			})
			r := newRig(t, func(o *health.Options) { o.GRPC = &health.GRPC{} })
			if f := r.check(h); f != c.want {
				t.Errorf("flags %s, want %s", f, c.want)
			}
			r.want(map[string]string{"network_failure": "0"})
			r.next() // the connection is of further use
			r.result()
			if f := flags(h); f != c.want {
				t.Errorf("flags %s, want %s", f, c.want)
			}
			r.want(map[string]string{"attempt": "2", "network_failure": "0"})
		})
	}
}

// padded is a serving answer of n bytes.
func padded(n int) string {
	m := []byte("\x08\x01\x12\x80\x00")
	fill := n - 5 - len(m)
	m[3], m[4] = byte(fill)|0x80, byte(fill>>7)
	m = append(m, bytes.Repeat([]byte("x"), fill)...)
	return fmt.Sprintf("\x00\x00\x00%c%c", byte(len(m)>>8), 0)[:3] + string([]byte{byte(len(m) >> 8), byte(len(m))}) + string(m)
}

func TestGRPCTimeout(t *testing.T) {
	for d, want := range map[time.Duration]string{
		500 * time.Millisecond: "500m", 99999999 * time.Millisecond: "99999999m", 100000000 * time.Millisecond: "100000S",
		time.Duration(1<<63 - 1): "153722867M",
	} {
		if got := health.GRPCTimeout(d); d < 1<<62 && got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
		if got := health.GRPCTimeout(d); len(got) > 9 {
			t.Errorf("%v: %s is too long", d, got)
		}
	}
}

func FuzzServingStatus(f *testing.F) {
	f.Add([]byte(isServing))
	f.Add([]byte(notServing))
	f.Add([]byte(padded(200)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s := health.ServingStatus(b); s == 1 && len(b) < 7 {
			t.Errorf("%x is an answer", b)
		}
	})
}
