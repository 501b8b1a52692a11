//go:build peers

package peer_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

// config writes bootstraps that Dragoman and a real Envoy both run. Every listener routes /h2/... to the cluster that speaks
// HTTP/2, without that prefix, answers /direct by itself, and routes the rest of "/" to the cluster that speaks HTTP/1.
type config struct{ listeners, clusters strings.Builder }

// cluster adds the clusters NAME1 and NAME2, which speak HTTP/1 and HTTP/2 to one address.
func (c *config) cluster(name, addr string) *config {
	for version, options := range []string{
		`http_protocol_options: {enable_trailers: true}`,
		`http2_protocol_options: {}`,
	} {
		fmt.Fprintf(&c.clusters, `
  - name: %s%d
    type: STATIC
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {%s}
    load_assignment:
      cluster_name: %[1]s%[2]d
      endpoints: [{lb_endpoints: [{endpoint: {address: %[4]s}}]}]`, name, version+1, options, socketAddress(addr))
	}
	return c
}

// plain adds a listener that tells HTTP/1 from HTTP/2 by the first bytes.
func (c *config) plain(name, cluster string) *config {
	fmt.Fprintf(&c.listeners, `
  - name: %s
    address: %s
    filter_chains:
    - filters: %s`, name, socketAddress("127.0.0.1:0"), manager(cluster))
	return c
}

// secure adds a listener with a certificate for each name, chosen by SNI.
func (c *config) secure(name, cluster string, ca *authority, hosts ...string) *config {
	fmt.Fprintf(&c.listeners, `
  - name: %s
    address: %s
    listener_filters:
    - name: envoy.filters.listener.tls_inspector
      typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector}
    filter_chains:`, name, socketAddress("127.0.0.1:0"))
	for _, host := range hosts {
		cert, key := ca.issue(host)
		fmt.Fprintf(&c.listeners, `
    - name: %s
      filter_chain_match: {server_names: [%[1]s]}
      filters: %s
      transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            alpn_protocols: [h2, http/1.1]
            tls_params: {tls_minimum_protocol_version: TLSv1_2, tls_maximum_protocol_version: TLSv1_3}
            tls_certificates: [{certificate_chain: {inline_string: %[3]s}, private_key: {inline_string: %[4]s}}]`,
			host, manager(cluster), quote(cert), quote(key))
	}
	return c
}

func (c *config) String() string {
	return "admin: {address: " + socketAddress("127.0.0.1:0") + "}\nstatic_resources:\n  listeners:" + c.listeners.String() +
		"\n  clusters:" + c.clusters.String() + "\n"
}

func manager(cluster string) string {
	return fmt.Sprintf(`
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: peer
          use_remote_address: true
          http_protocol_options: {enable_trailers: true}
          route_config:
            name: peer
            validate_clusters: false
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {path: /direct}
                direct_response: {status: 200, body: {inline_string: "direct\n"}}
              - match: {path: /moved}
                redirect: {path_redirect: /direct}
              - match: {prefix: /h2/}
                route: {cluster: %[1]s2, prefix_rewrite: /}
              - match: {prefix: /nowhere}
                route: {cluster: nowhere, timeout: 1s}
              - match: {prefix: /up}
                route: {cluster: %[1]s1}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
          `, cluster)
}

func socketAddress(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	return fmt.Sprintf("{socket_address: {address: %s, port_value: %s}}", host, port)
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// authority issues certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.key = a.newKey()
	tmpl := template("peer authority")
	tmpl.IsCA, tmpl.BasicConstraintsValid, tmpl.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

// issue returns a certificate for a name, and its key, in PEM.
func (a *authority) issue(name string) (cert, key string) {
	a.t.Helper()
	k := a.newKey()
	tmpl := template(name)
	tmpl.DNSNames = []string{name}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &k.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	kd, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: kd}))
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return k
}

// pool is what a client that trusts the authority needs.
func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}
