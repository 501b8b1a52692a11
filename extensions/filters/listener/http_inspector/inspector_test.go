package http_inspector_test

import (
	"strings"
	"testing"

	inspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/http_inspector/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/extensions/filters/listener/http_inspector"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest/filtertest"
)

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

func TestInspector(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		outcome  filtertest.Outcome
		alpn     []string
		stat     string
	}{
		{"1.1", "GET /a?b HTTP/1.1\r\n", filtertest.Passed, []string{"http/1.1"}, "http11_found"},
		{"1.1 with LF", "GET /a?b HTTP/1.1\n", filtertest.Passed, []string{"http/1.1"}, "http11_found"},
		{"1.0", "POST / HTTP/1.0\r\nHost: a\r\n", filtertest.Passed, []string{"http/1.0"}, "http10_found"},
		{"2", preface, filtertest.Passed, []string{"h2c"}, "http2_found"},
		{"a method that begins like the preface", "PRINT / HTTP/1.1\r\n", filtertest.Passed, []string{"http/1.1"}, "http11_found"},
		{"0.9", "GET /\r\n", filtertest.Passed, nil, "http_not_found"},
		{"version 3.0", "GET / HTTP/3.0\r\n", filtertest.Passed, nil, "http_not_found"},
		{"no method", " / HTTP/1.1\r\n", filtertest.Passed, nil, "http_not_found"},
		{"a byte that no method has", "\x16\x03\x01", filtertest.Passed, nil, "http_not_found"},
		{"a comma in the method", "GE,T", filtertest.Passed, nil, "http_not_found"},
		{"half a method", "GE", filtertest.Waits, nil, ""},
		{"half a line", "GET / HTTP/1.1\r", filtertest.Waits, nil, ""},
		{"half a preface", preface[:20], filtertest.Waits, nil, ""},
		{"a line at the limit", "GET /" + strings.Repeat("a", 64<<10-5-11) + " HTTP/1.1\r\n", filtertest.Passed, []string{"http/1.1"}, "http11_found"},
		{"a line past the limit", "GET /" + strings.Repeat("a", 64<<10), filtertest.Passed, nil, "http_not_found"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, whole := range []bool{true, false} {
				if !whole && len(tc.in) > 1000 {
					continue
				}
				ctx := filtertest.NewContext()
				c := ctx.Accept(t, &http_inspector.Extension, &inspectorv3.HttpInspector{}, network.ConnInfo{})
				if whole {
					c.Receive([]byte(tc.in))
				} else {
					for i := range tc.in {
						c.Receive([]byte(tc.in[i : i+1]))
					}
				}
				want := map[string]uint64{}
				if tc.stat != "" {
					want["http_inspector."+tc.stat] = 1
				}
				if c.Outcome != tc.outcome {
					t.Errorf("it %v, want %v", c.Outcome, tc.outcome)
				}
				if d := cmp.Diff(tc.alpn, c.Info().Said().ALPN); d != "" {
					t.Error(d)
				}
				if d := cmp.Diff(want, ctx.Stats()); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

// What another filter took for TLS is left alone.
func TestTLSIsLeftAlone(t *testing.T) {
	ctx := filtertest.NewContext()
	var info network.ConnInfo
	info.SetHello().Transport, info.SetHello().ALPN = "tls", []string{"h2"}
	c := ctx.Accept(t, &http_inspector.Extension, &inspectorv3.HttpInspector{}, info)
	if c.Outcome != filtertest.Passed || c.Info().Said().ALPN[0] != "h2" || len(ctx.Stats()) > 0 {
		t.Errorf("it %v, %v, %v", c.Outcome, c.Info().Said().ALPN, ctx.Stats())
	}
}

// FuzzInspector checks that the verdict does not depend on how the bytes are cut.
func FuzzInspector(f *testing.F) {
	for _, s := range []string{"GET / HTTP/1.1\r\n", "POST /a HTTP/1.0\n", preface, "\x16\x03\x01", "PRI * HTTP/2.0\r\n\r\nXX"} {
		f.Add([]byte(s))
	}
	ctx := filtertest.NewContext()
	mk, err := http_inspector.Extension.New(&inspectorv3.HttpInspector{}, ctx)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, parts := ctx.AcceptWith(mk, network.ConnInfo{}), ctx.AcceptWith(mk, network.ConnInfo{})
		whole.Receive(in)
		for i := range in {
			parts.Receive(in[i : i+1])
		}
		if whole.Outcome != parts.Outcome {
			t.Fatalf("in one piece it %v, byte by byte it %v", whole.Outcome, parts.Outcome)
		}
		if d := cmp.Diff(whole.Info().Said().ALPN, parts.Info().Said().ALPN); d != "" {
			t.Error(d)
		}
	})
}
