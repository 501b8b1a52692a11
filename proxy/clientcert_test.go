package proxy_test

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-proxy/dragoman/proxy"
)

// Clients' certificates are asked for and refused as Envoy does: require_client_certificate needs CAs, and what is checked of a
// certificate beside its chain needs the certificate. Connections that fail count as TLS connections that the client ended.
func TestClientCertificates(t *testing.T) {
	cert, key := certificate(t, "server")
	var clients [3]tls.Certificate // none, one that is known, another
	texts := [3]string{}
	for i, name := range []string{1: "known", 2: "other"} {
		if name == "" {
			continue
		}
		c, k := certificate(t, name)
		texts[i] = c
		plain := func(s string) []byte { u, _ := strconv.Unquote(s); return []byte(u) }
		var err error
		if clients[i], err = tls.X509KeyPair(plain(c), plain(k)); err != nil {
			t.Fatal(err)
		}
	}
	sum := sha256.Sum256(clients[1].Certificate[0])
	ca, hash := "trusted_ca: {inline_string: "+texts[1]+"}", "verify_certificate_hash: ["+hex.EncodeToString(sum[:])+"]"
	const any = "trust_chain_verification: ACCEPT_UNTRUSTED"
	const lets, unasked, noCert, unknown, badHash, doubted, doubtedHash = "handshake", "handshake no_certificate", "fail_verify_no_cert", "fail_verify_error", "fail_verify_cert_hash",
		"fail_verify_error handshake", "fail_verify_cert_hash handshake"
	cases := []struct {
		name, require, context string
		want                   [3]string
	}{
		{"nothing", "true", "", [3]string{unasked, unasked, unasked}},
		{"an empty context", "true", "{}", [3]string{unasked, unasked, unasked}},
		{"a CA", "true", "{" + ca + "}", [3]string{noCert, lets, unknown}},
		{"a CA, optional", "false", "{" + ca + "}", [3]string{unasked, lets, unknown}},
		{"any", "true", "{" + any + "}", [3]string{unasked, lets, lets}},
		{"any, and a CA", "true", "{" + any + ", " + ca + "}", [3]string{noCert, lets, doubted}},
		{"a hash", "true", "{" + hash + "}", [3]string{noCert, lets, badHash}},
		{"a hash, optional", "false", "{" + hash + "}", [3]string{noCert, lets, badHash}},
		{"any, and a hash", "true", "{" + any + ", " + hash + "}", [3]string{unasked, lets, doubtedHash}},
	}
	config := "static_resources:\n  listeners:"
	for i, c := range cases {
		context := ""
		if c.context != "" {
			context = ", validation_context: " + c.context
		}
		config += fmt.Sprintf(`
  - name: l%d
    stat_prefix: l%[1]d
    address: {socket_address: {address: 127.0.0.1, port_value: 0}}
    filter_chains:
    - transport_socket:
        name: tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
          require_client_certificate: %s
          common_tls_context: {tls_certificates: [{certificate_chain: {inline_string: %s}, private_key: {inline_string: %s}}]%s}
      filters:
      - name: h
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: l%[1]d
          route_config: {virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200}}]}]}
          http_filters: [{name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
`, i, c.require, cert, key, context)
	}
	r := run(t, build(t, config, proxy.WithIO("std")))
	for i, c := range cases {
		n := uint64(0)
		for k, want := range c.want {
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				before := r.tlsStats(i)
				failed := tlsAsk(t, r.p.Addrs()[fmt.Sprint("l", i)][0].String(), version, &clients[k])
				n++
				got := ""
				for after := r.tlsStats(i); ; after = r.tlsStats(i) {
					if got = ""; after["ssl_total"] < n || after["destroy_remote"]+after["destroy_local"] < n {
						<-time.After(time.Millisecond)
						continue
					}
					if after["ssl_total"] != n || after["destroy_local"] > 0 {
						t.Errorf("%s, certificate %d, %x: %v", c.name, k, version, after)
					}
					for _, s := range []string{"fail_verify_cert_hash", "fail_verify_error", "fail_verify_no_cert", "handshake", "no_certificate"} {
						if after[s] > before[s] {
							got += " " + s
						}
					}
					break
				}
				if got = strings.TrimPrefix(got, " "); got != want {
					t.Errorf("%s, certificate %d, %x: %q, want %q", c.name, k, version, got, want)
				}
				if wantFail := !strings.Contains(want, "handshake"); (failed != nil) != wantFail {
					t.Errorf("%s, certificate %d, %x: %v", c.name, k, version, failed)
				} else if want == unknown && !strings.Contains(failed.Error(), "unknown certificate authority") {
					t.Errorf("%s, %x: %v", c.name, version, failed)
				}
			}
		}
	}
	r.end()
}

// tlsStats are the counters of listener i's TLS connections.
func (r *running) tlsStats(i int) map[string]uint64 {
	out := map[string]uint64{}
	for _, line := range strings.Split(r.p.Stats(), "\n") {
		name, v, _ := strings.Cut(line, ": ")
		for _, prefix := range []string{fmt.Sprintf("listener.l%d.ssl.", i), fmt.Sprintf("http.l%d.downstream_cx_", i)} {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				out[rest], _ = strconv.ParseUint(v, 10, 64)
			}
		}
	}
	return out
}

// tlsAsk makes a request over TLS and returns why it failed.
func tlsAsk(t *testing.T, addr string, version uint16, cert *tls.Certificate) error {
	t.Helper()
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version, //nolint:gosec // the server is ours
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }})
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte("GET / HTTP/1.1\r\nhost: a\r\n\r\n")); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}
