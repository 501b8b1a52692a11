package tls

import (
	"encoding/asn1"
	"encoding/pem"
	"time"

	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/secret"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// The names in statistics of certificates that are no secrets: Envoy tells them apart by a hash of nothing.
const (
	unnamedCert = "unnamed_cert_e3b0c442"
	unnamedCA   = "unnamed_ca_cert_e3b0c442"
)

// tellExpiries sets the gauges of when the certificates of a new context end. Of several with one name the last one is told, as by
// Envoy. owner: main loop.
func (b *builder) tellExpiries() {
	if b.d.SetGauge == nil {
		return
	}
	for i, f := range b.certs {
		name := unnamedCert
		if list := b.p.GetTlsCertificateSdsSecretConfigs(); i < len(list) {
			name = list[i].GetName()
		}
		if c, err := secret.ReadSource(f().GetCertificateChain()); err == nil {
			b.tellExpiry(name, c, 1)
		}
	}
	if b.valid == nil || b.valid().GetTrustedCa() == nil {
		return
	}
	name := unnamedCA
	if v := b.p.GetValidationContextSdsSecretConfig(); v != nil {
		name = v.GetName()
	} else if v := b.p.GetCombinedValidationContext(); v != nil {
		name = v.GetValidationContextSdsSecretConfig().GetName()
	}
	if c, err := secret.ReadSource(b.valid().GetTrustedCa()); err == nil {
		b.tellExpiry(name, c, maxCAs)
	}
}

// maxCAs bounds how many certificates of a trusted_ca are looked at for the first that ends.
const maxCAs = 10_000

// tellExpiry sets the gauge of a name to when the first of at most n certificates in a PEM text ends.
func (b *builder) tellExpiry(name string, text []byte, n int) {
	first := int64(0)
	for ; n > 0; n-- {
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
	if first <= 0 {
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
	b.d.SetGauge(id, uint64(first))
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
