package tls_test

import (
	"bytes"
	stdtls "crypto/tls"
	"errors"
	"net"
	"testing"
)

// hello is a connection that keeps what is written and has nothing to read.
type hello struct {
	net.Conn
	in  *bytes.Reader
	out bytes.Buffer
}

var errEnd = errors.New("that is all")

func (h *hello) Read(p []byte) (int, error) {
	if h.in == nil || h.in.Len() == 0 {
		return 0, errEnd
	}
	return h.in.Read(p)
}

func (h *hello) Write(p []byte) (int, error) { return h.out.Write(p) }

// The cipher of TLS 1.3 is chosen by the library: AES with 128 bits before 256, whatever the client likes best, unless that is ChaCha20.
// Should this fail, docs/differs.md has a row to change.
func TestCipherOfTLS13(t *testing.T) {
	cert, key := ending(t, 4_000_000_000)
	pair, err := stdtls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	client := &hello{}
	_ = stdtls.Client(client, &stdtls.Config{MinVersion: stdtls.VersionTLS13, InsecureSkipVerify: true}).Handshake()
	sent := client.out.Bytes()
	aes128, aes256, chacha := []byte{0x13, 0x01}, []byte{0x13, 0x02}, []byte{0x13, 0x03}
	at := -1 // of the suites: three, in an order that depends on the machine
	for i := 43; i+6 < len(sent) && at < 0; i++ {
		if x := sent[i : i+6]; bytes.Contains(x, aes128) && bytes.Contains(x, aes256) && bytes.Contains(x, chacha) {
			at = i
		}
	}
	if at < 0 {
		t.Fatalf("no suites in % x", sent)
	}
	if bytes.HasPrefix(sent[at:], chacha) {
		t.Skip("this machine has no instructions for AES: the library likes ChaCha20 best")
	}
	for _, c := range []struct {
		offered [3][]byte
		want    []byte
	}{
		{[3][]byte{aes128, aes256, chacha}, aes128},
		{[3][]byte{aes256, aes128, chacha}, aes128}, // Envoy: the first
		{[3][]byte{aes256, chacha, aes128}, aes128}, // Envoy: the first
		{[3][]byte{chacha, aes256, aes128}, chacha},
	} {
		copy(sent[at:], bytes.Join(c.offered[:], nil))
		server := &hello{in: bytes.NewReader(sent)}
		_ = stdtls.Server(server, &stdtls.Config{Certificates: []stdtls.Certificate{pair}}).Handshake()
		answer := server.out.Bytes()
		const session = 5 + 4 + 2 + 32 // record, message, version, random
		if len(answer) < session+1 || len(answer) < session+1+int(answer[session])+2 {
			t.Fatalf("% x", answer)
		}
		if got := answer[session+1+int(answer[session]):][:2]; !bytes.Equal(got, c.want) {
			t.Errorf("% x of % x, want % x", got, c.offered, c.want)
		}
	}
}
