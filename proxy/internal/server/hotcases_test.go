package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// hotCase is a way of a request through the proxy.
type hotCase struct {
	name string
	setup
	// client prepares the connection; its result gives the bytes of the next request.
	client  func(tb testing.TB, h *hot) (next func() []byte)
	limited bool
}

const http2Upstream = `typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}`

const tlsUpstream = `transport_socket:
      name: tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        common_tls_context: {tls_params: {tls_maximum_protocol_version: VERSION}}`

// poolsForget: sync.Pool cannot be relied on.
var poolsForget bool

// hotCases are all of them. requests is how many the limited ones must have ready.
func hotCases(tb testing.TB, requests int) []hotCase {
	req := []byte(request)
	h1 := func(testing.TB, *hot) func() []byte { return func() []byte { return req } }
	direct := func(testing.TB, *hot) func() []byte {
		req := []byte("GET /direct HTTP/1.1\r\nHost: 127.0.0.1:18080\r\n\r\n")
		return func() []byte { return req }
	}
	cert, chain := hotCertificate(tb)
	secure := func() upstreamPeer { return newTLSPeer(cert, answer, requests) }
	h2 := func() upstreamPeer { return newH2Peer() }
	tlsClient := func(tb testing.TB, h *hot) func() []byte { return startTLS(tb, h, requests) }
	return []hotCase{
		{name: "http1", client: h1},
		{name: "http1 direct", client: direct},
		{name: "http1 logged", client: h1, setup: setup{log: strings.ReplaceAll(logConfig, "PATH", os.DevNull)}},
		{name: "http2 to http1", client: startHTTP2, setup: setup{codec: "HTTP2"}},
		{name: "http1 to http2", client: h1, setup: setup{upstream: http2Upstream, newPeer: h2}},
		{name: "http2 to http2", client: startHTTP2, setup: setup{codec: "HTTP2", upstream: http2Upstream, newPeer: h2}},
		{name: "http1 over tls", client: tlsClient, limited: true, setup: setup{downstream: chain}},
		{name: "http1 to http1 over tls 1.2", client: h1, limited: true,
			setup: setup{upstream: strings.ReplaceAll(tlsUpstream, "VERSION", "TLSv1_2"), newPeer: secure}},
		{name: "http1 to http1 over tls 1.3", client: h1, limited: true,
			setup: setup{upstream: strings.ReplaceAll(tlsUpstream, "VERSION", "TLSv1_3"), newPeer: secure}},
	}
}

// startHTTP2 sends the preface and opens the connection's window wide. A request is always the same block, in which only the stream
// differs: nothing of it goes into a table.
func startHTTP2(tb testing.TB, h *hot) func() []byte {
	var b bytes.Buffer
	b.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&b, nil)
	check(tb, f.WriteSettings(), f.WriteWindowUpdate(0, 1<<31-1-65535))
	h.d.push(h.c, bytes.Clone(b.Bytes()))
	h.steps(3)
	b.Reset()
	check(tb, f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true, BlockFragment: block(
		":method", "GET", ":scheme", "http", ":path", "/1k", ":authority", "127.0.0.1:18080", "user-agent", "Mozilla/5.0 (X11; Linux x86_64)",
		"accept", "text/html,application/xhtml+xml", "cookie", "session=0123456789abcdef0123456789abcdef")}))
	req, id := b.Bytes(), uint32(1)
	return func() []byte {
		binary.BigEndian.PutUint32(req[5:], id)
		id += 2
		return req
	}
}

// block is a header block of literals that are never indexed.
func block(fields ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i < len(fields); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1], Sensitive: true})
	}
	return b.Bytes()
}

// h2Peer is an HTTP/2 server that answers every request with 1 KiB.
type h2Peer struct {
	in, out []byte
	preface bool
	answer  []byte // HEADERS and DATA, with room for the stream in both
	data    int    // where DATA begins in answer
}

func newH2Peer() *h2Peer {
	var b bytes.Buffer
	f := http2.NewFramer(&b, nil)
	_ = f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1000})
	_ = f.WriteSettingsAck()
	p := &h2Peer{out: bytes.Clone(b.Bytes())}
	b.Reset()
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: block(":status", "200", "content-type", "text/plain")})
	p.data = b.Len()
	_ = f.WriteData(1, true, bytes.Repeat([]byte("x"), 1024))
	p.answer = b.Bytes()
	return p
}

const frameHeaderSize = 9

func (p *h2Peer) serve(runs [][]byte) []byte {
	out := p.out[:0]
	for _, r := range runs {
		p.in = append(p.in, r...)
	}
	b := p.in
	if !p.preface {
		b, p.preface, out = b[len(http2.ClientPreface):], true, p.out
	}
	for len(b) >= frameHeaderSize {
		n := frameHeaderSize + int(b[0])<<16 + int(b[1])<<8 + int(b[2])
		if len(b) < n {
			break
		}
		if http2.FrameType(b[3]) == http2.FrameHeaders {
			copy(p.answer[5:9], b[5:9])
			copy(p.answer[p.data+5:p.data+9], b[5:9])
			out = append(out, p.answer...)
		}
		b = b[n:]
	}
	p.in, p.out = p.in[:copy(p.in, b)], out
	return out
}

// memConn is the net.Conn of crypto/tls here: bytes in, bytes out; a Read without bytes says so, or waits for more during a handshake.
type memConn struct {
	net.Conn
	in, out []byte
	left    int         // of the record that is being read
	more    func() bool // waits for more; nil: fails
}

type noBytes struct{}

func (noBytes) Error() string   { return "nothing" }
func (noBytes) Timeout() bool   { return true }
func (noBytes) Temporary() bool { return true }

var errNothing net.Error = noBytes{}

func (m *memConn) Read(p []byte) (int, error) {
	for len(m.in) == 0 {
		if m.more == nil {
			return 0, errNothing
		}
		if !m.more() {
			return 0, io.EOF
		}
	}
	if m.left == 0 {
		m.left = 5 + int(m.in[3])<<8 + int(m.in[4]) // a record at a time: what follows a handshake stays here
	}
	n := copy(p, m.in[:min(m.left, len(m.in))])
	m.in, m.left = m.in[:copy(m.in, m.in[n:])], m.left-n
	return n, nil
}

func (m *memConn) Write(p []byte) (int, error) {
	m.out = append(m.out, p...)
	return len(p), nil
}

func (m *memConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (m *memConn) SetWriteDeadline(time.Time) error { return nil }

// startTLS does a handshake over the wire, and encrypts n requests beforehand: what is counted later is the proxy's alone.
func startTLS(tb testing.TB, h *hot, n int) func() []byte {
	m := &memConn{}
	c := tls.Client(m, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
	m.more = func() bool {
		h.d.keep = true
		h.d.push(h.c, bytes.Clone(m.out))
		m.out = m.out[:0]
		h.steps(3)
		m.in, h.d.last = append(m.in, h.d.last...), nil
		return len(m.in) > 0
	}
	check(tb, c.Handshake())
	h.d.keep = false
	// The last message of the handshake, cut into pieces, and a first request with it: all of it must arrive.
	finished := bytes.Clone(m.out)
	for _, b := range finished[:len(finished)-1] {
		h.d.push(h.c, []byte{b})
		h.steps(1)
	}
	h.d.push(h.c, finished[len(finished)-1:])
	h.steps(2)
	m.out = nil
	list := encrypt(c, m, request, n)
	return func() []byte {
		b := list[0]
		list = list[1:]
		return b
	}
}

// tlsPeer is a TLS server that answers every write with the same, n times. What it answers is encrypted beforehand, and what it is
// asked is not decrypted: what is counted is the proxy's alone.
type tlsPeer struct {
	m       memConn
	c       *tls.Conn
	answers [][]byte
	// The handshake runs on a goroutine; only one of the two sides runs at a time.
	wake, asleep chan struct{}
	done         bool
}

func newTLSPeer(cert tls.Certificate, answer string, n int) *tlsPeer {
	p := &tlsPeer{wake: make(chan struct{}), asleep: make(chan struct{})}
	p.c = tls.Server(&p.m, &tls.Config{Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: true})
	p.m.more = func() bool {
		p.asleep <- struct{}{}
		<-p.wake
		return true
	}
	go func() {
		<-p.wake
		if p.c.Handshake() == nil {
			last := p.m.out
			p.m.out = nil
			p.answers = encrypt(p.c, &p.m, answer, n)
			p.m.out = last
		}
		p.done = true
		p.asleep <- struct{}{}
	}()
	return p
}

// encrypt makes n records of text. Nothing may wait in m.
func encrypt(c *tls.Conn, m *memConn, text string, n int) [][]byte {
	list := make([][]byte, n)
	for i := range list {
		_, _ = io.WriteString(c, text)
		list[i], m.out = m.out, nil
	}
	return list
}

func (p *tlsPeer) serve(runs [][]byte) []byte {
	if p.done {
		b := p.answers[0]
		p.answers = p.answers[1:]
		return b
	}
	p.m.out = nil
	for _, r := range runs {
		p.m.in = append(p.m.in, r...)
	}
	p.wake <- struct{}{}
	<-p.asleep
	if p.done && len(p.m.in) > 0 {
		return p.serve(nil)
	}
	return p.m.out
}

func check(tb testing.TB, errs ...error) {
	tb.Helper()
	if err := errors.Join(errs...); err != nil {
		tb.Fatal(err)
	}
}

// hotCertificate makes a certificate, and the filter chain's settings that show it.
func hotCertificate(tb testing.TB) (tls.Certificate, string) {
	tb.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(tb, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hot"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	check(tb, err)
	key, err := x509.MarshalPKCS8PrivateKey(k)
	check(tb, err)
	dir := tb.TempDir()
	check(tb, os.WriteFile(dir+"/cert", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(dir+"/key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: k}, fmt.Sprintf(`transport_socket:
        name: tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            tls_certificates: [{certificate_chain: {filename: %s/cert}, private_key: {filename: %s/key}}]`, dir, dir)
}
