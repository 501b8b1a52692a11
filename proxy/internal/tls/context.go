package tls

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/dragoman-proxy/dragoman/api/network"
	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/conn"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
)

// Context is what connections of one transport socket have in common: certificates, trust, versions. It is immutable and shared
// by all workers; a new certificate makes a new Context.
type Context struct {
	config *tls.Config
	client bool
	stats  astats.GroupBase // stats.SSL
	// loaded are the certificates, and expires is when the first of them does, in seconds since 1970.
	loaded  []Loaded
	expires int64

	// Clients: what to say and to check.
	autoHostSNI bool
	verifier    *verifier
	// alpn are variants of config for what HTTP pools offer: HTTP/1, HTTP/2, either. nil where config names protocols itself.
	alpn [3]*tls.Config
}

// offering returns the configuration that offers alpn.
func (x *Context) offering(alpn []string) *tls.Config {
	i := 0
	switch {
	case len(alpn) == 0:
		return x.config
	case len(alpn) == 2:
		i = 2
	case alpn[0] == "h2":
		i = 1
	}
	if x.alpn[i] == nil {
		return x.config
	}
	return x.alpn[i]
}

// clientConfig returns the configuration of one outgoing connection.
func (x *Context) clientConfig(*conn.Conn) *tls.Config { return x.config }

// verifier checks a peer's certificate: against CAs (without a name: Envoy does not check the host by itself), by SAN, by hash.
type verifier struct {
	roots     *x509.CertPool
	sans      []SANMatch
	hashes    map[string]bool
	spki      map[string]bool
	untrusted bool // trust_chain_verification: ACCEPT_UNTRUSTED
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
	errHash      = errors.New("verify cert failed: cert hash and spki")
)

// verify is called by crypto/tls when the handshake's messages are in.
func (v *verifier) verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return nil // required certificates are crypto/tls's business
	}
	leaf := state.PeerCertificates[0]
	if v.roots != nil {
		opts := x509.VerifyOptions{Roots: v.roots, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
		if v.server {
			opts.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		}
		for _, c := range state.PeerCertificates[1:] {
			opts.Intermediates.AddCert(c)
		}
		if _, err := leaf.Verify(opts); err != nil && !v.untrusted {
			return fmt.Errorf("%w: %w", errUntrusted, err)
		}
	}
	if len(v.sans) > 0 && !v.matchSAN(leaf) {
		return errSAN
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

func (v *verifier) matchSAN(c *x509.Certificate) bool {
	for i := range v.sans {
		m := &v.sans[i]
		if m.Kind == "" || m.Kind == "dns" {
			for _, n := range c.DNSNames {
				if m.Match(n) {
					return true
				}
			}
		}
		if m.Kind == "" || m.Kind == "uri" {
			for _, u := range c.URIs {
				if m.Match(u.String()) {
					return true
				}
			}
		}
		if m.Kind == "" || m.Kind == "email" {
			for _, e := range c.EmailAddresses {
				if m.Match(e) {
					return true
				}
			}
		}
		if m.Kind == "" || m.Kind == "ip" {
			for _, ip := range c.IPAddresses {
				if m.Match(ip.String()) {
					return true
				}
			}
		}
	}
	return false
}

// info copies what a handshake agreed on.
func (x *Context) info(s *tls.ConnectionState) *network.TLSInfo {
	i := &network.TLSInfo{
		Version: stats.SSLVersionName(s.Version), Cipher: stats.SSLCipherName(s.CipherSuite), Group: stats.SSLCurveName(uint16(s.CurveID)),
		Resumed: s.DidResume, Peer: s.PeerCertificates,
	}
	i.Verified = x.verifier != nil && x.verifier.roots != nil && len(s.PeerCertificates) > 0
	return i
}

// count counts a handshake.
func (x *Context) count(w *event.Worker, s *tls.ConnectionState) {
	st := w.Stats
	st.Inc(x.stats.Counter(stats.SSLHandshake))
	if s.DidResume {
		st.Inc(x.stats.Counter(stats.SSLSessionReused))
	}
	if len(s.PeerCertificates) == 0 && !x.client {
		st.Inc(x.stats.Counter(stats.SSLNoCertificate))
	}
	st.Inc(x.stats.Counter(stats.SSLCipher(s.CipherSuite)))
	st.Inc(x.stats.Counter(stats.SSLVersion(s.Version)))
	st.Inc(x.stats.Counter(stats.SSLCurve(uint16(s.CurveID))))
}

// failureCounter is what a failed handshake counts in.
func failureCounter(err error) astats.CounterIndex {
	switch {
	case errors.Is(err, errSAN):
		return stats.SSLFailVerifySan
	case errors.Is(err, errHash):
		return stats.SSLFailVerifyCertHash
	case errors.Is(err, errUntrusted):
		return stats.SSLFailVerifyError
	case errors.Is(err, errNoCert), strings.Contains(err.Error(), "didn't provide a certificate"):
		return stats.SSLFailVerifyNoCert
	}
	return stats.SSLConnectionError
}

// failureText turns an error of crypto/tls into a transport failure reason of Envoy's form.
func failureText(err error) string {
	text := err.Error()
	code, what := "268435703", "WRONG_VERSION_NUMBER"
	switch {
	case errors.Is(err, errSAN), errors.Is(err, errHash), errors.Is(err, errUntrusted):
		code, what = "268435581", "CERTIFICATE_VERIFY_FAILED:"+strings.ReplaceAll(err.Error(), ":", ",")
	case errors.Is(err, errNoCert), strings.Contains(text, "didn't provide a certificate"):
		code, what = "268435655", "PEER_DID_NOT_RETURN_A_CERTIFICATE"
	case strings.Contains(text, "no application protocol"):
		code, what = "268435612", "NO_APPLICATION_PROTOCOL"
	case strings.Contains(text, "unsupported version"), strings.Contains(text, "protocol version"):
		code, what = "268435696", "UNSUPPORTED_PROTOCOL"
	case strings.Contains(text, "no cipher suite"):
		code, what = "268435640", "NO_SHARED_CIPHER"
	case strings.Contains(text, "first record does not look"):
	case strings.Contains(text, "EOF"):
		return "TLS_error:|33554536:system_library:OPENSSL_internal:Connection_reset_by_peer:TLS_error_end"
	default:
		code, what = "268435610", strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(text, "tls: "), " ", "_"))
	}
	return "TLS_error:|" + code + ":SSL_routines:OPENSSL_internal:" + what + ":TLS_error_end"
}
