package hcm

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

// CertMode says what happens to x-forwarded-client-cert (forward_client_cert_details).
type CertMode uint8

// The modes, in the order of Envoy's enum.
const (
	SanitizeCert CertMode = iota
	ForwardCert
	AppendCert
	SetCert
	AlwaysForwardCert
)

// ClientCert is what is told of the client's certificate.
type ClientCert struct {
	Mode                                   CertMode
	Subject, Cert, Chain, DNS, URI, Issuer bool
}

// clientCert applies forward_client_cert_details.
func (s *Stream) clientCert(head *http.HeaderMap) {
	c := &s.h.cfg.ClientCert
	if c.Mode == AlwaysForwardCert {
		return
	}
	t := s.h.c.Info.TLS
	if c.Mode == SanitizeCert || t == nil || len(t.Peer) == 0 {
		head.Remove(http.XForwardedClientCert)
		return
	}
	if c.Mode == ForwardCert {
		return
	}
	if s.h.certText == "" {
		s.h.certText = c.text(t)
	}
	if c.Mode == AppendCert {
		appendList(head, http.XForwardedClientCert, ",", s.h.certText)
		return
	}
	head.SetConst(http.XForwardedClientCert, s.h.certText)
}

// text writes an element of x-forwarded-client-cert. It is made once a connection.
func (c *ClientCert) text(t *network.TLSInfo) string {
	var parts []string
	if t.Local != nil {
		for _, u := range t.Local.URIs {
			parts = append(parts, "By="+u.String())
		}
	}
	leaf := t.Peer[0]
	sum := sha256.Sum256(leaf.Raw)
	parts = append(parts, "Hash="+hex.EncodeToString(sum[:]))
	if c.Cert {
		parts = append(parts, `Cert="`+escapedPEM(leaf)+`"`)
	}
	if c.Chain {
		parts = append(parts, `Chain="`+escapedPEM(t.Peer...)+`"`)
	}
	if c.Subject {
		parts = append(parts, `Subject="`+format.DistinguishedName(leaf.RawSubject)+`"`)
	}
	if c.Issuer {
		parts = append(parts, `Issuer="`+format.DistinguishedName(leaf.RawIssuer)+`"`)
	}
	if c.URI {
		if len(leaf.URIs) == 0 {
			parts = append(parts, "URI=")
		}
		for _, u := range leaf.URIs {
			parts = append(parts, "URI="+u.String())
		}
	}
	if c.DNS {
		for _, n := range leaf.DNSNames {
			parts = append(parts, "DNS="+n)
		}
	}
	return strings.Join(parts, ";")
}

// escapedPEM is the certificates in PEM, with what may not stand in the header escaped.
func escapedPEM(certs ...*x509.Certificate) string {
	var b strings.Builder
	for _, c := range certs {
		b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
	}
	return strings.NewReplacer("\n", "%0A", " ", "%20", "+", "%2B", "/", "%2F", "=", "%3D").Replace(b.String())
}
