package secret_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/secret"
)

// Certificates with weak keys are refused, as Envoy refuses them.
func TestWeakKeys(t *testing.T) {
	curve := func(c elliptic.Curve) func() (crypto.Signer, error) {
		return func() (crypto.Signer, error) { return ecdsa.GenerateKey(c, rand.Reader) }
	}
	bits := func(n int) func() (crypto.Signer, error) {
		return func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, n) }
	}
	for _, c := range []struct {
		name, want string
		make       func() (crypto.Signer, error)
	}{
		{"rsa 1024", "Failed to load certificate chain from <inline>, only RSA certificates with 2048-bit or larger keys are supported", bits(1024)},
		{"rsa 2040", "only RSA certificates with 2048-bit or larger keys are supported", bits(2040)},
		{"rsa 2048", "", bits(2048)},
		{"P-224", "Failed to load certificate chain from <inline>, only P-256, P-384 or P-521 ECDSA certificates are supported", curve(elliptic.P224())},
		{"P-256", "", curve(elliptic.P256())},
		{"P-384", "", curve(elliptic.P384())},
		{"P-521", "", curve(elliptic.P521())},
	} {
		k, err := c.make()
		if err != nil {
			t.Fatal(err)
		}
		cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(4_000_000_000, 0)}
		der, err := x509.CreateCertificate(rand.Reader, cert, cert, k.Public(), k)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := x509.MarshalPKCS8PrivateKey(k)
		if err != nil {
			t.Fatal(err)
		}
		text := func(kind string, b []byte) *corev3.DataSource {
			return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b})}}
		}
		_, err = secret.Certificate(&tlsv3.TlsCertificate{CertificateChain: text("CERTIFICATE", der), PrivateKey: text("PRIVATE KEY", raw)})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
