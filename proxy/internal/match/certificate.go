package match

import (
	"crypto/x509"
	"strings"

	"github.com/dragoman-proxy/dragoman/proxy/internal/format"
)

// certificate reads a fact of the peer's certificate.
func certificate(f func(c *x509.Certificate) string) input {
	return input{read: func(d *Data) (Value, bool) {
		if c := d.conn(); c != nil && c.TLS != nil && len(c.TLS.Peer) > 0 {
			return text(f(c.TLS.Peer[0])), true
		}
		return Value{}, true
	}}
}

func uriSAN(c *x509.Certificate) string {
	out := make([]string, len(c.URIs))
	for i, u := range c.URIs {
		out[i] = u.String()
	}
	return strings.Join(out, ",")
}

func dnsSAN(c *x509.Certificate) string { return strings.Join(c.DNSNames, ",") }

func subject(c *x509.Certificate) string { return format.DistinguishedName(c.RawSubject) }
