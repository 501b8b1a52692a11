package scripttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"iter"
	"math/big"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy/internal/event/sim"
)

// receiver is told of what comes over a link.
type receiver interface {
	open()
	data(b []byte)
	end()
	closed(e syscall.Errno)
}

// link is a peer's connection as plain bytes, through TLS where there is a configuration for it. It is the script of its sim.Conn,
// and the net.Conn under crypto/tls, whose handshake is a coroutine of the test's goroutine.
type link struct {
	c      *sim.Conn
	to     receiver
	config *tls.Config // nil: no TLS
	server bool

	tc    *tls.Conn
	next  func() (struct{}, bool)
	stop  func()
	wait  func(struct{}) bool
	in    []byte // of ciphertext
	early []byte // written before the handshake was done
	up    bool
	err   error
}

// Open implements sim.Script.
func (l *link) Open(c *sim.Conn) {
	l.c = c
	if l.config == nil {
		l.up = true
		l.ready()
		return
	}
	if l.server {
		l.tc = tls.Server(l, l.config)
	} else {
		l.tc = tls.Client(l, l.config)
	}
	l.next, l.stop = iter.Pull(func(yield func(struct{}) bool) {
		l.wait = yield
		l.err = l.tc.Handshake()
		l.wait = nil
	})
	l.shake()
}

// shake goes on with the handshake.
func (l *link) shake() {
	if _, more := l.next(); more {
		return
	}
	if l.err != nil {
		l.c.Close()
		return
	}
	l.up = true
	l.ready()
}

func (l *link) ready() {
	l.to.open()
	early := l.early
	l.early = nil
	if len(early) > 0 {
		l.write(early)
	}
}

// Data implements sim.Script.
func (l *link) Data(_ *sim.Conn, b []byte) {
	if l.config == nil {
		l.to.data(b)
		return
	}
	l.in = append(l.in, b...)
	if !l.up {
		if l.shake(); !l.up {
			return
		}
	}
	l.read()
}

// read takes apart what has come.
func (l *link) read() {
	var buf [16 << 10]byte
	for !l.c.IsClosed() {
		n, err := l.tc.Read(buf[:])
		if n > 0 {
			l.to.data(buf[:n])
		}
		if err == io.EOF {
			l.to.end()
		}
		if err != nil {
			return
		}
	}
}

// End implements sim.Script.
func (l *link) End(*sim.Conn) { l.to.end() }

// Closed implements sim.Script.
func (l *link) Closed(_ *sim.Conn, e syscall.Errno) {
	if l.stop != nil {
		l.stop()
	}
	l.to.closed(e)
}

// write sends plain bytes.
func (l *link) write(b []byte) {
	switch {
	case !l.up:
		l.early = append(l.early, b...)
	case l.config == nil:
		l.c.Write(b)
	default:
		_, _ = l.tc.Write(b)
	}
}

// close ends the connection, after all that was written and with TLS's own end.
func (l *link) close() {
	if l.up && l.tc != nil {
		_ = l.tc.CloseWrite()
	}
	l.c.Close()
}

// Read is crypto/tls's.
func (l *link) Read(p []byte) (int, error) {
	for len(l.in) == 0 {
		if l.wait == nil {
			return 0, errAgain
		}
		if !l.wait(struct{}{}) {
			return 0, io.EOF
		}
	}
	n := copy(p, l.in)
	l.in = l.in[n:]
	return n, nil
}

// again is a temporary error, which crypto/tls takes well after the handshake.
type again struct{}

func (again) Error() string   { return "no more bytes for now" }
func (again) Timeout() bool   { return true }
func (again) Temporary() bool { return true }

var errAgain net.Error = again{}

// The rest of net.Conn.

func (l *link) Write(p []byte) (int, error)      { l.c.Write(p); return len(p), nil }
func (l *link) Close() error                     { return nil }
func (l *link) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (l *link) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (l *link) SetDeadline(time.Time) error      { return nil }
func (l *link) SetReadDeadline(time.Time) error  { return nil }
func (l *link) SetWriteDeadline(time.Time) error { return nil }

// pair is a certificate and its key in PEM.
type pair struct {
	cert, key string
	tls       tls.Certificate
}

// identity is the proxy's certificate and the upstreams', which is its own authority. It is made once per process.
var identity = sync.OnceValue(func() (p pair) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"h.test", "up.test"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(4e9, 0), // the simulated clock is not ours
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	must(err)
	kd, err := x509.MarshalPKCS8PrivateKey(k)
	must(err)
	p.cert = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	p.key = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: kd}))
	p.tls = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: k}
	return p
})

// must is for what cannot fail.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// quote writes a text as one of JSON, which is one of YAML too.
func quote(s string) string {
	b, err := json.Marshal(s)
	must(err)
	return string(b)
}

// config is the TLS of a peer that speaks p; nil: none.
func (p Protocol) config(server bool) *tls.Config {
	if !p.TLS() {
		return nil
	}
	c := &tls.Config{NextProtos: []string{"http/1.1"}, ServerName: "h.test", InsecureSkipVerify: true}
	if p.Streams() {
		c.NextProtos = []string{"h2"}
	}
	if server {
		c.Certificates = []tls.Certificate{identity().tls}
	}
	return c
}
