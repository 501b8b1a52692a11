package tls_inspector_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	inspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/extensions/filters/listener/tls_inspector"
	"github.com/dragoman-proxy/dragoman/proxy/proxytest/filtertest"
)

// wire is a net.Conn that keeps what is written and gives what it was filled with.
type wire struct {
	in  bytes.Reader
	out bytes.Buffer
}

func (w *wire) Read(b []byte) (int, error)       { return w.in.Read(b) }
func (w *wire) Write(b []byte) (int, error)      { return w.out.Write(b) }
func (w *wire) Close() error                     { return nil }
func (w *wire) LocalAddr() net.Addr              { return nil }
func (w *wire) RemoteAddr() net.Addr             { return nil }
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// helloOf returns the ClientHello that crypto/tls sends.
func helloOf(t testing.TB, c *tls.Config) []byte {
	t.Helper()
	w := &wire{}
	c.InsecureSkipVerify = true
	if err := tls.Client(w, c).Handshake(); !errors.Is(err, io.EOF) {
		t.Fatalf("the client did not wait for an answer: %v", err)
	}
	return w.out.Bytes()
}

// refragment puts the handshake bytes of records into records of at most n bytes.
func refragment(b []byte, n int) []byte {
	var msg, out []byte
	for len(b) > 0 {
		k := int(binary.BigEndian.Uint16(b[3:]))
		msg = append(msg, b[5:5+k]...)
		b = b[5+k:]
	}
	for len(msg) > 0 {
		k := min(n, len(msg))
		out = append(out, 22, 3, 1, byte(k>>8), byte(k))
		out = append(out, msg[:k]...)
		msg = msg[k:]
	}
	return out
}

func TestInspector(t *testing.T) {
	full := helloOf(t, &tls.Config{ServerName: "A.Example.com", NextProtos: []string{"h2", "http/1.1"}})
	bare := helloOf(t, &tls.Config{MaxVersion: tls.VersionTLS12})
	type want struct {
		Outcome   filtertest.Outcome
		Name      string
		ALPN      []string
		Transport string
		Stats     map[string]uint64
	}
	found := func(name string, alpn []string) want {
		w := want{filtertest.Passed, name, alpn, "tls", map[string]uint64{"tls_inspector.tls_found": 1}}
		if name == "" {
			w.Stats["tls_inspector.sni_not_found"] = 1
		} else {
			w.Stats["tls_inspector.sni_found"] = 1
		}
		if alpn == nil {
			w.Stats["tls_inspector.alpn_not_found"] = 1
		} else {
			w.Stats["tls_inspector.alpn_found"] = 1
		}
		return w
	}
	not := want{Outcome: filtertest.Passed, Stats: map[string]uint64{"tls_inspector.tls_not_found": 1}}
	closed := want{Outcome: filtertest.Closed, Stats: map[string]uint64{"tls_inspector.tls_not_found": 1}}
	tooLarge := want{Outcome: filtertest.Closed, Stats: map[string]uint64{"tls_inspector.client_hello_too_large": 1}}
	broken := append([]byte(nil), full...)
	broken[5+4+2+32] = 33 // a session id of 33 bytes
	for _, tc := range []struct {
		name string
		cfg  *inspectorv3.TlsInspector
		in   []byte
		want want
	}{
		{"name and protocols", nil, full, found("a.example.com", []string{"h2", "http/1.1"})},
		{"neither", nil, bare, found("", nil)},
		{"in records of one byte", nil, refragment(full, 1), found("a.example.com", []string{"h2", "http/1.1"})},
		{"in records of 100 bytes", nil, refragment(full, 100), found("a.example.com", []string{"h2", "http/1.1"})},
		{"followed by other bytes", nil, append(append([]byte(nil), full...), "more"...), found("a.example.com", []string{"h2", "http/1.1"})},
		{"HTTP", nil, []byte("GET / HTTP/1.1\r\n"), not},
		{"other record type", nil, []byte{23, 3, 3, 0, 1, 0}, not},
		{"other handshake message", nil, []byte{22, 3, 1, 0, 4, 2, 0, 0, 0}, not},
		{"empty record", nil, []byte{22, 3, 1, 0, 0}, not},
		{"record too long", nil, []byte{22, 3, 1, 0x40, 1}, not},
		{"message too long", nil, []byte{22, 3, 1, 0, 4, 1, 0, 0x40, 1}, not},
		{"four bytes", nil, full[:4], want{Outcome: filtertest.Waits, Stats: map[string]uint64{}}},
		{"all but one byte", nil, full[:len(full)-1], want{Outcome: filtertest.Waits, Stats: map[string]uint64{}}},
		{"malformed", nil, broken, not},
		{"malformed and strict", &inspectorv3.TlsInspector{CloseConnectionOnClientHelloParsingErrors: true}, broken, closed},
		{"not TLS and strict", &inspectorv3.TlsInspector{CloseConnectionOnClientHelloParsingErrors: true}, []byte("GET / HTTP/1.1\r\n"), not},
		{"at the limit", &inspectorv3.TlsInspector{MaxClientHelloSize: wrapperspb.UInt32(uint32(len(full)))}, full,
			found("a.example.com", []string{"h2", "http/1.1"})},
		{"one past the limit", &inspectorv3.TlsInspector{MaxClientHelloSize: wrapperspb.UInt32(uint32(len(full) - 1))}, full, tooLarge},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, whole := range []bool{true, false} {
				ctx := filtertest.NewContext()
				if tc.cfg == nil {
					tc.cfg = &inspectorv3.TlsInspector{}
				}
				c := ctx.Accept(t, &tls_inspector.Extension, tc.cfg, network.ConnInfo{})
				if whole {
					c.Receive(tc.in)
				} else {
					for i := range tc.in {
						c.Receive(tc.in[i : i+1])
					}
				}
				got := want{c.Outcome, c.Info().Said().ServerName, c.Info().Said().ALPN, c.Info().Said().Transport, ctx.Stats()}
				if d := cmp.Diff(tc.want, got); d != "" {
					t.Errorf("in one piece: %v (-want +got):\n%s", whole, d)
				}
				if !bytes.Equal(c.Unread, tc.in) {
					t.Error("the bytes did not stay in the connection")
				}
			}
		})
	}
}

// FuzzHello compares with crypto/tls as a server: a hello that it reads has the same name and protocols for us. However the bytes are
// cut, the verdict is the same, and it stands once it is given.
func FuzzHello(f *testing.F) {
	full := helloOf(f, &tls.Config{ServerName: "a.example.com", NextProtos: []string{"h2", "http/1.1"}})
	f.Add(full)
	f.Add(helloOf(f, &tls.Config{MaxVersion: tls.VersionTLS12}))
	f.Add(refragment(full, 7))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{22, 3, 1, 0, 4, 1, 0, 0, 0})
	ctx := filtertest.NewContext()
	mk, err := tls_inspector.Extension.New(fingerprinting(true, true), ctx)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 4096 {
			return
		}
		whole := ctx.AcceptWith(mk, network.ConnInfo{})
		whole.Receive(in)
		parts := ctx.AcceptWith(mk, network.ConnInfo{})
		for i := range in {
			parts.Receive(in[i : i+1])
			if i < len(in)-1 && parts.Outcome != filtertest.Waits {
				break
			}
		}
		if d := cmp.Diff(whole.Info().Said().Fingerprints, parts.Info().Said().Fingerprints); d != "" {
			t.Fatalf("byte by byte another client: %s", d)
		}
		if fp := whole.Info().Said().Fingerprints; fp != nil && !(hexadecimal.MatchString(fp.JA3) && ja4.MatchString(fp.JA4)) {
			t.Fatalf("%q and %q are no fingerprints", fp.JA3, fp.JA4)
		}
		if whole.Outcome != parts.Outcome || whole.Info().Said().ServerName != parts.Info().Said().ServerName || whole.Info().Said().Transport != parts.Info().Said().Transport {
			t.Fatalf("in one piece %v %q, byte by byte %v %q", whole.Outcome, whole.Info().Said().ServerName, parts.Outcome, parts.Info().Said().ServerName)
		}
		var seen *tls.ClientHelloInfo
		w := &wire{}
		w.in.Reset(in)
		_ = tls.Server(w, &tls.Config{GetConfigForClient: func(i *tls.ClientHelloInfo) (*tls.Config, error) {
			seen = i
			return nil, errors.New("enough")
		}}).HandshakeContext(context.Background())
		if seen == nil || len(seen.CipherSuites) == 0 { // BoringSSL wants a cipher suite, crypto/tls does not
			return
		}
		if whole.Info().Said().Transport != "tls" {
			t.Fatalf("crypto/tls reads a hello for %q, the filter says %v", seen.ServerName, whole.Outcome)
		}
		if got, want := whole.Info().Said().ServerName, string(bytes.ToLower([]byte(seen.ServerName))); got != want {
			t.Errorf("name %q, crypto/tls %q", got, want)
		}
		if d := cmp.Diff(seen.SupportedProtos, whole.Info().Said().ALPN); d != "" {
			t.Error(d)
		}
	})
}
