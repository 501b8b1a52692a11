//go:build unix

package tls_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/tls"
)

// Files of certificates are read once: what serves, what /certs shows and what the gauges tell are the same, whatever becomes of them.
func TestFilesAreReadOnce(t *testing.T) {
	dir := t.TempDir()
	// once is a file that can be read only once: a pipe, which is gone by the time at which somebody reads it.
	once := func(name, text string) *corev3.DataSource {
		path := filepath.Join(dir, name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip(err)
		}
		go func() {
			f, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for who reads
			if err != nil {
				return
			}
			_ = os.Remove(path)
			_, _ = f.WriteString(text)
			_ = f.Close()
		}()
		return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: path}}
	}
	cert, key := ending(t, 4_000_000_000)
	ca, _ := ending(t, 3_000_000_000)
	store := stats.NewStore()
	s, err := tls.NewServer(&tlsv3.DownstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{
		TlsCertificates: []*tlsv3.TlsCertificate{{CertificateChain: once("cert", cert), PrivateKey: once("key", key)}},
		ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{
			ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: once("ca", cert+ca)}},
	}}, tls.Deps{Scope: store.Root().Scope("l"), SetGauge: store.SetGauge})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, expires := s.Loaded()
	if len(list) != 2 || list[0].CA || !list[1].CA || list[1].Path != filepath.Join(dir, "ca") || expires != 4_000_000_000 {
		t.Errorf("%d certificates, of which the first expires at %d", len(list), expires)
	}
	store.Collect()
	text := string(stats.WriteAll(store.Text(stats.Query{})))
	for _, want := range []string{"unnamed_cert_e3b0c442.expiration_unix_time_seconds: 4000000000", "unnamed_ca_cert_e3b0c442.expiration_unix_time_seconds: 3000000000"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
