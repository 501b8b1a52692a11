package hcm_test

import (
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-proxy/dragoman/proxy/internal/hcm"
)

// peer is a certificate as far as anybody looks at it here.
func peer(t *testing.T, cn string, uris ...string) *x509.Certificate {
	t.Helper()
	// x509.Certificate keeps names raw; only a name needs to be encoded.
	raw := func(n string) []byte {
		b, err := asn1Name(n)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	c := &x509.Certificate{Raw: []byte("raw of " + cn + ">>>???"), RawSubject: raw(cn), RawIssuer: raw("CA"), DNSNames: []string{"a.test", "b.test"}}
	for _, u := range uris {
		x, err := url.Parse(u)
		if err != nil {
			t.Fatal(err)
		}
		c.URIs = append(c.URIs, x)
	}
	return c
}

func TestCertTexts(t *testing.T) {
	leaf, ca := peer(t, "leaf", "spiffe://a/b", "https://c"), peer(t, "ca")
	info := &hcm.TLSInfo{Peer: []*x509.Certificate{leaf, ca}, Local: peer(t, "me", "spiffe://me", "spiffe://me2")}
	sum := sha256.Sum256(leaf.Raw)
	hash := hex.EncodeToString(sum[:])
	const escapedLeaf = "-----BEGIN%20CERTIFICATE-----%0AcmF3IG9mIGxlYWY%2BPj4%2FPz8%3D%0A-----END%20CERTIFICATE-----%0A"
	const escapedCA = "-----BEGIN%20CERTIFICATE-----%0AcmF3IG9mIGNhPj4%2BPz8%2F%0A-----END%20CERTIFICATE-----%0A"
	const by = "By=spiffe://me;By=spiffe://me2;Hash="
	for name, c := range map[string]struct {
		cfg  hcm.ClientCert
		want string
	}{
		"least":   {hcm.ClientCert{}, by + hash},
		"subject": {hcm.ClientCert{Subject: true, Issuer: true}, by + hash + `;Subject="CN=leaf";Issuer="CN=CA"`},
		"names":   {hcm.ClientCert{URI: true, DNS: true}, by + hash + ";URI=spiffe://a/b;URI=https://c;DNS=a.test;DNS=b.test"},
		"cert":    {hcm.ClientCert{Cert: true}, by + hash + `;Cert="` + escapedLeaf + `"`},
		"chain":   {hcm.ClientCert{Chain: true}, by + hash + `;Chain="` + escapedLeaf + escapedCA + `"`},
	} {
		plain, _ := hcm.CertTexts(&c.cfg)
		if d := cmp.Diff(c.want, plain(info)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if d := cmp.Diff(c.want, plain(info)); d != "" {
			t.Errorf("%s, kept: %s", name, d)
		}
	}
	none, _ := hcm.CertTexts(&hcm.ClientCert{URI: true})
	sum = sha256.Sum256(ca.Raw)
	if got, want := none(&hcm.TLSInfo{Peer: []*x509.Certificate{ca}}), "Hash="+hex.EncodeToString(sum[:])+";URI="; got != want {
		t.Errorf("without URIs: %s, want %s", got, want)
	}
	_, array := hcm.CertTexts(&hcm.ClientCert{Subject: true, URI: true, DNS: true, Issuer: true})
	var got any
	if err := json.Unmarshal([]byte(array(info)), &got); err != nil {
		t.Fatal(err)
	}
	want := []any{map[string]any{"by": []any{"spiffe://me", "spiffe://me2"}, "hash": hash, "subject": "CN=leaf", "uri": []any{"spiffe://a/b", "https://c"},
		"dns": []any{"a.test", "b.test"}, "issuer": "CN=CA"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// asn1Name encodes a name with nothing but a common name.
func asn1Name(cn string) ([]byte, error) {
	return asn1.Marshal(pkix.Name{CommonName: cn}.ToRDNSequence())
}
