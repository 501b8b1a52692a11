package proxy_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/internal/certtest"
	"github.com/dragoman-proxy/dragoman/proxy"
)

// certificate makes a self-signed certificate and its key, each as a YAML text in quotes.
func certificate(t *testing.T, name string) (cert, key string) {
	t.Helper()
	cert, key = certtest.SelfSigned(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)})
	quoted := func(text string) string { return `"` + strings.ReplaceAll(text, "\n", `\n`) + `"` }
	return quoted(cert), quoted(key)
}

// A static secret changes for the listeners that use it, though they themselves do not.
func TestReloadSecret(t *testing.T) {
	addr := backend(t, func(http.ResponseWriter, *http.Request) {})
	_, port, _ := net.SplitHostPort(addr)
	config := func(name string) string {
		cert, key := certificate(t, name)
		return `
static_resources:
  secrets: [{name: server, tls_certificate: {certificate_chain: {inline_string: ` + cert + `}, private_key: {inline_string: ` + key + `}}}]
  listeners:
  - name: main
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - transport_socket:
        name: tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context: {tls_certificate_sds_secret_configs: [{name: server}]}
      filters:
      - {name: x, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: p, cluster: none}}
  clusters:
  - name: none
    load_assignment: {cluster_name: none, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: ` + port + `}}}}]}]}
`
	}
	r := run(t, build(t, config("first"), proxy.WithIO("std")))
	subject := func() string {
		t.Helper()
		c, err := tls.Dial("tcp", r.p.Addrs()["main"][0].String(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the certificate is looked at below
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	if got := subject(); got != "first" {
		t.Fatal(got)
	}
	want(t, r.reload(config("second")), 1)
	if got := subject(); got != "second" {
		t.Error(got)
	}
	bad := r.reload(strings.Replace(config("third"), "BEGIN PRIVATE KEY", "BEGIN NONSENSE", 1))
	if len(bad.Errors) != 1 || !strings.Contains(bad.Errors[0].Error(), "static_resources.secrets[0]") || subject() != "second" {
		t.Errorf("%+v", bad)
	}
	r.end()
}
