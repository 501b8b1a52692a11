package format_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/api/accesslog"
	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/api/rand"
	"github.com/dragoman-proxy/dragoman/api/stream"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

const ms = int64(time.Millisecond)

func addr(s string) network.Address { return network.AddrFrom(netip.MustParseAddrPort(s)) }

type static map[stream.MetadataKind]map[string]any

func (s static) StaticMetadata(kind stream.MetadataKind, ns string) map[string]any {
	m, _ := s[kind][ns].(map[string]any)
	return m
}

type opaque struct{}

func (opaque) AppendPlain(dst []byte) []byte { return append(dst, "cl"...) }

type person struct{}

func (person) Typed() any { return map[string]any{"b": 1.0, "a": "x"} }
func (person) Field(name string) (any, bool) {
	switch name {
	case "name":
		return "kim", true
	case "age":
		return int64(42), true
	}
	return nil, false
}

// headers makes a header map of name, value pairs.
func headers(kv ...string) *http.HeaderMap {
	var a http.Arena
	a.Init(&http.ArenaPool{})
	m := &http.HeaderMap{}
	m.Init(&a)
	for i := 0; i < len(kv); i += 2 {
		m.AddName(kv[i], kv[i+1])
	}
	return m
}

// request is a context of a request that went well: 200 from an upstream, in 12 ms.
func request() *format.Context {
	start := time.Date(2026, 11, 29, 20, 33, 46, 968_123_456, time.UTC).UnixNano()
	i := &stream.Info{
		Start: 1000 * ms, StartWall: start, RequestDone: 1002 * ms, ResponseFirstTx: 1010 * ms, ResponseDone: 1011 * ms, End: 1012*ms + 1234,
		Protocol: http.HTTP11, Code: 200, Details: "via_upstream", BytesReceived: 3, BytesSent: 13,
		WireReceived: 95, WireSent: 192, HeaderReceived: 55, HeaderSent: 160,
		Conn: &network.ConnInfo{
			ID: 2, Start: 990 * ms, Local: addr("127.0.0.1:8080"), Remote: addr("10.0.0.7:40000"),
			Direct: &[2]network.Address{addr("127.0.0.1:8081"), addr("127.0.0.1:41000")},
			From:   &network.Entrance{ChainName: "fc1", ListenerName: "main"},
		},
		RouteName: "ru", ClusterName: "up", ClusterNameRaw: "raw", Attempts: 1,
		Upstream: stream.Upstream{
			Host: addr("127.0.0.1:55437"), HostName: "hn.example", Local: addr("127.0.0.1:52056"), Protocol: http.HTTP11, ConnID: 3,
			PoolReady: 1003 * ms, FirstTx: 1003 * ms, LastTx: 1004 * ms, FirstRx: 1008 * ms, LastRx: 1009 * ms,
			WireSent: 192, WireRecv: 158, HeaderSent: 156, HeaderRecv: 120,
		},
		RequestHeaders: headers(":method", "GET", ":path", "/up/x?q=1&r=%41%20b+c&s&t=%4&q=2&e=&u=a%26b", ":authority", "a.com",
			"x-a", "vwx", "x-e", "", "x-dup", "a", "x-dup", "b", "user-agent", "ua", "x-request-id", "id-1", "x-q", `q"\/<>&`+"é\t"),
		ResponseHeaders: headers(":status", "200", "content-type", "text/plain", "x-u", "uv", "x-envoy-upstream-service-time", "4"),
	}
	i.Static = static{
		stream.RouteMetadata:    {"m": map[string]any{"k": "rv", "n": 1.5, "b": true, "l": []any{1.0, "a", nil}, "o": map[string]any{"z": 1.0, "a": "x"}}},
		stream.ClusterMetadata:  {"m": map[string]any{"k": "cv"}},
		stream.HostMetadata:     {"m": map[string]any{"k": "ev"}},
		stream.ListenerMetadata: {"m": map[string]any{"k": "lv"}},
	}
	md := i.Metadata()
	md.Set("ns", "s", "str\"q\\ \t é <")
	md.Set("ns", "n", 1.0)
	md.Set("ns", "m", 123456789.125)
	md.Set("ns", "t", true)
	md.Set("ns", "z", nil)
	md.Set("ns", "e", "")
	md.Set("ns", "o", map[string]any{"zz": 1.0, "aa": map[string]any{"b": "c"}, "MM": []any{}})
	fs := i.FilterState()
	fs.Set("my.k", `val"ue POST`)
	fs.Set("opaque", opaque{})
	fs.Set("person", person{})
	return &format.Context{Info: i, Now: 1100 * ms, Wall: start + 12*ms, Type: accesslog.DownstreamEnd, Rand: rand.New()}
}

func options() *format.Options {
	return &format.Options{
		Hostname: "vm",
		Env: func(name string) (string, bool) {
			v, ok := map[string]string{"FOO": "bar", "EMPTY": ""}[name]
			return v, ok
		},
	}
}

func evaluate(t testing.TB, f string, c *format.Context) string {
	t.Helper()
	p, err := format.ParseText(f, options())
	if err != nil {
		t.Fatalf("ParseText(%q): %v", f, err)
	}
	return string(p.Evaluate(nil, c))
}

func evaluateJSON(t testing.TB, f string, c *format.Context) string {
	t.Helper()
	p, err := format.ParseJSON(map[string]any{"": f}, options())
	if err != nil {
		t.Fatalf("ParseJSON(%q): %v", f, err)
	}
	s := string(p.Evaluate(nil, c))
	return strings.TrimSuffix(strings.TrimPrefix(s, `{"":`), "}\n")
}

func TestDefaultFormat(t *testing.T) {
	c := request()
	c.Info.RequestHeaders = headers(":method", "GET", ":path", "/a?b=c", ":authority", "test.local", "x-forwarded-for", "1.2.3.4",
		"user-agent", "ua", "x-request-id", "id-1")
	want := `[2026-11-29T20:33:46.968Z] "GET /a?b=c HTTP/1.1" 200 - 3 13 12 4 "1.2.3.4" "ua" "id-1" "test.local" "127.0.0.1:55437"` + "\n"
	if got := evaluate(t, format.DefaultHTTP, c); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	tcp := &format.Context{Info: &stream.Info{Start: 5 * ms, StartWall: c.Info.StartWall, End: 18 * ms, BytesReceived: 47, BytesSent: 181}}
	tcp.Info.Upstream.Host = addr("[::1]:29080")
	want = `[2026-11-29T20:33:46.968Z] "- - -" 0 - 47 181 13 - "-" "-" "-" "-" "[::1]:29080"` + "\n"
	if got := evaluate(t, format.DefaultHTTP, tcp); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNoAllocations(t *testing.T) {
	c := request()
	c.Info.RequestHeaders = headers(":method", "GET", ":path", "/a?b=c", ":authority", "test.local", "user-agent", "ua", "x-q", `a"b`)
	text, err := format.ParseText(format.DefaultHTTP+`%PATH(NQ)% %QUERY_PARAM(b)% %START_TIME(%Y-%m-%d %s.%6f)% %DYNAMIC_METADATA(ns:s)% `+
		`%COALESCE({"operators": ["REQUESTED_SERVER_NAME", "PROTOCOL"]})% %RESPONSE_FLAGS% %GRPC_STATUS% %ROUTE_NAME%`, options())
	if err != nil {
		t.Fatal(err)
	}
	object, err := format.ParseJSON(map[string]any{"a": "%START_TIME%", "b": "%RESPONSE_CODE%", "c": "x %REQ(X-Q)% %DURATION%",
		"d": map[string]any{"e": "%REQ(X-Q)%", "f": []any{"%REQ(NONE)%", "%DYNAMIC_METADATA(ns:s)%"}}}, options())
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, 4096)
	for name, f := range map[string]*format.Format{"text": text, "json": object} {
		if n := testing.AllocsPerRun(100, func() { buf = f.Evaluate(buf[:0], c) }); n != 0 {
			t.Errorf("%s: %v allocations a line", name, n)
		}
	}
}

func BenchmarkDefaultFormat(b *testing.B) {
	f, err := format.ParseText(format.DefaultHTTP, options())
	if err != nil {
		b.Fatal(err)
	}
	c := request()
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buf = f.Evaluate(buf[:0], c)
	}
}

func BenchmarkJSON(b *testing.B) {
	f, err := format.ParseJSON(map[string]any{"start": "%START_TIME%", "method": "%REQ(:METHOD)%", "path": "%REQ(:PATH)%", "code": "%RESPONSE_CODE%",
		"flags": "%RESPONSE_FLAGS%", "rx": "%BYTES_RECEIVED%", "tx": "%BYTES_SENT%", "duration": "%DURATION%", "ua": "%REQ(USER-AGENT)%",
		"host": "%UPSTREAM_HOST%", "authority": "%REQ(:AUTHORITY)%", "id": "%REQ(X-REQUEST-ID)%"}, options())
	if err != nil {
		b.Fatal(err)
	}
	c := request()
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buf = f.Evaluate(buf[:0], c)
	}
}
