package hcm

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/http"
	"github.com/dragoman-proxy/dragoman/api/network"
	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
	"github.com/dragoman-proxy/dragoman/proxy/internal/match"
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
	// JSON: a header that is not there yet is made an array of objects.
	JSON bool
}

// clientCert applies forward_client_cert_details.
func (s *Stream) clientCert(head *http.HeaderMap) {
	c := &s.h.cfg.ClientCert
	if m := s.h.cfg.CertMatcher; m != nil {
		if a, o := m.Match(&match.Data{Request: head, Info: &s.inf, Conn: &s.h.c.Info, Runtime: s.h.cfg.Runtime}); o == match.Match {
			c = a
		}
	}
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
	if s.h.cert == nil || s.h.cert.of != c {
		s.h.cert = &certTexts{of: c}
	}
	old := head.Get(http.XForwardedClientCert)
	if c.Mode == SetCert {
		old = ""
	}
	// What is there decides about the form.
	if isArray := strings.HasPrefix(old, "[") && strings.HasSuffix(old, "]"); isArray || old == "" && c.JSON {
		text := s.h.cert.json(c, t)
		if isArray && len(old) > 2 {
			text = s.arena.Concat(old[:len(old)-1], ",", text[1:])
		}
		head.SetConst(http.XForwardedClientCert, text)
		return
	}
	text := s.h.cert.plain(c, t)
	if old != "" {
		text = s.arena.Concat(old, ",", text)
	}
	head.SetConst(http.XForwardedClientCert, text)
}

// certTexts are a client's certificate as x-forwarded-client-cert has it, made once a connection and once more when a matcher says otherwise.
type certTexts struct {
	of          *ClientCert
	text, array string
}

// plain is the element in the usual form.
func (x *certTexts) plain(c *ClientCert, t *network.TLSInfo) string {
	if x.text != "" {
		return x.text
	}
	var parts []string
	for _, u := range localURIs(t) {
		parts = append(parts, "By="+u)
	}
	leaf := t.Peer[0]
	parts = append(parts, "Hash="+digest(leaf))
	if c.Cert {
		parts = append(parts, `Cert="`+escaped(leaf)+`"`)
	}
	if c.Chain {
		parts = append(parts, `Chain="`+escaped(t.Peer...)+`"`)
	}
	if c.Subject {
		parts = append(parts, `Subject="`+format.DistinguishedName(leaf.RawSubject)+`"`)
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
	if c.Issuer {
		parts = append(parts, `Issuer="`+format.DistinguishedName(leaf.RawIssuer)+`"`)
	}
	x.text = strings.Join(parts, ";")
	return x.text
}

// json is an array of the element as an object.
func (x *certTexts) json(c *ClientCert, t *network.TLSInfo) string {
	if x.array != "" {
		return x.array
	}
	leaf := t.Peer[0]
	e := struct {
		By      []string `json:"by,omitempty"`
		Hash    string   `json:"hash"`
		Cert    string   `json:"cert,omitempty"`
		Chain   []string `json:"chain,omitempty"`
		Subject string   `json:"subject,omitempty"`
		URI     []string `json:"uri,omitempty"`
		DNS     []string `json:"dns,omitempty"`
		Issuer  string   `json:"issuer,omitempty"`
	}{By: localURIs(t), Hash: digest(leaf)}
	if c.Cert {
		e.Cert = inPEM(leaf)
	}
	if c.Chain {
		for _, p := range t.Peer {
			e.Chain = append(e.Chain, inPEM(p))
		}
	}
	if c.Subject {
		e.Subject = format.DistinguishedName(leaf.RawSubject)
	}
	if c.URI {
		for _, u := range leaf.URIs {
			e.URI = append(e.URI, u.String())
		}
	}
	if c.DNS {
		e.DNS = leaf.DNSNames
	}
	if c.Issuer {
		e.Issuer = format.DistinguishedName(leaf.RawIssuer)
	}
	b, err := json.Marshal([]any{e})
	if err != nil {
		return "[]"
	}
	x.array = string(b)
	return x.array
}

func localURIs(t *network.TLSInfo) (list []string) {
	if t.Local != nil {
		for _, u := range t.Local.URIs {
			list = append(list, u.String())
		}
	}
	return list
}

func digest(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

func inPEM(c *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
}

// escaped is certificates in PEM, with what may not stand in the header escaped.
func escaped(certs ...*x509.Certificate) string {
	var b strings.Builder
	for _, c := range certs {
		b.WriteString(inPEM(c))
	}
	return strings.NewReplacer("\n", "%0A", " ", "%20", "+", "%2B", "/", "%2F", "=", "%3D").Replace(b.String())
}
