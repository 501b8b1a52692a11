package tls

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// verifier checks a peer's certificate: against CAs (without a name: Envoy does not check the host by itself), by SAN, by hash. It is
// immutable and shared by connections.
type verifier struct {
	roots *x509.CertPool
	// domains are the CAs of each SPIFFE trust domain; nil without the SPIFFE validator.
	domains   map[string]*x509.CertPool
	crls      []*x509.RevocationList
	leafOnly  bool // revocation of the leaf only
	sans      []SANMatch
	name      string // a name that the certificate must be for, as the request says; "": any
	hashes    map[string]bool
	spki      map[string]bool
	untrusted bool // trust_chain_verification: ACCEPT_UNTRUSTED
	expired   bool // allow_expired_certificate
	maxDepth  int  // of intermediate certificates; negative: any
	server    bool // we are the server: the peer's certificate must be for clients
}

// SANMatch matches subject alternative names of one kind.
type SANMatch struct {
	// Kind is "dns", "uri", "email", "ip"; "" is any of them.
	Kind  string
	Match func(string) bool
}

// Errors of verification. The texts are those that Envoy's transport failure reasons carry.
var (
	errNoCert    = errors.New("peer did not return a certificate")
	errUntrusted = errors.New("verify cert failed: verify chain")
	errSAN       = errors.New("verify cert failed: SAN matcher")
	errName      = errors.New("verify cert failed: verify SAN list")
	errHash      = errors.New("verify cert failed: cert hash and spki")
)

// trusts tells whether chains are checked.
func (v *verifier) trusts() bool { return v.roots != nil || v.domains != nil }

// serve makes cfg ask clients for what v checks, with Envoy's rules: without anything to check, certificates are not even asked for;
// require_client_certificate has a meaning with CAs only; a certificate must come if its hash or names are checked. Where CAs alone
// decide, crypto/tls checks the chain first, since its alerts are right then, as of an unknown CA.
func (v *verifier) serve(cfg *tls.Config, require bool) {
	v.server = true
	must := require && v.trusts() || !v.untrusted && (len(v.sans) > 0 || len(v.hashes) > 0 || len(v.spki) > 0)
	first := v.roots != nil && v.domains == nil && !v.untrusted && !v.expired
	switch {
	case must && first:
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
	case must:
		cfg.ClientAuth = tls.RequireAnyClientCert
	case first:
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
	case v.trusts() || v.untrusted:
		cfg.ClientAuth = tls.RequestClientCert
	}
	cfg.ClientCAs = v.roots // named in the request
}

// verify is called by crypto/tls when the handshake's messages are in.
func (v *verifier) verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return nil // required certificates are crypto/tls's business
	}
	if v.untrusted {
		return nil
	}
	return v.check(&state)
}

// check checks a peer's certificate.
func (v *verifier) check(state *tls.ConnectionState) error {
	leaf := state.PeerCertificates[0]
	if err := v.chain(state); err != nil {
		return err
	}
	if v.name != "" && !forName(leaf, v.name) {
		return errName
	}
	if len(v.sans) > 0 && !v.matchSAN(leaf) {
		return fmt.Errorf("%w, certificate SANs are [%s]", errSAN, strings.Join(names(leaf), ", "))
	}
	if len(v.hashes) > 0 || len(v.spki) > 0 {
		h := sha256.Sum256(leaf.Raw)
		k := sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
		if !v.hashes[hex.EncodeToString(h[:])] && !v.spki[string(k[:])] {
			return errHash
		}
	}
	return nil
}

// chain checks the certificate against the CAs, and the revocation lists.
func (v *verifier) chain(state *tls.ConnectionState) error {
	if !v.trusts() {
		return nil
	}
	certs, leaf := state.PeerCertificates, state.PeerCertificates[0]
	if len(state.VerifiedChains) > 0 {
		return v.oneOf(state.VerifiedChains)
	}
	opts := x509.VerifyOptions{Roots: v.roots, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if v.server {
		opts.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}
	if v.domains != nil {
		if opts.Roots = v.spiffe(leaf); opts.Roots == nil {
			return fmt.Errorf("%w: SPIFFE", errUntrusted)
		}
		opts.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
	}
	for _, c := range certs[1:] {
		opts.Intermediates.AddCert(c)
	}
	chains, err := leaf.Verify(opts)
	if err != nil && v.expired && isExpired(err) {
		opts.CurrentTime = leaf.NotAfter.Add(-time.Second)
		chains, err = leaf.Verify(opts)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUntrusted, err)
	}
	return v.oneOf(chains)
}

// oneOf tells whether one of some chains that lead to CAs will do.
func (v *verifier) oneOf(chains [][]*x509.Certificate) (err error) {
	for _, c := range chains {
		if err = v.acceptable(c); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: %w", errUntrusted, err)
}

func isExpired(err error) bool {
	var e x509.CertificateInvalidError
	return errors.As(err, &e) && e.Reason == x509.Expired
}

// acceptable checks a chain that leads to a CA for its length and for revocation.
func (v *verifier) acceptable(chain []*x509.Certificate) error {
	if v.maxDepth >= 0 && len(chain)-2 > v.maxDepth {
		return errors.New("certificate chain too long")
	}
	if len(v.crls) == 0 {
		return nil
	}
	for i, c := range chain {
		issuer := c // of the root
		if i+1 < len(chain) {
			issuer = chain[i+1]
		}
		if err := v.revoked(c, issuer); err != nil {
			return err
		}
		if v.leafOnly {
			break
		}
	}
	return nil
}

// revoked looks a certificate up in its issuer's list, which must be there.
func (v *verifier) revoked(c, issuer *x509.Certificate) error {
	found := false
	for _, l := range v.crls {
		if !bytes.Equal(l.RawIssuer, issuer.RawSubject) || l.CheckSignatureFrom(issuer) != nil {
			continue
		}
		found = true
		for i := range l.RevokedCertificateEntries {
			if l.RevokedCertificateEntries[i].SerialNumber.Cmp(c.SerialNumber) == 0 {
				return errors.New("certificate revoked")
			}
		}
	}
	if !found {
		return errors.New("unable to get certificate CRL")
	}
	return nil
}

// spiffe returns the CAs of the trust domain that a leaf is of, nil if it is no SVID of one (X.509-SVID, section 5.2).
func (v *verifier) spiffe(leaf *x509.Certificate) *x509.CertPool {
	if leaf.IsCA || leaf.KeyUsage == 0 || leaf.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != 0 {
		return nil
	}
	for _, u := range leaf.URIs {
		rest, ok := strings.CutPrefix(u.String(), "spiffe://")
		if !ok {
			continue
		}
		domain, _, _ := strings.Cut(rest, "/")
		if p := v.domains[domain]; p != nil {
			return p
		}
	}
	return nil
}

// forName tells whether a certificate is for a name: a host name, which may stand under a wildcard, an address or a URI.
func forName(c *x509.Certificate, name string) bool {
	if ip, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		for _, a := range c.IPAddresses {
			if b, ok := netip.AddrFromSlice(a); ok && b.Unmap() == ip.Unmap() {
				return true
			}
		}
		return false
	}
	for _, n := range c.DNSNames {
		if strings.EqualFold(n, name) {
			return true
		}
		if rest, ok := strings.CutPrefix(n, "*."); ok {
			if _, tail, found := strings.Cut(name, "."); found && strings.EqualFold(tail, rest) {
				return true
			}
		}
	}
	for _, u := range c.URIs {
		if u.String() == name {
			return true
		}
	}
	return false
}

// matchSAN tells whether a subject alternative name is one of those that are asked for.
func (v *verifier) matchSAN(c *x509.Certificate) bool {
	for i := range v.sans {
		if v.sans[i].matches(c) {
			return true
		}
	}
	return false
}

// names are the subject alternative names of a certificate.
func names(c *x509.Certificate) []string {
	list := slices.Clone(c.DNSNames)
	for _, u := range c.URIs {
		list = append(list, u.String())
	}
	for _, ip := range c.IPAddresses {
		list = append(list, ip.String())
	}
	return append(list, c.EmailAddresses...)
}

func (m *SANMatch) matches(c *x509.Certificate) bool {
	is := func(kind string) bool { return m.Kind == "" || m.Kind == kind }
	if is("dns") {
		for _, n := range c.DNSNames {
			if m.Match(n) {
				return true
			}
		}
	}
	if is("uri") {
		for _, u := range c.URIs {
			if m.Match(u.String()) {
				return true
			}
		}
	}
	if is("email") {
		for _, e := range c.EmailAddresses {
			if m.Match(e) {
				return true
			}
		}
	}
	if is("ip") {
		for _, ip := range c.IPAddresses {
			if m.Match(ip.String()) {
				return true
			}
		}
	}
	return false
}
