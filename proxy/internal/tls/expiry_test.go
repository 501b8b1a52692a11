package tls_test

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"

	astats "github.com/dragoman-proxy/dragoman/api/stats"
	"github.com/dragoman-proxy/dragoman/internal/certtest"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/tls"
)

// ending makes a certificate that ends at a time, and its key.
func ending(t *testing.T, at int64) (cert, key string) {
	t.Helper()
	return certtest.SelfSigned(t, &x509.Certificate{NotBefore: time.Unix(0, 0), NotAfter: time.Unix(at, 0)})
}

func inline(text string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
}

// secrets has one certificate, which a test replaces.
type secrets struct {
	cert    *tlsv3.TlsCertificate
	changed func()
}

func (s *secrets) Certificate(_ *tlsv3.SdsSecretConfig, changed func()) (func() *tlsv3.TlsCertificate, func(), error) {
	s.changed = changed
	return func() *tlsv3.TlsCertificate { return s.cert }, func() {}, nil
}

func (s *secrets) Validation(*tlsv3.SdsSecretConfig, func()) (func() *tlsv3.CertificateValidationContext, func(), error) {
	return nil, nil, nil
}

// When the certificates of a context end is told by their names: of a chain the first, of authorities the one that ends first, of two
// with one name the last. What a secret becomes is followed; who closes takes its gauges with it.
func TestExpiries(t *testing.T) {
	a, aKey := ending(t, 4_000_000_000)
	b, bKey := ending(t, 3_000_000_000)
	certificate := func(chain, key string) *tlsv3.TlsCertificate {
		return &tlsv3.TlsCertificate{CertificateChain: inline(chain), PrivateKey: inline(key)}
	}
	store := stats.NewStore()
	s := &secrets{}
	told := func() (list []string) {
		store.Collect()
		for _, l := range strings.Split(string(stats.WriteAll(store.Text(stats.Query{}))), "\n") {
			if strings.Contains(l, ".certificate.") {
				list = append(list, l)
			}
		}
		return list
	}
	server := func(listener string, p *tlsv3.CommonTlsContext) *tls.Server {
		x, err := tls.NewServer(&tlsv3.DownstreamTlsContext{CommonTlsContext: p}, tls.Deps{Scope: store.Root().Scope(listener), Secrets: s, SetGauge: store.SetGauge})
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	one := server("listener.a", &tlsv3.CommonTlsContext{TlsCertificates: []*tlsv3.TlsCertificate{certificate(a+b, aKey)},
		ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: inline(a + b)}}})
	two := server("listener.b", &tlsv3.CommonTlsContext{TlsCertificates: []*tlsv3.TlsCertificate{certificate(b, bKey), certificate(a, aKey)}})
	sds := server("listener.c", &tlsv3.CommonTlsContext{TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{Name: "spiffe://a.b"}}})
	want := []string{
		"listener.a.ssl.certificate.unnamed_ca_cert_e3b0c442.expiration_unix_time_seconds: 3000000000",
		"listener.a.ssl.certificate.unnamed_cert_e3b0c442.expiration_unix_time_seconds: 4000000000",
		"listener.b.ssl.certificate.unnamed_cert_e3b0c442.expiration_unix_time_seconds: 4000000000",
	}
	if d := cmp.Diff(want, told()); d != "" {
		t.Error(d)
	}
	one.Close()
	two.Close()
	for _, c := range []struct {
		cert *tlsv3.TlsCertificate
		want string
	}{{certificate(a, aKey), "4000000000"}, {certificate(b, bKey), "3000000000"}} {
		s.cert = c.cert
		s.changed()
		if d := cmp.Diff([]string{"listener.c.ssl.certificate.spiffe://a.b.expiration_unix_time_seconds: " + c.want}, told()); d != "" {
			t.Error(d)
		}
	}
	sds.Close()
	if d := cmp.Diff([]string(nil), told()); d != "" {
		t.Error(d)
	}
}

// Secrets of SDS count as they come, also for those who come later; what the bootstrap has does not count.
func TestUpdatesBySDS(t *testing.T) {
	chain, key := ending(t, 4_000_000_000)
	store := stats.NewStore()
	s := &secrets{}
	server := func(listener string, from *corev3.ConfigSource) {
		p := &tlsv3.CommonTlsContext{TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{Name: "a", SdsConfig: from}}}
		x, err := tls.NewServer(&tlsv3.DownstreamTlsContext{CommonTlsContext: p}, tls.Deps{Scope: store.Root().Scope(listener), Secrets: s,
			Count: func(id astats.CounterID) { store.Main().Inc(id) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(x.Close)
	}
	want := func(listener, n string) {
		t.Helper()
		store.Collect()
		line := listener + ".server_ssl_socket_factory.ssl_context_update_by_sds: " + n + "\n"
		if text := string(stats.WriteAll(store.Text(stats.Query{}))); !strings.Contains(text, line) {
			t.Errorf("no %q", line)
		}
	}
	server("one", &corev3.ConfigSource{})
	want("one", "0")
	s.cert = &tlsv3.TlsCertificate{CertificateChain: inline(chain), PrivateKey: inline(key)}
	s.changed()
	want("one", "1")
	s.changed()
	want("one", "2")
	server("two", &corev3.ConfigSource{})
	want("two", "1")
	server("three", nil)
	s.changed()
	want("three", "0")
}
