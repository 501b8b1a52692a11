//go:build peers

package peer_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpenSSL asks with the versions of TLS, names and protocols that a client may offer. OpenSSL comes with the machine: where
// it does not, the test is left out.
func TestOpenSSL(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	ca := newAuthority(t)
	p := startProxy(t, dragoman(t), new(config).cluster("up", newUpstream(t)).secure("secure", "up", ca, "a.test", "b.test").String())
	caFile := write(t, filepath.Join(t.TempDir(), "ca.pem"), ca.pem)
	for name, x := range map[string]struct {
		args []string
		want []string
	}{
		"tls1.2":     {[]string{"-tls1_2", "-servername", "a.test", "-verify_hostname", "a.test"}, []string{"New, TLSv1.2", "subject=CN = a.test", "No ALPN negotiated"}},
		"tls1.3":     {[]string{"-tls1_3", "-servername", "a.test", "-verify_hostname", "a.test"}, []string{"New, TLSv1.3", "subject=CN = a.test", "No ALPN negotiated"}},
		"other name": {[]string{"-servername", "b.test", "-verify_hostname", "b.test"}, []string{"New, TLSv1.3", "subject=CN = b.test"}},
		"alpn": {[]string{"-servername", "a.test", "-verify_hostname", "a.test", "-alpn", "spdy/3,http/1.1"},
			[]string{"New, TLSv1.3", "ALPN protocol: http/1.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"s_client", "-connect", p.addr("secure"), "-CAfile", caFile, "-verify_return_error", "-nameopt", "oneline", "-ign_eof"}, x.args...)
			out := run(t, "GET /up/hello HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n", openssl, args...).stdout
			for _, want := range append(x.want, "Verify return code: 0 (ok)", "HTTP/1.1 200 OK\r\n", "\r\n\r\nhello\n") {
				if !strings.Contains(strings.ReplaceAll(out, "CN=", "CN = "), want) {
					t.Errorf("no %q in:\n%s", want, out)
				}
			}
		})
	}

	t.Run("h2 wins", func(t *testing.T) {
		out := run(t, "", openssl, "s_client", "-connect", p.addr("secure"), "-servername", "a.test", "-alpn", "http/1.1,h2").stdout
		if !strings.Contains(out, "ALPN protocol: h2") {
			t.Errorf("no h2 in:\n%s", out)
		}
	})

	for name, args := range map[string][]string{
		"unknown name": {"-servername", "c.test"},
		"no name":      {"-noservername"},
		"tls1.1":       {"-tls1_1", "-servername", "a.test", "-cipher", "DEFAULT@SECLEVEL=0"},
	} {
		t.Run(name, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), openssl, append([]string{"s_client", "-connect", p.addr("secure")}, args...)...)
			if out, err := c.CombinedOutput(); err == nil {
				t.Errorf("the handshake was accepted:\n%s", out)
			}
		})
	}
}
