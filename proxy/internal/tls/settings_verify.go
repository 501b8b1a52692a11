package tls

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
	"github.com/dragoman-proxy/dragoman/proxy/internal/secret"
)

// verifierOf builds what checks peers' certificates. trusted is told the text of the trusted_ca, if there is one.
func (b *builder) verifierOf(p *tlsv3.CertificateValidationContext, trusted func(text []byte)) (*verifier, error) {
	v := &verifier{untrusted: p.GetTrustChainVerification() == tlsv3.CertificateValidationContext_ACCEPT_UNTRUSTED,
		expired: p.GetAllowExpiredCertificate(), leafOnly: p.GetOnlyVerifyLeafCertCrl(), maxDepth: -1}
	if err := config.Refuse(validationGaps, p, ""); err != nil {
		return nil, err
	}
	if d := p.GetMaxVerifyDepth(); d != nil {
		v.maxDepth = int(d.Value)
	}
	var err error
	if v.crls, err = revocationLists(p.GetCrl()); err != nil {
		if p.GetTrustedCa() == nil {
			err = fmt.Errorf("%w (without trusted CA)", err)
		}
		return nil, config.At("crl", err)
	}
	if c := p.GetCustomValidatorConfig(); c != nil {
		if v.domains, err = trustDomains(c); err != nil {
			return nil, err
		}
	}
	if p.GetTrustedCa() != nil {
		roots, text, err := secret.Roots(p.TrustedCa)
		if err != nil {
			return nil, config.At("trusted_ca", err)
		}
		v.roots = roots
		trusted(text)
	} else if len(v.crls) > 0 {
		return nil, errors.New("Failed to load CRL from " + secret.NameOf(p.GetCrl()) + " without trusted CA") //nolint:staticcheck // Envoy's text
	} else if v.domains == nil && len(typedNames(p)) > 0 && !p.GetAllowExpiredCertificate() {
		return nil, errors.New("SAN-based verification of peer certificates without trusted CA is insecure and not allowed")
	}
	kinds := map[tlsv3.SubjectAltNameMatcher_SanType]string{1: "email", 2: "dns", 3: "uri", 4: "ip"}
	for _, m := range typedNames(p) {
		f, err := b.d.Match(m.Matcher)
		if err != nil {
			return nil, err
		}
		v.sans = append(v.sans, SANMatch{Kind: kinds[m.SanType], Match: f.Match})
	}
	for _, h := range p.GetVerifyCertificateHash() {
		if v.hashes == nil {
			v.hashes = map[string]bool{}
		}
		digits := strings.ToLower(strings.ReplaceAll(h, ":", ""))
		if raw, err := hex.DecodeString(digits); err != nil || len(raw) != sha256.Size {
			return nil, config.At("verify_certificate_hash", fmt.Errorf("Invalid hex-encoded SHA-256 %s", h)) //nolint:staticcheck // Envoy's text
		}
		v.hashes[digits] = true
	}
	for _, h := range p.GetVerifyCertificateSpki() {
		raw, err := base64.StdEncoding.DecodeString(h)
		if err != nil || len(raw) != 32 {
			return nil, fmt.Errorf("Invalid base64-encoded SHA-256 %s", h) //nolint:staticcheck // Envoy's text
		}
		if v.spki == nil {
			v.spki = map[string]bool{}
		}
		v.spki[string(raw)] = true
	}
	return v, nil
}

// typedNames are the matchers of alternative names. The field that had no types stands for all of them, unless the new one is set.
func typedNames(p *tlsv3.CertificateValidationContext) []*tlsv3.SubjectAltNameMatcher {
	old := p.GetMatchSubjectAltNames() //nolint:staticcheck // deprecated, still read by Envoy
	if len(p.GetMatchTypedSubjectAltNames()) > 0 || len(old) == 0 {
		return p.GetMatchTypedSubjectAltNames()
	}
	var out []*tlsv3.SubjectAltNameMatcher
	for _, m := range old {
		for _, kind := range []tlsv3.SubjectAltNameMatcher_SanType{tlsv3.SubjectAltNameMatcher_DNS, tlsv3.SubjectAltNameMatcher_URI,
			tlsv3.SubjectAltNameMatcher_EMAIL, tlsv3.SubjectAltNameMatcher_IP_ADDRESS} {
			out = append(out, &tlsv3.SubjectAltNameMatcher{SanType: kind, Matcher: m})
		}
	}
	return out
}

// revocationLists reads CRLs, in PEM or DER.
func revocationLists(d *corev3.DataSource) ([]*x509.RevocationList, error) {
	if d == nil {
		return nil, nil
	}
	b, err := secret.ReadSource(d)
	if err != nil {
		return nil, err
	}
	var out []*x509.RevocationList
	for rest := b; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "X509 CRL" {
			continue
		}
		l, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("Failed to load CRL from %s: %w", secret.NameOf(d), err) //nolint:staticcheck // Envoy's text
		}
		out = append(out, l)
	}
	if len(out) > 0 {
		return out, nil
	}
	l, err := x509.ParseRevocationList(b)
	if err != nil {
		return nil, fmt.Errorf("Failed to load CRL from %s: %w", secret.NameOf(d), err) //nolint:staticcheck // Envoy's text
	}
	return []*x509.RevocationList{l}, nil
}

// trustDomains reads the configuration of the SPIFFE validator.
func trustDomains(c *corev3.TypedExtensionConfig) (map[string]*x509.CertPool, error) {
	var p tlsv3.SPIFFECertValidatorConfig
	a := c.GetTypedConfig()
	if !config.Holds(a, &p) {
		x := config.Unregistered(c.GetName(), a)
		x.Msg = "Failed to get certificate validator factory for " + c.GetName() + ": " + x.Msg
		return nil, config.At("custom_validator_config", x)
	}
	if err := config.Into(a, &p); err != nil {
		return nil, err
	}
	if err := config.Refuse(spiffeGaps, &p, "custom_validator_config.typed_config."); err != nil {
		return nil, err
	}
	out := map[string]*x509.CertPool{}
	for _, d := range p.GetTrustDomains() {
		if out[d.GetName()] != nil {
			return nil, errors.New("Multiple trust bundles are given for one trust domain for " + d.GetName()) //nolint:staticcheck // Envoy's text
		}
		roots, _, err := secret.Roots(d.GetTrustBundle())
		if err != nil {
			return nil, err
		}
		out[d.GetName()] = roots
	}
	return out, nil
}
