package server

import (
	"crypto/x509"
	"encoding/hex"
	"math"
	"time"
	"weak"

	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dragoman-proxy/dragoman/proxy/internal/admin"
	"github.com/dragoman-proxy/dragoman/proxy/internal/tls"
)

// noCertificate is what server.days_until_first_cert_expiring shows without certificates.
const noCertificate = math.MaxUint32

// certs are the transport sockets that have certificates, as long as somebody uses them. owner: main loop.
type certs struct {
	list    []func() tlsSocket
	pruneAt int
}

type tlsSocket interface {
	Loaded() (list []tls.Loaded, expires int64)
}

// remember adds a transport socket, held weakly: that its listener or cluster goes is nobody's business here.
func remember[T any, P interface {
	*T
	tlsSocket
}](c *certs, t P) {
	p := weak.Make((*T)(t))
	c.list = append(c.list, func() tlsSocket {
		if v := p.Value(); v != nil {
			return P(v)
		}
		return nil
	})
	if len(c.list) > c.pruneAt {
		c.sockets()
		c.pruneAt = max(64, 2*len(c.list))
	}
}

// sockets returns those that are still in use, and forgets the others.
func (c *certs) sockets() []tlsSocket {
	var out []tlsSocket
	kept := c.list[:0]
	for _, f := range c.list {
		if t := f(); t != nil {
			kept = append(kept, f)
			out = append(out, t)
		}
	}
	clear(c.list[len(kept):])
	c.list = kept
	return out
}

// serveCerts answers /certs.
func (s *Server) serveCerts(_ *admin.Request, done func(*admin.Response)) {
	out := &adminv3.Certificates{}
	for _, t := range s.certs.sockets() {
		list, _ := t.Loaded()
		if len(list) == 0 {
			continue
		}
		c := &adminv3.Certificate{}
		for _, x := range list {
			d, err := certDetails(x, s.cfg.Clock.Now())
			switch {
			case err != nil:
			case x.CA:
				c.CaCert = append(c.CaCert, d)
			default:
				c.CertChain = append(c.CertChain, d)
			}
		}
		out.Certificates = append(out.Certificates, c)
	}
	answerJSON(done, out, true)
}

func certDetails(l tls.Loaded, now time.Time) (*adminv3.CertificateDetails, error) {
	c, err := x509.ParseCertificate(l.DER)
	if err != nil {
		return nil, err
	}
	d := &adminv3.CertificateDetails{Path: l.Path, SerialNumber: hex.EncodeToString(c.SerialNumber.Bytes()),
		DaysUntilExpiration: days(c.NotAfter.Unix(), now), ValidFrom: timestamppb.New(c.NotBefore), ExpirationTime: timestamppb.New(c.NotAfter)}
	for _, n := range c.DNSNames {
		d.SubjectAltNames = append(d.SubjectAltNames, &adminv3.SubjectAlternateName{Name: &adminv3.SubjectAlternateName_Dns{Dns: n}})
	}
	for _, u := range c.URIs {
		d.SubjectAltNames = append(d.SubjectAltNames, &adminv3.SubjectAlternateName{Name: &adminv3.SubjectAlternateName_Uri{Uri: u.String()}})
	}
	for _, ip := range c.IPAddresses {
		d.SubjectAltNames = append(d.SubjectAltNames, &adminv3.SubjectAlternateName{Name: &adminv3.SubjectAlternateName_IpAddress{IpAddress: ip.String()}})
	}
	return d, nil
}

// days is how many whole days there are until a moment in seconds since 1970, 0 if it is past.
func days(at int64, now time.Time) uint64 {
	return uint64(max(at-now.Unix(), 0) / int64(dayLength/time.Second))
}

// daysUntilFirstCert is how long all certificates are valid.
func (s *Server) daysUntilFirstCert() uint64 {
	least := uint64(noCertificate)
	for _, t := range s.certs.sockets() {
		if _, at := t.Loaded(); at != 0 {
			least = min(least, days(at, s.cfg.Clock.Now()))
		}
	}
	return least
}
