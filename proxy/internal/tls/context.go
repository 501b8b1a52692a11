package tls

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
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

	// verifier is what to check of the peer's certificate; nil: nothing.
	verifier *verifier
	// Clients: autoHostSNI asks for the endpoint's name, autoSAN wants the certificate to be for the name that was asked for.
	autoHostSNI, autoSAN bool
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

// info copies what a handshake agreed on. local is our certificate, nil if it is not known.
func (x *Context) info(s *tls.ConnectionState, local *x509.Certificate) *network.TLSInfo {
	i := &network.TLSInfo{
		Version: stats.SSLVersionName(s.Version), Cipher: stats.SSLCipherName(s.CipherSuite), Group: stats.SSLCurveName(uint16(s.CurveID)),
		Resumed: s.DidResume, Peer: s.PeerCertificates,
	}
	if i.Local = local; local == nil && len(x.config.Certificates) > 0 {
		i.Local = x.config.Certificates[0].Leaf
	}
	i.Verified = x.verifier != nil && x.verifier.trusts() && len(s.PeerCertificates) > 0
	return i
}

// doubt returns why a certificate that is accepted all the same, by ACCEPT_UNTRUSTED, would have been refused; nil mostly.
func (x *Context) doubt(s *tls.ConnectionState) error {
	if x.verifier == nil || !x.verifier.untrusted || len(s.PeerCertificates) == 0 || s.DidResume {
		return nil
	}
	return x.verifier.check(s)
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

// isUntrusted tells whether a chain leads to no CA: the verifier says so, or crypto/tls.
func isUntrusted(err error) bool {
	var e *tls.CertificateVerificationError
	return errors.Is(err, errUntrusted) || errors.As(err, &e)
}

// failureCounter is what a failed handshake counts in.
func failureCounter(err error) astats.CounterIndex {
	switch {
	case errors.Is(err, errSAN), errors.Is(err, errName):
		return stats.SSLFailVerifySan
	case errors.Is(err, errHash):
		return stats.SSLFailVerifyCertHash
	case isUntrusted(err):
		return stats.SSLFailVerifyError
	case errors.Is(err, errNoCert), strings.Contains(err.Error(), "didn't provide a certificate"):
		return stats.SSLFailVerifyNoCert
	}
	return stats.SSLConnectionError
}

// failureText turns an error of crypto/tls into a transport failure reason of Envoy's form.
func failureText(err error) string {
	text := err.Error()
	var header tls.RecordHeaderError
	code, what := "268435703", "WRONG_VERSION_NUMBER"
	switch {
	case errors.Is(err, errSAN), errors.Is(err, errName), errors.Is(err, errHash), isUntrusted(err):
		code, what = "268435581", "CERTIFICATE_VERIFY_FAILED:"+strings.ReplaceAll(verifyText(err), " ", "_")
	case errors.Is(err, errNoCert), strings.Contains(text, "didn't provide a certificate"):
		code, what = "268435648", "PEER_DID_NOT_RETURN_A_CERTIFICATE:peer_did_not_provide_required_client_certificate"
	case strings.Contains(text, "no application protocol"):
		code, what = "268435763", "NO_APPLICATION_PROTOCOL"
	case strings.Contains(text, "unsupported version"), strings.Contains(text, "protocol version"):
		code, what = "268435696", "UNSUPPORTED_PROTOCOL"
	case strings.Contains(text, "no cipher suite"):
		code, what = "268435640", "NO_SHARED_CIPHER"
	case errors.As(err, &header):
		if isHTTP(string(header.RecordHeader[:])) {
			code, what = "268435612", "HTTP_REQUEST"
		}
	case strings.Contains(text, "EOF"):
		return connectionReset
	default:
		code, what = "268435610", strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(text, "tls: "), " ", "_"))
	}
	return "TLS_error:|" + code + ":SSL_routines:OPENSSL_internal:" + what + ":TLS_error_end"
}

const connectionReset = "TLS_error:|33554536:system_library:OPENSSL_internal:Connection_reset_by_peer:TLS_error_end"

// isHTTP tells whether what came for a record's header begins a plain request.
func isHTTP(header string) bool {
	for _, m := range []string{"GET ", "POST ", "HEAD ", "PUT "} {
		if strings.HasPrefix(header, m) {
			return true
		}
	}
	return false
}

// verifyText says in Envoy's words why a certificate was refused.
func verifyText(err error) string {
	if !isUntrusted(err) {
		return err.Error()
	}
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	why := ""
	switch {
	case errors.As(err, &unknown):
		why = "unable to get local issuer certificate"
		if c := unknown.Cert; c != nil && bytes.Equal(c.RawIssuer, c.RawSubject) {
			why = "self signed certificate"
		}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		why = "certificate has expired"
		if strings.Contains(invalid.Detail, "is before") {
			why = "certificate is not yet valid"
		}
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		why = "unsupported certificate purpose"
	default:
		why = strings.ReplaceAll(strings.TrimPrefix(err.Error(), errUntrusted.Error()+": "), ":", ",")
	}
	return "verify cert failed: X509_verify_cert: certificate verification error at depth 0: " + why
}
