package proxy_test

import (
	"crypto/tls"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy"
)

// A server signs only as signature_algorithms allows; its key is one of ECDSA on P-256.
func TestSignatureAlgorithms(t *testing.T) {
	cert, key := certificate(t, "x")
	for _, c := range []struct {
		list         string
		tls12, tls13 bool
	}{
		{"", true, true},
		{"ecdsa_secp256r1_sha256", true, true},
		{"rsa_pss_rsae_sha256:ECDSA+SHA256", true, true},
		{"ecdsa_secp384r1_sha384", true, false}, // RFC 8446, section 4.2.3: TLS 1.3 binds the curve
		{"rsa_pss_rsae_sha256", false, false},
		{"ecdsa_sha1", false, false},
	} {
		r := run(t, build(t, `
static_resources:
  listeners:
  - name: main
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - transport_socket:
        name: tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            tls_params: {signature_algorithms: ["`+c.list+`"]}
            tls_certificates: [{certificate_chain: {inline_string: `+cert+`}, private_key: {inline_string: `+key+`}}]
      filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: p
          route_config: {}
          http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
`, proxy.WithIO("std")))
		for v, want := range map[uint16]bool{tls.VersionTLS12: c.tls12, tls.VersionTLS13: c.tls13} {
			conn, err := tls.Dial("tcp", r.p.Addrs()["main"][0].String(), &tls.Config{InsecureSkipVerify: true, MinVersion: v, MaxVersion: v}) //nolint:gosec // the signature is what is looked at
			if err == nil {
				_ = conn.Close()
			}
			if (err == nil) != want {
				t.Errorf("%q with %s: %v", c.list, tls.VersionName(v), err)
			}
		}
		r.end()
	}
}
