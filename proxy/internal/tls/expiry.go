package tls

import (
	"crypto/tls"
	"encoding/asn1"
	"encoding/pem"
	"time"

	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// The names in statistics of certificates that are no secrets: Envoy tells them apart by a hash of nothing.
const (
	unnamedCert = "unnamed_cert_e3b0c442"
	unnamedCA   = "unnamed_ca_cert_e3b0c442"
)

// tellExpiries sets the gauges of when the certificates of a new context end: certs are those of b.certs, cas is the text of its trusted_ca.
// Of several with one name the last one is told, as by Envoy. owner: main loop.
func (b *builder) tellExpiries(certs []tls.Certificate, cas []byte) {
	if b.d.SetGauge == nil {
		return
	}
	for i, c := range certs {
		name := unnamedCert
		if list := b.p.GetTlsCertificateSdsSecretConfigs(); i < len(list) {
			name = list[i].GetName()
		}
		if at, ok := notAfter(c.Certificate[0]); ok {
			b.tellExpiry(name, at)
		}
	}
	if len(cas) == 0 {
		return
	}
	name := unnamedCA
	if v := b.p.GetValidationContextSdsSecretConfig(); v != nil {
		name = v.GetName()
	} else if v := b.p.GetCombinedValidationContext(); v != nil {
		name = v.GetValidationContextSdsSecretConfig().GetName()
	}
	b.tellExpiry(name, firstEnd(cas))
}

// maxCAs bounds how many certificates of a trusted_ca are looked at for the first that ends.
const maxCAs = 10_000

// firstEnd is when the first of the certificates in a PEM text ends, 0 if there is none.
func firstEnd(text []byte) (first int64) {
	for range maxCAs {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if at, ok := notAfter(block.Bytes); ok && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

// tellExpiry sets the gauge of a name.
func (b *builder) tellExpiry(name string, at int64) {
	if at <= 0 {
		return
	}
	id, ok := b.expiries[name]
	if !ok {
		sc := b.d.Scope.Scope("ssl").Scope("certificate")
		if l, ok := sc.(interface{ Literal(string) astats.Scope }); ok { // names of secrets stay as they are
			sc = l.Literal(name)
		} else {
			sc = sc.Scope(name)
		}
		id = sc.Group(stats.SSLCertificate).Gauge(stats.SSLCertificateExpiration)
		b.release = append(b.release, func() { sc.Release(stats.SSLCertificate) })
		if b.expiries == nil {
			b.expiries = map[string]astats.GaugeID{}
		}
		b.expiries[name] = id
	}
	b.d.SetGauge(id, uint64(at))
}

// validity is the beginning of a certificate, up to when it ends (RFC 5280, section 4.1). A bundle may have hundreds, of which nothing
// else is asked.
type validity struct {
	TBS struct {
		Version        int `asn1:"optional,explicit,default:0,tag:0"`
		Serial         asn1.RawValue
		Algorithm      asn1.RawValue
		Issuer         asn1.RawValue
		NotBeforeAfter struct{ NotBefore, NotAfter time.Time }
	}
}

// notAfter is when a certificate ends, in seconds since 1970.
func notAfter(der []byte) (int64, bool) {
	var v validity
	if _, err := asn1.Unmarshal(der, &v); err != nil {
		return 0, false
	}
	return v.TBS.NotBeforeAfter.NotAfter.Unix(), true
}
