package tls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sort"
)

// chooseCertificate makes cfg choose among its certificates as Envoy does, and each connection remember which one it got: the first that
// is for the name that the client asks for and that it can use, ECDSA before RSA; else the first that it can use.
func chooseCertificate(cfg *tls.Config) {
	certs := cfg.Certificates
	sort.SliceStable(certs, func(i, j int) bool { return isECDSA(&certs[i]) && !isECDSA(&certs[j]) })
	cfg.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		c := choose(certs, hello)
		if c == nil {
			return nil, errors.New("tls: no certificate for the client")
		}
		if t, ok := hello.Conn.(*Transport); ok {
			t.local = c.Leaf
		}
		return c, nil
	}
	cfg.Certificates = nil // crypto/tls asks GetCertificate then
}

func choose(certs []tls.Certificate, hello *tls.ClientHelloInfo) *tls.Certificate {
	for i := range certs {
		if hello.SupportsCertificate(&certs[i]) == nil {
			return &certs[i]
		}
	}
	any := *hello
	any.ServerName = ""
	for i := range certs {
		if any.SupportsCertificate(&certs[i]) == nil {
			return &certs[i]
		}
	}
	if len(certs) == 0 {
		return nil
	}
	return &certs[0] // crypto/tls tells the client why it does not fit
}

func isECDSA(c *tls.Certificate) bool {
	return c.Leaf != nil && c.Leaf.PublicKeyAlgorithm == x509.ECDSA
}
