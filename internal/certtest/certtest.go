// Package certtest makes certificates for tests. It runs on the goroutine that calls it, and keeps nothing.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
)

// SelfSigned makes a certificate of a template, which signs itself, and its key, both in PEM. The template needs no serial number.
func SelfSigned(tb testing.TB, template *x509.Certificate) (cert, key string) {
	tb.Helper()
	if template.SerialNumber == nil {
		template.SerialNumber = big.NewInt(1)
	}
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		tb.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		tb.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}
