package tls

import (
	"crypto/x509"
	"encoding/pem"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Loaded is a certificate that a transport socket uses: what /certs tells of.
type Loaded struct {
	// Path is the file that it came from, "<inline>" if from none.
	Path string
	// DER is the certificate.
	DER []byte
	// CA: peers are checked against it.
	CA bool
}

// Loaded returns the certificates of s as they are now. Safe from any thread.
func (s *Server) Loaded() ([]Loaded, int64) { return s.ctx.Load().certificates() }

// Loaded returns the certificates of c as they are now. Safe from any thread.
func (c *Client) Loaded() ([]Loaded, int64) { return c.ctx.Load().certificates() }

// certificates returns them, and when the first of them expires, in seconds since 1970; 0 if there are none.
func (x *Context) certificates() ([]Loaded, int64) {
	if x == nil {
		return nil, 0
	}
	return x.loaded, x.expires
}

// note adds a certificate to what the context tells of.
func (x *Context) note(from *corev3.DataSource, der []byte, ca bool) {
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return // whoever uses it has said so
	}
	path := from.GetFilename()
	if path == "" {
		path = "<inline>"
	}
	x.loaded = append(x.loaded, Loaded{Path: path, DER: der, CA: ca})
	if at := c.NotAfter.Unix(); x.expires == 0 || at < x.expires {
		x.expires = at
	}
}

// noteCA adds the first certificate of a trusted_ca, whose text is given: it is the one that Envoy shows.
func (x *Context) noteCA(from *corev3.DataSource, text []byte) {
	if b, _ := pem.Decode(text); b != nil {
		x.note(from, b.Bytes, true)
	}
}
