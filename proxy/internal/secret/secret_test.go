package secret_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/dragoman-proxy/dragoman/internal/certtest"
	"github.com/dragoman-proxy/dragoman/proxy/internal/secret"
)

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// rsaDER makes a private key of RSA, in PKCS#8.
func rsaDER(t *testing.T) []byte {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// TestCertificateErrors has them name the part of the pair that is wrong.
func TestCertificateErrors(t *testing.T) {
	inline := func(s string) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: s}}
	}
	named := &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: "[redacted]"}}
	bytes := &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte("[redacted]")}}
	chain, key := certtest.SelfSigned(t, &x509.Certificate{})
	_, other := certtest.SelfSigned(t, &x509.Certificate{})
	broken := block("PRIVATE KEY", []byte("x"))
	rsaKey := rsaDER(t)
	chainBlock, _ := pem.Decode([]byte(chain))
	chainDER := chainBlock.Bytes
	der := func(b []byte) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: b}}
	}
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
		{"no PEM", inline(chain), inline("x"), ofKey + "it holds no private key in PEM, which begins with a line '-----BEGIN PRIVATE KEY-----' (NO_START_LINE)"},
		{"another one's key", inline(chain), inline(other), ofKey + "it does not belong to the certificate, which has another public key (KEY_VALUES_MISMATCH)"},
		{"another kind of key", inline(chain), inline(block("PRIVATE KEY", rsaKey)), ofKey + "it does not belong to the certificate, whose key is ECDSA: this one is RSA (KEY_TYPE_MISMATCH)"},
		{"an encrypted key", inline(chain), inline(block("ENCRYPTED PRIVATE KEY", []byte("x"))), ofKey + "the key is encrypted and wants its password (BAD_PASSWORD_READ)"},
		{"an encrypted key of old", inline(chain), inline("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\neA==\n-----END RSA PRIVATE KEY-----\n"), ofKey + "the key is encrypted and wants its password"},
		{"no key", inline(chain), inline(chain), ofKey + "it holds a certificate and no private key (NO_START_LINE)"},
		{"a public key", inline(chain), inline(block("PUBLIC KEY", nil)), ofKey + "it holds a public key and no private key"},
		{"a key in DER", inline(chain), der(rsaKey), ofKey + "it is a private key in DER and not in PEM: 'openssl pkey -inform der"},
		{"a broken key", inline(chain), inline(broken), ofKey + "it cannot be read: failed to parse private key"},
		{"an empty key", inline(chain), der([]byte{}), "private_key: Failed to load incomplete private key from path: <inline>; there is nothing in it"},
		{"an empty chain", der([]byte{}), inline(key), "certificate_chain: Failed to load incomplete certificate from <inline>: certificate chain not set; there is nothing in it"},
		{"no key at all", inline(chain), nil, "Failed to load incomplete private key from path: <inline>; private_key is missing"},
		{"no chain in PEM", inline("x"), inline(key), ofChain + "it holds no certificate in PEM"},
		{"a chain in DER", der(chainDER), inline(key), ofChain + "it is a certificate in DER and not in PEM: 'openssl x509 -inform der"},
		{"an archive", der([]byte("\x30\x41\x02\x01\x03\x04\x3c" + strings.Repeat("x", 60))), inline(key), ofChain + "it is an archive in PKCS#12"},
		{"a request", inline(block("CERTIFICATE REQUEST", nil)), inline(key), ofChain + "it holds a request for a certificate and no certificate"},
		{"a cut chain", inline(chain[:200]), inline(key), ofChain + "the block that begins at line 1 has no end"},
		{"a block that is no certificate", inline(block("CERTIFICATE", []byte("x"))), inline(key), ofChain + "its first certificate cannot be read: malformed certificate"},
		{"a chain of broken base64", inline(strings.Replace(chain, "M", "", 1)), inline(key), ofChain + "the base64 between the BEGIN and END lines of the block at line 1 is broken"},
		{"a key of broken base64", inline(chain), inline(strings.Replace(key, "M", "", 1)), ofKey + "the base64 between the BEGIN and END lines of the block at line 1 is broken"},
		{"a chain that is not here", &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: "/proc/none"}}, inline(key), "certificate_chain.filename: Failed to load incomplete certificate: Invalid path: /proc/none (no such file or directory)"},
		{"a key that is not here", inline(chain), &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: "none"}}, "private_key.filename: Failed to load incomplete private key: Invalid path: none (no such file or directory), seen from /"},
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

// TestTrustErrors: as in Envoy one certificate of a bundle that cannot be read refuses it, and what is none says nothing.
func TestTrustErrors(t *testing.T) {
	chain, key := certtest.SelfSigned(t, &x509.Certificate{})
	next := strconv.Itoa(1 + strings.Count(chain, "\n"))
	for _, c := range []struct{ name, text, want string }{
		{"a certificate", chain, ""},
		{"two and text between", chain + "text\n" + chain, ""},
		{"a key besides", key + chain, ""},
		{"of another name", strings.ReplaceAll(chain, " CERT", " X509 CERT"), ""},
		{"with trust behind it", strings.ReplaceAll(chain, " CERT", " TRUSTED CERT"), ""},
		{"nothing", "", "it is empty"},
		{"text", "x", "it holds no certificate in PEM, which begins with a line '-----BEGIN CERTIFICATE-----'"},
		{"a key", key, "it holds a private key and no certificate"},
		{"junk behind", chain + block("CERTIFICATE", []byte("x")), "what stands as a certificate at line " + next + " is none"},
		{"junk before", block("CERTIFICATE", []byte("x")) + chain, "what stands as a certificate at line 1 is none"},
		{"a list of revoked ones that is none", chain + block("X509 CRL", []byte("x")), "the list of revoked certificates at line " + next + " cannot be read"},
		{"broken base64", chain + strings.Replace(chain, "M", "", 1), "the base64 between the BEGIN and END lines of the block at line " + next + " is broken"},
		{"no end", chain + chain[:200] + "\n" + chain, "the block that begins at line " + next + " has no end"},
	} {
		_, _, err := secret.Roots(&corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: c.text}})
		switch text := fmt.Sprint(err); {
		case c.want == "":
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		case !strings.HasPrefix(text, "Failed to load trusted CA certificates from <inline>: "+c.want):
			t.Errorf("%s: %q", c.name, text)
		}
	}
}
