// Package secret holds TLS certificates, keys and trust: read from where a configuration names them (inline, files, environment),
// static secrets of the bootstrap, or secrets that a subscription brings (SDS). It belongs to the main loop; what it hands out is
// immutable.
package secret

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/config"
)

// ReadSource reads a data source. The errors are Envoy's words.
func ReadSource(d *corev3.DataSource) ([]byte, error) {
	if err := config.Refuse(sourceGaps, d, ""); err != nil {
		return nil, err
	}
	switch s := d.GetSpecifier().(type) {
	case *corev3.DataSource_Filename:
		b, err := os.ReadFile(s.Filename)
		if err != nil {
			return nil, config.At("filename", noFile(s.Filename, err))
		}
		return b, nil
	case *corev3.DataSource_InlineBytes:
		return s.InlineBytes, nil
	case *corev3.DataSource_InlineString:
		return []byte(s.InlineString), nil
	case *corev3.DataSource_EnvironmentVariable:
		v, ok := os.LookupEnv(s.EnvironmentVariable)
		if !ok {
			return nil, config.At("environment_variable", config.Lacking("environment variable doesn't exist: "+s.EnvironmentVariable, nil))
		}
		return []byte(v), nil
	}
	return nil, nil
}

// noFile says in Envoy's words that a file cannot be read, and why.
func noFile(name string, err error) error {
	text := "Invalid path: " + name
	var why syscall.Errno
	if errors.As(err, &why) {
		text += " (" + why.Error() + ")"
	}
	if !filepath.IsAbs(name) {
		if dir, err := os.Getwd(); err == nil {
			text += ", seen from " + dir
		}
	}
	return config.Lacking(text, err)
}

// NameOf names a data source in error texts.
func NameOf(d *corev3.DataSource) string {
	if f := d.GetFilename(); f != "" {
		return f
	}
	return "<inline>"
}

// Certificate reads a certificate chain and its key.
func Certificate(p *tlsv3.TlsCertificate) (*tls.Certificate, error) {
	if err := config.Refuse(certificateGaps, p, ""); err != nil {
		return nil, err
	}
	chain, err := ReadSource(p.GetCertificateChain())
	var errs config.Errors
	errs.Collect("certificate_chain", unread("certificate", err))
	key, err := ReadSource(p.GetPrivateKey())
	if p.GetPrivateKey().GetFilename() == redacted || string(key) == redacted {
		return nil, config.At("private_key", badKey(p, errRedacted))
	}
	errs.Collect("private_key", unread("private key", err))
	// What is not written is missing, whatever files are not there.
	if len(chain) == 0 && (errs.Err() == nil || p.GetCertificateChain() == nil) {
		errs.Collect("", incomplete(p, "certificate_chain"))
	} else if len(key) == 0 && (errs.Err() == nil || p.GetPrivateKey() == nil) {
		errs.Collect("", incomplete(p, "private_key"))
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	c, err := tls.X509KeyPair(chain, key)
	if err != nil && aboutKey(err) {
		return nil, config.At("private_key", badKey(p, badPrivateKey(chain, key, err)))
	}
	if err != nil {
		err = fmt.Errorf("Failed to load certificate chain from %s: %w", NameOf(p.GetCertificateChain()), badChain(chain, err)) //nolint:staticcheck // Envoy's text
		return nil, config.At("certificate_chain", err)
	}
	if _, text := p.GetOcspStaple().GetSpecifier().(*corev3.DataSource_InlineString); text {
		return nil, config.At("ocsp_staple", errors.New("OCSP staple cannot be provided via inline_string"))
	}
	if err := usableKey(c.Leaf); err != nil {
		err = fmt.Errorf("Failed to load certificate chain from %s, %w", NameOf(p.GetCertificateChain()), err) //nolint:staticcheck // Envoy's text
		return nil, config.At("certificate_chain", err)
	}
	if staple, err := ReadSource(p.GetOcspStaple()); err != nil {
		return nil, config.At("ocsp_staple", err)
	} else if len(staple) > 0 {
		if rest, err := asn1.Unmarshal(staple, new(asn1.RawValue)); err != nil || len(rest) > 0 {
			return nil, config.At("ocsp_staple", errors.New("Data contained more than a single OCSP response, or none: one in DER is expected")) //nolint:staticcheck // Envoy's text
		}
		c.OCSPStaple = staple
	}
	return &c, nil
}

// unread is the error of ReadSource about a part of a certificate, behind Envoy's words for a part that is not there.
func unread(part string, err error) error {
	var x *config.Error
	if !errors.As(err, &x) {
		return err
	}
	out := *x
	out.Msg = "Failed to load incomplete " + part + ": " + out.Msg
	return &out
}

// usableKey refuses keys that Envoy refuses of certificates of its own; those of CAs and peers may be others.
func usableKey(leaf *x509.Certificate) error {
	switch k := leaf.PublicKey.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() < 2048 {
			return errors.New("only RSA certificates with 2048-bit or larger keys are supported")
		}
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P224() {
			return errors.New("only P-256, P-384 or P-521 ECDSA certificates are supported")
		}
	}
	return nil
}

// incomplete is Envoy's text for a certificate without a part, which has no field or one that holds nothing.
func incomplete(p *tlsv3.TlsCertificate, field string) error {
	e := &config.Error{Path: field, Advice: "there is nothing in it"}
	part := p.GetPrivateKey()
	if field == "certificate_chain" {
		part = p.GetCertificateChain()
		e.Msg = "Failed to load incomplete certificate from " + NameOf(part) + ": certificate chain not set"
	} else {
		e.Msg = "Failed to load incomplete private key from path: " + NameOf(part)
	}
	if part == nil {
		e.Path, e.Advice = "", field+" is missing"
	}
	return e
}

// redacted is what /config_dump shows in place of a secret.
const redacted = "[redacted]"

var errRedacted = errors.New("it is '[redacted]', as configuration dumps show what is secret: put the key in its place")

func badKey(p *tlsv3.TlsCertificate, err error) error {
	return fmt.Errorf("Failed to load private key from %s, Cause: %w", NameOf(p.GetPrivateKey()), err) //nolint:staticcheck // Envoy's text
}

// aboutKey tells whether the key is what crypto/tls does not like of a pair. It has no other sign of it than the words.
func aboutKey(err error) bool {
	text := err.Error()
	return !strings.Contains(text, "certificate input") && (strings.Contains(text, "private key") || strings.Contains(text, "key input"))
}

// Roots reads the certificates of a trusted_ca, and returns the text that they stand in, too: others want to look at it, and the file may
// change.
func Roots(d *corev3.DataSource) (*x509.CertPool, []byte, error) {
	b, err := ReadSource(d)
	if err != nil {
		return nil, nil, err
	}
	pool, err := trusted(b)
	if err != nil && len(b) == 0 {
		err = fmt.Errorf("%w: DataSource cannot be empty", err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("Failed to load trusted CA certificates from %s: %w", NameOf(d), err) //nolint:staticcheck // Envoy's text
	}
	return pool, b, nil
}
