package secret_test

import (
	"crypto/x509"
	"errors"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/dragoman-proxy/dragoman/internal/certtest"
	"github.com/dragoman-proxy/dragoman/proxy/internal/secret"
	"github.com/dragoman-proxy/dragoman/proxy/internal/stats"
	"github.com/dragoman-proxy/dragoman/proxy/internal/sub"
)

// fakeSource is a source whose subscriptions the test feeds.
type fakeSource struct {
	open map[string]sub.Callbacks
	fail error
}

func (s *fakeSource) Subscribe(_ *corev3.ConfigSource, _ string, names []string, _ sub.Stats, cb sub.Callbacks) (sub.Subscription, error) {
	if s.fail != nil {
		return nil, s.fail
	}
	s.open[names[0]] = cb
	return fakeSub{s, names[0]}, nil
}

type fakeSub struct {
	s    *fakeSource
	name string
}

func (f fakeSub) SetNames([]string) {}
func (f fakeSub) Close()            { delete(f.s.open, f.name) }

type rig struct {
	m       *secret.Manager
	src     *fakeSource
	store   *stats.Store
	waiting int
}

func newRig() *rig {
	r := &rig{src: &fakeSource{open: map[string]sub.Callbacks{}}, store: stats.NewStore()}
	r.m = &secret.Manager{Source: r.src, Scope: r.store.Root(), Wait: func() func() {
		r.waiting++
		done := false
		return func() {
			if !done {
				done = true
				r.waiting--
			}
		}
	}}
	return r
}

func config(name string) *tlsv3.SdsSecretConfig {
	return &tlsv3.SdsSecretConfig{Name: name, SdsConfig: &corev3.ConfigSource{}}
}

func trust(name, text string) *tlsv3.Secret {
	v := &tlsv3.CertificateValidationContext{VerifyCertificateHash: []string{text}}
	return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_ValidationContext{ValidationContext: v}}
}

func update(list ...sub.Resource) *sub.Update {
	return &sub.Update{Version: "7", Full: true, Resources: list}
}

func TestSecretsAreSharedAndReleased(t *testing.T) {
	r := newRig()
	told := [2]int{}
	get, release, err := r.m.Validation(config("a"), func() { told[0]++ })
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := r.m.Validation(config("a"), func() { told[1]++ })
	if err != nil || len(r.src.open) != 1 || r.waiting != 1 {
		t.Fatalf("%v; %d subscriptions, %d waited for", err, len(r.src.open), r.waiting)
	}
	cb := r.src.open["a"]
	if err := cb.OnUpdate(update(sub.Resource{Name: "a", Body: trust("a", "one")})); err != nil {
		t.Fatal(err)
	}
	if get().GetVerifyCertificateHash()[0] != "one" || told != [2]int{1, 1} || r.waiting != 0 {
		t.Errorf("has %v, told %v, %d waited for", get(), told, r.waiting)
	}
	other()
	other()
	if err := cb.OnUpdate(update(sub.Resource{Name: "a", Body: trust("a", "two")})); err != nil {
		t.Fatal(err)
	}
	if told != [2]int{2, 1} || len(r.src.open) != 1 {
		t.Errorf("told %v after one has gone, %d subscriptions", told, len(r.src.open))
	}
	release()
	if len(r.src.open) != 0 || len(r.m.Dynamic()) != 0 {
		t.Error("nobody is left, and the subscription is open still")
	}
	if n := r.store.Released(); n != 2 {
		t.Errorf("%d groups of stats are released, want 2", n)
	}
	// It begins anew.
	if _, _, err := r.m.Validation(config("a"), func() {}); err != nil || len(r.src.open) != 1 {
		t.Errorf("%v; %d subscriptions", err, len(r.src.open))
	}
}

func TestSecretsThatDoNotCome(t *testing.T) {
	r := newRig()
	if _, _, err := r.m.Validation(config("a"), func() {}); err != nil || r.waiting != 1 {
		t.Fatal(err, r.waiting)
	}
	r.src.open["a"].OnFailure(sub.ConnectionFailure, nil)
	if r.waiting != 1 {
		t.Error("it may come yet")
	}
	r.src.open["a"].OnFailure(sub.Rejected, errors.New("x"))
	if r.waiting != 0 {
		t.Error("nobody should wait")
	}
	_, release, err := r.m.Validation(config("b"), func() {})
	if err != nil {
		t.Fatal(err)
	}
	release()
	if r.waiting != 0 {
		t.Error("somebody waits for a secret that nobody wants any more")
	}
	r.src.fail = errors.New("no source")
	if _, _, err := r.m.Validation(config("c"), func() {}); err == nil || r.waiting != 0 {
		t.Errorf("%v; %d waited for", err, r.waiting)
	}
}

func TestBadSecretsLeaveTheOld(t *testing.T) {
	r := newRig()
	told := 0
	get, _, err := r.m.Validation(config("a"), func() { told++ })
	if err != nil {
		t.Fatal(err)
	}
	cb := r.src.open["a"]
	if err := cb.OnUpdate(update(sub.Resource{Name: "a", Body: trust("a", "one")})); err != nil {
		t.Fatal(err)
	}
	inline := func(s string) *corev3.DataSource {
		return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: s}}
	}
	bad := trust("a", "two")
	bad.GetValidationContext().TrustedCa = inline("no certificate")
	key := &tlsv3.Secret{Name: "a", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: inline("x"), PrivateKey: inline("y")}}}
	chain, private := certtest.SelfSigned(t, &x509.Certificate{})
	other := &tlsv3.Secret{Name: "a", Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: inline(chain), PrivateKey: inline(private)}}}
	for want, u := range map[string]*sub.Update{
		`resources["a"].validation_context.trusted_ca: Failed to load trusted CA certificates from <inline>: it holds no certificate`: update(sub.Resource{Name: "a", Body: bad}),
		`resources["a"].tls_certificate.certificate_chain: Failed to load certificate chain from <inline>: `:                          update(sub.Resource{Name: "a", Body: key}),
		`resources["a"]: the secret is a TlsCertificate, and a CertificateValidationContext is wanted`:                                update(sub.Resource{Name: "a", Body: other}),
		`resources["a"]: the secret has nothing in it: a CertificateValidationContext is wanted`:                                      update(sub.Resource{Name: "a", Body: &tlsv3.Secret{Name: "a"}}),
		"name: Unexpected SDS secret (expecting a): b":                                                                                update(sub.Resource{Name: "b", Body: trust("b", "x")}),
		"Unexpected SDS secrets length: 2": update(sub.Resource{Name: "a", Unchanged: true}, sub.Resource{Name: "b", Unchanged: true}),
		`resources["a"]: x`:                update(sub.Resource{Name: "a", Err: errors.New("x")}),
		"nobody knows which":               update(sub.Resource{Err: errors.New("nobody knows which")}),
		"SDS resource a is no Secret":      update(sub.Resource{Name: "a", Body: &corev3.Node{}}),
	} {
		if err := cb.OnUpdate(u); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for name, u := range map[string]*sub.Update{"nothing": update(), "the same": update(sub.Resource{Name: "a", Unchanged: true})} {
		if err := cb.OnUpdate(u); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if told != 1 || get().GetVerifyCertificateHash()[0] != "one" {
		t.Errorf("told %d times, has %v", told, get())
	}
}
