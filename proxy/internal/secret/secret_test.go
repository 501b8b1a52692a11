package secret_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/secret"
)

// pair makes a certificate and its key, in PEM.
func pair(t *testing.T) (chain, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}))
}

// TestCertificateErrors has them name the part of the pair that is wrong.
func TestCertificateErrors(t *testing.T) {
	inline := func(s string) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: s}}
	}
	named := &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: "[redacted]"}}
	bytes := &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte("[redacted]")}}
	chain, key := pair(t)
	_, other := pair(t)
	broken := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))
	const ofChain, ofKey = "certificate_chain: Failed to load certificate chain from <inline>: ", "private_key: Failed to load private key from <inline>, Cause: "
	for _, c := range []struct {
		name       string
		chain, key *corev3.DataSource
		want       string
	}{
		{"a pair", inline(chain), inline(key), ""},
		{"a dump's key", inline(chain), inline("[redacted]"), ofKey + "it is '[redacted]', as configuration dumps show"},
		{"a dump's key in bytes", inline(chain), bytes, ofKey + "it is '[redacted]'"},
		{"a dump's key in a file", inline(chain), named, "private_key: Failed to load private key from [redacted], Cause: it is '[redacted]'"},
		{"no PEM", inline(chain), inline("x"), ofKey},
		{"another one's key", inline(chain), inline(other), ofKey},
		{"no key", inline(chain), inline(chain), ofKey},
		{"a broken key", inline(chain), inline(broken), ofKey},
		{"no chain in PEM", inline("x"), inline(key), ofChain},
		{"a chain of broken base64", inline(strings.Replace(chain, "M", "", 1)), inline(key), ofChain + "the base64 between its BEGIN and END lines is broken"},
		{"a key of broken base64", inline(chain), inline(strings.Replace(key, "M", "", 1)), ofKey + "the base64 between its BEGIN and END lines is broken"},
		{"a chain that is not here", &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: "/proc/none"}}, inline(key), "certificate_chain.filename: Invalid path: /proc/none (no such file or directory)"},
		{"a key that is not here", inline(chain), &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: "none"}}, "private_key.filename: Invalid path: none (no such file or directory), seen from /"},
		{"a key for a chain", inline(key), inline(key), ofChain},
	} {
		_, err := secret.Certificate(&tlsv3.TlsCertificate{CertificateChain: c.chain, PrivateKey: c.key})
		text := ""
		if err != nil {
			text = err.Error()
		}
		if !strings.HasPrefix(text, c.want) || (c.want == "") != (err == nil) {
			t.Errorf("%s: %q", c.name, text)
		}
	}
}
