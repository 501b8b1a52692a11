package tls_inspector_test

import (
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"

	inspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/extensions/filters/listener/tls_inspector"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest/filtertest"
)

// The shapes of fingerprints.
var (
	hexadecimal = regexp.MustCompile(`^[0-9a-f]{32}$`)
	ja4         = regexp.MustCompile(`^t(00|10|11|12|13)[di][0-9]{4}[0-9A-Za-z]{2}_[0-9a-f]{12}_[0-9a-f]{12}$`)
)

func fingerprinting(ja3, ja4 bool) *inspectorv3.TlsInspector {
	return &inspectorv3.TlsInspector{EnableJa3Fingerprinting: wrapperspb.Bool(ja3), EnableJa4Fingerprinting: wrapperspb.Bool(ja4)}
}

// Fingerprints are those that Envoy 1.40 gave the same bytes.
func TestFingerprints(t *testing.T) {
	text, err := os.ReadFile("testdata/fingerprints.txt")
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		in, err := hex.DecodeString(f[3])
		if err != nil {
			t.Fatal(err)
		}
		for _, ask := range [][2]bool{{true, true}, {true, false}, {false, true}, {false, false}} {
			c := filtertest.NewContext().Accept(t, &tls_inspector.Extension, fingerprinting(ask[0], ask[1]), network.ConnInfo{})
			c.Receive(in)
			got := [2]string{"-", "-"}
			if x := c.Info().Said().Fingerprints; x != nil {
				got = [2]string{x.JA3, x.JA4}
			}
			want := [2]string{f[1], f[2]}
			for i, asked := range ask {
				switch {
				case !ask[0] && !ask[1]:
					want[i] = "-"
				case !asked && want[i] != "-":
					want[i] = ""
				}
			}
			if got != want {
				t.Errorf("%s, asked for %v: %q, want %q", f[0], ask, got, want)
			}
		}
		tested++
	}
	if tested < 80 {
		t.Errorf("only %d were tested", tested)
	}
}

// No extension may come twice, however many there are.
func TestExtensionsComeOnce(t *testing.T) {
	hello := func(kinds ...int) []byte {
		var exts []byte
		for _, k := range kinds {
			exts = append(exts, byte(k>>8), byte(k), 0, 0)
		}
		body := append(make([]byte, 0, 64), 3, 3)
		body = append(body, make([]byte, 32)...)
		body = append(body, 0, 0, 2, 0x13, 1, 1, 0, byte(len(exts)>>8), byte(len(exts)))
		body = append(body, exts...)
		n := len(body)
		msg := append([]byte{1, 0, byte(n >> 8), byte(n)}, body...)
		return append([]byte{22, 3, 1, byte(len(msg) >> 8), byte(len(msg))}, msg...)
	}
	many := make([]int, 200)
	for i := range many {
		many[i] = 1000 + 7*i
	}
	for name, c := range map[string]struct {
		kinds []int
		tls   bool
	}{
		"none": {nil, true}, "two": {[]int{100, 101}, true}, "twice": {[]int{100, 100}, false}, "32": {many[:32], true}, "33": {many[:33], true}, "200": {many, true},
		"33, the first again": {append(many[:33:33], many[0]), false}, "33, the last again": {append(many[:33:33], many[32]), false},
		"32, one of them again": {append(many[:32:32], many[31]), false}, "200, one of them again": {append(many[:200:200], many[150]), false},
	} {
		x := filtertest.NewContext().Accept(t, &tls_inspector.Extension, fingerprinting(true, true), network.ConnInfo{})
		x.Receive(hello(c.kinds...))
		said := x.Info().Said()
		if (said.Transport == "tls") != c.tls || (said.Fingerprints != nil) != c.tls {
			t.Errorf("%s: %+v", name, said)
		}
	}
}
