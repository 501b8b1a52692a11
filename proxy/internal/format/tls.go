package format

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"net/url"
	"strings"
	"time"

	"github.com/dragoman-proxy/dragoman/api/network"
)

// tlsCommands print what the handshakes agreed on. Those about certificates render them anew for each line, and allocate.
var tlsCommands = map[string]command{
	"DOWNSTREAM_TLS_VERSION":    tlsText(downstream, func(t *network.TLSInfo) string { return t.Version }),
	"DOWNSTREAM_TLS_CIPHER":     tlsText(downstream, func(t *network.TLSInfo) string { return t.Cipher }),
	"DOWNSTREAM_TLS_GROUP":      tlsText(downstream, func(t *network.TLSInfo) string { return t.Group }),
	"DOWNSTREAM_TLS_SESSION_ID": tlsText(downstream, func(t *network.TLSInfo) string { return t.SessionID }),
	"UPSTREAM_TLS_VERSION":      tlsText(upstream, func(t *network.TLSInfo) string { return t.Version }),
	"UPSTREAM_TLS_CIPHER":       tlsText(upstream, func(t *network.TLSInfo) string { return t.Cipher }),
	"UPSTREAM_TLS_GROUP":        tlsText(upstream, func(t *network.TLSInfo) string { return t.Group }),
	"UPSTREAM_TLS_SESSION_ID":   tlsText(upstream, func(t *network.TLSInfo) string { return t.SessionID }),

	"DOWNSTREAM_PEER_SUBJECT":                certText(downstream, peerCert, subject),
	"DOWNSTREAM_PEER_ISSUER":                 certText(downstream, peerCert, issuer),
	"DOWNSTREAM_PEER_SERIAL":                 certText(downstream, peerCert, serial),
	"DOWNSTREAM_PEER_FINGERPRINT_1":          certText(downstream, peerCert, fingerprint1),
	"DOWNSTREAM_PEER_FINGERPRINT_256":        certText(downstream, peerCert, fingerprint256),
	"DOWNSTREAM_PEER_CERT":                   certText(downstream, peerCert, urlPEM),
	"DOWNSTREAM_PEER_DNS_SAN":                certText(downstream, peerCert, dnsSAN),
	"DOWNSTREAM_PEER_URI_SAN":                certText(downstream, peerCert, uriSAN),
	"DOWNSTREAM_PEER_IP_SAN":                 certText(downstream, peerCert, ipSAN),
	"DOWNSTREAM_PEER_EMAIL_SAN":              certText(downstream, peerCert, emailSAN),
	"DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1":   chainText(fingerprint1),
	"DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256": chainText(fingerprint256),
	"DOWNSTREAM_PEER_CHAIN_SERIALS":          chainText(serial),
	"DOWNSTREAM_PEER_ISSUER_FINGERPRINT_256": certText(downstream, issuerCert, fingerprint256),
	"DOWNSTREAM_PEER_ISSUER_SERIAL":          certText(downstream, issuerCert, serial),
	"DOWNSTREAM_PEER_CERT_V_START":           certTime(downstream, func(c *x509.Certificate) time.Time { return c.NotBefore }),
	"DOWNSTREAM_PEER_CERT_V_END":             certTime(downstream, func(c *x509.Certificate) time.Time { return c.NotAfter }),
	"DOWNSTREAM_LOCAL_SUBJECT":               certText(downstream, localCert, subject),
	"DOWNSTREAM_LOCAL_DNS_SAN":               certText(downstream, localCert, dnsSAN),
	"DOWNSTREAM_LOCAL_URI_SAN":               certText(downstream, localCert, uriSAN),
	"DOWNSTREAM_LOCAL_IP_SAN":                certText(downstream, localCert, ipSAN),
	"DOWNSTREAM_LOCAL_EMAIL_SAN":             certText(downstream, localCert, emailSAN),

	"UPSTREAM_PEER_SUBJECT":      certText(upstream, peerCert, subject),
	"UPSTREAM_PEER_ISSUER":       certText(upstream, peerCert, issuer),
	"UPSTREAM_PEER_CERT":         certText(upstream, peerCert, urlPEM),
	"UPSTREAM_PEER_DNS_SAN":      certText(upstream, peerCert, dnsSAN),
	"UPSTREAM_PEER_URI_SAN":      certText(upstream, peerCert, uriSAN),
	"UPSTREAM_PEER_IP_SAN":       certText(upstream, peerCert, ipSAN),
	"UPSTREAM_PEER_CERT_V_START": certTime(upstream, func(c *x509.Certificate) time.Time { return c.NotBefore }),
	"UPSTREAM_PEER_CERT_V_END":   certTime(upstream, func(c *x509.Certificate) time.Time { return c.NotAfter }),
	"UPSTREAM_LOCAL_DNS_SAN":     certText(upstream, localCert, dnsSAN),
	"UPSTREAM_LOCAL_URI_SAN":     certText(upstream, localCert, uriSAN),
	"UPSTREAM_LOCAL_IP_SAN":      certText(upstream, localCert, ipSAN),
}

func tlsOf(c *Context, conn connOf) *network.TLSInfo {
	if n := conn(c); n != nil {
		return n.TLS
	}
	return nil
}

func tlsText(conn connOf, get func(t *network.TLSInfo) string) command {
	return text(func(c *Context) string {
		if t := tlsOf(c, conn); t != nil {
			return get(t)
		}
		return ""
	})
}

// certOf picks a certificate; nil if there is none.
type certOf func(t *network.TLSInfo) *x509.Certificate

func peerCert(t *network.TLSInfo) *x509.Certificate {
	if len(t.Peer) == 0 {
		return nil
	}
	return t.Peer[0]
}

func issuerCert(t *network.TLSInfo) *x509.Certificate {
	if len(t.Peer) < 2 {
		return nil
	}
	return t.Peer[1]
}

func localCert(t *network.TLSInfo) *x509.Certificate { return t.Local }

func certText(conn connOf, cert certOf, get func(c *x509.Certificate) string) command {
	return text(func(c *Context) string {
		if t := tlsOf(c, conn); t != nil {
			if crt := cert(t); crt != nil {
				return get(crt)
			}
		}
		return ""
	})
}

// chainText joins a fact of each certificate that the peer sent.
func chainText(get func(c *x509.Certificate) string) command {
	return text(func(c *Context) string {
		t := tlsOf(c, downstream)
		if t == nil {
			return ""
		}
		all := make([]string, len(t.Peer))
		for i, crt := range t.Peer {
			all[i] = get(crt)
		}
		return strings.Join(all, ",")
	})
}

// certTime prints a date of the peer's certificate, by default in ISO 8601.
func certTime(conn connOf, get func(c *x509.Certificate) time.Time) command {
	return command{params, func(b *builder) (*operator, error) {
		format := b.param
		if format == "" {
			format = "%Y-%m-%dT%H:%M:%E3SZ"
		}
		layout, err := compileTime(format)
		if err != nil {
			return nil, err
		}
		return &operator{append: func(dst []byte, c *Context) ([]byte, bool) {
			t := tlsOf(c, conn)
			if t == nil || peerCert(t) == nil {
				return dst, false
			}
			return layout.append(dst, get(peerCert(t)).UTC()), true
		}}, nil
	}}
}

func subject(c *x509.Certificate) string { return DistinguishedName(c.RawSubject) }
func issuer(c *x509.Certificate) string  { return DistinguishedName(c.RawIssuer) }
func serial(c *x509.Certificate) string  { return hex.EncodeToString(c.SerialNumber.Bytes()) }

func fingerprint1(c *x509.Certificate) string {
	sum := sha1.Sum(c.Raw)
	return hex.EncodeToString(sum[:])
}

func fingerprint256(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// urlPEM is the certificate in PEM, made safe for a header.
func urlPEM(c *x509.Certificate) string {
	p := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	return strings.ReplaceAll(url.QueryEscape(string(p)), "+", "%20")
}

func dnsSAN(c *x509.Certificate) string   { return strings.Join(c.DNSNames, ",") }
func emailSAN(c *x509.Certificate) string { return strings.Join(c.EmailAddresses, ",") }

func uriSAN(c *x509.Certificate) string {
	all := make([]string, len(c.URIs))
	for i, u := range c.URIs {
		all[i] = u.String()
	}
	return strings.Join(all, ",")
}

func ipSAN(c *x509.Certificate) string {
	all := make([]string, len(c.IPAddresses))
	for i, a := range c.IPAddresses {
		all[i] = a.String()
	}
	return strings.Join(all, ",")
}
